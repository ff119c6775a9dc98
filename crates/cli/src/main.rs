//! The binary `spanflame`: serves, asks, converts.
//!
//! A command is one file in `command/`: its flags, its help and what it does. It gets a [`Session`] to write
//! to and says whether it found something. Exit codes: 0 found, 1 nothing found, 2 error.

mod client;
mod command;
mod error;
mod render;
mod session;
mod time;

use std::process::ExitCode;

use clap::Parser;

use command::Command;
use render::terminal::ColorChoice;
use session::{Outcome, Session};

/// Decoding allocates many small values on many threads; glibc's allocator keeps what they freed.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Read by jemalloc when the process begins. Freed pages go back to the system after 0.2 s instead of 10 s: a flush frees as much as
/// it allocated, and the next one would not come soon enough to use it. `_RJEM_MALLOC_CONF` in the environment comes after it.
#[unsafe(export_name = "_rjem_malloc_conf")]
static ALLOCATOR_SETTINGS: AllocatorSettings = AllocatorSettings(c"dirty_decay_ms:200,muzzy_decay_ms:0".as_ptr());

/// The pointer that jemalloc looks for.
#[repr(transparent)]
struct AllocatorSettings(*const std::ffi::c_char);

// SAFETY: it points to a constant, which nobody writes.
unsafe impl Sync for AllocatorSettings {}

/// Traces and continuous profiles in one store: from a slow span to the code that ran in it.
#[derive(Parser)]
#[command(name = "spanflame", version, propagate_version = true, after_help = EXAMPLES)]
struct Cli {
    /// When to colour
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "WHEN",
        hide_possible_values = true,
        help_heading = "Output"
    )]
    color: ColorChoice,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  spanflame serve                                  start a server with its data in ./spanflame-data
  spanflame spans '{ duration > 500ms }'           the slowest requests of the last hour
  spanflame why 5732450b54c5f9e85941cd3567d0ee56   where a trace's time went, and in which code
  spanflame upload cpu.pprof --service cart        add a profile
  spanflame convert cpu.pprof cpu.collapsed        no server needed

Exit codes: 0 found, 1 nothing found, 2 error.";

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no errors; clap knows which stream and code they have.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    match Session::new(cli.color).and_then(|mut session| cli.command.run(&mut session)) {
        Ok(Outcome::Found) => ExitCode::SUCCESS,
        Ok(Outcome::Nothing) => ExitCode::from(1),
        Err(error) if error.is_closed_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            session::complain(&error);
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn flags_do_not_contradict_each_other() {
        Cli::command().debug_assert();
    }
}
