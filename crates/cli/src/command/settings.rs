//! The flags of `serve`, one for every key of the server's table of settings, so that neither lags behind.

use std::path::PathBuf;

use clap::{Arg, ArgMatches, Args, FromArgMatches};
use spanflame_server::config::{Config, Key, Sources, Unit};

use crate::error::Error;

/// The variable that names the file.
const CONFIG_VARIABLE: &str = "SPANFLAME_CONFIG";
const HEADING: &str = "Settings (each also as SPANFLAME_NAME and in the file)";

/// Where settings come from: a file, the environment, and flags over both.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    file: Option<PathBuf>,
    flags: Vec<(String, String)>,
}

impl Settings {
    /// Reads all sources. Fails with every mistake at once.
    pub(crate) fn load(&self) -> Result<Config, Error> {
        let file = match &self.file {
            None => None,
            Some(path) => {
                let text = std::fs::read_to_string(path).map_err(|source| Error::Read {
                    path: path.clone(),
                    source,
                })?;
                Some((path.display().to_string(), text))
            }
        };
        let text = |os: std::ffi::OsString| os.to_string_lossy().into_owned();
        let sources = Sources {
            file,
            environment: std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect(),
            flags: self.flags.clone(),
        };
        Config::load(&sources).map_err(Error::Settings)
    }
}

impl Args for Settings {
    fn augment_args(command: clap::Command) -> clap::Command {
        let file = Arg::new("config")
            .long("config")
            .value_name("FILE")
            .env(CONFIG_VARIABLE)
            .hide_env_values(true)
            .value_parser(clap::value_parser!(PathBuf))
            .help("TOML file with settings; `spanflame config` prints one with all defaults");
        Config::keys().iter().fold(command.arg(file), |command, key| command.arg(flag(key)))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Settings::augment_args(command)
    }
}

impl FromArgMatches for Settings {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Settings, clap::Error> {
        let mut settings = Settings::default();
        settings.update_from_arg_matches(matches)?;
        Ok(settings)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.file = matches.get_one::<PathBuf>("config").cloned();
        let given = |key: &Key| Some((key.flag(), matches.get_one::<String>(key.name)?.clone()));
        self.flags = Config::keys().iter().filter_map(given).collect();
        Ok(())
    }
}

/// Values are read by the table, not by clap: only so are all mistakes of all sources reported together.
fn flag(key: &'static Key) -> Arg {
    let default = key.show(&Config::default());
    let default = if default == "off" {
        String::new()
    } else {
        format!(" [default: {default}]")
    };
    let arg = Arg::new(key.name)
        .long(key.flag())
        .value_name(key.unit.placeholder())
        .help_heading(HEADING)
        .help(format!("{}{default}", key.meaning))
        .long_help(format!("{}{default}\n{}", key.meaning, key.costs))
        .allow_hyphen_values(true);
    match key.unit {
        Unit::Bool => arg.num_args(0..=1).default_missing_value("true"),
        _ => arg,
    }
}
