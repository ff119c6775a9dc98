//! `POST /api/v1/ingest`: profiles as files (pprof, JFR, collapsed, perf script, speedscope), one as the body or several as
//! parts of `multipart/form-data`.

use std::str::FromStr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, Request, header};
use serde::Serialize;
use spanflame_formats::compression::Encoding;
use spanflame_formats::{Format, Limits};
use spanflame_model::{Attributes, ProfileType, Tenant, Value, ValueType};
use spanflame_store::Store;

use super::params::Params;
use super::question::Stopwatch;
use crate::admission::{Load, write_tenant};
use crate::app::App;
use crate::body;
use crate::failure::{Failure, FailureKind};
use crate::ingest::{Taken, Upload};
use crate::metrics::Signal;

const PARAMETERS: [&str; 7] = ["service", "format", "type", "time", "duration_ns", "period", "labels"];

/// Most files in one request.
const FILES_MAX: usize = 1000;

pub(super) async fn ingest(
    State(app): State<Arc<App>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    request: Request<Body>,
) -> Result<Response, Failure> {
    let watch = Stopwatch::start();
    let taken = take(&app, query.as_deref(), &headers, request.into_body()).await;
    let taken = taken.inspect_err(|failure| app.metrics.refused(Signal::Profiles, failure.kind.code()))?;
    Ok(watch.json(taken))
}

async fn take(app: &App, query: Option<&str>, headers: &HeaderMap, body: Body) -> Result<WireTaken, Failure> {
    let params = Params::parse(query, &PARAMETERS)?;
    let uploads = Uploads {
        app,
        store: app.store()?,
        tenant: write_tenant(headers)?,
        about: about(&params)?,
        format: params.text("format").map(format).transpose()?,
    };
    let encoding = body::content_encoding(headers)?;
    let mut load = app.ingest.load();
    let body = body::read(headers, body, app.ingest.request_bytes_max(), &mut load).await?;
    let mut answer = WireTaken::default();
    match boundary(headers) {
        None => answer.add(0, &uploads.take("", body, encoding, load).await?),
        Some(boundary) => {
            if encoding != Encoding::Identity {
                let message = format!("content encoding of a multipart body is {}, expected identity", encoding.as_str());
                return Err(Failure::new(FailureKind::Unsupported, message));
            }
            uploads.take_each(body, boundary, &mut answer).await?;
            drop(load);
        }
    }
    Ok(answer)
}

/// The boundary of a multipart body.
fn boundary(headers: &HeaderMap) -> Option<String> {
    let content_type = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    multer::parse_boundary(content_type).ok()
}

/// What all files of a request share.
struct Uploads<'a> {
    app: &'a App,
    store: &'a Store,
    tenant: Tenant,
    about: spanflame_formats::Upload,
    format: Option<Format>,
}

impl Uploads<'_> {
    async fn take(&self, file_name: &str, body: Bytes, encoding: Encoding, load: Load) -> Result<Taken, Failure> {
        let upload = Upload {
            tenant: self.tenant.clone(),
            signal: Signal::Profiles,
            body,
            encoding,
            load,
        };
        let (format, about, file_name) = (self.format, self.about.clone(), file_name.to_owned());
        let decode = move |bytes: &[u8], limits: &Limits| {
            let format = match format {
                Some(format) => format,
                None => Format::detect(bytes, &file_name)?,
            };
            Ok(format.decode(bytes, &about, limits)?)
        };
        self.app.ingest.take(self.store, upload, decode).await
    }

    /// Takes every part of a multipart body. A file that can never be read is rejected alone; overload ends the
    /// request, and the files before are recognised when it is sent again.
    async fn take_each(&self, body: Bytes, boundary: String, answer: &mut WireTaken) -> Result<(), Failure> {
        let broken = |error: multer::Error| Failure::invalid("body", format!("the body is no multipart/form-data: {error}"));
        let stream = futures::stream::iter([Ok::<Bytes, std::convert::Infallible>(body)]);
        let mut parts = multer::Multipart::new(stream, boundary);
        let mut index = 0;
        while let Some(part) = parts.next_field().await.map_err(broken)? {
            if index == FILES_MAX {
                return Err(Failure::too_large(format!("the body has more than {FILES_MAX} files")));
            }
            let file_name = part.file_name().unwrap_or_default().to_owned();
            let file = part.bytes().await.map_err(broken)?;
            match self.take(&file_name, file, Encoding::Identity, self.app.ingest.load()).await {
                Ok(taken) => answer.add(index as u64, &taken),
                Err(failure) if matches!(failure.kind, FailureKind::Invalid | FailureKind::TooLarge) => {
                    self.app.metrics.refused(Signal::Profiles, failure.kind.code());
                    answer.reject(index as u64, failure);
                }
                Err(failure) => return Err(failure),
            }
            index += 1;
        }
        Ok(())
    }
}

pub(super) fn format(name: &str) -> Result<Format, Failure> {
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
#[derive(Default, Serialize)]
struct WireTaken {
    accepted: u64,
    duplicates: u64,
    rejected: Vec<WireRejected>,
}

#[derive(Serialize)]
struct WireRejected {
    /// Position of the file in the request.
    index: u64,
    reason: &'static str,
    subject: &'static str,
    count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

impl WireTaken {
    fn add(&mut self, index: u64, taken: &Taken) {
        self.accepted += taken.appended.profiles;
        self.duplicates += taken.appended.duplicate_profiles;
        self.rejected
            .extend(taken.rejects.iter().map(|(subject, reason, count)| WireRejected {
                index,
                reason: reason.as_str(),
                subject: subject.as_str(),
                count,
                message: None,
            }));
    }

    fn reject(&mut self, index: u64, failure: Failure) {
        self.rejected.push(WireRejected {
            index,
            reason: failure.kind.code(),
            subject: "file",
            count: 1,
            message: Some(failure.message),
        });
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
