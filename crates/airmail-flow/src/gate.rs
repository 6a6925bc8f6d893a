//! Admission of messages for a publish gate, a delivery gate or a publisher: a meter, a limiter and
//! a semaphore put together.
//!
//! A request that is not admitted waits, within a bound of messages and of time, or is refused with
//! a reason and a delay. The delay is Little's law once more: the messages ahead, divided by λ, are
//! the time until there is room.
//!
//! A burst may wait; overload may not, because then a queue makes every message late and serves
//! none of them sooner. The time that the queue has been non-empty tells the two apart: once it has
//! used up `burst_ms`, the queue is capped at max(in flight, λ·`standing_ms`). The burst's budget
//! refills while the queue is empty. So an admitted message has not waited for long, and a
//! publisher with a window of its own is not refused for filling it.
//!
//! Lanes order the queue, and lane high may wait with an eighth more than lane normal. Tenants' weights, when they come,
//! order it too; nothing else here knows the identity of a waiter.

use crate::decision::Decision;
use crate::limiter::Limiter;
use crate::line::Line;
use crate::meter::{Meter, Sample};
use crate::record::{Reading, Record};
use crate::semaphore::{Entry, Key, Semaphore, Ticket};
use crate::settings::GateSettings;
use airmail_model::{Lane, Mono};
use std::time::Duration;

/// A waiter, with the ticket that it has got now.
pub type Admitted<W> = (W, Ticket);

/// Answer to a request for admission.
#[derive(Debug, PartialEq, Eq)]
pub enum Admission {
    /// Go ahead, and hand the ticket back.
    Go(Ticket),
    /// Wait; the waiter comes back admitted, or refused by [`Gate::expire`].
    Waits(Key),
    /// Refused for now.
    Refused(Refusal),
}

/// A refusal: nothing was kept of what asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Reason of the refusal.
    pub reason: RefusalReason,
    /// Delay after which it is worth asking again; the caller adds jitter.
    pub retry_after: Duration,
}

/// Reason for which a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RefusalReason {
    /// The queue holds as many messages as may wait.
    LineFull,
    /// It has waited as long as it may.
    WaitedTooLong,
}

impl RefusalReason {
    /// All of them, in order.
    pub const ALL: [RefusalReason; 2] = [RefusalReason::LineFull, RefusalReason::WaitedTooLong];

    /// A short name that stays, for metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            RefusalReason::LineFull => "line-full",
            RefusalReason::WaitedTooLong => "waited-too-long",
        }
    }
}

/// A window in which somebody waited for this part of the time measures the bound,
/// not the demand.
const HELD_BACK_SHARE: f64 = 0.8;

/// Part of the messages that may wait which lane high may have on top.
const HIGH_RESERVE_PART: u64 = 8;

/// Admission by one limiter.
#[derive(Clone, Debug)]
pub struct Gate<W> {
    settings: GateSettings,
    meter: Meter,
    limiter: Limiter,
    semaphore: Semaphore<W>,
    last: Option<Sample>,
    line: Line,
    record: Record,
}

impl<W> Gate<W> {
    /// Makes a gate with the limiter's first bound.
    #[must_use]
    pub fn new(settings: GateSettings) -> Gate<W> {
        let limiter = Limiter::new(settings.limiter);
        Gate {
            settings,
            meter: Meter::new(settings.window_messages),
            semaphore: Semaphore::new(limiter.bound()),
            limiter,
            last: None,
            line: Line::new(Duration::from_millis(settings.burst_ms)),
            record: Record::default(),
        }
    }

    /// The bound that holds now.
    #[must_use]
    pub fn bound(&self) -> u64 {
        self.semaphore.bound()
    }

    /// Messages in flight.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.semaphore.in_flight()
    }

    /// Messages in line.
    #[must_use]
    pub fn waiting_messages(&self) -> u64 {
        self.semaphore.waiting_messages()
    }

    /// The gate's state and counters, in messages.
    #[must_use]
    pub fn reading(&self) -> Reading {
        Reading {
            bound: self.semaphore.bound(),
            in_flight: self.semaphore.in_flight(),
            waiting: self.semaphore.waiting_messages(),
            ..self.record.read(self.limiter.kind())
        }
    }

    /// Number of messages that may wait now.
    fn room(&self, now: Mono) -> u64 {
        // Overload is where somebody waits still.
        if self.semaphore.waiters() > 0 && now >= self.line.stands_from() {
            self.standing_room()
        } else {
            self.settings.waiting_messages_max
        }
    }

    /// Number of messages that may wait once the queue has been non-empty for too long.
    fn standing_room(&self) -> u64 {
        let standing_s = self.settings.standing_ms as f64 / 1e3;
        let done = self.last.map_or(0.0, |last| last.rate_per_s() * standing_s);
        let room = self.semaphore.bound().max(done as u64);
        room.min(self.settings.waiting_messages_max)
    }

    /// Messages that wait, as they count against a room: those of lane high only beyond an eighth of it.
    fn counted(&self, (normal, high): (u64, u64), room: u64) -> u64 {
        let of = |lane| self.semaphore.waiting_messages_of(lane);
        let high = of(Lane::High).saturating_add(high);
        let high = high.saturating_sub(room / HIGH_RESERVE_PART);
        of(Lane::Normal).saturating_add(normal).saturating_add(high)
    }

    /// When [`Gate::expire`] has something to do; `None` if nobody waits.
    #[must_use]
    pub fn deadline(&self) -> Option<Mono> {
        let (_, since) = self.semaphore.longest()?;
        let waited = since.plus(self.wait_max());
        let room = self.standing_room();
        let too_many = self.semaphore.waiters() > 1 && self.counted((0, 0), room) > room;
        Some(if too_many {
            self.line.stands_from().min(waited)
        } else {
            waited
        })
    }

    /// Asks to have `messages` of a lane in flight.
    pub fn enter(&mut self, now: Mono, lane: Lane, messages: u64, who: W) -> Admission {
        self.pass(now);
        if let Some(ticket) = self.semaphore.try_enter(now, lane, messages) {
            return Admission::Go(ticket);
        }
        // Where one alone is more than the bound, one may wait nevertheless.
        let first = self.semaphore.waiters() == 0;
        let room = if first {
            self.settings.waiting_messages_max
        } else {
            self.room(now)
        };
        let more = match lane {
            Lane::Normal => (messages, 0),
            Lane::High => (0, messages),
        };
        if self.counted(more, room) > room {
            return Admission::Refused(self.refuse());
        }
        match self.semaphore.enter(now, lane, messages, who) {
            Entry::Go(ticket) => Admission::Go(ticket),
            Entry::Waits(key) => {
                self.record.waited();
                Admission::Waits(key)
            }
        }
    }

    /// Counts the time during which somebody has waited; to be called before the line changes.
    fn pass(&mut self, now: Mono) {
        self.line.pass(now, self.semaphore.waiters() > 0);
    }

    /// The refusal of a request for which the queue is full by another measure than messages.
    #[must_use]
    pub fn refuse(&mut self) -> Refusal {
        self.refusal(RefusalReason::LineFull)
    }

    /// Admits `messages` of a lane if nobody waits who goes before them, and there is room, for a caller that does not wait
    /// here.
    pub fn try_enter(&mut self, now: Mono, lane: Lane, messages: u64) -> Option<Ticket> {
        self.semaphore.try_enter(now, lane, messages)
    }

    /// Takes back a ticket whose messages were acknowledged: they count for W and λ. Gives a
    /// decision every N messages; its bound holds already.
    pub fn acknowledged(
        &mut self,
        now: Mono,
        ticket: Ticket,
        admitted: &mut impl Extend<Admitted<W>>,
    ) -> Option<Decision> {
        self.pass(now);
        let latency = now.since(ticket.admitted());
        let sample = self.meter.acknowledged(now, ticket.messages(), latency);
        let decision = sample.map(|sample| {
            self.last = Some(sample);
            let held_back = self.line.end_window(now) >= HELD_BACK_SHARE;
            let decision = self.limiter.observe(&sample, held_back);
            self.record.decided(decision);
            decision
        });
        self.semaphore.leave(now, ticket, admitted);
        if let Some(decision) = &decision {
            let moved = decision.bound != decision.bound_before;
            if let Some(window) = self.limiter.settled_window(self.settings.window_messages) {
                if moved {
                    self.meter.settle(self.semaphore.in_flight(), window);
                } else {
                    self.meter.set_window(window);
                }
            }
            if moved {
                self.semaphore.resize(now, decision.bound, admitted);
            }
        }
        decision
    }

    /// Takes back a ticket whose messages came to nothing: they count for neither W nor λ.
    pub fn abandoned(
        &mut self,
        now: Mono,
        ticket: Ticket,
        admitted: &mut impl Extend<Admitted<W>>,
    ) {
        self.pass(now);
        self.semaphore.leave(now, ticket, admitted);
    }

    /// Takes a waiter out of the line: it is gone. `None` if it does not wait.
    pub fn withdraw(
        &mut self,
        now: Mono,
        key: Key,
        admitted: &mut impl Extend<Admitted<W>>,
    ) -> Option<W> {
        self.pass(now);
        self.semaphore.withdraw(now, key, admitted)
    }

    /// Refuses who has waited the longest if that is as long as it may, or else the last in line if more wait
    /// than may; to be called until `None`, as others may be due as well.
    pub fn expire(
        &mut self,
        now: Mono,
        admitted: &mut impl Extend<Admitted<W>>,
    ) -> Option<(W, Refusal)> {
        let (longest, since) = self.semaphore.longest()?;
        let room = self.room(now);
        let (key, reason) = if now >= since.plus(self.wait_max()) {
            (longest, RefusalReason::WaitedTooLong)
        } else if self.semaphore.waiters() > 1 && self.counted((0, 0), room) > room {
            // The last: who came before it goes before it, and has waited longer.
            (self.semaphore.last()?, RefusalReason::LineFull)
        } else {
            return None;
        };
        let who = self.withdraw(now, key, admitted)?;
        Some((who, self.refusal(reason)))
    }

    fn wait_max(&self) -> Duration {
        Duration::from_millis(self.settings.wait_ms_max)
    }

    fn refusal(&mut self, reason: RefusalReason) -> Refusal {
        self.record.refused(reason);
        let min = Duration::from_millis(self.settings.retry_ms_min);
        let max = Duration::from_millis(self.settings.retry_ms_max).max(min);
        let ahead = self
            .semaphore
            .in_flight()
            .saturating_add(self.semaphore.waiting_messages());
        let wait_s = self
            .last
            .map_or(0.0, |last| ahead as f64 / last.rate_per_s());
        let retry_after = Duration::try_from_secs_f64(wait_s).unwrap_or(max);
        Refusal {
            reason,
            retry_after: retry_after.clamp(min, max),
        }
    }
}
