//! Logs as the gateway knows them: whether each can be used, who is at its tail, and whose publishes have
//! not been answered. Where a log ends is not among that: it is asked of the tower.

use super::log_clock::LogClock;
use super::own_stamps::{self, OwnPlace};
use super::publish_order::PublishOrder;
use super::succession::Moving;
use super::tail_lane::TailLane;
use super::tail_subscriptions::{LaneOfTail, Tails};
use crate::keys::{BehindKey, LogKey, TailKey};
use airmail_log::{AppendClock, Capabilities, Dedup};
use airmail_model::{Holder, Incarnation, LogId, ProducerId, Sequence};
use std::collections::{BTreeMap, BTreeSet};

/// Whether a log can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogState {
    /// It can.
    Open,
    /// Its namespace is deleted, or retention has left nothing in it.
    Closed,
}

/// A log.
#[derive(Debug)]
pub(crate) struct GatewayLog {
    pub(crate) id: LogId,
    pub(crate) state: LogState,
    pub(crate) incarnation: Incarnation,
    /// Its live end.
    pub(crate) tail: TailLane,
    /// The tail that it has in common with the other lanes' logs of its index.
    pub(crate) at: TailKey,
    /// It has begun a new life since the gateway began: no position of this one can lie beyond its
    /// end but by mistake.
    pub(crate) renewed: bool,
    /// Subscriptions that wait for its new life, by ticket.
    pub(crate) renewing: Vec<(BehindKey, u64)>,
    pub(crate) publishes: PublishOrder,
    /// Place of the next batch that gets a stamp of the gateway's own.
    pub(crate) own: OwnPlace,
    /// The clock by which its messages expire.
    pub(crate) clock: LogClock,
    /// Where it ends for ever, if it is sealed and the tower has told so.
    pub(crate) ended: Option<Sequence>,
    /// Subscriptions that have come to its end, and wait for the log that goes on with their topic.
    pub(crate) waiting: BTreeSet<BehindKey>,
}

/// Every log that the tower has told of, but for those that are gone.
#[derive(Debug)]
pub(crate) struct GatewayLogs {
    /// Order in which their append times come.
    pub(crate) clock: AppendClock,
    /// Their storage recognises retries only when they are read: streams of producers are to have no holes.
    pub(crate) keeps_streams: bool,
    /// Their storage appends sole batches by another way than all else.
    pub(crate) appends_apart: bool,
    /// Logs of the first storage can be sealed, or have one writer: none goes back in a life that somebody accepts.
    pub(crate) never_goes_back: bool,
    /// The gateway's own producer, of publishes without one, where these need it.
    pub(crate) own_producer: Option<ProducerId>,
    logs: Vec<Option<Box<GatewayLog>>>,
    pub(super) tails: Tails,
    by_id: BTreeMap<LogId, LogKey>,
    /// Those of which more is wanted since the last step.
    pub(crate) wanting: BTreeSet<LogKey>,
    /// Namespaces some of whose earlier logs may still take publishes.
    pub(super) moving: Moving,
    /// Those with subscriptions that wait for a log after them.
    pub(crate) with_waiting: BTreeSet<LogKey>,
    /// Those that cannot be used because they are not here, as the tower has told.
    elsewhere: BTreeMap<LogId, Holder>,
}

impl GatewayLogs {
    /// No logs yet, of a storage that can do this. `seed` is that of the gateway's choices.
    pub(crate) fn new(capabilities: &Capabilities, seed: u64) -> GatewayLogs {
        GatewayLogs {
            clock: capabilities.clock,
            keeps_streams: capabilities.dedup == Dedup::AtRead,
            appends_apart: capabilities.appends_apart,
            never_goes_back: capabilities.seal || !capabilities.many_writers,
            own_producer: own_stamps::producer(capabilities, seed),
            logs: Vec::new(),
            tails: Tails::default(),
            by_id: BTreeMap::new(),
            wanting: BTreeSet::new(),
            moving: Moving::default(),
            with_waiting: BTreeSet::new(),
            elsewhere: BTreeMap::new(),
        }
    }

    /// Notes that a log is not here.
    pub(crate) fn set_elsewhere(&mut self, id: LogId, holder: Holder) {
        self.elsewhere.insert(id, holder);
    }

    /// Forgets that a log is not here.
    pub(crate) fn take_elsewhere(&mut self, id: LogId) {
        self.elsewhere.remove(&id);
    }

    /// Where a log is that is not here.
    pub(crate) fn elsewhere(&self, id: LogId) -> Option<Holder> {
        self.elsewhere.get(&id).copied()
    }

    /// Puts a log in that can be used.
    pub(crate) fn insert(&mut self, id: LogId, incarnation: Incarnation) -> LogKey {
        let key = LogKey::new(self.logs.len());
        let at = self.tails.put(id, key);
        self.logs.push(Some(Box::new(GatewayLog {
            id,
            state: LogState::Open,
            incarnation,
            tail: TailLane::default(),
            at,
            renewed: false,
            renewing: Vec::new(),
            publishes: PublishOrder::default(),
            own: OwnPlace::default(),
            clock: LogClock::default(),
            ended: None,
            waiting: BTreeSet::new(),
        })));
        self.by_id.insert(id, key);
        key
    }

    /// The key of a log.
    pub(crate) fn find(&self, id: LogId) -> Option<LogKey> {
        self.by_id.get(&id).copied()
    }

    /// Takes a log out; nobody is at its tail, and no publish waits for its answer.
    pub(crate) fn remove(&mut self, key: LogKey) -> Option<Box<GatewayLog>> {
        let log = self.logs.get_mut(key.place())?.take()?;
        self.by_id.remove(&log.id);
        self.tails.take(log.id, log.at);
        Some(log)
    }

    /// The lane of a tail that a log is, to find who is live on it.
    pub(super) fn lane(&self, key: LogKey) -> LaneOfTail<'_> {
        let log = &self[key];
        LaneOfTail {
            tail: &self.tails[log.at],
            lane: log.id.lane,
        }
    }

    /// A log, unless it is gone.
    pub(crate) fn get_mut(&mut self, key: LogKey) -> Option<&mut GatewayLog> {
        self.logs.get_mut(key.place())?.as_deref_mut()
    }

    /// Every log, in order of id.
    pub(crate) fn keys(&self) -> impl Iterator<Item = LogKey> + '_ {
        self.by_id.values().copied()
    }
}

impl std::ops::Index<LogKey> for GatewayLogs {
    type Output = GatewayLog;

    #[expect(
        clippy::expect_used,
        reason = "only keys of logs not yet removed are kept"
    )]
    fn index(&self, key: LogKey) -> &GatewayLog {
        self.logs[key.place()].as_deref().expect("the log exists")
    }
}

impl std::ops::IndexMut<LogKey> for GatewayLogs {
    #[expect(
        clippy::expect_used,
        reason = "only keys of logs not yet removed are kept"
    )]
    fn index_mut(&mut self, key: LogKey) -> &mut GatewayLog {
        self.logs[key.place()]
            .as_deref_mut()
            .expect("the log exists")
    }
}
