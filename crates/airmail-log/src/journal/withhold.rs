//! Storing nothing while the files may not be this node's any more.
//!
//! Whoever owns the journal says so from outside: its directory was moved away, or another process has
//! it. From there on nothing is written, and nothing is answered as stored, whatever becomes of what
//! is under way: if the directory is not found again, it is gone. It is trouble like any other: what
//! was not answered is refused, reading goes on. What was under way is treated as written to a file
//! that has failed, so that it is settled in a new segment when the files are this node's again.

use super::{Journal, Trouble};
use crate::contract::{Completion, Refusal};
use crate::files::{FileDone, FileOp};
use bytes::Bytes;
use std::io;

impl Journal {
    /// Nothing is stored from here on.
    pub(super) fn withhold(&mut self, why: &str) {
        self.withheld = true;
        self.trouble = Some(Trouble {
            full: false,
            error: why.to_owned(),
            retry_at: self.now.mono.plus(self.config.probe_interval),
        });
        self.refuse_waiting();
        self.metas_failed();
    }

    /// The files are this node's again.
    pub(super) fn release(&mut self) {
        if std::mem::take(&mut self.withheld)
            && let Some(trouble) = &mut self.trouble
        {
            trouble.retry_at = self.now.mono;
        }
    }

    /// Whoever waits for a command meanwhile is refused, as often as a failing disk would be tried.
    pub(super) fn refuse_withheld(&mut self) {
        let (now, again) = (self.now.mono, self.config.probe_interval);
        if let Some(trouble) = &mut self.trouble
            && trouble.retry_at <= now
        {
            trouble.retry_at = now.plus(again);
            self.metas_failed();
        }
    }

    /// What a write counts as: one that ends while nothing is stored has failed.
    pub(super) fn unless_withheld(&self, result: io::Result<()>) -> io::Result<()> {
        match &self.trouble {
            Some(trouble) if self.withheld => Err(io::Error::other(trouble.error.clone())),
            _ => result,
        }
    }

    /// While nothing is stored, nothing is answered as stored either: not even what was, and had to
    /// wait for the answer to what came before it.
    pub(super) fn answer_withheld(&mut self) {
        if !self.withheld {
            return;
        }
        for answer in &mut self.out {
            if let Completion::Appended { t, .. } = *answer {
                let why = Refusal::OutcomeUnknown;
                *answer = Completion::Refused { t, why };
            }
        }
    }

    /// While nothing is stored, what would change a file has failed before it is submitted.
    pub(super) fn fail_withheld(&mut self, done: &mut Vec<FileDone>) {
        if !self.withheld {
            return;
        }
        for (token, op) in std::mem::take(&mut self.ops) {
            match op {
                FileOp::Read { .. } => self.ops.push((token, op)),
                _ => {
                    let result = self.unless_withheld(Ok(()));
                    done.push(FileDone::new(token, result.map(|()| Bytes::new())));
                }
            }
        }
    }
}
