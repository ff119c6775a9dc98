//! `push.v1.PushRequest`: series, each with labels and pprofs, in protobuf or JSON.
//!
//! ```text
//! PushRequest { series = 1 { labels = 1 { name = 1, value = 2 }, samples = 2 { raw_profile = 1, ID = 2 } } }
//! ```
//!
//! Every pprof stands for itself: one that cannot be read is counted as a rejected profile and the others are kept.
//! The request is read field by field, so that a message of empty series costs no memory. Ids of samples say nothing:
//! clients make new ones when they send a profile again.

use std::borrow::Cow;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;

use super::{Identity, Series};
use crate::wire::{Reader, WireError};
use crate::{Decoded, Error, Limits, Reason, Subject, Upload, pprof};

const FORMAT: &str = "push request";

/// Most profiles of one request.
const PROFILES_MAX: usize = 100_000;

/// Reads a request in protobuf.
pub fn decode_protobuf(bytes: &[u8], limits: &Limits) -> Result<Decoded, Error> {
    let malformed = |error: WireError| Error::malformed(FORMAT, error);
    let mut batch = PushReader::new(limits);
    let mut fields = Reader::new(bytes);
    let mut index = 0;
    while let Some((field, wire)) = fields.next().map_err(malformed)? {
        if field == 1 {
            let message = wire.bytes(field).map_err(malformed)?;
            match labels(message) {
                Ok(series) => batch.series(index, series, raw_profiles(message)),
                Err(error) => batch.refuse(Reason::Malformed, || format!("series {index}: {error}")),
            }
            index += 1;
        }
    }
    Ok(batch.decoded)
}

/// Reads a request in JSON.
pub fn decode_json(bytes: &[u8], limits: &Limits) -> Result<Decoded, Error> {
    let request: JsonRequest<'_> = serde_json::from_slice(bytes).map_err(|e| Error::malformed(FORMAT, e))?;
    let mut batch = PushReader::new(limits);
    for (index, sent) in request.series.into_iter().enumerate() {
        let mut series = Series::default();
        sent.labels.iter().for_each(|label| series.push(&label.name, &label.value));
        let profiles = sent.samples.iter().map(|sample| {
            let profile = BASE64.decode(sample.raw_profile.as_bytes());
            profile.map(Cow::Owned).map_err(|error| format!("rawProfile is no base64: {error}"))
        });
        batch.series(index, series, profiles);
    }
    Ok(batch.decoded)
}

/// Base64 with or without padding, as protobuf's JSON allows.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

#[derive(Deserialize)]
struct JsonRequest<'a> {
    #[serde(borrow, default)]
    series: Vec<JsonSeries<'a>>,
}

#[derive(Deserialize)]
struct JsonSeries<'a> {
    #[serde(borrow, default)]
    labels: Vec<JsonLabel<'a>>,
    #[serde(borrow, default)]
    samples: Vec<JsonSample<'a>>,
}

#[derive(Deserialize)]
struct JsonLabel<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    value: Cow<'a, str>,
}

#[derive(Deserialize)]
struct JsonSample<'a> {
    #[serde(borrow, default, rename = "rawProfile", alias = "raw_profile")]
    raw_profile: Cow<'a, str>,
}

/// The labels of a series.
fn labels(message: &[u8]) -> Result<Series, WireError> {
    let mut series = Series::default();
    let mut fields = Reader::new(message);
    while let Some((field, wire)) = fields.next()? {
        if field != 1 {
            continue;
        }
        let (mut name, mut value) = (Cow::Borrowed(""), Cow::Borrowed(""));
        let mut pair = Reader::new(wire.bytes(field)?);
        while let Some((field, wire)) = pair.next()? {
            match field {
                1 => name = String::from_utf8_lossy(wire.bytes(field)?),
                2 => value = String::from_utf8_lossy(wire.bytes(field)?),
                _ => {}
            }
        }
        series.push(&name, &value);
    }
    Ok(series)
}

/// The pprofs of a series whose fields were read through before.
fn raw_profiles(message: &[u8]) -> impl Iterator<Item = Result<Cow<'_, [u8]>, String>> {
    let mut fields = Reader::new(message);
    std::iter::from_fn(move || {
        loop {
            match fields.next() {
                Ok(Some((2, wire))) => {
                    let profile = wire.bytes(2).and_then(raw_profile);
                    return Some(profile.map(Cow::Borrowed).map_err(|error| error.to_string()));
                }
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return None,
            }
        }
    })
}

fn raw_profile(sample: &[u8]) -> Result<&[u8], WireError> {
    let mut fields = Reader::new(sample);
    let mut profile: &[u8] = &[];
    while let Some((field, wire)) = fields.next()? {
        if field == 1 {
            profile = wire.bytes(field)?;
        }
    }
    Ok(profile)
}

/// Collects profile after profile.
struct PushReader {
    /// What the rest of the request may cost.
    left: Limits,
    profiles: usize,
    decoded: Decoded,
}

impl PushReader {
    fn new(limits: &Limits) -> PushReader {
        PushReader {
            left: *limits,
            profiles: 0,
            decoded: Decoded::default(),
        }
    }

    fn refuse(&mut self, reason: Reason, example: impl FnOnce() -> String) {
        self.decoded.rejects.add(Subject::Profile, reason, example);
    }

    fn series<'p>(&mut self, index: usize, series: Series, profiles: impl Iterator<Item = Result<Cow<'p, [u8]>, String>>) {
        let identity = match series.identity(&self.left) {
            Ok(identity) => identity,
            Err(reason) => {
                let count = profiles.count() as u64;
                self.decoded.rejects.add_many(Subject::Profile, reason, count, || {
                    format!("series {index} has too many or too long labels")
                });
                return;
            }
        };
        for (at, profile) in profiles.enumerate() {
            self.profiles += 1;
            if self.profiles > PROFILES_MAX {
                self.refuse(Reason::TooManyProfiles, || {
                    format!("series {index} sample {at}: the limit is {PROFILES_MAX} profiles")
                });
                continue;
            }
            match profile {
                Ok(profile) => self.profile(&format_args!("series {index} sample {at}"), &identity, &profile),
                Err(error) => self.refuse(Reason::Malformed, || format!("series {index} sample {at}: {error}")),
            }
        }
    }

    fn profile(&mut self, place: &dyn std::fmt::Display, identity: &Identity, bytes: &[u8]) {
        match pprof::decode_within(bytes, &Upload::default(), &mut self.left) {
            Ok(Decoded { mut batch, rejects }) => {
                identity.apply(&mut batch);
                let kept = !batch.profiles.is_empty();
                if !kept && rejects.samples() > 0 {
                    let message = rejects.message().unwrap_or_default();
                    self.refuse(Reason::NoSampleKept, || format!("{place}: no sample could be kept: {message}"));
                }
                self.decoded.rejects.merge(rejects);
                self.decoded.batch.profiles.append(&mut batch.profiles);
                self.decoded.batch.stacks.merge(batch.stacks);
            }
            Err(error) => {
                let reason = match error {
                    Error::TooLarge { .. } => Reason::TooLarge,
                    Error::Unsupported { .. } => Reason::UnsupportedFormat,
                    _ => Reason::Malformed,
                };
                self.refuse(reason, || format!("{place}: {error}"));
            }
        }
    }
}
