//! Start of normal work after recovery: first the batches that may not be durable are written once
//! more, then the files' findings are given as commands again, and only then calls are taken up.
//!
//! A log's readers see nothing before the first of these steps is done.

use super::Journal;
use super::commands::Commands;
use super::commits::Commits;
use super::faults::Faults;
use super::logs::Logs;
use airmail_model::bug;

/// The parts of the journal that resuming reads or changes.
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

    /// Has everything told, if the batches that may not have been durable are now.
    pub(super) fn resume(&mut self) {
        if self.commands.are_held_back() && self.commits.are_done() {
            self.resuming().recovered();
        }
    }

    /// Whether calls are taken up: not before the commands given again at opening are durable,
    /// unless there is no room for them. A full disk's logs are served all the same; readers are
    /// told of nothing then that a power cut could take back.
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
    /// Ends recovery: all batches that may not have been durable are, and everything can be
    /// reported.
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

    /// Ends the wait for the commands given again at opening, if they are durable, or cannot be.
    fn settle(&mut self) {
        let done = self.commands.is_empty() && self.commits.are_idle();
        if done || self.faults.trouble().is_some() {
            self.commands.settled();
        }
    }
}
