//! Faults of the world: crashes, stops, cut streams, damage, a full disk.

use super::cluster::Roles;
use super::node_storage::NodeStorage;
use super::publisher::Publisher;
use super::shard::Shard;
use super::{End, Stream, World, durability, retention};
use crate::census::Kind;
use crate::invariants::Checked;
use crate::weather::{Casualty, Ending};
use airmail_broker::ClientInput;
use airmail_log::LogStorage;
use airmail_model::{Lane, LogId, Mono};
use std::time::Duration;

impl World {
    /// Lets the seed's faults happen.
    pub(super) fn faults(&mut self) -> Checked {
        match self.weather.ending(&mut self.chance) {
            Some(Ending::Stopped) => self.stop()?,
            Some(ending) => self.end(ending),
            None => {}
        }
        if self.chance.chance(self.weather.swarm.restarted) {
            self.restart_publisher();
        }
        if self.chance.chance(self.weather.swarm.updated) && !self.spaces.is_empty() {
            let at = self.chance.index(self.spaces.len());
            let wanted = (
                retention(&self.cluster, &mut self.chance),
                durability(&mut self.chance),
            );
            self.spaces[at].wanted = Some(wanted);
        }
        if self.chance.chance(self.weather.swarm.cut) {
            let ends = self.publishers.len() + self.clients.len();
            let at = self.chance.index(ends);
            let end = at
                .checked_sub(self.publishers.len())
                .map_or(End::Publisher(at), End::Client);
            self.cut(end);
        }
        if self.spaces.len() > 1 && self.chance.chance(self.weather.swarm.deleted) {
            let at = self.chance.index(self.spaces.len());
            let alone = !self.spaces.iter().any(|space| space.doomed);
            self.spaces[at].doomed |= alone;
        }
        self.draw_moves();
        let (chance, evidence) = (&mut self.chance, &mut self.evidence);
        self.weather.damage(chance, evidence);
        if self.weather.corrupt(chance, evidence) {
            let weak: Vec<LogId> = self.weak_logs().collect();
            self.evidence.ledger.bereft.extend(weak);
        }
        if self.chance.chance(self.weather.swarm.copied) {
            self.copy_files();
        }
        if self.chance.chance(self.weather.swarm.restored) {
            self.set_back();
        }
        self.weather
            .pass_spells(&mut self.chance, &mut self.evidence);
        self.cluster_faults()
    }

    /// Lets what is between the shards fail, and shards stall.
    fn cluster_faults(&mut self) -> Checked {
        let now = self.weather.now.mono;
        let is_alone = self.shards.len() == 1 && self.cluster.writers.is_none();
        if is_alone || !self.is_running() {
            return Ok(());
        }
        self.cluster.faults(now, &mut self.evidence);
        if let Some((node, until)) = self.cluster.stall_node(now, &mut self.evidence)
            && let Some(shard) = self.shards.get_mut(node)
        {
            shard.stalled_until = until;
        }
        self.cluster.cut_ways(now, &mut self.evidence);
        if let Some(gateway) = self.cluster.kills(now, &mut self.evidence) {
            self.cluster.falls_behind();
            self.gateway_ends(gateway);
        }
        if let Some(time) = self.cluster.fail_engine(now, &mut self.evidence) {
            self.let_pass(time)?;
        }
        let shard = self.cluster.any_shard(&mut self.chance);
        if let Some(time) = self.cluster.stall() {
            self.evidence.count(Kind::ShardStalled);
            let until = now.plus(time);
            self.shards[shard].stalled_until = until;
            self.cluster.falls_behind();
            if let Some(roles) = &mut self.cluster.roles {
                roles.stall(shard, now, until);
            }
            self.evidence.note(format_args!(
                "{} shard {shard} stalls until {}",
                now.0, until.0
            ));
        }
        Ok(())
    }

    /// Lets hours pass at once. No connection outlives them with something on its way, and no node has anything that it
    /// has not looked at: a request that comes a day late is none that a client still knows.
    fn let_pass(&mut self, time: Duration) -> Checked {
        let publishers = (0..self.publishers.len()).map(End::Publisher);
        let clients = (0..self.clients.len()).map(End::Client);
        let ends: Vec<End> = publishers.chain(clients).collect();
        ends.into_iter().for_each(|end| self.cut(end));
        for shard in &mut self.shards {
            shard.stalled_until = Mono(0);
            shard.is_awake = true;
        }
        self.turn_of_awake()?;
        self.weather.later(time);
        Ok(())
    }

    /// A publisher is no more, and another comes: under a new id, or under the same with a higher
    /// epoch while the old one goes on.
    fn restart_publisher(&mut self) {
        const PUBLISHERS_MAX: usize = 60;
        let at = self.chance.index(self.publishers.len());
        let number = u32::try_from(self.born).unwrap_or(0);
        let mut chance = self.chance.fork();
        // Logs in memory that many write to fence nobody: what comes of an older epoch is acknowledged, and left out.
        let fences = self.cluster.writers.is_none() || self.cluster.kafka().is_some();
        let same = self.chance.coin() && self.publishers[at].may_be_succeeded() && fences;
        if same && self.publishers.len() >= PUBLISHERS_MAX {
            return;
        }
        self.born += 1;
        let mut next = if same {
            self.evidence.count(Kind::PublisherFencing);
            self.publishers[at].successor(number, &mut chance)
        } else {
            self.evidence.count(Kind::PublisherRestarted);
            self.cut(End::Publisher(at));
            Publisher::new(number, self.plant, &mut chance)
        };
        next = next.with_lanes(self.evidence.ledger.lanes);
        for space in &self.spaces {
            next.core.set_map(space.present_map().clone());
        }
        if same {
            self.publishers.push(next);
        } else {
            self.publishers[at] = next;
        }
    }

    /// A stream breaks, and its client does not come back to the same gateway at once.
    pub(super) fn cut(&mut self, end: End) {
        let now = self.weather.now.mono;
        let link = self.link(end);
        if let (Some(shard), Some(choice)) = (link.shard, &mut link.choice) {
            choice.failed(now, &Roles::address(shard));
        }
        self.leave(end);
    }

    /// A stream ends. Some of what the client had sent still arrives; then the node sees it too.
    pub(super) fn leave(&mut self, end: End) {
        let now = self.weather.now.mono;
        let mut chance = self.chance.fork();
        let Some((session, arriving)) = self.link(end).cut(now, &mut chance) else {
            return;
        };
        self.evidence.count(Kind::StreamCut);
        self.evidence
            .note(format_args!("{} {end:?} is cut off", now.0));
        for request in arriving {
            self.request(session, request);
        }
        if let Some(Stream { shard, .. }) = self.streams.remove(&session) {
            self.input(shard, ClientInput::Closed { session });
            self.closed.insert(session, shard);
        }
        self.disconnected(end);
    }

    fn disconnected(&mut self, end: End) {
        match end {
            End::Publisher(at) => self.publishers[at].core.disconnected(),
            End::Client(at) => self.clients[at].core.disconnected(),
        }
    }

    /// The process is no more. After a clean end everything that it took is held.
    pub(super) fn end(&mut self, ending: Ending) {
        let process = Casualty {
            ran: self.is_running(),
            failed: self.has_failed(),
            weak: self.weak_logs().chain(self.unused_logs()).collect(),
        };
        self.weather.end(ending, &process, &mut self.evidence);
        if ending != Ending::Stopped {
            self.cluster.lost_memory(&process.weak);
        }
        self.down();
    }

    /// The logs of namespaces whose durability is below `fsync`, or was: of all their maps, and of one that may just have
    /// come into force.
    fn weak_logs(&self) -> impl Iterator<Item = LogId> + '_ {
        let lines = &self.evidence.ledger.lines;
        let weak = self.spaces.iter().filter(|space| space.weak);
        weak.flat_map(move |space| {
            let moves = space.moves() + u16::from(space.moved.is_some());
            let of_maps = Lane::ALL.map(|lane| space.map.logs(lane)).into_iter();
            let of_maps = of_maps.flatten();
            of_maps.flat_map(move |line| lines.logs(line, moves))
        })
    }

    /// Logs of namespaces that nobody uses yet, though gateways have opened them.
    fn unused_logs(&self) -> Vec<LogId> {
        let used = |id| self.spaces.iter().any(|space| space.id == id);
        let mut logs = Vec::new();
        if self.cluster.roles.is_some() {
            for catalog in self.catalogs() {
                let unused = catalog.iter().filter(|entry| !used(entry.namespace.id));
                let of_lanes = unused.flat_map(|entry| Lane::ALL.map(|lane| entry.map.logs(lane)));
                logs.extend(of_lanes.flatten());
            }
        }
        logs
    }

    /// Whether the process's files have failed it.
    pub(super) fn has_failed(&self) -> bool {
        self.weather.machine.has_failed()
    }

    fn down(&mut self) {
        self.cut_moves();
        let now = self.weather.now.mono;
        if self.cluster.roles.is_some() {
            let longer = self.cluster.end_store(now, &mut self.evidence);
            if self.cluster.is_tree() {
                self.gateway_ends(0);
            }
            let pause = Duration::from_micros(self.chance.below(20_000));
            self.down_until = now.plus(pause + longer);
            return;
        }
        for shard in 0..self.shards.len() {
            self.engine_ends(shard);
        }
        self.cluster.down();
        self.restore_ended();
        let mut chance = self.chance.fork();
        self.closed.clear();
        for (_, Stream { end, .. }) in std::mem::take(&mut self.streams) {
            let now = self.weather.now.mono;
            if self.link(end).cut(now, &mut chance).is_some() {
                self.disconnected(end);
            }
        }
        let pause = Duration::from_micros(self.chance.below(20_000));
        self.down_until = self.weather.now.mono.plus(pause);
    }

    /// A shard's part of its process is gone.
    fn engine_ends(&mut self, shard: usize) {
        let shard = &mut self.shards[shard];
        if let Some(mut engine) = shard.engine.take() {
            let (stats, flow) = (engine.shard().stats(), engine.shard().flow());
            self.evidence.census.take_shard(&stats, &flow);
            if let NodeStorage::Gateway(storage) = engine.storage_mut().inner_mut() {
                self.evidence.add(Kind::LogMoved, storage.moved());
            }
        }
        *shard = Shard::default();
    }

    /// A gateway's process is gone, and with it the streams that led to it.
    fn gateway_ends(&mut self, gateway: usize) {
        self.engine_ends(gateway);
        let streams = self.streams.values();
        let there = streams.filter(|stream| stream.shard == gateway);
        let there: Vec<End> = there.map(|stream| stream.end).collect();
        there.into_iter().for_each(|end| self.cut(end));
    }

    /// The process ends in good order, or is killed if it does not get there. With roles that is the storage's.
    fn stop(&mut self) -> Checked {
        self.evidence.note(format_args!("stop"));
        let is_tree = self.cluster.is_tree();
        if self.cluster.roles.is_some() {
            let now = self.weather.now.mono;
            self.cluster.cut_store(now, &mut self.evidence);
        }
        if is_tree || self.cluster.roles.is_none() {
            let streams = self.streams.values();
            let there = streams.filter(|stream| !is_tree || stream.shard == 0);
            let ends: Vec<End> = there.map(|stream| stream.end).collect();
            ends.into_iter().for_each(|end| self.cut(end));
        }
        let mut told = vec![false; self.shards.len()];
        for turn in 0..2_000 {
            match &mut self.cluster.roles {
                None => self.tell_to_close(&mut told),
                // As a node does: first it lets its links end.
                Some(roles) if turn == 50 => {
                    roles.close_store(self.weather.now);
                    self.close_root();
                }
                Some(_) => {}
            }
            self.turn()?;
            if !self.is_running() {
                return Ok(());
            }
            if self.is_closed() {
                let ending = Ending::of_stopped(self.has_failed(), &mut self.evidence);
                self.end(ending);
                return Ok(());
            }
            self.weather.later(Duration::from_micros(500));
        }
        self.end(Ending::Killed);
        Ok(())
    }

    /// The root of a tree closes its storage.
    fn close_root(&mut self) {
        let now = self.shown(0);
        if let (true, Some(engine)) = (self.cluster.is_tree(), &mut self.shards[0].engine) {
            engine.storage_mut().close(now);
        }
    }

    /// Whether the storages of the process that stops are closed.
    fn is_closed(&self) -> bool {
        if self.cluster.is_tree() {
            let root = self.shards[0].engine.as_ref();
            return root.is_none_or(|engine| engine.storage().is_closed());
        }
        if let Some(roles) = &self.cluster.roles {
            return roles.is_store_closed();
        }
        let mut engines = self.shards.iter().filter_map(|shard| shard.engine.as_ref());
        engines.all(|engine| engine.storage().is_closed())
    }

    /// Tells shards to close, in any order.
    fn tell_to_close(&mut self, told: &mut [bool]) {
        for (shard, told) in told.iter_mut().enumerate() {
            let now = self.shown(shard);
            let is_due = self.cluster.shards() == 1 || self.chance.coin();
            if let (false, true, Some(engine)) = (*told, is_due, &mut self.shards[shard].engine) {
                engine.storage_mut().close(now);
                *told = true;
            }
        }
    }
}
