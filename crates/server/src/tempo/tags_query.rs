//! The legacy form of a search: tags in logfmt, and bounds on the duration of the trace.
//!
//! A tag matches where its value contains the text, in any case of letters. It is translated to TraceQL, so that both
//! forms have one meaning: all conditions hold on one span.

use std::fmt::Write;

use crate::failure::Failure;
use crate::notation::traceql_string;

/// Most tags of one search.
const TAGS_MAX: usize = 100;

/// What the legacy form asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TagsQuery {
    /// Name and part of the value.
    pub(super) tags: Vec<(String, String)>,
    /// Of the trace.
    pub(super) duration_min_ns: Option<u64>,
    /// Of the trace.
    pub(super) duration_max_ns: Option<u64>,
}

impl TagsQuery {
    /// Reads `key=value key2="a value"`.
    pub(super) fn parse(text: &str) -> Result<TagsQuery, Failure> {
        let mut query = TagsQuery::default();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let malformed = || Failure::invalid("tags", format!("tags are {text:?}, expected key=value pairs separated by spaces"));
            let (key, after) = rest.split_once('=').ok_or_else(malformed)?;
            let (value, after) = value(after).ok_or_else(malformed)?;
            if key.is_empty() || key.contains(char::is_whitespace) || query.tags.len() == TAGS_MAX {
                return Err(malformed());
            }
            query.tags.push((key.to_owned(), value));
            rest = after.trim_start();
        }
        Ok(query)
    }

    /// Whether nothing is asked.
    pub(super) fn is_empty(&self) -> bool {
        *self == TagsQuery::default()
    }

    /// The same in TraceQL.
    pub(super) fn to_traceql(&self) -> String {
        let mut terms: Vec<String> = self.tags.iter().map(|(key, value)| term(key, value)).collect();
        terms.extend(self.duration_min_ns.map(|ns| format!("traceDuration >= {ns}ns")));
        terms.extend(self.duration_max_ns.map(|ns| format!("traceDuration <= {ns}ns")));
        format!("{{ {} }}", terms.join(" && "))
    }
}

/// One value, bare or quoted, and what follows it.
fn value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(char::is_whitespace).unwrap_or(text.len());
        return Some((text[..end].to_owned(), &text[end..]));
    };
    let (mut value, mut escaped) = (String::new(), false);
    for (at, c) in quoted.char_indices() {
        match c {
            c if escaped => {
                value.push(c);
                escaped = false;
            }
            '\\' => escaped = true,
            '"' => return Some((value, &quoted[at + 1..])),
            c => value.push(c),
        }
    }
    None
}

fn term(key: &str, value: &str) -> String {
    let contains = format!("=~ {}", traceql_string(&format!("(?is).*{}.*", regex_literal(value))));
    match key {
        "name" | "rootName" | "rootServiceName" | "statusMessage" => format!("{key} {contains}"),
        "root.name" => format!("rootName {contains}"),
        "root.service.name" => format!("rootServiceName {contains}"),
        "status.code" if ["error", "ok", "unset"].contains(&value) => format!("status = {value}"),
        "error" if value == "true" => "(status = error || .error = true || .error =~ \"(?i)true\")".to_owned(),
        key => {
            let field = field(key);
            // Numbers and booleans have no text to contain it: they are equal or not.
            match value.parse::<f64>() {
                Ok(number) if number.is_finite() => format!("({field} {contains} || {field} = {number})"),
                _ if ["true", "false"].contains(&value) => format!("({field} {contains} || {field} = {value})"),
                _ => format!("{field} {contains}"),
            }
        }
    }
}

/// The attribute of a key in any scope.
fn field(key: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-_/".contains(c);
    match !key.is_empty() && key.chars().all(plain) {
        true => format!(".{key}"),
        false => format!(".{}", traceql_string(key)),
    }
}

/// A regular expression that matches exactly this text.
fn regex_literal(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        if c.is_ascii_punctuation() {
            escaped.push('\\');
        }
        let _ = write!(escaped, "{c}");
    }
    escaped
}

#[cfg(test)]
mod tests {
    use spanflame_query::traceql::Query;

    use super::*;

    fn check(text: &str, expected: &str) {
        let query = TagsQuery::parse(text).expect(text).to_traceql();
        assert_eq!(query, expected);
        Query::parse(&query).unwrap_or_else(|error| panic!("{query}: {error}"));
    }

    #[test]
    fn tags_are_conditions_on_one_span() {
        check("", "{  }");
        check(
            "service.name=cart name=\"GET /a b\"",
            r#"{ .service.name =~ "(?is).*cart.*" && name =~ "(?is).*GET \\/a b.*" }"#,
        );
        check(
            "http.status_code=200",
            r#"{ (.http.status_code =~ "(?is).*200.*" || .http.status_code = 200) }"#,
        );
        check("a=\"x\\\"y\"", r#"{ .a =~ "(?is).*x\\\"y.*" }"#);
        check("error=true", "{ (status = error || .error = true || .error =~ \"(?i)true\") }");
    }

    #[test]
    fn durations_are_of_the_trace() {
        let query = TagsQuery {
            duration_min_ns: Some(5),
            duration_max_ns: Some(7_000_000),
            ..TagsQuery::default()
        };
        assert_eq!(query.to_traceql(), "{ traceDuration >= 5ns && traceDuration <= 7000000ns }");
    }

    #[test]
    fn what_is_no_logfmt_is_refused() {
        for text in ["a", "=x", "a=\"x", "a b=c"] {
            assert!(TagsQuery::parse(text).is_err(), "{text}");
        }
    }
}
