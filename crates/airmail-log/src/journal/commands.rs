//! The journal's own commands: those that wait to be written, and the number of all so far.
//!
//! A command is given, waits here, is written before any waiting batch, and is done when it is
//! durable ([`retention`](super::retention)). Each has a count of its own, in the order in which
//! they are written, so that a checkpoint can say which commands it includes.
//!
//! When a journal opens after an unclean stop, the commands that record its findings are held back
//! until the batches that may not be durable have been written once more; while these are not
//! durable, no call is taken up.
//!
//! Invariants, held by [`Commands::check`]:
//! - Counts begin at 1.
//! - Commands are never held back and settling at once.

use super::meta::Meta;
use crate::contract::Tag;
use std::collections::VecDeque;

/// A command, and the call to be answered when it is durable.
pub(super) type Command = (Meta, Option<Tag>);

/// The journal's own commands that wait to be written. See the module's documentation.
#[derive(Debug)]
pub(super) struct Commands {
    waiting: VecDeque<Command>,
    /// The count of the next that is written.
    count: u64,
    /// Commands to be given when the batches that may not be durable have been written once more.
    held_back: Option<Vec<Meta>>,
    /// They are given, and not yet durable.
    settling: bool,
}

impl Default for Commands {
    fn default() -> Commands {
        Commands {
            waiting: VecDeque::new(),
            count: 1,
            held_back: None,
            settling: false,
        }
    }
}

impl Commands {
    /// Has a command written behind all that wait.
    pub(super) fn give(&mut self, meta: Meta, t: Option<Tag>) {
        self.waiting.push_back((meta, t));
    }

    /// Has a command written before all waiting batches, which may rely on it.
    pub(super) fn give_first(&mut self, command: Command) {
        self.waiting.push_front(command);
    }

    /// Whether none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Those that wait, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Meta> {
        self.waiting.iter().map(|(meta, _)| meta)
    }

    /// The next to be written.
    pub(super) fn next(&mut self) -> Option<Command> {
        self.waiting.pop_front()
    }

    /// The one that was given last.
    pub(super) fn take_last(&mut self) -> Option<Command> {
        self.waiting.pop_back()
    }

    /// Leaves out those that need not be written any more.
    pub(super) fn retain(&mut self, mut stays: impl FnMut(&Meta) -> bool) {
        self.waiting.retain(|(meta, _)| stays(meta));
    }

    /// Takes the calls that wait for a command; from here on none does.
    pub(super) fn take_tags(&mut self) -> impl Iterator<Item = Tag> {
        self.waiting.iter_mut().filter_map(|(_, t)| t.take())
    }

    /// The count of the next command that is written.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// A command of the next count is written.
    pub(super) fn counted(&mut self) {
        self.count += 1;
    }

    /// Commands that were counted could not be written: they wait again, before all others, and are
    /// counted anew. So no count is missing in the files.
    pub(super) fn put_back(&mut self, commands: Vec<Command>) {
        self.count -= commands.len() as u64;
        for command in commands.into_iter().rev() {
            self.give_first(command);
        }
    }

    /// Goes on counting behind the commands found.
    pub(super) fn go_on_at(&mut self, count: u64) {
        self.count = self.count.max(count);
    }

    /// Holds commands back until the batches that may not be durable are written once more.
    pub(super) fn hold_back(&mut self, metas: Vec<Meta>) {
        self.held_back = Some(metas);
    }

    /// Whether batches that may not be durable are still being written once more.
    pub(super) fn are_held_back(&self) -> bool {
        self.held_back.is_some()
    }

    /// Gives those that were held back.
    pub(super) fn give_held_back(&mut self) {
        let metas = self.held_back.take().unwrap_or_default();
        self.settling = !metas.is_empty();
        self.waiting
            .extend(metas.into_iter().map(|meta| (meta, None)));
    }

    /// They are durable, or there is no room for them: nothing waits for them any more.
    pub(super) fn settled(&mut self) {
        self.settling = false;
    }

    /// Whether the commands given again at opening are durable, so that calls are taken up.
    pub(super) fn are_settled(&self) -> bool {
        self.held_back.is_none() && !self.settling
    }

    /// Asserts the invariants of the module's documentation.
    pub(super) fn check(&self) {
        assert!(self.count > 0, "counts of commands begin at 1");
        assert!(
            self.held_back.is_none() || !self.settling,
            "commands are held back, and others that were are not yet durable"
        );
    }
}
