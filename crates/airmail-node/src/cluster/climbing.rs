//! Climbing: a node in a tree keeps a link from each of its shards to the parent that it has now.
//!
//! Which that is, its place says ([`Tree`]); the first shard's link says what becomes of it. A shard's link is to all
//! logs, so the parent may have other shards than the one before. Where that is not the first of the settings, it is asked
//! now and then whether one that comes before is there again.

use super::carrying::{Carrying, Words};
use super::credentials::Identity;
use super::dialing::{
    Dialed, NAME_PATIENCE, NotFound, PATIENCE, PAUSE_MAX, PAUSE_MIN, dial, is_of_name,
};
use super::link_end::LinkEnd;
use super::tree::Tree;
use crate::logging_rate_limit::LoggingRateLimit;
use crate::metrics::Metrics;
use airmail_link::{FromHost, ToHost};
use airmail_log::Waker;
use airmail_wire::WirePort;
use airmail_wire::handshake::{Asked, Between, HandshakeError, Node, Offer};
use airmail_wire::link_v1::refused::Why;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Time between two looks for a better parent.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// A parent that was found, and what it has.
#[derive(Debug)]
pub(crate) struct Parent {
    pub(crate) peer: Node,
    pub(crate) offer: Offer,
}

impl Parent {
    /// Asks the nodes at these addresses, and those that they name in their place, as often as it takes. A refusal that
    /// will not pass by itself ends it.
    pub(crate) async fn find(
        addresses: &[String],
        identity: &Identity,
        own_address: &str,
        metrics: &Arc<Metrics>,
    ) -> Result<Parent, NotFound> {
        let (begun, mut pause) = (Instant::now(), PAUSE_MIN);
        let mut troubles = LoggingRateLimit::default();
        loop {
            let mut to_try: VecDeque<String> = addresses.iter().cloned().collect();
            let mut attempts = 0;
            while let Some(address) = to_try.pop_front() {
                attempts += 1;
                let end = match dial(&address, identity, &asked(0, own_address)).await {
                    Ok(dialed) => {
                        let Dialed {
                            peer,
                            offer,
                            member,
                            ..
                        } = dialed;
                        if let Some(member) = member {
                            metrics.cluster.links.meet(member);
                        }
                        tracing::info!(address, name = peer.name, "found a parent");
                        return Ok(Parent { peer, offer });
                    }
                    Err(end) => end,
                };
                if let Some(instead) = instead(&end).filter(|_| attempts < 8 * addresses.len()) {
                    to_try.push_front(instead);
                } else if is_for_good(&end)
                    && !(is_of_name(&end) && begun.elapsed() < NAME_PATIENCE)
                {
                    return Err(NotFound { address, end });
                } else if let Some(times) = troubles.happened(Instant::now()) {
                    tracing::warn!(address, %end, times, "the parent cannot be reached yet");
                }
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}

/// A link of a shard to a parent.
fn asked(from: u16, own_address: &str) -> Asked {
    Asked {
        between: Between { from, to: 0 },
        child_address: Some(own_address.to_owned()),
    }
}

/// The node that one which takes no child names in its place.
fn instead(end: &LinkEnd) -> Option<String> {
    match end {
        LinkEnd::Handshake(HandshakeError::Refused(refusal)) if refusal.why == Why::Full => {
            refusal.instead.clone()
        }
        _ => None,
    }
}

/// Whether a refusal does not pass by itself.
fn is_for_good(end: &LinkEnd) -> bool {
    match end {
        LinkEnd::Handshake(HandshakeError::Refused(refusal)) => {
            !matches!(refusal.why, Why::Full | Why::Place | Why::Depth)
        }
        LinkEnd::Handshake(HandshakeError::Refusing(_)) => true,
        _ => false,
    }
}

/// One who keeps a shard's link to the parent. See the module's documentation.
#[derive(Debug)]
pub(crate) struct Climber {
    tree: Tree,
    identity: Identity,
    own_address: String,
    from: u16,
    carrying: Carrying<ToHost, FromHost>,
    words: Arc<Words<ToHost>>,
    /// Everything that the first parent had: another one has to have the same.
    offer: Arc<Offer>,
    metrics: Arc<Metrics>,
}

impl Climber {
    /// One for the shard `from`, which is woken by `waker`, and the port by which it has all logs.
    pub(crate) fn new(
        (tree, from, waker): (&Tree, u16, &Waker),
        (identity, own_address): (&Identity, &str),
        offer: &Arc<Offer>,
        metrics: &Arc<Metrics>,
    ) -> (WirePort<ToHost, FromHost>, Climber) {
        let (port, carrying) = Carrying::port(Arc::clone(waker));
        let climber = Climber {
            tree: tree.clone(),
            identity: identity.clone(),
            own_address: own_address.to_owned(),
            from,
            words: carrying.words(),
            carrying,
            offer: Arc::clone(offer),
            metrics: Arc::clone(metrics),
        };
        (port, climber)
    }

    /// Keeps the link until `stop`.
    pub(crate) async fn keep(self, stop: CancellationToken) {
        let mut parent = self.tree.parent();
        let mut troubles = LoggingRateLimit::default();
        let mut pause = PAUSE_MIN;
        while !stop.is_cancelled() {
            let Some(address) = parent.borrow_and_update().clone() else {
                tokio::select! {
                    _ = parent.changed() => continue,
                    () = stop.cancelled() => return,
                }
            };
            let (began, link_stop) = (Instant::now(), stop.child_token());
            let once = self.once(&address, &link_stop);
            tokio::pin!(once);
            let end = tokio::select! {
                end = &mut once => end,
                never = self.look_for_better() => match never {},
                _ = parent.changed() => {
                    link_stop.cancel();
                    once.await
                }
            };
            if stop.is_cancelled() {
                return;
            }
            if let Some(times) = troubles.happened(Instant::now()) {
                tracing::warn!(address, shard = self.from, %end, times, "no link to the parent");
            }
            if self.leads() {
                self.tree.gone(&address, instead(&end));
                continue;
            }
            if began.elapsed() > PAUSE_MAX {
                pause = PAUSE_MIN;
            }
            tokio::select! {
                () = sleep(pause) => {}
                _ = parent.changed() => parent.mark_changed(),
                () = stop.cancelled() => return,
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Looks for a parent that is better, as long as there may be one.
    async fn look_for_better(&self) -> Infallible {
        loop {
            // Two that went to each other at once would both lose their way.
            let number = self.identity.node().node.0;
            sleep(LOOK_EVERY + Duration::from_millis(number % 2_000)).await;
            if !self.leads() {
                continue;
            }
            for address in self.tree.better() {
                if let Ok(dialed) = self.dial(&address).await {
                    // Only to know: the link is another one's.
                    drop(dialed);
                    self.tree.better_found(address);
                    break;
                }
            }
        }
    }

    /// A connection to a parent that has what the first one had.
    async fn dial(&self, address: &str) -> Result<Dialed, LinkEnd> {
        let asked = asked(self.from, &self.own_address);
        let dialed = timeout(PATIENCE, dial(address, &self.identity, &asked)).await;
        let dialed = dialed.unwrap_or(Err(LinkEnd::Silent))?;
        let is_same = dialed.offer.capabilities == self.offer.capabilities
            && dialed.offer.storages == self.offer.storages;
        if !is_same {
            let what = "the parent has other storages than the one before: start this node again";
            return Err(LinkEnd::Changed(what.to_owned()));
        }
        Ok(dialed)
    }

    /// Whether what becomes of its link is what becomes of the parent.
    fn leads(&self) -> bool {
        self.from == 0
    }

    /// One connection, from its beginning to its end.
    async fn once(&self, address: &str, stop: &CancellationToken) -> LinkEnd {
        let dialed = tokio::select! {
            dialed = self.dial(address) => dialed,
            () = stop.cancelled() => return LinkEnd::Stopping,
        };
        let dialed = match dialed {
            Ok(dialed) => dialed,
            Err(end) => return end,
        };
        if let Some(member) = dialed.member {
            self.metrics.cluster.links.meet(member);
        }
        let (stream, reader) = dialed.greeting.into_parts();
        let meters = self.metrics.cluster.link_meters(&dialed.peer.name);
        if self.leads() {
            self.tree.linked(address, &self.words);
        }
        let hear = |message| match message {
            FromHost::Heartbeat {
                heartbeat,
                asked_us,
            } => {
                if self.leads() {
                    self.tree.told(*heartbeat, asked_us);
                }
                None
            }
            other => Some(other),
        };
        self.carrying
            .carry((stream, reader), &meters, &hear, stop)
            .await
    }
}
