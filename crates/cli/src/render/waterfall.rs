//! A trace as lines: one a span, nested as it was called, with a bar where it ran.
//!
//! ```text
//!   frontend GET /checkout   |==============================|   1.92 s   40.0 ms    4
//! >   cart price_cart        |   ##########################=|   1.71 s    1.65 s  165
//! ```
//! The filled part of a bar is the span's share of time on CPU; where in the span it fell is not shown.

use std::collections::HashMap;

use super::quantity;
use super::terminal::{Ink, Terminal, clip_right, visible};
use crate::client::answer::{Trace, TraceSpan};

/// Deeper spans are not indented further.
const INDENT_MAX: usize = 16;
/// Least and most columns of a name.
const NAME_WIDTH: (usize, usize) = (20, 48);
/// Columns right of the bar: duration, CPU, samples and gaps.
const NUMBERS_WIDTH: usize = 2 + 11 + 2 + 11 + 2 + 7;

/// A trace laid out for printing.
pub(crate) struct Waterfall<'a> {
    trace: &'a Trace,
    /// Span and depth, in the order of printing.
    order: Vec<(usize, usize)>,
    start: u64,
    duration: u64,
}

impl<'a> Waterfall<'a> {
    /// Lays a trace out: roots by start, children under their parent by start. A span whose parent is missing
    /// is a root; so is one of a cycle, which a faulty client can send.
    pub(crate) fn new(trace: &'a Trace) -> Waterfall<'a> {
        let start = trace.spans.iter().map(|span| span.start_unix_nano.0).min().unwrap_or(0);
        let end = trace.spans.iter().map(TraceSpan::end_unix_nano).max().unwrap_or(0);
        Waterfall {
            trace,
            order: nested(trace),
            start,
            duration: end.saturating_sub(start).max(1),
        }
    }

    /// When the first span began, in nanoseconds since the epoch.
    pub(crate) fn start_unix_nano(&self) -> u64 {
        self.start
    }

    /// From the start of the first span to the end of the last, in nanoseconds.
    pub(crate) fn duration_ns(&self) -> i64 {
        i64::try_from(self.duration).unwrap_or(i64::MAX)
    }

    /// The lines, heading first. At most `rows` spans: the selected one, the longest and most expensive, and
    /// the callers of these; the rest is counted.
    pub(crate) fn lines(&self, selected: Option<usize>, rows: usize, terminal: &Terminal) -> Vec<String> {
        let shown = self.shown(selected, rows);
        let order = self.order.iter().filter(|(span, _)| shown[*span]);
        let rows: Vec<(usize, String)> = order
            .map(|(span, depth)| (*span, label(&self.trace.spans[*span], *depth)))
            .collect();
        let longest = rows.iter().map(|(_, label)| label.chars().count()).max().unwrap_or(0);
        let name_width = longest.clamp(NAME_WIDTH.0, NAME_WIDTH.1).min(terminal.width / 3);
        let bar_width = terminal.width.saturating_sub(2 + name_width + 3 + NUMBERS_WIDTH).max(10);
        let scale = format!("0 .. {}", quantity::duration(self.duration_ns()));
        let columns = format!("{:>11}  {:>11}  {:>7}", "duration", "CPU", "samples");
        let heading = format!("  {:<name_width$} |{scale:<bar_width$}|  {columns}", "span");
        let mut lines = vec![terminal.paint(Ink::Faint, &heading)];
        for (span, label) in &rows {
            let is_selected = selected == Some(*span);
            let span = &self.trace.spans[*span];
            let name = painted(
                span,
                &format!("{:<name_width$}", clip_right(label, name_width)),
                is_selected,
                terminal,
            );
            let (mark, bar) = (if is_selected { ">" } else { " " }, self.bar(span, bar_width, terminal));
            lines.push(format!("{mark} {name} |{bar}|  {}", numbers(span)));
        }
        let left_out = shown.iter().filter(|shown| !**shown).count();
        if left_out > 0 {
            lines.push(terminal.paint(Ink::Faint, &format!("  {}", quantity::counted(left_out as u64, "more span"))));
        }
        lines
    }

    fn bar(&self, span: &TraceSpan, width: usize, terminal: &Terminal) -> String {
        let column = |ns: u64| (ns as f64 / self.duration as f64 * width as f64) as usize;
        let from = column(span.start_unix_nano.0 - self.start).min(width - 1);
        let to = column(span.end_unix_nano() - self.start).clamp(from + 1, width);
        let length = to - from;
        let cpu_ns = span.cpu().map_or(0, |cpu| cpu.value).max(0);
        let part = cpu_ns as f64 / span.duration_ns.max(1) as f64;
        let filled = match cpu_ns {
            0 => 0,
            _ => ((part * length as f64).round() as usize).clamp(1, length),
        };
        let (busy, rest) = if terminal.blocks { ("\u{2588}", "\u{2591}") } else { ("#", "=") };
        let busy = terminal.paint(Ink::Cpu, &busy.repeat(filled));
        format!(
            "{}{busy}{}{}",
            " ".repeat(from),
            rest.repeat(length - filled),
            " ".repeat(width - to)
        )
    }

    fn shown(&self, selected: Option<usize>, rows: usize) -> Vec<bool> {
        let spans = &self.trace.spans;
        let by_id = by_id(self.trace);
        let mut wanted: Vec<usize> = (0..spans.len()).collect();
        let cpu = |at: usize| spans[at].cpu().map_or(0, |cpu| cpu.value);
        wanted.sort_by_key(|at| (selected != Some(*at), std::cmp::Reverse(cpu(*at).max(spans[*at].duration_ns)), *at));
        let mut shown = vec![false; spans.len()];
        let mut count = 0;
        for mut at in wanted {
            while count < rows && !shown[at] {
                shown[at] = true;
                count += 1;
                match parent(spans, &by_id, at) {
                    Some(parent) => at = parent,
                    None => break,
                }
            }
        }
        shown
    }
}

fn painted(span: &TraceSpan, name: &str, is_selected: bool, terminal: &Terminal) -> String {
    match () {
        () if span.status == "error" => terminal.paint(Ink::Failed, name),
        () if is_selected => terminal.paint(Ink::Strong, name),
        () => name.to_owned(),
    }
}

fn numbers(span: &TraceSpan) -> String {
    let cpu = span.cpu().filter(|cpu| cpu.samples > 0);
    format!(
        "{:>11}  {:>11}  {:>7}",
        quantity::duration(span.duration_ns),
        cpu.map_or("-".to_owned(), |cpu| quantity::duration(cpu.value)),
        cpu.map_or("-".to_owned(), |cpu| quantity::count(cpu.samples as i64)),
    )
}

fn label(span: &TraceSpan, depth: usize) -> String {
    let indent = "  ".repeat(depth.min(INDENT_MAX));
    let (service, name) = (visible(&span.service), visible(&span.name));
    format!("{indent}{service} {name}")
}

/// The first span of each id: ids can repeat where a client shares them between two sides of a call.
fn by_id(trace: &Trace) -> HashMap<&str, usize> {
    let mut by_id = HashMap::new();
    for (at, span) in trace.spans.iter().enumerate() {
        by_id.entry(span.span_id.as_str()).or_insert(at);
    }
    by_id
}

fn parent(spans: &[TraceSpan], by_id: &HashMap<&str, usize>, at: usize) -> Option<usize> {
    let id = spans[at].parent_span_id.as_deref()?;
    by_id.get(id).copied().filter(|parent| *parent != at)
}

fn nested(trace: &Trace) -> Vec<(usize, usize)> {
    let spans = &trace.spans;
    let by_id = by_id(trace);
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); spans.len()];
    let mut roots = Vec::new();
    for at in 0..spans.len() {
        match parent(spans, &by_id, at) {
            Some(parent) => children[parent].push(at),
            None => roots.push(at),
        }
    }
    let mut order = Vec::with_capacity(spans.len());
    let mut seen = vec![false; spans.len()];
    // The second half of the chain reaches only members of cycles: no root leads to them.
    for root in roots.into_iter().chain(0..spans.len()) {
        let mut waiting = vec![(root, 0)];
        while let Some((at, depth)) = waiting.pop() {
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            order.push((at, depth));
            waiting.extend(children[at].iter().rev().map(|child| (*child, depth + 1)));
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(spans: &[(&str, &str, u64, i64)]) -> Trace {
        let spans: Vec<serde_json::Value> = spans
            .iter()
            .map(|(id, parent, start, duration)| {
                let mut span = serde_json::json!({"span_id": id, "service": "s", "name": id, "start_unix_nano": start.to_string(), "duration_ns": duration});
                if !parent.is_empty() {
                    span["parent_span_id"] = (*parent).into();
                }
                span
            })
            .collect();
        serde_json::from_value(serde_json::json!({"trace_id": "t", "spans": spans})).expect("a trace")
    }

    fn check_order(spans: &[(&str, &str, u64, i64)], expected: &[(usize, usize)]) {
        assert_eq!(nested(&trace(spans)), expected);
    }

    #[test]
    fn children_lie_under_their_parent() {
        check_order(
            &[("a", "", 0, 9), ("b", "a", 1, 2), ("c", "b", 1, 1), ("d", "a", 5, 1)],
            &[(0, 0), (1, 1), (2, 2), (3, 1)],
        );
    }

    #[test]
    fn a_span_without_its_parent_is_a_root() {
        check_order(&[("a", "gone", 0, 9), ("b", "a", 1, 2)], &[(0, 0), (1, 1)]);
    }

    #[test]
    fn a_cycle_is_shown_once() {
        check_order(&[("a", "b", 0, 9), ("b", "a", 1, 2), ("c", "c", 3, 1)], &[(2, 0), (0, 0), (1, 1)]);
    }

    #[test]
    fn a_long_trace_keeps_the_selected_span_and_its_callers() {
        let trace = trace(&[("a", "", 0, 9), ("b", "a", 1, 8), ("c", "b", 2, 1), ("d", "a", 5, 1)]);
        let lines = Waterfall::new(&trace).lines(Some(2), 3, &Terminal::PLAIN);
        assert_eq!(lines.len(), 5, "{lines:?}");
        assert!(lines[3].starts_with(">     s c"), "{lines:?}");
        assert!(lines[4].contains("1 more span"), "{lines:?}");
    }

    #[test]
    fn a_bar_never_leaves_its_frame() {
        let trace = trace(&[("a", "", 0, 10), ("b", "a", 10, 0), ("c", "a", 3, i64::MAX / 1000)]);
        let lines = Waterfall::new(&trace).lines(None, 10, &Terminal::PLAIN);
        let widths: Vec<usize> = lines.iter().map(|line| line.chars().count()).collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{lines:?}");
    }
}
