//! The questions: what a span, a trace or a service was doing, and how sure the answer is.
//!
//! [`Engine`] takes a [`spanflame_store::Snapshot`] and answers request structs with values that carry their
//! evidence. Nothing here knows a protocol. Each question is a pure function over spans, samples and stacks
//! (`TraceData`, `Gather`, `CallTree`); the engine only fetches what they need.

mod attributes;
mod catalog;
mod compare;
mod coverage;
mod engine;
mod error;
mod expired;
mod gather;
mod histogram;
mod links;
mod measure;
mod metrics;
mod named;
mod operations;
mod profile;
mod reasons;
mod rows;
mod scoped;
mod search;
mod selected;
mod selector;
mod series;
mod tags;
mod timeline;
mod trace;
mod traces;
mod tree;
mod view;
mod window;

pub mod stats;
pub mod traceql;

pub use attributes::{
    AttributeName, AttributeScope, AttributeValue, AttributesComparison, AttributesComparisonRequest, AttributesRequest, Listed,
    OverRepresented, SpanSet, ValuesRequest,
};
pub use catalog::{CatalogRequest, ProfileSeries, Quantiles, Service, ServiceSeries, Steps, TypeInfo};
pub use compare::{CompareRequest, CompareSet, CompareSide, ComparedCost, ComparedFunction, Comparison, Verdict};
pub use engine::Engine;
pub use error::{Error, ErrorKind};
pub use histogram::{Cell, Histogram, HistogramRequest};
pub use links::{NEAR_NS, Owner, Precision, TraceIndex};
pub use measure::{Measure, TypeSelector};
pub use metrics::{Exemplar, MetricSeries, MetricsAnswer, MetricsRequest};
pub use operations::{Call, Operation};
pub use profile::{Evidence, PrecisionCounts, ProfileAnswer, ProfileRequest, Row, Rows, Scope, Selection};
pub use reasons::{Reason, ReasonCode};
pub use search::{FoundSpan, Order, SearchAnswer, SearchRequest};
pub use selected::{RangeRule, SelectedProfile, SelectedRequest, SelectedSpans, SpanSelection};
pub use selector::{LabelSelector, prometheus_name};
pub use series::{Item, ItemId, ItemKind, SeriesAnswer, SeriesRequest, StepSeries};
pub use tags::{Tags, text_of};
pub use timeline::{Moment, Timeline, TimelineRequest, TimelineThread};
pub use trace::{SpanProfile, Trace, TraceData, TraceRequest, TraceSpan};
pub use traces::{FoundTrace, MatchedSpan, SpanCount, TracesRequest};
pub use tree::{CallTree, NODES_MAX, ShownFrame, StackTotal};
pub use view::{Viewed, view};
pub use window::WindowMatch;

pub use spanflame_store::StoredVolume;
