//! `spanflame upload`

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bytes::Bytes;
use clap::Args;
use spanflame_formats::Format;

use super::input::Input;
use crate::client::answer::Ingested;
use crate::client::{Client, Query, Source};
use crate::error::Error;
use crate::render::quantity;
use crate::session::{Outcome, Session};
use crate::time::unix_nanos;

/// Add profiles to a server's store: pprof, JFR, collapsed, perf script, speedscope
///
/// Each file is one profile. An equal profile that was sent before is kept once and counted as duplicate.
#[derive(Args)]
#[command(after_help = "\
Examples:
  spanflame upload cpu.pb.gz --service cart
  perf script | spanflame upload - --service cart --format perf-script --time now
  spanflame upload stacks.collapsed --service cart --label region=eu-1 --label version=1.2

Exit code 1 if every file was a duplicate. A file that cannot be read does not keep the others from being sent.")]
pub(crate) struct Upload {
    /// Files to send; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Name of the service that was profiled
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
    /// Format, if the content does not tell: pprof, jfr, collapsed, perf-script, speedscope
    #[arg(long, value_name = "FORMAT", value_parser = Format::from_name)]
    format: Option<Format>,
    /// What the values are, for formats that do not say: name:sample_type:sample_unit:period_type:period_unit
    #[arg(long = "type", value_name = "TYPE")]
    profile_type: Option<String>,
    /// When it was taken, for formats that do not say: 2026-11-30T22:05:00Z, nanoseconds since 1970, or a time ago such as 15m
    #[arg(long, value_name = "TIME")]
    time: Option<String>,
    /// A label of the profile; may be given several times
    #[arg(long = "label", value_name = "NAME=VALUE")]
    labels: Vec<String>,
    /// Print the server's answers as JSON, one a line
    #[arg(long, help_heading = "Output")]
    json: bool,
    #[command(flatten)]
    source: Source,
}

impl Upload {
    pub(crate) fn run(self, session: &mut Session) -> Result<Outcome, Error> {
        let query = self.query()?;
        let client = session.wait(self.source.client())?;
        let (mut stored, mut failed) = (0, 0);
        for path in &self.files {
            match self.send(path, &query, &client, session) {
                Ok(accepted) => stored += accepted,
                // Without a server the other files fail too, and standard output does not come back.
                Err(error @ (Error::Unreachable { .. } | Error::Output(_))) => return Err(error),
                Err(error) if self.files.len() == 1 => return Err(error),
                Err(error) => {
                    session.note(&format!("{}: {}", path.display(), error.report()));
                    failed += 1;
                }
            }
        }
        if failed > 0 {
            return Err(Error::Usage(format!("{failed} of {} files were not stored", self.files.len())));
        }
        Ok(Outcome::found(stored > 0))
    }

    /// Sends one file; answers how many profiles of it were new.
    fn send(&self, path: &Path, query: &Query, client: &Client, session: &mut Session) -> Result<u64, Error> {
        let input = Input::read(path)?;
        let format = input.format(self.format)?;
        let mut query = query.clone();
        query.push(("format", format.as_str().to_owned()));
        let answer = session.wait(client.ingest(query, Bytes::from(input.bytes)))?;
        if self.json {
            session.print(&[answer.text().to_owned()])?;
        } else {
            session.print(&upload_lines(&input.name, &answer.value))?;
        }
        Ok(answer.value.accepted)
    }

    fn query(&self) -> Result<Query, Error> {
        let mut query = Vec::new();
        let texts = [("service", &self.service), ("type", &self.profile_type)];
        query.extend(texts.into_iter().filter_map(|(name, text)| Some((name, text.clone()?))));
        if let Some(text) = &self.time {
            let nanos = unix_nanos("--time", text, SystemTime::now())?;
            query.push(("time", nanos.to_string()));
        }
        for label in &self.labels {
            if label.split_once('=').is_none_or(|(name, _)| name.is_empty()) || label.contains(',') {
                return Err(Error::Usage(format!("--label is {label:?}, expected NAME=VALUE without a comma")));
            }
        }
        if !self.labels.is_empty() {
            query.push(("labels", self.labels.join(",")));
        }
        Ok(query)
    }
}

fn upload_lines(name: &str, answer: &Ingested) -> Vec<String> {
    let mut facts = vec![format!("{} stored", quantity::counted(answer.accepted, "profile"))];
    if answer.duplicates > 0 {
        facts.push(format!("{} known before", quantity::count(answer.duplicates as i64)));
    }
    let mut lines = vec![format!("{name}: {}", facts.join(", "))];
    for rejected in &answer.rejected {
        let count = rejected
            .count
            .map_or_else(String::new, |count| format!("{} ", quantity::count(count as i64)));
        let reason = rejected.reason.replace('_', " ");
        // A detail is a part of something that was kept, or no loss at all.
        lines.push(match rejected.subject.as_deref() {
            Some("detail") => format!("  irregular: {count}{reason}"),
            Some(subject) => format!("  left out: {count}{subject}: {reason}"),
            None => format!("  left out: {count}{reason}"),
        });
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_of_duplicates_says_so() {
        let answer: Ingested = serde_json::from_str(
            r#"{"accepted": 0, "duplicates": 1, "rejected": [{"index": 0, "reason": "too_deep", "subject": "samples", "count": 3},
                {"index": 0, "reason": "old_layout", "subject": "detail", "count": 1}]}"#,
        )
        .expect("an answer");
        assert_eq!(
            upload_lines("a.pprof", &answer),
            [
                "a.pprof: 0 profiles stored, 1 known before",
                "  left out: 3 samples: too deep",
                "  irregular: 1 old layout"
            ]
        );
    }
}
