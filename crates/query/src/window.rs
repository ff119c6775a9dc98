//! Correlation by time and place: which samples without ids ran where a span ran.
//!
//! The finest place that has samples wins: thread, process, service instance, pod or container, host and
//! service, service. What is known of both sides must agree; a coarser match is never mixed with a finer one.

use std::sync::Arc;

use spanflame_model::{Attributes, Link, ProfileInfo, Resource, Span, TimeRange, Value};
use spanflame_store::StoredSample;

use crate::links::Precision;
use crate::measure::TypeSelector;
use crate::scoped::{Draft, Keep};

/// By what a sample without ids was matched to a span, finest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WindowMatch {
    /// The thread on which the span ran.
    Thread,
    /// Its process.
    Process,
    /// Its `service.instance.id`.
    Instance,
    /// Its pod or container.
    Container,
    /// Its service on its host.
    Host,
    /// Its service, anywhere.
    Service,
}

impl WindowMatch {
    /// The word used in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            WindowMatch::Thread => "thread",
            WindowMatch::Process => "process",
            WindowMatch::Instance => "instance",
            WindowMatch::Container => "container",
            WindowMatch::Host => "host",
            WindowMatch::Service => "service",
        }
    }
}

/// Where a span ran, as far as it says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    service: String,
    thread_id: Option<i64>,
    pid: Option<i64>,
    instance: Option<(&'static str, String)>,
    container: Option<(&'static str, String)>,
    host: Option<(&'static str, String)>,
}

const HOST_KEYS: [&str; 2] = ["host.id", "host.name"];
const CONTAINER_KEYS: [&str; 3] = ["container.id", "k8s.pod.uid", "k8s.pod.name"];

impl Place {
    pub(crate) fn of_span(span: &Span) -> Place {
        let mut place = Place::of_resource(&span.resource);
        place.thread_id = span.attributes.get("thread.id").and_then(Value::to_int);
        place
    }

    /// Whether samples of other services may have run here too, e.g. those of an agent that knows only pids.
    pub(crate) fn is_wider_than_service(&self) -> bool {
        self.container.is_some() || (self.pid.is_some() && self.host.is_some())
    }

    pub(crate) fn service(&self) -> &str {
        &self.service
    }

    /// Whether a sample says that it ran in another process. Process ids are compared on one host and outside of containers,
    /// which have their own.
    pub(crate) fn is_elsewhere(&self, stored: &StoredSample) -> bool {
        let other = Place::of_sample(stored);
        let same_host = agree_by_key(&self.host, &other.host);
        let pids_are_comparable = same_host == Some(true) && self.container.is_none() && other.container.is_none();
        agree(&self.instance, &other.instance) == Some(false)
            || agree_by_key(&self.container, &other.container) == Some(false)
            || same_host == Some(false)
            || (pids_are_comparable && agree(&self.pid, &other.pid) == Some(false))
    }

    /// How closely a sample matches; `None` if it ran elsewhere.
    pub(crate) fn matches(&self, stored: &StoredSample) -> Option<WindowMatch> {
        let other = Place::of_sample(stored);
        let same_service = self.service == other.service;
        let same_instance = agree(&self.instance, &other.instance);
        let same_container = agree_by_key(&self.container, &other.container);
        let same_host = agree_by_key(&self.host, &other.host);
        let somewhere_else = [same_instance, same_container, same_host].contains(&Some(false));
        // A pid alone says little: containers reuse small ones. Something else must tie the two together.
        let tied = same_service || [same_instance, same_container, same_host].contains(&Some(true));
        let same_process = !somewhere_else && tied && agree(&self.pid, &other.pid) == Some(true);
        let same_thread = (same_process || same_instance == Some(true)) && agree(&self.thread_id, &stored.sample.thread_id) == Some(true);
        let levels = [
            (same_thread, WindowMatch::Thread),
            (same_process, WindowMatch::Process),
            (same_instance == Some(true), WindowMatch::Instance),
            (same_container == Some(true), WindowMatch::Container),
            (same_service && same_host == Some(true), WindowMatch::Host),
            (same_service, WindowMatch::Service),
        ];
        levels.into_iter().find(|(holds, _)| *holds).map(|(_, level)| level)
    }

    fn of_sample(stored: &StoredSample) -> Place {
        let mut place = Place::of_resource(&stored.info.resource);
        place.pid = stored.sample.pid.or(place.pid);
        place
    }

    fn of_resource(resource: &Resource) -> Place {
        let attributes = resource.attributes();
        Place {
            service: resource.service().to_owned(),
            thread_id: None,
            pid: pid_of(resource),
            instance: first(attributes, &["service.instance.id"]),
            container: first(attributes, &CONTAINER_KEYS),
            host: first(attributes, &HOST_KEYS),
        }
    }
}

/// The process of a resource, if it is one.
pub(crate) fn pid_of(resource: &Resource) -> Option<i64> {
    resource.attributes().get("process.pid").and_then(Value::to_int)
}

/// What tells one instance of a service from another: its own id, else its container, else its host.
pub(crate) fn instance_of(resource: &Resource) -> Option<String> {
    let keys = ["service.instance.id", "k8s.pod.name", "container.id", "host.name", "host.id"];
    let mut known = keys.iter().filter_map(|key| resource.attributes().get_str(key));
    known.find(|text| !text.is_empty()).map(str::to_owned)
}

/// The first of the keys that is there, and its value.
fn first(attributes: &Attributes, keys: &[&'static str]) -> Option<(&'static str, String)> {
    keys.iter().find_map(|key| {
        let text = attributes.get_str(key).filter(|text| !text.is_empty())?;
        Some((*key, text.to_owned()))
    })
}

/// `None` where one side does not say, or both say something else.
fn agree_by_key(a: &Option<(&'static str, String)>, b: &Option<(&'static str, String)>) -> Option<bool> {
    let (a, b) = a.as_ref().zip(b.as_ref())?;
    (a.0 == b.0).then(|| a.1 == b.1)
}

/// `None` where one side does not say.
fn agree<T: PartialEq>(a: &Option<T>, b: &Option<T>) -> Option<bool> {
    a.as_ref().zip(b.as_ref()).map(|(a, b)| a == b)
}

/// Samples without ids, by how closely they match one span. Only the closest so far are kept.
pub(crate) struct WindowCount<'a> {
    span: &'a Span,
    place: Place,
    selector: &'a TypeSelector,
    range: TimeRange,
    keep: Keep,
    best: Option<(WindowMatch, Draft)>,
    recent: Option<RecentLevel>,
}

/// How closely the sample that was looked at last matched: those of one thread come together.
struct RecentLevel {
    info: Arc<ProfileInfo>,
    pid: Option<i64>,
    thread_id: Option<i64>,
    level: Option<WindowMatch>,
}

impl<'a> WindowCount<'a> {
    /// Counts what ran where `span` ran, in `range`.
    pub(crate) fn new(span: &'a Span, selector: &'a TypeSelector, range: TimeRange, keep: impl Into<Keep>) -> WindowCount<'a> {
        WindowCount {
            place: Place::of_span(span),
            span,
            selector,
            range,
            keep: keep.into(),
            best: None,
            recent: None,
        }
    }

    /// Counts a sample if it names no span, or this one among others.
    pub(crate) fn add(&mut self, stored: &StoredSample) {
        let may_be_ours = match &stored.sample.link {
            Link::None => true,
            Link::Candidates { span_ids, .. } => span_ids.contains(&self.span.span_id),
            Link::One { .. } => false,
        };
        let Some(level) = self.level(stored).filter(|_| may_be_ours) else {
            return;
        };
        if self.best.as_ref().is_some_and(|(best, _)| *best < level) {
            return;
        }
        if self.best.as_ref().is_none_or(|(best, _)| level < *best) {
            let mut draft = Draft::new(self.selector, Some(self.range), self.keep);
            if draft.add(stored, Precision::Window) > 0 {
                self.best = Some((level, draft));
            } else {
                return;
            }
        } else if let Some((_, draft)) = &mut self.best {
            draft.add(stored, Precision::Window);
        }
        if let (Some((_, draft)), Link::Candidates { .. }) = (&mut self.best, &stored.sample.link) {
            draft.evidence.ambiguous += draft.gather.observe(stored);
        }
    }

    /// Whether a search among samples of other services could find something closer.
    pub(crate) fn may_be_closer_elsewhere(&self) -> bool {
        let is_close = self.best.as_ref().is_some_and(|(best, _)| *best <= WindowMatch::Process);
        !is_close && self.place.is_wider_than_service()
    }

    pub(crate) fn service(&self) -> &str {
        self.place.service()
    }

    /// The closest match, or an empty draft.
    pub(crate) fn finish(self) -> Draft {
        let (level, mut draft) = match self.best {
            Some((level, draft)) => (Some(level), draft),
            None => (None, Draft::new(self.selector, Some(self.range), self.keep)),
        };
        draft.settle();
        draft.evidence.window_match = level;
        draft
    }

    fn level(&mut self, stored: &StoredSample) -> Option<WindowMatch> {
        let (pid, thread_id) = (stored.sample.pid, stored.sample.thread_id);
        if let Some(recent) = &self.recent
            && Arc::ptr_eq(&recent.info, &stored.info)
            && (recent.pid, recent.thread_id) == (pid, thread_id)
        {
            return recent.level;
        }
        let level = self.place.matches(stored);
        self.recent = Some(RecentLevel {
            info: stored.info.clone(),
            pid,
            thread_id,
            level,
        });
        level
    }
}

#[cfg(test)]
mod tests;
