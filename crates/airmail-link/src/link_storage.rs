//! The near end of a link: a log storage whose logs are at the far end.
//!
//! It keeps each call until it is answered, and each reader's place. When a connection is there, it first opens
//! the logs again that were open, then asks again what was not answered, in the order of the calls, and starts
//! each reader from the first number that its owner was not told of. So a cut costs its owner nothing but
//! time, with two exceptions that the contract has words for: the outcome of an append without a producer is unknown
//! if it was sent, as no storage could tell a second attempt from a new batch; and a refusal of a second attempt is told
//! as an unknown outcome, as the first one may be stored.
//!
//! While there is no connection the owner knows: each open log is [`Completion::Lost`], until it is `Gained` again.
//!
//! Invariants, asserted after each poll where bugs panic: those of `unanswered.rs`, `readers.rs` and `logs.rs`. Nothing is
//! to be sent while there is no connection.

mod edits;
mod handover;
mod logs;
mod muted;
mod readers;
mod reading;
mod unanswered;

use crate::limits::LinkLimits;
use crate::message::{FromHost, ToHost};
use crate::port::{Event, Port};
#[cfg(feature = "sabotage")]
use crate::sabotage::Bug;
use airmail_log::{Call, Capabilities, ClockState, Completion, LogStorage, ReaderId, Tag, Trouble};
#[cfg(feature = "sabotage")]
use airmail_model::Sequence;
use airmail_model::{LogId, Mono, Now, bug};
use logs::OpenLogs;
pub(crate) use muted::MutedNews;
use muted::MutedReaders;
use readers::{Readers, Reading};
use std::collections::VecDeque;
use std::fmt;
use unanswered::{CallNumber, Calls, Room};

/// Something to be sent, in order. What has been answered or given up meanwhile is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outgoing {
    Begin,
    Reopen(LogId),
    Call(CallNumber),
    Start(ReaderId),
    Grant(ReaderId),
    Want(ReaderId),
    Stop(ReaderId),
    /// A run that was to be resumed is not: its list is of no use.
    Forget(ReaderId),
    Closing,
}

/// State of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Connection {
    /// There is none.
    Down,
    /// The logs are opened again; nothing else is asked.
    Reopening,
    /// Everything is asked as it comes.
    Up,
}

/// State of a clean stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closing {
    No,
    /// It has begun.
    Begun,
    /// The far end has been told over the present connection.
    Told,
}

/// A log storage whose logs are at the other end of a port. See the module's documentation.
pub struct LinkStorage<P> {
    port: P,
    limits: LinkLimits,
    capabilities: Capabilities,
    connection: Connection,
    generation: u64,
    calls: Calls,
    readers: Readers,
    muted: MutedReaders,
    logs: OpenLogs,
    outgoing: VecDeque<Outgoing>,
    told: VecDeque<Completion>,
    closing: Closing,
    now: Mono,
}

impl<P> fmt::Debug for LinkStorage<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkStorage")
            .field("connection", &self.connection)
            .field("generation", &self.generation)
            .field("closing", &self.closing)
            .finish_non_exhaustive()
    }
}

impl<P: Port<Out = ToHost, In = FromHost>> LinkStorage<P> {
    /// A storage whose logs are at the other end of `port`, with the capabilities of the storage there.
    pub fn new(port: P, capabilities: Capabilities, limits: LinkLimits) -> LinkStorage<P> {
        LinkStorage {
            port,
            limits,
            capabilities,
            connection: Connection::Down,
            generation: 0,
            calls: Calls::default(),
            readers: Readers::default(),
            muted: MutedReaders::default(),
            logs: OpenLogs::default(),
            outgoing: VecDeque::new(),
            told: VecDeque::new(),
            closing: Closing::No,
            now: Mono::default(),
        }
    }

    /// The storage of a node in a tree: its far end changes, and one that was left may still pass on what it was asked.
    /// So no refusal says that an append is not stored which was sent over an earlier connection, too.
    pub fn to_parents(port: P, capabilities: Capabilities, limits: LinkLimits) -> LinkStorage<P> {
        let calls = Calls::to_parents();
        let link = LinkStorage::new(port, capabilities, limits);
        LinkStorage { calls, ..link }
    }

    /// Number of appends whose answer was not given.
    #[must_use]
    pub fn unanswered_appends(&self) -> usize {
        self.calls.appends()
    }

    fn is_up(&self) -> bool {
        self.connection == Connection::Up
    }

    /// Sends something in its turn, if there is a connection; else it is sent when there is one.
    fn outgo(&mut self, outgoing: Outgoing) {
        if self.is_up() {
            self.outgoing.push_back(outgoing);
        }
    }

    /// Takes what the port has to tell, up to the bound of a turn; whether there may be more.
    fn receive(&mut self) -> bool {
        for _ in 0..self.limits.turn_messages {
            match self.port.receive() {
                None => return false,
                Some(Event::Up) => {
                    self.cut();
                    self.up();
                }
                Some(Event::Cut) => self.cut(),
                Some(Event::Message(message)) => self.message(message),
            }
        }
        true
    }

    fn up(&mut self) {
        self.generation += 1;
        self.connection = Connection::Reopening;
        self.outgoing.push_back(Outgoing::Begin);
        #[cfg(feature = "sabotage")]
        if self.limits.has_bug(Bug::OpensForgotten) {
            return;
        }
        let logs = self.logs.lost_logs();
        self.outgoing.extend(logs.into_iter().map(Outgoing::Reopen));
    }

    fn cut(&mut self) {
        self.connection = Connection::Down;
        self.outgoing.clear();
        self.logs.cut(&mut self.told);
        self.calls.cut(&mut self.told);
        self.readers.cut(&mut self.told);
        self.muted.cut();
        #[cfg(feature = "sabotage")]
        self.sabotage_cut();
        if self.closing != Closing::No {
            self.closing = Closing::Begun;
            self.calls.give_up_appends(&mut self.told);
        }
    }

    /// The logs are open again, as far as they can be: everything else is asked.
    fn ask_again(&mut self) {
        self.connection = Connection::Up;
        let calls = self.calls.numbers().map(Outgoing::Call);
        self.outgoing.extend(calls);
        #[cfg(feature = "sabotage")]
        if self.limits.has_bug(Bug::ReaderForgotten) {
            return;
        }
        #[cfg(feature = "sabotage")]
        if self.limits.has_bug(Bug::ResumeOffByOne) {
            self.readers.skip_one();
        }
        let runs = self.readers.resume_all();
        self.outgoing.extend(runs.into_iter().map(Outgoing::Start));
        let muted = self.muted.not_begun();
        self.outgoing.extend(muted.map(Outgoing::Start));
        if self.closing != Closing::No {
            self.outgoing.push_back(Outgoing::Closing);
        }
    }

    fn message(&mut self, message: FromHost) {
        let is_present = message.generation() == self.generation;
        #[cfg(feature = "sabotage")]
        let is_present = is_present || self.limits.has_bug(Bug::GenerationIgnored);
        if !is_present || self.connection == Connection::Down {
            return;
        }
        if let Some(run) = message.run().filter(|run| self.muted.has_run(*run)) {
            return self.muted_told(run, &message);
        }
        let reading = match message {
            FromHost::Range {
                previous,
                completion,
                ..
            } => {
                #[cfg(feature = "sabotage")]
                let previous = match self.limits.bug {
                    Some(Bug::PreviousIgnored) => Sequence(0),
                    _ => previous,
                };
                self.readers.range(previous, completion)
            }
            FromHost::Behind { r, .. } => self.readers.behind(r),
            // For the node, which has taken it on its way.
            FromHost::Heartbeat { .. } => return,
            FromHost::Told { completion, .. } if completion.reader().is_some() => {
                self.readers.mark(completion)
            }
            FromHost::Told { completion, .. } => return self.told(completion),
        };
        match reading {
            Reading::Tell(completion) => self.told.push_back(completion),
            Reading::Resume(run) => self.outgo(Outgoing::Start(run)),
            Reading::Nothing => {}
        }
    }

    /// The far end answers a call, or tells what has become of a log.
    fn told(&mut self, completion: Completion) {
        match completion {
            Completion::Gained { log, bounds } => self.logs.gained(log, bounds, &mut self.told),
            Completion::Lost { log } => self.logs.lost(log, &mut self.told),
            answer => {
                if !self.logs.answered(self.now, &answer, &mut self.told) {
                    self.answered(answer);
                }
            }
        }
    }

    /// The far end answers a call of the owner's.
    fn answered(&mut self, answer: Completion) {
        let Some(t) = answer.tag() else {
            bug!("{answer:?} answers nothing");
            return;
        };
        let bounds = match &answer {
            Completion::Opened { bounds, .. } => Some(*bounds),
            _ => None,
        };
        let is_done = matches!(answer, Completion::Done { .. });
        let answered = self.calls.answer(CallNumber(t.0), answer, &mut self.told);
        match answered.map(|answered| answered.call) {
            Some(Call::Open { log, spec, .. }) => {
                if let Some(bounds) = bounds {
                    self.logs.opened(log, spec, &bounds, &mut self.told);
                }
            }
            Some(Call::Delete { log, .. }) if is_done => self.logs.deleted(log),
            _ => {}
        }
    }

    /// Sends what is to be sent, up to the bound of a turn, until there is no room; whether there may be more.
    fn send(&mut self) -> bool {
        for _ in 0..self.limits.turn_messages {
            let Some(outgoing) = self.outgoing.front().copied() else {
                // Input: an owner that has asked everything.
                return false;
            };
            if let Some(message) = self.message_for(outgoing) {
                if self.port.send(message).is_err() {
                    self.not_sent(outgoing);
                    return false;
                }
                self.sent(outgoing);
            }
            self.outgoing.pop_front();
        }
        true
    }

    /// The message for something to be sent, unless it is of no interest any more.
    fn message_for(&mut self, outgoing: Outgoing) -> Option<ToHost> {
        let generation = self.generation;
        let call = match outgoing {
            Outgoing::Begin => return Some(ToHost::Begin { generation }),
            Outgoing::Closing => return Some(ToHost::Closing { generation }),
            Outgoing::Reopen(log) => {
                let t = Tag(self.calls.number().0);
                self.logs.reopen(t, log)?
            }
            Outgoing::Call(number) => self.calls.get_mut(number)?.to_send(number),
            Outgoing::Start(run) => {
                let start = match self.muted.start(run) {
                    Some(start) => start,
                    None => self.readers.start(run)?,
                };
                let edits = self.edits(run);
                if let Some(of) = edits.and_then(|edits| edits.earlier()) {
                    let call = start;
                    return Some(ToHost::Resume {
                        generation,
                        of,
                        call,
                    });
                }
                #[cfg(feature = "sabotage")]
                if self.limits.has_bug(Bug::CreditTwice) {
                    self.readers.hold_back_again(run);
                }
                start
            }
            Outgoing::Grant(run) => self.readers.grant(run)?,
            Outgoing::Want(run) => self.edits(run)?.next_call(run)?,
            Outgoing::Forget(r) => Call::Stop { r },
            Outgoing::Stop(r) => self.readers.is_running(r).then_some(Call::Stop { r })?,
        };
        Some(ToHost::Call { generation, call })
    }

    fn not_sent(&mut self, outgoing: Outgoing) {
        match outgoing {
            Outgoing::Start(run) => {
                self.readers.not_started(run);
                self.muted.not_started(run);
            }
            Outgoing::Reopen(log) => self.logs.not_reopening(log),
            _ => {}
        }
    }

    fn sent(&mut self, outgoing: Outgoing) {
        match outgoing {
            Outgoing::Call(number) => {
                if let Some(unanswered) = self.calls.get_mut(number) {
                    unanswered.is_sent = true;
                }
            }
            Outgoing::Grant(run) => {
                if self.readers.granted(run) {
                    self.outgo(outgoing);
                }
            }
            Outgoing::Closing => self.closing = Closing::Told,
            Outgoing::Start(run) => {
                let edits = self.edits(run).map_or(0, |edits| edits.to_send());
                let edits = std::iter::repeat_n(Outgoing::Want(run), edits);
                self.outgoing.extend(edits);
            }
            Outgoing::Want(run) => {
                if let Some(edits) = self.edits(run) {
                    edits.sent();
                }
            }
            Outgoing::Begin | Outgoing::Reopen(_) | Outgoing::Stop(_) | Outgoing::Forget(_) => {}
        }
    }

    #[cfg(feature = "sabotage")]
    fn sabotage_cut(&mut self) {
        match self.limits.bug {
            Some(Bug::GenerationIgnored) => self.readers.number_anew(),
            Some(Bug::RefusalTaken) => self.calls.doubt_nothing(),
            Some(Bug::WantsKept) => {
                let is_other = |told: &Completion| !matches!(told, Completion::WantsLost { .. });
                self.told.retain(is_other);
            }
            _ => {}
        }
    }

    fn check(&self) {
        self.calls.check();
        self.readers.check();
        self.muted.check();
        assert!(
            self.connection != Connection::Down || self.outgoing.is_empty(),
            "something is to be sent while there is no connection"
        );
    }
}

impl<P: Port<Out = ToHost, In = FromHost>> LogStorage for LinkStorage<P> {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn submit(&mut self, call: Call) {
        let Some(tag) = call.tag() else {
            // Input: a call of a reader, which has no tag.
            return self.read(call);
        };
        if let Call::Keep { t, .. } = call {
            // Whoever has the storage does it.
            return self.told.push_back(Completion::Done { t });
        }
        let room = Room {
            append_bytes: self.limits.append_bytes,
            calls: self.limits.calls,
            is_closing: self.closing != Closing::No,
        };
        if let Some(number) = self.calls.take(tag, call, &room, &mut self.told) {
            self.outgo(Outgoing::Call(number));
        }
    }

    fn poll(&mut self, now: Now, out: &mut Vec<Completion>) -> Option<Mono> {
        self.now = now.mono;
        let mut more = self.receive();
        if self.is_up() && self.logs.take_retry(now.mono) {
            let logs = self.logs.lost_logs();
            self.outgoing.extend(logs.into_iter().map(Outgoing::Reopen));
        }
        more |= self.send();
        if self.connection == Connection::Reopening
            && self.outgoing.is_empty()
            && !self.logs.is_reopening()
        {
            self.ask_again();
            more |= self.send();
        }
        self.port.flush();
        out.extend(self.told.drain(..));
        if bug::is_checking() {
            self.check();
        }
        if more {
            return Some(now.mono);
        }
        self.is_up().then(|| self.logs.retry()).flatten()
    }

    /// Does nothing: the far end's owner says it there.
    fn opened(&mut self) {}

    /// Begins a clean stop. Where there is no connection, nothing is waited for: what was sent has an unknown
    /// outcome, and what was not is refused as busy.
    fn close(&mut self, _: Now) {
        if self.closing != Closing::No {
            return;
        }
        self.closing = Closing::Begun;
        if self.connection == Connection::Down {
            self.calls.give_up_appends(&mut self.told);
        }
        self.outgo(Outgoing::Closing);
    }

    fn is_closed(&self) -> bool {
        let is_told = self.closing == Closing::Told
            || self.closing == Closing::Begun && self.connection == Connection::Down;
        is_told && self.calls.appends() == 0 && self.told.is_empty()
    }

    /// Nothing: the far end's owner is told there.
    fn trouble(&self) -> Option<Trouble> {
        None
    }

    /// 0: the far end counts what is damaged there.
    fn damage(&self) -> u64 {
        0
    }

    fn read_bytes(&self) -> u64 {
        0
    }

    /// The state of no clock: the far end's counts.
    fn clock(&self) -> ClockState {
        ClockState::default()
    }

    /// Does nothing: the far end has a clock of its own.
    fn accept_clock(&mut self, _: Now) {}
}
