//! What `inspect --verify` and `repair` have in common: a directory that no server holds, and findings as text.

use std::path::Path;

use spanflame_store::{Finding, StoreOptions, Verification};

use crate::error::Error;
use crate::render::quantity;
use crate::render::terminal::visible;
use crate::session::{Outcome, Session};

/// `spanflame inspect --verify --data DATA`
pub(super) fn verify(session: &mut Session, data: &str, json: bool) -> Result<Outcome, Error> {
    let options = options(data)?;
    let verification = session
        .wait(spanflame_store::verify(&options))
        .map_err(|source| failed(data, source))?;
    match json {
        true => session.print(&[to_json(&verification).to_string()])?,
        false => session.print(&lines(&verification))?,
    }
    let damaged = verification.findings.iter().filter(|finding| finding.kind.is_damage()).count();
    match damaged {
        0 => Ok(Outcome::Found),
        damaged => Err(Error::Damaged {
            data: data.to_owned(),
            damaged: damaged as u64,
        }),
    }
}

/// The settings to open `data` with; fails where there is nothing.
pub(super) fn options(data: &str) -> Result<StoreOptions, Error> {
    if !data.contains("://") && !Path::new(data).is_dir() {
        return Err(Error::Usage(format!(
            "--data is {data:?}, expected an existing directory or a URL such as s3://bucket/path"
        )));
    }
    Ok(StoreOptions {
        data: data.to_owned(),
        ..StoreOptions::default()
    })
}

/// Why a directory could not be read at all.
pub(super) fn failed(data: &str, source: spanflame_store::Error) -> Error {
    let data = data.to_owned();
    match source {
        source @ spanflame_store::Error::Locked { .. } => Error::Held { data, source },
        source => Error::Storage { data, source },
    }
}

/// What was read, then each finding with what a repair does about it.
pub(super) fn lines(verification: &Verification) -> Vec<String> {
    let mut lines = vec![format!(
        "{} with {} in {} of tables, {} of the log read",
        quantity::bytes(verification.size_bytes as i64),
        quantity::counted(verification.rows, "row"),
        quantity::counted(verification.files, "file"),
        quantity::counted(verification.segments, "segment"),
    )];
    if verification.findings.is_empty() {
        lines.push("all is as it was written".to_owned());
    }
    lines.extend(verification.findings.iter().flat_map(finding_lines));
    lines
}

fn finding_lines(finding: &Finding) -> [String; 3] {
    let rows = match finding.rows {
        Some(rows) => format!(
            " ({} of {} can be read)",
            quantity::count(finding.rows_readable as i64),
            quantity::counted(rows, "row")
        ),
        None => String::new(),
    };
    [
        format!("{}  {}{rows}", finding.kind.as_str(), visible(&finding.file)),
        format!("  found:  {}", visible(&finding.message)),
        format!("  repair: {}", finding.kind.remedy()),
    ]
}

/// The same for programs.
pub(super) fn to_json(verification: &Verification) -> serde_json::Value {
    let finding = |finding: &Finding| {
        let mut value = serde_json::json!({
            "kind": finding.kind.as_str(),
            "is_damage": finding.kind.is_damage(),
            "file": finding.file,
            "message": finding.message,
            "remedy": finding.kind.remedy(),
            "rows_readable": finding.rows_readable,
        });
        // Absent is unknown.
        if let Some(rows) = finding.rows {
            value["rows"] = rows.into();
        }
        if let Some(tenant) = &finding.tenant {
            value["tenant"] = tenant.as_str().into();
        }
        value
    };
    serde_json::json!({
        "files": verification.files,
        "rows": verification.rows,
        "size_bytes": verification.size_bytes,
        "segments": verification.segments,
        "findings": verification.findings.iter().map(finding).collect::<Vec<_>>(),
    })
}
