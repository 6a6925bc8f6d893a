//! Front doors: where clients come in, each with a protocol of its own.
//!
//! What they have in common is written once, in words of `airmail-model` alone: a [`SessionHandle`] is one
//! client's session with the node, from Hello to its end. A front door is a translator between its protocol
//! and sessions. [`grpc`] is the first: only there do messages of the API (`v1`) occur, and `cargo xtask
//! tidy` says so. [`http`] has health and metrics, and no sessions.
//!
//! An identity comes from the connection: whoever accepts one says who is at its other end, once, and
//! every session and every call on it is given that `Principal`. Nothing behind a front door makes one up.

mod error;
pub(crate) mod grpc;
pub(crate) mod http;
mod session;

pub use error::{
    NamespaceNotFound, PublishRefusal, RolesNotBelieved, SessionError, SubscribeRefusal,
    Unavailable, WrongRole,
};
pub(crate) use session::{AfterRequests, RequestSource};
pub use session::{SessionEvents, SessionHandle, SessionRequests};

use crate::config::Config;
use crate::config::cluster::Roles as NodeRoles;
use crate::metrics::Metrics;
use crate::shard_handle::ShardHandle;
use crate::shards::Shards;
use airmail_model::batch::batches_by_log;
use airmail_model::frame::{Hello, NamedMap};
use airmail_model::verdict::Roles;
use airmail_model::{
    Batch, Checked, Error, Limits, MapEpoch, Message, Mono, NamespaceId, TopicHash, TopicName,
};
use std::fmt;
use std::sync::Arc;
use tokio_util::task::TaskTracker;

/// The node as its front doors see it. Cheap to clone. Its sessions are on one of the shards.
#[derive(Clone)]
pub struct FrontDoor {
    handle: ShardHandle,
    shards: Shards,
    metrics: Arc<Metrics>,
    /// Connections and sessions, which a stop waits for.
    tasks: TaskTracker,
    /// Clients are believed to have the roles that they name.
    trusts_roles: bool,
}

impl fmt::Debug for FrontDoor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrontDoor").finish_non_exhaustive()
    }
}

impl FrontDoor {
    /// A door to the shard `handle` of all `shards`.
    pub(crate) fn new(
        handle: &ShardHandle,
        shards: &Shards,
        config: &Config,
        metrics: &Arc<Metrics>,
    ) -> FrontDoor {
        FrontDoor {
            handle: handle.clone(),
            shards: shards.clone(),
            metrics: Arc::clone(metrics),
            tasks: TaskTracker::new(),
            trusts_roles: config.trust_roles,
        }
    }

    pub(crate) fn handle(&self) -> &ShardHandle {
        &self.handle
    }

    pub(crate) fn shards(&self) -> &Shards {
        &self.shards
    }

    pub(crate) fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    pub(crate) fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    /// Limits that the node holds its clients to.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        self.handle.limits()
    }

    /// The node's monotonic clock, by which a publish is said to have been received.
    #[must_use]
    pub fn mono(&self) -> Mono {
        self.handle.mono()
    }

    /// Whether the node can be asked anything now.
    ///
    /// # Errors
    /// [`Unavailable`] while it starts or stops.
    pub fn check_up(&self) -> Result<(), Unavailable> {
        self.handle.check_up()
    }

    /// Whether the node takes publishes.
    ///
    /// # Errors
    /// It has not that role.
    pub fn takes_publishes(&self) -> Result<(), WrongRole> {
        self.has_role("pilot", |roles| roles.pilot)
    }

    /// Whether the node takes subscriptions, and questions about what is stored.
    ///
    /// # Errors
    /// It has not that role.
    pub fn takes_subscriptions(&self) -> Result<(), WrongRole> {
        self.has_role("copilot", |roles| roles.copilot)
    }

    fn has_role(&self, needed: &'static str, has: fn(NodeRoles) -> bool) -> Result<(), WrongRole> {
        let roles = self.handle.roles();
        if has(roles) {
            Ok(())
        } else {
            Err(WrongRole { roles, needed })
        }
    }

    /// The namespace and hash of a topic, by names; the empty namespace is `default`.
    ///
    /// # Errors
    /// [`SubscribeRefusal`] for a topic's name that is not allowed, or a namespace that does not exist.
    pub fn topic(
        &self,
        namespace: &str,
        topic: &str,
    ) -> Result<(NamespaceId, TopicHash), SubscribeRefusal> {
        TopicName::check(topic, self.limits()).map_err(SubscribeRefusal::Unacceptable)?;
        let id = self.handle.namespace(namespace)?.namespace.id;
        Ok((id, TopicName::hash_of(id, topic)))
    }

    /// The roles that a client is believed to have which names these.
    ///
    /// # Errors
    /// [`RolesNotBelieved`] if it names any, and the node does not trust it or does not know one.
    pub fn believed(&self, roles: &[String]) -> Result<Roles, RolesNotBelieved> {
        let Some(first) = roles.first() else {
            // Input: a client that says nothing of roles.
            return Ok(Roles::NONE);
        };
        if !self.trusts_roles {
            let role = first.clone();
            return Err(RolesNotBelieved::NotTrusted { role });
        }
        if roles.len() > Hello::ROLES_MAX {
            let roles = roles.len();
            return Err(RolesNotBelieved::TooMany { roles });
        }
        let catalog = self.handle.catalog();
        let known = catalog.roles();
        let found = roles.iter().map(|role| {
            let missing = || RolesNotBelieved::NotFound { role: role.clone() };
            known.find(role).ok_or_else(missing)
        });
        let found = found.collect::<Result<Vec<_>, _>>()?;
        Ok(Roles::of(found))
    }

    /// The number of a namespace; the empty name is `default`.
    pub(crate) fn namespace_id(&self, name: &str) -> Option<NamespaceId> {
        let entry = self.handle.namespace(name).ok()?;
        Some(entry.namespace.id)
    }

    /// Plain messages as batches for a namespace's logs; the empty namespace is `default`. A message that
    /// its front door could not read stands in its place as an error.
    ///
    /// # Errors
    /// [`PublishRefusal`] for the first message that cannot be published: nothing is encoded then.
    pub fn encode(
        &self,
        namespace: &str,
        messages: impl IntoIterator<Item = Result<Message, Error>>,
    ) -> Result<Vec<Checked<Batch>>, PublishRefusal> {
        let entry = self.handle.namespace(namespace)?;
        let time_us = self.handle.now().wall.0;
        batches_by_log(&entry.map, messages, time_us, self.limits())
            .map_err(PublishRefusal::Unacceptable)
    }

    /// The map of a namespace, under its name; the empty name is `default`.
    fn named_map(&self, name: &str) -> Result<NamedMap, NamespaceNotFound> {
        let entry = self.handle.namespace(name)?;
        Ok(NamedMap {
            name: entry.namespace.name.clone(),
            map: entry.map.clone(),
        })
    }

    /// The epoch of a namespace's map; 0 if no namespace has that number.
    pub(crate) fn epoch_of(&self, id: NamespaceId) -> MapEpoch {
        let catalog = self.handle.catalog();
        catalog.get(id).map_or(MapEpoch(0), |entry| entry.map.epoch)
    }

    /// The name of a namespace; empty if no namespace has that number.
    pub(crate) fn name_of(&self, id: NamespaceId) -> String {
        let entry = self.handle.catalog().get(id).cloned();
        entry.map_or(String::new(), |entry| entry.namespace.name.clone())
    }
}
