//! The gateways as clients find them: which they try, and what they are told there of the others.

use super::{Cluster, Roles};
use crate::entropy::Entropy;
use airmail_client::core::{NodeChoice, Place, Purpose};
use airmail_model::Mono;
use airmail_model::frame::{Nodes, ServingNode};

impl Cluster {
    /// The choice of a new client, which knows some of the gateways.
    pub(in crate::world) fn new_choice(
        &self,
        purpose: Purpose,
        chance: &mut Entropy,
    ) -> Option<NodeChoice> {
        let roles = self.roles.as_ref()?;
        let with = roles.with_clients();
        let first = chance.index(with.len());
        let last = chance.index(with.len()).max(first);
        let seeds = with[first..=last].iter().copied();
        let seeds = seeds.map(Roles::address).collect();
        Some(NodeChoice::new(
            seeds,
            purpose,
            Place::default(),
            chance.next(),
        ))
    }

    /// A client goes to the gateway that it chooses: which, if that takes it.
    pub(in crate::world) fn arrive(
        &mut self,
        choice: &mut NodeChoice,
        open: &[usize],
        now: Mono,
    ) -> Option<usize> {
        let address = choice.choose(now);
        let Some(gateway) = open
            .iter()
            .copied()
            .find(|open| Roles::address(*open) == address)
        else {
            // Input: a gateway that is down, or stands still.
            choice.failed(now, &address);
            return None;
        };
        choice.met(&address, &format!("g{gateway}"));
        if let Some(nodes) = self.nodes(gateway, &[], now) {
            choice.told(now, &address, &nodes);
        }
        Some(gateway)
    }

    /// Gateways that live, as one of them tells its clients, with the streams that lead to each. One that is cut off
    /// knows of itself alone.
    pub(in crate::world) fn nodes(
        &mut self,
        gateway: usize,
        streams: &[usize],
        now: Mono,
    ) -> Option<Nodes> {
        let roles = self.roles.as_mut()?;
        let is_cut_off = roles.chance.chance(roles.rates.false_news);
        let live = roles.with_clients().into_iter().filter(|other| {
            let lives = roles.is_up(*other) && !roles.is_given_up(*other, now);
            *other == gateway || lives && !is_cut_off
        });
        let node = |gateway: usize| {
            let there = streams.iter().filter(|shard| **shard == gateway);
            ServingNode {
                name: format!("g{gateway}"),
                address: Roles::address(gateway),
                pilot: true,
                copilot: true,
                connections: u32::try_from(there.count()).unwrap_or(0),
                ..ServingNode::default()
            }
        };
        let nodes = live.map(node).collect();
        let leave = false;
        Some(Nodes { nodes, leave })
    }
}
