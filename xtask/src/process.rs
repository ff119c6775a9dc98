//! Processes that end when we do.
//!
//! A [`Child`] is asked to end and then killed when it is dropped, so errors and panics take it along; the kernel signals it if we
//! die without dropping anything. SIGINT, SIGTERM and SIGHUP are remembered instead of ending us at once, and every wait in this
//! module looks at that memory. Only processes started here are ever signalled.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::Failure;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

const POLL: Duration = Duration::from_millis(50);

/// How long a child may take to end after SIGTERM before it is killed.
const END_PATIENCE: Duration = Duration::from_secs(20);

/// Lines of a log that a failure quotes.
const LOG_TAIL_LINES: usize = 15;

extern "C" fn remember_interrupt(_signal: libc::c_int) {
    INTERRUPTED.store(true, Ordering::SeqCst);
}

/// From now on Ctrl-C ends waits with an error instead of ending this process without its destructors.
pub(crate) fn watch_interrupts() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler only stores to an atomic, which is async-signal-safe.
        unsafe { libc::signal(signal, remember_interrupt as *const () as libc::sighandler_t) };
    }
}

/// Fails if this process was asked to end.
pub(crate) fn check_interrupt() -> Result<(), Failure> {
    if INTERRUPTED.load(Ordering::SeqCst) {
        Err("interrupted".into())
    } else {
        Ok(())
    }
}

/// Waits until `done` is true or `patience` is over, which is an error that says `what` was awaited.
pub(crate) fn wait_until(what: &str, patience: Duration, mut done: impl FnMut() -> Result<bool, Failure>) -> Result<(), Failure> {
    let start = Instant::now();
    while !done()? {
        check_interrupt()?;
        if start.elapsed() > patience {
            return Err(format!("{what} did not happen within {} s", patience.as_secs()).into());
        }
        sleep(POLL);
    }
    Ok(())
}

/// A process that does not outlive us.
pub(crate) struct Child {
    name: String,
    process: std::process::Child,
    log: Option<PathBuf>,
}

impl Child {
    /// Starts `command` with its output in the file `log`, in a process group of its own: Ctrl-C reaches us alone, and we end
    /// our children in order.
    pub(crate) fn start(name: &str, mut command: Command, log: &Path) -> Result<Child, Failure> {
        let file = std::fs::File::create(log)?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).process_group(0);
        Child::spawn(name, command, Some(log.to_owned()))
    }

    fn spawn(name: &str, mut command: Command, log: Option<PathBuf>) -> Result<Child, Failure> {
        end_with_parent(&mut command);
        let process = command.spawn().map_err(|error| format!("{name} could not be started: {error}"))?;
        Ok(Child {
            name: name.to_owned(),
            process,
            log,
        })
    }

    /// Fails, with the end of its log, if the process has ended.
    pub(crate) fn check_alive(&mut self) -> Result<(), Failure> {
        match self.process.try_wait()? {
            None => Ok(()),
            Some(status) => Err(format!("{} ended early ({status})\n{}", self.name, self.log_tail()).into()),
        }
    }

    /// Waits for its end; fails, with the end of its log, if it fails or takes longer than `patience`.
    pub(crate) fn finish(&mut self, patience: Duration) -> Result<(), Failure> {
        let start = Instant::now();
        while start.elapsed() < patience {
            check_interrupt()?;
            match self.process.try_wait()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(format!("{} failed ({status})\n{}", self.name, self.log_tail()).into()),
                None => sleep(POLL),
            }
        }
        Err(format!("{} did not end within {} s\n{}", self.name, patience.as_secs(), self.log_tail()).into())
    }

    /// Waits for the end, or ends it when we are interrupted.
    fn wait(&mut self) -> Result<ExitStatus, Failure> {
        loop {
            if let Some(status) = self.process.try_wait()? {
                return Ok(status);
            }
            check_interrupt()?;
            sleep(POLL);
        }
    }

    fn log_tail(&self) -> String {
        let text = self
            .log
            .as_ref()
            .and_then(|log| std::fs::read_to_string(log).ok())
            .unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n")
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !matches!(self.process.try_wait(), Ok(None)) {
            return;
        }
        // SAFETY: a plain system call. The process is ours and not yet reaped, so its id cannot belong to another.
        unsafe { libc::kill(self.process.id() as libc::pid_t, libc::SIGTERM) };
        let start = Instant::now();
        while start.elapsed() < END_PATIENCE {
            if !matches!(self.process.try_wait(), Ok(None)) {
                return;
            }
            sleep(POLL);
        }
        eprintln!(
            "{} did not end within {} s of SIGTERM and is killed",
            self.name,
            END_PATIENCE.as_secs()
        );
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Has the kernel end the process if we die without ending it.
fn end_with_parent(command: &mut Command) {
    let parent = std::process::id() as libc::pid_t;
    let before_exec = move || {
        // SAFETY: two plain system calls, both async-signal-safe, on this process alone.
        let parent_now = unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
            libc::getppid()
        };
        // The parent may have died before the request was made.
        if parent_now == parent {
            Ok(())
        } else {
            Err(std::io::Error::from_raw_os_error(libc::ESRCH))
        }
    };
    // SAFETY: between fork and exec the closure makes system calls only; it neither allocates nor locks.
    unsafe { command.pre_exec(before_exec) };
}

/// Runs a command to its end with our own output; fails if it fails.
pub(crate) fn run(command: Command) -> Result<(), Failure> {
    let text = describe(&command);
    let status = Child::spawn(&text, command, None)?.wait()?;
    check_interrupt()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{text} failed ({status})").into())
    }
}

/// A command as one would type it.
pub(crate) fn describe(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_child_has_ended() {
        let mut command = Command::new("sleep");
        command.arg("600");
        let child = Child::spawn("sleep", command, None).expect("sleep is everywhere");
        let id = child.process.id() as libc::pid_t;
        drop(child);
        // SAFETY: signal 0 only asks whether the process exists.
        assert_eq!(unsafe { libc::kill(id, 0) }, -1);
    }

    #[test]
    fn a_failing_command_is_named() {
        let failure = run(Command::new("false")).expect_err("false fails");
        assert!(failure.to_string().starts_with("false failed"), "{failure}");
    }
}
