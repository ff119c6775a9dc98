//! A scan of spans that leaves out what arrived before: for whoever follows what comes in.

use arrow::array::{BooleanArray, Int64Array};
use arrow::record_batch::RecordBatch;
use spanflame_model::{Tenant, Timestamp};

use super::{Decoder, Scan, Stage};
use crate::file::FileStats;
use crate::reader::OpenFile;
use crate::rows::{Unreadable, column};
use crate::schema::{self, Table};
use crate::{SpanScan, StoredSpan};

/// The spans of a scan that arrived after a time.
pub(crate) struct Arrived {
    pub(crate) scan: SpanScan,
    pub(crate) after: Timestamp,
}

impl Scan for Arrived {
    type Item = StoredSpan;
    const TABLE: Table = SpanScan::TABLE;

    fn tenants(&self) -> &[Tenant] {
        self.scan.tenants()
    }

    fn wants_file(&self, stats: &FileStats) -> bool {
        stats.received_unix_nano.1 > self.after.unix_nanos() && self.scan.wants_file(stats)
    }

    fn wants_row_group(&self, file: &OpenFile, row_group: usize) -> bool {
        let received = file.number_range(row_group, schema::RECEIVED);
        let is_new = received.is_none_or(|(_, last)| last > self.after.unix_nanos());
        is_new && self.scan.wants_row_group(file, row_group)
    }

    fn stages(&self, row_group: Option<(&OpenFile, usize)>) -> Vec<Stage> {
        let after = self.after.unix_nanos();
        let is_new = move |rows: &RecordBatch| -> Result<BooleanArray, Unreadable> {
            let received: &Int64Array = column(rows, schema::RECEIVED)?;
            Ok(received.iter().map(|time| Some(time.is_some_and(|time| time > after))).collect())
        };
        let mut stages = vec![Stage::new(vec![schema::RECEIVED], is_new)];
        stages.extend(self.scan.stages(row_group));
        stages
    }

    fn columns(&self) -> Option<Vec<&'static str>> {
        self.scan.columns()
    }

    fn decoder(&self, tenant: &Tenant) -> Decoder<StoredSpan> {
        self.scan.decoder(tenant)
    }
}
