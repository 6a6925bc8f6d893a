//! What goes wrong: crashes, stops, cut streams, damage, a full disk.

use super::publisher::Publisher;
use super::{End, World, durability, retention};
use crate::census::Kind;
use crate::invariants::Checked;
use airmail_broker::Input;
use airmail_log::LogStorage;
use airmail_model::{Lane, LogId};
use std::time::Duration;

impl World {
    /// Lets what the seed has in store happen.
    pub(super) fn faults(&mut self) -> Checked {
        if self.chance.chance(self.swarm.power_cut) {
            self.crash(true);
        } else if self.chance.chance(self.swarm.killed) {
            self.crash(false);
        } else if self.chance.chance(self.swarm.stopped) {
            self.stop()?;
        }
        if self.chance.chance(self.swarm.restarted) {
            self.restart_publisher();
        }
        if self.chance.chance(self.swarm.updated) && !self.spaces.is_empty() {
            let at = self.chance.index(self.spaces.len());
            let wanted = (retention(&mut self.chance), durability(&mut self.chance));
            self.spaces[at].wanted = Some(wanted);
        }
        if self.chance.chance(self.swarm.cut) {
            let ends = self.publishers.len() + self.clients.len();
            let at = self.chance.index(ends);
            let end = at
                .checked_sub(self.publishers.len())
                .map_or(End::Publisher(at), End::Client);
            self.cut(end);
        }
        if self.spaces.len() > 1 && self.chance.chance(self.swarm.deleted) {
            let at = self.chance.index(self.spaces.len());
            let alone = !self.spaces.iter().any(|space| space.doomed);
            self.spaces[at].doomed |= alone;
        }
        if self.chance.chance(self.swarm.damage) {
            let mut chance = self.chance.fork();
            let hit = self.machine.disk().damage(&mut chance);
            if let Some(id) = hit {
                self.trace.note(format_args!("damaged message {}", id.0));
                self.ledger.damaged.insert(id);
            }
        }
        if self.chance.chance(self.swarm.corrupt) {
            self.corrupt();
        }
        if self.chance.chance(self.swarm.copied) {
            self.copy_files();
        }
        if self.chance.chance(self.swarm.restored) {
            self.set_back();
        }
        self.spells.pass(
            self.now.mono,
            &self.swarm,
            &mut self.chance,
            &self.machine,
            &mut self.trace,
            &mut self.census,
        );
        Ok(())
    }

    /// A publisher is no more, and another comes: under a new id, or under the same with a higher
    /// epoch while the old one goes on.
    fn restart_publisher(&mut self) {
        const PUBLISHERS_MAX: usize = 60;
        let at = self.chance.index(self.publishers.len());
        let number = u32::try_from(self.born).unwrap_or(0);
        let mut chance = self.chance.fork();
        let same = self.chance.coin() && !self.publishers[at].succeeded;
        if same && self.publishers.len() >= PUBLISHERS_MAX {
            return;
        }
        self.born += 1;
        let mut next = if same {
            self.census.count(Kind::PublisherFencing);
            self.publishers[at].successor(number, &mut chance)
        } else {
            self.census.count(Kind::PublisherRestarted);
            self.cut(End::Publisher(at));
            Publisher::new(number, self.plant, &mut chance)
        };
        for space in &self.spaces {
            next.core.set_map(space.map.clone());
        }
        if same {
            self.publishers.push(next);
        } else {
            self.publishers[at] = next;
        }
    }

    /// A file is hit, once in a run.
    fn corrupt(&mut self) {
        let mut chance = self.chance.fork();
        let Some(hit) = self.machine.disk().corrupt(&mut chance) else {
            return;
        };
        self.trace.note(format_args!("corrupted: {hit:?}"));
        self.ledger.damaged.extend(hit.hit);
        if matches!(hit.kind, Kind::CheckpointFlipped | Kind::CheckpointCut) {
            // Where logs stood after a clean stop is in the last one alone; by the one before they
            // go on above their reservations.
            let weak = self.spaces.iter().filter(|space| space.weak);
            let logs = weak.flat_map(|space| space.map.logs(Lane::Normal));
            self.ledger.bereft.extend(logs);
        }
        self.swarm.corrupt = 0;
        self.corrupted = true;
    }

    /// Whether the power stays on: where a file is hit, the ends of the others must be known.
    pub(super) fn keeps_power(&self) -> bool {
        self.corrupted || self.swarm.corrupt > 0
    }

    /// A stream breaks. Some of what the client had sent still arrives; then the node sees it too.
    pub(super) fn cut(&mut self, end: End) {
        let now = self.now.mono;
        let mut chance = self.chance.fork();
        let Some((session, arriving)) = self.link(end).cut(now, &mut chance) else {
            return;
        };
        self.census.count(Kind::StreamCut);
        self.trace
            .note(format_args!("{} {end:?} is cut off", now.0));
        for request in arriving {
            self.request(session, request);
        }
        if let Some(node) = &mut self.node {
            node.input(self.now, Input::Closed { session });
        }
        self.ends.remove(&session);
        self.closed.insert(session);
        self.disconnected(end);
    }

    fn disconnected(&mut self, end: End) {
        match end {
            End::Publisher(at) => self.publishers[at].core.disconnected(),
            End::Client(at) => self.clients[at].core.disconnected(),
        }
    }

    /// The process ends without warning; with `power`, the machine too.
    pub(super) fn crash(&mut self, power: bool) {
        self.end(power, false);
    }

    /// The process is no more. After a clean end everything that it took is held.
    fn end(&mut self, power: bool, clean: bool) {
        self.trace
            .note(format_args!("ended, power cut: {power}, clean: {clean}"));
        self.census.count(match (power, clean) {
            (true, _) => Kind::PowerCut,
            (false, true) => Kind::StoppedClean,
            (false, false) => Kind::Killed,
        });
        if !clean && (self.node.is_some() || power) {
            let weak = self.spaces.iter().filter(|space| space.weak);
            let weak: Vec<LogId> = weak
                .flat_map(|space| space.map.logs(Lane::Normal))
                .collect();
            // What a failing file had only in the cache is written once more, elsewhere; a kill in
            // between takes it: two faults at once are beyond `os`.
            let hazard = power || self.machine.disk().failures() > 0;
            self.ledger.crash(hazard, &weak);
        }
        if power {
            self.machine.disk().cut_power();
        } else {
            self.machine.disk().kill();
        }
        self.down();
    }

    fn down(&mut self) {
        if let Some(node) = self.node.take() {
            self.census
                .take_shard(node.shard().stats(), &node.shard().flow());
        }
        self.asked = None;
        self.restore_ended();
        let mut chance = self.chance.fork();
        for (_, (end, _)) in std::mem::take(&mut self.ends) {
            let now = self.now.mono;
            if self.link(end).cut(now, &mut chance).is_some() {
                self.disconnected(end);
            }
        }
        let pause = Duration::from_micros(self.chance.below(20_000));
        self.down_until = self.now.mono.plus(pause);
    }

    /// The process ends in good order, or is killed if it does not get there.
    fn stop(&mut self) -> Checked {
        self.trace.note(format_args!("stop"));
        let ends: Vec<End> = self.ends.values().map(|(end, _)| *end).collect();
        ends.into_iter().for_each(|end| self.cut(end));
        if let Some(node) = &mut self.node {
            node.storage_mut().close(self.now);
        }
        for _ in 0..2_000 {
            self.turn()?;
            let Some(node) = &self.node else {
                return Ok(());
            };
            if node.storage().is_closed() {
                self.trace.note(format_args!("stopped"));
                // A journal whose files fail gives up in the end; that is no clean stop.
                let clean = self.machine.disk().failures() == 0;
                if !clean {
                    self.census.count(Kind::StoppedDirty);
                }
                self.end(false, clean);
                return Ok(());
            }
            self.later(Duration::from_micros(500));
        }
        self.crash(false);
        Ok(())
    }
}
