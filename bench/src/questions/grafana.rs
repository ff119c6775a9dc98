//! What Grafana asks of Pyroscope: spans, traces, and the lists of its start page, as protobuf over Connect.

use std::time::{Duration, Instant};

use prost::Message;
use spanflame_proto::pyroscope as wire;

use super::Asker;
use crate::Failure;
use crate::corpus::{Corpus, Truth};
use crate::quantiles::Latencies;

const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";

/// Repetitions of a list, which is the same every time.
const LISTS: usize = 10;

/// Around the corpus on either side: an hour in all, with the ten minutes of the corpus.
const MARGIN_MS: i64 = 25 * 60_000;

/// Around a span, as Grafana asks for its embedded flame graph.
const NEAR_MS: i64 = 30_000;

const MS: i64 = 1_000_000;

impl Asker<'_> {
    pub(super) async fn grafana(&mut self, corpus: &Corpus) -> Result<(), Failure> {
        let hour = range_ms(corpus);
        self.spans("select_merge_span_profile", corpus, |_| hour).await?;
        let near = |truth: &Truth| {
            let ms = |nanos: u64| nanos as i64 / MS;
            (ms(truth.start_unix_nano) - NEAR_MS, ms(truth.end_unix_nano) + NEAR_MS)
        };
        self.spans("select_merge_span_profile_near", corpus, near).await?;
        self.traces(corpus, hour).await?;
        self.lists(hour).await
    }

    /// A span by its id, among the profiles of its service.
    async fn spans(&mut self, name: &str, corpus: &Corpus, range: impl Fn(&Truth) -> (i64, i64)) -> Result<(), Failure> {
        let (cpu_before, mut latencies) = (self.server.cpu_s()?, Latencies::default());
        for truth in corpus.truth() {
            let (start, end) = range(truth);
            let question = wire::SelectMergeSpanProfileRequest {
                profile_type_id: CPU.to_owned(),
                label_selector: format!("{{service_name=\"{}\"}}", truth.service),
                span_selector: vec![truth.span_id.clone()],
                start,
                end,
                ..wire::SelectMergeSpanProfileRequest::default()
            };
            let (answer, latency) = self.call("SelectMergeSpanProfile", &question).await?;
            latencies.push(latency);
            let answer = wire::SelectMergeSpanProfileResponse::decode(answer.as_slice())?;
            let expected = (corpus.period_ns() * truth.by_stack.values().sum::<u64>()) as i64;
            let found = answer.flamegraph.map_or(0, |graph| graph.total);
            self.compare(found == expected, || {
                format!("span {}: {found} ns for {expected} ns", truth.span_id)
            });
        }
        self.report(name, &latencies, cpu_before)
    }

    /// A trace over all services.
    async fn traces(&mut self, corpus: &Corpus, (start, end): (i64, i64)) -> Result<(), Failure> {
        let (cpu_before, mut latencies) = (self.server.cpu_s()?, Latencies::default());
        for truth in corpus.truth() {
            let question = wire::SelectMergeStacktracesRequest {
                profile_type_id: CPU.to_owned(),
                label_selector: "{}".to_owned(),
                trace_id_selector: vec![truth.trace_id.clone()],
                start,
                end,
                ..wire::SelectMergeStacktracesRequest::default()
            };
            let (answer, latency) = self.call("SelectMergeStacktraces", &question).await?;
            latencies.push(latency);
            let answer = wire::SelectMergeStacktracesResponse::decode(answer.as_slice())?;
            let expected = (10 * corpus.period_ns() * truth.by_stack.values().sum::<u64>()) as i64;
            let found = answer.flamegraph.map_or(0, |graph| graph.total);
            self.compare(found == expected, || {
                format!("trace {}: {found} ns for {expected} ns", truth.trace_id)
            });
        }
        self.report("trace_selector", &latencies, cpu_before)
    }

    /// What a page of all services asks.
    async fn lists(&mut self, (start, end): (i64, i64)) -> Result<(), Failure> {
        let types = wire::ProfileTypesRequest { start, end };
        self.list("profile_types", "ProfileTypes", &types).await?;
        let series = wire::SeriesRequest {
            label_names: vec!["service_name".to_owned(), "__profile_type__".to_owned()],
            start,
            end,
            ..wire::SeriesRequest::default()
        };
        self.list("series", "Series", &series).await?;
        let over_time = wire::SelectSeriesRequest {
            profile_type_id: CPU.to_owned(),
            label_selector: "{}".to_owned(),
            start,
            end,
            group_by: vec!["service_name".to_owned()],
            step: 15.0,
            ..wire::SelectSeriesRequest::default()
        };
        self.list("select_series", "SelectSeries", &over_time).await?;
        let service = wire::SelectMergeStacktracesRequest {
            profile_type_id: CPU.to_owned(),
            label_selector: "{service_name=\"svc-1\"}".to_owned(),
            start,
            end,
            ..wire::SelectMergeStacktracesRequest::default()
        };
        self.list("service_merge", "SelectMergeStacktraces", &service).await
    }

    async fn list(&mut self, name: &str, method: &str, question: &impl Message) -> Result<(), Failure> {
        let (cpu_before, mut latencies) = (self.server.cpu_s()?, Latencies::default());
        for _ in 0..LISTS {
            let (answer, latency) = self.call(method, question).await?;
            latencies.push(latency);
            self.compare(!answer.is_empty(), || format!("{method} answered nothing"));
        }
        self.report(name, &latencies, cpu_before)
    }

    async fn call(&self, method: &str, question: &impl Message) -> Result<(Vec<u8>, Duration), Failure> {
        let start = Instant::now();
        let url = self.server.url(&format!("/querier.v1.QuerierService/{method}"));
        let request = self
            .client
            .post(url)
            .header("content-type", "application/proto")
            .body(question.encode_to_vec());
        let response = request.send().await?;
        let status = response.status();
        let body = response.bytes().await?;
        if !status.is_success() {
            return Err(format!("{method} answered {status}: {}", String::from_utf8_lossy(&body)).into());
        }
        Ok((body.to_vec(), start.elapsed()))
    }
}

fn range_ms(corpus: &Corpus) -> (i64, i64) {
    let [begin, end] = corpus.times().map(|nanos| nanos as i64 / MS);
    (begin - MARGIN_MS, end + MARGIN_MS)
}
