//! A file whose metadata, page index and bloom filters are in memory.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, coalesce_ranges};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, RowSelection};
use parquet::arrow::async_reader::{AsyncFileReader, ParquetRecordBatchStreamBuilder};
use parquet::bloom_filter::Sbbf;
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::statistics::Statistics;

use super::pages::Column;
use crate::schema::{self, Table};
use crate::version::FileEntry;

/// Parts of a file that lie closer together are one request over a network. A look-up reads a page of each column, and the library's
/// 1 MiB would make that the whole row group.
const GAP_BYTES_MAX: u64 = 256 << 10;
/// Read from the end of a file in one request; holds metadata and page index of most files.
const FOOTER_BYTES: usize = 128 << 10;

/// What is known of a file once its footer was read.
pub(crate) struct OpenFile {
    pub(crate) metadata: ArrowReaderMetadata,
    /// The same, for reading attributes as views; only of spans.
    pub(super) attribute_views: Option<ArrowReaderMetadata>,
    /// Position among the leaf columns, of columns that are no lists or maps.
    leaves: HashMap<String, usize>,
    /// By row group and leaf column.
    bloom_filters: HashMap<(usize, usize), Sbbf>,
}

/// Values that a lookup wants, sorted.
#[derive(Clone)]
pub(crate) enum Wanted {
    /// Of a binary column.
    Ids(Arc<[Vec<u8>]>),
    /// Of a number column.
    Numbers(Arc<[i64]>),
}

impl OpenFile {
    pub(super) async fn load(mut stored: StoredFile, file: &FileEntry) -> Result<Arc<OpenFile>, ParquetError> {
        let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Optional);
        let metadata = Arc::new(
            ParquetMetaDataReader::new()
                .with_page_index_policy(PageIndexPolicy::Optional)
                .with_prefetch_hint(Some(FOOTER_BYTES))
                .load_and_finish(&mut stored, file.stats.size_bytes)
                .await?,
        );
        let parquet = metadata;
        let metadata = ArrowReaderMetadata::try_new(Arc::clone(&parquet), options.clone())?;
        let expected = file.table.schema();
        if metadata.schema().fields() != expected.fields() {
            return Err(ParquetError::General(format!(
                "the columns are not those of table {}",
                file.table.name()
            )));
        }
        let attribute_views = match file.table {
            Table::Spans => {
                let options = options.with_schema(schema::spans_with_attribute_views());
                Some(ArrowReaderMetadata::try_new(parquet, options)?)
            }
            _ => None,
        };
        let columns = metadata.parquet_schema().columns().iter().enumerate();
        let leaves = columns
            .filter(|(_, column)| column.path().parts().len() == 1)
            .map(|(position, column)| (column.name().to_owned(), position))
            .collect();
        let bloom_filters = load_bloom_filters(stored, &metadata).await?;
        Ok(Arc::new(OpenFile {
            metadata,
            attribute_views,
            leaves,
            bloom_filters,
        }))
    }

    /// What it weighs in memory.
    pub(super) fn memory_bytes(&self) -> usize {
        let filters: usize = self.bloom_filters.values().map(|filter| filter.num_blocks() * 32).sum();
        self.metadata.metadata().memory_size() + filters
    }

    /// All row groups by number.
    pub(crate) fn row_groups(&self) -> Vec<usize> {
        (0..self.metadata.metadata().num_row_groups()).collect()
    }

    /// Number of rows in some row groups.
    pub(crate) fn rows_in(&self, row_groups: &[usize]) -> u64 {
        let rows = |group: &usize| self.row_group(*group).num_rows() as u64;
        row_groups.iter().map(rows).sum()
    }

    /// Smallest and largest number of a column in a row group; `None` where that is unknown.
    pub(crate) fn number_range(&self, row_group: usize, column: &str) -> Option<(i64, i64)> {
        match self.statistics(row_group, column)? {
            Statistics::Int64(stats) => Some((*stats.min_opt()?, *stats.max_opt()?)),
            _ => None,
        }
    }

    /// Whether a text column may hold `text` in a row group.
    pub(crate) fn may_hold_text(&self, row_group: usize, column: &str, text: &str) -> bool {
        let Some(Statistics::ByteArray(stats)) = self.statistics(row_group, column) else {
            return true;
        };
        let above_min = stats.min_opt().is_none_or(|min| min.data() <= text.as_bytes());
        above_min && stats.max_opt().is_none_or(|max| text.as_bytes() <= max.data())
    }

    /// How many rows of a row group have no value in a column; `None` where that is unknown.
    pub(crate) fn null_count(&self, row_group: usize, column: &str) -> Option<u64> {
        self.statistics(row_group, column)?.null_count_opt()
    }

    /// Number of rows of a row group.
    pub(crate) fn row_count(&self, row_group: usize) -> u64 {
        self.row_group(row_group).num_rows() as u64
    }

    /// Position of a column among the leaves, by its path.
    pub(super) fn leaf(&self, path: &[&str]) -> Option<usize> {
        let columns = self.metadata.parquet_schema().columns();
        columns.iter().position(|column| column.path().parts() == path)
    }

    /// A column of a row group, for a search of its pages.
    pub(super) fn column(&self, row_group: usize, leaf: usize) -> Column<'_> {
        let offsets = self.metadata.metadata().offset_index();
        let pages = offsets.and_then(|index| index.get(row_group)?.get(leaf));
        Column {
            column: self.row_group(row_group).column(leaf),
            rows: self.row_count(row_group) as usize,
            first_rows: pages.map(|pages| pages.page_locations().as_slice()),
        }
    }

    /// Of some row groups those that may hold a wanted value, with the pages on which it may be.
    pub(crate) fn find(&self, mut groups: Vec<usize>, column: &str, wanted: &Wanted) -> (Vec<usize>, RowSelection) {
        let leaf = self.leaves[column];
        groups.retain(|group| self.may_hold(*group, leaf, wanted));
        let rows = self.pages(&groups, leaf, |index, page| wanted.on_page(index, page));
        (groups, rows)
    }

    /// Of some row groups those with a value in a column, with the pages that have one.
    pub(crate) fn find_present(&self, mut groups: Vec<usize>, column: &str) -> (Vec<usize>, RowSelection) {
        groups.retain(|group| self.null_count(*group, column) != Some(self.row_count(*group)));
        let rows = self.pages(&groups, self.leaves[column], |index, page| !index.is_null_page(page));
        (groups, rows)
    }

    /// The pages of row groups with rows that have no value in a column.
    pub(crate) fn pages_without(&self, groups: &[usize], column: &str) -> RowSelection {
        self.pages(groups, self.leaves[column], |index, page| {
            index.is_null_page(page) || index.null_count(page) != Some(0)
        })
    }

    fn pages(&self, groups: &[usize], leaf: usize, page_may: impl Fn(&ColumnIndexMetaData, usize) -> bool) -> RowSelection {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        let mut before = 0;
        for group in groups {
            for pages in self.page_rows(*group, leaf, &page_may) {
                let (start, end) = (before + pages.start, before + pages.end);
                match ranges.last_mut() {
                    Some(last) if last.end == start => last.end = end,
                    _ => ranges.push(start..end),
                }
            }
            before += self.row_count(*group) as usize;
        }
        RowSelection::from_consecutive_ranges(ranges.into_iter(), before)
    }

    /// The rows of every page that passes; all rows where there is no page index.
    fn page_rows(&self, group: usize, leaf: usize, page_may: impl Fn(&ColumnIndexMetaData, usize) -> bool) -> Vec<Range<usize>> {
        let rows = self.row_count(group) as usize;
        let metadata = self.metadata.metadata();
        let column = metadata.column_index().and_then(|index| index.get(group)?.get(leaf));
        let offsets = metadata.offset_index().and_then(|index| index.get(group)?.get(leaf));
        let (Some(column), Some(offsets)) = (column, offsets) else {
            return std::iter::once(0..rows).collect();
        };
        let pages = offsets.page_locations();
        if matches!(column, ColumnIndexMetaData::NONE) || column.num_pages() != pages.len() as u64 {
            return std::iter::once(0..rows).collect();
        }
        let first = |page: usize| pages.get(page).map_or(rows, |location| location.first_row_index as usize);
        let passing = (0..pages.len()).filter(|page| page_may(column, *page));
        passing.map(|page| first(page)..first(page + 1)).collect()
    }

    fn may_hold(&self, group: usize, leaf: usize, wanted: &Wanted) -> bool {
        if let Some(filter) = self.bloom_filters.get(&(group, leaf))
            && !wanted.passes(filter)
        {
            return false;
        }
        match self.row_group(group).column(leaf).statistics() {
            Some(statistics) => wanted.in_range(statistics),
            None => true,
        }
    }

    fn statistics(&self, row_group: usize, column: &str) -> Option<&Statistics> {
        self.row_group(row_group).column(*self.leaves.get(column)?).statistics()
    }

    fn row_group(&self, row_group: usize) -> &RowGroupMetaData {
        self.metadata.metadata().row_group(row_group)
    }
}

impl Wanted {
    /// Binary values, which need not be sorted.
    pub(crate) fn ids<'a>(ids: impl IntoIterator<Item = &'a [u8]>) -> Wanted {
        let mut ids: Vec<Vec<u8>> = ids.into_iter().map(<[u8]>::to_vec).collect();
        ids.sort_unstable();
        ids.dedup();
        Wanted::Ids(ids.into())
    }

    /// Numbers, which need not be sorted.
    pub(crate) fn numbers(numbers: impl IntoIterator<Item = i64>) -> Wanted {
        let mut numbers: Vec<i64> = numbers.into_iter().collect();
        numbers.sort_unstable();
        numbers.dedup();
        Wanted::Numbers(numbers.into())
    }

    fn passes(&self, filter: &Sbbf) -> bool {
        match self {
            Wanted::Ids(ids) => ids.iter().any(|id| filter.check(id.as_slice())),
            Wanted::Numbers(numbers) => numbers.iter().any(|number| filter.check(number)),
        }
    }

    fn in_range(&self, statistics: &Statistics) -> bool {
        match (self, statistics) {
            (Wanted::Ids(ids), Statistics::ByteArray(stats)) => match (stats.min_opt(), stats.max_opt()) {
                (Some(min), Some(max)) => any_within(ids, |id| id.as_slice() < min.data(), |id| id.as_slice() <= max.data()),
                // A column of nulls has neither.
                _ => stats.null_count_opt().is_none(),
            },
            (Wanted::Numbers(numbers), Statistics::Int64(stats)) => match (stats.min_opt(), stats.max_opt()) {
                (Some(min), Some(max)) => any_within(numbers, |number| number < min, |number| number <= max),
                _ => true,
            },
            _ => true,
        }
    }

    fn on_page(&self, index: &ColumnIndexMetaData, page: usize) -> bool {
        match (self, index) {
            (Wanted::Ids(ids), ColumnIndexMetaData::BYTE_ARRAY(index)) => match (index.min_value(page), index.max_value(page)) {
                (Some(min), Some(max)) => any_within(ids, |id| id.as_slice() < min, |id| id.as_slice() <= max),
                _ => false,
            },
            (Wanted::Numbers(numbers), ColumnIndexMetaData::INT64(index)) => match (index.min_value(page), index.max_value(page)) {
                (Some(min), Some(max)) => any_within(numbers, |number| number < min, |number| number <= max),
                _ => false,
            },
            _ => true,
        }
    }
}

/// Whether one of `sorted` is neither below the smallest nor above the largest.
fn any_within<T>(sorted: &[T], below: impl Fn(&T) -> bool, not_above: impl Fn(&T) -> bool) -> bool {
    let first = sorted.partition_point(below);
    sorted.get(first).is_some_and(not_above)
}

async fn load_bloom_filters(stored: StoredFile, metadata: &ArrowReaderMetadata) -> Result<HashMap<(usize, usize), Sbbf>, ParquetError> {
    let mut filters = HashMap::new();
    let mut builder = ParquetRecordBatchStreamBuilder::new_with_metadata(stored, metadata.clone());
    let groups = metadata.metadata().row_groups().iter().enumerate();
    let with_filter: Vec<(usize, usize)> = groups
        .flat_map(|(number, group)| {
            let columns = group.columns().iter().enumerate();
            columns.filter_map(move |(leaf, column)| column.bloom_filter_offset().map(|_| (number, leaf)))
        })
        .collect();
    for (group, leaf) in with_filter {
        if let Some(filter) = builder.get_row_group_column_bloom_filter(group, leaf).await? {
            filters.insert((group, leaf), filter);
        }
    }
    Ok(filters)
}

/// An object as the Parquet reader wants it.
#[derive(Clone)]
pub(super) struct StoredFile {
    store: Arc<dyn ObjectStore>,
    path: Path,
    size_bytes: u64,
    over_network: bool,
}

impl StoredFile {
    pub(super) fn new(store: Arc<dyn ObjectStore>, file: &FileEntry, over_network: bool) -> StoredFile {
        StoredFile {
            store,
            path: file.path.clone(),
            size_bytes: file.stats.size_bytes,
            over_network,
        }
    }
}

impl AsyncFileReader for StoredFile {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes, ParquetError>> {
        async move { Ok(self.store.get_range(&self.path, range).await?) }.boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, Result<Vec<Bytes>, ParquetError>> {
        async move {
            if !self.over_network {
                return Ok(self.store.get_ranges(&self.path, &ranges).await?);
            }
            let fetch = |range| self.store.get_range(&self.path, range);
            Ok(coalesce_ranges(&ranges, fetch, GAP_BYTES_MAX).await?)
        }
        .boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, Result<Arc<ParquetMetaData>, ParquetError>> {
        async move {
            let size_bytes = self.size_bytes;
            let reader = ParquetMetaDataReader::new().with_arrow_reader_options(options);
            Ok(Arc::new(reader.load_and_finish(self, size_bytes).await?))
        }
        .boxed()
    }
}
