//! `cargo xtask fuzz`: every fuzz target for some seconds, begun from the files in testdata.
//!
//! The targets are cargo-fuzz's, without a sanitizer, which stable compilers do not have: `cargo fuzz run -s none TARGET` does the
//! same for one. Corpora grow below the target folder and are used again by the next run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use crate::{Failure, machine, process, workspace};

const CARGO_FUZZ: &str = "0.13.2";

/// Seconds for each target in CI.
const SECONDS_IN_CI: u32 = 10;

/// Targets that run at the same time.
const AT_ONCE: usize = 2;

/// Larger files make slow beginnings; what they hold is in smaller ones too.
const SEED_BYTES_MAX: u64 = 128 << 10;

/// Which files of testdata a target begins with, by a part of their path.
const SEEDS: &[(&str, &[&str])] = &[
    ("collapsed", &["collapsed/"]),
    ("jaeger_proto", &["jaeger/"]),
    ("jaeger_thrift_binary", &["jaeger/"]),
    ("jaeger_thrift_compact", &["jaeger/"]),
    ("jfr", &[".jfr"]),
    ("lines", &["collapsed/"]),
    (
        "otlp_profiles",
        &[
            "otlp-profiles/",
            "recorded/java-agent-otlp/profiles",
            "recorded/otelcol-relay/profiles",
        ],
    ),
    ("otlp_profiles_json", &["dialects/"]),
    ("otlp_traces", &["/traces-"]),
    ("otlp_traces_json", &["otlp-traces/"]),
    ("perf_script", &["perf-script/"]),
    ("pprof", &["pprof/", ".pprof"]),
    ("push_protobuf", &["/push-"]),
    ("speedscope", &["speedscope"]),
    ("zipkin_json", &["zipkin"]),
];

/// What to run, and for how long.
pub(crate) struct Options {
    seconds: u32,
    targets: Vec<String>,
}

impl Options {
    /// Every target, for as long as CI has time.
    pub(crate) fn in_ci() -> Options {
        Options {
            seconds: SECONDS_IN_CI,
            targets: Vec::new(),
        }
    }

    pub(crate) fn parse(arguments: &[String]) -> Result<Options, Failure> {
        let mut options = Options::in_ci();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            if argument == "--seconds" {
                let text = rest.next().ok_or("--seconds is missing its value")?;
                options.seconds = text.parse().map_err(|_| format!("--seconds is {text}, expected whole seconds"))?;
            } else {
                options.targets.push(argument.clone());
            }
        }
        Ok(options)
    }
}

/// Builds all targets, then runs those asked for; fails if one of them found anything.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    machine::provide(machine::TO_BUILD)?;
    let folder = workspace::target_dir()?.join("fuzz");
    let fuzz = Fuzz {
        tool: provide_tool(&folder)?,
        folder,
        seconds: options.seconds,
    };
    process::run(fuzz.command(&["build", "-s", "none"]))?;
    let known = fuzz.targets()?;
    if let Some(unknown) = options.targets.iter().find(|target| !known.contains(target)) {
        return Err(format!("unknown target {unknown}, expected some of {}", known.join(", ")).into());
    }
    let wanted = if options.targets.is_empty() { &known } else { &options.targets };
    let (next, faults) = (Mutex::new(wanted.iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let target = next.lock().expect("nobody panics with it").next();
                    let Some(target) = target.filter(|_| process::check_interrupt().is_ok()) else {
                        return;
                    };
                    match fuzz.run(target) {
                        Ok(seen) => println!("{target}: {seen}"),
                        Err(failure) => faults.lock().expect("nobody panics with it").push(format!("{target}: {failure}")),
                    }
                }
            });
        }
    });
    process::check_interrupt()?;
    let faults = faults.into_inner()?;
    match faults.is_empty() {
        true => Ok(()),
        false => Err(faults.join("\n").into()),
    }
}

struct Fuzz {
    tool: PathBuf,
    folder: PathBuf,
    seconds: u32,
}

impl Fuzz {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.tool);
        command
            .arg("fuzz")
            .args(arguments)
            .current_dir(workspace::root())
            .env("CARGO_TARGET_DIR", self.folder.join("target"));
        command
    }

    fn targets(&self) -> Result<Vec<String>, Failure> {
        let output = self.command(&["list"]).output()?;
        Ok(String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect())
    }

    /// One target; answers the last line that says how far it came.
    fn run(&self, target: &str) -> Result<String, Failure> {
        let (corpus, seeds) = (self.folder.join("corpus").join(target), self.folder.join("seeds").join(target));
        std::fs::create_dir_all(&corpus)?;
        copy_seeds(target, &seeds)?;
        let mut command = self.command(&["run", "-s", "none", target]);
        command.args([&corpus, &seeds]).arg("--").args([
            format!("-max_total_time={}", self.seconds),
            "-timeout=10".to_owned(),
            "-rss_limit_mb=2048".to_owned(),
            "-print_final_stats=1".to_owned(),
        ]);
        let output = command.output()?;
        let told = String::from_utf8_lossy(&output.stderr);
        let executed = told.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
        match (output.status.success(), executed) {
            (true, Some(executed)) => Ok(format!("{} inputs in {} s", executed.trim(), self.seconds)),
            _ => {
                let lines: Vec<&str> = told.lines().collect();
                Err(lines[lines.len().saturating_sub(40)..].join("\n").into())
            }
        }
    }
}

/// Cargo with the sub-command `fuzz`, of this version or what is installed.
fn provide_tool(folder: &Path) -> Result<PathBuf, Failure> {
    let installed = Command::new("cargo").args(["fuzz", "--version"]).output();
    if installed.is_ok_and(|output| output.status.success()) {
        return Ok(PathBuf::from("cargo"));
    }
    let tool = folder.join("tools/bin/cargo-fuzz");
    if !tool.exists() {
        let mut install = Command::new("cargo");
        install
            .args(["install", "cargo-fuzz", "--quiet", "--locked", "--version", CARGO_FUZZ, "--root"])
            .arg(folder.join("tools"));
        process::run(install)?;
    }
    Ok(tool)
}

fn copy_seeds(target: &str, folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder)?;
    let parts = SEEDS.iter().find(|(name, _)| *name == target).map_or(&[][..], |(_, parts)| parts);
    let testdata = workspace::root().join("testdata");
    let mut folders = vec![testdata.clone()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(&testdata)?.display().to_string();
            let is_small = std::fs::metadata(&path)?.len() <= SEED_BYTES_MAX;
            if is_small && parts.iter().any(|part| name.contains(part)) {
                std::fs::copy(&path, folder.join(name.replace('/', "-")))?;
            }
        }
    }
    Ok(())
}
