//! A wire between two shards: a connection that is slow, has little room, is cut, and is made again.
//!
//! Each direction is a [`Way`]. Messages of one connection arrive in order; a cut is told in place of the
//! rest, to each end at a time of its own, so that one may be on the next connection while the other does not
//! know yet that the last one is gone. What is sent into a connection that is gone is lost. Of what a cut
//! has taken some may come late all the same: after the next connection has begun, among its messages. A
//! direction may fall silent before the cut: everything is lost from then on, and its sender does not know.
//! And a range of a reader may be lost alone, as from a host that had no room for it.

use crate::entropy::Entropy;
use airmail_link::{Event, FromHost, Port, ToHost};
use airmail_log::{Call, Completion};
use airmail_model::Mono;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Longest time until an end is told of a cut, or of a new connection.
const NEWS_MICROS_MAX: u64 = 20_000;
/// Longest time that what comes late is late.
const LATE_MICROS_MAX: u64 = 50_000;

/// Behaviour of a wire.
#[derive(Clone, Copy, Debug)]
pub(super) struct WireSettings {
    /// A message takes up to this long.
    pub(super) delay: Duration,
    /// Messages under way in a direction, at most.
    pub(super) room: usize,
    /// Rate of reader's ranges that are lost alone, in parts of a million.
    pub(super) lost: u32,
    /// Messages that a cut has taken may come late.
    pub(super) is_late: bool,
}

/// Something that arrives at an end.
#[derive(Debug)]
enum Item<M> {
    Up { connection: u64 },
    Cut,
    Message(M),
}

/// One direction. See the module's documentation.
#[derive(Debug)]
struct Way<M> {
    now: Mono,
    chance: Entropy,
    /// For what is said of clocks, so that no other draw depends on it.
    clock_chance: Entropy,
    is_of_clock: fn(&M) -> bool,
    settings: WireSettings,
    /// Count of connections, with the present one.
    connection: u64,
    is_up: bool,
    is_silent: bool,
    /// The receiving end has been told of a connection, and not of its cut.
    is_known: bool,
    queue: VecDeque<(Mono, Item<M>)>,
    late: VecDeque<(Mono, M)>,
}

impl<M> Way<M> {
    fn new(settings: WireSettings, chance: Entropy, is_of_clock: fn(&M) -> bool) -> Way<M> {
        Way {
            now: Mono(0),
            is_of_clock,
            clock_chance: Entropy::new(chance.clone().next() ^ 0xc10c),
            chance,
            settings,
            connection: 0,
            is_up: false,
            is_silent: false,
            is_known: false,
            queue: VecDeque::new(),
            late: VecDeque::new(),
        }
    }

    /// Puts something behind all that is under way, to arrive within so many microseconds.
    fn push(&mut self, micros: u64, item: Item<M>) {
        let is_of_clock = matches!(&item, Item::Message(message) if (self.is_of_clock)(message));
        let chance = if is_of_clock {
            &mut self.clock_chance
        } else {
            &mut self.chance
        };
        let due = self
            .now
            .plus(Duration::from_micros(chance.between(0, micros)));
        let last = self.queue.back().map_or(due, |(due, _)| *due);
        self.queue.push_back((due.max(last), item));
    }

    fn up(&mut self) {
        self.connection += 1;
        (self.is_up, self.is_silent) = (true, false);
        let connection = self.connection;
        self.push(NEWS_MICROS_MAX, Item::Up { connection });
        for (due, _) in &mut self.late {
            let late = self.chance.below(LATE_MICROS_MAX);
            *due = self.now.plus(Duration::from_micros(late));
        }
    }

    fn cut(&mut self) {
        if !self.is_up {
            return;
        }
        self.is_up = false;
        let mut taken = Vec::new();
        for (due, item) in std::mem::take(&mut self.queue) {
            match item {
                Item::Message(message) => taken.push((due, message)),
                news => self.queue.push_back((due, news)),
            }
        }
        let lost = self.chance.index(taken.len() + 1);
        if self.settings.is_late {
            self.late.extend(taken.into_iter().skip(lost));
        }
        self.push(NEWS_MICROS_MAX, Item::Cut);
    }

    /// Takes a message of a connection; `alone` says whether it may be lost alone.
    fn send(&mut self, connection: u64, message: M, alone: fn(&M) -> bool) -> Result<(), M> {
        let is_gone = !self.is_up || self.connection != connection || self.is_silent;
        if is_gone || alone(&message) && self.chance.chance(self.settings.lost) {
            return Ok(());
        }
        if self.queue.len() >= self.settings.room {
            return Err(message);
        }
        let micros = u64::try_from(self.settings.delay.as_micros()).unwrap_or(0);
        self.push(micros, Item::Message(message));
        Ok(())
    }

    /// Takes a word of one node to the other, for which there is always room.
    fn say(&mut self, word: M) {
        if self.is_up && !self.is_silent {
            let micros = u64::try_from(self.settings.delay.as_micros()).unwrap_or(0);
            self.push(micros, Item::Message(word));
        }
    }

    /// Whether it is cut, and its receiver has been told.
    fn is_over(&self) -> bool {
        !self.is_up && self.queue.is_empty()
    }

    fn has_due(&self) -> bool {
        let is_due = |due: Option<Mono>| due.is_some_and(|due| due <= self.now);
        is_due(self.queue.front().map(|(due, _)| *due))
            || self.is_known && is_due(self.late.front().map(|(due, _)| *due))
    }

    fn receive(&mut self) -> Option<Item<M>> {
        let now = self.now;
        if self.is_known
            && let Some((_, message)) = self.late.pop_front_if(|(due, _)| *due <= now)
        {
            return Some(Item::Message(message));
        }
        let (_, item) = self.queue.pop_front_if(|(due, _)| *due <= now)?;
        match item {
            Item::Up { .. } => self.is_known = true,
            Item::Cut => self.is_known = false,
            Item::Message(_) => {}
        }
        Some(item)
    }
}

/// An end of a wire.
pub(super) struct SimPort<Out, In> {
    to: Arc<Mutex<Way<Out>>>,
    from: Arc<Mutex<Way<In>>>,
    alone: fn(&Out) -> bool,
    /// The connection that this end was told of.
    connection: Option<u64>,
}

impl<Out, In> fmt::Debug for SimPort<Out, In> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimPort")
            .field("connection", &self.connection)
            .finish_non_exhaustive()
    }
}

impl<Out: Send, In: Send> Port for SimPort<Out, In> {
    type Out = Out;
    type In = In;

    fn send(&mut self, message: Out) -> Result<(), Out> {
        match self.connection {
            Some(connection) => self.to.lock().send(connection, message, self.alone),
            None => Err(message),
        }
    }

    fn receive(&mut self) -> Option<Event<In>> {
        Some(match self.from.lock().receive()? {
            Item::Up { connection } => {
                self.connection = Some(connection);
                Event::Up
            }
            Item::Cut => {
                self.connection = None;
                Event::Cut
            }
            Item::Message(message) => Event::Message(message),
        })
    }

    /// Does nothing: each shard has its turn in every moment.
    fn flush(&mut self) {}
}

/// Both directions, as the simulator holds them.
#[derive(Debug)]
pub(super) struct Wire {
    to_host: Arc<Mutex<Way<ToHost>>>,
    from_host: Arc<Mutex<Way<FromHost>>>,
}

impl Wire {
    /// A wire that has no connection yet.
    pub(super) fn new(settings: WireSettings, chance: &mut Entropy) -> Wire {
        Wire {
            to_host: Arc::new(Mutex::new(Way::new(settings, chance.fork(), asks_clock))),
            from_host: Arc::new(Mutex::new(Way::new(settings, chance.fork(), tells_clock))),
        }
    }

    /// The end that asks.
    pub(super) fn near(&self) -> SimPort<ToHost, FromHost> {
        SimPort {
            to: Arc::clone(&self.to_host),
            from: Arc::clone(&self.from_host),
            alone: |_| false,
            connection: None,
        }
    }

    /// The end that has the logs.
    pub(super) fn far(&self) -> SimPort<FromHost, ToHost> {
        SimPort {
            to: Arc::clone(&self.from_host),
            from: Arc::clone(&self.to_host),
            alone: |message| matches!(message, FromHost::Range { .. }),
            connection: None,
        }
    }

    /// Moves the time on.
    pub(super) fn pass(&self, now: Mono) {
        self.to_host.lock().now = now;
        self.from_host.lock().now = now;
    }

    /// A connection is made.
    pub(super) fn up(&self) {
        self.to_host.lock().up();
        self.from_host.lock().up();
    }

    /// The connection is cut.
    pub(super) fn cut(&self) {
        self.to_host.lock().cut();
        self.from_host.lock().cut();
    }

    /// One direction loses everything from now on.
    pub(super) fn fall_silent(&self, to_host: bool) {
        if to_host {
            self.to_host.lock().is_silent = true;
        } else {
            self.from_host.lock().is_silent = true;
        }
    }

    /// A node says something to the one that asks.
    pub(super) fn say_near(&self, word: FromHost) {
        self.from_host.lock().say(word);
    }

    /// A node says something to the one that has the logs.
    pub(super) fn say_far(&self, word: ToHost) {
        self.to_host.lock().say(word);
    }

    /// Nobody is at the end any more that has the logs: it hears nothing, not even of the cut.
    pub(super) fn end_far(&self) {
        let mut way = self.to_host.lock();
        way.queue.clear();
        way.late.clear();
        way.is_known = false;
    }

    /// Whether the end that asks has been told of its cut.
    pub(super) fn is_over_near(&self) -> bool {
        self.from_host.lock().is_over()
    }

    /// Whether the end that has the logs has been told of its cut.
    pub(super) fn is_over_far(&self) -> bool {
        self.to_host.lock().is_over()
    }

    /// Nothing is slow or lost from now on, nor does anything come late.
    pub(super) fn calm(&self, settings: WireSettings) {
        let mut way = self.to_host.lock();
        way.settings = settings;
        way.late.clear();
        drop(way);
        let mut way = self.from_host.lock();
        way.settings = settings;
        way.late.clear();
    }

    /// Something has arrived at the end that asks.
    pub(super) fn has_due_near(&self) -> bool {
        self.from_host.lock().has_due()
    }

    /// Something has arrived at the end that has the logs.
    pub(super) fn has_due_far(&self) -> bool {
        self.to_host.lock().has_due()
    }
}

fn asks_clock(message: &ToHost) -> bool {
    matches!(
        message,
        ToHost::Call {
            call: Call::Clock { .. },
            ..
        }
    )
}

fn tells_clock(message: &FromHost) -> bool {
    matches!(
        message,
        FromHost::Told {
            completion: Completion::Clock { .. },
            ..
        }
    )
}
