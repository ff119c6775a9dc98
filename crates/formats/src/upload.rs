//! What whoever uploads a file says about it.

use std::sync::Arc;

use spanflame_model::{Attributes, ProfileInfo, Resource, Scope, Timestamp, ValueType};

/// What whoever uploads a file says about it: what the file itself cannot say, or says wrongly.
#[derive(Clone, Debug, Default)]
pub struct Upload {
    /// Who made the profile: resource attributes or series labels.
    pub resource: Attributes,
    /// Which profiler made it.
    pub scope: Scope,
    /// What the sender calls the profile; empty if it says nothing.
    pub name: String,
    /// When it began. Wins over the file's own time: Node's profiler writes the end of the window there.
    pub time: Option<Timestamp>,
    /// How long it lasted, in nanoseconds. Wins over the file's own.
    pub duration_ns: Option<u64>,
    /// What the values are, for formats that do not say: collapsed, perf script. Default `samples/count`.
    pub value_type: Option<ValueType>,
    /// Between what two samples lie, for formats that do not say.
    pub period_type: Option<ValueType>,
    /// How far apart samples lie, in units of `period_type`, for formats that do not say; 0 if unknown.
    pub period: i64,
}

impl Upload {
    /// What all samples of a file share that says nothing about itself.
    pub(crate) fn text_info(&self) -> Arc<ProfileInfo> {
        Arc::new(ProfileInfo {
            profile_id: None,
            name: self.name.clone(),
            types: vec![self.value_type.clone().unwrap_or_else(|| ValueType::new("samples", "count"))],
            period_type: self.period_type.clone().unwrap_or_default(),
            period: self.period,
            start: self.time.unwrap_or_default(),
            duration_ns: self.duration_ns.unwrap_or(0),
            resource: Arc::new(Resource::new(self.resource.clone())),
            scope: Arc::new(self.scope.clone()),
            attributes: Attributes::new(),
        })
    }
}
