//! A storage under audit: what a shard is told by its storage keeps to the contract, whatever links and journals
//! the storage is made of. Each tag is answered once, the appends of a log in their order; what a reader is
//! given tiles, and it is given nothing without credit.

use crate::invariants::bounded::Budget;
use crate::invariants::tiling::Tiling;
use crate::invariants::{Checked, Violation};
use airmail_log::{
    Call, Capabilities, ClockState, Completion, LogStorage, ReaderId, Stored, Tag, Trouble,
};
use airmail_model::{LogId, Mono, Now, Sequence};
use std::collections::{BTreeMap, VecDeque};

/// A reader, as its owner knows it.
#[derive(Debug)]
struct Audited {
    log: LogId,
    tiling: Tiling,
    budget: Budget,
    /// First number of the batch that was given last: the pieces of a damaged one overdraw together what
    /// the whole would.
    base: Option<Sequence>,
}

/// A storage under audit. See the module's documentation.
#[derive(Debug)]
pub(super) struct AuditedStorage<S> {
    storage: S,
    name: String,
    readers: BTreeMap<ReaderId, Audited>,
    asked: BTreeMap<Tag, Option<LogId>>,
    appends: BTreeMap<LogId, VecDeque<Tag>>,
    violation: Option<Violation>,
}

impl<S> AuditedStorage<S> {
    pub(super) fn new(storage: S, shard: usize) -> AuditedStorage<S> {
        AuditedStorage {
            storage,
            name: format!("shard {shard}"),
            readers: BTreeMap::new(),
            asked: BTreeMap::new(),
            appends: BTreeMap::new(),
            violation: None,
        }
    }

    /// Takes the first violation. Returned once.
    pub(super) fn take_violation(&mut self) -> Option<Violation> {
        self.violation.take()
    }

    fn see_call(&mut self, call: &Call) {
        match call {
            Call::Read {
                r,
                log,
                from,
                credit,
                ..
            } => {
                let reader = Audited {
                    log: *log,
                    tiling: Tiling::new(*from),
                    budget: Budget::new(*credit),
                    base: None,
                };
                self.readers.insert(*r, reader);
            }
            Call::Credit { r, bytes } => {
                if let Some(reader) = self.readers.get_mut(r) {
                    reader.budget.grant(*bytes);
                }
            }
            Call::Append { t, log, .. } => {
                self.asked.insert(*t, Some(*log));
                self.appends.entry(*log).or_default().push_back(*t);
            }
            other => {
                self.asked.extend(other.tag().map(|t| (t, None)));
            }
        }
    }

    fn see(&mut self, completion: &Completion) -> Checked {
        if let Some(t) = completion.tag() {
            return self.see_answer(t, completion);
        }
        let Some(r) = completion.reader() else {
            return Ok(());
        };
        let name = &self.name;
        let Some(reader) = self.readers.get_mut(&r) else {
            let detail = format!("{name}: {r:?} is not there, and is told {completion:?}");
            return Err(Violation::new("contract", detail));
        };
        let who = || format!("{name}: {r:?} of {}", reader.log);
        match completion {
            Completion::Batch { stored, .. } => {
                let who = who();
                reader.batch(stored, &who)
            }
            Completion::Gap { extent, .. } => {
                let who = who();
                reader.tiling.take(extent.first, extent.last, &who)
            }
            Completion::Tail { next, .. } if *next != reader.tiling.next => {
                let detail = format!("{}, at {}, is at the end {next}", who(), reader.tiling.next);
                Err(Violation::new("G2 ranges tile", detail))
            }
            Completion::Ended { .. } => {
                self.readers.remove(&r);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn see_answer(&mut self, t: Tag, answer: &Completion) -> Checked {
        let Some(append) = self.asked.remove(&t) else {
            let detail = format!("{}: {answer:?} answers nothing", self.name);
            return Err(Violation::new("contract", detail));
        };
        let order = append.and_then(|log| self.appends.get_mut(&log));
        let first = order.and_then(VecDeque::pop_front);
        if append.is_some() && first != Some(t) {
            let detail = format!("{}: {answer:?} before that of {first:?}", self.name);
            return Err(Violation::new("contract", detail));
        }
        Ok(())
    }
}

impl Audited {
    fn batch(&mut self, stored: &Stored, who: &str) -> Checked {
        self.tiling
            .take(stored.extent.first, stored.extent.last, who)?;
        if self.base.replace(stored.base) == Some(stored.base) {
            return Ok(());
        }
        self.budget.spend(stored.batch.bytes().len() as u64, who)
    }
}

impl<S: LogStorage> LogStorage for AuditedStorage<S> {
    fn capabilities(&self) -> Capabilities {
        self.storage.capabilities()
    }

    fn submit(&mut self, call: Call) {
        self.see_call(&call);
        self.storage.submit(call);
    }

    fn poll(&mut self, now: Now, out: &mut Vec<Completion>) -> Option<Mono> {
        let before = out.len();
        let deadline = self.storage.poll(now, out);
        for completion in &out[before..] {
            let seen = self.see(completion);
            self.violation = self.violation.take().or(seen.err());
        }
        deadline
    }

    fn opened(&mut self) {
        self.storage.opened();
    }

    fn close(&mut self, now: Now) {
        self.storage.close(now);
    }

    fn is_closed(&self) -> bool {
        self.storage.is_closed()
    }

    fn trouble(&self) -> Option<Trouble> {
        self.storage.trouble()
    }

    fn damage(&self) -> u64 {
        self.storage.damage()
    }

    fn clock(&self) -> ClockState {
        self.storage.clock()
    }

    fn accept_clock(&mut self, now: Now) {
        self.storage.accept_clock(now);
    }
}
