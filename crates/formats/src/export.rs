//! What encoders are given.

use std::sync::Arc;

use spanflame_model::{
    Attributes, Batch, Label, Profile, ProfileInfo, ProfileType, Resource, Sample, StackId, StackSet, Timestamp, ValueType,
};

use crate::links;

/// Stacks with values, ready to be written in any profile format.
#[derive(Clone, Debug)]
pub struct Export {
    /// The full type of the first value; its period is that of the whole export.
    pub profile_type: ProfileType,
    /// How far apart samples lie, in units of `profile_type.period`; 0 if unknown.
    pub period: i64,
    /// When the data begins.
    pub start: Timestamp,
    /// How long it covers, in nanoseconds.
    pub duration_ns: u64,
    /// The stacks and frames of all rows.
    pub stacks: StackSet,
    /// One line each in the output, in this order.
    pub rows: Vec<ExportRow>,
    /// What the values of every row are. Never empty.
    pub types: Vec<ValueType>,
    /// What belongs to the whole profile: pprof comments and the like, under the names OpenTelemetry gives them.
    pub attributes: Attributes,
}

/// One stack with its values.
#[derive(Clone, Debug)]
pub struct ExportRow {
    /// The stack, leaf first.
    pub stack: StackId,
    /// Parallel to [`Export::types`].
    pub values: Vec<i64>,
    /// Labels, for formats that have them. A link becomes labels by [`links::to_labels`].
    pub labels: Vec<Label>,
}

impl Export {
    /// One profile as it came, each sample a row, its observations added up and its link as labels.
    pub fn of_profile(profile: &Profile, stacks: &StackSet) -> Export {
        let info = &profile.info;
        let rows = profile.samples.iter().map(|sample| ExportRow {
            stack: sample.stack,
            values: row_values(&sample.values, sample.times.len(), info.types.len()),
            labels: links::labels_of(sample),
        });
        Export {
            profile_type: info.profile_type(0),
            period: info.period,
            start: info.start,
            duration_ns: info.duration_ns,
            rows: rows.collect(),
            stacks: stacks.clone(),
            types: info.types.clone(),
            attributes: info.attributes.clone(),
        }
    }

    /// The export as a batch of one profile, for formats that have the whole model.
    pub(crate) fn to_batch(&self) -> Batch {
        let info = ProfileInfo {
            profile_id: None,
            name: self.profile_type.name.clone(),
            types: self.types.clone(),
            period_type: self.profile_type.period.clone(),
            period: self.period,
            start: self.start,
            duration_ns: self.duration_ns,
            resource: Arc::new(Resource::new(Attributes::new())),
            scope: Arc::default(),
            attributes: self.attributes.clone(),
        };
        let samples = self.rows.iter().map(|row| Sample {
            values: row.values.clone(),
            labels: row.labels.clone(),
            ..Sample::new(row.stack)
        });
        Batch {
            profiles: vec![Profile {
                samples: samples.collect(),
                info: Arc::new(info),
            }],
            stacks: self.stacks.clone(),
            spans: Vec::new(),
        }
    }

    /// Every profile of a batch, each on its own.
    pub fn of_batch(batch: &Batch) -> Vec<Export> {
        batch
            .profiles
            .iter()
            .map(|profile| Export::of_profile(profile, &batch.stacks))
            .collect()
    }
}

fn row_values(values: &[i64], times: usize, types: usize) -> Vec<i64> {
    match (values, types) {
        ([], _) => vec![times as i64],
        (values, 1) => vec![values.iter().fold(0, |sum, value| sum.saturating_add(*value))],
        (values, _) => values.to_vec(),
    }
}
