//! The evidence of a run: the line-by-line trace, the ledger of every message, and the census of
//! events. The invariants are checked against it, and the report is made of it.

use crate::Report;
use crate::census::{Census, Kind};
use crate::files::Machine;
use crate::ledger::Ledger;
use crate::trace::Trace;
use std::fmt;

/// Evidence that a run has given so far.
#[derive(Debug)]
pub struct Evidence {
    trace: Trace,
    /// Every message, and the answers that were given about it.
    pub ledger: Ledger,
    /// Number of events of each kind.
    pub census: Census,
}

impl Evidence {
    /// The evidence of a run that has not begun; `show` writes its trace to standard output.
    #[must_use]
    pub fn new(show: bool) -> Evidence {
        Evidence {
            trace: Trace::new(show),
            ledger: Ledger::default(),
            census: Census::default(),
        }
    }

    /// Adds a line to the trace.
    pub fn note(&mut self, line: fmt::Arguments<'_>) {
        self.trace.note(line);
    }

    /// Counts an event in the census.
    pub fn count(&mut self, kind: Kind) {
        self.census.count(kind);
    }

    /// Counts several events of a kind, or none.
    pub fn add(&mut self, kind: Kind, count: u64) {
        self.census.add(kind, count);
    }

    /// The report of a run that broke nothing, with what its machine has counted.
    #[must_use]
    pub fn report(mut self, machine: &Machine) -> Report {
        for disk in machine.disks() {
            self.census.merge(disk.census());
        }
        Report {
            hash: self.trace.hash(),
            census: self.census,
        }
    }
}
