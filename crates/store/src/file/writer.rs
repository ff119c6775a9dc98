//! Encodes rows that are in order as one Parquet file.

use arrow::record_batch::RecordBatch;
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;

use super::stats::{FileStats, StatsBuilder};
use crate::Error;
use crate::rows::Unreadable;
use crate::schema::{Table, frame, sample, span, stack};
use crate::version::Tier;

/// Rows of a page: what a lookup decodes of each column at least.
const PAGE_ROWS: usize = 4096;
/// The same of stacks and frames, of which every question looks up a few that lie anywhere. A row of stacks is a list of
/// dozens of ids.
const CONTENT_PAGE_ROWS: usize = 256;
/// Bytes of a page before compression.
const PAGE_BYTES: usize = 256 << 10;
/// Bytes of a dictionary: every lookup reads the dictionaries of the columns it needs.
const DICTIONARY_BYTES: usize = 256 << 10;
/// Rows of a row group. Smaller ones repeat dictionaries: 5 bytes a span at 64 Ki.
const ROW_GROUP_ROWS: usize = 256 << 10;
/// Chance that a bloom filter says yes to an id that is not there.
const BLOOM_FALSE_POSITIVES: f64 = 0.01;

/// A file being written, in memory.
pub(super) struct FileWriter {
    table: Table,
    tier: Tier,
    rows_max: usize,
    stats: StatsBuilder,
    parquet: Option<ArrowWriter<Vec<u8>>>,
}

impl FileWriter {
    /// A file of at most `rows_max` rows: bloom filters begin at the size that so many need.
    pub(super) fn new(table: Table, tier: Tier, rows_max: usize) -> FileWriter {
        FileWriter {
            table,
            tier,
            rows_max,
            stats: StatsBuilder::new(table),
            parquet: None,
        }
    }

    /// Appends rows.
    pub(super) fn write(&mut self, rows: &RecordBatch) -> Result<(), Error> {
        if rows.num_rows() == 0 {
            return Ok(());
        }
        self.stats.add(rows).map_err(damage)?;
        self.parquet()?.write(rows).map_err(Error::parquet("encode", "a new file"))
    }

    /// Length so far, what is buffered included.
    pub(super) fn len_bytes(&self) -> u64 {
        let parquet = self.parquet.as_ref();
        parquet.map_or(0, |parquet| (parquet.bytes_written() + parquet.in_progress_size()) as u64)
    }

    /// Whether nothing was written.
    pub(super) fn is_empty(&self) -> bool {
        self.parquet.is_none()
    }

    /// The file and what is in it.
    pub(super) fn finish(mut self) -> Result<(Bytes, FileStats), Error> {
        self.parquet()?;
        let parquet = self.parquet.take().expect("it was made one line above");
        let bytes = Bytes::from(parquet.into_inner().map_err(Error::parquet("encode", "a new file"))?);
        let stats = self.stats.finish(&bytes);
        Ok((bytes, stats))
    }

    fn parquet(&mut self) -> Result<&mut ArrowWriter<Vec<u8>>, Error> {
        if self.parquet.is_none() {
            let options = ArrowWriterOptions::new()
                .with_properties(properties(self))
                .with_skip_arrow_metadata(true);
            let writer = ArrowWriter::try_new_with_options(Vec::new(), self.table.schema(), options);
            self.parquet = Some(writer.map_err(Error::parquet("encode", "a new file"))?);
        }
        Ok(self.parquet.as_mut().expect("it is made above"))
    }
}

/// How a table is encoded.
fn properties(file: &FileWriter) -> WriterProperties {
    let level = if file.tier == Tier::Flush { 1 } else { 3 };
    let zstd = ZstdLevel::try_new(level).expect("levels 1 to 22 exist");
    let page_rows = match file.table {
        Table::Stacks | Table::Frames => CONTENT_PAGE_ROWS,
        Table::Spans | Table::Samples | Table::Profiles => PAGE_ROWS,
    };
    let common = WriterProperties::builder()
        .set_created_by(concat!("spanflame ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(zstd))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_data_page_row_count_limit(page_rows)
        .set_data_page_size_limit(PAGE_BYTES)
        .set_dictionary_page_size_limit(DICTIONARY_BYTES)
        .set_write_batch_size(page_rows.min(1024));
    let distinct = file.rows_max.clamp(1, ROW_GROUP_ROWS) as u64;
    let bloom = |properties, name| bloom(properties, name, distinct);
    let tuned = match file.table {
        Table::Spans => bloom(bloom(spans(common), span::TRACE_ID), span::SPAN_ID),
        Table::Samples => bloom(bloom(samples(common), sample::TRACE_ID), sample::SPAN_ID),
        Table::Profiles => common,
        Table::Stacks => bloom(plain(common, stack::STACK_ID), stack::STACK_ID),
        Table::Frames => bloom(plain(common, frame::FRAME_ID), frame::FRAME_ID),
    };
    tuned.build()
}

fn spans(properties: WriterPropertiesBuilder) -> WriterPropertiesBuilder {
    let mut properties = encoded(properties, span::TRACE_ID, Encoding::DELTA_BYTE_ARRAY);
    for name in [span::SPAN_ID, span::PARENT_SPAN_ID] {
        properties = plain(properties, name);
    }
    for name in [span::START, span::DURATION] {
        properties = encoded(properties, name, Encoding::DELTA_BINARY_PACKED);
    }
    for name in [
        span::STATUS_MESSAGE,
        span::RESOURCE,
        span::SCOPE,
        span::EVENTS,
        span::LINKS,
        span::ATTRIBUTE_TYPES,
    ] {
        properties = without_statistics(properties, vec![name.to_owned()]);
    }
    for part in ["key", "value"] {
        let path = vec![span::ATTRIBUTES.to_owned(), "key_value".to_owned(), part.to_owned()];
        properties = without_statistics(properties, path);
    }
    properties
}

fn samples(properties: WriterPropertiesBuilder) -> WriterPropertiesBuilder {
    let mut properties = encoded(properties, sample::TRACE_ID, Encoding::DELTA_BYTE_ARRAY);
    properties = plain(properties, sample::SPAN_ID);
    for name in [sample::PROFILE, sample::RESOURCE, sample::LABELS] {
        properties = without_statistics(properties, vec![name.to_owned()]);
    }
    // Times inside a span are random: neither a dictionary nor deltas make them smaller. Splitting bytes into
    // streams would, by 9 %, but readers older than Parquet 2.11 know it for floats only.
    let times = ColumnPath::new(vec![sample::TIMES.to_owned(), "list".to_owned(), "element".to_owned()]);
    properties.set_column_dictionary_enabled(times, false)
}

fn plain(properties: WriterPropertiesBuilder, name: &str) -> WriterPropertiesBuilder {
    properties.set_column_dictionary_enabled(ColumnPath::from(name), false)
}

fn encoded(properties: WriterPropertiesBuilder, name: &str, encoding: Encoding) -> WriterPropertiesBuilder {
    plain(properties, name).set_column_encoding(ColumnPath::from(name), encoding)
}

fn bloom(properties: WriterPropertiesBuilder, name: &str, distinct: u64) -> WriterPropertiesBuilder {
    let column = ColumnPath::from(name);
    properties
        .set_column_bloom_filter_enabled(column.clone(), true)
        .set_column_bloom_filter_fpp(column.clone(), BLOOM_FALSE_POSITIVES)
        .set_column_bloom_filter_max_ndv(column, distinct)
}

/// Nothing is found by the smallest or largest of such texts.
fn without_statistics(properties: WriterPropertiesBuilder, path: Vec<String>) -> WriterPropertiesBuilder {
    properties.set_column_statistics_enabled(ColumnPath::new(path), EnabledStatistics::None)
}

fn damage(unreadable: Unreadable) -> Error {
    unreadable.in_file("a new file")
}
