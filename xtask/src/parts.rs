//! Parts of a task and the time of each: a table at the task's end, also if it fails.
//!
//! Continuous integration has a bound of time, and whoever adds to it must see where it goes. The
//! times of `test` are kept, so that `verify --without-tests`, which follows it there, ends with
//! one table of both.

use crate::workspace;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Parts that take less are told together.
const SHORT: Duration = Duration::from_secs(6);

/// The parts of a task so far. Prints them when it is dropped.
#[derive(Debug)]
pub(crate) struct Parts {
    task: &'static str,
    /// The kept table of the task before this one.
    before: String,
    took: Vec<(String, Duration)>,
}

impl Parts {
    pub(crate) fn of(task: &'static str) -> Parts {
        Parts {
            task,
            before: String::new(),
            took: Vec::new(),
        }
    }

    /// Tells what another task took before this one, too.
    pub(crate) fn after(&mut self, task: &str) {
        self.before = fs::read_to_string(kept(task)).unwrap_or_default();
    }

    /// Does a part, and notes its time.
    pub(crate) fn part<T>(&mut self, name: &str, work: impl FnOnce() -> T) -> T {
        let begun = now();
        let done = work();
        self.note(name, now() - begun);
        done
    }

    /// Notes a part that was measured elsewhere.
    pub(crate) fn note(&mut self, name: &str, took: Duration) {
        self.took.push((name.to_owned(), took));
    }

    fn table(&self) -> String {
        let mut out = String::new();
        let (long, short): (Vec<_>, Vec<_>) =
            self.took.iter().partition(|(_, took)| *took >= SHORT);
        for (name, took) in long {
            line(&mut out, *took, &format!("{}: {name}", self.task));
        }
        if !short.is_empty() {
            let all = short.iter().map(|(_, took)| *took).sum();
            line(
                &mut out,
                all,
                &format!("{}: {} short parts", self.task, short.len()),
            );
        }
        out
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        let table = self.table();
        let path = kept(self.task);
        let written = path.parent().map(fs::create_dir_all);
        if !matches!(written, Some(Ok(()))) || fs::write(&path, &table).is_err() {
            println!("parts: cannot be kept in {}", path.display());
        }
        let both = format!("{}{table}", self.before);
        println!("\nminutes  part\n{both}{:>7.1}  in all", minutes_in(&both));
    }
}

/// The time, for measuring parts.
#[expect(
    clippy::disallowed_methods,
    reason = "what a task took is told, and decides nothing"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

fn kept(task: &str) -> PathBuf {
    workspace::root().join("target/parts").join(task)
}

fn line(out: &mut String, took: Duration, name: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(out, "{:>7.1}  {name}", took.as_secs_f64() / 60.0);
}

/// The sum of a table's first column.
fn minutes_in(table: &str) -> f64 {
    let first = |line: &str| line.split_whitespace().next()?.parse::<f64>().ok();
    table.lines().filter_map(first).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_has_a_line_and_the_rest_is_told_together() {
        let mut parts = Parts::of("tried");
        parts.note("build", Duration::from_secs(90));
        parts.note("a", Duration::from_secs(1));
        parts.note("b", Duration::from_secs(2));
        let table = parts.table();
        assert_eq!(
            table,
            "    1.5  tried: build\n    0.1  tried: 2 short parts\n"
        );
        assert_eq!(minutes_in(&table).to_bits(), 1.6f64.to_bits());
        std::mem::forget(parts);
    }
}
