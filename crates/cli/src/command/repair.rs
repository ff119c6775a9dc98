//! `spanflame repair`

use clap::Args;
use spanflame_store::Repair as Repaired;

use super::verification;
use crate::error::Error;
use crate::render::quantity;
use crate::session::{Outcome, Session};

/// Mend a directory whose medium lost or changed files: keep what can be read, set aside what cannot
///
/// Without --yes it only says what it would do. Damaged files and commits are moved to quarantine/ in the
/// directory and never deleted. A repair that is interrupted can be run again. Exit code 1 if there is nothing to
/// repair.
#[derive(Args)]
#[command(after_help = "\
Examples:
  spanflame repair --data ./spanflame-data         what is damaged, and what would be done about it
  spanflame repair --data ./spanflame-data --yes   do it")]
pub(crate) struct Repair {
    /// The directory or URL, which no server holds
    #[arg(long, value_name = "DIR_OR_URL")]
    data: String,
    /// Do it
    #[arg(long)]
    yes: bool,
    /// Print JSON
    #[arg(long, help_heading = "Output")]
    json: bool,
}

impl Repair {
    pub(crate) fn run(self, session: &mut Session) -> Result<Outcome, Error> {
        let options = verification::options(&self.data)?;
        let failed = |source| verification::failed(&self.data, source);
        if !self.yes {
            let found = session.wait(spanflame_store::verify(&options)).map_err(failed)?;
            match self.json {
                true => session.print(&[verification::to_json(&found).to_string()])?,
                false => session.print(&verification::lines(&found))?,
            }
            let is_found = !found.findings.is_empty();
            if is_found {
                session.note("nothing was changed; with --yes it is repaired");
            }
            return Ok(Outcome::found(is_found));
        }
        let repaired = session.wait(spanflame_store::repair(&options)).map_err(failed)?;
        match self.json {
            true => session.print(&[to_json(&repaired).to_string()])?,
            false => session.print(&lines(&repaired))?,
        }
        Ok(Outcome::found(!repaired.found.findings.is_empty()))
    }
}

fn lines(repaired: &Repaired) -> Vec<String> {
    let mut lines = verification::lines(&repaired.found);
    if repaired.found.findings.is_empty() {
        return lines;
    }
    lines.push(format!(
        "repaired: {} kept out of damaged files, {} lost, {} committed again",
        quantity::counted(repaired.rows_kept, "row"),
        quantity::count(repaired.rows_lost as i64),
        quantity::count(repaired.rows_restored as i64),
    ));
    lines.extend(repaired.set_aside.iter().map(|file| format!("set aside: quarantine/{file}")));
    lines
}

fn to_json(repaired: &Repaired) -> serde_json::Value {
    serde_json::json!({
        "found": verification::to_json(&repaired.found),
        "set_aside": repaired.set_aside,
        "rows_kept": repaired.rows_kept,
        "rows_lost": repaired.rows_lost,
        "rows_restored": repaired.rows_restored,
    })
}
