//! Label selectors in the manner of PromQL: `{service.name="cart", region=~"eu-.*"}`.
//!
//! Braces may be left out, names may contain dots or be quoted, regular expressions are anchored at both ends.
//! A label that is absent is the empty string, as in Prometheus. `service_name` is `service.name`, which is
//! always there. A name that no label has is that of the label which Prometheus would call so: `k8s_pod_name` is
//! `k8s.pod.name`.
//!
//! Names like `__profile_type__` and `__type__` are about one type of a profile and not about the profile:
//! [`LabelSelector::selects`] leaves them to [`LabelSelector::selects_type`].

use std::sync::Arc;

use regex::Regex;
use spanflame_model::{ProfileInfo, ProfileType, Value};

use crate::Error;

/// Conditions on labels, joined by "and". Without conditions it selects everything.
#[derive(Clone, Debug, Default)]
pub struct LabelSelector {
    matchers: Vec<Matcher>,
}

#[derive(Clone, Debug)]
struct Matcher {
    name: String,
    test: Test,
}

#[derive(Clone, Debug)]
enum Test {
    Equal(String),
    NotEqual(String),
    Matches(Regex),
    MatchesNot(Regex),
}

/// The most conditions in one selector.
const MATCHERS_MAX: usize = 64;
/// The longest text of a selector, in bytes.
const BYTES_MAX: usize = 16 << 10;
/// The most memory a compiled regular expression may take, in bytes.
pub(crate) const REGEX_BYTES_MAX: usize = 1 << 20;

impl LabelSelector {
    /// Reads a selector; empty text and `{}` select everything.
    pub fn parse(text: &str) -> Result<LabelSelector, Error> {
        if text.len() > BYTES_MAX {
            return Err(invalid(format!("selector has {} bytes, expected at most {BYTES_MAX}", text.len())));
        }
        let mut cursor = Cursor { text, at: 0 };
        cursor.skip_space();
        let braced = cursor.eat("{");
        let mut matchers = Vec::new();
        loop {
            cursor.skip_space();
            if cursor.rest().is_empty() || cursor.rest().starts_with('}') {
                break;
            }
            if matchers.len() == MATCHERS_MAX {
                return Err(invalid(format!("selector has more than {MATCHERS_MAX} conditions")));
            }
            matchers.push(cursor.matcher()?);
            cursor.skip_space();
            if !cursor.eat(",") {
                break;
            }
        }
        cursor.skip_space();
        if braced && !cursor.eat("}") {
            return Err(cursor.error("`,` or `}`"));
        }
        cursor.skip_space();
        match cursor.rest().is_empty() {
            true => Ok(LabelSelector { matchers }),
            false => Err(cursor.error("the end")),
        }
    }

    /// Everything of one service.
    pub fn service(name: &str) -> LabelSelector {
        LabelSelector {
            matchers: vec![Matcher {
                name: SERVICE.to_owned(),
                test: Test::Equal(name.to_owned()),
            }],
        }
    }

    /// The one service it asks for, if it asks for exactly one.
    pub fn services(&self) -> Option<Vec<String>> {
        self.matchers.iter().find_map(|matcher| match &matcher.test {
            Test::Equal(value) if matcher.name == SERVICE => Some(vec![value.clone()]),
            _ => None,
        })
    }

    /// Whether a profile's labels meet every condition.
    pub fn selects(&self, info: &ProfileInfo) -> bool {
        let mut of_profile = self.matchers.iter().filter(|matcher| !TYPE_LABELS.contains(&matcher.name.as_str()));
        of_profile.all(|matcher| matcher.test.passes(&label(info, &matcher.name).unwrap_or_default()))
    }

    /// Whether a profile type meets every condition on types.
    pub fn selects_type(&self, profile_type: &ProfileType) -> bool {
        self.matchers.iter().all(|matcher| {
            let value = type_label(profile_type, &matcher.name);
            value.is_none_or(|value| matcher.test.passes(&value))
        })
    }
}

impl Test {
    fn passes(&self, value: &str) -> bool {
        match self {
            Test::Equal(wanted) => value == wanted,
            Test::NotEqual(unwanted) => value != unwanted,
            Test::Matches(regex) => regex.is_match(value),
            Test::MatchesNot(regex) => !regex.is_match(value),
        }
    }
}

/// Labels that tell the types of a profile apart.
const TYPE_LABELS: [&str; 6] = [
    "__name__",
    "__profile_type__",
    "__type__",
    "__unit__",
    "__period_type__",
    "__period_unit__",
];

/// What a profile type says under one of the names that begin with two underscores.
pub(crate) fn type_label(profile_type: &ProfileType, name: &str) -> Option<String> {
    let ProfileType {
        name: of_profile,
        sample,
        period,
    } = profile_type;
    Some(match name {
        "__name__" => of_profile.clone(),
        "__profile_type__" => profile_type.to_string(),
        "__type__" => sample.kind.clone(),
        "__unit__" => sample.unit.clone(),
        "__period_type__" => period.kind.clone(),
        "__period_unit__" => period.unit.clone(),
        _ => return None,
    })
}

/// The name that Prometheus would give a label: everything but ASCII letters, digits and `_` is `_`.
pub fn prometheus_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = name.chars().map(plain).collect();
    match name.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("_{name}"),
        false => name,
    }
}

/// The name under which the service is known.
pub(crate) const SERVICE: &str = "service.name";
/// Pyroscope's name for it.
pub(crate) const SERVICE_ALIAS: &str = "service_name";

/// The value of a profile's label: of its resource, else of the profile itself.
pub(crate) fn label(info: &ProfileInfo, name: &str) -> Option<String> {
    if matches!(name, SERVICE | SERVICE_ALIAS) {
        return Some(info.resource.service().to_owned());
    }
    let exact = info.resource.attributes().get(name).or_else(|| info.attributes.get(name));
    label_text(exact.or_else(|| by_prometheus_name(info, name))?)
}

fn by_prometheus_name<'a>(info: &'a ProfileInfo, name: &str) -> Option<&'a Value> {
    if !name.contains('_') {
        return None;
    }
    let mut labels = info.resource.attributes().iter().chain(info.attributes.iter());
    labels.find_map(|(known, value)| (prometheus_name(known) == name).then_some(value))
}

/// A scalar as label text; `None` for lists, maps and bytes, which are no labels.
pub(crate) fn label_text(value: &Value) -> Option<String> {
    match value {
        Value::Str(text) => Some(text.clone()),
        Value::Int(number) => Some(number.to_string()),
        Value::Double(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Bytes(_) | Value::Array(_) | Value::Map(_) => None,
    }
}

/// A regular expression that must match the whole text, within a limit of memory.
pub(crate) fn anchored(pattern: &str) -> Result<Regex, regex::Error> {
    regex::RegexBuilder::new(&format!("^(?s:{pattern})$"))
        .size_limit(REGEX_BYTES_MAX)
        .build()
}

fn invalid(message: String) -> Error {
    Error::Invalid { field: "q", message }
}

struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    fn error(&self, expected: &str) -> Error {
        let found: String = self.rest().chars().take(20).collect();
        let column = self.text[..self.at].chars().count() + 1;
        invalid(format!("selector has {found:?} in column {column}, expected {expected}"))
    }

    fn matcher(&mut self) -> Result<Matcher, Error> {
        let name = self.name()?;
        self.skip_space();
        let operator = ["=~", "!~", "!=", "="].into_iter().find(|operator| self.eat(operator));
        let Some(operator) = operator else {
            return Err(self.error("one of = != =~ !~"));
        };
        self.skip_space();
        let value = self.quoted()?;
        let compiled = || anchored(&value).map_err(|error| invalid(format!("regular expression {value:?} is invalid: {error}")));
        let test = match operator {
            "=~" => Test::Matches(compiled()?),
            "!~" => Test::MatchesNot(compiled()?),
            "!=" => Test::NotEqual(value),
            _ => Test::Equal(value),
        };
        Ok(Matcher { name, test })
    }

    fn name(&mut self) -> Result<String, Error> {
        let name = match self.rest().starts_with(['"', '`', '\'']) {
            true => self.quoted()?,
            false => {
                let is_part = |c: char| c.is_alphanumeric() || "_.-:/".contains(c);
                let length = self.rest().find(|c| !is_part(c)).unwrap_or(self.rest().len());
                let name = self.rest()[..length].to_owned();
                self.at += length;
                name
            }
        };
        match name.as_str() {
            "" => Err(self.error("the name of a label")),
            SERVICE_ALIAS => Ok(SERVICE.to_owned()),
            _ => Ok(name),
        }
    }

    fn quoted(&mut self) -> Result<String, Error> {
        let mut chars = self.rest().char_indices();
        let quote = match chars.next() {
            Some((_, quote @ ('"' | '\'' | '`'))) => quote,
            _ => return Err(self.error("text in quotes")),
        };
        let mut text = String::new();
        while let Some((at, c)) = chars.next() {
            match c {
                _ if c == quote => {
                    self.at += at + c.len_utf8();
                    return Ok(text);
                }
                '\\' if quote != '`' => match chars.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, 'r')) => text.push('\r'),
                    Some((_, escaped @ ('\\' | '"' | '\''))) => text.push(escaped),
                    _ => return Err(self.error("one of the escapes \\n \\t \\r \\\\ \\\" \\'")),
                },
                _ => text.push(c),
            }
        }
        Err(self.error("a closing quote"))
    }
}

/// A selector that decides once for each profile and not once for each sample.
pub(crate) struct Remembering<'a> {
    selector: &'a LabelSelector,
    recent: Option<(Arc<ProfileInfo>, bool)>,
}

impl LabelSelector {
    pub(crate) fn remembering(&self) -> Remembering<'_> {
        Remembering {
            selector: self,
            recent: None,
        }
    }
}

impl Remembering<'_> {
    pub(crate) fn selects(&mut self, info: &Arc<ProfileInfo>) -> bool {
        if let Some((recent, selects)) = &self.recent
            && Arc::ptr_eq(recent, info)
        {
            return *selects;
        }
        let selects = self.selector.selects(info);
        self.recent = Some((info.clone(), selects));
        selects
    }
}

#[cfg(test)]
mod tests;
