//! Samples as they were sent, collected for formats that keep them.
//!
//! Equal samples (stack, link, thread, labels) become one row. All values are kept where the profiles agree on
//! their types, so that pprof in is pprof out; the wanted value is added where nobody sent it as such.

use std::collections::HashMap;

use spanflame_model::{Hasher, Label, Link, ProfileInfo, Sample, TimeRange, ValueType};
use spanflame_store::StoredSample;

use crate::Error;
use crate::measure::{FRACTION_BITS, Measure, Reading, Recent, TypeSelector};
use crate::profile::{Row, Rows};

/// The most rows of one export.
pub(crate) const ROWS_MAX: usize = 2_000_000;

/// One growing export.
pub(crate) struct RowCollector {
    selector: TypeSelector,
    recent: Recent,
    range: Option<TimeRange>,
    shape: Option<Shape>,
    is_mixed: bool,
    wanted: Option<ValueType>,
    rows: HashMap<u128, Collected>,
    overflow: bool,
}

#[derive(PartialEq)]
struct Shape {
    types: Vec<ValueType>,
    period_type: ValueType,
    period: i64,
}

struct Collected {
    row: Row,
    /// In units of 2^-32, as is `wanted`.
    sent: Vec<i128>,
    wanted: i128,
}

impl RowCollector {
    pub(crate) fn new(selector: TypeSelector, range: Option<TimeRange>) -> RowCollector {
        RowCollector {
            selector,
            recent: Recent::default(),
            range,
            shape: None,
            is_mixed: false,
            wanted: None,
            rows: HashMap::new(),
            overflow: false,
        }
    }

    /// Adds a sample that has a value of the wanted type.
    pub(crate) fn add(&mut self, stored: &StoredSample) {
        let (info, sample) = (&stored.info, &stored.sample);
        let (Some(measure), is_new) = self.recent.measure(&self.selector, info) else {
            return;
        };
        let Some(wanted) = measure.read(info, sample, self.range) else {
            return;
        };
        self.wanted.get_or_insert_with(|| measure.profile_type.sample.clone());
        if is_new {
            self.note_shape(info);
        }
        let key = key(sample);
        if self.rows.len() >= ROWS_MAX && !self.rows.contains_key(&key) {
            self.overflow = true;
            return;
        }
        let collected = self.rows.entry(key).or_insert_with(|| Collected::new(sample, info.types.len()));
        collected.wanted += wanted.value;
        if collected.sent.len() == info.types.len() {
            for (index, sum) in collected.sent.iter_mut().enumerate() {
                *sum += Measure::read_sent(index, info, sample, self.range).map_or(0, |Reading { value, .. }| value);
            }
        }
    }

    /// The rows, by stack and then by what tells them apart.
    pub(crate) fn finish(self) -> Result<Rows, Error> {
        if self.overflow {
            return Err(Error::TooLarge {
                message: format!("export has more than {ROWS_MAX} different samples, expected a shorter range or a narrower selection"),
            });
        }
        let wanted_type = self.wanted.unwrap_or_default();
        let shape = self.shape.filter(|_| !self.is_mixed);
        let mut types = shape.as_ref().map_or(Vec::new(), |shape| shape.types.clone());
        let is_sent = types.contains(&wanted_type);
        if !is_sent {
            types.push(wanted_type);
        }
        let keep_sent = shape.is_some();
        let mut rows: Vec<(u128, Row)> = self
            .rows
            .into_iter()
            .map(|(key, c)| (key, c.into_row(keep_sent, is_sent)))
            .collect();
        rows.sort_unstable_by_key(|(key, row)| (row.stack, *key));
        let (period_type, period) = shape.map_or_else(Default::default, |shape| (shape.period_type, shape.period));
        Ok(Rows {
            types,
            period_type,
            period,
            rows: rows.into_iter().map(|(_, row)| row).collect(),
        })
    }

    fn note_shape(&mut self, info: &ProfileInfo) {
        match &self.shape {
            None => {
                self.shape = Some(Shape {
                    types: info.types.clone(),
                    period_type: info.period_type.clone(),
                    period: info.period,
                })
            }
            Some(known) => {
                self.is_mixed |= known.types != info.types || known.period_type != info.period_type || known.period != info.period;
            }
        }
    }
}

impl Collected {
    fn new(sample: &Sample, types: usize) -> Collected {
        Collected {
            row: Row {
                stack: sample.stack,
                values: Vec::new(),
                link: sample.link.clone(),
                thread_id: sample.thread_id,
                thread_name: sample.thread_name.clone(),
                pid: sample.pid,
                labels: sample.labels.clone(),
            },
            sent: vec![0; types],
            wanted: 0,
        }
    }

    fn into_row(mut self, keep_sent: bool, is_sent: bool) -> Row {
        let round = |value: i128| ((value + (1 << (FRACTION_BITS - 1))) >> FRACTION_BITS).clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        if keep_sent {
            self.row.values.extend(self.sent.iter().map(|value| round(*value)));
        }
        if !(keep_sent && is_sent) {
            self.row.values.push(round(self.wanted));
        }
        self.row
    }
}

fn key(sample: &Sample) -> u128 {
    let mut hasher = Hasher::new();
    hasher.number(sample.stack.0);
    hash_link(&mut hasher, &sample.link);
    for number in [sample.thread_id, sample.pid] {
        hasher.number(u64::from(number.is_some()));
        hasher.number(number.unwrap_or(0) as u64);
    }
    hasher.text(sample.thread_name.as_deref().unwrap_or_default());
    for Label { key, value, unit } in &sample.labels {
        hasher.text(key);
        hasher.value(value);
        hasher.text(unit);
    }
    hasher.finish().0
}

fn hash_link(hasher: &mut Hasher, link: &Link) {
    match link {
        Link::None => hasher.number(0),
        Link::One { trace_id, span_id, claim } => {
            hasher.number(1 + *claim as u64);
            hasher.bytes(trace_id.as_ref().map_or(&[][..], |id| id.as_bytes()));
            hasher.bytes(span_id.as_ref().map_or(&[][..], |id| id.as_bytes()));
        }
        Link::Candidates { trace_ids, span_ids } => {
            hasher.number(9);
            trace_ids.iter().for_each(|id| hasher.bytes(id.as_bytes()));
            span_ids.iter().for_each(|id| hasher.bytes(id.as_bytes()));
        }
    }
}

#[cfg(test)]
mod tests;
