//! Trace of a run, line by line: hashed always, shown where asked for.
//!
//! Two runs of one seed must have equal hashes; that is how a hidden source of chance is found.

use std::fmt;
use std::io::Write as _;

/// A run's record of itself.
#[derive(Debug)]
pub struct Trace {
    hash: u64,
    lines: u64,
    show: bool,
    text: String,
}

impl Trace {
    /// An empty one; `show` writes each line to standard output.
    #[must_use]
    pub const fn new(show: bool) -> Trace {
        Trace {
            hash: 0xcbf2_9ce4_8422_2325,
            lines: 0,
            show,
            text: String::new(),
        }
    }

    /// Adds a line.
    pub fn note(&mut self, line: fmt::Arguments<'_>) {
        self.text.clear();
        if fmt::write(&mut self.text, line).is_err() {
            self.text.push_str("(unprintable)");
        }
        for byte in self.text.bytes().chain(std::iter::once(b'\n')) {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self.lines += 1;
        if self.show {
            // A closed pipe ends the showing, not the run.
            self.show = writeln!(std::io::stdout(), "{}", self.text).is_ok();
        }
    }

    /// Hash of every line so far.
    #[must_use]
    pub const fn hash(&self) -> u64 {
        self.hash
    }

    /// Number of lines so far.
    #[must_use]
    pub const fn lines(&self) -> u64 {
        self.lines
    }
}
