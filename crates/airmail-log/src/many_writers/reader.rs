//! A reader of a log that many write to.

use super::log::{Next, SharedLog};
use crate::contract::{Completion, ReaderId, Refusal, Scope, ScopeFilter};
use airmail_model::{LogId, Sequence};

/// A reader. It is at hand, so that who wants some topics is given everything.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) log: LogId,
    next: Sequence,
    until: Option<Sequence>,
    credit: i64,
    told_tail: Option<Sequence>,
    /// Nobody has said yet what is wanted of it.
    is_unwanted: bool,
}

impl Reader {
    pub(super) fn new(log: LogId, from: Sequence, scope: Scope, credit: u32) -> Reader {
        Reader {
            log,
            next: from,
            until: scope.until,
            credit: credit.into(),
            told_tail: None,
            is_unwanted: scope.filter == ScopeFilter::Wanted,
        }
    }

    pub(super) fn grant(&mut self, bytes: u32) {
        self.credit = self.credit.saturating_add(bytes.into());
    }

    /// Something is wanted of it. The number from which on it is given.
    pub(super) fn want(&mut self) -> Sequence {
        self.is_unwanted = false;
        self.next
    }

    /// Gives what there is, as far as it may; whether it goes on.
    pub(super) fn give(
        &mut self,
        r: ReaderId,
        log: Option<&SharedLog>,
        out: &mut Vec<Completion>,
    ) -> bool {
        let Some(log) = log else {
            let why = Some(Refusal::NoLog);
            out.push(Completion::Ended { r, why });
            return false;
        };
        if self.is_unwanted {
            return true;
        }
        loop {
            if self.until.is_some_and(|until| until <= self.next) {
                out.push(Completion::Ended { r, why: None });
                return false;
            }
            match log.read(self.next) {
                Next::Gap(mut extent, why) => {
                    // Before its end.
                    let last = self.until.map(Sequence::before);
                    extent.last = extent.last.min(last.unwrap_or(Sequence::MAX));
                    self.next = extent.next();
                    out.push(Completion::Gap { r, extent, why });
                }
                Next::Batch(_) if self.credit <= 0 => return true,
                Next::Batch(stored) => {
                    let bytes = stored.batch.bytes().len();
                    self.credit -= i64::try_from(bytes).unwrap_or(i64::MAX);
                    self.next = stored.extent.next();
                    out.push(Completion::Batch { r, stored });
                }
                Next::End => {
                    let next = self.next;
                    if self.told_tail.replace(next) != Some(next) {
                        out.push(Completion::Tail { r, next });
                    }
                    return true;
                }
            }
        }
    }
}
