//! The cluster as a node sees it, as a message.

use crate::cluster::view::Seen;
use crate::config::cluster::Roles;
use airmail_broker::{Catalog, Entry};
use airmail_membership::{Card, Member, Standing, TreeCard};
use airmail_model::Mono;
use airmail_proto::v1::{self, MemberState};
use std::sync::Arc;

/// The cluster as a message: this node among the others, by name; with the logs that have stopped.
pub(super) fn to_proto(seen: &Seen, catalog: &Catalog, now: Mono) -> v1::Cluster {
    let own = v1::Member {
        node: seen.own_number,
        boot: seen.own.boot,
        state: state(Standing::Live, &seen.own).into(),
        since_ms: millis(now, seen.begun),
        cluster_address: seen.own_address.clone(),
        ..of_card(&seen.own)
    };
    let others = seen.members.iter().map(|member| other(member, now));
    let mut members: Vec<v1::Member> = std::iter::once(own).chain(others).collect();
    members.sort_by(|one, other| one.name.cmp(&other.name));
    v1::Cluster {
        node: seen.own.name.clone(),
        members,
        faults: seen
            .faults(now)
            .into_iter()
            .chain(stopped(catalog))
            .collect(),
    }
}

/// Logs that have stopped, in words, with what can be done.
fn stopped(catalog: &Catalog) -> Vec<String> {
    let of_entry = |entry: &Arc<Entry>| {
        let name = &entry.namespace.name;
        let all = entry.all_suspended();
        let said = all.map(|(log, loss)| match loss.at {
            Some(at) => format!(
                "log {log} of namespace {name} has stopped: it lost what it had from number {at} on \
                 (airmail cluster accept-loss {log})"
            ),
            None => format!(
                "log {log} of namespace {name} has stopped: it is gone, or was made again \
                 (airmail namespace recreate {name})"
            ),
        });
        said.collect::<Vec<String>>()
    };
    catalog.iter().flat_map(of_entry).collect()
}

fn other(member: &Member, now: Mono) -> v1::Member {
    let unknown = Card {
        name: member.id.name.clone(),
        ..Card::default()
    };
    let card = member.card.as_ref().unwrap_or(&unknown);
    v1::Member {
        node: member.id.node,
        boot: member.id.boot,
        state: state(member.standing, card).into(),
        since_ms: millis(now, member.since),
        cluster_address: member.id.address.to_string(),
        ..of_card(card)
    }
}

fn of_card(card: &Card) -> v1::Member {
    let roles = Roles {
        pilot: card.pilot,
        copilot: card.copilot,
        tower: card.tower,
    };
    v1::Member {
        name: card.name.clone(),
        roles: roles.to_string(),
        zone: card.zone.clone(),
        host: card.host.clone(),
        address: card.client_address.clone(),
        shards: card.shards.into(),
        connections: card.connections,
        unlinked: card.ways.unlinked.clone(),
        version: card.release.clone(),
        tree: card.ways.tree.as_ref().map(place),
        ..v1::Member::default()
    }
}

fn place(tree: &TreeCard) -> v1::TreeNode {
    v1::TreeNode {
        is_child: tree.is_child,
        parent: tree.parent.clone(),
        depth: tree.depth,
        children: tree.children,
        delay_us: tree.delay_us,
        behind_ms: tree.behind_ms,
    }
}

fn state(standing: Standing, card: &Card) -> MemberState {
    match standing {
        Standing::Live if card.draining => MemberState::Draining,
        Standing::Live => MemberState::Live,
        Standing::Suspect => MemberState::Suspect,
        Standing::Down => MemberState::Down,
        Standing::Left => MemberState::Left,
    }
}

fn millis(now: Mono, since: Mono) -> u64 {
    u64::try_from(now.since(since).as_millis()).unwrap_or(u64::MAX)
}
