//! Rollup rows to the table `profiles` and back.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array, StringArray};
use arrow::record_batch::RecordBatch;
use spanflame_model::{Attributes, ProfileInfo, ProfileType, Resource, Scope, StackId, Timestamp};

use super::Unreadable;
use super::column::{self, column, text, timestamp};
use super::spans::{read_resource, write_resource};
use crate::schema::{Table, rollup};
use crate::{Error, RollupRow};

const NANOS_PER_MINUTE: u64 = 60 * 1_000_000_000;

/// Rows of `profiles`. Of each row's info the resource and the period are kept.
pub(crate) fn encode_rollup(rows: &[RollupRow], received: Timestamp) -> Result<RecordBatch, Error> {
    let labels: Vec<String> = rows
        .iter()
        .map(|row| write_resource(&row.info.resource))
        .collect::<Result<_, _>>()?;
    let numbers = |number: &dyn Fn(&RollupRow) -> i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values(rows.iter().map(number))) };
    let version = |row: &RollupRow| row.info.resource.attributes().get_str("service.version").map(str::to_owned);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.info.resource.service()))),
        Arc::new(rows.iter().map(version).collect::<StringArray>()),
        Arc::new(StringArray::from(labels)),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.profile_type.to_string()))),
        numbers(&|row| row.info.period),
        numbers(&|row| row.minute.unix_nanos()),
        Arc::new(rows.iter().map(|row| row.span_name.as_deref()).collect::<StringArray>()),
        numbers(&|row| row.stack.0 as i64),
        numbers(&|row| row.sum),
        numbers(&|row| i64::try_from(row.count).unwrap_or(i64::MAX)),
        column::received_array(received, rows.len()),
    ];
    column::batch(Table::Profiles, columns)
}

/// Labels, profile type, period and minute.
type InfoKey = (Box<str>, Box<str>, i64, i64);

/// Rows of `profiles` to rollup rows, which share the info of their series.
#[derive(Default)]
pub(crate) struct RollupDecoder {
    infos: HashMap<InfoKey, Arc<ProfileInfo>>,
    resources: HashMap<Box<str>, Arc<Resource>>,
    types: HashMap<Box<str>, ProfileType>,
}

impl RollupDecoder {
    /// Appends the rows at `rows` to `out`.
    pub(crate) fn decode(
        &mut self,
        batch: &RecordBatch,
        rows: impl IntoIterator<Item = usize>,
        out: &mut Vec<RollupRow>,
    ) -> Result<(), Unreadable> {
        let texts = |name| column::<StringArray>(batch, name);
        let numbers = |name| column::<Int64Array>(batch, name);
        let (labels, types, span_names) = (texts(rollup::LABELS)?, texts(rollup::PROFILE_TYPE)?, texts(rollup::SPAN_NAME)?);
        let (periods, minutes, stacks) = (numbers(rollup::PERIOD)?, numbers(rollup::MINUTE)?, numbers(rollup::STACK_ID)?);
        let (sums, counts) = (numbers(rollup::SUM)?, numbers(rollup::COUNT)?);
        for row in rows {
            let profile_type = self.profile_type(text(types, row));
            let minute = timestamp(minutes.value(row))?;
            out.push(RollupRow {
                info: self.info(text(labels, row), &profile_type, periods.value(row), minute)?,
                profile_type,
                minute,
                span_name: span_names.is_valid(row).then(|| span_names.value(row).to_owned()),
                stack: StackId(stacks.value(row) as u64),
                sum: sums.value(row),
                count: u64::try_from(counts.value(row)).unwrap_or(0),
            });
        }
        Ok(())
    }

    fn profile_type(&mut self, text: &str) -> ProfileType {
        if let Some(known) = self.types.get(text) {
            return known.clone();
        }
        // A sender's name may itself hold colons: the last four parts are the types.
        let mut parts = text.rsplitn(5, ':');
        let mut next = || parts.next().unwrap_or_default().to_owned();
        let (period_unit, period_kind, unit, kind, name) = (next(), next(), next(), next(), next());
        let parsed = ProfileType {
            name,
            sample: spanflame_model::ValueType::new(kind, unit),
            period: spanflame_model::ValueType::new(period_kind, period_unit),
        };
        self.types.insert(text.into(), parsed.clone());
        parsed
    }

    fn info(&mut self, labels: &str, profile_type: &ProfileType, period: i64, minute: Timestamp) -> Result<Arc<ProfileInfo>, Unreadable> {
        let key = (labels.into(), profile_type.to_string().into(), period, minute.unix_nanos());
        if let Some(known) = self.infos.get(&key) {
            return Ok(Arc::clone(known));
        }
        let resource = match self.resources.get(labels) {
            Some(resource) => Arc::clone(resource),
            None => read_resource(labels)?,
        };
        self.resources.entry(labels.into()).or_insert_with(|| Arc::clone(&resource));
        let info = Arc::new(ProfileInfo {
            profile_id: None,
            name: profile_type.name.clone(),
            types: vec![profile_type.sample.clone()],
            period_type: profile_type.period.clone(),
            period,
            start: minute,
            duration_ns: NANOS_PER_MINUTE,
            resource,
            scope: Arc::new(Scope::default()),
            attributes: Attributes::new(),
        });
        self.infos.insert(key, Arc::clone(&info));
        Ok(info)
    }
}
