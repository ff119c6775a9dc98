//! `cargo xtask demo`: three services under load, one server, and what made a slow request slow.
//!
//! ```text
//! build -> server ready -> services ready -> load -> enough slow requests answered -> tour
//!                                                                               \-> verdict (--check)
//! ```
//!
//! All processes are children of this one and end with it, whatever way it ends.

mod ask;
mod browser;
mod record;
mod stage;
mod tour;
mod verdict;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::{Failure, machine, process, ui, workspace};
use record::{Plant, Record};
use stage::Stage;

/// What the user asked for.
pub(crate) struct Options {
    /// Judge and end, instead of showing and staying.
    pub(crate) check: bool,
    /// Where the server keeps its data.
    pub(crate) data: Option<PathBuf>,
    /// The first of three ports (HTTP, OTLP by gRPC, OTLP by HTTP), instead of the customary ones.
    pub(crate) port_base: Option<u16>,
    /// What to do with the page in a browser, after the verdict.
    pub(crate) browse: Option<Browse>,
    /// An OpenTelemetry Collector that the services send through.
    pub(crate) relay: Option<PathBuf>,
}

/// What a browser is for.
pub(crate) enum Browse {
    /// The tests of the page.
    Test,
    /// Pictures of its screens, into a folder.
    Picture(PathBuf),
}

/// How much must have happened before the answers are looked at.
struct Enough {
    load: Duration,
    /// Slow requests of each kind.
    slow: usize,
    patience: Duration,
}

/// The demo shows itself within a minute of serving.
const ENOUGH_TO_SHOW: Enough = Enough {
    load: Duration::from_secs(20),
    slow: 1,
    patience: Duration::from_secs(120),
};

/// Several of each kind, so that a lucky hit is no pass.
const ENOUGH_TO_JUDGE: Enough = Enough {
    load: Duration::from_secs(30),
    slow: 4,
    patience: Duration::from_secs(240),
};

const PROGRESS_EVERY: Duration = Duration::from_secs(5);

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Result<Options, Failure> {
        let mut options = Options {
            check: false,
            data: None,
            port_base: None,
            browse: None,
            relay: None,
        };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut value = || rest.next().ok_or_else(|| format!("{argument} is missing its value"));
            match argument.as_str() {
                "--check" => options.check = true,
                "--data" => options.data = Some(PathBuf::from(value()?)),
                "--port-base" => {
                    let text = value()?;
                    let port = text
                        .parse()
                        .map_err(|_| format!("--port-base is {text}, expected a port up to 65533"))?;
                    options.port_base = Some(port);
                }
                other => return Err(format!("unexpected argument {other} of demo").into()),
            }
        }
        Ok(options)
    }
}

/// Pictures of every screen of the page, of a run of its own.
pub(crate) fn picture() -> Result<(), Failure> {
    run(&Options {
        check: true,
        data: None,
        port_base: None,
        browse: Some(Browse::Picture(workspace::target_dir()?.join("screenshots"))),
        relay: None,
    })
}

/// Builds, starts everything, shows or judges, and ends everything.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let binaries = build()?;
    let start = Instant::now();
    let mut stage = Stage::start(&binaries, options)?;
    println!("\nserving at {}, data in {}", stage.http(), stage.data().display());
    let ask = ask::Ask::new(&binaries, stage.http());
    let outcome = play(&mut stage, &ask, options, start);
    if outcome.is_err() && process::check_interrupt().is_ok() {
        stage.keep_logs();
    }
    outcome
}

fn play(stage: &mut Stage, ask: &ask::Ask, options: &Options, start: Instant) -> Result<(), Failure> {
    let enough = if options.check { ENOUGH_TO_JUDGE } else { ENOUGH_TO_SHOW };
    let records = watch_load(stage, &enough)?;
    verdict::wait_for_samples(ask, &records)?;
    if options.check {
        verdict::judge(ask, &records, stage.since_unix_nano())?;
        return match &options.browse {
            Some(Browse::Test) => browser::test(stage, &records),
            Some(Browse::Picture(folder)) => browser::picture(stage, &records, folder),
            None => Ok(()),
        };
    }
    tour::show(ask, &records, stage.since_unix_nano())?;
    println!(
        "\nshown {} s after the start; everything goes on until Ctrl-C\nserving at {}",
        start.elapsed().as_secs(),
        stage.http()
    );
    stay(stage)
}

/// Builds the binaries and returns the folder that holds them.
fn build() -> Result<PathBuf, Failure> {
    machine::provide(machine::TO_BUILD)?;
    ui::build()?;
    println!("building with the demo profile; the first time takes minutes, later ones seconds");
    let packages = ["-p", "spanflame-cli", "-p", "spanflame-shop"];
    let mut words = vec!["build", "--locked", "--profile", "demo", "--bins"];
    words.extend(packages);
    process::run(workspace::cargo(&words))?;
    Ok(workspace::target_dir()?.join("demo"))
}

/// Waits for enough load and reports on the way.
fn watch_load(stage: &mut Stage, enough: &Enough) -> Result<Vec<Record>, Failure> {
    let start = Instant::now();
    let mut told = Instant::now();
    let mut records = Vec::new();
    process::wait_until("enough load", enough.patience, || {
        stage.check_alive()?;
        records = record::read(&stage.record_path())?;
        let slow = |plant| records.iter().filter(|record| record.plant == plant).count();
        let (large, odd) = (slow(Plant::LargeCart), slow(Plant::OddCoupon));
        if told.elapsed() >= PROGRESS_EVERY {
            told = Instant::now();
            let seconds = start.elapsed().as_secs();
            println!(
                "{seconds:4} s of load: {} requests, {large} large carts, {odd} odd coupons",
                records.len()
            );
        }
        Ok(start.elapsed() >= enough.load && large.min(odd) >= enough.slow)
    })?;
    Ok(records)
}

/// Stays until the user ends it, which is success, or a process fails, which is not.
fn stay(stage: &mut Stage) -> Result<(), Failure> {
    while process::check_interrupt().is_ok() {
        stage.check_alive()?;
        std::thread::sleep(Duration::from_millis(200));
    }
    println!("ending");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &[&str], expected: Result<(bool, Option<u16>), &str>) {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        let parsed = Options::parse(&words).map(|options| (options.check, options.port_base));
        assert_eq!(parsed.map_err(|failure| failure.to_string()), expected.map_err(str::to_owned));
    }

    #[test]
    fn flags_are_read() {
        check(&["--check", "--port-base", "5000"], Ok((true, Some(5000))));
        check(&[], Ok((false, None)));
    }

    #[test]
    fn a_mistake_names_the_value() {
        check(&["--port-base", "high"], Err("--port-base is high, expected a port up to 65533"));
        check(&["--data"], Err("--data is missing its value"));
        check(&["--chekc"], Err("unexpected argument --chekc of demo"));
    }
}
