//! Damage: the kinds of it in a journal's files, and the places found while the journal opens and
//! is read. `check` reads all files and finds the rest.

use airmail_model::{Batch, LogId, Sequence};
use std::collections::BTreeSet;
use std::fmt;

/// Most problems reported one by one; more would fill the owner's log.
const TOLD_MAX: usize = 1000;

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Name of the damaged file.
    pub file: String,
    /// First damaged byte.
    pub at: u64,
    /// The log concerned, where that is known.
    pub log: Option<LogId>,
    /// The number concerned, where that is known.
    pub number: Option<Sequence>,
    /// Kind of damage.
    pub reason: Reason,
}

/// Kinds of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A segment's header. Its records are read all the same.
    Header,
    /// No sound record for this number of bytes.
    Record(u64),
    /// A record's body.
    Body,
    /// The file ends before data that is known to have been written.
    Cut,
    /// The file is not there.
    Missing,
    /// A part of a segment does not have all that the logs have in it.
    Block,
    /// It cannot be read, however often it is tried.
    Unreadable,
    /// Numbers of the log that are lost with it: this many, from the problem's number on.
    Lost(u64),
    /// A block's index; it is made again from its segment.
    Index,
    /// A block's index is not there; it is made again from its segment.
    IndexMissing,
    /// A checkpoint; an older one is used.
    Checkpoint,
    /// Number of the journal's commands that are damaged.
    Commands(u64),
    /// One of the directory's two identities, or a shard's mark; it is written again.
    Identity,
}

impl Reason {
    /// Whether messages are lost by it.
    #[must_use]
    pub const fn loses(self) -> bool {
        matches!(
            self,
            Reason::Record(_)
                | Reason::Body
                | Reason::Cut
                | Reason::Missing
                | Reason::Block
                | Reason::Unreadable
                | Reason::Lost(_)
        )
    }

    /// Consequence of the damage, and advice on what to do.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        match self {
            Reason::Index | Reason::IndexMissing => {
                "the index is made again from its segment, and nothing is lost: look at the disk"
            }
            Reason::Checkpoint => "an older one was used, and nothing is lost: look at the disk",
            Reason::Identity => "it was written again, and nothing is lost: look at the disk",
            Reason::Header => "the segment is read all the same: look at the disk",
            Reason::Commands(_) => {
                "trims, seals and deletions may be undone: `airmail check` tells all damage; look at \
                 the disk, or restore the directory from a copy"
            }
            _ => {
                "what is lost is told to readers as a gap, the rest is served: `airmail check` tells \
                 all damage; look at the disk, or restore the directory from a copy"
            }
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Header => f.write_str("the header is damaged"),
            Reason::Record(bytes) => write!(f, "no sound record for {bytes} bytes"),
            Reason::Body => f.write_str("a record's body is damaged"),
            Reason::Cut => f.write_str("the file ends before its data"),
            Reason::Missing => f.write_str("the file is missing"),
            Reason::Block => f.write_str("a part of it is damaged"),
            Reason::Unreadable => f.write_str("it cannot be read"),
            Reason::Lost(numbers) => write!(f, "{numbers} messages from this one on are lost"),
            Reason::Index => f.write_str("the index is damaged"),
            Reason::IndexMissing => f.write_str("the index is missing"),
            Reason::Checkpoint => f.write_str("the checkpoint is damaged"),
            Reason::Commands(count) => write!(f, "{count} commands of the journal are missing"),
            Reason::Identity => f.write_str("the identity is damaged"),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.file, self.at)?;
        if let Some(log) = self.log {
            write!(f, ", log {log}")?;
        }
        if let Some(number) = self.number {
            write!(f, ", number {number}")?;
        }
        write!(f, ": {}", self.reason)
    }
}

impl Problem {
    /// Damage to a file, where no log is concerned or known.
    pub(super) fn of(file: &str, at: u64, reason: Reason) -> Problem {
        Problem {
            file: file.to_owned(),
            at,
            log: None,
            number: None,
            reason,
        }
    }

    /// The same, from a number of a log on.
    pub(super) fn at_number(self, log: LogId, number: Sequence) -> Problem {
        let number = Some(number);
        let log = Some(log);
        Problem {
            log,
            number,
            ..self
        }
    }
}

/// Damage found in the life of a journal: each place once.
#[derive(Debug, Default)]
pub(super) struct Damage {
    told: BTreeSet<(String, u64, Option<Sequence>)>,
    /// Problems that the owner has not taken yet.
    pub(super) news: Vec<Problem>,
    /// Some of it loses messages.
    pub(super) loses: bool,
}

impl Damage {
    pub(super) fn found(&mut self, problem: Problem) {
        self.loses |= problem.reason.loses();
        let place = (problem.file.clone(), problem.at, problem.number);
        if self.told.len() < TOLD_MAX && self.told.insert(place) {
            self.news.push(problem);
        }
    }

    /// Takes the problems that the owner has not seen yet.
    pub(super) fn take_news(&mut self) -> Vec<Problem> {
        std::mem::take(&mut self.news)
    }

    /// Number of damaged places.
    pub(super) fn count(&self) -> u64 {
        self.told.len() as u64
    }
}

/// The numbers of a batch's damaged records.
pub(super) fn lost_numbers(base: Sequence, batch: &Batch, damaged: &[u16]) -> Vec<Sequence> {
    if damaged.is_empty() {
        return Vec::new();
    }
    let heads = batch.heads().enumerate();
    let hit = heads.filter(|(place, _)| damaged.contains(&(*place as u16)));
    hit.map(|(_, (index, _))| base.plus(index.into())).collect()
}
