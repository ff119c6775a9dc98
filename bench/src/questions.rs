//! Questions after the load, each asked many times: how long, and whether the answer is the truth.

mod grafana;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::Failure;
use crate::corpus::{Corpus, Signal, Truth};
use crate::quantiles::Latencies;
use crate::server::Server;

/// What was asked and how many answers were wrong.
pub(crate) struct Asked {
    pub(crate) figures: Value,
    pub(crate) differences: u64,
}

/// Repetitions of a search, which is the same for any of its values.
const SEARCHES: usize = 30;

/// Wrong answers told one by one; the rest is counted.
const DIFFERENCES_TOLD: u64 = 5;

/// One client, one question at a time.
struct Asker<'a> {
    server: &'a Server,
    client: reqwest::Client,
    /// Between an answer and the next question.
    pause: Duration,
    figures: Map<String, Value>,
    differences: u64,
}

/// Asks what a signal alone can answer.
pub(crate) async fn ask(server: &Server, corpus: &Corpus, signal: Signal) -> Result<Asked, Failure> {
    ask_at(server, corpus, signal, Duration::ZERO).await
}

/// The same with a pause between an answer and the next question.
pub(crate) async fn ask_at(server: &Server, corpus: &Corpus, signal: Signal, pause: Duration) -> Result<Asked, Failure> {
    let mut asker = Asker {
        server,
        client: server.client(),
        pause,
        figures: Map::new(),
        differences: 0,
    };
    match signal {
        Signal::Traces => {
            asker.traces_by_id(corpus).await?;
            asker.searches(corpus).await?;
        }
        Signal::Profiles => {
            asker.span_profiles(corpus).await?;
            asker.trace_profiles(corpus).await?;
        }
        Signal::Push => asker.grafana(corpus).await?,
    }
    Ok(Asked {
        figures: Value::Object(asker.figures),
        differences: asker.differences,
    })
}

impl Asker<'_> {
    /// Every span of the truth is in its trace with its service, name and times; a trace has ten.
    async fn traces_by_id(&mut self, corpus: &Corpus) -> Result<(), Failure> {
        let (cpu_before, mut latencies) = (self.server.cpu_s()?, Latencies::default());
        for truth in corpus.truth() {
            let (answer, latency) = self.get(&format!("/api/v1/traces/{}", truth.trace_id), &[]).await?;
            latencies.push(latency);
            let answer: Value = serde_json::from_str(&answer)?;
            let spans = answer["spans"].as_array().map(Vec::as_slice).unwrap_or_default();
            let found = spans.iter().any(|span| is_span(span, truth));
            self.compare(found && spans.len() == 10, || {
                format!("trace {} lacks span {} or has not 10 spans", truth.trace_id, truth.span_id)
            });
        }
        self.report("trace_by_id", &latencies, cpu_before)
    }

    async fn searches(&mut self, corpus: &Corpus) -> Result<(), Failure> {
        let attribute = |n: usize| format!("{{ span.key-{:02} = \"value-{:03}\" }}", n % 97, n * 31 % 1000);
        self.search("attribute_equals", corpus, attribute).await?;
        let service = |n: usize| format!("{{ resource.service.name = \"svc-{}\" && duration > 200ms }}", n % 10);
        self.search("service_and_duration", corpus, service).await?;
        let both = |n: usize| format!("{{ span.key-{:02} = \"value-{:03}\" && duration > 50ms }}", n % 97, n * 31 % 1000);
        self.search("attribute_and_duration", corpus, both).await
    }

    async fn search(&mut self, name: &str, corpus: &Corpus, query: impl Fn(usize) -> String) -> Result<(), Failure> {
        let (cpu_before, mut latencies) = (self.server.cpu_s()?, Latencies::default());
        let mut matched = 0;
        for n in 0..SEARCHES {
            let mut parameters = vec![("q", query(n)), ("limit", "20".to_owned())];
            parameters.extend(corpus.window());
            let (answer, latency) = self.get("/api/v1/spans", &parameters).await?;
            latencies.push(latency);
            let answer: Value = serde_json::from_str(&answer)?;
            let durations: Vec<u64> = answer["spans"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|span| span["duration_ns"].as_u64())
                .collect();
            self.compare(durations.is_sorted_by(|a, b| a >= b), || {
                format!("{} is not sorted by duration", query(n))
            });
            matched += answer["matched"].as_u64().unwrap_or_default();
        }
        self.compare(matched > 0, || format!("no search of {name} matched a span"));
        self.report(name, &latencies, cpu_before)
    }

    /// The stacks of a span, each with its exact time.
    async fn span_profiles(&mut self, corpus: &Corpus) -> Result<(), Failure> {
        let (cpu_before, mut latencies) = (self.server.cpu_s()?, Latencies::default());
        for truth in corpus.truth() {
            let path = format!("/api/v1/traces/{}/spans/{}/profile", truth.trace_id, truth.span_id);
            let (answer, latency) = self.get(&path, &[("format", "collapsed".to_owned())]).await?;
            latencies.push(latency);
            let expected: BTreeMap<&str, u64> = truth
                .by_stack
                .iter()
                .map(|(stack, count)| (stack.as_str(), count * corpus.period_ns()))
                .collect();
            let found = collapsed(&answer);
            self.compare(found == expected, || {
                format!("span {}: stacks differ: {found:?} for {expected:?}", truth.span_id)
            });
        }
        self.report("span_profile", &latencies, cpu_before)
    }

    async fn trace_profiles(&mut self, corpus: &Corpus) -> Result<(), Failure> {
        let (cpu_before, mut latencies) = (self.server.cpu_s()?, Latencies::default());
        for truth in corpus.truth() {
            let path = format!("/api/v1/traces/{}/profile", truth.trace_id);
            let (answer, latency) = self.get(&path, &[("format", "collapsed".to_owned())]).await?;
            latencies.push(latency);
            // Ten spans a trace, all with as many observations as the one that is known.
            let expected: u64 = 10 * corpus.period_ns() * truth.by_stack.values().sum::<u64>();
            let found: u64 = collapsed(&answer).values().sum();
            self.compare(found == expected, || {
                format!("trace {}: {found} ns for {expected} ns", truth.trace_id)
            });
        }
        self.report("trace_profile", &latencies, cpu_before)
    }

    async fn get(&self, path: &str, parameters: &[(&str, String)]) -> Result<(String, Duration), Failure> {
        if !self.pause.is_zero() {
            tokio::time::sleep(self.pause).await;
        }
        let start = Instant::now();
        let response = self.client.get(self.server.url(path)).query(parameters).send().await?;
        let status = response.status();
        let text = response.text().await?;
        if !status.is_success() {
            return Err(format!("{path} answered {status}: {text}").into());
        }
        Ok((text, start.elapsed()))
    }

    fn compare(&mut self, equal: bool, difference: impl FnOnce() -> String) {
        if equal {
            return;
        }
        if self.differences < DIFFERENCES_TOLD {
            eprintln!("differs: {}", difference());
        }
        self.differences += 1;
    }

    /// Latencies of a question and the server's CPU time for each.
    fn report(&mut self, name: &str, latencies: &Latencies, cpu_before: f64) -> Result<(), Failure> {
        let mut figures = latencies.figures();
        let count = figures["count"].as_f64().unwrap_or(1.0);
        figures["cpu_ms_each"] = json!(((self.server.cpu_s()? - cpu_before) / count * 1e5).round() / 1e2);
        self.figures.insert(name.to_owned(), figures);
        Ok(())
    }
}

fn is_span(span: &Value, truth: &Truth) -> bool {
    span["span_id"] == truth.span_id.as_str()
        && span["service"] == truth.service.as_str()
        && span["name"] == truth.operation.as_str()
        && span["start_unix_nano"] == truth.start_unix_nano.to_string().as_str()
        && span["duration_ns"] == truth.end_unix_nano - truth.start_unix_nano
}

/// Stacks and values of the text format: frames, a space, the value.
fn collapsed(text: &str) -> BTreeMap<&str, u64> {
    let mut stacks = BTreeMap::new();
    for (stack, value) in text.lines().filter_map(|line| line.rsplit_once(' ')) {
        *stacks.entry(stack).or_default() += value.parse::<u64>().unwrap_or_default();
    }
    stacks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_stacks_add_up() {
        assert_eq!(collapsed("a;b 1\na;b 2\na 4\n"), BTreeMap::from([("a;b", 3), ("a", 4)]));
    }
}
