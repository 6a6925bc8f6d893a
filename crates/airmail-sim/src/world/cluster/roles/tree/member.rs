//! A node of a tree that is up: its place, its link to a parent, and those of its children.

use super::super::super::Cluster;
use super::{ROOT_AT, Tree};
use crate::world::node_storage::NodeDisk;
use crate::world::node_storage::NodeStorage;
use crate::world::plug::{self, FarSocket, NearSocket};
use airmail_link::{
    Ancestor, CachedStorage, Heartbeat, HostPort, HostedStorage, LinkStorage, TreeNode,
};
use airmail_log::LogStorage as _;
use airmail_model::Mono;
use std::collections::BTreeMap;
use std::sync::mpsc::SyncSender;

/// State of the link to a parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Climb {
    No,
    /// It is dialed.
    Dialing {
        parent: usize,
        begun: Mono,
        /// Nothing is known before.
        due: Mono,
    },
    Linked {
        parent: usize,
    },
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) own: Ancestor,
    pub(super) place: TreeNode,
    pub(super) climb: Climb,
    /// The plug of its own link. The root has none.
    pub(super) above: Option<NearSocket>,
    /// Way of children's ports to its storage.
    pub(super) arrivals: SyncSender<HostPort>,
    pub(super) children: BTreeMap<usize, FarSocket>,
    /// Plugs of children that have gone.
    pub(super) free: Vec<FarSocket>,
    /// The heartbeat that children were told last.
    pub(super) told: Option<Heartbeat>,
    /// Times of the last word to its parent, and of the last look for a better one.
    pub(super) asked_at: Mono,
    pub(super) looked_at: Mono,
}

impl Member {
    fn new(
        (own, place): (Ancestor, TreeNode),
        above: Option<NearSocket>,
        arrivals: SyncSender<HostPort>,
        now: Mono,
    ) -> Member {
        Member {
            own,
            place,
            climb: Climb::No,
            above,
            arrivals,
            children: BTreeMap::new(),
            free: Vec::new(),
            told: None,
            asked_at: now,
            looked_at: now,
        }
    }
}

impl Cluster {
    /// The storage of the root, which starts on its disk's contents, if this is a tree.
    pub(in crate::world) fn start_root(
        &mut self,
        journal: NodeDisk,
        now: Mono,
    ) -> Option<NodeStorage> {
        let roles = self.roles.as_mut()?;
        let tree = roles.tree.as_mut()?;
        let host = HostedStorage::new(journal, self.limits);
        roles.capabilities = Some(host.capabilities());
        let place = tree.place(ROOT_AT, &mut roles.chance);
        tree.members[ROOT_AT] = Some(Member::new(place, None, host.arrivals(), now));
        tree.is_root_stopping = false;
        roles.nodes[ROOT_AT].is_up = true;
        roles.news[ROOT_AT] = Mono(0);
        Some(NodeStorage::Root(host))
    }

    /// The storage of another node of the tree that starts.
    pub(in crate::world::cluster::roles) fn start_below(
        &mut self,
        node: usize,
        now: Mono,
    ) -> Option<NodeStorage> {
        let roles = self.roles.as_mut()?;
        let capabilities = roles.capabilities?;
        let tree = roles.tree.as_mut()?;
        let (port, above) = plug::near();
        let link = LinkStorage::to_parents(port, capabilities, self.limits);
        let cached = CachedStorage::new(link, tree.cache);
        let host = HostedStorage::new(cached, self.limits);
        let place = tree.place(node, &mut roles.chance);
        tree.members[node] = Some(Member::new(place, Some(above), host.arrivals(), now));
        tree.draw_false_start(node, now, &mut roles.chance);
        roles.nodes[node].is_up = true;
        roles.news[node] = Mono(0);
        Some(NodeStorage::Below(Box::new(host)))
    }
}

impl Tree {
    /// A node's process is gone.
    pub(in crate::world::cluster::roles) fn ends(&mut self, node: usize) {
        self.members[node] = None;
        self.false_starts.remove(&node);
    }

    /// The root takes no child from now on: it is to stop.
    pub(in crate::world::cluster) fn root_stops(&mut self) {
        self.is_root_stopping = true;
    }
}
