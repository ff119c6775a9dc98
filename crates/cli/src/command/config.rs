//! `spanflame config`

use clap::Args;

use super::settings::Settings;
use crate::error::Error;
use crate::session::{Outcome, Session};

/// Print every setting of `serve` with meaning, unit, default and present value
///
/// The output is a TOML file that sets exactly what `spanflame serve` would use with the same flags, variables
/// and file; settings at their default are commented out. All mistakes are reported at once.
#[derive(Args)]
#[command(after_help = "\
Examples:
  spanflame config > spanflame.toml               a file to begin with
  spanflame config --config spanflame.toml        check a file
  SPANFLAME_HTTP=127.0.0.1:0 spanflame config     what the environment sets")]
pub(crate) struct Config {
    #[command(flatten)]
    settings: Settings,
    /// Print JSON instead of TOML
    #[arg(long)]
    json: bool,
}

impl Config {
    pub(crate) fn run(self, session: &mut Session) -> Result<Outcome, Error> {
        let config = self.settings.load()?;
        if !self.json {
            session.write(config.describe().as_bytes())?;
            return Ok(Outcome::Found);
        }
        let default = spanflame_server::Config::default();
        let keys: Vec<serde_json::Value> = spanflame_server::Config::keys()
            .iter()
            .map(|key| {
                serde_json::json!({
                    "name": key.name, "flag": format!("--{}", key.flag()), "variable": key.variable(), "meaning": key.meaning,
                    "costs": key.costs, "unit": key.unit.placeholder(), "default": key.show(&default), "value": key.show(&config),
                })
            })
            .collect();
        session.print(&[serde_json::json!({ "settings": keys }).to_string()])?;
        Ok(Outcome::Found)
    }
}
