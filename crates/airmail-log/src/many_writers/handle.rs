//! A handle of logs that many write to: a storage of its own.
//!
//! Calls reach the logs in order, and are answered in order. A producer's batches are stored without a hole as far as
//! this handle knows: behind one that it has refused nothing is stored until that one comes again, and after an unknown
//! outcome nothing more of that epoch.

use super::reader::Reader;
use super::{SharedLogs, State};
use crate::contract::{
    AppendClock, Call, Capabilities, ClockState, Completion, Dedup, Direction, LogStorage,
    Numbering, ReaderId, Refusal, Scope, ScopeFilter, Tag, Trouble,
};
use airmail_model::batch::ProducerStamp;
use airmail_model::{
    AppendTime, Batch, Checked, Durability, Extent, Incarnation, LogId, MapEpoch, Mono, Now,
    ProducerEpoch, ProducerId, ProducerSequence, Sequence,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Time after which a refused append is worth trying again.
const RETRY_AFTER: Duration = Duration::from_millis(10);
/// Durability of all that is stored: it is elsewhere, where nothing fails.
pub(super) const STRONGEST: Durability = Durability::FSYNC;
/// Factor by which the outcome of a batch without a producer is unknown more often than of others: commands are few.
const COMMANDS_UNKNOWN: u32 = 10;
/// Every so many places, one is void.
const VOID_EVERY: u64 = 3;

/// Producers of which this handle stores no more for now.
#[derive(Clone, Copy, Debug)]
enum Held {
    /// Not behind this sequence, which was refused.
    Behind(ProducerSequence),
    /// Nothing of the epoch: the outcome of one is not known.
    Over,
}

/// A handle. See the module's documentation.
#[derive(Debug)]
pub struct LogsHandle {
    logs: SharedLogs,
    /// Logs that are open here, with the lives that were told of them.
    pub(super) open: BTreeMap<LogId, Incarnation>,
    readers: BTreeMap<ReaderId, Reader>,
    held: BTreeMap<(LogId, ProducerId), (ProducerEpoch, Held)>,
    /// Calls on their way, each with the time that it takes, or when it is there.
    calls: VecDeque<(Duration, Option<Mono>, Call)>,
    /// Answers on their way back.
    answers: VecDeque<(Mono, Completion)>,
    /// Words for readers, to be given before all else.
    told: Vec<Completion>,
    /// Appends that were made after the close.
    late: BTreeSet<Tag>,
    is_closing: bool,
    now: Now,
}

impl LogsHandle {
    pub(super) fn new(logs: SharedLogs) -> LogsHandle {
        LogsHandle {
            logs,
            open: BTreeMap::new(),
            readers: BTreeMap::new(),
            held: BTreeMap::new(),
            calls: VecDeque::new(),
            answers: VecDeque::new(),
            told: Vec::new(),
            late: BTreeSet::new(),
            is_closing: false,
            now: Now::default(),
        }
    }

    fn answer(&mut self, state: &mut State, completion: Completion) {
        let at = self.now.mono.plus(state.delay());
        let last = self.answers.back().map_or(at, |(last, _)| *last);
        self.answers.push_back((at.max(last), completion));
    }

    /// A call has reached the logs.
    fn arrive(&mut self, state: &mut State, call: Call) {
        let answer = match call {
            Call::Provision { t, log, logs, spec } => self.provision(state, t, (log, logs), *spec),
            Call::Withdraw { t, origin, .. } => self.withdraw(state, t, *origin),
            Call::Keep { t, .. } => Completion::Done { t },
            Call::Open { t, log, spec } => self.open(state, t, log, *spec),
            Call::Append {
                t, log, map, batch, ..
            } => self.append(state, (t, log), map, batch),
            Call::Read {
                r,
                log,
                from,
                scope,
                credit,
            } => return self.read(state, r, log, from, *scope, credit),
            Call::Credit { r, bytes } => {
                if let Some(reader) = self.readers.get_mut(&r) {
                    reader.grant(bytes);
                }
                return;
            }
            Call::Want { r, edit, topics } => {
                if let Some(reader) = self.readers.get_mut(&r).filter(|_| !topics.more) {
                    let at = Some(reader.want());
                    let effective = Completion::Effective { r, edit, at };
                    self.told.push(effective);
                }
                return;
            }
            Call::Stop { r } => {
                if self.readers.remove(&r).is_some() {
                    let ended = Completion::Ended { r, why: None };
                    self.told.push(ended);
                }
                return;
            }
            Call::Delete {
                t,
                log,
                as_of,
                origin,
            } => self.delete(state, t, log, as_of, *origin),
            of_open => self.of_open(state, of_open),
        };
        self.answer(state, answer);
    }

    /// A call about a log that is to be open.
    fn of_open(&mut self, state: &mut State, call: Call) -> Completion {
        let t = call.tag().unwrap_or_default();
        let open = call.log().filter(|log| self.open.contains_key(log));
        let Some((id, log)) = open.and_then(|id| Some((id, state.logs.get_mut(&id)?))) else {
            return refused(t, Refusal::NoLog);
        };
        match call {
            Call::Bounds { t, .. } => Completion::Bounds {
                t,
                bounds: log.bounds(),
            },
            Call::Clock { t, .. } => Completion::Clock {
                t,
                at: AppendTime(self.now.wall.0),
            },
            Call::FindTime { t, at, .. } => Completion::Found {
                t,
                at: log.find_time(at),
            },
            Call::Topics { t, page, .. } => Completion::Topics {
                t,
                page: log.topics(&page.prefix, &page.after, page.limit),
            },
            Call::Trim { t, before, .. } => {
                log.trim(before);
                Completion::Done { t }
            }
            Call::Renew { t, .. } => {
                state.lives += 1;
                log.incarnation = Incarnation(state.lives);
                let bounds = log.bounds();
                self.open.insert(id, bounds.incarnation);
                Completion::Opened { t, bounds }
            }
            // Seal and Heal; all others are elsewhere.
            _ => unsupported(t, "seal or heal"),
        }
    }

    fn append(
        &mut self,
        state: &mut State,
        (t, id): (Tag, LogId),
        map: MapEpoch,
        batch: Checked<Batch>,
    ) -> Completion {
        if self.late.remove(&t) {
            return self.refuse(t, &batch, busy());
        }
        let log = state.logs.get(&id).filter(|_| self.open.contains_key(&id));
        let Some(current) = log.map(|log| log.spec.epoch) else {
            return refused(t, Refusal::NoLog);
        };
        if map != current {
            return self.refuse(t, &batch, Refusal::StaleMap { current });
        }
        if let Some(why) = batch.producer().and_then(|stamp| self.hold(id, stamp)) {
            return refused(t, why);
        }
        let settings = state.settings;
        if state.chance(settings.busy) {
            return self.refuse(t, &batch, busy());
        }
        let is_command = batch.producer().is_none();
        let times = if is_command { COMMANDS_UNKNOWN } else { 1 };
        let is_unknown = state.chance(settings.unknown.saturating_mul(times));
        if is_unknown && state.below(2) == 0 {
            return self.unknown(t, &batch);
        }
        let is_twice = batch.producer().is_some() && state.chance(settings.twice);
        let mut stored = self.store(state, id, &batch);
        if is_twice {
            stored = self.store(state, id, &batch);
        }
        if is_unknown {
            return self.unknown(t, &batch);
        }
        let Some((extent, at)) = stored else {
            return refused(t, Refusal::NoLog);
        };
        Completion::Appended {
            t,
            extent,
            at,
            held: STRONGEST,
            duplicate: false,
            exact: false,
        }
    }

    fn store(
        &self,
        state: &mut State,
        id: LogId,
        batch: &Checked<Batch>,
    ) -> Option<(Extent, AppendTime)> {
        let most = u64::try_from(state.settings.clocks_apart.as_micros()).unwrap_or(0);
        let behind = if state.below(2) == 0 {
            state.below(most + 1)
        } else {
            0
        };
        let void = u64::from(state.below(VOID_EVERY) == 0);
        let behind = i64::try_from(behind).unwrap_or(0);
        let log = state.logs.get_mut(&id)?;
        Some(log.append(batch.clone(), self.now.wall, behind, void))
    }

    /// Reason for which a producer's batch is not stored now: something before it is not.
    fn hold(&mut self, log: LogId, stamp: ProducerStamp) -> Option<Refusal> {
        let (epoch, held) = *self.held.get(&(log, stamp.id))?;
        if epoch == stamp.epoch {
            match held {
                Held::Over => return Some(Refusal::UnknownProducer),
                Held::Behind(expected) if stamp.sequence > expected => {
                    let found = stamp.sequence;
                    return Some(Refusal::OutOfOrder { expected, found });
                }
                Held::Behind(_) => {}
            }
        }
        if epoch <= stamp.epoch {
            self.held.remove(&(log, stamp.id));
        }
        None
    }

    /// A batch is not stored: nothing behind it is, until it comes again.
    fn refuse(&mut self, t: Tag, batch: &Batch, why: Refusal) -> Completion {
        if let Some(stamp) = batch.producer() {
            let held = (stamp.epoch, Held::Behind(stamp.sequence));
            self.held.insert((batch.log(), stamp.id), held);
        }
        refused(t, why)
    }

    /// Nobody is to know whether a batch is stored: nothing more of its epoch is.
    fn unknown(&mut self, t: Tag, batch: &Batch) -> Completion {
        if let Some(stamp) = batch.producer() {
            let held = (stamp.epoch, Held::Over);
            self.held.insert((batch.log(), stamp.id), held);
        }
        refused(t, Refusal::OutcomeUnknown)
    }

    fn read(
        &mut self,
        state: &State,
        r: ReaderId,
        id: LogId,
        from: Sequence,
        scope: Scope,
        credit: u32,
    ) {
        let log = state.logs.get(&id).filter(|_| self.open.contains_key(&id));
        let why = match log {
            None => Refusal::NoLog,
            Some(_) if scope.direction == Direction::Backward => {
                Refusal::Unsupported("backward".into())
            }
            Some(_) if matches!(scope.filter, ScopeFilter::Topic(_)) => {
                Refusal::Unsupported("topic_index".into())
            }
            Some(log) if from > log.next() => Refusal::Unsupported("past_end".into()),
            Some(_) => {
                let reader = Reader::new(id, from, scope, credit);
                self.readers.insert(r, reader);
                return;
            }
        };
        let why = Some(why);
        let ended = Completion::Ended { r, why };
        self.told.push(ended);
    }

    /// Tells of logs that others have given another life.
    fn tell_lives(&mut self, state: &State, out: &mut Vec<Completion>) {
        for (log, told) in &mut self.open {
            let Some(shared) = state.logs.get(log) else {
                continue;
            };
            if *told != shared.incarnation {
                *told = shared.incarnation;
                let (log, bounds) = (*log, shared.bounds());
                out.push(Completion::Gained { log, bounds });
            }
        }
    }

    /// Gives the answers that are back.
    fn give_answers(&mut self, out: &mut Vec<Completion>) {
        while let Some((_, answer)) = self.answers.pop_front_if(|(at, _)| *at <= self.now.mono) {
            out.push(answer);
        }
    }
}

pub(super) fn refused(t: Tag, why: Refusal) -> Completion {
    Completion::Refused { t, why }
}

pub(super) fn unsupported(t: Tag, what: &'static str) -> Completion {
    refused(t, Refusal::Unsupported(what.into()))
}

pub(super) fn busy() -> Refusal {
    let retry_after = RETRY_AFTER;
    Refusal::Busy { retry_after }
}

impl LogStorage for LogsHandle {
    fn capabilities(&self) -> Capabilities {
        let settings = self.logs.0.lock().settings;
        Capabilities {
            dedup: Dedup::AtRead,
            numbering: Numbering::Sparse,
            clock: AppendClock::Within(settings.clocks_apart),
            strongest: STRONGEST,
            topic_index: false,
            past_end: false,
            seal: false,
            heal: false,
            many_writers: true,
            provisions: settings.provisions,
            appends_apart: false,
        }
    }

    fn submit(&mut self, call: Call) {
        if let (true, Call::Append { t, .. }) = (self.is_closing, &call) {
            self.late.insert(*t);
        }
        let takes = self.logs.0.lock().delay();
        self.calls.push_back((takes, None, call));
    }

    fn poll(&mut self, now: Now, out: &mut Vec<Completion>) -> Option<Mono> {
        self.now = now;
        let logs = self.logs.clone();
        let state = &mut *logs.0.lock();
        let mut after = Mono(0);
        for (takes, at, _) in &mut self.calls {
            let due = at.get_or_insert(now.mono.plus(*takes));
            *due = after.max(*due);
            after = *due;
        }
        let is_there =
            |call: &mut (Duration, Option<Mono>, Call)| call.1.is_some_and(|at| at <= now.mono);
        while let Some((_, _, call)) = self.calls.pop_front_if(is_there) {
            self.arrive(state, call);
        }
        for log in state.logs.values_mut() {
            log.retain(now.wall);
        }
        out.append(&mut self.told);
        self.give_answers(out);
        self.tell_lives(state, out);
        let mut ended = Vec::new();
        for (r, reader) in &mut self.readers {
            if !reader.give(*r, state.logs.get(&reader.log), out) {
                ended.push(*r);
            }
        }
        for r in ended {
            self.readers.remove(&r);
        }
        let call = self.calls.front().and_then(|(_, at, _)| *at);
        let answer = self.answers.front().map(|(at, _)| *at);
        call.into_iter().chain(answer).min()
    }

    fn opened(&mut self) {}

    fn close(&mut self, _: Now) {
        self.is_closing = true;
    }

    fn is_closed(&self) -> bool {
        self.is_closing && self.calls.is_empty() && self.answers.is_empty()
    }

    fn trouble(&self) -> Option<Trouble> {
        None
    }

    fn damage(&self) -> u64 {
        0
    }

    fn read_bytes(&self) -> u64 {
        0
    }

    fn clock(&self) -> ClockState {
        ClockState {
            wall: self.now.wall,
            trusted: self.now.wall,
            ..ClockState::default()
        }
    }

    fn accept_clock(&mut self, _: Now) {}
}
