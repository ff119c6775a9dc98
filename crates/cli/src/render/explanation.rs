//! A trace or span explained: where its time went, which code that was, and how sure that is.

use spanflame_query::stats::PERCENT_SAMPLES_MIN;

use super::functions::{path_lines, top_lines};
use super::quantity;
use super::terminal::{Ink, Terminal, visible};
use super::waterfall::Waterfall;
use crate::client::Scope;
use crate::client::answer::{Evidence, Profile, Reason, Trace, TraceSpan};

/// Frames of the hottest path that are shown, from the leaf.
const PATH_FRAMES_MAX: usize = 12;

/// What is known about a trace and the span that deserves the first look.
pub(crate) struct Explanation<'a> {
    pub(crate) trace: &'a Trace,
    /// The span that was asked for, or the most expensive one; an index into the trace's spans.
    pub(crate) selected: Option<usize>,
    /// Profiles of the selected span, or of the trace, narrowest scope first. All but the last are empty.
    pub(crate) profiles: Vec<(Scope, &'a Profile)>,
    /// Where the page shows the same.
    pub(crate) page: &'a str,
}

/// How much is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    pub(crate) spans: usize,
    pub(crate) functions: usize,
}

impl Explanation<'_> {
    /// Everything, from the header to the page's address.
    pub(crate) fn lines(&self, rows: Rows, terminal: &Terminal) -> Vec<String> {
        let mut lines = self.header(terminal);
        if !self.trace.spans.is_empty() {
            lines.push(String::new());
            lines.extend(Waterfall::new(self.trace).lines(self.selected, rows.spans, terminal));
            let busy = if terminal.blocks { "\u{2588}" } else { "#" };
            let legend = format!("  {busy} on CPU, as much of the bar as of the time; when within the span is not shown");
            lines.push(terminal.paint(Ink::Faint, &legend));
        }
        lines.push(String::new());
        lines.extend(self.subject(terminal));
        let mut told: &[Reason] = &[];
        for (scope, profile) in &self.profiles {
            let reasons = profile.evidence.reasons.as_slice();
            // A wider scope that is empty for the same reasons says nothing new.
            if profile.samples == 0 && !reasons.is_empty() && reasons == told {
                continue;
            }
            told = reasons;
            lines.extend(profile_lines(*scope, profile, rows.functions, terminal));
        }
        lines.push(String::new());
        lines.push(format!("page: {}", self.page));
        lines
    }

    fn header(&self, terminal: &Terminal) -> Vec<String> {
        let trace = self.trace;
        let root = trace
            .spans
            .iter()
            .find(|span| span.parent_span_id.is_none())
            .or(trace.spans.first());
        let name = root.map_or("no span of it was received".to_owned(), |span| {
            format!("{} {}", visible(&span.service), visible(&span.name))
        });
        let mut lines = vec![terminal.paint(Ink::Strong, &format!("trace {}  {name}", trace.trace_id))];
        if trace.spans.is_empty() {
            return lines;
        }
        let waterfall = Waterfall::new(trace);
        let errors = trace.spans.iter().filter(|span| span.status == "error").count() as u64;
        let measured = trace.spans.iter().filter_map(TraceSpan::cpu).chain(trace.unassigned_cpu());
        let (samples, cpu_ns) = measured.fold((0_u64, 0_i64), |(samples, ns), cpu| {
            (samples + cpu.samples, ns.saturating_add(cpu.value))
        });
        let mut facts = format!(
            "{}   {}   {}, {}",
            quantity::instant(waterfall.start_unix_nano()),
            quantity::duration(waterfall.duration_ns()),
            quantity::counted(trace.services.len() as u64, "service"),
            quantity::counted(trace.spans.len() as u64, "span"),
        );
        if errors > 0 {
            facts.push_str(&terminal.paint(Ink::Failed, &format!(", {}", quantity::counted(errors, "error"))));
        }
        match samples {
            0 => facts.push_str("   no CPU samples"),
            _ => facts.push_str(&format!(
                "   CPU {} ({})",
                quantity::duration(cpu_ns),
                quantity::counted(samples, "sample")
            )),
        }
        lines.push(facts);
        if trace.complete == Some(false) {
            lines.push("incomplete: not every span of this trace was received".to_owned());
        }
        lines
    }

    fn subject(&self, terminal: &Terminal) -> Vec<String> {
        let Some(span) = self.selected.map(|at| &self.trace.spans[at]) else {
            return Vec::new();
        };
        let title = format!(
            "span {}  {} {}  {}{}",
            span.span_id,
            visible(&span.service),
            visible(&span.name),
            quantity::duration(span.duration_ns),
            if span.kind.is_empty() || span.kind == "unspecified" {
                String::new()
            } else {
                format!("  {}", span.kind)
            },
        );
        let mut lines = vec![terminal.paint(Ink::Strong, &title)];
        if span.status == "error" {
            let message = span.status_message.as_deref().map(visible).unwrap_or_default();
            let text = if message.is_empty() {
                "failed".to_owned()
            } else {
                format!("failed: {message}")
            };
            lines.push(terminal.paint(Ink::Failed, &text));
        }
        lines
    }
}

/// One profile: its size, its hottest functions, what it rests on; or why it is empty.
pub(crate) fn profile_lines(scope: Scope, profile: &Profile, functions: usize, terminal: &Terminal) -> Vec<String> {
    let mut lines = Vec::new();
    let what = measured(profile);
    if profile.samples == 0 {
        lines.push(format!("no {what} samples {}", scope.of_what()));
        lines.extend(reason_lines(&profile.evidence.reasons));
        return lines;
    }
    let total = quantity::value(profile.total, &profile.unit);
    lines.push(format!(
        "{what} {}: {total} from {}",
        scope.of_what(),
        quantity::counted(profile.samples, "sample")
    ));
    lines.push(String::new());
    lines.extend(top_lines(profile, functions, terminal));
    if profile.samples < PERCENT_SAMPLES_MIN {
        let note = format!(
            "few: below {PERCENT_SAMPLES_MIN} samples a share would mislead; look at more requests of this kind with `spanflame spans`"
        );
        lines.push(terminal.paint(Ink::Faint, &note));
    }
    lines.push(String::new());
    lines.extend(path_lines(profile, PATH_FRAMES_MAX, terminal));
    lines.push(evidence_line(profile.samples, &profile.evidence));
    lines.extend(reason_lines(&profile.evidence.reasons));
    lines
}

/// What the profile measures, in a word: `CPU`, else the sample type.
fn measured(profile: &Profile) -> String {
    let parts: Vec<&str> = profile.profile_type.split(':').collect();
    match parts[..] {
        ["process_cpu", "cpu", ..] => "CPU".to_owned(),
        [name, kind, ..] if name != kind => format!("{name} {kind}"),
        _ => profile.profile_type.clone(),
    }
}

/// `evidence: 171 samples, one each 10.0 ms, linked to the span: 171`
pub(crate) fn evidence_line(samples: u64, evidence: &Evidence) -> String {
    let mut parts = vec![quantity::counted(samples, "sample")];
    if let Some(period) = evidence.period_ns.filter(|period| *period > 0) {
        parts.push(format!("one each {}", quantity::duration(period)));
    }
    for (precision, count) in evidence.precision.iter().filter(|(_, count)| **count > 0) {
        let how = match precision.as_str() {
            "span" => "linked to the span",
            "local_root" => "labelled with the local root, so they hold its descendants' time too",
            "trace" => "linked to the trace only",
            "window" => "matched by time and place",
            other => other,
        };
        parts.push(format!("{how}: {}", quantity::count(*count as i64)));
    }
    if let Some(place) = &evidence.window_match {
        parts.push(format!("matched on the {place}"));
    }
    if let Some(covered) = evidence.covered_ns.filter(|covered| *covered > 0) {
        parts.push(format!("profiles cover {}", quantity::duration(covered)));
    }
    if evidence.prorated > 0 {
        let count = quantity::count(evidence.prorated as i64);
        parts.push(format!(
            "{count} of them without a time of their own, counted by the overlap of their profile"
        ));
    }
    if evidence.ambiguous > 0 {
        parts.push(format!(
            "{} more name several spans and are counted for none",
            quantity::count(evidence.ambiguous as i64)
        ));
    }
    if evidence.unresolved_frames > 0 {
        parts.push(quantity::counted(evidence.unresolved_frames, "function") + " without a name");
    }
    format!("evidence: {}", parts.join(", "))
}

/// Why there is nothing, or less than it seems, and what to do about it.
pub(crate) fn reason_lines(reasons: &[Reason]) -> Vec<String> {
    let mut lines = Vec::new();
    for reason in reasons {
        let text = if reason.text.is_empty() { &reason.code } else { &reason.text };
        lines.push(format!("why: {}", visible(text)));
        if let Some(hint) = &reason.hint {
            lines.push(format!("     {}", visible(hint)));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::DeserializeOwned;
    use std::path::{Path, PathBuf};

    fn folder(case: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/cli").join(case)
    }

    fn read<T: DeserializeOwned>(path: &Path) -> T {
        let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Explains `trace.json` and the `SCOPE_profile.json` of `scopes`, and compares with `why.txt`; `UPDATE_GOLDEN=1` rewrites it.
    fn check(case: &str, selected: Option<usize>, scopes: &[Scope], terminal: &Terminal) {
        let folder = folder(case);
        let trace: Trace = read(&folder.join("trace.json"));
        let profiles: Vec<Profile> = scopes
            .iter()
            .map(|scope| read(&folder.join(format!("{}_profile.json", scope.as_str()))))
            .collect();
        let explanation = Explanation {
            trace: &trace,
            selected,
            profiles: scopes.iter().copied().zip(&profiles).collect(),
            page: "http://127.0.0.1:4040/trace/t",
        };
        let text = explanation.lines(Rows { spans: 40, functions: 10 }, terminal).join("\n") + "\n";
        let golden = folder.join("why.txt");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&golden, &text).expect("the golden file can be written");
        }
        let expected = std::fs::read_to_string(&golden).unwrap_or_default();
        assert!(text == expected, "{case}\n--- expected\n{expected}--- found\n{text}");
    }

    #[test]
    fn a_slow_span_names_its_functions_with_intervals() {
        check("slow-request", Some(1), &[Scope::Span], &Terminal::PLAIN);
    }

    #[test]
    fn few_samples_get_no_percentages() {
        check("few-samples", Some(0), &[Scope::Span], &Terminal::PLAIN);
    }

    #[test]
    fn a_span_without_samples_says_why_and_looks_further() {
        check("no-samples", Some(0), &[Scope::Span, Scope::Subtree], &Terminal::PLAIN);
    }

    #[test]
    fn samples_of_a_trace_whose_spans_never_came_are_shown() {
        check(
            "no-spans",
            None,
            &[Scope::Trace],
            &Terminal {
                width: 80,
                cuts: true,
                ..Terminal::PLAIN
            },
        );
    }
}
