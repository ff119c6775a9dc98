//! Scans of `profiles`.

use arrow::array::{BooleanArray, Int64Array, StringArray};
use arrow::buffer::BooleanBuffer;
use spanflame_model::Tenant;

use super::{Decoder, Scan, Stage, lists_service, overlaps};
use crate::file::FileStats;
use crate::reader::OpenFile;
use crate::rows::{RollupDecoder, column};
use crate::schema::{Table, rollup};
use crate::{RollupRow, RollupScan};

const LAST_NANO_OF_MINUTE: i64 = 60 * 1_000_000_000 - 1;

impl Scan for RollupScan {
    type Item = RollupRow;
    const TABLE: Table = Table::Profiles;

    fn tenants(&self) -> &[Tenant] {
        &self.tenants
    }

    fn wants_file(&self, stats: &FileStats) -> bool {
        let in_time = stats.time_unix_nano.is_some_and(|(first, last)| overlaps(first, last, self.range));
        let of_service = |services: &Vec<String>| services.iter().any(|service| lists_service(stats, service));
        in_time && self.services.as_ref().is_none_or(of_service)
    }

    fn wants_row_group(&self, file: &OpenFile, row_group: usize) -> bool {
        let minutes = file.number_range(row_group, rollup::MINUTE);
        let of_service = |services: &Vec<String>| {
            services
                .iter()
                .any(|service| file.may_hold_text(row_group, rollup::SERVICE, service))
        };
        minutes.is_none_or(|(first, last)| overlaps(first, last.saturating_add(LAST_NANO_OF_MINUTE), self.range))
            && self.services.as_ref().is_none_or(of_service)
    }

    fn stages(&self, _row_group: Option<(&OpenFile, usize)>) -> Vec<Stage> {
        let (range, services) = (self.range, self.services.clone());
        let stage = Stage::new(vec![rollup::SERVICE, rollup::MINUTE], move |rows| {
            let names: &StringArray = column(rows, rollup::SERVICE)?;
            let minutes: &Int64Array = column(rows, rollup::MINUTE)?;
            let passes = |row: usize| {
                let minute = minutes.value(row);
                let of_service = |services: &Vec<String>| services.iter().any(|service| names.value(row) == service);
                overlaps(minute, minute.saturating_add(LAST_NANO_OF_MINUTE), range) && services.as_ref().is_none_or(of_service)
            };
            Ok(BooleanArray::new(BooleanBuffer::collect_bool(rows.num_rows(), passes), None))
        });
        vec![stage]
    }

    fn columns(&self) -> Option<Vec<&'static str>> {
        None
    }

    fn decoder(&self, _tenant: &Tenant) -> Decoder<RollupRow> {
        let mut decoder = RollupDecoder::default();
        Box::new(move |rows| {
            let mut out = Vec::with_capacity(rows.num_rows());
            decoder.decode(rows, 0..rows.num_rows(), &mut out)?;
            Ok(out)
        })
    }
}
