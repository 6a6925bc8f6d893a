//! The node's process: its start, its turns, its streams' other ends.

use super::cluster::{Roles, Storage};
use super::moves::Moves;
use super::node_storage::{NodeDisk, NodeStorage};
use super::shard::Shard;
use super::{End, Space, Stream, World};
use crate::census::Kind;
use crate::entropy::Entropy;
use crate::files::{SimFiles, a_while};
use crate::invariants::bounded::Budget;
use crate::invariants::{Checked, Violation};
use crate::plant::Plant;
use crate::tuning;
use airmail_broker::{AllowAll, ClientInput, Engine, Principal, SessionId, TurnOutput};
use airmail_client::core::{NodeChoice, Purpose};
use airmail_log::journal::JournalStorage;
use airmail_log::{LogStorage as _, StorageTraits};
use airmail_model::frame::{DELIVERY_OVERHEAD_BYTES, Nodes, Reply, Request};
use airmail_model::verdict::Roles as HeldRoles;
use airmail_model::{LogMap, Mono};
use std::time::Duration;

/// Rounds within one moment after which a node is taken to go round for ever. Where hundreds of late subscribers
/// take turns with few readers over short rings, more than 2,000 are needed.
const ROUNDS_MAX: u32 = 50_000;

/// Longest time until a client tries another gateway, in microseconds.
const ANOTHER_MICROS_MAX: u64 = 50_000;

impl World {
    /// Starts the process that has the disks on their contents.
    pub(super) fn boot(&mut self) -> Checked {
        self.boots += 1;
        if self.cluster.writers.is_some() {
            return self.start_writers();
        }
        let (mut journals, mut chances) = (Vec::new(), Vec::new());
        for disk in 0..self.cluster.disks() {
            let mut chance = self.chance.fork();
            journals.push(self.open_disk(disk, &mut chance)?);
            chances.push(chance);
        }
        self.evidence.count(Kind::Started);
        self.evidence.note(format_args!("start {}", self.boots));
        if self.cluster.roles.is_some() {
            let now = self.weather.now.mono;
            for (journal, chance) in journals.into_iter().zip(chances) {
                self.start_store(journal, chance, now)?;
            }
            return Ok(());
        }
        let storages = self.cluster.join(journals);
        for (shard, (storage, chance)) in storages.into_iter().zip(chances).enumerate() {
            self.start_engine(shard, storage, chance)?;
        }
        Ok(())
    }

    /// Starts all nodes that append to the same logs.
    fn start_writers(&mut self) -> Checked {
        self.evidence.count(Kind::Started);
        for shard in 0..self.shards.len() {
            let chance = self.chance.fork();
            if let Some(writers) = &mut self.cluster.writers {
                if writers.is_late(shard) {
                    self.evidence.count(Kind::NodeJoined);
                    continue;
                }
                let storage = writers.start(shard);
                let storage = self.cluster.audited(storage, shard);
                self.start_engine(shard, storage, chance)?;
            }
        }
        Ok(())
    }

    /// Starts the process that has the disk: the storage behind towers, or the root of a tree.
    fn start_store(&mut self, journal: NodeDisk, chance: Entropy, now: Mono) -> Checked {
        if self.cluster.is_tree() {
            if let Some(storage) = self.cluster.start_root(journal, now) {
                let storage = self.cluster.audited(storage, 0);
                self.start_engine(0, storage, chance)?;
            }
        } else {
            self.cluster.start_store(journal);
        }
        Ok(())
    }

    /// Opens the journal of a shard, or its two.
    fn open_disk(&mut self, shard: usize, chance: &mut Entropy) -> Result<NodeDisk, Violation> {
        let first = self.open_journal(shard, (shard, chance))?;
        let Some(moves) = &mut self.moves else {
            return Ok(NodeDisk::new(first, None));
        };
        let mut further = moves.fork();
        let disk = self.cluster.disks() + shard;
        let far = self.open_journal(shard, (disk, &mut further))?;
        if let Some(moves) = &mut self.moves {
            moves.traits = Some(StorageTraits::of(&far.capabilities()));
        }
        Ok(NodeDisk::new(first, [(Moves::far(), far)]))
    }

    fn open_journal(
        &self,
        shard: usize,
        (disk, chance): (usize, &mut Entropy),
    ) -> Result<JournalStorage<SimFiles>, Violation> {
        let files = self.weather.machine.boot(disk);
        let mut config = tuning::journal(chance, self.plant);
        config.renewed = self.restore.new_lives;
        let journal = JournalStorage::open(files, config, self.shown(shard));
        journal.map_err(|error| {
            let detail = format!("start {} of disk {disk} failed: {error}", self.boots);
            Violation::new("G1 what was written can be opened", detail)
        })
    }

    fn start_engine(&mut self, shard: usize, storage: Storage, mut chance: Entropy) -> Checked {
        let mut config = tuning::shard(&mut chance, self.plant);
        config.interest = self.cluster.interest();
        if let Some(moves) = &self.moves {
            moves.set(&mut config);
        }
        let engine = Engine::new(
            config,
            storage,
            Box::new(AllowAll),
            Box::new(AllowAll),
            self.shown(shard),
        );
        let engine = engine.map_err(|error| {
            let detail = format!("start {} of shard {shard} failed: {error}", self.boots);
            Violation::new("a shard can honour a journal", detail)
        })?;
        self.shards[shard].engine = Some(engine);
        Ok(())
    }

    /// Starts gateways and towers that are due, and tells gateways the news of towers.
    pub(super) fn start_nodes(&mut self) -> Checked {
        let now = self.weather.now.mono;
        self.cluster.start_towers(now, &mut self.evidence);
        for gateway in self.cluster.due_gateways(now) {
            let chance = self.chance.fork();
            if let Some(storage) = self.cluster.start_gateway(gateway, now) {
                let storage = self.cluster.audited(storage, gateway);
                self.start_engine(gateway, storage, chance)?;
                self.evidence
                    .note(format_args!("{} gateway {gateway} starts", now.0));
            }
        }
        for (gateway, live) in self.cluster.news(now, &mut self.evidence) {
            let engine = self.shards[gateway].engine.as_mut();
            let storage = engine.map(|engine| engine.storage_mut().inner_mut());
            if let Some(NodeStorage::Gateway(storage)) = storage {
                storage.set_live(&live);
            }
            let streams: Vec<usize> = self.streams.values().map(|stream| stream.shard).collect();
            if let Some(nodes) = self.cluster.nodes(gateway, &streams, now) {
                self.tell_nodes(gateway, &nodes);
            }
        }
        Ok(())
    }

    /// The shard to which a stream goes, if it gets there: any, or the one that the client chooses.
    fn choose(&mut self, end: End, open: &[usize]) -> Option<usize> {
        let now = self.weather.now.mono;
        if let Some(mut choice) = self.choice_of(end) {
            let chosen = self.cluster.arrive(&mut choice, open, now);
            let pause = Duration::from_micros(self.chance.between(1, ANOTHER_MICROS_MAX));
            let link = self.link(end);
            link.choice = Some(choice);
            if chosen.is_none() {
                link.retry = now.plus(pause);
            }
            return chosen;
        }
        Some(match open {
            [shard] => *shard,
            several => several[self.chance.index(several.len())],
        })
    }

    /// A client's choice of gateways, where these are processes of their own.
    fn choice_of(&mut self, end: End) -> Option<NodeChoice> {
        let purpose = match end {
            End::Publisher(_) => Purpose::Publish,
            End::Client(_) => Purpose::Subscribe,
        };
        match self.link(end).choice.take() {
            None => self.cluster.new_choice(purpose, &mut self.chance),
            known => known,
        }
    }

    /// Has every client know all gateways, as the gateways of a cluster that is well tell them in time.
    pub(super) fn tell_all_of_gateways(&mut self) {
        let now = self.weather.now.mono;
        let streams: Vec<usize> = self.streams.values().map(|stream| stream.shard).collect();
        let Some(nodes) = self.cluster.nodes(0, &streams, now) else {
            // Input: shards of one process, of which clients do not choose.
            return;
        };
        let publishers = (0..self.publishers.len()).map(End::Publisher);
        let clients = (0..self.clients.len()).map(End::Client);
        for end in publishers.chain(clients).collect::<Vec<End>>() {
            if let Some(mut choice) = self.choice_of(end) {
                choice.learn(&nodes);
                self.link(end).choice = Some(choice);
            }
        }
    }

    /// Tells the clients of a gateway which others live; those that are to go elsewhere do.
    fn tell_nodes(&mut self, gateway: usize, nodes: &Nodes) {
        let now = self.weather.now.mono;
        let streams = self.streams.values();
        let there = streams.filter(|stream| stream.shard == gateway);
        let there: Vec<End> = there.map(|stream| stream.end).collect();
        let address = Roles::address(gateway);
        for end in there {
            let Some(choice) = &mut self.link(end).choice else {
                // Input: shards of one process, of which clients do not choose.
                continue;
            };
            choice.told(now, &address, nodes);
            if choice.target(&address).is_some() {
                choice.moved(now, &address);
                self.evidence.count(Kind::ClientMoved);
                self.leave(end);
            }
        }
    }

    /// Opens the streams that are due.
    pub(super) fn connect(&mut self) {
        if self.is_ready() {
            // As the node itself: every log has been opened, so each has begun its new life.
            self.restore.new_lives = false;
        }
        let open = (0..self.shards.len())
            .filter(|shard| self.shards[*shard].is_ready() && self.is_awake(*shard));
        let open: Vec<usize> = open.collect();
        if open.is_empty() {
            return;
        }
        let waits = self.restore.publishers_wait.is_some();
        let publishers = (0..self.publishers.len()).filter(|_| !waits);
        let publishers = publishers.map(End::Publisher);
        let ends: Vec<End> = publishers
            .chain((0..self.clients.len()).map(End::Client))
            .collect();
        for end in ends {
            let credit = match end {
                End::Publisher(_) => 0,
                End::Client(at) => self.clients[at].credit,
            };
            let link = self.link(end);
            let (is_open, retry) = (link.session.is_some(), link.retry);
            if is_open || retry > self.weather.now.mono {
                continue;
            }
            let Some(shard) = self.choose(end, &open) else {
                // Input: a client that has come to a gateway which is not there.
                continue;
            };
            self.last_session += 1;
            let session = SessionId(self.last_session);
            let before = self.link(end).open(session, shard);
            if before.is_some_and(|before| before != shard) {
                self.evidence.count(Kind::StreamElsewhere);
            }
            let budget = Budget::new(credit);
            let stream = Stream { end, shard, budget };
            self.streams.insert(session, stream);
            let input = ClientInput::Opened {
                session,
                principal: Principal::default(),
                credit,
            };
            self.input(shard, input);
            if let End::Client(at) = end {
                let roles = self.clients[at].roles.iter().copied();
                let request = Request::Roles(HeldRoles::of(roles));
                self.input(shard, ClientInput::Request { session, request });
            }
            match end {
                End::Publisher(at) => {
                    let core = &mut self.publishers[at].core;
                    moved_maps(&self.spaces).for_each(|map| core.set_map(map.clone()));
                    core.connected();
                }
                End::Client(at) => {
                    let client = &mut self.clients[at];
                    moved_maps(&self.spaces).for_each(|map| client.core.set_map(map));
                    client.connected();
                }
            }
            self.evidence.note(format_args!(
                "{} {end:?} has session {} of shard {shard}",
                self.weather.now.mono.0, session.0
            ));
        }
    }

    /// Tells a shard what has happened to one of its streams, or asks it something.
    pub(super) fn input(&mut self, shard: usize, input: ClientInput) {
        let now = self.shown(shard);
        if let Some(engine) = &mut self.shards[shard].engine {
            engine.input(now, input);
        }
    }

    /// Lets the disks and the shards go on until none that is awake has anything to do now.
    pub(super) fn turn(&mut self) -> Checked {
        for shard in 0..self.shards.len() {
            self.shards[shard].is_awake = self.is_awake(shard) && !self.cluster.dozes();
        }
        self.turn_of_awake()
    }

    /// Lets the shards go on of which it was said that they are awake.
    pub(super) fn turn_of_awake(&mut self) -> Checked {
        let now = self.weather.now.mono;
        let awake: Vec<bool> = self.shards.iter().map(|shard| shard.is_awake).collect();
        self.cluster.wake_nodes(now, &awake);
        let mut out = TurnOutput::default();
        for _ in 0..ROUNDS_MAX {
            for mut disk in self.weather.machine.disks() {
                disk.advance(now);
            }
            self.cluster.pass(now, &mut self.evidence);
            if !self.is_running() && self.cluster.roles.is_none() {
                return Ok(());
            }
            let mut busy = self.nodes_turn()?;
            for shard in 0..self.shards.len() {
                if self.shards[shard].is_awake {
                    busy |= self.shard_turn(shard, &mut out)?;
                }
            }
            if let Some(writers) = &mut self.cluster.writers {
                writers.read([], &mut self.evidence.ledger)?;
            }
            let mut awake = (0..self.shards.len()).filter(|shard| self.shards[*shard].is_awake);
            if !busy && !awake.any(|shard| self.cluster.has_due(shard)) {
                return Ok(());
            }
        }
        let wakes: Vec<_> = self.shards.iter().map(|shard| shard.wake).collect();
        let detail = format!("the node is never done in one moment; it wants {wakes:?}");
        Err(Violation::new("liveness", detail))
    }

    /// A turn of the towers and the storage behind them; whether any has more to do now.
    fn nodes_turn(&mut self) -> Result<bool, Violation> {
        if self.cluster.roles.is_none() {
            return Ok(false);
        }
        let busy = self.cluster.turn_nodes(self.weather.now);
        let now = self.weather.now.mono;
        self.cluster.turn_places(now, &mut self.evidence)?;
        let mut has_done = false;
        for mut disk in self.weather.machine.disks() {
            if let Some(violation) = disk.take_violation() {
                return Err(violation);
            }
            has_done |= disk.has_done();
        }
        Ok(busy || has_done && self.cluster.is_store_awake())
    }

    /// A turn of a shard; whether it has more to do now.
    fn shard_turn(&mut self, shard: usize, out: &mut TurnOutput) -> Result<bool, Violation> {
        let shown = self.shown(shard);
        let Shard { engine, wake, .. } = &mut self.shards[shard];
        let Some(engine) = engine else {
            return Ok(false);
        };
        *wake = engine.turn(shown, out);
        let again = wake.is_some_and(|wake| wake <= shown.mono);
        if let Some(violation) = engine.storage_mut().take_violation() {
            return Err(violation);
        }
        let mut busy = again;
        if self.cluster.is_one_process() {
            let further = self.moves.is_some().then(|| self.cluster.disks() + shard);
            for disk in [shard].into_iter().chain(further) {
                let mut disk = self.weather.machine.disk_of(disk);
                if let Some(violation) = disk.take_violation() {
                    return Err(violation);
                }
                busy |= disk.has_done();
            }
        }
        for (id, outcome) in out.outcomes.drain(..) {
            self.evidence
                .note(format_args!("{} {id:?} {outcome:?}", shown.mono.0));
            self.outcome(shard, id, outcome)?;
        }
        for (session, reply) in out.replies.drain(..) {
            self.reply(session, reply)?;
        }
        self.closed.retain(|_, of| *of != shard);
        Ok(busy)
    }

    fn reply(&mut self, session: SessionId, mut reply: Reply) -> Checked {
        if self.closed.contains_key(&session) {
            return Ok(());
        }
        let Some(Stream { end, budget, .. }) = self.streams.get_mut(&session) else {
            let detail = format!("session {} is closed, and is told of {reply:?}", session.0);
            return Err(Violation::new("G2 nothing comes after the end", detail));
        };
        self.heard += u64::from(!matches!(reply, Reply::Mark { .. }));
        let note = super::traffic::brief(&reply);
        self.evidence.note(format_args!(
            "{} {end:?} <- {note}",
            self.weather.now.mono.0
        ));
        if let Reply::Delivery(delivery) = &mut reply {
            let bytes = delivery.body.len() as u64 + u64::from(DELIVERY_OVERHEAD_BYTES);
            budget.spend(delivery.log.lane, bytes, &format!("{end:?}"))?;
            if self.plant == Some(Plant::RangeOffByOne) {
                delivery.last = delivery.last.plus(1);
            }
        }
        if let Reply::Expired(expired) = &reply {
            budget.go_beside(expired.cost().into());
        }
        let link = match *end {
            End::Publisher(at) => &mut self.publishers[at].link,
            End::Client(at) => &mut self.clients[at].link,
        };
        let is_clock = matches!(reply, Reply::Clock { .. });
        if !is_clock && self.chance.chance(self.weather.swarm.answers_late) {
            link.dawdle(self.weather.now.mono.plus(a_while(&mut self.chance)));
            let publisher = matches!(end, End::Publisher(_));
            self.evidence.add(Kind::AnsweredLate, u64::from(publisher));
        }
        link.reply(
            self.weather.now.mono,
            self.weather.swarm.net_delay,
            if is_clock {
                &mut self.clock_chance
            } else {
                &mut self.chance
            },
            reply,
        );
        Ok(())
    }
}

/// Present maps of the namespaces that may have been moved, of which the node tells a client that comes.
fn moved_maps(spaces: &[Space]) -> impl Iterator<Item = &LogMap> {
    let moved = spaces.iter().filter_map(|space| space.moved.as_ref());
    moved.map(|moved| &moved.map)
}
