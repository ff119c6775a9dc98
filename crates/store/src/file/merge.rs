//! Merges sorted files into fewer.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;

use super::order::{self, Key, Rows};
use super::writer::FileWriter;
use super::{FILE_BYTES_MAX, FileStats};
use crate::Error;
use crate::schema::Table;
use crate::version::Tier;

/// Merges sorted files of one tenant and table; rows that are there twice are kept once. Memory holds one
/// batch of each input and the file that is being written.
///
/// `emit` gets each finished file, in order, at most [`FILE_BYTES_MAX`] long plus one row group.
pub(crate) async fn merge(
    table: Table,
    inputs: Vec<BoxStream<'static, Result<RecordBatch, Error>>>,
    tier: Tier,
    mut emit: impl AsyncFnMut(Bytes, FileStats) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut inputs: Vec<Input> = inputs.into_iter().map(|stream| Input::new(table, stream)).collect();
    let mut next: BinaryHeap<Reverse<(Key, usize)>> = BinaryHeap::new();
    for (number, input) in inputs.iter_mut().enumerate() {
        next.extend(input.advance().await?.map(|key| Reverse((key, number))));
    }
    let mut rows = Rows::new(table);
    let mut writer = FileWriter::new(table, tier, usize::MAX);
    while let Some(Reverse((key, number))) = next.pop() {
        let input = &mut inputs[number];
        rows.push(key, &input.batch, input.row);
        if rows.is_full() {
            writer.write(&rows.take()?)?;
            if writer.len_bytes() >= FILE_BYTES_MAX {
                let full = std::mem::replace(&mut writer, FileWriter::new(table, tier, usize::MAX));
                let (bytes, stats) = full.finish()?;
                emit(bytes, stats).await?;
            }
            tokio::task::yield_now().await;
        }
        next.extend(input.advance().await?.map(|key| Reverse((key, number))));
    }
    writer.write(&rows.take()?)?;
    if !writer.is_empty() {
        let (bytes, stats) = writer.finish()?;
        emit(bytes, stats).await?;
    }
    Ok(())
}

/// One sorted file and the row it stands at.
struct Input {
    table: Table,
    stream: BoxStream<'static, Result<RecordBatch, Error>>,
    batch: Arc<RecordBatch>,
    keys: Vec<Key>,
    row: usize,
}

impl Input {
    fn new(table: Table, stream: BoxStream<'static, Result<RecordBatch, Error>>) -> Input {
        Input {
            table,
            stream,
            batch: Arc::new(RecordBatch::new_empty(table.schema())),
            keys: Vec::new(),
            row: 0,
        }
    }

    /// Goes to the next row and returns its key; `None` at the end.
    async fn advance(&mut self) -> Result<Option<Key>, Error> {
        self.row += 1;
        while self.row >= self.keys.len() {
            let Some(batch) = self.stream.next().await else {
                return Ok(None);
            };
            let batch = batch?;
            self.keys = order::keys(self.table, &batch).map_err(|unreadable| unreadable.in_file(self.table.name()))?;
            self.batch = Arc::new(batch);
            self.row = 0;
        }
        Ok(Some(self.keys[self.row]))
    }
}
