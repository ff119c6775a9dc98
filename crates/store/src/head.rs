//! Rows in memory: what was acknowledged and is in no file yet.

use arrow::record_batch::RecordBatch;
use spanflame_model::Tenant;

use crate::schema::Table;

/// Rows that wait for their flush. Append-only; freezing stops nothing, it lists what there is.
#[derive(Default)]
pub(crate) struct Head {}

/// Everything in a head, for a flush.
pub(crate) struct FrozenHead {
    /// By tenant and table; no empty lists.
    pub(crate) rows: Vec<(Tenant, Table, Vec<RecordBatch>)>,
}

impl Head {
    /// An empty head.
    pub(crate) fn new() -> Head {
        Head::default()
    }

    /// Adds the rows of one append; all become visible at once. Stacks and frames that this head already has
    /// are left out.
    pub(crate) fn push(&self, _tenant: &Tenant, _rows: Vec<(Table, RecordBatch)>) {
        unimplemented!()
    }

    /// Memory held by its rows.
    pub(crate) fn bytes(&self) -> u64 {
        unimplemented!()
    }

    /// All rows, for a flush. The caller pushes no more.
    pub(crate) fn freeze(&self) -> FrozenHead {
        unimplemented!()
    }
}
