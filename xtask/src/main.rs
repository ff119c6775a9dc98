//! The project's own commands, in Rust so that they run wherever the project builds.
//!
//! ```text
//! cargo xtask check    what can be seen without running: format, lints, docs, layering, links
//! cargo xtask test     all of CI: sets up, checks, runs the demo with its verdict, published clients, fuzz targets, every test
//! cargo xtask demo     a server, three services and load; shows what made a slow request slow
//! cargo xtask ui       builds the web page
//! cargo xtask conformance  published clients against a server
//! cargo xtask faults   servers that die, and whether they kept what they acknowledged
//! cargo xtask fuzz     every decoder and parser on inputs that look for faults
//! cargo xtask bench    measures a release server with the corpus
//! ```
//!
//! Commands print what they do and end only processes that they started.

mod bench;
mod check;
mod conformance;
mod demo;
mod faults;
mod fuzz;
mod machine;
mod process;
mod steps;
mod test;
mod ui;
mod workspace;

use std::process::ExitCode;

/// What a command fails with: a sentence for whoever ran it.
type Failure = Box<dyn std::error::Error>;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  check                        format, clippy, docs, layering, links, sources
  test                         sets up, then check, demo --check, conformance, and every test
  demo [--check] [--data DIR] [--port-base N]
                               starts a server, three services and load, and shows what made a slow request slow;
                               --check compares what was found with what was planted and ends
  screenshots                  pictures of every screen of the page on the demo's data, in target/screenshots
  ui                           builds the web page, which the next build of the server takes in; needs Node 20
  conformance [CLIENT..]       published clients, unchanged, against a server: go-root, go-all, java, python, node, collector; needs Go,
                               Python 3 and Node 20, and packages from their registries the first time
  faults [--deaths N] [--seed N]
                               a server that dies 10 times under clients that send again, and what is left of what it acknowledged
  fuzz [--seconds N] [TARGET..]
                               every decoder and parser on inputs that look for faults, 10 s each; begins with the files in testdata
  bench [--quick] [ARGS..]     measures a release server; ARGS go to the driver (see bench/README.md)
";

fn main() -> ExitCode {
    process::watch_interrupts();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<(), Failure> {
    let Some((command, rest)) = arguments.split_first() else {
        return Err(USAGE.into());
    };
    match command.as_str() {
        "check" => no_more(rest).and_then(|()| check::run()),
        "test" => no_more(rest).and_then(|()| test::run()),
        "demo" => demo::run(&demo::Options::parse(rest)?),
        "conformance" => conformance::run(rest),
        "faults" => faults::run(rest),
        "fuzz" => fuzz::run(&fuzz::Options::parse(rest)?),
        "bench" => bench::run(rest),
        "screenshots" => no_more(rest).and_then(|()| demo::picture()),
        "ui" => no_more(rest).and_then(|()| ui::build()),
        "help" | "--help" | "-h" => {
            print!("{USAGE}");
            Ok(())
        }
        other => Err(format!("unknown command {other}\n{USAGE}").into()),
    }
}

fn no_more(rest: &[String]) -> Result<(), Failure> {
    match rest.first() {
        Some(argument) => Err(format!("unexpected argument {argument}\n{USAGE}").into()),
        None => Ok(()),
    }
}
