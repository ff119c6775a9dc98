//! Which of the protocol's unmarked layouts a request has.
//!
//! | | 1.8 | 1.9 | 1.10 and later |
//! |---|---|---|---|
//! | `Sample` 2 | values | values | attribute indices |
//! | `Sample` 3 | attribute indices | attribute indices | link index |
//! | `Sample` 4 | link index | link index | values |
//! | `Profile` 7.. | comments, profile id, .. | profile id, .. | profile id, .. |
//!
//! A wire type alone misleads: the Java agent writes layout 1.10 with unpacked `values`, which looks like
//! a 1.9 link index. So every sample is tried both ways - do indices lie in their tables, do values and
//! times go together? - and the reading that fits more of them wins; where both fit, it is 1.10. One
//! request comes from one sender, so one layout is chosen for all of it.

use spanflame_model::TraceId;

use super::raw::{RawProfile, RawRequest};
use crate::Error;
use crate::wire::{Reader, Wire, WireError, each_fixed64, each_varint};

/// How the fields of `Sample` and `Profile` are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    V1_8,
    V1_9,
    V1_10,
}

/// One sample as its fields say, with lists that are reused from sample to sample.
#[derive(Debug, Default)]
pub(super) struct RawSample {
    pub(super) stack: i64,
    pub(super) link: i64,
    pub(super) attributes: Vec<i64>,
    pub(super) values: Vec<i64>,
    pub(super) times: Vec<u64>,
}

/// Numbers of the fields of `Sample` that moved.
struct Numbers {
    attributes: u32,
    link: u32,
    values: u32,
}

impl Layout {
    /// The layout of a request. Fails for those before 1.8, whose stacks are kept in another way.
    pub(super) fn detect(request: &RawRequest<'_>) -> Result<Layout, Error> {
        if is_traces(request) {
            return Err(Error::Unsupported {
                found: "a request of OTLP traces".to_owned(),
                expected: "one of profiles: traces go to /v1/traces",
            });
        }
        if let Some(version) = before_1_8(request) {
            return Err(too_old(version));
        }
        let mut votes = Votes::default();
        let mut is_1_8 = false;
        for profile in &request.profiles {
            is_1_8 |= has_marks_of_1_8(profile);
            for sample in profile.samples() {
                votes.count(sample, request);
            }
        }
        Ok(match is_1_8 {
            true if votes.old >= votes.new => Layout::V1_8,
            _ if votes.old > votes.new => Layout::V1_9,
            _ => Layout::V1_10,
        })
    }

    fn numbers(self) -> Numbers {
        match self {
            Layout::V1_8 | Layout::V1_9 => Numbers {
                values: 2,
                attributes: 3,
                link: 4,
            },
            Layout::V1_10 => Numbers {
                attributes: 2,
                link: 3,
                values: 4,
            },
        }
    }

    /// Reads a sample in this layout.
    pub(super) fn read_sample(self, bytes: &[u8], sample: &mut RawSample) -> Result<(), WireError> {
        let numbers = self.numbers();
        sample.clear();
        let mut fields = Reader::new(bytes);
        while let Some((field, wire)) = fields.next()? {
            match field {
                1 => sample.stack = wire.number(field)? as i64,
                5 => each_fixed64(field, wire, |time| sample.times.push(time))?,
                _ if field == numbers.link => sample.link = wire.number(field)? as i64,
                _ if field == numbers.values => each_varint(field, wire, |value| sample.values.push(value as i64))?,
                _ if field == numbers.attributes => each_varint(field, wire, |index| sample.attributes.push(index as i64))?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Numbers of `Profile`'s fields for the profile id and the attribute indices.
    pub(super) fn profile_numbers(self) -> (u32, u32) {
        match self {
            Layout::V1_8 => (8, 12),
            Layout::V1_9 | Layout::V1_10 => (7, 11),
        }
    }
}

impl RawSample {
    fn clear(&mut self) {
        (self.stack, self.link) = (0, 0);
        self.attributes.clear();
        self.values.clear();
        self.times.clear();
    }

    /// Whether values and times go together in one of the ways senders use.
    fn has_known_shape(&self) -> bool {
        match (self.values.len(), self.times.len()) {
            (0, times) => times > 0,
            (1, _) => true,
            (values, times) => values == times,
        }
    }
}

/// Refuses 1.6, whose tables lie in the request itself: its fields would be taken for those of a dictionary.
pub(super) fn refuse_1_6(request: &[u8]) -> Result<(), Error> {
    let mut fields = Reader::new(request);
    while let Ok(Some((field, _))) = fields.next() {
        if let 3..=8 = field {
            return Err(too_old("1.6"));
        }
    }
    Ok(())
}

/// Names the version of a layout that is not read.
pub(in crate::otlp) fn too_old(version: &str) -> Error {
    Error::Unsupported {
        found: format!("the message layout of OTLP profiles {version}"),
        expected: "that of 1.8 or later: update the sender",
    }
}

/// How many samples can be read in the old and in the new numbering.
#[derive(Default)]
struct Votes {
    old: usize,
    new: usize,
    scratch: RawSample,
}

impl Votes {
    fn count(&mut self, sample: &[u8], request: &RawRequest<'_>) {
        self.new += usize::from(self.fits(Layout::V1_10, sample, request));
        self.old += usize::from(self.fits(Layout::V1_9, sample, request));
    }

    fn fits(&mut self, layout: Layout, bytes: &[u8], request: &RawRequest<'_>) -> bool {
        let sample = &mut self.scratch;
        // An attribute index of 0 would name nothing, so no sender writes it.
        let is_attribute = |index: &i64| (1..request.tables.attributes.len() as i64).contains(index);
        layout.read_sample(bytes, sample).is_ok()
            && sample.has_known_shape()
            && (0..request.tables.links.len().max(1) as i64).contains(&sample.link)
            && sample.attributes.iter().all(is_attribute)
    }
}

/// Fields of `Profile` that tell 1.8 from 1.9: the profile id in field 8, where there is now a count, and
/// attributes in field 12, where there is now nothing.
fn has_marks_of_1_8(profile: &RawProfile<'_>) -> bool {
    profile
        .fields()
        .any(|field| matches!(field, Ok((8, Wire::Bytes(_)) | (9, Wire::Varint(_)) | (12, _))))
}

/// Whether these are traces: what would be profiles have a trace id where their types are, and the times of a span.
fn is_traces(request: &RawRequest<'_>) -> bool {
    let is_span = |profile: &RawProfile<'_>| {
        let has = |wanted: fn(u32, Wire<'_>) -> bool| profile.fields().any(|field| field.is_ok_and(|(field, wire)| wanted(field, wire)));
        has(|field, wire| matches!((field, wire), (1, Wire::Bytes(id)) if id.len() == TraceId::LEN))
            && has(|field, wire| matches!((field, wire), (7, Wire::Fixed64(_))))
    };
    !request.has_dictionary && !request.profiles.is_empty() && request.profiles.iter().all(is_span)
}

/// The version of a layout older than 1.8, by the fields that only that one has.
fn before_1_8(request: &RawRequest<'_>) -> Option<&'static str> {
    let has = |wanted: fn(u32, Wire<'_>) -> bool| {
        let mut profiles = request.profiles.iter();
        profiles.any(|profile| profile.fields().any(|field| field.is_ok_and(|(field, wire)| wanted(field, wire))))
    };
    // Tables inside the profile: strings in field 10, times in 11 to 14.
    if !request.has_dictionary && has(|field, wire| matches!((field, wire), (13.., _) | (11 | 12, Wire::Varint(_)))) {
        return Some("1.5 or before");
    }
    // Attributes with their key as text; a list of locations where there is now the time.
    let key_is_text = |entry: &[u8]| matches!(Reader::new(entry).next(), Ok(Some((1, Wire::Bytes(key)))) if !key.is_empty());
    let is_1_7 =
        request.tables.attributes.iter().any(|entry| key_is_text(entry)) || has(|field, wire| matches!((field, wire), (3, Wire::Bytes(_))));
    is_1_7.then_some("1.7")
}
