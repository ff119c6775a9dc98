//! A trace or a span, as people paste it.

use std::str::FromStr;

use spanflame_model::{SpanId, TraceId};

/// A trace, or one span of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) trace_id: TraceId,
    pub(crate) span_id: Option<SpanId>,
}

impl FromStr for Subject {
    type Err = String;

    /// Reads `TRACE`, `TRACE/SPAN`, a W3C `traceparent`, or an address of the page.
    fn from_str(text: &str) -> Result<Subject, String> {
        let text = text.trim();
        let parts: Vec<&str> = text.split('-').collect();
        if let ["00", trace, span, _] = parts[..] {
            return ids(trace, Some(span));
        }
        if let Some((_, path)) = text.split_once("/trace/") {
            let (trace, query) = path.split_once('?').unwrap_or((path, ""));
            let span = query.split('&').find_map(|pair| pair.strip_prefix("span="));
            return ids(trace, span);
        }
        match text.split_once('/') {
            Some((trace, span)) => ids(trace, Some(span)),
            None => ids(text, None),
        }
    }
}

fn ids(trace: &str, span: Option<&str>) -> Result<Subject, String> {
    let trace_id = trace.parse::<TraceId>().map_err(|error| error.to_string())?;
    let span_id = span.map(str::parse::<SpanId>).transpose().map_err(|error| error.to_string())?;
    Ok(Subject { trace_id, span_id })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "5732450b54c5f9e85941cd3567d0ee56";
    const SPAN: &str = "f29bbc09d7f2d757";

    fn check(text: String, has_span: bool) {
        let subject: Subject = text.parse().expect("a subject");
        assert_eq!(subject.trace_id.to_string(), TRACE);
        assert_eq!(subject.span_id.map(|id| id.to_string()), has_span.then(|| SPAN.to_owned()));
    }

    #[test]
    fn ids_are_taken_as_people_paste_them() {
        check(TRACE.to_owned(), false);
        check(TRACE.to_uppercase(), false);
        check(format!("{TRACE}/{SPAN}"), true);
        check(format!("00-{TRACE}-{SPAN}-01"), true);
        check(format!("http://127.0.0.1:4040/trace/{TRACE}"), false);
        check(format!("https://flame.example/x/trace/{TRACE}?tab=flame&span={SPAN}"), true);
    }

    #[test]
    fn what_is_no_id_says_what_was_expected() {
        let error = format!("{TRACE}/xyz").parse::<Subject>().expect_err("no span id");
        assert_eq!(error, "span id is \"xyz\", expected 1 to 16 hex digits that are not all zero");
    }
}
