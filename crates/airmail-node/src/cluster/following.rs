//! Following towers: a gateway whose logs several nodes have finds those that come, and spreads its logs over those that
//! live.
//!
//! The first tower is the one that the gateway has found by its settings. Others are members of the cluster whose cards say
//! that they have logs, and where links to them go: each is asked once what it has, and is taken if that is what the first
//! one has. Whoever is suspected stays in: whether its logs have to move is seen by their links at once, and who is to
//! have a log changes only when membership has confirmed it.
//!
//! A shard's storage takes news from its [`TowerDesk`] when it is polled, and leaves there whom it uses no more.

use super::dialing::{Dialer, Remote};
use super::view::{ClusterView, Seen};
use crate::logging_rate_limit::LoggingRateLimit;
use crate::metrics::Metrics;
use airmail_link::{FromHost, LinkLimits, ToHost, Tower, TowerName};
use airmail_log::Waker;
use airmail_membership::{Member, Standing};
use airmail_wire::WirePort;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// Time between two looks at the members.
const LOOK: Duration = Duration::from_millis(100);
/// Time between two questions to one that could not be taken.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// A tower of a shard's storage.
pub(crate) type WireTower = Tower<WirePort<ToHost, FromHost>>;

/// News of towers for a shard's storage, and what that storage leaves for whoever brings them.
pub(crate) struct TowerDesk {
    news: Mutex<TowerNews>,
    waker: Waker,
    /// Where the shard's links are kept, and until when.
    home: OnceLock<(Handle, CancellationToken)>,
}

/// News that were not taken yet.
#[derive(Default)]
pub(crate) struct TowerNews {
    /// Towers that have come.
    pub(crate) added: Vec<(TowerName, WireTower)>,
    /// Towers that live, if that has changed.
    pub(crate) live: Option<Vec<TowerName>>,
    /// Towers that the storage uses no more.
    unused: BTreeSet<TowerName>,
}

impl TowerDesk {
    pub(crate) fn new(waker: Waker) -> TowerDesk {
        TowerDesk {
            news: Mutex::default(),
            waker,
            home: OnceLock::new(),
        }
    }

    /// Has links of towers that come kept on the runtime that this is called in, until `stop`.
    pub(crate) fn begin(&self, stop: &CancellationToken) {
        // A shard begins once.
        let _ = self.home.set((Handle::current(), stop.clone()));
    }

    /// News for the storage.
    pub(crate) fn take(&self) -> TowerNews {
        let mut news = self.news.lock();
        TowerNews {
            added: std::mem::take(&mut news.added),
            live: news.live.take(),
            unused: BTreeSet::new(),
        }
    }

    /// The storage uses these no more.
    pub(crate) fn leave(&self, unused: Vec<TowerName>) {
        self.news.lock().unused.extend(unused);
    }

    /// Whether the storage is rid of a tower; it is not told twice.
    fn is_rid_of(&self, name: &TowerName) -> bool {
        self.news.lock().unused.contains(name)
    }

    /// Tells of towers that have come, and of those that live, at once: one that does not live is not kept.
    fn tell(&self, added: Vec<(TowerName, WireTower)>, live: &[TowerName]) {
        let mut news = self.news.lock();
        for (name, _) in &added {
            news.unused.remove(name);
        }
        news.added.extend(added);
        news.live = Some(live.to_vec());
        drop(news);
        (self.waker)();
    }

    fn keep(&self, dialers: Vec<Dialer>) {
        let Some((home, stop)) = self.home.get() else {
            // Input: a shard that has not begun. Nobody follows before all have.
            return;
        };
        for dialer in dialers {
            home.spawn(dialer.keep(stop.clone()));
        }
    }
}

/// One who follows the towers of a gateway. See the module's documentation.
pub(crate) struct TowerFollower {
    first: Remote,
    desks: Vec<Arc<TowerDesk>>,
    limits: LinkLimits,
    metrics: Arc<Metrics>,
    known: BTreeMap<TowerName, Remote>,
    /// Those that could not be taken, and when.
    refused: BTreeMap<TowerName, Instant>,
    live: Vec<TowerName>,
    troubles: LoggingRateLimit,
}

impl TowerFollower {
    /// Follows for the shards of these desks, whose storages have the first tower already.
    pub(crate) fn new(
        first: Remote,
        desks: Vec<Arc<TowerDesk>>,
        limits: LinkLimits,
        metrics: &Arc<Metrics>,
    ) -> TowerFollower {
        let name = TowerName::new(&first.peer().name);
        TowerFollower {
            known: BTreeMap::from([(name.clone(), first.clone())]),
            first,
            desks,
            limits,
            metrics: Arc::clone(metrics),
            refused: BTreeMap::new(),
            live: vec![name],
            troubles: LoggingRateLimit::default(),
        }
    }

    /// Follows until `stop`.
    pub(crate) async fn run(mut self, view: ClusterView, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let seen = view.seen();
            let come = self.meet(&seen).await;
            self.spread(&seen, come);
            self.part();
            tokio::select! {
                () = sleep(LOOK) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    /// Towers that have come. Takes new addresses of others.
    async fn meet(&mut self, seen: &Seen) -> Vec<(TowerName, Remote)> {
        let mut come = Vec::new();
        let members = seen.members.iter();
        for member in members.filter(|member| is_tower(member) && !is_going(member)) {
            let Some(card) = &member.card else {
                // Input: a member without a card is no tower yet.
                continue;
            };
            let name = TowerName::new(&card.name);
            if let Some(known) = self.known.get(&name) {
                known.moved(&card.ways.link_address);
                continue;
            }
            let asked = self.refused.get(&name);
            if asked.is_some_and(|asked| asked.elapsed() < ASK_AGAIN) {
                continue;
            }
            match self.ask(&card.ways.link_address).await {
                Ok(remote) => {
                    tracing::info!(%name, "a further tower has come");
                    self.refused.remove(&name);
                    come.push((name, remote));
                }
                Err(why) => {
                    if let Some(times) = self.troubles.happened(Instant::now()) {
                        tracing::warn!(%name, why, times, "a tower is not used");
                    }
                    self.refused.insert(name, Instant::now());
                }
            }
        }
        come
    }

    async fn ask(&self, address: &str) -> Result<Remote, String> {
        let identity = self.first.identity().clone();
        let remote = Remote::ask(address, &identity, &self.metrics).await;
        let remote = remote.map_err(|end| end.to_string())?;
        if remote.peer().cluster != self.first.peer().cluster {
            return Err("it is of another cluster".to_owned());
        }
        let (offer, first) = (remote.offer(), self.first.offer());
        if offer.capabilities != first.capabilities || offer.storages != first.storages {
            return Err("it has other storages than the first tower".to_owned());
        }
        Ok(remote)
    }

    /// Tells the storages which towers live, if that has changed, and of those that have come.
    fn spread(&mut self, seen: &Seen, come: Vec<(TowerName, Remote)>) {
        self.known.extend(come.iter().cloned());
        let is_in = |name: &TowerName| {
            let mut members = seen.members.iter();
            let member = members.find(|member| member.id.name == name.as_str());
            match member {
                Some(member) => is_tower(member) && !is_going(member),
                // The first one is known before it is a member.
                None => name.as_str() == self.first.peer().name,
            }
        };
        let live: Vec<TowerName> = self
            .known
            .keys()
            .filter(|name| is_in(name))
            .cloned()
            .collect();
        if live.is_empty() || live == self.live {
            return;
        }
        self.live = live;
        for (from, desk) in (0..).zip(&self.desks) {
            let mut added = Vec::new();
            for (name, remote) in &come {
                let (tower, dialers) = remote.tower(from, &desk.waker, self.limits);
                added.push((name.clone(), tower));
                desk.keep(dialers);
            }
            desk.tell(added, &self.live);
        }
    }

    /// Parts from towers that no storage uses any more.
    fn part(&mut self) {
        let is_rid = |name: &TowerName| self.desks.iter().all(|desk| desk.is_rid_of(name));
        let gone = self
            .known
            .keys()
            .filter(|name| !self.live.contains(name) && is_rid(name));
        let gone: Vec<TowerName> = gone.cloned().collect();
        for name in gone {
            if let Some(remote) = self.known.remove(&name) {
                tracing::info!(%name, "a tower is gone");
                remote.leave();
            }
        }
    }
}

/// Whether a member has logs, and lives as far as is known.
fn is_tower(member: &Member) -> bool {
    let is_there = matches!(member.standing, Standing::Live | Standing::Suspect);
    let card = member.card.as_ref();
    is_there && card.is_some_and(|card| card.tower && !card.ways.link_address.is_empty())
}

/// Whether a member has said that it goes.
fn is_going(member: &Member) -> bool {
    let card = member.card.as_ref();
    card.is_some_and(|card| card.draining || card.leaving)
}
