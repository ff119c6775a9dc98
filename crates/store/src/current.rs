//! The version that readers get now.

use std::sync::Arc;

use parking_lot::RwLock;

use crate::version::Version;

/// Swapped whole: a reader keeps what it took.
#[derive(Default)]
pub(crate) struct SharedVersion(RwLock<Arc<Version>>);

impl SharedVersion {
    /// Begins with `version`.
    pub(crate) fn new(version: Version) -> SharedVersion {
        SharedVersion(RwLock::new(Arc::new(version)))
    }

    /// The version now.
    pub(crate) fn get(&self) -> Arc<Version> {
        Arc::clone(&self.0.read())
    }

    /// Makes the next version out of the present one.
    pub(crate) fn update(&self, next: impl FnOnce(&Version) -> Version) {
        let mut current = self.0.write();
        *current = Arc::new(next(&current));
    }
}
