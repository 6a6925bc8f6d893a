//! The driver's other half: polling, and the checks of each completion.

use super::reader::Seen;
use super::{Driver, Subject};
use crate::contract::{Completion, LogStorage, Tag};
use airmail_model::Mono;

/// Polls before a storage that keeps saying something is taken to be out of its mind.
const POLLS_MAX: usize = 1_000_000;

impl<S: Subject> Driver<'_, S> {
    /// Polls until nothing more happens by itself at this time.
    pub fn settle(&mut self) {
        for _ in 0..POLLS_MAX {
            let (came, deadline) = self.poll();
            if came || deadline.is_some_and(|at| at <= self.now.mono) {
                continue;
            }
            if !self.subject.busy() {
                return;
            }
            self.subject.wait();
        }
        panic!("the storage does not come to rest");
    }

    /// Makes sure of something that only a wait can bring, moving the clock if it must.
    pub(super) fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        for _ in 0..POLLS_MAX {
            if holds(self) {
                return;
            }
            let (came, deadline) = self.poll();
            if came {
                continue;
            }
            if self.subject.busy() {
                self.subject.wait();
            } else if let Some(at) = deadline {
                let ahead = at.since(self.now.mono);
                self.now.mono = self.now.mono.plus(ahead);
                self.now.wall.0 += i64::try_from(ahead.as_micros()).unwrap_or(i64::MAX / 4);
            } else {
                panic!("{what} did not come, and nothing will bring it");
            }
        }
        panic!("{what} did not come");
    }

    /// Polls once: whether anything came, and the storage's deadline.
    pub(super) fn poll(&mut self) -> (bool, Option<Mono>) {
        // Time never stands still, so that no deadline is missed by a hair.
        self.now.mono.0 += 1_000;
        self.now.wall.0 += 1;
        let now = self.now;
        let mut out = Vec::new();
        let deadline = self.storage().poll(now, &mut out);
        let came = !out.is_empty();
        // An answer counts for all that comes with it, whatever the order.
        for completion in &out {
            self.note(completion);
        }
        for completion in out {
            self.take(completion);
        }
        (came, deadline)
    }

    fn note(&mut self, completion: &Completion) {
        match completion {
            Completion::Appended {
                t,
                extent,
                duplicate,
                ..
            } => {
                if let Some(log) = self.asked_about(*t) {
                    let acknowledged = self.acknowledged.entry(log).or_default();
                    acknowledged.insert(extent.first);
                    if !duplicate {
                        self.counted.entry(log).or_default().take(log, *extent);
                    }
                }
            }
            Completion::Opened { t, bounds } => {
                if let Some(log) = self.asked_about(*t) {
                    if bounds.first == bounds.next && self.deleted.remove(&log) {
                        self.counted.remove(&log);
                    }
                    let found = self.found.entry(log).or_default();
                    *found = bounds.next.max(*found);
                }
            }
            _ => {}
        }
    }

    fn take(&mut self, completion: Completion) {
        let (r, seen) = match completion {
            Completion::Batch { r, stored } => (r, Seen::Batch(stored)),
            Completion::Gap { r, extent, why } => (r, Seen::Gap(extent, why)),
            Completion::Tail { r, next } => (r, Seen::Tail(next)),
            Completion::Sealed { r, last, next } => (r, Seen::Sealed(last, next)),
            Completion::Effective { r, edit, at } => (r, Seen::Effective(edit, at)),
            Completion::WantsLost { r } => (r, Seen::WantsLost),
            Completion::Ended { r, why } => (r, Seen::Ended(why)),
            Completion::Provisioned { t, .. }
            | Completion::Opened { t, .. }
            | Completion::Bounds { t, .. }
            | Completion::Appended { t, .. }
            | Completion::Refused { t, .. }
            | Completion::Found { t, .. }
            | Completion::Clock { t, .. }
            | Completion::Topics { t, .. }
            | Completion::Done { t } => return self.take_answer(t, completion),
            // Unasked: no case goes by what they tell.
            Completion::Gained { .. } | Completion::Lost { .. } => return,
            Completion::Suspended { log, loss } => panic!("{log} has lost {loss:?}"),
        };
        let Some(reader) = self.readers.get_mut(&r) else {
            panic!("{seen:?} of {r:?}, which was never started");
        };
        if let Seen::Batch(stored) = &seen {
            let (base, log) = (stored.base, reader.log);
            let acknowledged = self.acknowledged.get(&log);
            // Where others append, too, a reader may be told before whoever has appended.
            assert!(
                self.has_many_writers
                    || self.found.get(&log).is_some_and(|&next| base < next)
                    || acknowledged.is_some_and(|bases| bases.contains(&base)),
                "{r:?} got {:?} of {log} before its append was answered",
                stored.extent
            );
        }
        reader.take(r, seen);
    }

    fn take_answer(&mut self, t: Tag, completion: Completion) {
        assert!(
            self.unanswered.remove(&t),
            "{completion:?} answers nothing asked"
        );
        for (log, tags) in &mut self.appends {
            if tags.contains(&t) {
                let next = tags.pop_front();
                assert_eq!(next, Some(t), "appends to {log} answered out of call order");
            }
        }
        self.answers.insert(t, completion);
    }
}
