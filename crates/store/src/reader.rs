//! Reads table files: metadata and bloom filters are kept in memory, pages are not.

use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use futures::stream::BoxStream;
use object_store::ObjectStore;

use crate::Error;
use crate::version::FileEntry;

/// The object store with the caches that all snapshots share.
pub(crate) struct Reader {
    _store: Arc<dyn ObjectStore>,
}

impl Reader {
    /// A reader of `store` with empty caches.
    pub(crate) fn new(store: Arc<dyn ObjectStore>) -> Reader {
        Reader { _store: store }
    }

    /// All rows of a file in its order: the input of a merge.
    pub(crate) async fn rows(&self, _file: &FileEntry) -> Result<BoxStream<'static, Result<RecordBatch, Error>>, Error> {
        unimplemented!()
    }
}
