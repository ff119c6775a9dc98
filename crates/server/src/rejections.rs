//! What clients are told and the log says about parts of a request that were refused.
//!
//! Clients of profiles throw a batch away or send all of it again when a part of it is refused, so a request of which
//! anything was kept succeeds; what was refused is said in a header of the answer, counted in the metrics, and logged
//! once a minute for each client and reason.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use parking_lot::Mutex;
use spanflame_formats::{Reason, Rejects, Subject};
use spanflame_model::Tenant;

use crate::app::App;
use crate::failure::{Failure, FailureKind};
use crate::ingest::Taken;

/// The header that says what was refused of a request that succeeded.
const HEADER: HeaderName = HeaderName::from_static("x-spanflame-rejected");

/// Longest value of the header.
const HEADER_BYTES_MAX: usize = 2048;

/// A client is told apart by as much of what it calls itself.
const CLIENT_BYTES_MAX: usize = 80;

/// One line in the log for each client and reason in this time.
const QUIET: Duration = Duration::from_secs(60);

/// Most clients and reasons that are remembered; beyond that nothing is logged until older ones are forgotten.
const REMEMBERED_MAX: usize = 1024;

/// When what was logged last.
#[derive(Debug, Default)]
pub(crate) struct RejectionLog {
    last: Mutex<HashMap<(String, Subject, Reason), Unsaid>>,
}

#[derive(Debug)]
struct Unsaid {
    logged: Instant,
    count: u64,
}

/// A line of the log.
#[derive(Debug, PartialEq)]
struct Line {
    subject: Subject,
    reason: Reason,
    /// How many since the line before.
    count: u64,
}

impl RejectionLog {
    /// Logs what was left out of a request of `tenant`.
    pub(crate) fn note(&self, tenant: &Tenant, headers: &HeaderMap, rejects: &Rejects) {
        if rejects.is_empty() {
            return;
        }
        let agent = headers.get(header::USER_AGENT).map_or(&b"unknown"[..], HeaderValue::as_bytes);
        let agent: String = String::from_utf8_lossy(agent).chars().take(CLIENT_BYTES_MAX).collect();
        // Examples do not say which reason they are of.
        let is_clear = rejects.iter().count() == 1;
        let example = rejects.examples().first().filter(|_| is_clear).map_or("", String::as_str);
        for Line { subject, reason, count } in self.due(&format!("{tenant} {agent}"), rejects, Instant::now()) {
            tracing::warn!(%tenant, client = agent, kind = subject.as_str(), %reason, count, example, "parts of requests are refused");
        }
    }

    /// Counts, and answers what is to be logged now.
    fn due(&self, client: &str, rejects: &Rejects, now: Instant) -> Vec<Line> {
        let mut last = self.last.lock();
        if last.len() >= REMEMBERED_MAX {
            last.retain(|_, unsaid| now.duration_since(unsaid.logged) < QUIET || unsaid.count > 0);
        }
        let mut lines = Vec::new();
        for (subject, reason, count) in rejects.iter() {
            let key = (client.to_owned(), subject, reason);
            if let Some(unsaid) = last.get_mut(&key) {
                unsaid.count += count;
                if now.duration_since(unsaid.logged) >= QUIET {
                    lines.push(Line {
                        subject,
                        reason,
                        count: unsaid.count,
                    });
                    *unsaid = Unsaid { logged: now, count: 0 };
                }
            } else if last.len() < REMEMBERED_MAX {
                lines.push(Line { subject, reason, count });
                last.insert(key, Unsaid { logged: now, count: 0 });
            }
        }
        lines
    }
}

/// The answer to a request that was decoded and stored. Fails if nothing of it was kept and something was refused; else
/// logs what was refused and says so in `answer`.
pub(crate) fn answer(app: &App, tenant: &Tenant, headers: &HeaderMap, taken: &Taken, mut answer: Response) -> Result<Response, Failure> {
    app.rejections.note(tenant, headers, &taken.rejects);
    let appended = &taken.appended;
    let kept = appended.profiles + appended.duplicate_profiles + appended.spans + appended.duplicate_spans;
    match taken.rejects.message().filter(|_| kept == 0) {
        Some(message) => Err(Failure::new(FailureKind::Invalid, format!("nothing could be kept: {message}"))),
        None => {
            tell(answer.headers_mut(), &taken.rejects);
            Ok(answer)
        }
    }
}

/// Says in the headers of an answer what was refused of the request.
fn tell(headers: &mut HeaderMap, rejects: &Rejects) {
    let Some(mut text) = rejects.message() else {
        return;
    };
    text.truncate(text.floor_char_boundary(HEADER_BYTES_MAX));
    let visible = |c: char| if c.is_ascii_graphic() || c == ' ' { c } else { '?' };
    let text: String = text.chars().map(visible).collect();
    if let Ok(value) = HeaderValue::from_str(&text) {
        headers.insert(HEADER, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejects(count: u64) -> Rejects {
        let mut rejects = Rejects::new();
        rejects.add_many(Subject::Profile, Reason::Malformed, count, || "profile 3: \u{e9}\n".to_owned());
        rejects
    }

    #[test]
    fn a_client_and_reason_is_logged_once_a_minute_with_what_came_between() {
        let (log, start) = (RejectionLog::default(), Instant::now());
        let counts = |client: &str, seconds: u64| {
            let lines = log.due(client, &rejects(2), start + Duration::from_secs(seconds));
            lines.iter().map(|line| line.count).collect::<Vec<u64>>()
        };
        assert_eq!(counts("a", 0), [2]);
        assert_eq!(counts("a", 59), [0; 0]);
        assert_eq!(counts("b", 59), [2]);
        assert_eq!(counts("a", 60), [4]);
    }

    #[test]
    fn the_header_is_plain_text() {
        let mut headers = HeaderMap::new();
        tell(&mut headers, &rejects(1));
        assert_eq!(headers[HEADER], "1 profile: malformed; e.g. profile 3: ??");
        tell(&mut headers, &Rejects::new());
        assert_eq!(headers.len(), 1);
    }
}
