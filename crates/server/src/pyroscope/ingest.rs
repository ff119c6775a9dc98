//! `POST /ingest`: one profile of one series, named in the query, as a raw body or as parts of a form.

mod form;
pub(super) mod sample_type;
pub(super) mod window;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, Request, StatusCode, header};
use serde_json::json;
use spanflame_formats::pyroscope::Series;
use spanflame_formats::{Decoded, Format, Limits, jfr};
use spanflame_model::ProfileInfo;
use url::form_urlencoded;

use self::form::Form;
use self::sample_type::{Measured, SampleTypes};
use self::window::Window;
use crate::admission::write_tenant;
use crate::app::App;
use crate::body;
use crate::failure::Failure;
use crate::ingest::{Upload, now};
use crate::metrics::Signal;
use crate::rejections;

/// Samples a second where the client does not say, or says something that is no number.
const SAMPLE_RATE_DEFAULT: u64 = 100;

pub(super) async fn ingest(State(app): State<Arc<App>>, RawQuery(query): RawQuery, headers: HeaderMap, request: Request<Body>) -> Response {
    let result = take(&app, query.as_deref().unwrap_or_default(), &headers, request.into_body()).await;
    result.unwrap_or_else(|failure| {
        app.metrics.refused(Signal::Profiles, failure.kind.code());
        refusal(&failure)
    })
}

/// A failure as Pyroscope writes it.
fn refusal(failure: &Failure) -> Response {
    let body = json!({ "code": failure.kind.code(), "message": failure.message }).to_string();
    let mut response = (failure.kind.http(), [(header::CONTENT_TYPE, "application/json")], body).into_response();
    if let Some(seconds) = failure.retry_after_seconds() {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

async fn take(app: &App, query: &str, headers: &HeaderMap, body: Body) -> Result<Response, Failure> {
    let asked = Asked::parse(query, headers)?;
    let (tenant, store) = (write_tenant(headers)?, app.store()?);
    let encoding = body::content_encoding(headers)?;
    let mut load = app.ingest.load();
    let body = body::read(headers, body, app.ingest.request_bytes_max(), &mut load).await?;
    let upload = Upload {
        tenant: tenant.clone(),
        signal: Signal::Profiles,
        body,
        encoding,
        load,
    };
    let decode = move |bytes: &[u8], limits: &Limits| asked.decode(bytes, limits);
    let taken = app.ingest.take(store, upload, decode).await?;
    rejections::answer(app, &tenant, headers, &taken, StatusCode::OK.into_response())
}

/// What the query and the headers say about the body.
struct Asked {
    series: Series,
    window: Option<Window>,
    sample_rate: u64,
    spy: String,
    units: String,
    format: Option<Format>,
    boundary: Option<String>,
}

impl Asked {
    /// Parameters that are not known are ignored, as clients of every age send their own.
    fn parse(query: &str, headers: &HeaderMap) -> Result<Asked, Failure> {
        let text = |name: &str| {
            let mut pairs = form_urlencoded::parse(query.as_bytes());
            let value = pairs.find_map(|(key, value)| (key == name).then_some(value));
            value.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
        };
        let name =
            text("name").ok_or_else(|| Failure::invalid("name", "name is missing, expected an application as in name=app{region=eu}"))?;
        let content_type = headers
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        Ok(Asked {
            series: Series::from_name(&name).map_err(|message| Failure::invalid("name", message))?,
            window: Window::parse(text("from").as_deref(), text("until").as_deref(), now())?,
            sample_rate: text("sampleRate")
                .and_then(|rate| rate.parse().ok())
                .filter(|rate| (1..=1_000_000_000).contains(rate))
                .unwrap_or(SAMPLE_RATE_DEFAULT),
            spy: text("spyName").unwrap_or_else(|| "unknown".to_owned()).chars().take(100).collect(),
            units: text("units").unwrap_or_default(),
            format: format(text("format").as_deref().unwrap_or_default(), content_type),
            boundary: boundary(content_type)?,
        })
    }

    fn decode(self, bytes: &[u8], limits: &Limits) -> Result<Decoded, Failure> {
        let Some(boundary) = &self.boundary else {
            let format = self.format.unwrap_or_else(|| by_content(bytes));
            return self.decode_file(format, (bytes, &[]), &SampleTypes::default(), limits);
        };
        let form = Form::read(bytes, boundary)?;
        let types = SampleTypes::parse(form.part("sample_type_config").unwrap_or_default())?;
        if form.part("prev_profile").is_some_and(|previous| !previous.is_empty()) {
            let message =
                "the form has a prev_profile: cumulative profiles are not subtracted here, expected a client that sends differences";
            return Err(Failure::invalid("prev_profile", message));
        }
        let format = self.format.unwrap_or(Format::Pprof);
        let field = if format == Format::Jfr { "jfr" } else { "profile" };
        let missing = || Failure::invalid(field, format!("the form has no part {field}, expected the profile there"));
        let file = form.part(field).or_else(|| form.only_part()).ok_or_else(missing)?;
        self.decode_file(format, (file, form.part("labels").unwrap_or_default()), &types, limits)
    }

    /// Decodes a file with the labels that belong to it, which only JFR has.
    fn decode_file(
        mut self,
        format: Format,
        (bytes, labels): (&[u8], &[u8]),
        types: &SampleTypes,
        limits: &Limits,
    ) -> Result<Decoded, Failure> {
        let about = self.about(format)?;
        let mut decoded = match format {
            Format::Jfr => jfr::decode_with_labels(bytes, labels, &about, limits)?,
            format => format.decode(bytes, &about, limits)?,
        };
        self.series.push("pyroscope_spy", &self.spy);
        let identity = self
            .series
            .identity(limits)
            .map_err(|reason| Failure::invalid("name", format!("the labels of name: {reason}")))?;
        identity.apply(&mut decoded.batch);
        for profile in &mut decoded.batch.profiles {
            let info = Arc::make_mut(&mut profile.info);
            types.name(info);
            if format == Format::Pprof {
                place(info, self.window);
            }
            if self.spy == "dotnetspy" {
                repair_types(info);
            }
        }
        Ok(decoded)
    }

    /// What the query says about a file that says less itself.
    fn about(&mut self, format: Format) -> Result<spanflame_formats::Upload, Failure> {
        let mut about = spanflame_formats::Upload::default();
        match format {
            Format::Pprof => return Ok(about),
            Format::Jfr => {
                about.period = (1_000_000_000 / self.sample_rate) as i64;
                return Ok(about);
            }
            Format::Collapsed | Format::Lines | Format::Trie | Format::Tree => {
                let measured = Measured::of(self.series.app(), &self.units, self.sample_rate)?;
                self.series.set_app(&measured.app);
                measured.describe(&mut about);
            }
            _ => {}
        }
        let window = self.window.unwrap_or_else(|| Window::instant(now()));
        (about.time, about.duration_ns) = (Some(window.start()), Some(window.duration_ns()));
        Ok(about)
    }
}

/// Puts a pprof where its window was: by the query where that says so, unless the file knows better.
fn place(info: &mut ProfileInfo, window: Option<Window>) {
    if let Some(window) = window {
        (info.start, info.duration_ns) = window.of_file(info.start, info.duration_ns);
    } else if window::is_no_time(info.start) {
        info.start = now().saturating_sub(info.duration_ns);
    }
}

/// The .NET profiler writes `-` where all others write `_`.
fn repair_types(info: &mut ProfileInfo) {
    for value_type in info.types.iter_mut().chain([&mut info.period_type]) {
        value_type.kind = value_type.kind.replace('-', "_");
    }
}

/// What parts the body, if it is a form.
fn boundary(content_type: &str) -> Result<Option<String>, Failure> {
    if !content_type.to_ascii_lowercase().starts_with("multipart/") {
        return Ok(None);
    }
    multer::parse_boundary(content_type).map(Some).map_err(|_| {
        let shown: String = content_type.chars().take(200).collect();
        Failure::invalid(
            "content type",
            format!("content type is {shown:?}, expected multipart/form-data with a boundary"),
        )
    })
}

/// The format that a client names. `None` is what most name: nothing, which a form makes pprof and content decides else.
fn format(name: &str, content_type: &str) -> Option<Format> {
    match (name, content_type) {
        ("pprof", _) => Some(Format::Pprof),
        ("jfr", _) => Some(Format::Jfr),
        ("trie", _) | (_, "binary/octet-stream+trie") => Some(Format::Trie),
        ("tree", _) | (_, "binary/octet-stream+tree") => Some(Format::Tree),
        ("lines", _) => Some(Format::Lines),
        ("speedscope", _) => Some(Format::Speedscope),
        ("folded" | "collapsed" | "groups", _) => Some(Format::Collapsed),
        _ => None,
    }
}

/// The format of a body that nothing describes: stacks as text, unless it is plainly something else.
fn by_content(bytes: &[u8]) -> Format {
    let known = Format::detect(bytes, "").ok();
    known.filter(|format| format.is_profile()).unwrap_or(Format::Collapsed)
}
