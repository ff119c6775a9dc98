//! `spanflame why`

use clap::Args;

use super::subject::Subject;
use crate::client::answer::{Profile, Trace, TraceSpan};
use crate::client::{Answer, Client, ProfileOf, Scope, Source};
use crate::error::Error;
use crate::render::explanation::{Explanation, Rows};
use crate::session::{Outcome, Session};

/// Explain a trace or a span: where its time went, and in which code
///
/// Shows the trace as a waterfall with time on CPU and samples per span, and for the span that was named, or
/// the most expensive one, the hottest functions with share, sample count and 95 % interval. Below 5 samples
/// there are no percentages, below 20 only an interval. Where there are no samples it says why.
#[derive(Args)]
#[command(after_help = "\
Examples:
  spanflame why 5732450b54c5f9e85941cd3567d0ee56
  spanflame why 5732450b54c5f9e85941cd3567d0ee56/f29bbc09d7f2d757 --scope subtree
  spanflame why 00-5732450b54c5f9e85941cd3567d0ee56-f29bbc09d7f2d757-01      as in a traceparent header
  spanflame why 5732450b54c5f9e85941cd3567d0ee56 --data ./spanflame-data     while no server runs")]
pub(crate) struct Why {
    /// Trace id, trace and span id, traceparent, or an address of the page
    #[arg(value_name = "TRACE[/SPAN]")]
    subject: Subject,
    /// Whose samples; by default the span's own, else the nearest scope that has any
    #[arg(long, value_enum)]
    scope: Option<Scope>,
    /// Profile type, such as cpu or memory:alloc_space:bytes:space:bytes
    #[arg(long = "type", value_name = "TYPE", default_value = "cpu")]
    profile_type: String,
    /// Most spans to show
    #[arg(long, value_name = "COUNT", default_value_t = 40)]
    spans: usize,
    /// Most functions to show
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    functions: usize,
    /// Print the answers of the API as JSON: {"trace", "span_id", "profiles", "page"}
    #[arg(long, help_heading = "Output")]
    json: bool,
    #[command(flatten)]
    source: Source,
}

/// The reason of an empty profile where samples without link ran meanwhile.
const UNLINKED: &str = "samples_without_link";

/// What the server said.
struct Answers {
    trace: Answer<Trace>,
    selected: Option<usize>,
    span_id: Option<String>,
    profiles: Vec<(Scope, Answer<Profile>)>,
    page: String,
}

impl Why {
    pub(crate) fn run(self, session: &mut Session) -> Result<Outcome, Error> {
        let answers = session.wait(async {
            let client = self.source.client().await?;
            self.ask(&client).await
        })?;
        let Some(answers) = answers else {
            session.note(&self.nothing());
            return Ok(Outcome::Nothing);
        };
        if self.json {
            session.print(&[answers.json()])?;
            return Ok(Outcome::Found);
        }
        let explanation = Explanation {
            trace: &answers.trace.value,
            selected: answers.selected,
            profiles: answers.profiles.iter().map(|(scope, answer)| (*scope, &answer.value)).collect(),
            page: &answers.page,
        };
        let rows = Rows {
            spans: self.spans,
            functions: self.functions,
        };
        session.print(&explanation.lines(rows, &session.terminal))?;
        Ok(Outcome::Found)
    }

    async fn ask(&self, client: &Client) -> Result<Option<Answers>, Error> {
        let trace_id = self.subject.trace_id.to_string();
        let Some(trace) = client.trace(&trace_id).await? else {
            return Ok(None);
        };
        let spans = &trace.value.spans;
        let named = self.subject.span_id.map(|id| id.to_string());
        let selected = match &named {
            Some(id) => spans.iter().position(|span| span.span_id == *id),
            None => most_expensive(spans),
        };
        let span_id = named.or_else(|| selected.map(|at| spans[at].span_id.clone()));
        let profiles = self.profiles(client, &trace_id, span_id.as_deref()).await?;
        if profiles.is_empty() {
            return Ok(None);
        }
        let page = match &span_id {
            Some(span_id) => client.page(&format!("/trace/{trace_id}?span={span_id}")),
            None => client.page(&format!("/trace/{trace_id}")),
        };
        Ok(Some(Answers {
            trace,
            selected,
            span_id,
            profiles,
            page,
        }))
    }

    /// The profile of the scope asked for; else of each scope from the narrowest on until one has samples.
    async fn profiles(&self, client: &Client, trace_id: &str, span_id: Option<&str>) -> Result<Vec<(Scope, Answer<Profile>)>, Error> {
        let trace_id = trace_id.to_owned();
        let (of, scopes) = match span_id {
            Some(span_id) => {
                let span_id = span_id.to_owned();
                (
                    ProfileOf::Span { trace_id, span_id },
                    vec![Scope::Span, Scope::Subtree, Scope::Window],
                )
            }
            None => (ProfileOf::Trace { trace_id }, vec![Scope::Trace]),
        };
        let scopes = self.scope.map_or(scopes, |scope| vec![scope]);
        let mut profiles: Vec<(Scope, Answer<Profile>)> = Vec::new();
        for scope in scopes {
            let is_window_useful = || profiles.iter().any(|(_, answer)| answer.value.has_reason(UNLINKED));
            if scope == Scope::Window && self.scope.is_none() && !is_window_useful() {
                continue;
            }
            let query = vec![("scope", scope.as_str().to_owned()), ("type", self.profile_type.clone())];
            let Some(answer) = client.profile(&of, query).await? else {
                return Ok(Vec::new());
            };
            let is_empty = answer.value.samples == 0;
            profiles.push((scope, answer));
            if !is_empty {
                break;
            }
        }
        Ok(profiles)
    }

    fn nothing(&self) -> String {
        let Subject { trace_id, span_id } = self.subject;
        let what = match span_id {
            Some(span_id) => format!("span {span_id} of trace {trace_id}"),
            None => format!("trace {trace_id}"),
        };
        let whose = self
            .source
            .tenant
            .as_ref()
            .map_or_else(String::new, |tenant| format!(" in tenant {tenant}"));
        format!(
            "nothing found: neither a span nor a sample of {what} is stored{whose}; it may not have arrived yet, have expired, or belong to \
             another tenant (--tenant)\nrecent traces: spanflame spans '{{ }}' --order start"
        )
    }
}

impl Answers {
    fn json(&self) -> String {
        let profiles: Vec<&str> = self.profiles.iter().map(|(_, answer)| answer.text()).collect();
        format!(
            "{{\"trace\":{},\"span_id\":{},\"profiles\":[{}],\"page\":{}}}",
            self.trace.text(),
            serde_json::json!(self.span_id),
            profiles.join(","),
            serde_json::json!(self.page),
        )
    }
}

/// The span with the most time on CPU; without samples the one with the most time that no child covers.
fn most_expensive(spans: &[TraceSpan]) -> Option<usize> {
    let cpu = |at: usize| spans[at].cpu().map_or(0, |cpu| cpu.value);
    let own = own_time(spans);
    // Of equals the first: the caller.
    (0..spans.len()).max_by_key(|at| (cpu(*at), own[*at], std::cmp::Reverse(*at)))
}

/// Per span its duration less the time that its children cover, in nanoseconds.
fn own_time(spans: &[TraceSpan]) -> Vec<u64> {
    let mut covered: std::collections::HashMap<&str, Vec<(u64, u64)>> = std::collections::HashMap::new();
    for span in spans {
        if let Some(parent) = &span.parent_span_id {
            covered
                .entry(parent)
                .or_default()
                .push((span.start_unix_nano.0, span.end_unix_nano()));
        }
    }
    let own = |span: &TraceSpan| {
        let (start, end) = (span.start_unix_nano.0, span.end_unix_nano());
        let mut reached = start;
        let mut own = 0;
        // The API lists spans by start, so these are in order.
        for (from, to) in covered.get(span.span_id.as_str()).into_iter().flatten() {
            own += from.clamp(&start, &end).saturating_sub(reached);
            reached = reached.max(*to).min(end);
        }
        own + end.saturating_sub(reached)
    };
    spans.iter().map(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(spans: serde_json::Value) -> Vec<TraceSpan> {
        serde_json::from_value(spans).expect("spans")
    }

    #[test]
    fn without_samples_the_span_that_waits_for_no_child_is_looked_at() {
        let spans = spans(serde_json::json!([
            {"span_id": "a", "start_unix_nano": "0", "duration_ns": 100},
            {"span_id": "b", "parent_span_id": "a", "start_unix_nano": "10", "duration_ns": 60},
            {"span_id": "c", "parent_span_id": "a", "start_unix_nano": "50", "duration_ns": 40},
        ]));
        assert_eq!(own_time(&spans), [20, 60, 40]);
        assert_eq!(most_expensive(&spans), Some(1));
    }

    #[test]
    fn with_samples_the_most_expensive_span_is_looked_at() {
        let cpu = spanflame_model::ProfileType::cpu().to_string();
        let spans = spans(serde_json::json!([
            {"span_id": "a", "start_unix_nano": "0", "duration_ns": 100},
            {"span_id": "b", "start_unix_nano": "10", "duration_ns": 6, "profiles": {cpu: {"samples": 1, "value": 10}}},
        ]));
        assert_eq!(most_expensive(&spans), Some(1));
        assert_eq!(most_expensive(&[]), None);
    }
}
