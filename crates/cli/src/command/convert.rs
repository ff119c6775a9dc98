//! `spanflame convert`

use std::path::{Path, PathBuf};

use clap::Args;
use spanflame_formats::{Decoded, Export, Format, Limits, Upload};
use spanflame_model::{CpuRule, ProfileType, ValueType, cpu_rule};

use super::input::Input;
use super::profile::write_file;
use crate::error::Error;
use crate::render::quantity;
use crate::session::{Outcome, Session};

/// Convert a profile between formats; no server needed
///
/// Reads pprof, jfr, collapsed, perf-script, speedscope, otlp-profiles and otlp-profiles-json, plain, gzip or zstd, by
/// content. Writes pprof, collapsed, speedscope and otlp-profiles. Links to spans are kept where the format has
/// labels. What cannot be read is left out, counted, and said on standard error.
#[derive(Args)]
#[command(after_help = "\
Examples:
  spanflame convert cpu.pb.gz cpu.collapsed
  spanflame convert cpu.pb.gz cpu.speedscope.json
  perf script | spanflame convert - cpu.pb.gz
  spanflame convert request.otlp - --to collapsed --profile 2
  spanflame convert cpu.pb.gz - --to collapsed --value samples")]
pub(crate) struct Convert {
    /// File to read; - is standard input
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// File to write; - is standard output
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// Format of the input, if its content does not tell
    #[arg(long, value_name = "FORMAT", value_parser = Format::from_name)]
    from: Option<Format>,
    /// Format of the output, if its name does not tell (.pb.gz, .pprof, .collapsed, .json, .otlp)
    #[arg(long, value_name = "FORMAT", value_parser = Format::from_name)]
    to: Option<Format>,
    /// Which profile of an input that holds several of different types, counted from 1
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    profile: Option<u64>,
    /// Which values to write where a format has room for one, by their kind, such as cpu or alloc_space
    #[arg(long, value_name = "KIND")]
    value: Option<String>,
    /// Print what was read and written as JSON; OUT must be a file
    #[arg(long, help_heading = "Output")]
    json: bool,
}

impl Convert {
    pub(crate) fn run(self, session: &mut Session) -> Result<Outcome, Error> {
        let to = self.to.or_else(|| by_name(&self.output)).ok_or_else(|| self.no_format())?;
        let to_stdout = self.output.as_os_str() == "-";
        if to_stdout && self.json {
            return Err(Error::Usage(
                "--json needs standard output for itself: name a file as OUT".to_owned(),
            ));
        }
        let input = Input::read(&self.input)?;
        let (from, decoded) = self.decode(&input)?;
        if let Some(message) = decoded.rejects.message() {
            session.note(&format!("{}: left out or irregular: {message}", input.name));
        }
        let exports = Export::of_batch(&decoded.batch);
        let read = types_of(&exports);
        let Some(export) = self.choose(exports, to, &input.name)? else {
            session.note(&format!("nothing found: {} has no profile", input.name));
            return Ok(Outcome::Nothing);
        };
        if let Some(note) = self.note_of_value(&read, &export, to) {
            session.note(&note);
        }
        let bytes = to.encode(&export).ok_or_else(|| cannot_write(to))?;
        if to_stdout {
            session.write(&bytes)?;
        } else {
            write_file(&self.output, &bytes)?;
        }
        if self.json {
            let samples = export.rows.len();
            let output = self.output.display().to_string();
            let facts =
                serde_json::json!({ "from": from.as_str(), "to": to.as_str(), "samples": samples, "bytes": bytes.len(), "output": output });
            session.print(&[facts.to_string()])?;
        }
        Ok(Outcome::found(!export.rows.is_empty()))
    }

    fn no_format(&self) -> Error {
        Error::Usage(format!(
            "the format of {} is not known by its name, expected --to pprof, collapsed, speedscope or otlp-profiles",
            self.output.display()
        ))
    }

    fn decode(&self, input: &Input) -> Result<(Format, Decoded), Error> {
        let format = input.format(self.from)?;
        let limits = Limits {
            decoded_bytes_max: super::input::INPUT_BYTES_MAX as usize,
            ..Limits::default()
        };
        let failed = |source| Error::Decode {
            name: input.name.clone(),
            format: format.as_str(),
            source,
        };
        let decoded = format.decode(&input.bytes, &Upload::default(), &limits).map_err(failed)?;
        Ok((format, decoded))
    }

    /// The profile asked for; else all of them as one, which needs equal types.
    fn choose(&self, mut exports: Vec<Export>, to: Format, name: &str) -> Result<Option<Export>, Error> {
        if let Some(number) = self.profile {
            let at = usize::try_from(number - 1).unwrap_or(usize::MAX);
            if at >= exports.len() {
                return Err(Error::Usage(format!(
                    "--profile is {number}, {name} has {}",
                    quantity::counted(exports.len() as u64, "profile")
                )));
            }
            exports = vec![exports.swap_remove(at)];
        }
        if self.value.is_some() || to == Format::Collapsed {
            exports = self.with_value(exports, to == Format::Collapsed)?;
        }
        let Some(first) = exports.first() else {
            return Ok(None);
        };
        if exports
            .iter()
            .any(|other| other.types != first.types || other.period != first.period)
        {
            let list: Vec<String> = exports
                .iter()
                .zip(1..)
                .map(|(export, number)| format!("  {number}  {}", types_text(&export.types)))
                .collect();
            let hint = format!(
                "{name} has profiles of different types, choose one with --profile NUMBER, or by --value KIND:\n{}",
                list.join("\n")
            );
            return Err(Error::Usage(hint));
        }
        Ok(exports.into_iter().reduce(joined))
    }

    /// The profiles that have the value asked for, else CPU time: whole, or for a format with room for one value `only` that.
    /// Without a wish and without CPU time, the profiles as they are.
    fn with_value(&self, exports: Vec<Export>, only: bool) -> Result<Vec<Export>, Error> {
        let kind = self.value.as_deref();
        let readings: Vec<Option<Reading>> = exports.iter().map(|export| Reading::of(export, kind)).collect();
        let Some(counts) = readings.iter().flatten().map(|reading| reading.counts()).min() else {
            return match kind {
                Some(kind) => Err(no_such_value(kind, &exports)),
                None => Ok(exports),
            };
        };
        let chosen = exports.into_iter().zip(readings).filter_map(|(export, reading)| {
            let reading = reading.filter(|reading| reading.counts() == counts)?;
            Some(if only { reading.narrow(export) } else { export })
        });
        Ok(chosen.collect())
    }

    /// What was written, where nothing was asked for and other values were there.
    fn note_of_value(&self, read: &[ValueType], written: &Export, to: Format) -> Option<String> {
        if to != Format::Collapsed || self.value.is_some() {
            return None;
        }
        let wrote = &written.types[0];
        let is_all = read.iter().all(|value_type| value_type == wrote);
        (!is_all).then(|| {
            format!(
                "values are {}/{}, of {}; choose with --value KIND",
                wrote.kind,
                wrote.unit,
                types_text(read)
            )
        })
    }
}

/// How the one value of each sample is read out of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reading {
    rule: CpuRule,
    is_cpu: bool,
}

impl Reading {
    /// The value of `kind`; CPU time, by the rule that the server has, where `kind` is absent or `cpu`.
    fn of(export: &Export, kind: Option<&str>) -> Option<Reading> {
        if let None | Some("cpu") = kind
            && let Some(rule) = cpu_rule(&export.types, &export.profile_type.period, export.period)
        {
            return Some(Reading { rule, is_cpu: true });
        }
        let index = export.types.iter().position(|value_type| Some(value_type.kind.as_str()) == kind)?;
        Some(Reading {
            rule: CpuRule { index, factor: 1 },
            is_cpu: false,
        })
    }

    /// Whether time comes from counts. A sender may give both, each as a profile of its own: then time comes first.
    fn counts(self) -> bool {
        self.rule.factor != 1
    }

    fn narrow(self, mut export: Export) -> Export {
        let CpuRule { index, factor } = self.rule;
        for row in &mut export.rows {
            row.values = vec![row.values[index].saturating_mul(factor)];
        }
        export.types = vec![export.types.swap_remove(index)];
        if self.is_cpu {
            export.types = vec![ProfileType::cpu().sample];
            export.profile_type = ProfileType::cpu();
        }
        export.period = 0;
        export
    }
}

fn no_such_value(kind: &str, exports: &[Export]) -> Error {
    Error::Usage(format!("--value is {kind:?}, expected one of {}", types_text(&types_of(exports))))
}

/// The types of all profiles, each once, in their order.
fn types_of(exports: &[Export]) -> Vec<ValueType> {
    let mut types: Vec<ValueType> = Vec::new();
    for value_type in exports.iter().flat_map(|export| &export.types) {
        if !types.contains(value_type) {
            types.push(value_type.clone());
        }
    }
    types
}

fn cannot_write(format: Format) -> Error {
    Error::Usage(format!(
        "{format} is read only, expected --to pprof, collapsed, speedscope or otlp-profiles"
    ))
}

/// `samples/count, cpu/nanoseconds`
fn types_text(types: &[ValueType]) -> String {
    let types: Vec<String> = types
        .iter()
        .map(|value_type| format!("{}/{}", value_type.kind, value_type.unit))
        .collect();
    types.join(", ")
}

/// Two profiles of equal types as one: all their samples, over the time of both.
fn joined(mut all: Export, other: Export) -> Export {
    let end = |export: &Export| export.start.saturating_add(export.duration_ns);
    let end = end(&all).max(end(&other));
    all.start = all.start.min(other.start);
    all.duration_ns = end.nanos_since(all.start);
    all.stacks.merge(other.stacks);
    all.rows.extend(other.rows);
    all
}

/// The format that a file's name promises.
fn by_name(path: &Path) -> Option<Format> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    match () {
        () if ends(&[".pb.gz", ".pprof", ".prof", ".pb", ".pprof.gz"]) => Some(Format::Pprof),
        () if ends(&[".collapsed", ".folded", ".txt"]) => Some(Format::Collapsed),
        () if ends(&[".json", ".speedscope"]) => Some(Format::Speedscope),
        () if ends(&[".otlp"]) => Some(Format::OtlpProfiles),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_promises_a_format() {
        let cases = [
            ("a/cpu.pb.gz", Some(Format::Pprof)),
            ("CPU.Folded", Some(Format::Collapsed)),
            ("x.speedscope.json", Some(Format::Speedscope)),
            ("x.otlp", Some(Format::OtlpProfiles)),
            ("-", None),
            ("x.svg", None),
        ];
        for (name, expected) in cases {
            assert_eq!(by_name(Path::new(name)), expected, "{name}");
        }
    }
}
