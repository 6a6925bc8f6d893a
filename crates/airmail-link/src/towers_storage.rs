//! The storage of a gateway whose logs are served by several towers.
//!
//! Each log has a few towers, by rank among those that live ([`towers_of`]). One is *active*: everything is asked of
//! it. The others are standbys: the log is open there, and they know what is wanted of its readers
//! (`link_storage/muted.rs`), but give nothing. When the active one fails, the log moves to a standby with all that
//! has no answer (`link_storage/handover.rs`): one message for each reader, and whoever owns this storage notices
//! nothing but a pause.
//!
//! What makes a log move:
//!
//! - its active tower cannot use it: the link is cut, or the tower has lost it. It moves at once;
//! - its active tower is stale, by what its standbys say of the log's end (`tails.rs`);
//! - another tower is to have it, since the towers that live have changed. It moves when that one knows everything,
//!   and when no append is under way.
//!
//! Two gateways may use a log at two towers, and a tower that was left may go on for a while: the storage behind the
//! towers decides what is stored, and ranges of numbers decide what a reader is given, so neither matters.
//!
//! Takeovers are paced: those that are farthest behind come first, so many at a time. Towers that are new to a log
//! are taken up at so many logs a second, and told what is wanted of as many readers: each has a pace of its own, so
//! that a tower without room for what is wanted keeps none from being there for a log.
//!
//! Invariants: a log has one active tower, and what is asked of it is at that tower's link, or waits for its move; the
//! owner is told that a log is lost exactly while none of its towers can use it.

mod hearing;
mod limits;
mod pace;
mod place;
mod settling;
mod tails;
mod takeovers;
mod tower;
mod wanted;
mod watching;

use crate::link_storage::LinkStorage;
use crate::message::{FromHost, ToHost};
use crate::port::Port;
use crate::tower_ranks::{TowerName, towers_of};
use airmail_log::{
    Call, Capabilities, ClockState, Completion, LogStorage, ReaderId, ScopeFilter, Tag, Trouble,
    WantEdit,
};
use airmail_model::{LogId, Mono, Now, Sequence, bug};
pub use limits::TowerLimits;
use pace::Paces;
use place::LogPlace;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::time::Duration;
use tails::Tails;
use takeovers::Takeovers;
pub use tower::Tower;
use wanted::WantedReaders;

/// Interval at which logs whose towers are not as they should be are looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// A call of the owner that has no answer, and is no append.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Open(LogId),
    Delete(LogId),
    /// Provisions, before its namespace is there.
    Provisions(LogId),
    Other(LogId),
}

impl Asked {
    const fn log(self) -> LogId {
        match self {
            Asked::Open(log) | Asked::Delete(log) | Asked::Provisions(log) | Asked::Other(log) => {
                log
            }
        }
    }
}

/// Logs of several towers. See the module's documentation.
pub struct TowersStorage<P> {
    capabilities: Capabilities,
    limits: TowerLimits,
    towers: BTreeMap<TowerName, Tower<P>>,
    /// Towers that logs are spread over.
    live: Vec<TowerName>,
    logs: BTreeMap<LogId, LogPlace>,
    readers: BTreeMap<ReaderId, LogId>,
    wanted: WantedReaders,
    asked: BTreeMap<Tag, Asked>,
    tails: Tails,
    takeovers: Takeovers,
    paces: Paces,
    /// Logs whose towers may not be as they should be.
    unsettled: BTreeSet<LogId>,
    is_closing: bool,
    told: VecDeque<Completion>,
    now: Mono,
}

impl<P> fmt::Debug for TowersStorage<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TowersStorage")
            .field("live", &self.live)
            .field("logs", &self.logs)
            .field("unsettled", &self.unsettled)
            .finish_non_exhaustive()
    }
}

impl<P: Port<Out = ToHost, In = FromHost>> TowersStorage<P> {
    /// The storage of towers that all have the same logs, with these capabilities. It begins with one tower.
    ///
    /// # Panics
    /// If a log is to have no tower, or more than [`TowerLimits::TOWERS_PER_LOG_MAX`].
    pub fn new(
        capabilities: Capabilities,
        limits: TowerLimits,
        name: TowerName,
        tower: Tower<P>,
    ) -> TowersStorage<P> {
        let (towers, most) = (limits.towers_per_log, TowerLimits::TOWERS_PER_LOG_MAX);
        assert!((1..=most).contains(&towers), "towers of a log: {towers}");
        TowersStorage {
            capabilities,
            limits,
            live: vec![name.clone()],
            towers: BTreeMap::from([(name, tower)]),
            logs: BTreeMap::new(),
            readers: BTreeMap::new(),
            wanted: WantedReaders::default(),
            asked: BTreeMap::new(),
            tails: Tails::default(),
            takeovers: Takeovers::default(),
            paces: Paces::new(limits.uptake_logs_per_s),
            unsettled: BTreeSet::new(),
            is_closing: false,
            told: VecDeque::new(),
            now: Mono::default(),
        }
    }

    /// Takes a further tower; no log is spread over it before [`TowersStorage::set_live`] says so. One of a name that
    /// is there already is not taken.
    pub fn add_tower(&mut self, name: TowerName, tower: Tower<P>) {
        self.towers.entry(name).or_insert(tower);
    }

    /// Spreads logs over these towers: those of them that were added. If there are none, everything stays as it is.
    pub fn set_live(&mut self, names: &[TowerName]) {
        let known = names.iter().filter(|name| self.towers.contains_key(name));
        let live: Vec<TowerName> = known.cloned().collect();
        if !live.is_empty() && live != self.live {
            self.live = live;
            self.unsettled.extend(self.logs.keys());
        }
    }

    /// Towers whose logs have all moved away, and over which none is spread: they are used no more.
    pub fn take_unused(&mut self) -> Vec<TowerName> {
        let is_used = |name: &TowerName| {
            self.live.contains(name)
                || self
                    .logs
                    .values()
                    .any(|place| place.attached.contains(name))
        };
        let names = self.towers.keys();
        let unused: Vec<TowerName> = names.filter(|name| !is_used(name)).cloned().collect();
        for name in &unused {
            self.towers.remove(name);
        }
        unused
    }

    /// The active tower of a log, if anything was asked of it.
    #[must_use]
    pub fn active(&self, log: LogId) -> Option<&TowerName> {
        self.logs.get(&log).map(|place| &place.active)
    }

    /// Number of logs that have moved from one tower to another.
    #[must_use]
    pub fn moved(&self) -> u64 {
        self.takeovers.moved
    }

    /// Number of appends whose answer was not given.
    #[must_use]
    pub fn unanswered_appends(&self) -> usize {
        let links = self.towers.values().flat_map(|tower| &tower.links);
        let of_links: usize = links.map(LinkStorage::unanswered_appends).sum();
        let moving = self.logs.values().filter_map(|place| place.moving.as_ref());
        of_links + moving.map(|moving| moving.calls.len()).sum::<usize>()
    }

    /// The place of a log. One that is new is asked of the best of its towers that is connected.
    fn place(&mut self, log: LogId) -> &mut LogPlace {
        self.logs.entry(log).or_insert_with(|| {
            let ranked = towers_of(log, &self.live, self.live.len());
            let towers = &mut self.towers;
            let is_connected = |name: &&TowerName| {
                let tower = towers.get_mut(*name);
                tower.is_some_and(|tower| tower.link(log).is_connected())
            };
            let connected = ranked.iter().find(is_connected).cloned();
            let first = connected.or_else(|| ranked.first().cloned());
            // There always is a tower that lives.
            LogPlace::new(first.unwrap_or_else(|| TowerName::new("")))
        })
    }

    /// Takes note of a call of the owner.
    fn note(&mut self, t: Tag, asked: Asked) {
        self.asked.insert(t, asked);
        self.place(asked.log()).calls += 1;
    }

    /// Asks something of a log where that is used.
    fn ask(&mut self, log: LogId, call: Call) {
        let place = self.place(log);
        if let Some(moving) = place.moving.as_mut().filter(|_| call.tag().is_some()) {
            if let Call::Append { batch, .. } = &call {
                moving.bytes += batch.bytes().len() as u64;
            }
            moving.calls.push(call);
            return;
        }
        let (active, is_known) = (place.active.clone(), place.is_known);
        if !is_known {
            self.unsettled.insert(log);
        }
        self.ask_tower(log, &active, call);
    }

    fn ask_tower(&mut self, log: LogId, tower: &TowerName, call: Call) {
        let Some(tower) = self.towers.get_mut(tower) else {
            bug!("{log} is at {tower}, which is not there");
            return;
        };
        tower.link(log).submit(call);
    }

    /// Polls every link; when the first of them is to be polled again.
    fn poll_links(&mut self, now: Now) -> Option<Mono> {
        let mut deadline: Option<Mono> = None;
        let mut heard = Vec::new();
        for (name, tower) in &mut self.towers {
            let (mut told, mut news) = (Vec::new(), Vec::new());
            for link in &mut tower.links {
                let again = link.poll(now, &mut told);
                deadline = deadline.into_iter().chain(again).min();
                news.extend(link.take_muted_news());
            }
            if !told.is_empty() || !news.is_empty() {
                heard.push((name.clone(), told, news));
            }
        }
        for (name, told, news) in heard {
            for (r, news) in news {
                self.standby_told(&name, r, news);
            }
            for told in told {
                self.tower_told(&name, told);
            }
        }
        deadline
    }

    /// A reader of the owner begins, and with it the lists of it at standbys.
    fn reader_begins(&mut self, r: ReaderId, log: LogId, from: Sequence, filter: ScopeFilter) {
        self.readers.insert(r, log);
        let place = self.place(log);
        place.readers += 1;
        if filter != ScopeFilter::Wanted {
            return;
        }
        let standbys: Vec<TowerName> = place.standbys().cloned().collect();
        self.wanted.insert(r, log);
        for name in standbys {
            self.mute(r, log, from, &name);
        }
    }

    /// Passes on what is wanted of a reader to whoever keeps it beside the active tower; whether that is to hear of it.
    fn want(&mut self, r: ReaderId, edit: u32, topics: &WantEdit) -> bool {
        let Some(reader) = self.wanted.get_mut(r) else {
            // Input: a reader that gives everything, or has just ended.
            return true;
        };
        reader.edit(edit, topics.more);
        #[cfg(feature = "sabotage")]
        if self.limits.bug == Some(crate::sabotage::Bug::StandbyNotTold) {
            reader.all_effective();
            return !reader.is_forgotten;
        }
        for name in reader.standbys() {
            if let Some(tower) = self.towers.get_mut(name) {
                let topics = Box::new(topics.clone());
                tower.link(reader.log).want_muted(r, edit, topics);
            }
        }
        // One that has forgotten the rest would begin with this alone.
        !reader.is_forgotten
    }
}

impl<P: Port<Out = ToHost, In = FromHost>> LogStorage for TowersStorage<P> {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn submit(&mut self, call: Call) {
        match &call {
            Call::Open { t, log, .. } | Call::Renew { t, log } => {
                self.note(*t, Asked::Open(*log));
            }
            Call::Delete { t, log, .. } => self.note(*t, Asked::Delete(*log)),
            Call::Provision { t, log, .. } | Call::Withdraw { t, log, .. } => {
                self.note(*t, Asked::Provisions(*log));
            }
            Call::FindTime { t, log, .. }
            | Call::Bounds { t, log }
            | Call::Clock { t, log }
            | Call::Topics { t, log, .. }
            | Call::Trim { t, log, .. }
            | Call::Seal { t, log, .. }
            | Call::Heal { t, log, .. } => self.note(*t, Asked::Other(*log)),
            Call::Read {
                r,
                log,
                from,
                scope,
                ..
            } => self.reader_begins(*r, *log, *from, scope.filter),
            Call::Want { r, edit, topics } => {
                if !self.want(*r, *edit, topics) {
                    return;
                }
            }
            // Whoever has the storage does it.
            Call::Keep { t, .. } => return self.told.push_back(Completion::Done { t: *t }),
            Call::Append { .. } | Call::Credit { .. } | Call::Stop { .. } => {}
        }
        let reader = call.reader().and_then(|r| self.readers.get(&r)).copied();
        if let Some(log) = call.log().or(reader) {
            self.ask(log, call);
        }
    }

    fn poll(&mut self, now: Now, out: &mut Vec<Completion>) -> Option<Mono> {
        self.now = now.mono;
        let named = self.wanted.all_named();
        self.unsettled.extend(named);
        let of_links = self.poll_links(now);
        let mut again = None;
        if !self.is_closing {
            self.settle();
            self.take_over();
            self.finish_moves();
            again = self.watch_tails();
        }
        out.extend(self.told.drain(..));
        if std::mem::take(&mut self.takeovers.has_asked) {
            return Some(now.mono);
        }
        if !self.unsettled.is_empty() && !self.is_closing {
            let soon = now.mono.plus(LOOK_AGAIN);
            again = again.into_iter().chain([soon]).min();
        }
        of_links.into_iter().chain(again).min()
    }

    /// Does nothing: the towers' owners say it there.
    fn opened(&mut self) {}

    fn close(&mut self, now: Now) {
        self.is_closing = true;
        let moving: Vec<LogId> = self.takeovers.moving.iter().copied().collect();
        for log in moving {
            self.stay(log);
        }
        for tower in self.towers.values_mut() {
            for link in &mut tower.links {
                link.close(now);
            }
        }
    }

    fn is_closed(&self) -> bool {
        let mut links = self.towers.values().flat_map(|tower| &tower.links);
        links.all(LogStorage::is_closed) && self.told.is_empty()
    }

    /// Nothing: the towers' owners are told there.
    fn trouble(&self) -> Option<Trouble> {
        None
    }

    /// 0: the towers count what is damaged there.
    fn damage(&self) -> u64 {
        0
    }

    fn read_bytes(&self) -> u64 {
        0
    }

    /// The state of no clock: the towers' count.
    fn clock(&self) -> ClockState {
        ClockState::default()
    }

    /// Does nothing: towers have clocks of their own.
    fn accept_clock(&mut self, _: Now) {}
}
