//! Dialing: a node without a storage keeps a link to each shard of the one whose storage it uses.
//!
//! Before it has a shard of its own it asks what there is (`Remote::find`): how many shards, which logs are where, what
//! the storage can do. Of several addresses, where it may be, the one counts that answers first. A `Dialer` then keeps
//! one link: it connects, carries what the port says until the connection ends, and begins again. Between two attempts
//! it waits, longer each time, up to half a second.
//!
//! Which shard has which log does not change while this process runs. If the other node comes back with another
//! number of shards, its links are refused here, and the log says that this process has to be started anew. It may come
//! back at another address, where others say that it is ([`Remote::moved`]).

use super::carrying::Carrying;
use super::credentials::Identity;
use super::greeting::Greeting;
use super::link_end::LinkEnd;
use crate::logging_rate_limit::LoggingRateLimit;
use crate::metrics::Metrics;
use airmail_link::{FromHost, LinkLimits, LinkStorage, LogHomes, RemoteStorage, ToHost, Tower};
use airmail_log::{LogStorage, Waker};
use airmail_membership::MemberId;
use airmail_wire::WirePort;
use airmail_wire::handshake::{Asked, Between, HandshakeError, Node, Offer};
use airmail_wire::link_v1::refused::Why;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use parking_lot::Mutex;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Time that a connection may take: if it takes longer, something was lost on the way, and another attempt is sooner
/// there than the system's next.
pub(super) const PATIENCE: Duration = Duration::from_millis(1_500);
/// Time that a name may be in use: longer than links last whose other end is gone.
pub(super) const NAME_PATIENCE: Duration = Duration::from_secs(15);
/// Pauses between attempts.
pub(super) const PAUSE_MIN: Duration = Duration::from_millis(20);
pub(super) const PAUSE_MAX: Duration = Duration::from_millis(500);

/// A link to a shard.
type Link = LinkStorage<WirePort<ToHost, FromHost>>;

/// Where the other node is, and what it has.
#[derive(Clone, Debug)]
pub(crate) struct Remote {
    /// Where it is: one for all links.
    address: Arc<Mutex<String>>,
    identity: Identity,
    /// The node that was found there.
    peer: Node,
    /// Address by which this machine reached it.
    local: IpAddr,
    offer: Arc<Offer>,
    homes: Arc<LogHomes>,
    metrics: Arc<Metrics>,
    /// Cancelled when its links are wanted no more.
    unused: CancellationToken,
}

/// A connection that has led to a node.
pub(super) struct Dialed {
    pub(super) greeting: Greeting,
    pub(super) peer: Node,
    pub(super) offer: Offer,
    /// Address of this machine on the way to it.
    pub(super) local: IpAddr,
    /// The node as a member, if it takes datagrams.
    pub(super) member: Option<MemberId>,
}

/// A connection to the node at an address for a link, with what that node has.
pub(super) async fn dial(
    address: &str,
    identity: &Identity,
    asked: &Asked,
) -> Result<Dialed, LinkEnd> {
    let connected = timeout(PATIENCE, TcpStream::connect(address)).await;
    let stream = connected.map_err(|_| LinkEnd::Silent)??;
    let (local, reached) = (stream.local_addr()?.ip(), stream.peer_addr()?.ip());
    let mut greeting = Greeting::new(stream)?;
    let (peer, offer) = greeting.ask(identity, asked).await?;
    let member = offer.membership.map(|port| {
        let address = (reached, port).into();
        MemberId::new(&*peer.name, peer.node, peer.boot, address)
    });
    Ok(Dialed {
        greeting,
        peer,
        offer,
        local,
        member,
    })
}

/// Refusal of a node that was asked for its storage, and where that is.
#[derive(Debug)]
pub(crate) struct NotFound {
    pub(crate) address: String,
    pub(crate) end: LinkEnd,
}

/// A connection to the first that answers of the nodes at these addresses; else how each attempt ended. An end that will
/// not pass by itself is the last.
async fn dial_any(
    addresses: &[String],
    identity: &Identity,
) -> Result<(String, Dialed), Vec<NotFound>> {
    let attempts = addresses.iter().map(|address| async move {
        let dialed = dial(address, identity, &Asked::default()).await;
        (address.clone(), dialed)
    });
    let mut attempts: FuturesUnordered<_> = attempts.collect();
    let mut ends = Vec::new();
    while let Some((address, dialed)) = attempts.next().await {
        match dialed {
            Ok(dialed) => return Ok((address, dialed)),
            Err(end) => {
                let is_last = is_refusal(&end);
                ends.push(NotFound { address, end });
                if is_last {
                    break;
                }
            }
        }
    }
    Err(ends)
}

/// Whether a node has been found, and there will be no link to it.
fn is_refusal(end: &LinkEnd) -> bool {
    matches!(
        end,
        LinkEnd::Handshake(HandshakeError::Refused(_) | HandshakeError::Refusing(_))
    )
}

/// Whether a refusal is that of a name in use, which may be this node's from before.
pub(super) fn is_of_name(end: &LinkEnd) -> bool {
    matches!(end, LinkEnd::Handshake(HandshakeError::Refused(refusal)) if refusal.why == Why::Name)
}

impl Remote {
    /// Asks the nodes at these addresses what they have, as often as it takes. A refusal ends it, but that of a name in
    /// use only if it stays so: the other may be this node before it was started again, whose links are not given up yet.
    pub(crate) async fn find(
        addresses: &[String],
        identity: Identity,
        metrics: &Arc<Metrics>,
    ) -> Result<Remote, NotFound> {
        let (begun, mut pause) = (Instant::now(), PAUSE_MIN);
        let mut troubles = LoggingRateLimit::default();
        loop {
            let mut ends = match dial_any(addresses, &identity).await {
                Ok((address, dialed)) => {
                    let (name, shards) = (&dialed.peer.name, dialed.offer.shards);
                    tracing::info!(address, name, shards, "found the storage's node");
                    let found = Remote::new(&address, identity, dialed, metrics);
                    return found.map_err(|end| NotFound { address, end });
                }
                Err(ends) => ends,
            };
            let ends_it = |end: &LinkEnd| {
                is_refusal(end) && !(is_of_name(end) && begun.elapsed() < NAME_PATIENCE)
            };
            if let Some(last) = ends.pop_if(|last| ends_it(&last.end)) {
                return Err(last);
            }
            if let Some(times) = troubles.happened(Instant::now()) {
                for NotFound { address, end } in &ends {
                    tracing::warn!(address, %end, times, "the storage's node cannot be reached yet");
                }
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Asks the node at an address what it has, once; nothing, if it cannot be had now.
    pub(super) async fn ask(
        address: &str,
        identity: &Identity,
        metrics: &Arc<Metrics>,
    ) -> Result<Remote, LinkEnd> {
        let dialed = dial(address, identity, &Asked::default()).await?;
        Remote::new(address, identity.clone(), dialed, metrics)
    }

    fn new(
        address: &str,
        identity: Identity,
        dialed: Dialed,
        metrics: &Arc<Metrics>,
    ) -> Result<Remote, LinkEnd> {
        let Dialed {
            peer,
            offer,
            local,
            member,
            ..
        } = dialed;
        if let Some(member) = member {
            metrics.cluster.links.meet(member);
        }
        let mut homes = LogHomes::new(offer.shards.into());
        for (log, shard) in &offer.homes {
            let found = homes.found(*log, (*shard).into());
            found.map_err(|error| LinkEnd::Changed(error.to_string()))?;
        }
        Ok(Remote {
            address: Arc::new(Mutex::new(address.to_owned())),
            identity,
            peer,
            local,
            offer: Arc::new(offer),
            homes: Arc::new(homes),
            metrics: Arc::clone(metrics),
            unused: CancellationToken::new(),
        })
    }

    /// Where the node is.
    fn address(&self) -> String {
        self.address.lock().clone()
    }

    /// The node is there from now on. Links that there are stay.
    pub(super) fn moved(&self, address: &str) {
        let mut known = self.address.lock();
        if *known != address {
            address.clone_into(&mut known);
        }
    }

    /// Ends its links for good: nobody uses them any more.
    pub(super) fn leave(&self) {
        self.unused.cancel();
        self.metrics.cluster.links.forget(&self.peer.name);
    }

    /// This node, as it showed itself there.
    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The node that was found.
    pub(crate) fn peer(&self) -> &Node {
        &self.peer
    }

    /// Address of this machine on the way to it.
    pub(crate) fn local(&self) -> IpAddr {
        self.local
    }

    /// The node's offer.
    pub(crate) fn offer(&self) -> &Offer {
        &self.offer
    }

    /// The storage of the shard `from` of this process, which is woken by `waker`; and who keeps its links.
    pub(crate) fn storage(
        &self,
        from: u16,
        waker: &Waker,
        limits: LinkLimits,
    ) -> (Box<dyn LogStorage>, Vec<Dialer>) {
        let (links, dialers) = self.links(from, waker, limits);
        let capabilities = self.offer.capabilities;
        let storage = RemoteStorage::new(Arc::clone(&self.homes), capabilities, links);
        (Box::new(storage), dialers)
    }

    /// The node as one of several towers of the shard `from`, and who keeps its links.
    pub(crate) fn tower(
        &self,
        from: u16,
        waker: &Waker,
        limits: LinkLimits,
    ) -> (Tower<WirePort<ToHost, FromHost>>, Vec<Dialer>) {
        let (links, dialers) = self.links(from, waker, limits);
        (Tower::new(Arc::clone(&self.homes), links), dialers)
    }

    fn links(&self, from: u16, waker: &Waker, limits: LinkLimits) -> (Vec<Link>, Vec<Dialer>) {
        let capabilities = self.offer.capabilities;
        let link = |to| {
            let (port, carrying) = Carrying::port(Arc::clone(waker));
            let dialer = Dialer {
                remote: self.clone(),
                between: Between { from, to },
                carrying,
            };
            (LinkStorage::new(port, capabilities, limits), dialer)
        };
        (0..self.offer.shards).map(link).unzip()
    }

    /// Whether what the node has now is what it had: what it has found since is where it was expected.
    fn check(&self, now: &Offer) -> Result<(), LinkEnd> {
        let changed = |what: String| Err(LinkEnd::Changed(what + ": start this node again"));
        if now.shards != self.offer.shards {
            return changed(format!(
                "the other node had {} shards, and has {} now",
                self.offer.shards, now.shards
            ));
        }
        let elsewhere = |(log, shard): &&(_, u16)| self.homes.home(*log) != usize::from(*shard);
        if let Some((log, shard)) = now.homes.iter().find(elsewhere) {
            return changed(format!(
                "log {log} is at shard {shard} of the other node now"
            ));
        }
        if now.capabilities != self.offer.capabilities || now.storages != self.offer.storages {
            return changed("the other node has other storages now".to_owned());
        }
        Ok(())
    }
}

/// One who keeps a link to a shard. See the module's documentation.
#[derive(Debug)]
pub(crate) struct Dialer {
    remote: Remote,
    between: Between,
    carrying: Carrying<ToHost, FromHost>,
}

impl Dialer {
    /// Keeps the link until `stop`, or until it is wanted no more.
    pub(crate) async fn keep(self, stop: CancellationToken) {
        let ends = stop.child_token();
        let unused = async {
            self.remote.unused.cancelled().await;
            ends.cancel();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = self.keep_until(&ends) => {}
            () = unused => {}
        }
    }

    async fn keep_until(&self, stop: &CancellationToken) {
        let mut pause = PAUSE_MIN;
        let mut troubles = LoggingRateLimit::default();
        self.set_up(false);
        while !stop.is_cancelled() {
            let began = Instant::now();
            let end = self.once(stop).await;
            self.set_up(false);
            if stop.is_cancelled() {
                return;
            }
            if let Some(times) = troubles.happened(Instant::now()) {
                let (address, shard) = (self.remote.address(), self.between.to);
                tracing::warn!(address, shard, %end, times, "no link");
            }
            if began.elapsed() > PAUSE_MAX {
                pause = PAUSE_MIN;
            }
            tokio::select! {
                () = sleep(pause) => {}
                () = stop.cancelled() => return,
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// One connection, from its beginning to its end.
    async fn once(&self, stop: &CancellationToken) -> LinkEnd {
        let remote = &self.remote;
        let asked = Asked {
            between: self.between,
            child_address: None,
        };
        let dialed = match dial(&remote.address(), &remote.identity, &asked).await {
            Ok(dialed) => dialed,
            Err(end) => return end,
        };
        if let Err(end) = remote.check(&dialed.offer) {
            return end;
        }
        let cluster = &remote.metrics.cluster;
        if let Some(member) = dialed.member {
            cluster.links.meet(member);
        }
        self.set_up(true);
        let (stream, reader) = dialed.greeting.into_parts();
        let meters = cluster.link_meters(&remote.peer.name);
        self.carrying
            .carry((stream, reader), &meters, &Some, stop)
            .await
    }

    fn set_up(&self, is_up: bool) {
        let (links, name) = (&self.remote.metrics.cluster.links, &self.remote.peer.name);
        if !self.remote.unused.is_cancelled() {
            links.set(name, self.between, is_up);
        }
    }
}
