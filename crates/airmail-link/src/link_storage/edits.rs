//! Edits of what is wanted of a reader, until they take effect.
//!
//! The far end keeps what is wanted while there is a connection, over any resuming of the reader: the new run takes
//! over the list of the earlier one, and is told once more of the edits that had no answer. A cut loses the list,
//! and the reader's owner says anew what it wants: so nothing is kept here of what is in effect.
//!
//! Invariant: edits that were sent come before those that were not.

use airmail_log::{Call, ReaderId, WantEdit};
use std::collections::VecDeque;

/// Edits of one reader. See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Edits {
    edits: VecDeque<Edit>,
    /// Its owner has said what it wants, and that is not lost.
    is_wanted: bool,
    /// The earlier run of this connection, whose list the present one takes over.
    earlier: Option<ReaderId>,
}

#[derive(Debug)]
struct Edit {
    number: u32,
    topics: Box<WantEdit>,
    is_sent: bool,
}

impl Edits {
    /// The owner changes what is wanted.
    pub(super) fn take(&mut self, number: u32, topics: Box<WantEdit>) {
        self.is_wanted = true;
        self.edits.push_back(Edit {
            number,
            topics,
            is_sent: false,
        });
    }

    /// The call for the next edit that was not sent.
    pub(super) fn next_call(&self, run: ReaderId) -> Option<Call> {
        let edit = self.edits.iter().find(|edit| !edit.is_sent)?;
        let (edit, topics) = (edit.number, edit.topics.clone());
        Some(Call::Want {
            r: run,
            edit,
            topics,
        })
    }

    /// The call that [`Edits::next_call`] gave was sent.
    pub(super) fn sent(&mut self) {
        if let Some(edit) = self.edits.iter_mut().find(|edit| !edit.is_sent) {
            edit.is_sent = true;
        }
    }

    /// Number of edits that were not sent.
    pub(super) fn to_send(&self) -> usize {
        self.edits.iter().filter(|edit| !edit.is_sent).count()
    }

    /// An edit has its answer, and with it the parts that came before it.
    pub(super) fn effective(&mut self, number: u32) {
        while let Some(edit) = self.edits.pop_front() {
            if edit.number == number && !edit.topics.more {
                return;
            }
        }
    }

    /// The run whose list the present one takes over.
    pub(super) fn earlier(&self) -> Option<ReaderId> {
        self.earlier
    }

    /// The run under which the far end has the list, if it has: the present one, once it is started.
    pub(super) fn known_run(&self, present: ReaderId, is_started: bool) -> Option<ReaderId> {
        is_started.then_some(present).or(self.earlier)
    }

    /// The reader goes on as another run: everything that has no answer is to be sent once more.
    pub(super) fn resume(&mut self, earlier: ReaderId) {
        self.earlier = Some(earlier);
        for edit in &mut self.edits {
            edit.is_sent = false;
        }
    }

    /// The connection is gone; whether the owner has to say anew what it wants. It need not where the far end has
    /// heard nothing of it.
    pub(super) fn cut(&mut self, was_started: bool) -> bool {
        let was_known = self.earlier.take().is_some() || was_started;
        let is_lost = was_known && self.is_wanted;
        if is_lost {
            self.lose();
        }
        is_lost
    }

    /// The far end has lost what is wanted.
    pub(super) fn lose(&mut self) {
        self.edits.clear();
        self.is_wanted = false;
    }
}
