//! Named steps with their times, so that a long command shows where it is and where the time went.

use std::time::Instant;

use crate::{Failure, process};

/// Prints each step when it begins and ends, and all of them at the end.
pub(crate) struct Steps {
    start: Instant,
    done: Vec<(String, f64)>,
}

impl Steps {
    pub(crate) fn new() -> Steps {
        Steps {
            start: Instant::now(),
            done: Vec::new(),
        }
    }

    /// Runs one step; a failure is told with the step's name.
    pub(crate) fn step(&mut self, name: &str, work: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
        process::check_interrupt()?;
        println!("== {name}");
        let start = Instant::now();
        work().map_err(|failure| format!("{name}: {failure}"))?;
        self.done.push((name.to_owned(), start.elapsed().as_secs_f64()));
        Ok(())
    }

    /// Prints the table of steps.
    pub(crate) fn summary(&self) {
        println!();
        for (name, seconds) in &self.done {
            println!("{seconds:8.1} s  {name}");
        }
        println!("{:8.1} s  in all", self.start.elapsed().as_secs_f64());
    }
}
