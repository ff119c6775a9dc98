//! Scans of `samples`.

use arrow::array::{Array, BinaryArray, BooleanArray, Int64Array, ListArray};
use arrow::buffer::BooleanBuffer;
use arrow::record_batch::RecordBatch;
use spanflame_model::Tenant;

use super::{Decoder, Scan, Stage, arrived_before, lists_service, overlaps};
use crate::file::FileStats;
use crate::reader::OpenFile;
use crate::rows::{SampleDecoder, Unreadable, column, numbers};
use crate::schema::{self, Table, sample};
use crate::{SampleScan, StoredSample};

impl Scan for SampleScan {
    type Item = StoredSample;
    const TABLE: Table = Table::Samples;

    fn tenants(&self) -> &[Tenant] {
        &self.tenants
    }

    fn wants_file(&self, stats: &FileStats) -> bool {
        let in_time = stats.time_unix_nano.is_some_and(|(first, last)| overlaps(first, last, self.range));
        let before = arrived_before(Some(stats.received_unix_nano.0), self.received_before);
        let of_service = |services: &Vec<String>| services.iter().any(|service| lists_service(stats, service));
        in_time && before && self.services.as_ref().is_none_or(of_service)
    }

    fn wants_row_group(&self, file: &OpenFile, row_group: usize) -> bool {
        let loose = file.null_count(row_group, sample::TRACE_ID) != Some(0);
        let of_service = |services: &Vec<String>| {
            services
                .iter()
                .any(|service| file.may_hold_text(row_group, sample::SERVICE, service))
        };
        let received = file.number_range(row_group, schema::RECEIVED);
        let before = arrived_before(received.map(|(first, _)| first), self.received_before);
        (loose || !self.unlinked_only) && before && self.services.as_ref().is_none_or(of_service)
    }

    fn stages(&self, _row_group: Option<(&OpenFile, usize)>) -> Vec<Stage> {
        let mut stages = Vec::new();
        if self.unlinked_only {
            stages.push(Stage::new(vec![sample::TRACE_ID, sample::SPAN_ID], |rows| {
                let (traces, spans): (&BinaryArray, &BinaryArray) = (column(rows, sample::TRACE_ID)?, column(rows, sample::SPAN_ID)?);
                Ok(mask(rows, |row| traces.is_null(row) && spans.is_null(row)))
            }));
        }
        if let Some(services) = self.services.clone() {
            stages.push(Stage::one_of(sample::SERVICE, services));
        }
        let columns = vec![sample::TIMES, sample::PROFILE_START, sample::PROFILE_DURATION, schema::RECEIVED];
        stages.push(Stage::new(columns, time_mask(self)));
        stages
    }

    fn columns(&self) -> Option<Vec<&'static str>> {
        None
    }

    fn decoder(&self, tenant: &Tenant) -> Decoder<StoredSample> {
        let mut decoder = SampleDecoder::new(tenant.clone());
        Box::new(move |rows| {
            let mut samples = Vec::with_capacity(rows.num_rows());
            decoder.decode(rows, 0..rows.num_rows(), &mut samples)?;
            Ok(samples)
        })
    }
}

/// Samples with a time in the range, or whose profile overlaps it where they have no times.
fn time_mask(scan: &SampleScan) -> impl FnMut(&RecordBatch) -> Result<BooleanArray, Unreadable> + Send + use<> {
    let (range, received_before) = (scan.range, scan.received_before);
    move |rows| {
        let times: &ListArray = column(rows, sample::TIMES)?;
        let starts: &Int64Array = column(rows, sample::PROFILE_START)?;
        let durations: &Int64Array = column(rows, sample::PROFILE_DURATION)?;
        let received: &Int64Array = column(rows, schema::RECEIVED)?;
        let mut passing = Vec::with_capacity(rows.num_rows());
        for row in 0..rows.num_rows() {
            let start = starts.value(row);
            let in_time = match numbers(times, row)? {
                [] => overlaps(start, start.saturating_add(durations.value(row).max(1) - 1), range),
                times => times.iter().any(|time| overlaps(*time, *time, range)),
            };
            passing.push(in_time && received_before.is_none_or(|before| received.value(row) < before.unix_nanos()));
        }
        Ok(BooleanArray::from(passing))
    }
}

fn mask(rows: &RecordBatch, passes: impl FnMut(usize) -> bool) -> BooleanArray {
    BooleanArray::new(BooleanBuffer::collect_bool(rows.num_rows(), passes), None)
}
