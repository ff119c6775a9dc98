//! Profiles and samples of a request whose layout is known.

use std::sync::Arc;

use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::resource::v1::Resource as WireResource;
use prost::Message;
use spanflame_model::{Attributes, Link, Profile, ProfileInfo, Resource, Sample, Scope, TimeRange, Timestamp, Value, ValueType};

use super::dictionary::{Addresses, Dictionary};
use super::layout::{Layout, RawSample};
use super::raw::{RawGroup, RawProfile, RawRequest};
use crate::links::{Ids, Place, RawId, Role, label_bytes};
use crate::otlp::attributes::AttributeReader;
use crate::otlp::traces::accept_time;
use crate::wire::{Reader, Wire, each_varint};
use crate::{Decoded, Limits, Reason, Rejects, Subject};

/// Part of the scope name by which the OpenTelemetry eBPF profiler is known.
const EBPF_PROFILER_SCOPE: &str = "ebpf-profiler";

/// Turns a request into a batch.
pub(super) fn read(request: RawRequest<'_>, layout: Layout, limits: &Limits) -> Decoded {
    let mut rejects = Rejects::new();
    for text in request.malformed {
        rejects.add(Subject::Profile, Reason::Malformed, || text);
    }
    let mut reader = ProfileReader {
        dictionary: Dictionary::new(request.tables, limits, &mut rejects),
        layout,
        limits,
        scratch: RawSample::default(),
    };
    let mut profiles = Vec::with_capacity(request.profiles.len());
    let mut origin: Option<(usize, Result<Origin, Reason>)> = None;
    for raw in &request.profiles {
        let known = origin.take().filter(|(group, _)| *group == raw.group);
        let (_, found) = origin.insert(known.unwrap_or_else(|| {
            let group = &request.groups[raw.group];
            (raw.group, reader.origin(group, &mut rejects))
        }));
        let read = found
            .as_ref()
            .map_err(|reason| *reason)
            .and_then(|origin| reader.profile(raw, origin, &mut rejects));
        match read {
            Ok(profile) => profiles.extend(profile),
            Err(reason) => rejects.add(Subject::Profile, reason, || format!("a profile cannot be used: {reason}")),
        }
    }
    if layout != Layout::V1_10 && !profiles.is_empty() {
        rejects.add_many(Subject::Detail, Reason::OldLayout, profiles.len() as u64, || {
            "the message layout is that of OTLP profiles 1.8 or 1.9 and was converted".to_owned()
        });
    }
    let mut decoded = Decoded::default();
    decoded.batch.profiles = profiles;
    decoded.batch.stacks = reader.dictionary.stacks.set;
    decoded.rejects = rejects;
    decoded
}

struct ProfileReader<'a> {
    dictionary: Dictionary<'a>,
    layout: Layout,
    limits: &'a Limits,
    scratch: RawSample,
}

/// What the profiles of one group share.
struct Origin {
    resource: Arc<Resource>,
    scope: Arc<Scope>,
    pid: Option<i64>,
    addresses: Addresses,
}

/// The fields of a profile besides its samples.
#[derive(Default)]
struct Header<'a> {
    sample_type: Option<[i64; 2]>,
    period_type: [i64; 2],
    period: i64,
    start: u64,
    duration_ns: u64,
    profile_id: &'a [u8],
    attributes: Vec<i64>,
}

impl<'a> ProfileReader<'a> {
    fn origin(&self, group: &RawGroup<'_>, rejects: &mut Rejects) -> Result<Origin, Reason> {
        let resource = WireResource::decode(group.resource).map_err(|_| Reason::Malformed)?;
        let scope = InstrumentationScope::decode(group.scope).map_err(|_| Reason::Malformed)?;
        let strings = |index: i32| self.dictionary.owned_string(index.into());
        let reader = AttributeReader {
            limits: self.limits,
            strings: &strings,
        };
        let mut attributes = reader.resource(Some(resource), rejects);
        let scope = reader.scope(Some(scope), rejects);
        // One resource per process would make one series per process: the pid is a column of the samples.
        let pid = attributes.get(Place::Pid.key()).and_then(Value::to_int);
        if pid.is_some() {
            attributes.remove(Place::Pid.key());
        }
        Ok(Origin {
            resource: Arc::new(Resource::new(attributes)),
            addresses: match scope.name.contains(EBPF_PROFILER_SCOPE) {
                true => Addresses::Module,
                false => Addresses::Process,
            },
            scope: Arc::new(scope),
            pid,
        })
    }

    /// One profile; `None` if it is empty, as some senders' are between two events.
    fn profile(&mut self, raw: &RawProfile<'a>, origin: &Origin, rejects: &mut Rejects) -> Result<Option<Profile>, Reason> {
        let header = self.header(raw)?;
        let start = accept_time(header.start, self.limits).ok_or(Reason::TimeOutOfRange)?;
        let mut info = ProfileInfo {
            profile_id: header.profile_id.try_into().ok().filter(|id| *id != [0; 16]),
            name: String::new(),
            types: vec![self.value_type(header.sample_type.ok_or(Reason::NoSampleType)?)?],
            period_type: self.value_type(header.period_type)?,
            period: header.period,
            start,
            duration_ns: header.duration_ns,
            resource: Arc::clone(&origin.resource),
            scope: Arc::clone(&origin.scope),
            attributes: self.profile_attributes(&header.attributes, rejects),
        };
        if info.types[0].kind.is_empty() {
            return Err(Reason::NoSampleType);
        }
        let (samples, sent) = self.samples(raw, origin, rejects);
        if samples.is_empty() {
            return match sent {
                0 => Ok(None),
                _ => Err(Reason::NoObservation),
            };
        }
        widen(&mut info, &samples);
        Ok(Some(Profile {
            info: Arc::new(info),
            samples,
        }))
    }

    fn header(&self, raw: &RawProfile<'a>) -> Result<Header<'a>, Reason> {
        let (profile_id, attributes) = self.layout.profile_numbers();
        let mut header = Header::default();
        for field in raw.fields() {
            match field.map_err(|_| Reason::Malformed)? {
                (1, Wire::Bytes(bytes)) => header.sample_type = Some(pair(bytes)?),
                (3, Wire::Fixed64(time)) => header.start = time,
                (4, Wire::Varint(duration)) => header.duration_ns = duration,
                (5, Wire::Bytes(bytes)) => header.period_type = pair(bytes)?,
                (6, Wire::Varint(period)) => header.period = period as i64,
                (field, Wire::Bytes(bytes)) if field == profile_id => header.profile_id = bytes,
                (field, wire) if field == attributes => {
                    each_varint(field, wire, |index| header.attributes.push(index as i64)).map_err(|_| Reason::Malformed)?;
                }
                _ => {}
            }
        }
        Ok(header)
    }

    fn value_type(&self, [kind, unit]: [i64; 2]) -> Result<ValueType, Reason> {
        let kind = self.dictionary.owned_string(kind)?;
        Ok(ValueType::new(kind, self.dictionary.owned_string(unit)?))
    }

    fn profile_attributes(&mut self, indices: &[i64], rejects: &mut Rejects) -> Attributes {
        let mut pairs = Vec::new();
        for index in indices.iter().take(self.limits.attribute_count_max) {
            match self.dictionary.attribute(*index, rejects) {
                Ok(attribute) => pairs.push(attribute.label.clone()),
                Err(reason) => rejects.add(Subject::Detail, reason, || format!("a profile has attribute {index}: {reason}")),
            }
        }
        let kept = pairs
            .into_iter()
            .filter(|label| self.dictionary.stacks.budget.take(label_bytes(label)).is_ok());
        kept.map(|label| (label.key, label.value)).collect()
    }

    /// The usable samples, and how many were sent.
    fn samples(&mut self, raw: &RawProfile<'a>, origin: &Origin, rejects: &mut Rejects) -> (Vec<Sample>, usize) {
        let mut samples = Vec::new();
        let mut sent = 0;
        for bytes in raw.samples() {
            sent += 1;
            if sent > self.limits.samples_per_profile_max {
                rejects.add(Subject::Sample, Reason::TooManySamples, || {
                    format!("a profile has more than {} samples", self.limits.samples_per_profile_max)
                });
                continue;
            }
            match self.sample(bytes, origin, rejects) {
                Ok(sample) => samples.push(sample),
                Err(reason) => rejects.add(Subject::Sample, reason, || {
                    let RawSample { stack, link, .. } = &self.scratch;
                    format!("sample {} with stack {stack} and link {link}: {reason}", sent - 1)
                }),
            }
        }
        (samples, sent)
    }

    fn sample(&mut self, bytes: &[u8], origin: &Origin, rejects: &mut Rejects) -> Result<Sample, Reason> {
        let layout = self.layout;
        layout.read_sample(bytes, &mut self.scratch).map_err(|_| Reason::Malformed)?;
        let stack = self.dictionary.stack(self.scratch.stack, origin.addresses, rejects)?;
        let link = self.link(rejects)?;
        let observed = self.scratch.values.len() + self.scratch.times.len();
        self.dictionary
            .stacks
            .budget
            .take(size_of::<Sample>() + observed * size_of::<i64>())?;
        let (values, times) = observations(&self.scratch, self.limits, rejects)?;
        let mut sample = Sample {
            values,
            times,
            pid: origin.pid,
            ..Sample::new(stack)
        };
        let ids = self.labels(&mut sample, link != Link::None, rejects)?;
        sample.link = ids.into_link_beside(&link);
        Ok(sample)
    }

    /// The link of the sample; one whose ids have the wrong length is left out and counted.
    fn link(&mut self, rejects: &mut Rejects) -> Result<Link, Reason> {
        match self.dictionary.link(self.scratch.link) {
            Err(reason @ (Reason::InvalidTraceId | Reason::InvalidSpanId | Reason::Malformed)) => {
                rejects.add(Subject::Link, reason, || {
                    format!("link {} has no trace id of 16 bytes and span id of 8", self.scratch.link)
                });
                Ok(Link::None)
            }
            found => found,
        }
    }

    /// Sorts attributes into places, ids and labels. Beside a link, ids stay labels too: they may name the
    /// local root, which the link does not say.
    fn labels(&mut self, sample: &mut Sample, has_link: bool, rejects: &mut Rejects) -> Result<Ids, Reason> {
        let indices = &self.scratch.attributes;
        let excess = indices.len().saturating_sub(self.limits.attribute_count_max);
        rejects.add_many(Subject::Detail, Reason::TooManyAttributes, excess as u64, || {
            format!("a sample has {} attributes", indices.len())
        });
        let mut ids = Ids::default();
        for index in indices.iter().filter(|index| **index != 0).take(self.limits.attribute_count_max) {
            let attribute = match self.dictionary.attribute(*index, rejects) {
                Ok(attribute) => attribute,
                Err(Reason::IndexOutOfRange) => return Err(Reason::IndexOutOfRange),
                Err(reason) => {
                    rejects.add(Subject::Detail, reason, || format!("a sample has attribute {index}: {reason}"));
                    continue;
                }
            };
            let label = &attribute.label;
            let said = match attribute.role {
                Role::Plain => false,
                Role::Place(place, canonical) => place.set(sample, &label.value) && canonical,
                Role::Id(key) => {
                    !has_link
                        & ids.offer(key, RawId::of(&label.value)).unwrap_or_else(|reason| {
                            rejects.add(Subject::Link, reason, || format!("attribute {} is {:?}", label.key, label.value));
                            false
                        })
                }
            };
            if !said {
                let label = label.clone();
                self.dictionary.stacks.budget.take(label_bytes(&label))?;
                sample.labels.push(label);
            }
        }
        // Attributes are a set: their order means nothing.
        sample.labels.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(ids)
    }
}

/// Values and times in the model's form: times ascending, and as many values as times where both are given.
fn observations(raw: &RawSample, limits: &Limits, rejects: &mut Rejects) -> Result<(Vec<i64>, Vec<Timestamp>), Reason> {
    match (&raw.values[..], &raw.times[..]) {
        ([], []) => Err(Reason::NoObservation),
        ([value], []) => Ok((vec![*value], Vec::new())),
        (_, []) => Err(Reason::ValueCount),
        ([], times) => {
            let mut times = accepted(times.iter().map(|time| ((), *time)), limits, rejects)?;
            times.sort_unstable_by_key(|(_, time)| *time);
            Ok((Vec::new(), times.into_iter().map(|(_, time)| time).collect()))
        }
        // Older agents send one value for all observations.
        ([value], times) => split(accepted(times.iter().map(|time| (*value, *time)), limits, rejects)?),
        (values, times) if values.len() == times.len() => {
            split(accepted(values.iter().copied().zip(times.iter().copied()), limits, rejects)?)
        }
        _ => Err(Reason::ValueCount),
    }
}

fn split(mut pairs: Vec<(i64, Timestamp)>) -> Result<(Vec<i64>, Vec<Timestamp>), Reason> {
    pairs.sort_by_key(|(_, time)| *time);
    Ok(pairs.into_iter().unzip())
}

/// The observations whose time can be kept; fails if none can.
fn accepted<T>(pairs: impl Iterator<Item = (T, u64)>, limits: &Limits, rejects: &mut Rejects) -> Result<Vec<(T, Timestamp)>, Reason> {
    let mut kept = Vec::with_capacity(pairs.size_hint().0);
    for (value, nanos) in pairs {
        match accept_time(nanos, limits) {
            Some(time) => kept.push((value, time)),
            None => rejects.add(Subject::Detail, Reason::TimeOutOfRange, || {
                format!("an observation is at {nanos} ns")
            }),
        }
    }
    match kept.is_empty() {
        true => Err(Reason::TimeOutOfRange),
        false => Ok(kept),
    }
}

/// Makes the profile cover all its observations: buffered samples lie slightly outside what is declared.
fn widen(info: &mut ProfileInfo, samples: &[Sample]) {
    let times = || samples.iter().flat_map(|s| s.times.first().into_iter().chain(s.times.last()));
    let (Some(first), Some(last)) = (times().min(), times().max()) else {
        return;
    };
    let observed = TimeRange::lasting(*first, last.nanos_since(*first) + 1);
    let declared = (info.start != Timestamp::ZERO).then(|| info.range());
    let covered = declared.map_or(observed, |range| range.cover(observed));
    if declared != Some(covered) {
        (info.start, info.duration_ns) = (covered.start(), covered.duration_ns());
    }
}

fn pair(bytes: &[u8]) -> Result<[i64; 2], Reason> {
    let mut pair = [0; 2];
    let mut fields = Reader::new(bytes);
    while let Some((field, wire)) = fields.next().map_err(|_| Reason::Malformed)? {
        if let (1 | 2, Wire::Varint(index)) = (field, wire) {
            pair[field as usize - 1] = index as i64;
        }
    }
    Ok(pair)
}
