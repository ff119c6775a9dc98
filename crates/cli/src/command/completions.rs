//! `spanflame completions`

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::error::Error;
use crate::session::{Outcome, Session};

/// Print a completion script for a shell
///
/// It completes commands, flags and the fixed values of flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  spanflame completions bash > ~/.local/share/bash-completion/completions/spanflame
  spanflame completions zsh > \"${fpath[1]}/_spanflame\"
  spanflame completions fish > ~/.config/fish/completions/spanflame.fish")]
pub(crate) struct Completions {
    /// Which shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, session: &mut Session) -> Result<Outcome, Error> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut crate::Cli::command(), "spanflame", &mut script);
        session.write(&script)?;
        Ok(Outcome::Found)
    }
}
