//! Where settings come from, and the mistakes found in them.

use std::fmt;

use super::{Config, Key, keys};

/// Prefix of environment variables that name keys.
const ENVIRONMENT_PREFIX: &str = "SPANFLAME_";

/// Variables with our prefix that other parts of the product read.
const OTHER_VARIABLES: [&str; 4] = ["SPANFLAME_SERVER", "SPANFLAME_CONFIG", "SPANFLAME_TENANT", "SPANFLAME_SDK_"];

/// What a caller read from file, environment and command line.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Name and text of the TOML file.
    pub file: Option<(String, String)>,
    /// Environment variables; those without the prefix `SPANFLAME_` are ignored.
    pub environment: Vec<(String, String)>,
    /// Flags without their dashes, with their values.
    pub flags: Vec<(String, String)>,
}

/// Where a value was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A configuration file of this name.
    File(String),
    /// An environment variable of this name.
    Variable(String),
    /// A flag of this name.
    Flag(String),
    /// Not one place: two settings contradict each other.
    Together,
}

/// One mistake: it names the key, the value and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    origin: Origin,
    key: String,
    problem: Problem,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Problem {
    UnknownKey { near: Option<&'static str> },
    Value { value: String, expected: String },
    Syntax { message: String },
}

impl Mistake {
    /// Where the value was read.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The key, as it was written.
    pub fn key(&self) -> &str {
        &self.key
    }

    pub(super) fn between(key: &str, value: String, expected: &str) -> Mistake {
        Mistake {
            origin: Origin::Together,
            key: key.to_owned(),
            problem: Problem::Value {
                value,
                expected: expected.to_owned(),
            },
        }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::File(file) if self.key.is_empty() => write!(f, "{file}")?,
            Origin::File(file) => write!(f, "{} in {file}", self.key)?,
            Origin::Variable(name) => f.write_str(name)?,
            Origin::Flag(name) => write!(f, "--{name}")?,
            Origin::Together => f.write_str(&self.key)?,
        }
        match &self.problem {
            Problem::UnknownKey { near: None } => f.write_str(" is no key"),
            Problem::UnknownKey { near: Some(near) } => write!(f, " is no key; did you mean {near}?"),
            Problem::Value { value, expected } if self.origin == Origin::Together => write!(f, " is {value}, expected {expected}"),
            Problem::Value { value, expected } => write!(f, " is {value:?}, expected {expected}"),
            Problem::Syntax { message } => write!(f, " is no TOML: {message}"),
        }
    }
}

/// Every mistake found, at least one; shown one a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistakes(Vec<Mistake>);

impl Mistakes {
    /// In the order of the sources.
    pub fn iter(&self) -> impl Iterator<Item = &Mistake> {
        self.0.iter()
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, mistake) in self.0.iter().enumerate() {
            write!(f, "{}{mistake}", if at == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl std::error::Error for Mistakes {}

/// See [`Config::load`].
pub(super) fn load(sources: &Sources) -> Result<Config, Mistakes> {
    let mut loader = Loader::default();
    if let Some((name, text)) = &sources.file {
        loader.read_file(name, text);
    }
    for (name, value) in &sources.environment {
        loader.read_variable(name, value);
    }
    for (name, value) in &sources.flags {
        loader.set(Origin::Flag(name.clone()), &name.replace('-', "_"), value);
    }
    let Loader { config, mut mistakes } = loader;
    mistakes.extend(config.contradictions());
    if mistakes.is_empty() { Ok(config) } else { Err(Mistakes(mistakes)) }
}

#[derive(Default)]
struct Loader {
    config: Config,
    mistakes: Vec<Mistake>,
}

impl Loader {
    fn read_file(&mut self, name: &str, text: &str) {
        let table: toml::Table = match text.parse() {
            Ok(table) => table,
            Err(error) => {
                let message = error.to_string().trim_end().replace('\n', " ");
                self.mistakes.push(Mistake {
                    origin: Origin::File(name.to_owned()),
                    key: String::new(),
                    problem: Problem::Syntax { message },
                });
                return;
            }
        };
        // The table is sorted by key; the order in which people read their mistakes is the file's.
        let mut entries: Vec<(String, toml::Value)> = table.into_iter().collect();
        entries.sort_by_key(|(key, _)| text.find(key.as_str()));
        for (key, value) in entries {
            self.set(Origin::File(name.to_owned()), &key, &plain_text(&value));
        }
    }

    fn read_variable(&mut self, name: &str, value: &str) {
        let Some(key) = name.strip_prefix(ENVIRONMENT_PREFIX) else {
            return;
        };
        if !OTHER_VARIABLES.iter().any(|other| name.starts_with(other)) {
            self.set(Origin::Variable(name.to_owned()), &key.to_ascii_lowercase(), value);
        }
    }

    fn set(&mut self, origin: Origin, name: &str, value: &str) {
        let Some(key) = Key::find(name) else {
            let near = nearest(name);
            self.mistakes.push(Mistake {
                origin,
                key: name.to_owned(),
                problem: Problem::UnknownKey { near },
            });
            return;
        };
        if let Err(expected) = key.read(&mut self.config, value) {
            self.mistakes.push(Mistake {
                origin,
                key: name.to_owned(),
                problem: Problem::Value {
                    value: value.chars().take(200).collect(),
                    expected,
                },
            });
        }
    }
}

/// A TOML value as a flag would write it; lists are joined by commas.
fn plain_text(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Array(values) => values.iter().map(plain_text).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// The key that differs from `name` by at most two letters added, dropped or changed.
fn nearest(name: &str) -> Option<&'static str> {
    keys::KEYS
        .iter()
        .map(|key| (distance(name, key.name), key.name))
        .filter(|(distance, _)| *distance <= 2)
        .min()
        .map(|(_, name)| name)
}

fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
