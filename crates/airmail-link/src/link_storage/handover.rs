//! Handover: a log moves from one link to another, with all that was asked of it and has no answer.
//!
//! Both links are of one owner, so tags and readers mean the same at both. What was sent over the first link is in
//! doubt at the second, exactly as it is after a cut: an append that no storage could recognise has an unknown
//! outcome, the others are sent again, in their order; each reader goes on with the first number that its owner was
//! not told of. Where the second link has a muted reader for it, that one's list of what is wanted is used.

use super::edits::Edits;
use super::readers::LinkReader;
use super::unanswered::HandedCall;
use super::{LinkStorage, MutedNews, Outgoing};
use crate::message::{FromHost, ToHost};
use crate::port::Port;
#[cfg(feature = "sabotage")]
use crate::sabotage::Bug;
use airmail_log::{Completion, LogSpec, ReaderId, ScopeFilter, Tag, WantEdit};
use airmail_model::{LogId, Sequence};

/// Everything that is asked of a log at a link.
#[derive(Debug)]
pub(crate) struct HandedLog {
    calls: Vec<HandedCall>,
    readers: Vec<(ReaderId, LinkReader)>,
}

impl<P: Port<Out = ToHost, In = FromHost>> LinkStorage<P> {
    /// Takes from the link what is asked of a log, but for calls that are of interest here alone. The far end is told
    /// that it need not go on. What has an answer now is given to `out`.
    pub(crate) fn hand_over(
        &mut self,
        log: LogId,
        is_of_here: impl Fn(Tag) -> bool,
        out: &mut impl Extend<Completion>,
    ) -> HandedLog {
        let calls = self.calls.hand_over(log, is_of_here, &mut self.told);
        #[cfg(feature = "sabotage")]
        let calls = if self.limits.has_bug(Bug::MoveUndoubted) {
            calls.into_iter().map(HandedCall::undoubted).collect()
        } else {
            calls
        };
        let mut readers = Vec::new();
        for (r, reader, run) in self.readers.hand_over(log, &mut self.told) {
            if let Some(run) = run {
                self.outgo(Outgoing::Forget(run));
            }
            readers.push((r, reader));
        }
        self.logs.defer(log);
        out.extend(self.told.drain(..));
        HandedLog { calls, readers }
    }

    /// Goes on with what was asked of a log elsewhere. A reader of what is wanted needs a muted one here that knows
    /// it, if `knows` says so; else its owner is told to say it anew.
    pub(crate) fn take_over(
        &mut self,
        handed: HandedLog,
        knows: impl Fn(ReaderId) -> bool,
        out: &mut impl Extend<Completion>,
    ) {
        for number in self.calls.take_over(handed.calls, &mut self.told) {
            self.outgo(Outgoing::Call(number));
        }
        for (r, mut reader) in handed.readers {
            let is_wanted = reader.filter() == ScopeFilter::Wanted;
            let muted = self.muted.take(r);
            match muted {
                Some((Some(run), edits)) if knows(r) => reader.go_on_with(run, edits),
                other => {
                    if let Some((Some(run), _)) = other {
                        self.outgo(Outgoing::Forget(run));
                    }
                    if is_wanted {
                        reader.lose_edits();
                        self.told.push_back(Completion::WantsLost { r });
                    }
                }
            }
            let run = self.readers.take_over(r, reader);
            self.outgo(Outgoing::Start(run));
        }
        out.extend(self.told.drain(..));
    }

    /// Keeps what is wanted of a reader of another link at this one's far end, beginning with nothing.
    pub(crate) fn mute(&mut self, r: ReaderId, log: LogId, from: Sequence) {
        let run = self.readers.new_run();
        self.muted.begin(r, log, from, run);
        self.outgo(Outgoing::Start(run));
    }

    /// Passes on what is wanted of a muted reader.
    pub(crate) fn want_muted(&mut self, r: ReaderId, edit: u32, topics: Box<WantEdit>) {
        if let Some(run) = self.muted.want(r, edit, topics) {
            self.outgo(Outgoing::Want(run));
        }
    }

    /// Ends a muted reader.
    pub(crate) fn stop_muted(&mut self, r: ReaderId) {
        if let Some((Some(run), _)) = self.muted.take(r) {
            self.outgo(Outgoing::Forget(run));
        }
    }

    /// Events of muted readers since the last call.
    pub(crate) fn take_muted_news(&mut self) -> Vec<(ReaderId, MutedNews)> {
        self.muted.take_news()
    }

    /// Where a reader stands: the first number that its owner was not told of.
    pub(crate) fn next_of(&self, r: ReaderId) -> Option<Sequence> {
        self.readers.next_of(r)
    }

    /// Opens a log at the far end that was opened over another link: it is told as gained.
    pub(crate) fn open_too(&mut self, log: LogId, spec: Box<LogSpec>) {
        self.logs.open_too(log, spec);
        if self.is_up() {
            self.outgo(Outgoing::Reopen(log));
        } else {
            self.logs.retry_at(self.now);
        }
    }

    /// Forgets a log that is used over another link.
    pub(crate) fn forget_log(&mut self, log: LogId) {
        self.logs.deleted(log);
    }

    /// The spec by which a log was opened.
    pub(crate) fn spec_of(&self, log: LogId) -> Option<&LogSpec> {
        self.logs.spec_of(log)
    }

    /// Whether everything is asked as it comes.
    pub(crate) fn is_connected(&self) -> bool {
        self.is_up()
    }

    /// Whether an append to a log has no answer.
    pub(crate) fn has_appends(&self, log: LogId) -> bool {
        self.calls.has_appends(log)
    }

    /// The far end says something of a muted reader.
    pub(super) fn muted_told(&mut self, run: ReaderId, message: &FromHost) {
        match message {
            FromHost::Told { completion, .. } => {
                if let Some(run) = self.muted.told(run, completion) {
                    self.outgo(Outgoing::Forget(run));
                }
            }
            FromHost::Behind { .. } => {
                let again = self.readers.new_run();
                self.muted.resume(run, again);
                self.outgo(Outgoing::Start(again));
            }
            // Input: numbers that nobody used, or are gone, for which a reader needs no credit.
            // Input: numbers that nobody used, or are gone, for which a reader needs no credit.
            FromHost::Range { .. } | FromHost::Heartbeat { .. } => {}
        }
    }

    /// The edits of a run, muted or not, unless it is over.
    pub(super) fn edits(&mut self, run: ReaderId) -> Option<&mut Edits> {
        match self.muted.edits(run) {
            Some(edits) => Some(edits),
            None => self.readers.edits(run),
        }
    }
}
