//! `POST /api/v1/view`: a profile file as a flame graph, without storing it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use http::{HeaderMap, Request};
use serde::Serialize;
use spanflame_formats::{Format, Limits};
use spanflame_model::ProfileType;
use spanflame_query::{ProfileAnswer, TypeSelector, Viewed, view as look_at};

use super::params::Params;
use super::profile::WireProfile;
use super::question::Stopwatch;
use super::text::{Object, known};
use crate::admission::write_tenant;
use crate::app::App;
use crate::body;
use crate::failure::Failure;
use crate::ingest::Upload;
use crate::metrics::Signal;

/// How a file was read, and what it holds.
struct Looked {
    format: Format,
    viewed: Viewed,
}

pub(super) async fn view(
    State(app): State<Arc<App>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    request: Request<Body>,
) -> Result<Response, Failure> {
    let watch = Stopwatch::start();
    let params = Params::parse(query.as_deref(), &["format", "type", "index", "file"])?;
    let format = params.text("format").map(super::upload::format).transpose()?;
    let wanted = params.read::<TypeSelector>("type")?;
    let index = params.read::<usize>("index")?;
    let file = params.text("file").unwrap_or_default().to_owned();
    let encoding = body::content_encoding(&headers)?;
    let mut load = app.ingest.load();
    let body = body::read(&headers, request.into_body(), app.ingest.request_bytes_max(), &mut load).await?;
    let upload = Upload {
        tenant: write_tenant(&headers)?,
        signal: Signal::Profiles,
        body,
        encoding,
        load,
    };
    let work = move |bytes: &[u8], limits: &Limits| {
        let format = match format {
            Some(format) => format,
            None => Format::detect(bytes, &file)?,
        };
        let mut batch = format.decode(bytes, &spanflame_formats::Upload::default(), limits)?.batch;
        if let Some(index) = index {
            let count = batch.profiles.len();
            if index >= count {
                let message = format!("index is {index}, expected less than {count}, the number of profiles in the file");
                return Err(Failure::invalid("index", message));
            }
            batch.profiles = vec![batch.profiles.swap_remove(index)];
        }
        let viewed = look_at(&batch, wanted)?;
        Ok(Looked { format, viewed })
    };
    let (looked, _load) = app.ingest.work(upload, work).await?;
    Ok(watch.json(WireViewed::new(&looked)))
}

#[derive(Serialize)]
struct WireViewed<'a> {
    format: &'static str,
    profiles: u64,
    types: Vec<WireType<'a>>,
    labels: Object<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ns: Option<u64>,
    #[serde(flatten)]
    profile: WireProfile<'a>,
}

#[derive(Serialize)]
struct WireType<'a> {
    #[serde(rename = "type")]
    profile_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'a str>,
    samples: u64,
}

impl<'a> WireViewed<'a> {
    fn new(looked: &'a Looked) -> WireViewed<'a> {
        let Viewed {
            profiles,
            types,
            profile,
            labels,
        } = &looked.viewed;
        WireViewed {
            format: looked.format.as_str(),
            profiles: *profiles,
            types: types.iter().map(|(kind, samples)| WireType::new(kind, *samples)).collect(),
            labels: Object(labels),
            duration_ns: length(profile),
            profile: WireProfile::new(profile),
        }
    }
}

impl<'a> WireType<'a> {
    fn new(profile_type: &'a ProfileType, samples: u64) -> WireType<'a> {
        WireType {
            profile_type: profile_type.to_string(),
            unit: known(&profile_type.sample.unit),
            samples,
        }
    }
}

/// How long the profiles took together; unknown where the file does not say.
fn length(profile: &ProfileAnswer) -> Option<u64> {
    profile.range.map(|range| range.duration_ns()).filter(|length| *length > 1)
}
