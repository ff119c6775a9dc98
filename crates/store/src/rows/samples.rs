//! Samples, with what their profile says, to rows and back.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, Int64Array, ListArray, StringArray};
use arrow::record_batch::RecordBatch;
use serde::{Deserialize, Serialize};
use spanflame_model::{
    Claim, Fingerprint, Label, Link, Profile, ProfileInfo, Resource, Sample, Scope, SpanId, StackId, Tenant, Timestamp, TraceId, ValueType,
};

use super::Unreadable;
use super::column::{self, column, id, list_array, number, numbers, text, timestamp};
use super::json::{self, JsonAttributes, JsonValue, OwnedAttributes, OwnedValue};
use super::spans::{RepeatedText, read_resource, write_resource};
use crate::schema::{Table, sample};
use crate::{Error, StoredSample};

/// Rows of `samples`: one per sample.
pub(super) fn encode(profiles: &[Profile], hashes: &[Fingerprint], received: Timestamp) -> Result<RecordBatch, Error> {
    debug_assert_eq!(profiles.len(), hashes.len());
    let rows: Vec<(&Profile, Fingerprint, &Sample)> = profiles
        .iter()
        .zip(hashes)
        .flat_map(|(profile, hash)| profile.samples.iter().map(move |sample| (profile, *hash, sample)))
        .collect();
    let samples = || rows.iter().map(|(_, _, sample)| *sample);
    let infos = || rows.iter().map(|(profile, _, _)| &profile.info);
    let texts = ProfileTexts::of(profiles)?;
    let optional_json = |text: &dyn Fn(&Sample) -> Option<Result<String, Error>>| -> Result<ArrayRef, Error> {
        let texts: Vec<Option<String>> = samples().map(|sample| text(sample).transpose()).collect::<Result<_, _>>()?;
        Ok(Arc::new(StringArray::from(texts)))
    };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(
            samples()
                .map(|s| s.link.trace_id().map(|id| *id.as_bytes()))
                .collect::<BinaryArray>(),
        ),
        Arc::new(
            samples()
                .map(|s| s.link.span_id().map(|id| *id.as_bytes()))
                .collect::<BinaryArray>(),
        ),
        Arc::new(samples().map(claim_word).collect::<StringArray>()),
        optional_json(&write_candidates)?,
        Arc::new(BinaryArray::from_iter_values(rows.iter().map(|(_, hash, _)| hash.0.to_be_bytes()))),
        Arc::new(infos().map(|info| info.profile_id).collect::<BinaryArray>()),
        texts.profiles,
        Arc::new(Int64Array::from_iter_values(infos().map(|info| info.start.unix_nanos()))),
        Arc::new(Int64Array::from_iter_values(
            infos().map(|info| i64::try_from(info.duration_ns).unwrap_or(i64::MAX)),
        )),
        Arc::new(Int64Array::from_iter_values(samples().map(|s| s.stack.0 as i64))),
        value_lists(&rows),
        time_lists(&rows),
        Arc::new(samples().map(|s| s.thread_id).collect::<Int64Array>()),
        Arc::new(samples().map(|s| s.thread_name.as_deref()).collect::<StringArray>()),
        Arc::new(samples().map(|s| s.pid).collect::<Int64Array>()),
        optional_json(&write_labels)?,
        Arc::new(StringArray::from_iter_values(infos().map(|info| info.resource.service()))),
        texts.resources,
        column::received_array(received, rows.len()),
    ];
    column::batch(Table::Samples, columns)
}

/// Rows of `samples` to samples. Keeps what it parsed: samples of one profile share its info.
pub(crate) struct SampleDecoder {
    tenant: Tenant,
    infos: HashMap<[u8; 16], Arc<ProfileInfo>>,
    profiles: HashMap<Box<str>, ProfileIn>,
    resources: HashMap<Box<str>, Arc<Resource>>,
    last: Option<([u8; 16], Arc<ProfileInfo>)>,
}

impl SampleDecoder {
    /// A decoder of one tenant's rows.
    pub(crate) fn new(tenant: Tenant) -> SampleDecoder {
        SampleDecoder {
            tenant,
            infos: HashMap::new(),
            profiles: HashMap::new(),
            resources: HashMap::new(),
            last: None,
        }
    }

    /// Appends the samples at `rows` to `out`.
    pub(crate) fn decode(
        &mut self,
        batch: &RecordBatch,
        rows: impl IntoIterator<Item = usize>,
        out: &mut Vec<StoredSample>,
    ) -> Result<(), Unreadable> {
        let columns = Columns::of(batch)?;
        for row in rows {
            out.push(self.decode_row(&columns, row)?);
        }
        Ok(())
    }

    fn decode_row(&mut self, c: &Columns<'_>, row: usize) -> Result<StoredSample, Unreadable> {
        let hash: [u8; 16] = id(c.profile_hash, row, "profile hash", |bytes| bytes.try_into().ok())?
            .ok_or_else(|| Unreadable::new(format!("row {row} has no profile hash")))?;
        let sample = Sample {
            stack: StackId(c.stack_id.value(row) as u64),
            link: read_link(c, row)?,
            values: numbers(c.values, row)?.to_vec(),
            times: numbers(c.times, row)?
                .iter()
                .map(|nanos| timestamp(*nanos))
                .collect::<Result<_, _>>()?,
            thread_id: number(c.thread_id, row),
            thread_name: (!arrow::array::Array::is_null(c.thread_name, row)).then(|| text(c.thread_name, row).to_owned()),
            pid: number(c.pid, row),
            labels: read_labels(text(c.labels, row))?,
        };
        Ok(StoredSample {
            tenant: self.tenant.clone(),
            received: timestamp(c.received.value(row))?,
            profile: Fingerprint(u128::from_be_bytes(hash)),
            info: self.info(c, row, hash)?,
            sample,
        })
    }

    fn info(&mut self, c: &Columns<'_>, row: usize, hash: [u8; 16]) -> Result<Arc<ProfileInfo>, Unreadable> {
        if let Some((last, info)) = &self.last
            && *last == hash
        {
            return Ok(Arc::clone(info));
        }
        let info = match self.infos.get(&hash) {
            Some(info) => Arc::clone(info),
            None => {
                let profile_id = id(c.profile_id, row, "profile id", |bytes| bytes.try_into().ok())?;
                let times = (c.profile_start.value(row), c.profile_duration.value(row));
                self.read_info((text(c.profile, row), text(c.resource, row)), times, profile_id)?
            }
        };
        self.infos.entry(hash).or_insert_with(|| Arc::clone(&info));
        self.last = Some((hash, Arc::clone(&info)));
        Ok(info)
    }

    fn read_info(
        &mut self,
        (profile_json, resource_json): (&str, &str),
        (start, duration_ns): (i64, i64),
        profile_id: Option<[u8; 16]>,
    ) -> Result<Arc<ProfileInfo>, Unreadable> {
        let resource = match self.resources.get(resource_json) {
            Some(resource) => Arc::clone(resource),
            None => read_resource(resource_json)?,
        };
        self.resources.entry(resource_json.into()).or_insert_with(|| Arc::clone(&resource));
        if !self.profiles.contains_key(profile_json) {
            self.profiles
                .insert(profile_json.into(), json::read(sample::PROFILE, profile_json)?);
        }
        let profile = &self.profiles[profile_json];
        Ok(Arc::new(ProfileInfo {
            profile_id,
            name: profile.name.clone(),
            types: profile.types.iter().map(|(kind, unit)| ValueType::new(kind, unit)).collect(),
            period_type: ValueType::new(&profile.period_type.0, &profile.period_type.1),
            period: profile.period,
            start: timestamp(start)?,
            duration_ns: u64::try_from(duration_ns).unwrap_or(0),
            resource,
            scope: Arc::new(Scope {
                name: profile.scope.clone(),
                version: profile.scope_version.clone(),
                attributes: profile.scope_attributes.0.clone(),
            }),
            attributes: profile.attributes.0.clone(),
        }))
    }
}

/// Rows of `samples` to what their profiles say of sender and types, each different one once.
pub(crate) struct SenderDecoder {
    samples: SampleDecoder,
    seen: HashMap<Box<str>, HashSet<Box<str>>>,
}

impl SenderDecoder {
    /// The columns that it reads.
    pub(crate) const COLUMNS: [&'static str; 4] = [sample::PROFILE, sample::PROFILE_START, sample::PROFILE_DURATION, sample::RESOURCE];

    /// A decoder of one tenant's rows.
    pub(crate) fn new(tenant: Tenant) -> SenderDecoder {
        SenderDecoder {
            samples: SampleDecoder::new(tenant),
            seen: HashMap::new(),
        }
    }

    /// What is new in a batch. Rows of one sender lie together or take turns, so most of them are told by the text
    /// before.
    pub(crate) fn decode(&mut self, batch: &RecordBatch) -> Result<Vec<Arc<ProfileInfo>>, Unreadable> {
        let (profiles, resources): (&StringArray, &StringArray) = (column(batch, sample::PROFILE)?, column(batch, sample::RESOURCE)?);
        let (starts, durations): (&Int64Array, &Int64Array) =
            (column(batch, sample::PROFILE_START)?, column(batch, sample::PROFILE_DURATION)?);
        let mut new = Vec::new();
        let mut last = ("", "");
        for row in 0..batch.num_rows() {
            let texts = (text(profiles, row), text(resources, row));
            if texts == last {
                continue;
            }
            last = texts;
            let known = self.seen.get(texts.0).is_some_and(|resources| resources.contains(texts.1));
            if !known {
                self.seen.entry(texts.0.into()).or_default().insert(texts.1.into());
                new.push(self.samples.read_info(texts, (starts.value(row), durations.value(row)), None)?);
            }
        }
        Ok(new)
    }
}

struct Columns<'a> {
    trace_id: &'a BinaryArray,
    span_id: &'a BinaryArray,
    claim: &'a StringArray,
    candidates: &'a StringArray,
    profile_hash: &'a BinaryArray,
    profile_id: &'a BinaryArray,
    profile: &'a StringArray,
    profile_start: &'a Int64Array,
    profile_duration: &'a Int64Array,
    stack_id: &'a Int64Array,
    values: &'a ListArray,
    times: &'a ListArray,
    thread_id: &'a Int64Array,
    thread_name: &'a StringArray,
    pid: &'a Int64Array,
    labels: &'a StringArray,
    resource: &'a StringArray,
    received: &'a Int64Array,
}

impl<'a> Columns<'a> {
    fn of(batch: &'a RecordBatch) -> Result<Columns<'a>, Unreadable> {
        Ok(Columns {
            trace_id: column(batch, sample::TRACE_ID)?,
            span_id: column(batch, sample::SPAN_ID)?,
            claim: column(batch, sample::CLAIM)?,
            candidates: column(batch, sample::CANDIDATES)?,
            profile_hash: column(batch, sample::PROFILE_HASH)?,
            profile_id: column(batch, sample::PROFILE_ID)?,
            profile: column(batch, sample::PROFILE)?,
            profile_start: column(batch, sample::PROFILE_START)?,
            profile_duration: column(batch, sample::PROFILE_DURATION)?,
            stack_id: column(batch, sample::STACK_ID)?,
            values: column(batch, sample::VALUES)?,
            times: column(batch, sample::TIMES)?,
            thread_id: column(batch, sample::THREAD_ID)?,
            thread_name: column(batch, sample::THREAD_NAME)?,
            pid: column(batch, sample::PID)?,
            labels: column(batch, sample::LABELS)?,
            resource: column(batch, sample::RESOURCE)?,
            received: column(batch, sample::RECEIVED)?,
        })
    }
}

type Row<'a> = (&'a Profile, Fingerprint, &'a Sample);

fn value_lists(rows: &[Row<'_>]) -> ArrayRef {
    let lengths: Vec<usize> = rows.iter().map(|(_, _, sample)| sample.values.len()).collect();
    let values = rows.iter().flat_map(|(_, _, sample)| &sample.values).copied().collect();
    list_array(&lengths, values, true)
}

fn time_lists(rows: &[Row<'_>]) -> ArrayRef {
    let lengths: Vec<usize> = rows.iter().map(|(_, _, sample)| sample.times.len()).collect();
    let times = rows.iter().flat_map(|(_, _, sample)| &sample.times).map(|time| time.unix_nanos());
    list_array(&lengths, times.collect(), true)
}

/// Profile and resource of every sample as JSON, written once per profile.
struct ProfileTexts {
    profiles: ArrayRef,
    resources: ArrayRef,
}

impl ProfileTexts {
    fn of(profiles: &[Profile]) -> Result<ProfileTexts, Error> {
        let rows = profiles.iter().map(|profile| profile.samples.len()).sum();
        let mut texts = RepeatedText::new(rows);
        let mut resources = RepeatedText::new(rows);
        for profile in profiles {
            texts.set(Some(write_profile(&profile.info)?));
            resources.set(Some(write_resource(&profile.info.resource)?));
            for _ in &profile.samples {
                texts.repeat()?;
                resources.repeat()?;
            }
        }
        Ok(ProfileTexts {
            profiles: texts.finish(),
            resources: resources.finish(),
        })
    }
}

fn claim_word(sample: &Sample) -> Option<&'static str> {
    match &sample.link {
        Link::One { claim, .. } => Some(claim.as_str()),
        _ => None,
    }
}

fn read_link(c: &Columns<'_>, row: usize) -> Result<Link, Unreadable> {
    let candidates = text(c.candidates, row);
    if !candidates.is_empty() {
        return read_candidates(candidates);
    }
    let word = text(c.claim, row);
    if word.is_empty() {
        return Ok(Link::None);
    }
    Ok(Link::One {
        trace_id: id(c.trace_id, row, "trace id", TraceId::from_slice)?,
        span_id: id(c.span_id, row, "span id", SpanId::from_slice)?,
        claim: Claim::from_word(word).ok_or_else(|| Unreadable::new(format!("row {row} has the unknown claim {word:?}")))?,
    })
}

fn write_candidates(sample: &Sample) -> Option<Result<String, Error>> {
    match &sample.link {
        Link::Candidates { trace_ids, span_ids } => Some(json::write(&Candidates {
            trace_ids: trace_ids.iter().map(ToString::to_string).collect(),
            span_ids: span_ids.iter().map(ToString::to_string).collect(),
        })),
        _ => None,
    }
}

fn read_candidates(text: &str) -> Result<Link, Unreadable> {
    fn ids<T: std::str::FromStr<Err: std::fmt::Display>>(texts: &[String]) -> Result<Vec<T>, Unreadable> {
        let parse = |text: &String| text.parse().map_err(|error| Unreadable::new(format!("{error}")));
        texts.iter().map(parse).collect()
    }
    let candidates: Candidates = json::read(sample::CANDIDATES, text)?;
    Ok(Link::Candidates {
        trace_ids: ids(&candidates.trace_ids)?,
        span_ids: ids(&candidates.span_ids)?,
    })
}

fn write_labels(sample: &Sample) -> Option<Result<String, Error>> {
    let label = |label| LabelOut::of(label);
    (!sample.labels.is_empty()).then(|| json::write(&sample.labels.iter().map(label).collect::<Vec<_>>()))
}

fn read_labels(text: &str) -> Result<Vec<Label>, Unreadable> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let labels: Vec<LabelIn> = json::read(sample::LABELS, text)?;
    let label = |label: LabelIn| Label {
        key: label.key,
        value: label.value.0,
        unit: label.unit,
    };
    Ok(labels.into_iter().map(label).collect())
}

fn write_profile(info: &ProfileInfo) -> Result<String, Error> {
    json::write(&ProfileOut {
        name: &info.name,
        types: info.types.iter().map(|t| (t.kind.as_str(), t.unit.as_str())).collect(),
        period_type: (&info.period_type.kind, &info.period_type.unit),
        period: info.period,
        scope: &info.scope.name,
        scope_version: &info.scope.version,
        scope_attributes: JsonAttributes(&info.scope.attributes),
        attributes: JsonAttributes(&info.attributes),
    })
}

#[derive(Serialize, Deserialize)]
struct Candidates {
    trace_ids: Vec<String>,
    span_ids: Vec<String>,
}

#[derive(Serialize)]
struct LabelOut<'a> {
    key: &'a str,
    value: JsonValue<'a>,
    #[serde(skip_serializing_if = "str::is_empty")]
    unit: &'a str,
}

impl<'a> LabelOut<'a> {
    fn of(label: &'a Label) -> LabelOut<'a> {
        LabelOut {
            key: &label.key,
            value: JsonValue {
                value: &label.value,
                depth: 0,
            },
            unit: &label.unit,
        }
    }
}

#[derive(Deserialize)]
struct LabelIn {
    key: String,
    value: OwnedValue,
    #[serde(default)]
    unit: String,
}

/// What is the same in all profiles of one sender: ids and times have columns of their own.
#[derive(Serialize)]
struct ProfileOut<'a> {
    name: &'a str,
    types: Vec<(&'a str, &'a str)>,
    period_type: (&'a str, &'a str),
    period: i64,
    #[serde(skip_serializing_if = "str::is_empty")]
    scope: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    scope_version: &'a str,
    #[serde(skip_serializing_if = "no_attributes")]
    scope_attributes: JsonAttributes<'a>,
    #[serde(skip_serializing_if = "no_attributes")]
    attributes: JsonAttributes<'a>,
}

#[derive(Deserialize)]
struct ProfileIn {
    name: String,
    types: Vec<(String, String)>,
    period_type: (String, String),
    period: i64,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    scope_version: String,
    #[serde(default)]
    scope_attributes: OwnedAttributes,
    #[serde(default)]
    attributes: OwnedAttributes,
}

fn no_attributes(attributes: &JsonAttributes<'_>) -> bool {
    attributes.0.is_empty()
}
