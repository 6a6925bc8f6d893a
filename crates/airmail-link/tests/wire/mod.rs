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

use airmail_link::{FromHost, HostedStorage, LinkLimits, LinkStorage, Port, ToHost, ring};
use airmail_log::{Call, Capabilities, ClockState, Completion, LogStorage, Trouble, Waker};
use airmail_model::{Mono, Now};
use line::{Line, Weather};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

type NearPort = Box<dyn Port<Out = ToHost, In = FromHost>>;

/// The near end, and everything behind it, as one storage.
pub(crate) struct Linked<S: LogStorage> {
    pub(crate) near: LinkStorage<NearPort>,
    middle: Vec<HostedStorage<LinkStorage<NearPort>>>,
    root: HostedStorage<S>,
    /// `None`: a ring, which is never cut.
    pub(crate) line: Option<Line>,
    /// Cuts wait until no append is under way.
    spares_appends: bool,
    woken: Arc<AtomicBool>,
}

impl<S: LogStorage> Linked<S> {
    /// A near end that is joined to the storage's host by a ring.
    pub(crate) fn by_ring(storage: S, limits: LinkLimits) -> Linked<S> {
        let woken = Arc::default();
        let mut root = HostedStorage::new(storage, limits);
        let near = joined(&mut root, limits, &woken);
        Linked {
            near,
            middle: Vec::new(),
            root,
            line: None,
            spares_appends: false,
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
            near,
            middle: middle.collect(),
            root,
            line: Some(line),
            spares_appends,
            woken,
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
        self.near.capabilities()
    }

    fn submit(&mut self, call: Call) {
        self.near.submit(call);
    }

    fn poll(&mut self, now: Now, out: &mut Vec<Completion>) -> Option<Mono> {
        if let Some(line) = &self.line {
            let may_cut = !self.spares_appends || self.near.unanswered_appends() == 0;
            line.pass_time(may_cut);
        }
        let mut deadlines = vec![self.near.poll(now, out)];
        for host in &mut self.middle {
            deadlines.push(host.poll(now, &mut Vec::new()));
        }
        deadlines.push(self.root.poll(now, &mut Vec::new()));
        let is_under_way = self.line.as_ref().is_some_and(Line::is_busy);
        if self.woken.swap(false, Ordering::Relaxed) || is_under_way {
            return Some(now.mono);
        }
        deadlines.into_iter().flatten().min()
    }

    fn opened(&mut self) {
        self.root.opened();
    }

    fn close(&mut self, now: Now) {
        self.near.close(now);
    }

    fn is_closed(&self) -> bool {
        self.near.is_closed()
    }

    fn trouble(&self) -> Option<Trouble> {
        self.near.trouble()
    }

    fn damage(&self) -> u64 {
        self.near.damage()
    }

    fn clock(&self) -> ClockState {
        self.root.clock()
    }

    fn accept_clock(&mut self, now: Now) {
        self.root.accept_clock(now);
    }
}
