//! A link under test: a near end whose connection is slow, is cut, and comes back at another host.
//!
//! ```text
//! LinkStorage ── Line ──▶ HostedStorage over a LinkStorage ──┐
//!                └──────▶ HostedStorage over a LinkStorage ──┴▶ HostedStorage over the storage
//! ```
//!
//! Both hosts in the middle have their logs from the one behind them, so the near end finds the same logs
//! whichever it comes to. Without hosts in the middle the near end is joined to the storage's host directly.

#![allow(dead_code, reason = "each test file uses some of it")]

pub(crate) mod flaky;
pub(crate) mod line;
pub(crate) mod tree;

use airmail_link::{
    FromHost, HostedStorage, LinkLimits, LinkStorage, LogHomes, Port, ToHost, Tower, TowerLimits,
    TowerName, TowersStorage, ring,
};
use airmail_log::{Call, Capabilities, ClockState, Completion, LogStorage, Trouble, Waker};
use airmail_model::{LogId, Mono, Now};
use line::{Line, Weather};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Polls after which towers are asked again where logs end.
const POLLS_OF_PATIENCE: u64 = 30;

type NearPort = Box<dyn Port<Out = ToHost, In = FromHost>>;

/// A near end: one link, or one to each of two towers.
pub(crate) enum Near {
    Link(LinkStorage<NearPort>),
    Towers(TowersStorage<NearPort>),
}

impl Near {
    fn storage(&self) -> &dyn LogStorage {
        match self {
            Near::Link(link) => link,
            Near::Towers(towers) => towers,
        }
    }

    fn storage_mut(&mut self) -> &mut dyn LogStorage {
        match self {
            Near::Link(link) => link,
            Near::Towers(towers) => towers,
        }
    }

    fn unanswered_appends(&self) -> usize {
        match self {
            Near::Link(link) => link.unanswered_appends(),
            Near::Towers(towers) => towers.unanswered_appends(),
        }
    }
}

/// The near end, and everything behind it, as one storage.
pub(crate) struct Linked<S: LogStorage> {
    pub(crate) near: Near,
    middle: Vec<HostedStorage<LinkStorage<NearPort>>>,
    root: HostedStorage<S>,
    /// None: a ring, which is never cut.
    lines: Vec<Line>,
    /// Cuts wait until no append is under way.
    spares_appends: bool,
    /// A host in the middle that does nothing.
    pub(crate) still: Option<usize>,
    woken: Arc<AtomicBool>,
}

impl<S: LogStorage> Linked<S> {
    /// A near end that is joined to the storage's host by a ring.
    pub(crate) fn by_ring(storage: S, limits: LinkLimits) -> Linked<S> {
        let woken = Arc::default();
        let mut root = HostedStorage::new(storage, limits);
        let near = joined(&mut root, limits, &woken);
        Linked {
            near: Near::Link(near),
            middle: Vec::new(),
            root,
            lines: Vec::new(),
            spares_appends: false,
            still: None,
            woken,
        }
    }

    /// A near end that comes to one of two hosts by a line.
    pub(crate) fn by_line(
        storage: S,
        limits: LinkLimits,
        weather: Weather,
        spares_appends: bool,
    ) -> Linked<S> {
        let woken = Arc::default();
        let mut root = HostedStorage::new(storage, limits);
        let line = Line::new(weather);
        let near: NearPort = Box::new(line.near());
        let near = LinkStorage::new(near, root.capabilities(), limits);
        let middle = (0..2).map(|place| {
            let mut host = HostedStorage::new(joined(&mut root, limits, &woken), limits);
            host.add_port(Box::new(line.far(place)));
            host
        });
        Linked {
            near: Near::Link(near),
            middle: middle.collect(),
            root,
            lines: vec![line],
            spares_appends,
            still: None,
            woken,
        }
    }

    /// A near end with a line to each of two towers, which both have their logs from the storage.
    pub(crate) fn by_towers(
        storage: S,
        limits: LinkLimits,
        weather: Weather,
        spares_appends: bool,
    ) -> Linked<S> {
        let takeovers = TowerLimits::default().takeover_logs;
        Linked::by_paced_towers(storage, limits, weather, spares_appends, takeovers)
    }

    /// The same, where only so many takeovers are under way at a time.
    pub(crate) fn by_paced_towers(
        storage: S,
        limits: LinkLimits,
        weather: Weather,
        spares_appends: bool,
        takeover_logs: usize,
    ) -> Linked<S> {
        let woken = Arc::default();
        let mut root = HostedStorage::new(storage, limits);
        let (mut towers, mut middle, mut lines) = (Vec::new(), Vec::new(), Vec::new());
        for place in 0..2 {
            let seed = weather.seed ^ place as u64;
            let line = Line::to(Weather { seed, ..weather }, Some(place));
            let near: NearPort = Box::new(line.near());
            let link = LinkStorage::new(near, root.capabilities(), limits);
            let mut host = HostedStorage::new(joined(&mut root, limits, &woken), limits);
            host.add_port(Box::new(line.far(place)));
            let homes = Arc::new(LogHomes::new(1));
            let name = TowerName::new(&format!("tower-{place}"));
            towers.push((name, Tower::new(homes, vec![link])));
            middle.push(host);
            lines.push(line);
        }
        let names: Vec<TowerName> = towers.iter().map(|(name, _)| name.clone()).collect();
        let mut towers = towers.into_iter();
        let (name, first) = towers.next().unwrap();
        let soon = Duration::from_nanos(1_000 * POLLS_OF_PATIENCE);
        let tower_limits = TowerLimits {
            uptake_logs_per_s: 1_000_000,
            // Where no append may be sent twice, only a cut makes a log move.
            stale_after: soon * if spares_appends { 100_000 } else { 4 },
            rest: soon * 8,
            ask_every: soon,
            takeover_logs,
            ..TowerLimits::default()
        };
        let mut near = TowersStorage::new(root.capabilities(), tower_limits, name, first);
        towers.for_each(|(name, tower)| near.add_tower(name, tower));
        near.set_live(&names);
        Linked {
            near: Near::Towers(near),
            middle,
            root,
            lines,
            spares_appends,
            still: None,
            woken,
        }
    }

    /// Cuts the line to a tower.
    pub(crate) fn cut(&self, place: usize) {
        self.lines[place].cut();
    }

    /// Number of messages by which a tower was told what is wanted.
    pub(crate) fn wants(&self, place: usize) -> usize {
        self.lines[place].wants()
    }

    /// Place of the tower at which a log is used.
    pub(crate) fn active(&self, log: LogId) -> usize {
        let Near::Towers(towers) = &self.near else {
            panic!("one link");
        };
        let name = towers.active(log).unwrap().to_string();
        name.trim_start_matches("tower-").parse().unwrap()
    }

    /// Whether no tower has a log.
    pub(crate) fn is_unplaced(&self, log: LogId) -> bool {
        match &self.near {
            Near::Link(_) => true,
            Near::Towers(towers) => towers.active(log).is_none(),
        }
    }

    /// No line is cut any more.
    pub(crate) fn calm(&self) {
        self.lines.iter().for_each(Line::calm);
    }

    /// Number of logs that have moved from one tower to another.
    pub(crate) fn moved(&self) -> u64 {
        match &self.near {
            Near::Link(_) => 0,
            Near::Towers(towers) => towers.moved(),
        }
    }

    /// Polls once, a moment later: what came, and whether nothing more comes by itself.
    pub(crate) fn turn(&mut self, now: &mut Now) -> (Vec<Completion>, bool) {
        now.mono.0 += 1_000;
        now.wall.0 += 1;
        let mut out = Vec::new();
        let deadline = self.poll(*now, &mut out);
        let is_quiet = out.is_empty() && deadline.is_none_or(|at| at > now.mono);
        (out, is_quiet)
    }

    /// Ends everything but the storage.
    pub(crate) fn into_storage(self) -> S {
        self.root.into_storage()
    }
}

/// A near end of `host`, joined to it by a ring.
fn joined<S: LogStorage>(
    host: &mut HostedStorage<S>,
    limits: LinkLimits,
    woken: &Arc<AtomicBool>,
) -> LinkStorage<NearPort> {
    let flag = Arc::clone(woken);
    let waker: Waker = Arc::new(move || flag.store(true, Ordering::Relaxed));
    let (ours, theirs) = ring(limits.ring_slots, Arc::clone(&waker), waker);
    host.add_port(Box::new(theirs));
    let ours: NearPort = Box::new(ours);
    LinkStorage::new(ours, host.capabilities(), limits)
}

impl<S: LogStorage> LogStorage for Linked<S> {
    fn capabilities(&self) -> Capabilities {
        self.near.storage().capabilities()
    }

    fn submit(&mut self, call: Call) {
        self.near.storage_mut().submit(call);
    }

    fn poll(&mut self, now: Now, out: &mut Vec<Completion>) -> Option<Mono> {
        for line in &self.lines {
            let may_cut = !self.spares_appends || self.near.unanswered_appends() == 0;
            line.pass_time(may_cut);
        }
        let mut deadlines = vec![self.near.storage_mut().poll(now, out)];
        for (place, host) in self.middle.iter_mut().enumerate() {
            if self.still != Some(place) {
                deadlines.push(host.poll(now, &mut Vec::new()));
            }
        }
        deadlines.push(self.root.poll(now, &mut Vec::new()));
        let is_under_way = self.lines.iter().any(Line::is_busy);
        if self.woken.swap(false, Ordering::Relaxed) || is_under_way {
            return Some(now.mono);
        }
        deadlines.into_iter().flatten().min()
    }

    fn opened(&mut self) {
        self.root.opened();
    }

    fn close(&mut self, now: Now) {
        self.near.storage_mut().close(now);
    }

    fn is_closed(&self) -> bool {
        self.near.storage().is_closed()
    }

    fn trouble(&self) -> Option<Trouble> {
        self.near.storage().trouble()
    }

    fn damage(&self) -> u64 {
        self.near.storage().damage()
    }

    fn read_bytes(&self) -> u64 {
        self.near.storage().read_bytes()
    }

    fn clock(&self) -> ClockState {
        self.root.clock()
    }

    fn accept_clock(&mut self, now: Now) {
        self.root.accept_clock(now);
    }
}
