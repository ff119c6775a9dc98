//! The commands, one file each.

mod completions;
mod config;
mod convert;
mod input;
mod inspect;
mod profile;
mod repair;
mod serve;
mod settings;
mod spans;
mod subject;
mod upload;
mod verification;
mod why;

use clap::Subcommand;

use crate::error::Error;
use crate::session::{Outcome, Session};

/// What can be asked of the program.
#[derive(Subcommand)]
pub(crate) enum Command {
    Serve(serve::Serve),
    Why(why::Why),
    Spans(spans::Spans),
    Profile(profile::Profile),
    Convert(convert::Convert),
    Upload(upload::Upload),
    Inspect(inspect::Inspect),
    Repair(repair::Repair),
    Config(config::Config),
    Completions(completions::Completions),
}

impl Command {
    /// Does it.
    pub(crate) fn run(self, session: &mut Session) -> Result<Outcome, Error> {
        match self {
            Command::Serve(command) => command.run(session),
            Command::Why(command) => command.run(session),
            Command::Spans(command) => command.run(session),
            Command::Profile(command) => command.run(session),
            Command::Convert(command) => command.run(session),
            Command::Upload(command) => command.run(session),
            Command::Inspect(command) => command.run(session),
            Command::Repair(command) => command.run(session),
            Command::Config(command) => command.run(session),
            Command::Completions(command) => command.run(session),
        }
    }
}
