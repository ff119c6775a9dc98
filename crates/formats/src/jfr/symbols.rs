//! Stacks and threads of a chunk, each built once.

use std::collections::HashMap;

use spanflame_model::{Frame, FrameId, StackId};

use super::pools::Pools;
use super::value::Value;
use crate::stacks::{StackBuilder, named};
use crate::{Reason, Rejects};

/// What stands for the frames that the recorder left out.
const TRUNCATED: &str = "[truncated]";

/// Longest name of a thread.
const THREAD_NAME_CHARS_MAX: usize = 256;

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Thread {
    pub(super) id: Option<i64>,
    pub(super) name: Option<String>,
}

/// Turns the constants of a chunk into the model.
pub(super) struct Symbols<'c, 'a, 'm> {
    pub(super) pools: &'c Pools<'a, 'm>,
    stacks: HashMap<i64, Result<StackId, Reason>>,
    methods: HashMap<(i64, i64), Frame>,
    threads: HashMap<i64, Thread>,
}

impl<'c, 'a, 'm> Symbols<'c, 'a, 'm> {
    pub(super) fn new(pools: &'c Pools<'a, 'm>) -> Symbols<'c, 'a, 'm> {
        Symbols {
            pools,
            stacks: HashMap::new(),
            methods: HashMap::new(),
            threads: HashMap::new(),
        }
    }

    /// The stack that an event names. One that is missing is the empty stack: the recorder could not walk it.
    pub(super) fn stack(
        &mut self,
        value: &Value<'a>,
        builder: &mut StackBuilder<'_>,
        depth_max: usize,
        rejects: &mut Rejects,
    ) -> Result<StackId, Reason> {
        let Value::Pooled(_, key) = value else {
            return self.build(value, builder, depth_max, rejects);
        };
        if let Some(known) = self.stacks.get(key) {
            return *known;
        }
        let built = self.build(value, builder, depth_max, rejects);
        self.stacks.insert(*key, built);
        built
    }

    fn build(
        &mut self,
        value: &Value<'a>,
        builder: &mut StackBuilder<'_>,
        depth_max: usize,
        rejects: &mut Rejects,
    ) -> Result<StackId, Reason> {
        let mut ids = Vec::new();
        if let Some(Value::List(frames)) = self.pools.field(value, "frames") {
            for frame in frames.iter().take(depth_max + 1) {
                ids.push(self.frame(frame, builder, rejects)?);
            }
        }
        let truncated = self.pools.field(value, "truncated");
        if truncated.and_then(|value| self.pools.int(value)) == Some(1) && ids.len() < depth_max {
            ids.push(builder.add_frame(named(TRUNCATED))?);
        }
        builder.add_stack(&mut ids, rejects)
    }

    fn frame(&mut self, value: &Value<'a>, builder: &mut StackBuilder<'_>, rejects: &mut Rejects) -> Result<FrameId, Reason> {
        let pools = self.pools;
        let Some(Value::Object(..)) = pools.resolve(value) else {
            return builder.add_frame(Frame::default());
        };
        let raw = |name: &str| raw_field(pools, value, name);
        let key = |value: Option<&Value<'_>>| match value {
            Some(Value::Pooled(_, key)) => *key,
            _ => -1,
        };
        let (method, kind) = (raw("method"), raw("type"));
        let known = (key(method), key(kind));
        let mut frame = match self.methods.get(&known) {
            Some(frame) => frame.clone(),
            None => {
                let frame = method_frame(pools, method, kind, builder, rejects)?;
                self.methods.insert(known, frame.clone());
                frame
            }
        };
        builder.budget.take(frame.function.len() + frame.module.len())?;
        frame.line = raw("lineNumber").and_then(|line| pools.int(line)).unwrap_or(0).max(0);
        builder.add_frame(frame)
    }

    /// The thread that an event names.
    pub(super) fn thread(&mut self, value: &Value<'a>) -> Thread {
        let Value::Pooled(_, key) = value else {
            return Thread::default();
        };
        if let Some(known) = self.threads.get(key) {
            return known.clone();
        }
        let pools = self.pools;
        let text = |name: &str| {
            pools
                .field(value, name)
                .and_then(|text| pools.text(text))
                .filter(|text| !text.is_empty())
        };
        let id = pools.field(value, "osThreadId").and_then(|id| pools.int(id));
        let thread = Thread {
            id: id.filter(|id| *id > 0),
            name: text("javaName")
                .or_else(|| text("osName"))
                .map(|name| name.chars().take(THREAD_NAME_CHARS_MAX).collect()),
        };
        self.threads.insert(*key, thread.clone());
        thread
    }
}

/// A field as it is, not what it stands for.
fn raw_field<'v, 'a>(pools: &'v Pools<'a, '_>, value: &'v Value<'a>, name: &str) -> Option<&'v Value<'a>> {
    match pools.resolve(value)? {
        Value::Object(kind, fields) => fields.get(pools.position(*kind, name)?),
        _ => None,
    }
}

/// The text of a value, empty where there is none.
fn text_of<'v, 'a>(pools: &'v Pools<'a, '_>, value: Option<&'v Value<'a>>) -> &'v str {
    value.and_then(|value| pools.text(value)).map_or("", |text| &**text)
}

/// A frame without its line. Of native code the class is the library.
fn method_frame<'v, 'a>(
    pools: &'v Pools<'a, '_>,
    method: Option<&'v Value<'a>>,
    kind: Option<&'v Value<'a>>,
    builder: &mut StackBuilder<'_>,
    rejects: &mut Rejects,
) -> Result<Frame, Reason> {
    let part = |name: &str| method.and_then(|method| pools.field(method, name));
    let class = text_of(pools, part("type").and_then(|class| pools.field(class, "name")));
    let name = text_of(pools, part("name"));
    let kind = match text_of(pools, kind.and_then(|kind| pools.field(kind, "description"))) {
        "Kernel" => "kernel",
        "Native" | "C++" => "native",
        _ => "jvm",
    };
    Ok(match (class, kind) {
        ("", kind) => Frame {
            function: builder.name(name, rejects)?,
            kind: kind.to_owned(),
            ..Frame::default()
        },
        (class, "jvm") => Frame {
            function: builder.name(&format!("{class}.{name}"), rejects)?,
            kind: "jvm".to_owned(),
            ..Frame::default()
        },
        (library, kind) => Frame {
            function: builder.name(name, rejects)?,
            module: builder.name(library, rejects)?,
            kind: kind.to_owned(),
            ..Frame::default()
        },
    })
}
