//! `POST /api/v1/ingest`: one profile as a file: pprof, collapsed, perf script or speedscope.

use std::str::FromStr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use http::{HeaderMap, Request};
use serde::Serialize;
use spanflame_formats::{Format, Limits};
use spanflame_model::{Attributes, ProfileType, Value, ValueType};

use super::params::Params;
use super::question::Stopwatch;
use crate::admission::write_tenant;
use crate::app::App;
use crate::body;
use crate::failure::Failure;
use crate::ingest::{Taken, Upload};
use crate::metrics::Signal;

const PARAMETERS: [&str; 7] = ["service", "format", "type", "time", "duration_ns", "period", "labels"];

pub(super) async fn ingest(
    State(app): State<Arc<App>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    request: Request<Body>,
) -> Result<Response, Failure> {
    let watch = Stopwatch::start();
    let taken = take(&app, query.as_deref(), &headers, request.into_body()).await;
    let taken = taken.inspect_err(|failure| app.metrics.refused(Signal::Profiles, failure.kind.code()))?;
    Ok(watch.json(WireTaken::new(&taken)))
}

async fn take(app: &App, query: Option<&str>, headers: &HeaderMap, body: Body) -> Result<Taken, Failure> {
    let store = app.store()?;
    let params = Params::parse(query, &PARAMETERS)?;
    let tenant = write_tenant(headers)?;
    let about = about(&params)?;
    let format = params.text("format").map(format).transpose()?;
    let encoding = body::content_encoding(headers)?;
    let mut load = app.ingest.load();
    let body = body::read(headers, body, app.ingest.request_bytes_max(), &mut load).await?;
    let upload = Upload {
        tenant,
        signal: Signal::Profiles,
        body,
        encoding,
        load,
    };
    let decode = move |bytes: &[u8], limits: &Limits| {
        let format = match format {
            Some(format) => format,
            None => Format::detect(bytes, "")?,
        };
        Ok(format.decode(bytes, &about, limits)?)
    };
    app.ingest.take(store, upload, decode).await
}

fn format(name: &str) -> Result<Format, Failure> {
    Format::from_name(name).map_err(|error| Failure::invalid("format", error.to_string()))
}

/// What the parameters say about the file.
fn about(params: &Params) -> Result<spanflame_formats::Upload, Failure> {
    let mut resource = labels(params.text("labels").unwrap_or_default())?;
    if let Some(service) = params.text("service") {
        resource.insert("service.name", service);
    }
    let mut about = spanflame_formats::Upload {
        resource,
        time: params.time("time")?,
        duration_ns: params.read("duration_ns")?,
        period: params.read("period")?.unwrap_or(0),
        ..spanflame_formats::Upload::default()
    };
    if let Some(text) = params.text("type") {
        set_type(&mut about, text)?;
    }
    Ok(about)
}

/// `type` is a full profile type, `kind/unit` for formats that do not say, or just what the profile is called.
fn set_type(about: &mut spanflame_formats::Upload, text: &str) -> Result<(), Failure> {
    if text.contains(':') {
        let full = ProfileType::from_str(text).map_err(|error| Failure::invalid("type", error.to_string()))?;
        about.name = full.name;
        about.value_type = Some(full.sample);
        about.period_type = Some(full.period);
    } else if let Some((kind, unit)) = text.split_once('/') {
        about.value_type = Some(ValueType::new(kind, unit));
    } else {
        about.name = text.to_owned();
    }
    Ok(())
}

/// Reads `key=value` pairs separated by commas.
fn labels(text: &str) -> Result<Attributes, Failure> {
    let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty()).map(|pair| {
        let (key, value) = pair.split_once('=').filter(|(key, _)| !key.trim().is_empty()).ok_or_else(|| {
            let pair: String = pair.chars().take(200).collect();
            Failure::invalid("labels", format!("labels hold {pair:?}, expected key=value separated by commas"))
        })?;
        Ok((key.trim().to_owned(), Value::from(value.trim())))
    });
    Ok(Attributes::from(pairs.collect::<Result<Vec<_>, Failure>>()?))
}

/// Profiles accepted and recognised as sent before, and what was left out of them.
#[derive(Serialize)]
struct WireTaken {
    accepted: u64,
    duplicates: u64,
    rejected: Vec<WireRejected>,
}

#[derive(Serialize)]
struct WireRejected {
    /// Position of the body in the request; one body today.
    index: u64,
    reason: &'static str,
    subject: &'static str,
    count: u64,
}

impl WireTaken {
    fn new(taken: &Taken) -> WireTaken {
        let rejected = taken.rejects.iter().map(|(subject, reason, count)| WireRejected {
            index: 0,
            reason: reason.as_str(),
            subject: subject.as_str(),
            count,
        });
        WireTaken {
            accepted: taken.appended.profiles,
            duplicates: taken.appended.duplicate_profiles,
            rejected: rejected.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about_of(query: &str) -> Result<spanflame_formats::Upload, Failure> {
        about(&Params::parse(Some(query), &PARAMETERS).expect("known parameters"))
    }

    #[test]
    fn the_service_is_over_the_labels() {
        let about = about_of("service=cart&labels=service.name%3Dother,region%3Deu").expect("valid");
        assert_eq!(about.resource.get_str("service.name"), Some("cart"));
        assert_eq!(about.resource.get_str("region"), Some("eu"));
    }

    #[test]
    fn a_type_is_full_or_measured_or_a_name() {
        let full = about_of("type=process_cpu:cpu:nanoseconds:cpu:nanoseconds").expect("valid");
        assert_eq!(
            (full.name.as_str(), full.value_type),
            ("process_cpu", Some(ValueType::new("cpu", "nanoseconds")))
        );
        assert_eq!(
            about_of("type=wall/nanoseconds").expect("valid").value_type,
            Some(ValueType::new("wall", "nanoseconds"))
        );
        assert_eq!(about_of("type=goroutine").expect("valid").name, "goroutine");
        assert_eq!(about_of("type=a:b").expect_err("two parts").field.as_deref(), Some("type"));
    }

    #[test]
    fn labels_without_a_key_are_refused() {
        assert_eq!(about_of("labels=%3Dx").expect_err("no key").field.as_deref(), Some("labels"));
    }
}
