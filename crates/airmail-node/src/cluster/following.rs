//! Following towers: a gateway whose logs several nodes have finds those that come, and spreads its logs over those that
//! live.
//!
//! The first tower is the one that the gateway has found by its settings. Others are members of the cluster whose cards say
//! that they have logs, and where links to them go: each is asked once what it has, and is taken if that is what the first
//! one has. Whoever is suspected stays in: whether its logs have to move is seen by their links at once, and who is to
//! have a log changes only when membership has confirmed it.
//!
//! A shard's storage takes news from its [`TowerDesk`] when it is polled, and leaves there whom it uses no more. A tower may
//! live again when it has just been left: whoever lives is given to each storage that lacks it, at every look.

use super::dialing::Remote;
use super::tower_desk::TowerDesk;
use super::view::{ClusterView, Seen};
use crate::logging_rate_limit::LoggingRateLimit;
use crate::metrics::Metrics;
use airmail_link::{LinkLimits, TowerName};
use airmail_membership::{Member, Standing};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// Time between two looks at the members.
const LOOK: Duration = Duration::from_millis(100);
/// Time between two questions to one that could not be taken.
const ASK_AGAIN: Duration = Duration::from_secs(1);

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
            self.meet(&seen).await;
            self.spread(&seen);
            self.part();
            tokio::select! {
                () = sleep(LOOK) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    /// Knows towers that have come, and new addresses of others.
    async fn meet(&mut self, seen: &Seen) {
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
                    self.known.insert(name, remote);
                }
                Err(why) => {
                    if let Some(times) = self.troubles.happened(Instant::now()) {
                        tracing::warn!(%name, why, times, "a tower is not used");
                    }
                    self.refused.insert(name, Instant::now());
                }
            }
        }
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

    /// Tells the storages which towers live, if that has changed, and gives them those that they lack.
    fn spread(&mut self, seen: &Seen) {
        let is_in = |name: &TowerName| {
            let mut members = seen.members.iter();
            let member = members.find(|member| member.id.name == name.as_str());
            match member {
                Some(member) => is_tower(member) && !is_going(member),
                // The first one is known before it is a member.
                None => name.as_str() == self.first.peer().name,
            }
        };
        let known = self.known.keys();
        let live: Vec<TowerName> = known.filter(|name| is_in(name)).cloned().collect();
        if live.is_empty() {
            return;
        }
        let is_news = live != self.live;
        self.live = live;
        for (from, desk) in (0..).zip(&self.desks) {
            let lacking = self.live.iter().filter(|name| !desk.has(name));
            let lacking = lacking.map(|name| {
                let (tower, dialers) = self.known[name].tower(from, desk.waker(), self.limits);
                (name.clone(), tower, dialers)
            });
            let lacking: Vec<_> = lacking.collect();
            if is_news || !lacking.is_empty() {
                desk.tell(lacking, &self.live);
            }
        }
    }

    /// Parts from towers that no storage uses any more.
    fn part(&mut self) {
        let is_rid = |name: &TowerName| self.desks.iter().all(|desk| !desk.has(name));
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
