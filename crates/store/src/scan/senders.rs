//! Scans of `samples` for who sent profiles, and of what.

use std::sync::Arc;

use arrow::array::{BooleanArray, Int64Array};
use arrow::buffer::BooleanBuffer;
use spanflame_model::{ProfileInfo, Tenant};

use super::{Decoder, Scan, Stage, lists_service, overlaps};
use crate::SenderScan;
use crate::file::FileStats;
use crate::reader::OpenFile;
use crate::rows::{SenderDecoder, column};
use crate::schema::{Table, sample};

impl Scan for SenderScan {
    type Item = Arc<ProfileInfo>;
    const TABLE: Table = Table::Samples;

    fn tenants(&self) -> &[Tenant] {
        &self.tenants
    }

    fn wants_file(&self, stats: &FileStats) -> bool {
        let in_time = stats.time_unix_nano.is_some_and(|(first, last)| overlaps(first, last, self.range));
        let of_service = |services: &Vec<String>| services.iter().any(|service| lists_service(stats, service));
        in_time && self.services.as_ref().is_none_or(of_service)
    }

    fn wants_row_group(&self, file: &OpenFile, row_group: usize) -> bool {
        let of_service = |services: &Vec<String>| {
            services
                .iter()
                .any(|service| file.may_hold_text(row_group, sample::SERVICE, service))
        };
        self.services.as_ref().is_none_or(of_service)
    }

    fn stages(&self, _row_group: Option<(&OpenFile, usize)>) -> Vec<Stage> {
        let range = self.range;
        let mut stages = vec![Stage::new(vec![sample::PROFILE_START, sample::PROFILE_DURATION], move |rows| {
            let starts: &Int64Array = column(rows, sample::PROFILE_START)?;
            let durations: &Int64Array = column(rows, sample::PROFILE_DURATION)?;
            let passes = |row: usize| {
                let start = starts.value(row);
                overlaps(start, start.saturating_add(durations.value(row).max(1) - 1), range)
            };
            Ok(BooleanArray::new(BooleanBuffer::collect_bool(rows.num_rows(), passes), None))
        })];
        if let Some(services) = self.services.clone() {
            stages.push(Stage::one_of(sample::SERVICE, services));
        }
        stages
    }

    fn columns(&self) -> Option<Vec<&'static str>> {
        Some(SenderDecoder::COLUMNS.to_vec())
    }

    fn decoder(&self, tenant: &Tenant) -> Decoder<Arc<ProfileInfo>> {
        let mut decoder = SenderDecoder::new(tenant.clone());
        Box::new(move |rows| decoder.decode(rows))
    }
}
