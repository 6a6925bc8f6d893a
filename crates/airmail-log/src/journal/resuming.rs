//! Going on when the journal has opened: first what may not be durable is written once more, then what the
//! files told is given as commands again, and only then calls are taken up.
//!
//! A log's readers see nothing before the first of these has come to its end.

use super::Journal;
use super::commands::Commands;
use super::commits::Commits;
use super::faults::Faults;
use super::logs::Logs;
use airmail_model::bug;

/// What going on may change, and what it sees.
struct Resuming<'j> {
    faults: &'j Faults,
    commits: &'j Commits,
    commands: &'j mut Commands,
    logs: &'j mut Logs,
}

impl Journal {
    fn resuming(&mut self) -> Resuming<'_> {
        Resuming {
            faults: &self.faults,
            commits: &self.commits,
            commands: &mut self.commands,
            logs: &mut self.logs,
        }
    }

    /// Has everything told, if what may not have been durable is now.
    pub(super) fn resume(&mut self) {
        if self.commands.are_held_back() && self.commits.are_done() {
            self.resuming().recovered();
        }
    }

    /// Whether calls are taken up: not before what was given again when the journal opened is
    /// durable, unless there is no room for it. A full disk's logs are served all the same; readers
    /// are told of nothing then that a power cut could take back.
    pub(super) fn may_take_calls(&self) -> bool {
        self.commands.are_settled()
    }

    /// The same, when it has been looked whether that has changed.
    pub(super) fn takes_calls(&mut self) -> bool {
        self.resuming().settle();
        self.may_take_calls()
    }
}

impl Resuming<'_> {
    /// What may not have been durable is: everything can be told.
    fn recovered(&mut self) {
        self.commands.give_held_back();
        for log in self.logs.iter_mut() {
            log.numbers.went_on_at = log.numbers.next;
            log.numbers.durable = log.numbers.next.min(log.numbers.reserved);
            log.numbers.written = log.numbers.durable;
            if log.numbers.visible > log.numbers.durable {
                bug!("slot {} was seen before it was recovered", log.slot);
            }
            log.numbers.visible = log.numbers.durable;
        }
    }

    /// Nothing waits any more for what was given again, if that is durable, or cannot be.
    fn settle(&mut self) {
        let done = self.commands.is_empty() && self.commits.are_idle();
        if done || self.faults.trouble().is_some() {
            self.commands.settled();
        }
    }
}
