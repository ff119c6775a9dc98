//! Names, types, selectors and times in Pyroscope's notation.
//!
//! A label is a resource attribute or an attribute of the profile. `service.name` is `service_name`; other names that
//! Prometheus would not allow are given with `_`, unless the client says that it takes any text
//! (`Accept: */*;allow-utf8-labelnames=true`). Selectors find either spelling. What tells single processes or uploads
//! apart is a column here and no label to choose from: it is not listed, though selectors know it.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use http::{HeaderMap, header};
use spanflame_model::{Fingerprint, ProfileType, TimeRange, Timestamp};
use spanflame_proto::pyroscope as wire;
use spanflame_query::{CatalogRequest, LabelSelector, ProfileSeries, prometheus_name};

use crate::admission::read_tenants;
use crate::failure::Failure;
use crate::ingest::now;

const SERVICE: &str = "service.name";
const SERVICE_NAME: &str = "service_name";

/// Attributes whose values are as many as processes, uploads or machines.
const IDENTITIES: [&str; 14] = [
    "__session_id__",
    "container.id",
    "host.id",
    "k8s.container.restart_count",
    "k8s.pod.uid",
    "process.command",
    "process.command_args",
    "process.command_line",
    "process.creation.time",
    "process.parent_pid",
    "process.pid",
    "process.vpid",
    "service.instance.id",
    "thread.id",
];

/// The names that tell the types of profiles apart.
pub(super) const TYPE_NAMES: [&str; 6] = [
    "__name__",
    "__period_type__",
    "__period_unit__",
    "__profile_type__",
    "__type__",
    "__unit__",
];

const NANOS_PER_MS: i64 = 1_000_000;

/// The range of a question about labels that names none.
const RANGE_DEFAULT_NS: u64 = 3600 * 1_000_000_000;

/// How names are written for a client.
#[derive(Clone, Copy)]
pub(super) struct Names {
    any_text: bool,
}

impl Names {
    pub(super) fn of(headers: &HeaderMap) -> Names {
        let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let parameters = |value: &str| {
            let mut parameters = value.split([';', ',']).map(str::trim);
            parameters.any(|parameter| parameter.eq_ignore_ascii_case("allow-utf8-labelnames=true"))
        };
        Names {
            any_text: accepted.into_iter().any(parameters),
        }
    }

    fn write(self, name: &str) -> String {
        match name {
            SERVICE => SERVICE_NAME.to_owned(),
            name if self.any_text => name.to_owned(),
            name => prometheus_name(name),
        }
    }

    /// Whether a label is called `name`, in either spelling.
    fn is(self, label: &str, name: &str) -> bool {
        label == name || self.write(label) == name || prometheus_name(label) == name
    }
}

/// A selector, under the name of the field that holds it.
pub(super) fn selector(field: &str, text: &str) -> Result<LabelSelector, Failure> {
    LabelSelector::parse(text).map_err(|error| Failure {
        field: Some(field.to_owned()),
        ..Failure::from(error)
    })
}

/// A profile type of five parts.
pub(super) fn profile_type(text: &str) -> Result<ProfileType, Failure> {
    ProfileType::from_str(text).map_err(|error| Failure::invalid("profile_typeID", error.to_string()))
}

fn time(field: &str, ms: i64) -> Result<Timestamp, Failure> {
    let nanos = ms.checked_mul(NANOS_PER_MS).and_then(Timestamp::from_unix_nanos_signed);
    nanos.ok_or_else(|| Failure::invalid(field, format!("{field} is {ms}, expected milliseconds since the Unix epoch")))
}

/// The range of a question about data. Both ends are inside, as clients expect.
pub(super) fn range(start_ms: i64, end_ms: i64) -> Result<TimeRange, Failure> {
    if start_ms == 0 && end_ms == 0 {
        let message = "start and end are missing, expected a range in milliseconds since the Unix epoch";
        return Err(Failure::invalid("start", message));
    }
    let (start, end) = (time("start", start_ms)?, time("end", end_ms)?);
    TimeRange::new(start, end.saturating_add(NANOS_PER_MS as u64)).ok_or_else(|| {
        Failure::invalid(
            "start",
            format!("start is {start_ms} and end {end_ms}, expected start not after end"),
        )
    })
}

/// A question about labels: without a range, about the last hour.
pub(super) fn catalog(headers: &HeaderMap, start_ms: i64, end_ms: i64) -> Result<CatalogRequest, Failure> {
    let range = match (start_ms, end_ms) {
        (0, 0) => TimeRange::lasting(now().saturating_sub(RANGE_DEFAULT_NS), RANGE_DEFAULT_NS),
        (start, end) => range(start, end)?,
    };
    Ok(CatalogRequest {
        tenants: read_tenants(headers)?,
        range,
    })
}

/// A type with its parts.
pub(super) fn write_type(profile_type: &ProfileType) -> wire::ProfileType {
    let ProfileType { name, sample, period } = profile_type;
    wire::ProfileType {
        id: profile_type.to_string(),
        name: name.clone(),
        sample_type: sample.kind.clone(),
        sample_unit: sample.unit.clone(),
        period_type: period.kind.clone(),
        period_unit: period.unit.clone(),
    }
}

/// Every type, in order.
pub(super) fn types(series: &[ProfileSeries]) -> BTreeSet<&ProfileType> {
    series.iter().flat_map(|series| &series.types).collect()
}

/// Names to choose from, in order.
pub(super) fn names(series: &[ProfileSeries], names: Names) -> Vec<String> {
    let labels = series.iter().flat_map(|series| &series.labels).map(|(name, _)| name);
    let mut listed: BTreeSet<String> = labels.filter(|name| !is_identity(name)).map(|name| names.write(name)).collect();
    if !series.is_empty() {
        listed.extend(TYPE_NAMES.map(str::to_owned));
    }
    listed.into_iter().collect()
}

/// Values of the label called `name`, in order.
pub(super) fn values(series: &[ProfileSeries], name: &str, names: Names) -> Vec<String> {
    let mut values = BTreeSet::new();
    for series in series {
        match TYPE_NAMES.contains(&name) {
            true => values.extend(series.types.iter().map(|profile_type| of_type(profile_type, name))),
            false => {
                let labels = series.labels.iter().filter(|(label, _)| names.is(label, name));
                values.extend(labels.map(|(_, value)| value.clone()));
            }
        }
    }
    values.into_iter().collect()
}

/// Label sets restricted to `wanted`, all listed ones where that is empty; each once, in order.
pub(super) fn series(series: &[ProfileSeries], wanted: &[String], names: Names) -> Vec<wire::Labels> {
    let mut sets: BTreeSet<Vec<(String, String)>> = BTreeSet::new();
    for series in series {
        for profile_type in &series.types {
            sets.insert(label_set(series, profile_type, wanted, names));
            if !wanted.is_empty() && !wanted.iter().any(|name| TYPE_NAMES.contains(&name.as_str())) {
                break;
            }
        }
    }
    let filled = sets.into_iter().filter(|labels| !labels.is_empty());
    filled.map(|labels| wire::Labels { labels: pairs(labels) }).collect()
}

fn label_set(series: &ProfileSeries, profile_type: &ProfileType, wanted: &[String], names: Names) -> Vec<(String, String)> {
    let mut set = BTreeMap::new();
    for (label, value) in &series.labels {
        match wanted.is_empty() {
            true if is_identity(label) => {}
            true => drop(set.insert(names.write(label), value.clone())),
            false => {
                let asked = wanted.iter().find(|name| names.is(label, name));
                set.extend(asked.map(|name| (name.clone(), value.clone())));
            }
        }
    }
    let of_type = TYPE_NAMES
        .into_iter()
        .filter(|name| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name));
    set.extend(of_type.map(|name| (name.to_owned(), self::of_type(profile_type, name))));
    set.into_iter().collect()
}

/// A profile's identity, in the shape of a UUID that clients expect.
pub(super) fn write_profile_id(id: Fingerprint) -> String {
    let hex = format!("{:032x}", id.0);
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    parts.join("-")
}

/// The profile of a UUID.
pub(super) fn profile_id(text: &str) -> Result<Fingerprint, Failure> {
    let hex: String = text.chars().filter(|c| *c != '-').collect();
    let id = u128::from_str_radix(&hex, 16).ok().filter(|_| hex.len() == 32);
    let wrong = || {
        let text: String = text.chars().take(80).collect();
        Failure::invalid("profile_id_selector", format!("profile id is {text:?}, expected a UUID"))
    };
    id.map(Fingerprint).ok_or_else(wrong)
}

/// Labels on the wire.
pub(super) fn pairs(labels: impl IntoIterator<Item = (String, String)>) -> Vec<wire::LabelPair> {
    let pair = |(name, value)| wire::LabelPair { name, value };
    labels.into_iter().map(pair).collect()
}

fn is_identity(name: &str) -> bool {
    IDENTITIES.contains(&name)
}

/// What a type says under one of [`TYPE_NAMES`].
pub(super) fn of_type(profile_type: &ProfileType, name: &str) -> String {
    let ProfileType {
        name: of_profile,
        sample,
        period,
    } = profile_type;
    match name {
        "__name__" => of_profile.clone(),
        "__type__" => sample.kind.clone(),
        "__unit__" => sample.unit.clone(),
        "__period_type__" => period.kind.clone(),
        "__period_unit__" => period.unit.clone(),
        _ => profile_type.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use spanflame_model::ValueType;

    use super::*;

    fn one() -> Vec<ProfileSeries> {
        let label = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let heap = |kind: &str| ProfileType {
            name: "memory".to_owned(),
            sample: ValueType::new(kind, "bytes"),
            period: ValueType::new("space", "bytes"),
        };
        vec![ProfileSeries {
            labels: vec![
                label("k8s.pod.name", "cart-1"),
                label("process.pid", "71"),
                label("service.name", "cart"),
            ],
            types: vec![heap("alloc_space"), heap("inuse_space")],
        }]
    }

    fn names_for(accept: &str) -> Names {
        Names::of(&HeaderMap::from_iter([(header::ACCEPT, accept.parse().expect("a header"))]))
    }

    fn check_series(wanted: &[&str], expected: &[&str]) {
        let wanted: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
        let sets = series(&one(), &wanted, names_for("*/*"));
        let text = |set: &wire::Labels| {
            let pairs: Vec<String> = set.labels.iter().map(|pair| format!("{}={}", pair.name, pair.value)).collect();
            pairs.join(" ")
        };
        assert_eq!(sets.iter().map(text).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn names_are_prometheus_names_unless_the_client_takes_any_text() {
        let listed = |accept: &str| {
            names(&one(), names_for(accept))
                .into_iter()
                .skip(TYPE_NAMES.len())
                .collect::<Vec<_>>()
        };
        assert_eq!(listed("*/*"), ["k8s_pod_name", "service_name"]);
        assert_eq!(listed("*/*;allow-utf8-labelnames=true"), ["k8s.pod.name", "service_name"]);
        assert_eq!(values(&one(), "k8s_pod_name", names_for("*/*")), ["cart-1"]);
        assert_eq!(values(&one(), "__type__", names_for("*/*")), ["alloc_space", "inuse_space"]);
    }

    #[test]
    fn what_tells_single_processes_apart_makes_no_series() {
        check_series(&["service_name"], &["service_name=cart"]);
        check_series(
            &["service_name", "__type__"],
            &["__type__=alloc_space service_name=cart", "__type__=inuse_space service_name=cart"],
        );
        check_series(&["nothing"], &[]);
        let all = series(&one(), &[], names_for("*/*"));
        assert_eq!(all.len(), 2);
        assert!(all.iter().flat_map(|set| &set.labels).all(|pair| pair.value != "71"));
    }

    #[test]
    fn ranges_are_milliseconds_and_hold_both_ends() {
        let range = range(5, 5).expect("an instant");
        assert_eq!((range.start().unix_nanos(), range.duration_ns()), (5_000_000, 1_000_000));
        let message = |start, end| super::range(start, end).expect_err("wrong").message;
        assert_eq!(message(6, 5), "start is 6 and end 5, expected start not after end");
        assert!(message(0, 0).contains("missing"), "{}", message(0, 0));
        assert_eq!(message(-1, 5), "start is -1, expected milliseconds since the Unix epoch");
        assert!(message(1_790_000_000_000_000_000, 5).contains("expected milliseconds"));
    }
}
