//! `spanflame profile`

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::{ArgGroup, Args, ValueEnum};
use spanflame_formats::{Limits, Upload, pprof};

use super::subject::Subject;
use crate::client::{Client, ProfileOf, Query, Scope, Source, answer};
use crate::error::Error;
use crate::render::explanation::{evidence_line, profile_lines, reason_lines};
use crate::render::functions::tree_lines;
use crate::render::quantity;
use crate::render::terminal::Terminal;
use crate::session::{Outcome, Session};
use crate::time::TimeWindow;

/// Show or save the profile of services, of a trace, or of a span
///
/// A label selector or a service chooses profiles over time; --trace and --span choose by link.
#[derive(Args)]
#[command(group = ArgGroup::new("what").args(["selector", "service", "trace", "span"]).required(true))]
#[command(after_help = "\
Examples:
  spanflame profile --service cart --since 30m
  spanflame profile '{ service.name=\"cart\", region=~\"eu-.*\" }' --start 2026-11-30T22:00:00Z --end 2026-11-30T23:00:00Z
  spanflame profile --trace 5732450b54c5f9e85941cd3567d0ee56 --format tree
  spanflame profile --span 5732450b54c5f9e85941cd3567d0ee56/f29bbc09d7f2d757 --scope subtree
  spanflame profile --service cart --type memory:alloc_space:bytes:space:bytes
  spanflame profile --service cart --format pprof -o cart.pb.gz     for go tool pprof")]
pub(crate) struct Profile {
    /// Labels in PromQL's way: { name=\"value\", name=~\"regex\" }
    #[arg(value_name = "SELECTOR")]
    selector: Option<String>,
    /// A service by its name: short for { service.name="NAME" }
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
    /// A trace by its id
    #[arg(long, value_name = "TRACE")]
    trace: Option<Subject>,
    /// A span by its trace's id and its own
    #[arg(long, value_name = "TRACE/SPAN")]
    span: Option<Subject>,
    /// Whose samples of the span: its own, those of its descendants too, ...
    #[arg(long, value_enum, requires = "span")]
    scope: Option<Scope>,
    /// Profile type, such as cpu or memory:alloc_space:bytes:space:bytes; `spanflame inspect` lists them
    #[arg(long = "type", value_name = "TYPE", default_value = "cpu")]
    profile_type: String,
    /// What to write
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    format: Format,
    /// Print the answer as JSON: the same as --format json
    #[arg(long, conflicts_with = "format", help_heading = "Output")]
    json: bool,
    /// Write to a file
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
    /// Most functions or tree nodes to show
    #[arg(long, value_name = "COUNT", default_value_t = 40, help_heading = "Output")]
    rows: usize,
    #[command(flatten)]
    window: TimeWindow,
    #[command(flatten)]
    source: Source,
}

/// What to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Table of the functions that cost most themselves.
    #[default]
    Top,
    /// Call tree, heaviest first.
    Tree,
    /// The server's answer.
    Json,
    /// A line a stack: frames from the root, `;` between them, a space, the value.
    Collapsed,
    /// For `go tool pprof` and its kin, gzip.
    Pprof,
    /// For the page of speedscope.
    Speedscope,
}

impl Format {
    /// The API's word; the server knows nothing of our tables.
    fn as_str(self) -> &'static str {
        match self {
            Format::Top | Format::Tree | Format::Json => "json",
            Format::Collapsed => "collapsed",
            Format::Pprof => "pprof",
            Format::Speedscope => "speedscope",
        }
    }
}

impl Profile {
    pub(crate) fn run(mut self, session: &mut Session) -> Result<Outcome, Error> {
        if self.json {
            self.format = Format::Json;
        }
        if self.format == Format::Pprof && self.output.is_none() && std::io::stdout().is_terminal() {
            return Err(Error::Usage(
                "pprof is binary and standard output is a terminal: name a file with -o FILE".to_owned(),
            ));
        }
        let (of, scope) = self.what()?;
        let mut query = self.window.query(SystemTime::now())?;
        query.extend([("type", self.profile_type.clone()), ("format", self.format.as_str().to_owned())]);
        match scope {
            Scope::Labels => query.push(("q", self.selector())),
            _ => query.push(("scope", scope.as_str().to_owned())),
        }
        let reply = session.wait(async {
            let client = self.source.client().await?;
            self.ask(&client, &of, query).await
        })?;
        let Some(reply) = reply else {
            session.note("nothing found: neither a span nor a sample of it is stored; it may not have arrived yet, have expired, or belong to another tenant (--tenant)");
            return Ok(Outcome::Nothing);
        };
        self.show(reply, scope, session)
    }

    /// What the profile is of, and in which scope.
    fn what(&self) -> Result<(ProfileOf, Scope), Error> {
        if let Some(Subject { trace_id, span_id }) = self.span {
            let no_span = || {
                Error::Usage(format!(
                    "--span is {trace_id}, expected TRACE/SPAN; a whole trace is chosen by --trace"
                ))
            };
            let (trace_id, span_id) = (trace_id.to_string(), span_id.ok_or_else(no_span)?.to_string());
            return Ok((ProfileOf::Span { trace_id, span_id }, self.scope.unwrap_or_default()));
        }
        Ok(match self.trace {
            Some(Subject { trace_id, .. }) => (
                ProfileOf::Trace {
                    trace_id: trace_id.to_string(),
                },
                Scope::Trace,
            ),
            None => (ProfileOf::Labels, Scope::Labels),
        })
    }

    fn selector(&self) -> String {
        match (&self.selector, &self.service) {
            (Some(selector), _) => selector.clone(),
            (None, Some(service)) => format!("{{ service.name={service:?} }}"),
            (None, None) => String::new(),
        }
    }

    async fn ask(&self, client: &Client, of: &ProfileOf, query: Query) -> Result<Option<Reply>, Error> {
        if self.format.as_str() != "json" {
            let reply = client.profile_bytes(of, query).await?;
            return Ok(reply.map(|(body, reasons)| Reply::Bytes {
                body: body.to_vec(),
                reasons,
            }));
        }
        let answer = client.profile(of, query).await?;
        Ok(answer.map(|answer| match self.format {
            Format::Json => Reply::Json {
                text: answer.text().to_owned(),
                is_empty: answer.value.samples == 0,
            },
            _ => Reply::Profile(Box::new(answer.value)),
        }))
    }

    fn show(&self, reply: Reply, scope: Scope, session: &mut Session) -> Result<Outcome, Error> {
        match reply {
            Reply::Json { text, is_empty } => {
                self.write(format!("{text}\n").as_bytes(), session)?;
                Ok(Outcome::found(!is_empty))
            }
            Reply::Bytes { body, reasons } => {
                let is_empty = body.is_empty() || self.format == Format::Pprof && is_empty_pprof(&body);
                if is_empty {
                    session.note(&format!(
                        "nothing found: no samples; why: {}",
                        reasons.as_deref().unwrap_or("unknown")
                    ));
                }
                self.write(&body, session)?;
                Ok(Outcome::found(!is_empty))
            }
            Reply::Profile(profile) => {
                let terminal = if self.output.is_some() { Terminal::PLAIN } else { session.terminal };
                let mut text = self.lines(&profile, scope, &terminal).join("\n");
                text.push('\n');
                self.write(text.as_bytes(), session)?;
                Ok(Outcome::found(profile.samples > 0))
            }
        }
    }

    fn lines(&self, profile: &answer::Profile, scope: Scope, terminal: &Terminal) -> Vec<String> {
        if self.format == Format::Top || profile.samples == 0 {
            return profile_lines(scope, profile, self.rows, terminal);
        }
        let total = quantity::value(profile.total, &profile.unit);
        let mut lines = vec![
            format!(
                "{}: {total} from {}",
                profile.profile_type,
                quantity::counted(profile.samples, "sample")
            ),
            String::new(),
        ];
        lines.extend(tree_lines(profile, self.rows, terminal));
        lines.push(String::new());
        lines.push(evidence_line(profile.samples, &profile.evidence));
        lines.extend(reason_lines(&profile.evidence.reasons));
        lines
    }

    fn write(&self, bytes: &[u8], session: &mut Session) -> Result<(), Error> {
        match &self.output {
            None => session.write(bytes),
            Some(path) => write_file(path, bytes),
        }
    }
}

enum Reply {
    Json { text: String, is_empty: bool },
    Bytes { body: Vec<u8>, reasons: Option<String> },
    Profile(Box<answer::Profile>),
}

/// Unlike the text formats, pprof has a valid file without samples.
fn is_empty_pprof(bytes: &[u8]) -> bool {
    let decoded = pprof::decode(bytes, &Upload::default(), &Limits::default());
    decoded.is_ok_and(|decoded| decoded.batch.profiles.iter().all(|profile| profile.samples.is_empty()))
}

/// Writes a file whole: what was there stays until the new content is complete.
pub(super) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let failed = |source| Error::Write {
        path: path.to_owned(),
        source,
    };
    // A device or a pipe cannot be replaced.
    if path.exists() && !path.is_file() {
        return std::fs::write(path, bytes).map_err(failed);
    }
    let mut name = path.as_os_str().to_owned();
    name.push(".partial");
    let partial = PathBuf::from(name);
    let write = || {
        let mut file = std::fs::File::create(&partial)?;
        file.write_all(bytes)?;
        std::fs::rename(&partial, path)
    };
    write().map_err(failed)
}
