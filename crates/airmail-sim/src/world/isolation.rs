//! Isolation: a shard that does nothing at all stops only who needs its logs, and a gateway or tower nobody.
//!
//! While everything else is well, one of several shards stalls for good. In a tree that is a node without which the
//! others still know a way to the root. Its streams go to the others; what is
//! then published to logs of the others is acknowledged, and told to who reads those. Who has just begun to
//! read those from the beginning gets all of them, whoever waits for the logs that are stalled. Whoever knows of no
//! other gateway than one that stalls has nowhere to go, so everybody has been told of all.

use super::client::Client;
use super::moves::is_needed;
use super::publisher::Publisher;
use super::{End, World};
use crate::batching::topic_name;
use crate::census::Kind;
use crate::invariants::{Checked, Violation};
use airmail_model::{Lane, Mono};

/// Topics of a namespace that are looked at.
const TOPICS_MAX: u64 = 8;
/// Turns for which they have read when the shard stalls.
const TURNS_BEFORE_MAX: u64 = 30;

impl World {
    /// Lets a shard stall, in half of the runs that have several, and goes on without it; whether this is such
    /// a run.
    pub(super) fn isolate(&mut self) -> Result<bool, Violation> {
        if self.shards.len() == 1 || self.chance.coin() {
            return Ok(false);
        }
        let Some(stalled) = self.draw_isolated() else {
            // Input: a tree in which everybody is needed.
            return Ok(false);
        };
        self.begin_to_read(stalled)?;
        self.tell_all_of_gateways();
        self.evidence
            .note(format_args!("node {stalled} stalls for good"));
        self.evidence.count(if self.cluster.is_tree() {
            Kind::TreeNodeIsolated
        } else if stalled >= self.shards.len() {
            Kind::TowerIsolated
        } else {
            Kind::ShardIsolated
        });
        self.stall_for_good(stalled, true);
        let streams = self.streams.values();
        let there = streams.filter(|stream| stream.shard == stalled);
        let there: Vec<End> = there.map(|stream| stream.end).collect();
        there.into_iter().for_each(|end| self.cut(end));
        self.publish_around(stalled)?;
        self.until("told without a shard that stalls", |world| {
            let World {
                clients,
                cluster,
                spaces,
                ..
            } = world;
            clients.iter_mut().for_each(Client::catch_up);
            let ledger = &world.evidence.ledger;
            world
                .publishers
                .iter()
                .all(|one: &Publisher| one.is_idle(ledger))
                && clients.iter().all(|client| {
                    client.has_everything(ledger, |line| {
                        let is_there = |log| cluster.is_home(log, stalled);
                        !is_needed((spaces, &ledger.lines), line, is_there)
                    })
                })
        })?;
        self.until_placed(Some(stalled))?;
        self.stall_for_good(stalled, false);
        Ok(true)
    }

    /// Draws a node that the others can do without: a shard or a tower, or one of a tree below its root.
    fn draw_isolated(&mut self) -> Option<usize> {
        let shard = self.cluster.any_shard(&mut self.chance);
        let roles = self.cluster.roles.as_mut();
        let Some(roles) = roles else {
            return Some(shard);
        };
        if let Some(tree) = roles.tree() {
            let stalled = self.chance.pick(&tree.dispensable()).copied();
            roles.give_up();
            return stalled;
        }
        let is_tower = roles.can_spare_a_tower() && self.chance.coin();
        Some(if is_tower {
            roles.any_tower(&mut self.chance)
        } else {
            shard
        })
    }

    /// Has a node stand still from now on, or go on.
    fn stall_for_good(&mut self, node: usize, is_stalled: bool) {
        let until = Mono(if is_stalled { u64::MAX } else { 0 });
        if let Some(shard) = self.shards.get_mut(node) {
            shard.stalled_until = until;
        }
        let now = self.weather.now.mono;
        if let Some(roles) = &mut self.cluster.roles {
            roles.stall(node, now, until);
        }
    }

    /// One begins to read everything that this shard has, and one everything else; both have got somewhere when
    /// it stalls.
    fn begin_to_read(&mut self, stalled: usize) -> Checked {
        for (number, is_there) in [(1_001, true), (1_002, false)] {
            let mut newcomer = Client::new(
                number,
                self.plant,
                (
                    &self.evidence.ledger.audiences,
                    &self.evidence.ledger.filters,
                ),
                &mut self.chance,
            );
            let wanted = |line| self.has_log_of(line, stalled) == is_there;
            self.read_everything(&mut newcomer, wanted);
            self.clients.push(newcomer);
        }
        let mut turns = self.chance.between(1, TURNS_BEFORE_MAX);
        self.until("begun", |_| {
            turns -= 1;
            turns == 0
        })
    }

    /// Publishes to logs that are at any shard but this one.
    fn publish_around(&mut self, stalled: usize) -> Checked {
        for space in self.spaces.iter().filter(|space| !space.leaving) {
            for topic in (0..space.topics.min(TOPICS_MAX)).map(topic_name) {
                let log = space.map.log(topic.hash(space.id), Lane::Normal);
                if self.has_log_of(log, stalled) {
                    continue;
                }
                let publisher = self.chance.index(self.publishers.len());
                let publisher = &mut self.publishers[publisher];
                publisher.publish_one(self.weather.now, space, topic, 0, &mut self.evidence)?;
            }
        }
        Ok(())
    }
}
