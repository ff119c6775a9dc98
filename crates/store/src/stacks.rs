//! Stacks and frames by id, from memory where they are kept.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{BooleanArray, Int64Array};
use futures::TryStreamExt;
use moka::sync::Cache;
use spanflame_model::{Frame, FrameId, StackId, StackSet, Tenant};

use crate::lookup::Lookup;
use crate::reader::Wanted;
use crate::rows::{Unreadable, decode_frames, decode_stacks};
use crate::schema::{Table, frame, stack};
use crate::{Error, Snapshot};

/// Memory for stacks that were read, and for frames that were read.
const CACHE_BYTES_MAX: u64 = 64 << 20;
/// What an entry costs besides its content.
const ENTRY_BYTES: usize = 96;

type ByTenant<T> = Cache<(Tenant, u64), T>;

/// Stacks and frames that were read from files. Content never changes under its id.
pub(crate) struct StackCache {
    stacks: ByTenant<Arc<[FrameId]>>,
    frames: ByTenant<Arc<Frame>>,
}

impl StackCache {
    pub(crate) fn new() -> StackCache {
        let stack_weight = |_: &(Tenant, u64), stack: &Arc<[FrameId]>| (ENTRY_BYTES + stack.len() * 8) as u32;
        let frame_weight = |_: &(Tenant, u64), frame: &Arc<Frame>| {
            let texts = [
                &frame.function,
                &frame.system_name,
                &frame.file,
                &frame.module,
                &frame.build_id,
                &frame.kind,
            ];
            (ENTRY_BYTES * 3 + texts.iter().map(|text| text.len()).sum::<usize>()) as u32
        };
        StackCache {
            stacks: Cache::builder().max_capacity(CACHE_BYTES_MAX).weigher(stack_weight).build(),
            frames: Cache::builder().max_capacity(CACHE_BYTES_MAX).weigher(frame_weight).build(),
        }
    }
}

/// The stacks asked for, with their frames.
pub(crate) async fn read(snapshot: &Snapshot, tenants: &[Tenant], ids: &[StackId]) -> Result<StackSet, Error> {
    let mut set = StackSet::new();
    let cache = &snapshot.reader.stacks;
    let missing = take_known(tenants, ids.iter().map(|id| id.0), &cache.stacks, |id, stack| {
        set.insert_stack(StackId(id), stack);
    });
    find(snapshot, tenants, Table::Stacks, &missing, |tenant, batch, rows| {
        decode_stacks(batch, rows, |id, stack| {
            cache.stacks.insert((tenant.clone(), id.0), Arc::clone(&stack));
            set.insert_stack(id, stack);
        })
    })
    .await?;
    let frames: HashSet<u64> = set.stacks().flat_map(|(_, stack)| stack.iter().map(|id| id.0)).collect();
    let missing = take_known(tenants, frames.into_iter(), &cache.frames, |id, frame| {
        set.insert_frame(FrameId(id), frame);
    });
    find(snapshot, tenants, Table::Frames, &missing, |tenant, batch, rows| {
        decode_frames(batch, rows, |id, frame| {
            cache.frames.insert((tenant.clone(), id.0), Arc::clone(&frame));
            set.insert_frame(id, frame);
        })
    })
    .await?;
    Ok(set)
}

/// Hands what is kept to `found` and returns the ids of the rest.
fn take_known<T: Clone + Send + Sync + 'static>(
    tenants: &[Tenant],
    ids: impl Iterator<Item = u64>,
    cache: &ByTenant<T>,
    mut found: impl FnMut(u64, T),
) -> Vec<i64> {
    let mut missing = Vec::new();
    for id in ids {
        match tenants.iter().find_map(|tenant| cache.get(&(tenant.clone(), id))) {
            Some(content) => found(id, content),
            None => missing.push(id as i64),
        }
    }
    missing
}

/// Finds content in heads, then what is left in files, younger first.
async fn find(
    snapshot: &Snapshot,
    tenants: &[Tenant],
    table: Table,
    ids: &[i64],
    mut found: impl FnMut(&Tenant, &arrow::record_batch::RecordBatch, Vec<usize>) -> Result<(), Unreadable>,
) -> Result<(), Error> {
    if ids.is_empty() {
        return Ok(());
    }
    let column = if table == Table::Stacks { stack::STACK_ID } else { frame::FRAME_ID };
    let mut left: HashSet<i64> = ids.iter().copied().collect();
    for head in &snapshot.heads {
        for part in head.by_content(tenants, table, ids) {
            let known: &Int64Array = crate::rows::column(&part.batch.rows, column).map_err(|error| error.in_file("head"))?;
            part.rows.iter().for_each(|row| {
                left.remove(&known.value(*row));
            });
            found(&part.batch.tenant, &part.batch.rows, part.rows).map_err(|error| error.in_file("head"))?;
        }
    }
    if left.is_empty() {
        return Ok(());
    }
    let lookup = Lookup::new(table, column, Wanted::numbers(left.iter().copied()), move |rows| {
        let known: &Int64Array = crate::rows::column(rows, column)?;
        Ok(BooleanArray::from_iter(known.values().iter().map(|id| Some(left.contains(id)))))
    });
    let mut batches = lookup.run(snapshot, tenants);
    while let Some((file, rows)) = batches.try_next().await? {
        let all = (0..rows.num_rows()).collect();
        found(&file.tenant, &rows, all).map_err(|error| error.in_file(file.path.as_ref()))?;
    }
    Ok(())
}
