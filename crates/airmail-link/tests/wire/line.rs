//! A line: a connection that delays messages, is cut at moments that a seed chooses, and is made again to
//! another host.
//!
//! At a cut the messages under way are lost; or, where the weather says so, some come late: after the new
//! connection has begun.

use airmail_link::{Event, FromHost, Port, ToHost};
use airmail_log::Call;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// Polls for which a line without a connection stays so, at most.
const DOWN_MAX: u64 = 6;

/// Behaviour of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weather {
    pub(crate) seed: u64,
    /// Polls that a message is under way, at most.
    pub(crate) delay: u64,
    /// Polls between two cuts, on average. 0: there are none.
    pub(crate) cuts: u64,
    /// Cuts to come, at most.
    pub(crate) cuts_max: u64,
    /// Messages under way at a cut may come late.
    pub(crate) is_late: bool,
    /// One in so many ranges of readers is lost. 0: none is.
    pub(crate) holes: u64,
    /// Messages under way in each direction, at most.
    pub(crate) room: usize,
}

impl Weather {
    /// Nothing is cut, and nothing is lost.
    pub(crate) fn calm(room: usize) -> Weather {
        Weather {
            seed: 1,
            delay: 2,
            cuts: 0,
            cuts_max: 0,
            is_late: false,
            holes: 0,
            room,
        }
    }
}

/// Messages of one direction, each with when it arrives.
type Way<M> = VecDeque<(u64, Event<M>)>;

struct State {
    weather: Weather,
    random: u64,
    time: u64,
    /// The host that the near end is connected to.
    host: Option<usize>,
    /// The one that it always comes to. `None`: any.
    only: Option<usize>,
    up_at: u64,
    /// Messages that said what is wanted.
    wants: usize,
    near: Way<FromHost>,
    far: [Way<ToHost>; 2],
    /// Messages of earlier connections that will come after all, among those of a later one.
    late_near: Vec<FromHost>,
    late_far: Vec<ToHost>,
}

/// A line. See the module's documentation.
#[derive(Clone)]
pub(crate) struct Line(Arc<Mutex<State>>);

/// The end of the line that asks.
pub(crate) struct Near(Arc<Mutex<State>>);

/// An end of the line at a host.
pub(crate) struct Far(Arc<Mutex<State>>, usize);

impl Line {
    /// A line to whichever host.
    pub(crate) fn new(weather: Weather) -> Line {
        Line::to(weather, None)
    }

    /// A line to one host alone, or to any.
    pub(crate) fn to(weather: Weather, only: Option<usize>) -> Line {
        Line(Arc::new(Mutex::new(State {
            weather,
            random: weather.seed,
            time: 0,
            host: None,
            only,
            up_at: 1,
            wants: 0,
            near: Way::new(),
            far: [Way::new(), Way::new()],
            late_near: Vec::new(),
            late_far: Vec::new(),
        })))
    }

    pub(crate) fn near(&self) -> Near {
        Near(Arc::clone(&self.0))
    }

    pub(crate) fn far(&self, place: usize) -> Far {
        Far(Arc::clone(&self.0), place)
    }

    /// Lets a poll's time pass, in which the line may be cut, or be made again.
    pub(crate) fn pass_time(&self, may_cut: bool) {
        let mut state = self.0.lock();
        state.time += 1;
        let cuts = state.weather.cuts;
        match state.host {
            None if state.up_at <= state.time => state.up(),
            Some(host) if may_cut && cuts > 0 && state.weather.cuts_max > 0 => {
                let is_now = state.below(cuts) == 0;
                if is_now {
                    state.weather.cuts_max -= 1;
                    state.cut(host);
                }
            }
            _ => {}
        }
    }

    /// Whether something is under way.
    pub(crate) fn is_busy(&self) -> bool {
        let state = self.0.lock();
        state.host.is_none()
            || !state.near.is_empty()
            || state.far.iter().any(|way| !way.is_empty())
    }

    /// Cuts it now.
    pub(crate) fn cut(&self) {
        let mut state = self.0.lock();
        if let Some(host) = state.host {
            state.cut(host);
        }
    }

    /// Number of messages that said what is wanted.
    pub(crate) fn wants(&self) -> usize {
        self.0.lock().wants
    }

    /// No cut comes any more.
    pub(crate) fn calm(&self) {
        self.0.lock().weather.cuts_max = 0;
    }
}

impl State {
    /// A number below `bound`, at random.
    fn below(&mut self, bound: u64) -> u64 {
        below(&mut self.random, bound)
    }

    fn arrival(&mut self) -> u64 {
        let delay = self.weather.delay;
        self.time + self.below(delay + 1)
    }

    fn up(&mut self) {
        let any = self.below(2) as usize;
        let host = self.only.unwrap_or(any);
        self.host = Some(host);
        let time = self.time;
        self.near.push_back((time, Event::Up));
        self.far[host].push_back((time, Event::Up));
    }

    fn cut(&mut self, host: usize) {
        self.host = None;
        self.up_at = self.time + self.below(DOWN_MAX);
        let (near, far) = (
            take_messages(&mut self.near),
            take_messages(&mut self.far[host]),
        );
        if self.weather.is_late {
            let from = self.below(near.len() as u64 + 1) as usize;
            self.late_near.extend(near.into_iter().skip(from));
            let from = self.below(far.len() as u64 + 1) as usize;
            self.late_far.extend(far.into_iter().skip(from));
        }
        let time = self.time;
        self.near.push_back((time, Event::Cut));
        self.far[host].push_back((time, Event::Cut));
    }
}

/// A number below `bound`, at random, by the generator SplitMix64.
pub(crate) fn below(random: &mut u64, bound: u64) -> u64 {
    *random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *random;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) % bound
}

/// Takes the messages under way, and leaves what was told of the connection.
fn take_messages<M>(way: &mut Way<M>) -> Vec<M> {
    let mut messages = Vec::new();
    for (at, event) in std::mem::take(way) {
        match event {
            Event::Message(message) => messages.push(message),
            Event::Up => way.push_back((at, Event::Up)),
            Event::Cut => way.push_back((at, Event::Cut)),
        }
    }
    messages
}

/// Sends a message, in order behind those under way.
fn send<M>(way: &mut Way<M>, arrival: u64, message: M) {
    let last = way.back().map_or(0, |(at, _)| *at);
    way.push_back((arrival.max(last), Event::Message(message)));
}

/// The next event that has arrived.
fn receive<M>(way: &mut Way<M>, time: u64) -> Option<Event<M>> {
    let is_due = way.front().is_some_and(|(at, _)| *at <= time);
    is_due
        .then(|| way.pop_front())
        .flatten()
        .map(|(_, event)| event)
}

impl Port for Near {
    type Out = ToHost;
    type In = FromHost;

    fn send(&mut self, message: ToHost) -> Result<(), ToHost> {
        let mut state = self.0.lock();
        let Some(host) = state.host else {
            return Err(message);
        };
        if state.far[host].len() >= state.weather.room {
            return Err(message);
        }
        let is_want =
            matches!(&message, ToHost::Call { call, .. } if matches!(call, Call::Want { .. }));
        state.wants += usize::from(is_want);
        let arrival = state.arrival();
        send(&mut state.far[host], arrival, message);
        if !state.late_far.is_empty() && state.below(2) == 0 {
            let late = state.late_far.remove(0);
            send(&mut state.far[host], arrival, late);
        }
        Ok(())
    }

    fn receive(&mut self) -> Option<Event<FromHost>> {
        let mut state = self.0.lock();
        let time = state.time;
        receive(&mut state.near, time)
    }

    fn flush(&mut self) {}
}

impl Port for Far {
    type Out = FromHost;
    type In = ToHost;

    fn send(&mut self, message: FromHost) -> Result<(), FromHost> {
        let mut state = self.0.lock();
        if state.host != Some(self.1) || state.near.len() >= state.weather.room {
            return Err(message);
        }
        let holes = state.weather.holes;
        if holes > 0 && matches!(message, FromHost::Range { .. }) && state.below(holes) == 0 {
            return Ok(());
        }
        let arrival = state.arrival();
        send(&mut state.near, arrival, message);
        if !state.late_near.is_empty() && state.below(2) == 0 {
            let late = state.late_near.remove(0);
            send(&mut state.near, arrival, late);
        }
        Ok(())
    }

    fn receive(&mut self) -> Option<Event<ToHost>> {
        let mut state = self.0.lock();
        let time = state.time;
        receive(&mut state.far[self.1], time)
    }

    fn flush(&mut self) {}
}
