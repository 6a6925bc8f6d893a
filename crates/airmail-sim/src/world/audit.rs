//! A storage under audit: what a shard is told by its storage keeps to the contract, whatever links and journals
//! the storage is made of. Each tag is answered once, the appends of a log in their order; what a reader is
//! given tiles, and it is given nothing without credit. And what every attempt was refused, as all shards of a
//! process have asked for it, is not stored. Of logs on Kafka each reader is told the truth ([`Truth`]).

use super::truth::Truth;
use crate::invariants::bounded::Budget;
use crate::invariants::tiling::Tiling;
use crate::invariants::{Checked, Violation};
use airmail_log::{
    Call, Capabilities, ClockState, Completion, LogStorage, ReaderId, Refusal, Stored, Tag, Trouble,
};
use airmail_model::batch::ProducerStamp;
use airmail_model::{LogId, Mono, Now, ProducerEpoch, ProducerId, ProducerSequence, Sequence};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

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

/// A call that is not answered.
#[derive(Clone, Copy, Debug)]
enum Asked {
    /// One of its log's two orders: of what goes by a way of its own, or of all else.
    Append((LogId, bool), Option<ProducerStamp>),
    Open(LogId),
    Seal(LogId),
    Other(Option<LogId>),
}

/// A storage under audit. See the module's documentation.
#[derive(Debug)]
pub(super) struct AuditedStorage<S> {
    storage: S,
    name: String,
    readers: BTreeMap<ReaderId, Audited>,
    asked: BTreeMap<Tag, Asked>,
    appends: BTreeMap<(LogId, bool), VecDeque<Tag>>,
    /// Sole appends are answered in an order of their own.
    appends_apart: bool,
    attempts: Arc<Mutex<Attempts>>,
    truth: Option<Arc<Mutex<Truth>>>,
    violation: Option<Violation>,
}

/// A producer's batch.
type BatchKey = (LogId, ProducerId, ProducerEpoch, ProducerSequence);

fn key_of(log: LogId, stamp: ProducerStamp) -> BatchKey {
    (log, stamp.id, stamp.epoch, stamp.sequence)
}

/// Facts known of the attempts at one batch.
#[derive(Debug, Default)]
struct Attempt {
    under_way: u32,
    /// One was answered with something else than that it is not stored.
    may_be_stored: bool,
}

/// Attempts to append, of all shards of a process.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    batches: BTreeMap<BatchKey, Attempt>,
    /// Where each log ended when it was first opened: what is before is of an earlier process.
    began: BTreeMap<LogId, Sequence>,
    /// Logs that were sealed.
    sealed: BTreeSet<LogId>,
}

impl Attempts {
    fn answered(&mut self, key: BatchKey, answer: &Completion) {
        let attempt = self.batches.entry(key).or_default();
        attempt.under_way = attempt.under_way.saturating_sub(1);
        let is_refused = matches!(answer, Completion::Refused { why, .. }
            if *why != Refusal::OutcomeUnknown);
        attempt.may_be_stored |= !is_refused;
    }

    /// The storage has lost what it held only in memory of these logs: what it was asked to store by then may have been
    /// there, and was given to readers whose nodes have it still.
    pub(super) fn lost_memory(&mut self, logs: &[LogId]) {
        let of_logs = self.batches.iter_mut();
        let of_logs = of_logs.filter(|((log, ..), _)| logs.contains(log));
        for (_, attempt) in of_logs {
            attempt.may_be_stored |= attempt.under_way > 0;
        }
    }

    /// Whether a log has been sealed.
    pub(super) fn is_sealed(&self, log: LogId) -> bool {
        self.sealed.contains(&log)
    }

    /// A batch is given to a reader.
    fn given(&self, log: LogId, stored: &Stored, who: &str) -> Checked {
        let began = self.began.get(&log).is_some_and(|at| stored.base >= *at);
        let key = stored.batch.producer().map(|stamp| key_of(log, stamp));
        let attempt = key.and_then(|key| self.batches.get(&key));
        let is_refused = attempt.is_some_and(|one| one.under_way == 0 && !one.may_be_stored);
        if !began || !is_refused {
            return Ok(());
        }
        let detail = format!(
            "{who} was given number {}, of {key:?}, which was refused to all who asked",
            stored.base
        );
        Err(Violation::new("G8 what was refused is not stored", detail))
    }
}

impl<S> AuditedStorage<S> {
    pub(super) fn new(
        storage: S,
        shard: usize,
        attempts: Arc<Mutex<Attempts>>,
    ) -> AuditedStorage<S> {
        AuditedStorage {
            storage,
            attempts,
            name: format!("shard {shard}"),
            readers: BTreeMap::new(),
            asked: BTreeMap::new(),
            appends: BTreeMap::new(),
            appends_apart: false,
            truth: None,
            violation: None,
        }
    }

    /// Holds the storage to the truth about its logs, too, if that is known.
    pub(super) fn with_truth(self, truth: Option<Arc<Mutex<Truth>>>) -> AuditedStorage<S> {
        AuditedStorage { truth, ..self }
    }

    /// A log is said not to be served.
    fn failed(&self, log: LogId, why: &Refusal) -> Checked {
        match (&self.truth, why) {
            (Some(truth), Refusal::Io(why)) => truth.lock().check_failure(log, why, &self.name),
            _ => Ok(()),
        }
    }

    /// The storage itself.
    pub(super) fn inner_mut(&mut self) -> &mut S {
        &mut self.storage
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
            Call::Append {
                t,
                log,
                batch,
                sole,
                ..
            } => {
                let producer = batch.producer();
                let order = (*log, *sole && self.appends_apart);
                self.asked.insert(*t, Asked::Append(order, producer));
                if let Some(stamp) = producer {
                    let batches = &mut self.attempts.lock().batches;
                    batches.entry(key_of(*log, stamp)).or_default().under_way += 1;
                }
                self.appends.entry(order).or_default().push_back(*t);
            }
            Call::Open { t, log, .. } => {
                self.asked.insert(*t, Asked::Open(*log));
            }
            Call::Seal { t, log, .. } => {
                self.asked.insert(*t, Asked::Seal(*log));
            }
            other => {
                let log = other.log();
                self.asked
                    .extend(other.tag().map(|t| (t, Asked::Other(log))));
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
                self.attempts.lock().given(reader.log, stored, &who)?;
                if let Some(truth) = &self.truth {
                    truth.lock().check_batch(reader.log, stored, &who)?;
                }
                reader.batch(stored, &who)
            }
            Completion::Gap { extent, why, .. } => {
                let who = who();
                if let Some(truth) = &self.truth {
                    truth.lock().check_gap(reader.log, (*extent, *why), &who)?;
                }
                reader.tiling.take(extent.first, extent.last, &who)
            }
            Completion::Tail { next, .. } if *next != reader.tiling.next => {
                let detail = format!("{}, at {}, is at the end {next}", who(), reader.tiling.next);
                Err(Violation::new("G2 ranges tile", detail))
            }
            Completion::Ended { why, .. } => {
                let log = reader.log;
                self.readers.remove(&r);
                why.as_ref().map_or(Ok(()), |why| self.failed(log, why))
            }
            _ => Ok(()),
        }
    }

    fn see_answer(&mut self, t: Tag, answer: &Completion) -> Checked {
        let Some(asked) = self.asked.remove(&t) else {
            let detail = format!("{}: {answer:?} answers nothing", self.name);
            return Err(Violation::new("contract", detail));
        };
        if let Completion::Refused { why, .. } = answer {
            let log = match asked {
                Asked::Append((log, _), _)
                | Asked::Open(log)
                | Asked::Seal(log)
                | Asked::Other(Some(log)) => Some(log),
                Asked::Other(None) => None,
            };
            log.map_or(Ok(()), |log| self.failed(log, why))?;
        }
        let (order, producer) = match (asked, answer) {
            (Asked::Append(order, producer), _) => (order, producer),
            (Asked::Open(log), Completion::Opened { bounds, .. }) => {
                let began = &mut self.attempts.lock().began;
                began.entry(log).or_insert(bounds.next);
                return Ok(());
            }
            (Asked::Seal(log), Completion::Done { .. }) => {
                self.attempts.lock().sealed.insert(log);
                return Ok(());
            }
            _ => return Ok(()),
        };
        if let Some(stamp) = producer {
            self.attempts
                .lock()
                .answered(key_of(order.0, stamp), answer);
        }
        let order = self.appends.get_mut(&order);
        let first = order.and_then(VecDeque::pop_front);
        if first != Some(t) {
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
        self.budget
            .spend_alone(stored.batch.bytes().len() as u64, who)
    }
}

impl<S: LogStorage> LogStorage for AuditedStorage<S> {
    fn capabilities(&self) -> Capabilities {
        self.storage.capabilities()
    }

    fn submit(&mut self, call: Call) {
        self.appends_apart = self.storage.capabilities().appends_apart;
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

    fn read_bytes(&self) -> u64 {
        self.storage.read_bytes()
    }

    fn clock(&self) -> ClockState {
        self.storage.clock()
    }

    fn accept_clock(&mut self, now: Now) {
        self.storage.accept_clock(now);
    }
}
