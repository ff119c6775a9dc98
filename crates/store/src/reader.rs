//! Reads table files: metadata and bloom filters are kept in memory, pages are not.
//!
//! A file never changes under its name, so what is kept never goes stale; it is dropped by weight. A file
//! that a snapshot names and that is missing, shorter than it was, or no Parquet is damage, not absence.

mod open;
mod pages;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::compute::cast;
use arrow::datatypes::{FieldRef, Schema};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt};
use moka::future::Cache;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parking_lot::Mutex;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowPredicate, ArrowReaderMetadata, RowFilter, RowSelection};
use parquet::arrow::async_reader::{AsyncFileReader, ParquetRecordBatchStreamBuilder};
use parquet::errors::ParquetError;

use open::StoredFile;
pub(crate) use open::{OpenFile, Wanted};
pub(crate) use pages::Positions;
use pages::{Chunk, Search};

use crate::Error;
use crate::current::SharedVersion;
use crate::paths::Location;
use crate::schema::{Table, span};
use crate::stacks::StackCache;
use crate::version::FileEntry;

/// Memory for metadata, page indexes and bloom filters of files.
const METADATA_BYTES_MAX: u64 = 256 << 20;
/// Rows that are decoded together.
const BATCH_ROWS: usize = 8192;

/// The object store with the caches that all snapshots share.
pub(crate) struct Reader {
    store: Arc<dyn ObjectStore>,
    /// A request costs more than some bytes.
    over_network: bool,
    open_files: Cache<Path, Arc<OpenFile>>,
    /// Files that turned out to be damaged, until they leave their table or the process ends.
    damaged: Mutex<BTreeMap<Path, String>>,
    /// What the tables hold now; `None` where nobody changes them.
    current: Option<Arc<SharedVersion>>,
    pub(crate) stacks: StackCache,
}

/// Which part of a file to read.
pub(crate) struct Part {
    /// Row groups by number, ascending.
    pub(crate) row_groups: Vec<usize>,
    /// Rows within these row groups; `None` is all.
    pub(crate) rows: Option<RowSelection>,
    /// Names of columns; `None` is all.
    pub(crate) columns: Option<Vec<&'static str>>,
    /// Checked in order, each on what the ones before left over.
    pub(crate) predicates: Vec<Box<dyn ArrowPredicate>>,
}

/// Rows as they are read.
pub(crate) type Batches = BoxStream<'static, Result<RecordBatch, Arc<ParquetError>>>;

impl Reader {
    /// A reader of `store` with empty caches.
    pub(crate) fn new(store: Arc<dyn ObjectStore>) -> Reader {
        let weight = |_: &Path, file: &Arc<OpenFile>| u32::try_from(file.memory_bytes()).unwrap_or(u32::MAX);
        Reader {
            store,
            over_network: false,
            open_files: Cache::builder().max_capacity(METADATA_BYTES_MAX).weigher(weight).build(),
            damaged: Mutex::new(BTreeMap::new()),
            current: None,
            stacks: StackCache::new(),
        }
    }

    /// A reader of files that lie where `location` says.
    pub(crate) fn of(location: &Location) -> Reader {
        Reader {
            over_network: location.is_remote(),
            ..Reader::new(Arc::clone(location.store()))
        }
    }

    /// A reader that tells damage from files that left `current` and were deleted while somebody read them.
    pub(crate) fn watching(self, current: &Arc<SharedVersion>) -> Reader {
        Reader {
            current: Some(Arc::clone(current)),
            ..self
        }
    }

    /// Where the files lie.
    pub(crate) fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    /// Metadata, page index and bloom filters of a file, from memory where they are kept.
    pub(crate) fn open<'a>(&'a self, file: &'a FileEntry) -> BoxFuture<'a, Result<Arc<OpenFile>, Error>> {
        async move {
            if let Some(open) = self.open_files.get(&file.path).await {
                return Ok(open);
            }
            let load = OpenFile::load(self.stored(file), file);
            match self.open_files.try_get_with_by_ref(&file.path, load).await {
                Ok(open) => Ok(open),
                Err(source) => Err(self.explain(file, source).await),
            }
        }
        .boxed()
    }

    /// The rows of a part of a file.
    pub(crate) async fn read(&self, file: &FileEntry, open: &OpenFile, part: Part) -> Result<Batches, Error> {
        self.read_as(&open.metadata, file, part).await
    }

    /// Like [`Reader::read`], but predicates see attributes of spans as dictionary and views, which costs half
    /// where few rows pass.
    pub(crate) async fn read_by_attribute(&self, file: &FileEntry, open: &OpenFile, part: Part) -> Result<Batches, Error> {
        let Some(views) = &open.attribute_views else {
            return self.read(file, open, part).await;
        };
        let rows = self.read_as(views, file, part).await?;
        let plain = rows.map(|rows| plain_attributes(rows?).map_err(|error| Arc::new(error.into())));
        Ok(plain.boxed())
    }

    /// The rows of a row group with text in a column that passes; `None` if encoded pages do not tell.
    pub(crate) async fn rows_with_text(
        &self,
        file: &FileEntry,
        (open, row_group): (&OpenFile, usize),
        column: &str,
        passes: &(dyn Fn(&str) -> bool + Send + Sync),
    ) -> Result<Option<Positions>, Error> {
        let Some(leaf) = open.leaf(&[column]) else {
            return Ok(None);
        };
        let chunks = self.chunks(file, (open, row_group), &[leaf]).await?;
        let found = pages::find(
            chunks[0].clone(),
            open.column(row_group, leaf),
            &mut Search {
                test: &mut |text| passes(text),
                among: None,
                // The test is dear, and the library's way knows the results of texts that come again.
                plain_pages: false,
            },
        );
        match found {
            Ok(found) => Ok(found.map(|found| found.values)),
            Err(source) => Err(self.explain(file, Arc::new(source)).await),
        }
    }

    /// The rows of a row group whose map has an entry of this key with a value that passes; `None` if encoded pages do not tell.
    pub(crate) async fn rows_with_entry(
        &self,
        file: &FileEntry,
        (open, row_group): (&OpenFile, usize),
        map: &str,
        (key, passes): (&str, &(dyn Fn(&str) -> bool + Send + Sync)),
    ) -> Result<Option<Positions>, Error> {
        let leaves = [open.leaf(&[map, "key_value", "key"]), open.leaf(&[map, "key_value", "value"])];
        let [Some(keys), Some(values)] = leaves else {
            return Ok(None);
        };
        let chunks = self.chunks(file, (open, row_group), &[keys, values]).await?;
        let columns = [open.column(row_group, keys), open.column(row_group, values)];
        let [key_chunk, value_chunk] = &chunks[..] else {
            return Ok(None);
        };
        let found = (|| {
            let with_key = pages::find(
                key_chunk.clone(),
                columns[0],
                &mut Search {
                    test: &mut |text| text == key,
                    among: None,
                    plain_pages: true,
                },
            )?;
            let Some(with_key) = with_key else { return Ok(None) };
            if with_key.values.is_empty() {
                return Ok(Some(Positions::default()));
            }
            let with_value = pages::find(
                value_chunk.clone(),
                columns[1],
                &mut Search {
                    test: &mut |text| passes(text),
                    among: Some(&with_key.values),
                    plain_pages: true,
                },
            )?;
            with_value.map(|found| with_key.rows_of(&found.values)).transpose()
        })();
        match found {
            Ok(found) => Ok(found),
            Err(source) => Err(self.explain(file, Arc::new(source)).await),
        }
    }

    /// The bytes of some columns of a row group.
    async fn chunks(&self, file: &FileEntry, (open, row_group): (&OpenFile, usize), leaves: &[usize]) -> Result<Vec<Chunk>, Error> {
        let ranges: Vec<(u64, u64)> = leaves
            .iter()
            .map(|leaf| open.column(row_group, *leaf).column.byte_range())
            .collect();
        let wanted = ranges.iter().map(|(start, length)| *start..start + length).collect();
        match self.stored(file).get_byte_ranges(wanted).await {
            Ok(bytes) => Ok(bytes
                .into_iter()
                .zip(ranges)
                .map(|(bytes, (start, _))| Chunk { bytes, start })
                .collect()),
            Err(source) => Err(self.explain(file, Arc::new(source)).await),
        }
    }

    async fn read_as(&self, metadata: &ArrowReaderMetadata, file: &FileEntry, part: Part) -> Result<Batches, Error> {
        let schema = metadata.parquet_schema();
        let mut builder = ParquetRecordBatchStreamBuilder::new_with_metadata(self.stored(file), metadata.clone())
            .with_batch_size(BATCH_ROWS)
            .with_row_groups(part.row_groups);
        if let Some(columns) = part.columns {
            builder = builder.with_projection(ProjectionMask::columns(schema, columns));
        }
        if let Some(rows) = part.rows {
            builder = builder.with_row_selection(rows);
        }
        if !part.predicates.is_empty() {
            builder = builder.with_row_filter(RowFilter::new(part.predicates));
        }
        match builder.build() {
            Ok(stream) => Ok(stream.map_err(Arc::new).boxed()),
            Err(source) => Err(self.explain(file, Arc::new(source)).await),
        }
    }

    /// All rows of a file in its order: the input of a merge.
    pub(crate) async fn rows(self: &Arc<Reader>, file: &FileEntry) -> Result<BoxStream<'static, Result<RecordBatch, Error>>, Error> {
        let open = self.open(file).await?;
        let all = Part {
            row_groups: open.row_groups(),
            rows: None,
            columns: None,
            predicates: Vec::new(),
        };
        let rows = self.read(file, &open, all).await?;
        let (reader, file) = (Arc::clone(self), file.clone());
        let explained = rows.then(move |rows| {
            let (reader, file) = (Arc::clone(&reader), file.clone());
            async move {
                match rows {
                    Ok(rows) => Ok(rows),
                    Err(source) => Err(reader.explain(&file, source).await),
                }
            }
        });
        Ok(explained.boxed())
    }

    /// What a failed read means: the medium does not answer, or the file is not what was written.
    pub(crate) fn explain<'a>(&'a self, file: &'a FileEntry, source: Arc<ParquetError>) -> BoxFuture<'a, Error> {
        async move {
            let corrupt = |message: String| Error::Corrupt {
                file: file.path.to_string(),
                offset: 0,
                message,
            };
            if !matches!(*source, ParquetError::External(_)) {
                return corrupt(source.to_string());
            }
            let expected = file.stats.size_bytes;
            match self.store.head(&file.path).await {
                Err(object_store::Error::NotFound { .. }) => corrupt(format!("the file is missing, expected {expected} bytes")),
                Ok(meta) if meta.size != expected => corrupt(format!("the file has {} bytes, expected {expected}", meta.size)),
                _ => Error::Parquet {
                    action: "read",
                    file: file.path.to_string(),
                    source,
                },
            }
        }
        .boxed()
    }

    /// Lets who reads many files go on without a damaged one: `Ok` for damage, which is remembered and said
    /// once, everything else as it came.
    pub(crate) fn pass_damage(&self, error: Error) -> Result<(), Error> {
        let Error::Corrupt { file, message, .. } = &error else {
            return Err(error);
        };
        let Ok(path) = Path::parse(file) else { return Err(error) };
        // Who reads for longer than the grace period must not take what was replaced for nothing.
        if self.current.as_ref().is_some_and(|current| !current.get().names(&path)) {
            return Err(error);
        }
        if self.damaged.lock().insert(path, message.clone()).is_none() {
            tracing::error!(
                file,
                message,
                "a file is damaged and left out of answers; stop the server and run `spanflame repair`"
            );
        }
        Ok(())
    }

    /// Files known to be damaged, and what is wrong with them.
    pub(crate) fn damaged(&self) -> BTreeMap<Path, String> {
        self.damaged.lock().clone()
    }

    fn stored(&self, file: &FileEntry) -> StoredFile {
        StoredFile::new(Arc::clone(&self.store), file, self.over_network)
    }
}

/// Rows with attributes in the table's own types.
fn plain_attributes(rows: RecordBatch) -> Result<RecordBatch, ArrowError> {
    let Some((position, _)) = rows.schema().column_with_name(span::ATTRIBUTES) else {
        return Ok(rows);
    };
    let schema = Table::Spans.schema();
    let field = schema.field(Table::Spans.column(span::ATTRIBUTES));
    let mut columns = rows.columns().to_vec();
    columns[position] = cast(&columns[position], field.data_type())?;
    let mut fields: Vec<FieldRef> = rows.schema().fields().to_vec();
    fields[position] = Arc::new(field.clone());
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}
