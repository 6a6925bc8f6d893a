//! A node's cluster, as the node sees it.

use airmail_proto::v1::{self, MemberState};
use std::fmt;
use std::time::Duration;

/// Cluster, as one of its nodes sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeCluster {
    /// Name of the node that has told.
    pub node: String,
    /// All members, by name, the one that has told among them.
    pub members: Vec<ClusterMember>,
    /// Everything that is not as it should be, in words.
    pub faults: Vec<String>,
}

/// Standing of a cluster's member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberStanding {
    /// It answers.
    Live,
    /// It has not answered lately.
    Suspect,
    /// It has not answered for longer, and has not said that it leaves.
    Down,
    /// It answers, and asks its clients to go elsewhere.
    Draining,
    /// It has said that it stops.
    Left,
}

impl fmt::Display for MemberStanding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            MemberStanding::Live => "live",
            MemberStanding::Suspect => "suspect",
            MemberStanding::Down => "down",
            MemberStanding::Draining => "draining",
            MemberStanding::Left => "left",
        })
    }
}

/// Member of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterMember {
    /// Name, unique in the cluster.
    pub name: String,
    /// Number of the node.
    pub node: u64,
    /// Number of its start; rises with each.
    pub boot: u64,
    /// Standing, as the node that has told sees it.
    pub standing: MemberStanding,
    /// Time for which it has been so, as far as that node has seen.
    pub since: Duration,
    /// Roles: `all`, or `pilot,copilot`.
    pub roles: String,
    /// Zone. Empty: none.
    pub zone: String,
    /// Name of the machine that it runs on.
    pub host: String,
    /// Address for clients, `HOST:PORT`.
    pub address: String,
    /// Address for other nodes, `HOST:PORT`. Empty: it has none.
    pub cluster_address: String,
    /// Number of shards.
    pub shards: u32,
    /// Number of connections of clients.
    pub connections: u32,
    /// Nodes whose logs it uses and to which it has no link at present.
    pub unlinked: Vec<String>,
    /// Release that it is of.
    pub version: String,
    /// Place in a tree, if it is in one.
    pub tree: Option<MemberTree>,
}

/// Place of a node in a tree: the root has the logs, and each other node has them from its parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberTree {
    /// Whether its logs are those of a parent: it is not the root.
    pub is_child: bool,
    /// Name of its parent. Empty: it has none at present.
    pub parent: String,
    /// Number of nodes above it. 0 of a child: it has no way to the root at present.
    pub depth: u32,
    /// Number of its children.
    pub children: u32,
    /// Half of the time that a question to the parent and its answer take.
    pub delay: Duration,
    /// Time for which something that it follows has not been at its end.
    pub behind: Duration,
}

impl From<v1::Cluster> for NodeCluster {
    fn from(cluster: v1::Cluster) -> NodeCluster {
        NodeCluster {
            node: cluster.node,
            members: cluster.members.into_iter().map(member).collect(),
            faults: cluster.faults,
        }
    }
}

fn member(member: v1::Member) -> ClusterMember {
    let standing = match member.state() {
        // A state that only a later release has is none to rely on.
        MemberState::Unspecified | MemberState::Suspect => MemberStanding::Suspect,
        MemberState::Live => MemberStanding::Live,
        MemberState::Down => MemberStanding::Down,
        MemberState::Draining => MemberStanding::Draining,
        MemberState::Left => MemberStanding::Left,
    };
    ClusterMember {
        name: member.name,
        node: member.node,
        boot: member.boot,
        standing,
        since: Duration::from_millis(member.since_ms),
        roles: member.roles,
        zone: member.zone,
        host: member.host,
        address: member.address,
        cluster_address: member.cluster_address,
        shards: member.shards,
        connections: member.connections,
        unlinked: member.unlinked,
        version: member.version,
        tree: member.tree.map(|tree| MemberTree {
            is_child: tree.is_child,
            parent: tree.parent,
            depth: tree.depth,
            children: tree.children,
            delay: Duration::from_micros(tree.delay_us.into()),
            behind: Duration::from_millis(tree.behind_ms.into()),
        }),
    }
}
