//! The answers of the API as this program reads them.
//!
//! Only the fields that are shown; what a newer server adds is ignored. Absent means unknown.

use serde::Deserialize;
use std::collections::BTreeMap;

use spanflame_model::ProfileType;

/// A number of nanoseconds since the epoch, which JSON carries as text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct UnixNano(pub(crate) u64);

impl TryFrom<String> for UnixNano {
    type Error = std::num::ParseIntError;

    fn try_from(text: String) -> Result<UnixNano, Self::Error> {
        text.parse().map(UnixNano)
    }
}

/// `GET /api/v1/traces/{trace_id}`
#[derive(Debug, Deserialize)]
pub(crate) struct Trace {
    pub(crate) trace_id: String,
    #[serde(default)]
    pub(crate) services: Vec<String>,
    /// Whether every parent that a span names is here.
    pub(crate) complete: Option<bool>,
    /// By start, then span id.
    pub(crate) spans: Vec<TraceSpan>,
    /// Of samples that name the trace and no span that was received, by profile type.
    #[serde(default)]
    unassigned_profiles: BTreeMap<String, Measured>,
}

impl Trace {
    /// CPU nanoseconds that belong to no received span.
    pub(crate) fn unassigned_cpu(&self) -> Option<Measured> {
        self.unassigned_profiles.get(&ProfileType::cpu().to_string()).copied()
    }
}

/// A span of a trace.
#[derive(Debug, Deserialize)]
pub(crate) struct TraceSpan {
    pub(crate) span_id: String,
    pub(crate) parent_span_id: Option<String>,
    #[serde(default)]
    pub(crate) service: String,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) status: String,
    pub(crate) status_message: Option<String>,
    pub(crate) start_unix_nano: UnixNano,
    #[serde(default)]
    pub(crate) duration_ns: i64,
    /// By profile type.
    #[serde(default)]
    pub(crate) profiles: BTreeMap<String, Measured>,
}

/// What a span has of one profile type.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(crate) struct Measured {
    pub(crate) samples: u64,
    pub(crate) value: i64,
}

impl TraceSpan {
    /// CPU nanoseconds and the samples they rest on.
    pub(crate) fn cpu(&self) -> Option<Measured> {
        self.profiles.get(&ProfileType::cpu().to_string()).copied()
    }

    /// When it ended.
    pub(crate) fn end_unix_nano(&self) -> u64 {
        self.start_unix_nano.0.saturating_add_signed(self.duration_ns.max(0))
    }
}

/// `GET .../profile`
#[derive(Debug, Deserialize)]
pub(crate) struct Profile {
    #[serde(rename = "type")]
    pub(crate) profile_type: String,
    pub(crate) unit: String,
    pub(crate) total: i64,
    pub(crate) samples: u64,
    #[serde(default)]
    pub(crate) frames: Vec<FrameNames>,
    #[serde(default)]
    pub(crate) tree: Tree,
    #[serde(default)]
    pub(crate) evidence: Evidence,
}

impl Profile {
    /// Whether it says that it is empty, or less than it seems, for this reason.
    pub(crate) fn has_reason(&self, code: &str) -> bool {
        self.evidence.reasons.iter().any(|reason| reason.code == code)
    }

    /// What is wrong with the tree, if it is no tree: an index that leads nowhere must not end in a panic.
    pub(super) fn fault(&self) -> Option<String> {
        let Tree {
            frame,
            parent,
            own,
            total,
            samples,
        } = &self.tree;
        let nodes = frame.len();
        if [parent.len(), own.len(), total.len(), samples.len()]
            .iter()
            .any(|length| *length != nodes)
        {
            return Some(format!("the arrays of the tree differ in length, the first has {nodes} nodes"));
        }
        if let Some(frame) = frame.iter().find(|frame| **frame >= self.frames.len()) {
            return Some(format!("the tree names frame {frame} of {}", self.frames.len()));
        }
        let late = parent.iter().enumerate().skip(1).find(|(node, parent)| **parent >= *node);
        late.map(|(node, parent)| format!("node {node} of the tree has the later node {parent} as its parent"))
    }
}

/// A frame of a profile.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct FrameNames {
    #[serde(default)]
    pub(crate) function: String,
    pub(crate) file: Option<String>,
    pub(crate) line: Option<i64>,
}

/// Parallel arrays, parents before children; node 0 is the root.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Tree {
    /// Index into the profile's frames.
    pub(crate) frame: Vec<usize>,
    /// The caller; 0 of the root itself.
    pub(crate) parent: Vec<usize>,
    #[serde(rename = "self")]
    pub(crate) own: Vec<i64>,
    pub(crate) total: Vec<i64>,
    /// Observations in the node and below.
    pub(crate) samples: Vec<u64>,
}

/// What an answer rests on.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Evidence {
    pub(crate) period_ns: Option<i64>,
    #[serde(default)]
    pub(crate) precision: BTreeMap<String, u64>,
    #[serde(default)]
    pub(crate) ambiguous: u64,
    #[serde(default)]
    pub(crate) unresolved_frames: u64,
    pub(crate) covered_ns: Option<i64>,
    pub(crate) window_match: Option<String>,
    /// Samples without times, of profiles that only overlap the range.
    #[serde(default)]
    pub(crate) prorated: u64,
    #[serde(default)]
    pub(crate) reasons: Vec<Reason>,
}

/// Why an answer is empty or less than it seems.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Reason {
    pub(crate) code: String,
    #[serde(default)]
    pub(crate) text: String,
    pub(crate) hint: Option<String>,
}

/// `GET /api/v1/spans`
#[derive(Debug, Deserialize)]
pub(crate) struct Spans {
    pub(crate) spans: Vec<FoundSpan>,
    pub(crate) matched: Option<u64>,
    pub(crate) next_page: Option<String>,
}

/// A span that matched.
#[derive(Debug, Deserialize)]
pub(crate) struct FoundSpan {
    pub(crate) trace_id: String,
    pub(crate) span_id: String,
    #[serde(default)]
    pub(crate) service: String,
    #[serde(default)]
    pub(crate) name: String,
    pub(crate) start_unix_nano: UnixNano,
    #[serde(default)]
    pub(crate) duration_ns: i64,
    #[serde(default)]
    pub(crate) status: String,
    pub(crate) cpu_ns: Option<i64>,
    pub(crate) samples: Option<u64>,
}

/// `GET /api/v1/services`
#[derive(Debug, Deserialize)]
pub(crate) struct Services {
    /// By name.
    pub(crate) services: Vec<Service>,
}

/// A service with what is stored of it in the time asked about.
#[derive(Debug, Deserialize)]
pub(crate) struct Service {
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) spans: u64,
    #[serde(default)]
    pub(crate) requests: u64,
    #[serde(default)]
    pub(crate) errors: u64,
    #[serde(default)]
    pub(crate) samples: u64,
    /// Samples that name a span.
    #[serde(default)]
    pub(crate) linked_samples: u64,
    #[serde(default)]
    pub(crate) cpu_ns: i64,
}

/// `GET /api/v1/profile-types`
#[derive(Debug, Deserialize)]
pub(crate) struct ProfileTypes {
    /// By name.
    pub(crate) profile_types: Vec<ProfileTypeInfo>,
}

/// A profile type with who sends it.
#[derive(Debug, Deserialize)]
pub(crate) struct ProfileTypeInfo {
    #[serde(rename = "type")]
    pub(crate) profile_type: String,
    #[serde(default)]
    pub(crate) services: Vec<String>,
    #[serde(default)]
    pub(crate) samples: u64,
}

/// `POST /api/v1/ingest`
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Ingested {
    #[serde(default)]
    pub(crate) accepted: u64,
    #[serde(default)]
    pub(crate) duplicates: u64,
    #[serde(default)]
    pub(crate) rejected: Vec<Rejected>,
}

/// A part of an upload that could not be kept.
#[derive(Debug, Deserialize)]
pub(crate) struct Rejected {
    #[serde(default)]
    pub(crate) reason: String,
    /// What was left out: samples, links, ...
    pub(crate) subject: Option<String>,
    pub(crate) count: Option<u64>,
}

/// The body of every refusal.
#[derive(Debug, Deserialize)]
pub(crate) struct Refusal {
    pub(crate) error: RefusalText,
}

/// Why a request was refused.
#[derive(Debug, Deserialize)]
pub(crate) struct RefusalText {
    #[serde(default)]
    pub(crate) message: String,
    pub(crate) request_id: Option<String>,
    pub(crate) line: Option<usize>,
    pub(crate) column: Option<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_fault(tree: &str, expected: Option<&str>) {
        let text = format!(
            r#"{{"type": "a:b:c:d:e", "unit": "count", "total": 0, "samples": 0, "frames": [{{"function": "root"}}], "tree": {tree}}}"#
        );
        let profile: Profile = serde_json::from_str(&text).expect("an answer");
        assert_eq!(profile.fault().as_deref(), expected);
    }

    #[test]
    fn a_tree_that_is_none_is_refused() {
        check_fault(r#"{"frame": [0], "parent": [0], "self": [0], "total": [0], "samples": [0]}"#, None);
        check_fault(
            r#"{"frame": [0, 0], "parent": [0, 1], "self": [0, 0], "total": [0, 0], "samples": [0, 0]}"#,
            Some("node 1 of the tree has the later node 1 as its parent"),
        );
        check_fault(
            r#"{"frame": [1], "parent": [0], "self": [0], "total": [0], "samples": [0]}"#,
            Some("the tree names frame 1 of 1"),
        );
        check_fault(
            r#"{"frame": [0], "parent": [], "self": [0], "total": [0], "samples": [0]}"#,
            Some("the arrays of the tree differ in length, the first has 1 nodes"),
        );
    }

    #[test]
    fn times_are_text() {
        let time: UnixNano = serde_json::from_str("\"1796076315462194529\"").expect("a time");
        assert_eq!(time.0, 1_796_076_315_462_194_529);
        assert!(serde_json::from_str::<UnixNano>("\"x\"").is_err());
    }
}
