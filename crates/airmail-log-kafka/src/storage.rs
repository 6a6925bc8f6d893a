//! The storage: the contract's calls in, completions out, over [`Brokers`].
//!
//! One value owned by one thread, with no clock, no I/O and no thread of its own: what happens is a function of the
//! calls, of what the brokers tell, and of the time that each poll is given. Its parts are files beside this one, each
//! with its share of the methods:
//!
//! - `start`: the cluster's own topics, and the rows about logs.
//! - `provisioning`, `withdrawing`, `changing`, `removing`: what makes, opens, renews, trims and
//!   deletes logs; one change of a log at a time.
//! - `appending`: appends and their reports.
//! - `bounds`: questions about a log's ends, and the calls that need them.
//! - `resuming`, `scanning`, `sweeping`, `giving`: reading.
//! - `soundness`: logs that are not what they were. `upkeep`: topics that are not as log 0 says.
//! - `stating`: statements about what was read, from which the next start goes on.
//!
//! Invariants are those of its parts (`Log`, `Sending`,
//! [`Producers`](crate::producers::Producers)), and two of the whole. `few_sweeps`: there are never more sweeps than the
//! settings say. `counted_queue`: the bytes under way are those of all logs.

use crate::brokers::{Brokers, ConsumerId, Failure, Order, Partition, Question, Token, Told};
use crate::changing::Changes;
use crate::config::KafkaConfig;
use crate::log::Log;
use crate::looking::Looking;
use crate::place::Offset;
use crate::provisioning::Provisionings;
use crate::reader::{Reader, ReaderKey};
use crate::rows::{Row, Rows};
use crate::soundness::{Doubts, Suspicion};
use crate::start::Start;
use crate::stating::Stating;
use crate::sweeping::Sweep;
use crate::upkeep::Upkeep;
use airmail_log::{
    AppendClock, Call, Capabilities, ClockState, Completion, Dedup, LogStorage, Numbering, Refusal,
    Tag, Trouble,
};
use airmail_model::{LogId, Mono, Now, bug};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Rounds of reading in one poll; what is left goes on in the next.
const ROUNDS_MAX: usize = 64;

/// Purpose of an answer of the brokers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Report of an append.
    Append(LogId),
    /// Report of a row, and the log whose change waits for it.
    Row(Row, LogId),
    /// Nothing more depends on it.
    Nothing,
    /// Report of a part or a head of the statement that is being written.
    Statement,
    /// Answer to the question for the end of the rows, which a log waits for.
    Rows(LogId),
    /// Report of a birth record.
    Birth(Tag),
    /// Answer to a log's question for its bounds.
    Bounds(LogId),
    /// Answer to the question for the bounds of a log that is doubted.
    Doubt(LogId),
    /// Answer to the question for a time, and how far the log was read when it was asked.
    Found(LogId, Tag, Offset),
    /// Answer to an order of a log's change.
    Change(LogId),
    /// Answer to an order of a provisioning.
    Provision(Tag),
    /// Answer to an order of a withdrawal.
    Withdraw(Tag),
    /// Answer that the start waits for.
    Start,
    /// Answer that upkeep waits for.
    Upkeep,
}

/// Counts of the storage.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) read_bytes: u64,
    pub(crate) damage: u64,
    /// Messages that were left out as copies.
    pub(crate) left_out: u64,
}

/// Things under way that are no log's state.
#[derive(Debug, Default)]
pub(crate) struct Work {
    pub(crate) calls: VecDeque<Call>,
    pub(crate) changes: BTreeMap<LogId, Changes>,
    /// Logs whose next change may begin.
    pub(crate) due: BTreeSet<LogId>,
    pub(crate) provisionings: Provisionings,
    pub(crate) looking: BTreeMap<Tag, Looking>,
    pub(crate) arrivals: Vec<crate::bounds::Arrival>,
    pub(crate) doubts: Doubts,
    pub(crate) upkeep: Upkeep,
    /// Logs whose beginning is looked for again, and when.
    pub(crate) retries: BTreeMap<LogId, Mono>,
    /// Logs whose next append is not reported, or not read, and until when that is waited for at least.
    pub(crate) awaited: BTreeMap<LogId, Mono>,
    /// Logs that have something to be read through.
    pub(crate) readable: BTreeSet<LogId>,
    /// Readers that want what is not among the newest.
    pub(crate) behind: BTreeSet<ReaderKey>,
    /// Bytes of the appends of all logs without a report.
    pub(crate) under_way_bytes: u64,
    pub(crate) stating: Stating,
    pub(crate) is_closing: bool,
}

/// Log storage on Kafka. See the module's documentation.
#[derive(Debug)]
pub struct KafkaStorage<B> {
    pub(crate) config: KafkaConfig,
    pub(crate) brokers: B,
    pub(crate) now: Now,
    purposes: BTreeMap<Token, Purpose>,
    last_id: u64,
    pub(crate) start: Start,
    pub(crate) rows: Rows,
    pub(crate) logs: BTreeMap<LogId, Log>,
    pub(crate) readers: BTreeMap<ReaderKey, Reader>,
    /// The log that each consumer of the tail's slot reads through.
    pub(crate) scans: BTreeMap<ConsumerId, LogId>,
    pub(crate) sweeps: Vec<Sweep>,
    pub(crate) work: Work,
    /// Logs whose readers may be given something.
    pub(crate) stirred: BTreeSet<LogId>,
    pub(crate) counts: Counts,
    pub(crate) out: Vec<Completion>,
}

impl<B: Brokers> KafkaStorage<B> {
    /// A storage on these brokers. Nothing is asked of them before the first poll.
    pub fn new(config: KafkaConfig, brokers: B) -> KafkaStorage<B> {
        KafkaStorage {
            config,
            brokers,
            now: Now::default(),
            purposes: BTreeMap::new(),
            last_id: 0,
            start: Start::default(),
            rows: Rows::default(),
            logs: BTreeMap::new(),
            readers: BTreeMap::new(),
            scans: BTreeMap::new(),
            sweeps: Vec::new(),
            work: Work::default(),
            stirred: BTreeSet::new(),
            counts: Counts::default(),
            out: Vec::new(),
        }
    }

    /// The brokers, to look at.
    #[must_use]
    pub fn brokers(&self) -> &B {
        &self.brokers
    }

    /// Number of messages that were left out as copies, since the storage was opened.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.counts.left_out
    }

    /// An id that was never used, for tokens and consumers alike.
    pub(crate) fn id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    pub(crate) fn token(&mut self, purpose: Purpose) -> Token {
        let token = Token(self.id());
        self.purposes.insert(token, purpose);
        token
    }

    /// Takes back a token that nobody was given.
    pub(crate) fn untoken(&mut self, token: Token) {
        self.purposes.remove(&token);
    }

    pub(crate) fn ask(&mut self, purpose: Purpose, about: &Partition, question: Question) {
        let token = self.token(purpose);
        self.brokers.ask(token, about, question);
    }

    pub(crate) fn order(&mut self, purpose: Purpose, order: Order) {
        let token = self.token(purpose);
        self.brokers.order(token, order);
    }

    pub(crate) fn refuse(&mut self, t: Tag, why: Refusal) {
        self.out.push(Completion::Refused { t, why });
    }

    /// A log that is open and sound.
    pub(crate) fn open_log(&mut self, log: LogId) -> Result<&mut Log, Refusal> {
        match self.logs.get_mut(&log) {
            Some(log) if log.is_open => match &log.suspended {
                Some(why) => Err(why.clone()),
                None => Ok(log),
            },
            _ => Err(Refusal::NoLog),
        }
    }

    fn hear(&mut self, told: Told) {
        match told {
            Told::Produced { token, result } => match self.purposes.remove(&token) {
                Some(Purpose::Append(log)) => self.reported(log, token, result),
                Some(Purpose::Row(row, log)) => self.row_reported(row, log, result.is_ok()),
                Some(Purpose::Birth(t)) => self.birth_reported(t, result),
                Some(Purpose::Statement) => self.statement_reported(result.is_ok()),
                Some(Purpose::Nothing) => {}
                other => bug!("a record is told of for {other:?}"),
            },
            Told::Answered { token, answer } => match self.purposes.remove(&token) {
                Some(Purpose::Bounds(log)) => self.bounds_answered(log, &answer),
                Some(Purpose::Doubt(log)) => self.doubt_bounded(log, &answer),
                Some(Purpose::Upkeep) => self.upkeep_answered(answer),
                Some(Purpose::Found(log, t, read)) => self.time_answered((log, t, read), &answer),
                Some(Purpose::Change(log)) => self.change_answered(log, answer),
                Some(Purpose::Rows(log)) => self.rows_bounded(log, &answer),
                Some(Purpose::Provision(t)) => self.provision_answered(t, answer),
                Some(Purpose::Withdraw(t)) => self.withdrawal_answered(t, answer),
                Some(Purpose::Start) => self.start_answered(&answer),
                Some(Purpose::Nothing) => {}
                other => bug!("an answer is told for {other:?}"),
            },
            Told::Readable { consumer } => self.readable(consumer),
            Told::OutOfRange { consumer } => self.out_of_range(consumer),
            Told::Truncated { consumer, at } => self.doubt_of(consumer, Suspicion::Cut(at)),
            Told::Ended {
                consumer,
                why: Failure::NoTopic | Failure::Cut(_),
            } => self.doubt_of(consumer, Suspicion::Another),
            Told::Ended { consumer, .. } => self.ended(consumer),
        }
    }

    fn take_calls(&mut self) {
        while let Some(call) = self.work.calls.pop_front() {
            match call {
                Call::Append {
                    t,
                    log,
                    map,
                    batch,
                    sole,
                } => self.append((t, log), map, batch, sole),
                Call::Provision { t, log, logs, spec } => self.provision(t, log, logs, *spec),
                Call::Withdraw {
                    t,
                    log,
                    logs,
                    origin,
                } => self.withdraw(t, log, logs, &origin),
                Call::Keep { t, kept } => self.keep(t, *kept),
                Call::Open { .. }
                | Call::Renew { .. }
                | Call::Trim { .. }
                | Call::Delete { .. } => self.queue_change(call),
                Call::Read {
                    r,
                    log,
                    from,
                    scope,
                    credit,
                } => self.read(r, log, from, &scope, credit),
                Call::Credit { r, bytes } => self.credit(r, bytes),
                Call::Want { r, edit, topics } => self.want(r, edit, topics.more),
                Call::Stop { r } => self.stop_reader(r, None),
                Call::FindTime { t, log, at } => self.find_time(t, log, at),
                Call::Bounds { t, log } => self.tell_bounds(t, log),
                Call::Clock { t, log } => self.tell_clock(t, log),
                Call::Topics { t, log, page } => self.list_topics(t, log, page),
                Call::Seal { t, log, .. } => self.cannot(t, log, "seal"),
                Call::Heal { t, log, .. } => self.cannot(t, log, "heal"),
            }
        }
    }

    fn cannot(&mut self, t: Tag, log: LogId, what: &'static str) {
        let why = match self.open_log(log) {
            Ok(_) => Refusal::Unsupported(what.into()),
            Err(why) => why,
        };
        self.refuse(t, why);
    }

    fn check(&self) {
        for log in self.logs.values() {
            log.check();
        }
        let bytes = self.logs.values().map(|log| log.sending.bytes());
        assert_eq!(
            bytes.sum::<u64>(),
            self.work.under_way_bytes,
            "counted_queue"
        );
        let most = usize::from(self.config.catch_up_readers.max(1));
        assert!(self.sweeps.len() <= most, "few_sweeps");
    }
}

impl<B: Brokers> LogStorage for KafkaStorage<B> {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            dedup: Dedup::AtRead,
            numbering: Numbering::Sparse,
            clock: AppendClock::Within(self.config.skew),
            strongest: self.config.durability(),
            topic_index: false,
            past_end: false,
            seal: false,
            heal: false,
            many_writers: true,
            provisions: true,
            appends_apart: false,
        }
    }

    fn submit(&mut self, call: Call) {
        self.work.calls.push_back(call);
    }

    fn poll(&mut self, now: Now, out: &mut Vec<Completion>) -> Option<Mono> {
        self.now = now;
        let mut told = Vec::new();
        let mut deadline = self.brokers.poll(now, &mut told);
        for news in told {
            self.hear(news);
        }
        self.go_on_starting();
        self.take_calls();
        self.change();
        let mut is_busy = true;
        for _ in 0..ROUNDS_MAX {
            is_busy = self.scan();
            self.give_stirred();
            is_busy |= self.sweep();
            self.give_stirred();
            self.look();
            if !is_busy {
                break;
            }
        }
        self.give_up_waiting();
        self.go_on_doubting();
        self.state();
        is_busy |= self.go_on_following();
        is_busy |= self.arrive() || !self.stirred.is_empty();
        if self.work.is_closing {
            self.go_on_closing();
        }
        if bug::is_checking() {
            self.check();
        }
        out.append(&mut self.out);
        if is_busy || !self.work.due.is_empty() && self.start.is_over() {
            return Some(now.mono);
        }
        let awaited = self.work.awaited.values().copied().min();
        let may_state = self.start.is_over() && !self.work.is_closing;
        for own in [
            self.arrivals_deadline(),
            self.start.deadline(),
            self.work.stating.deadline(may_state),
            self.sweeps_deadline(),
            self.work.doubts.deadline(),
            awaited,
        ] {
            deadline = deadline.into_iter().chain(own).min();
        }
        deadline
    }

    /// Does nothing: nothing is put off until then.
    fn opened(&mut self) {}

    fn close(&mut self, _: Now) {
        self.work.is_closing = true;
    }

    fn is_closed(&self) -> bool {
        self.work.is_closing && self.is_drained() && self.brokers.is_closed()
    }

    fn trouble(&self) -> Option<Trouble> {
        let of_start = self.start.failure().map(str::to_owned);
        let error = of_start.or_else(|| self.brokers.trouble())?;
        Some(Trouble { full: false, error })
    }

    fn damage(&self) -> u64 {
        self.counts.damage
    }

    fn read_bytes(&self) -> u64 {
        self.counts.read_bytes
    }

    /// The clock as it is: what is kept and for how long is the brokers' business, by their clocks.
    fn clock(&self) -> ClockState {
        ClockState {
            wall: self.now.wall,
            trusted: self.now.wall,
            ..ClockState::default()
        }
    }

    /// Does nothing: no clock of this node decides what is kept.
    fn accept_clock(&mut self, _: Now) {}
}

impl<B: Brokers> KafkaStorage<B> {
    fn is_drained(&self) -> bool {
        self.work.calls.is_empty() && self.logs.values().all(|log| log.sending.is_empty())
    }

    fn go_on_closing(&mut self) {
        if self.is_drained() {
            self.brokers.close(self.now);
        }
    }

    /// Milliseconds since 1970, by this node's clock.
    pub(crate) fn wall_ms(&self) -> i64 {
        self.now.wall.0.div_euclid(1000)
    }

    /// Refusal of whatever may be tried again soon.
    pub(crate) fn busy() -> Refusal {
        Refusal::Busy {
            retry_after: Duration::from_millis(200),
        }
    }
}
