//! What goes wrong: crashes, stops, cut streams, damage, a full disk.

use super::{End, World};
use crate::invariants::Checked;
use airmail_broker::Input;
use airmail_model::{Durability, Lane, LogId};
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
        if self.full_until.is_none() && self.chance.chance(self.swarm.fills_up) {
            let room = self.chance.below(20_000);
            self.machine.disk().set_room(Some(room));
            let pause = Duration::from_micros(self.chance.below(300_000));
            self.full_until = Some(self.now.mono.plus(pause));
            self.trace
                .note(format_args!("the disk fills up, {room} bytes left"));
        }
        if self.full_until.is_some_and(|until| until <= self.now.mono) {
            self.machine.disk().set_room(None);
            self.full_until = None;
        }
        Ok(())
    }

    /// A stream breaks. Some of what the client had sent still arrives; then the node sees it too.
    pub(super) fn cut(&mut self, end: End) {
        let now = self.now.mono;
        let mut chance = self.chance.fork();
        let Some((session, arriving)) = self.link(end).cut(now, &mut chance) else {
            return;
        };
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
        if !clean && (self.node.is_some() || power) {
            let weak = self
                .spaces
                .iter()
                .filter(|space| space.durability < Durability::Fsync);
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
        self.node = None;
        self.asked = None;
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
                self.end(false, clean);
                return Ok(());
            }
            self.later(Duration::from_micros(500));
        }
        self.crash(false);
        Ok(())
    }
}
