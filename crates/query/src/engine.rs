//! Fetches what a question needs from a snapshot, and hands it to the function that answers.

use spanflame_model::{ProfileType, Timestamp};
use spanflame_store::Snapshot;

use crate::catalog::{CatalogRequest, Service, TypeInfo};
use crate::search::{SearchAnswer, SearchRequest};
use crate::{Error, ProfileAnswer, ProfileRequest, Trace, TraceRequest};

/// Answers questions about one snapshot.
#[derive(Clone)]
pub struct Engine {
    snapshot: Snapshot,
    now: Timestamp,
    retention_ns: Option<u64>,
}

impl Engine {
    /// Questions about `snapshot`, as if asked when its latest data arrived.
    pub fn new(snapshot: Snapshot) -> Engine {
        let now = snapshot.last_received().unwrap_or(Timestamp::ZERO);
        Engine {
            snapshot,
            now,
            retention_ns: None,
        }
    }

    /// Asked at `now`: tells samples that are under way from samples that will never come.
    pub fn at(mut self, now: Timestamp) -> Engine {
        self.now = self.now.max(now);
        self
    }

    /// Samples are kept this long after their arrival.
    pub fn with_retention_ns(mut self, retention_ns: u64) -> Engine {
        self.retention_ns = Some(retention_ns);
        self
    }

    /// A trace with the profiles of its spans. [`Error::NotFound`] if neither span nor sample names it.
    pub async fn trace(&self, _request: &TraceRequest) -> Result<Trace, Error> {
        todo(self)
    }

    /// The profile of a selection. [`Error::NotFound`] for a trace or span that neither span nor sample names.
    pub async fn profile(&self, _request: &ProfileRequest) -> Result<ProfileAnswer, Error> {
        todo(self)
    }

    /// Spans by TraceQL.
    pub async fn search(&self, _request: &SearchRequest) -> Result<SearchAnswer, Error> {
        todo(self)
    }

    /// Services by name.
    pub async fn services(&self, _request: &CatalogRequest) -> Result<Vec<Service>, Error> {
        todo(self)
    }

    /// Profile types by name.
    pub async fn profile_types(&self, _request: &CatalogRequest) -> Result<Vec<TypeInfo>, Error> {
        todo(self)
    }

    /// Names of the labels that profiles carry, in order.
    pub async fn label_names(&self, _request: &CatalogRequest) -> Result<Vec<String>, Error> {
        todo(self)
    }

    /// Values of a label, in order.
    pub async fn label_values(&self, _request: &CatalogRequest, _name: &str) -> Result<Vec<String>, Error> {
        todo(self)
    }
}

fn todo<T>(engine: &Engine) -> Result<T, Error> {
    let _ = (&engine.snapshot, engine.now, engine.retention_ns, ProfileType::cpu());
    Err(Error::Invalid {
        field: "question",
        message: "this question has no answer yet".to_owned(),
    })
}
