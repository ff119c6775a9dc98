//! Stacks and frames to rows and back.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, Int64Array, ListArray, StringArray};
use arrow::record_batch::RecordBatch;
use spanflame_model::{Frame, FrameId, StackId, Timestamp};

use super::Unreadable;
use super::column::{self, column, list_array, number, numbers, text};
use crate::Error;
use crate::schema::{Table, frame, stack};

/// Rows of `stacks`.
pub(crate) fn encode_stacks<'a>(
    stacks: impl Iterator<Item = (StackId, &'a Arc<[FrameId]>)>,
    received: Timestamp,
) -> Result<RecordBatch, Error> {
    let (mut ids, mut lengths, mut frames) = (Vec::new(), Vec::new(), Vec::new());
    for (id, stack) in stacks {
        ids.push(id.0 as i64);
        lengths.push(stack.len());
        frames.extend(stack.iter().map(|frame| frame.0 as i64));
    }
    let received = column::received_array(received, ids.len());
    column::batch(
        Table::Stacks,
        vec![Arc::new(Int64Array::from(ids)), list_array(&lengths, frames, false), received],
    )
}

/// Rows of `frames`.
pub(crate) fn encode_frames<'a>(
    frames: impl Iterator<Item = (FrameId, &'a Arc<Frame>)>,
    received: Timestamp,
) -> Result<RecordBatch, Error> {
    let frames: Vec<(FrameId, &Arc<Frame>)> = frames.collect();
    let texts =
        |text: &dyn Fn(&Frame) -> &str| -> ArrayRef { Arc::new(StringArray::from_iter_values(frames.iter().map(|(_, f)| text(f)))) };
    let numbers =
        |number: &dyn Fn(&Frame) -> i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values(frames.iter().map(|(_, f)| number(f)))) };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(frames.iter().map(|(id, _)| id.0 as i64))),
        texts(&|f| &f.function),
        texts(&|f| &f.system_name),
        texts(&|f| &f.file),
        numbers(&|f| f.line),
        numbers(&|f| f.column),
        numbers(&|f| f.start_line),
        texts(&|f| &f.module),
        texts(&|f| &f.build_id),
        Arc::new(frames.iter().map(|(_, f)| f.address.map(|a| a as i64)).collect::<Int64Array>()),
        texts(&|f| &f.kind),
        Arc::new(frames.iter().map(|(_, f)| Some(f.inlined)).collect::<BooleanArray>()),
        column::received_array(received, frames.len()),
    ];
    column::batch(Table::Frames, columns)
}

/// The stacks at `rows`, leaf first each.
pub(crate) fn decode_stacks(
    batch: &RecordBatch,
    rows: impl IntoIterator<Item = usize>,
    mut each: impl FnMut(StackId, Arc<[FrameId]>),
) -> Result<(), Unreadable> {
    let ids: &Int64Array = column(batch, stack::STACK_ID)?;
    let frames: &ListArray = column(batch, stack::FRAME_IDS)?;
    for row in rows {
        let stack = numbers(frames, row)?.iter().map(|id| FrameId(*id as u64)).collect();
        each(StackId(ids.value(row) as u64), stack);
    }
    Ok(())
}

/// The frames at `rows`.
pub(crate) fn decode_frames(
    batch: &RecordBatch,
    rows: impl IntoIterator<Item = usize>,
    mut each: impl FnMut(FrameId, Arc<Frame>),
) -> Result<(), Unreadable> {
    let texts = |name| column::<StringArray>(batch, name);
    let counts = |name| column::<Int64Array>(batch, name);
    let (ids, lines, columns, start_lines) = (
        counts(frame::FRAME_ID)?,
        counts(frame::LINE)?,
        counts(frame::COLUMN)?,
        counts(frame::START_LINE)?,
    );
    let addresses = counts(frame::ADDRESS)?;
    let (functions, system_names, files) = (texts(frame::FUNCTION)?, texts(frame::SYSTEM_NAME)?, texts(frame::FILE)?);
    let (modules, build_ids, kinds) = (texts(frame::MODULE)?, texts(frame::BUILD_ID)?, texts(frame::KIND)?);
    let inlined: &BooleanArray = column(batch, frame::INLINED)?;
    for row in rows {
        let frame = Frame {
            function: text(functions, row).to_owned(),
            system_name: text(system_names, row).to_owned(),
            file: text(files, row).to_owned(),
            line: lines.value(row),
            column: columns.value(row),
            start_line: start_lines.value(row),
            module: text(modules, row).to_owned(),
            build_id: text(build_ids, row).to_owned(),
            address: number(addresses, row).map(|a| a as u64),
            kind: text(kinds, row).to_owned(),
            inlined: inlined.is_valid(row) && inlined.value(row),
        };
        each(FrameId(ids.value(row) as u64), Arc::new(frame));
    }
    Ok(())
}
