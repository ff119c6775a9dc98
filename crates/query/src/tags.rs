//! Conditions on values that may be anywhere on a span: Jaeger's tags.
//!
//! A tag is a key and the text of a value. It holds if the span, its resource, its scope, one of its events or one of
//! its links has the key with a value of that text, or if it is one of the tags in which Jaeger writes what
//! OpenTelemetry has fields for (`span.kind`, `error`, `otel.scope.name`, ...).

use std::fmt::Write;

use spanflame_model::{Attributes, Span, StatusCode, Value};

/// Tags that must all be on one span.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tags(Vec<(String, String)>);

impl Tags {
    /// Key and text of value.
    pub fn new(tags: Vec<(String, String)>) -> Tags {
        Tags(tags)
    }

    /// Whether nothing is asked.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all of them are on `span`.
    pub fn are_on(&self, span: &Span) -> bool {
        self.0.iter().all(|(key, text)| is_on(span, key, text))
    }
}

/// A value as a tag of text: integers and doubles in decimal, `true` or `false`, bytes in hex, lists and maps as
/// JSON-like text.
pub fn text_of(value: &Value) -> String {
    match value {
        Value::Str(text) => text.clone(),
        Value::Int(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Bool(value) => value.to_string(),
        Value::Bytes(bytes) => bytes.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        }),
        Value::Array(values) => {
            let parts: Vec<String> = values.iter().map(quoted).collect();
            format!("[{}]", parts.join(","))
        }
        Value::Map(pairs) => {
            let parts: Vec<String> = pairs.iter().map(|(key, value)| format!("{key:?}:{}", quoted(value))).collect();
            format!("{{{}}}", parts.join(","))
        }
    }
}

fn quoted(value: &Value) -> String {
    match value {
        Value::Str(text) => format!("{text:?}"),
        other => text_of(other),
    }
}

fn is_on(span: &Span, key: &str, text: &str) -> bool {
    let has = |attributes: &Attributes| attributes.get(key).is_some_and(|value| is_text(value, text));
    let of_field = match key {
        "span.kind" => span.kind.as_str() == text,
        "error" => (span.status == StatusCode::Error) == (text == "true") && ["true", "false"].contains(&text),
        "otel.status_code" => span.status != StatusCode::Unset && span.status.as_str().eq_ignore_ascii_case(text),
        "otel.status_description" => !text.is_empty() && span.status_message == text,
        "otel.scope.name" | "otel.library.name" => !text.is_empty() && span.scope.name == text,
        "otel.scope.version" | "otel.library.version" => !text.is_empty() && span.scope.version == text,
        "w3c.tracestate" => !text.is_empty() && span.trace_state == text,
        "service.name" => span.resource.service() == text,
        _ => false,
    };
    of_field
        || has(&span.attributes)
        || has(span.resource.attributes())
        || has(&span.scope.attributes)
        || span
            .events
            .iter()
            .any(|event| has(&event.attributes) || (key == "event" && event.name == text))
        || span.links.iter().any(|link| has(&link.attributes))
}

/// Whether a value reads like `text`: numbers by value, of lists any element.
fn is_text(value: &Value, text: &str) -> bool {
    match value {
        Value::Str(value) => value == text,
        Value::Int(number) => text.parse() == Ok(*number),
        Value::Double(number) => text.parse() == Ok(*number),
        Value::Array(values) if values.iter().any(|value| is_text(value, text)) => true,
        other => text_of(other) == text,
    }
}

#[cfg(test)]
mod tests {
    use spanflame_model::SpanKind;
    use spanflame_testkit::{SpanBuilder, resource};

    use super::*;

    fn check(span: &Span, tags: &[(&str, &str)], expected: bool) {
        let tags = Tags::new(tags.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect());
        assert_eq!(tags.are_on(span), expected, "{tags:?}");
    }

    #[test]
    fn tags_are_found_anywhere_on_one_span() {
        let span = SpanBuilder::new(1, 1, "a")
            .resource(&resource("a", &[("host", "h1")]))
            .kind(SpanKind::Server)
            .status(StatusCode::Error)
            .attribute("n", Value::Int(123))
            .attribute("x", Value::Double(72.5))
            .attribute("list", Value::Array(vec!["p".into(), "q".into()]))
            .build();
        check(&span, &[], true);
        check(&span, &[("n", "123"), ("x", "72.5"), ("host", "h1")], true);
        check(&span, &[("n", "0123"), ("x", "72.50")], true);
        check(&span, &[("n", "124")], false);
        check(&span, &[("host", "h1"), ("absent", "1")], false);
        check(
            &span,
            &[("span.kind", "server"), ("error", "true"), ("otel.status_code", "ERROR")],
            true,
        );
        check(&span, &[("error", "false")], false);
        check(&span, &[("list", "q")], true);
        check(&span, &[("list", "[\"p\",\"q\"]")], true);
    }
}
