//! One function on a stack, as reported.

use std::fmt;

use crate::Hasher;

/// Content hash of a [`Frame`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(pub u64);

impl fmt::Display for FrameId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// One function on a stack.
///
/// A frame either has names, or, where the client could not tell them, a module and an address in it. The
/// address of a named frame is not kept: it differs by process and would make equal stacks differ.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Function name as shown to people; empty if unknown.
    pub function: String,
    /// Mangled name, empty if the same as `function` or unknown.
    pub system_name: String,
    /// Source file, empty if unknown.
    pub file: String,
    /// Line that ran, 1-based; 0 if unknown.
    pub line: i64,
    /// Column that ran, 1-based; 0 if unknown.
    pub column: i64,
    /// Line on which the function begins, 1-based; 0 if unknown.
    pub start_line: i64,
    /// Executable or library: the mapping's file name, empty if unknown.
    pub module: String,
    /// Build id of the module in hex, as reported; empty if unknown.
    pub build_id: String,
    /// Only of a frame without a name: address in the module's own address space (ELF virtual address),
    /// or the runtime address where the module is unknown.
    pub address: Option<u64>,
    /// OpenTelemetry's `profile.frame.type` (`native`, `kernel`, `go`, `jvm`, ...), empty if unknown.
    pub kind: String,
    /// Inlined into the next frame of the stack: both come from one location of the client's profile.
    pub inlined: bool,
}

impl Frame {
    /// What to call it: the function, else `module+0xaddress`, else `[unknown]`.
    pub fn display_name(&self) -> String {
        if !self.function.is_empty() {
            return self.function.clone();
        }
        if !self.system_name.is_empty() {
            return self.system_name.clone();
        }
        let module = self.module.rsplit('/').next().unwrap_or_default();
        match (module, self.address) {
            ("", Some(address)) => format!("0x{address:x}"),
            ("", None) => "[unknown]".to_owned(),
            (module, Some(address)) => format!("{module}+0x{address:x}"),
            (module, None) => format!("[{module}]"),
        }
    }

    /// Whether the client could not name it.
    pub fn is_unresolved(&self) -> bool {
        self.function.is_empty() && self.system_name.is_empty()
    }

    /// The content hash.
    pub fn id(&self) -> FrameId {
        let mut h = Hasher::new();
        h.text(&self.function);
        h.text(&self.system_name);
        h.text(&self.file);
        h.number(self.line as u64);
        h.number(self.column as u64);
        h.number(self.start_line as u64);
        h.text(&self.module);
        h.text(&self.build_id);
        h.number(self.address.map_or(0, |_| 1));
        h.number(self.address.unwrap_or(0));
        h.text(&self.kind);
        h.number(u64::from(self.inlined));
        FrameId(h.finish64())
    }
}
