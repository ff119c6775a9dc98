//! The web page, out of the binary.
//!
//! Assets carry a hash in their name and may be kept for ever; `index.html`, which names them, is asked for again each
//! time. The page's own addresses all answer with it: the page reads the address itself. The policy allows nothing inline and
//! nothing from elsewhere.

use std::io::Read;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::app::App;

/// A file of the page.
struct Asset {
    /// Under which it is served; `/index.html` is the page itself.
    path: &'static str,
    /// Bytes before compression.
    len: usize,
    /// Its `ETag`.
    tag: &'static str,
    gzip: &'static [u8],
}

/// What `build.rs` found.
static ASSETS: &[Asset] = &include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// Addresses of screens.
const SCREENS: [&str; 6] = ["/", "/spans", "/trace/{trace_id}", "/compare", "/profiles", "/view"];

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The files of the page and the addresses of its screens.
pub(crate) fn routes() -> Router<Arc<App>> {
    let mut router = Router::new();
    for asset in ASSETS {
        router = router.route(asset.path, get(async move |headers: HeaderMap| asset.answer(&headers)));
    }
    let index = ASSETS.iter().find(|asset| asset.path == "/index.html");
    for screen in SCREENS {
        router = router.route(
            screen,
            get(async move |headers: HeaderMap| match index {
                Some(index) => index.answer(&headers),
                None => StatusCode::NOT_FOUND.into_response(),
            }),
        );
    }
    router
}

impl Asset {
    fn answer(&self, asked: &HeaderMap) -> Response {
        let known = asked.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        let is_known = known
            .flat_map(|list| list.split(','))
            .any(|tag| tag.trim().trim_start_matches("W/") == self.tag);
        let mut response = match (is_known, takes_gzip(asked)) {
            (true, _) => StatusCode::NOT_MODIFIED.into_response(),
            (false, true) => {
                let mut response = Response::new(Body::from(Bytes::from_static(self.gzip)));
                response
                    .headers_mut()
                    .insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
                response
            }
            (false, false) => Response::new(Body::from(self.plain())),
        };
        let headers = response.headers_mut();
        let keep = match self.path.starts_with("/assets/") {
            true => "public, max-age=31536000, immutable",
            false => "no-cache",
        };
        for (name, value) in [
            (header::CONTENT_TYPE, self.content_type()),
            (header::ETAG, self.tag),
            (header::CACHE_CONTROL, keep),
            (header::VARY, "accept-encoding"),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
            (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }

    /// For the few clients that do not take gzip.
    fn plain(&self) -> Vec<u8> {
        let mut plain = Vec::with_capacity(self.len);
        let read = flate2::read::GzDecoder::new(self.gzip).read_to_end(&mut plain);
        debug_assert!(read.is_ok(), "build.rs packed it");
        plain
    }

    fn content_type(&self) -> &'static str {
        match self.path.rsplit('.').next() {
            Some("html") => "text/html; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            Some("png") => "image/png",
            Some("json" | "webmanifest") => "application/json",
            Some("txt") => "text/plain; charset=utf-8",
            Some("woff2") => "font/woff2",
            _ => "application/octet-stream",
        }
    }
}

/// Whether the client takes gzip: it names it, or anything, without a weight of 0.
fn takes_gzip(asked: &HeaderMap) -> bool {
    let lists = asked
        .get_all(header::ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|one| {
        let mut parts = one.split(';').map(str::trim);
        let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip") || name == "*");
        let refused = parts.any(|part| part.strip_prefix("q=").is_some_and(|weight| weight.parse() == Ok(0.0)));
        named && !refused
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(accept: &str, expected: bool) {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_str(accept).expect("a value"));
        assert_eq!(takes_gzip(&headers), expected, "{accept}");
    }

    #[test]
    fn gzip_is_sent_to_who_takes_it() {
        check("gzip, deflate, br", true);
        check("br;q=1.0, GZIP;q=0.5", true);
        check("*", true);
        check("identity", false);
        check("gzip;q=0, br", false);
        assert!(!takes_gzip(&HeaderMap::new()));
    }

    #[test]
    fn every_asset_unpacks_to_its_length_and_one_is_the_page() {
        assert!(ASSETS.iter().all(|asset| asset.plain().len() == asset.len));
        assert_eq!(ASSETS.iter().filter(|asset| asset.path == "/index.html").count(), 1);
    }
}
