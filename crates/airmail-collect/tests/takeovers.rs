//! Collectors that crash, lose their sources and go on sending, before a main cluster that keeps the order of
//! each sender's records within a partition, and nothing else: the order that is promised must come out. Commits
//! are refused, and answers to them come late or never: in the end everything is committed.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test panics where something is wrong")]

use airmail_collect::{
    Bounds, Collector, Effect, Event, Order, Placement, Range, Restorer, Source, Stamp, Ticket,
};
use airmail_partition::{Cluster, NodeId, Partitioner, Policy, Settings, partition_of_key};
use proptest::prelude::*;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

const SOURCES: i32 = 3;
const PARTITIONS: usize = 4;
const INSTANCES: usize = 3;
const KEYS: u64 = 5;

/// True for offsets with a record: every fifth is a marker that no reader sees.
fn is_record(offset: u64) -> bool {
    offset % 5 != 3
}

fn key(offset: u64) -> Option<[u8; 1]> {
    offset.is_multiple_of(2).then_some([(offset % KEYS) as u8])
}

/// A record on its way, or in the main cluster.
#[derive(Clone, Copy, Debug)]
struct Sent {
    source: Source,
    range: Range,
    ticket: Ticket,
}

/// One collector, with what it has sent and the main cluster has not yet: in order for each partition.
struct Instance {
    collector: Collector,
    placement: Placement,
    /// Where each of its sources is read next.
    reading: BTreeMap<Source, u64>,
    on_their_way: Vec<VecDeque<Sent>>,
}

impl Instance {
    fn new(order: Order, policy: Policy, seed: u64) -> Instance {
        let bounds = Bounds {
            records: 30,
            bytes: 10_000,
        };
        let partitioner = Partitioner::new(Settings::new(policy, seed));
        let mut placement = Placement::new(order, partitioner, ["T"]);
        let leaders = (0..PARTITIONS).map(|at| Some(NodeId(at as i32 % 3)));
        placement.arrange(&Cluster {
            nodes: (0..3).map(NodeId).collect(),
            topics: [("T".to_owned(), leaders.collect())].into(),
        });
        Instance {
            collector: Collector::new(bounds, Duration::ZERO),
            placement,
            reading: BTreeMap::new(),
            on_their_way: vec![VecDeque::new(); PARTITIONS],
        }
    }
}

struct World {
    random: SmallRng,
    instances: Vec<Instance>,
    owners: BTreeMap<Source, usize>,
    committed: BTreeMap<Source, u64>,
    /// The main cluster's partitions.
    partitions: Vec<Vec<Sent>>,
    /// Records that senders now gone had on their way: they may still come.
    ghosts: Vec<VecDeque<Sent>>,
    /// Answers to commits on their way, with the instance that gets them.
    answers: Vec<(usize, Event)>,
    /// No more trouble is made.
    calm: bool,
    clock: Duration,
}

impl World {
    fn new(order: Order, policy: Policy, seed: u64) -> World {
        World {
            random: SmallRng::seed_from_u64(seed),
            instances: (0..INSTANCES)
                .map(|at| Instance::new(order, policy, seed ^ at as u64))
                .collect(),
            owners: BTreeMap::new(),
            committed: BTreeMap::new(),
            partitions: vec![Vec::new(); PARTITIONS],
            ghosts: Vec::new(),
            answers: Vec::new(),
            calm: false,
            clock: Duration::ZERO,
        }
    }

    fn sources() -> impl Iterator<Item = Source> {
        (0..SOURCES).map(|partition| Source {
            topic: 0,
            partition,
        })
    }

    fn step(&mut self, at: usize, event: Event, fenced: bool) -> Vec<Effect> {
        self.clock += Duration::from_millis(1);
        let mut effects = Vec::new();
        self.instances[at]
            .collector
            .step(self.clock, event, &mut effects);
        for effect in &effects {
            if let Effect::Commit { source, next } = *effect {
                self.commit(at, source, next, fenced);
            }
        }
        effects
    }

    /// The group commits, or refuses as in a rebalance; its answer comes at once, late or never.
    fn commit(&mut self, at: usize, source: Source, next: u64, fenced: bool) {
        let refused = fenced || (!self.calm && self.random.random_bool(0.3));
        if !refused {
            let before = self.committed.insert(source, next);
            assert!(
                before <= Some(next),
                "{source:?} goes back from {before:?} to {next}"
            );
        }
        let answer = if refused {
            Event::CommitFailed { source, next }
        } else {
            Event::Committed { source, next }
        };
        match self.random.random_range(0..10) {
            0 if !self.calm => {}
            1..=4 if !self.calm => self.answers.push((at, answer)),
            _ => drop(self.step(at, answer, false)),
        }
    }

    fn assign(&mut self, source: Source, at: usize) {
        let committed = self.committed.get(&source).copied();
        self.owners.insert(source, at);
        self.instances[at]
            .reading
            .insert(source, committed.unwrap_or(0));
        self.step(at, Event::Assigned { source, committed }, false);
    }

    /// The owner of a source reads its next record, unless it is paused.
    fn read(&mut self, source: Source, end: u64) {
        let at = self.owners[&source];
        let instance = &mut self.instances[at];
        let reading = instance.reading.get_mut(&source).unwrap();
        while *reading < end && !is_record(*reading) {
            *reading += 1;
        }
        let number = *reading;
        if number >= end || instance.collector.is_paused(source) {
            return;
        }
        *reading += 1;
        let took = Event::Took {
            source,
            number,
            bytes: 100,
        };
        let effects = self.step(at, took, false);
        let Some(Effect::Send(ticket, range)) = effects.first() else {
            panic!("{effects:?}");
        };
        let (clock, key) = (self.clock, key(number));
        let instance = &mut self.instances[at];
        let key = key.as_ref().map(<[u8; 1]>::as_slice);
        let place = instance.placement.place(source, key, 100, clock).unwrap();
        instance.on_their_way[place.partition.0 as usize].push_back(Sent {
            source,
            range: *range,
            ticket: *ticket,
        });
    }

    /// The first record on the way to a partition arrives, and perhaps its ack.
    fn arrive(&mut self, at: usize, partition: usize, answered: bool) {
        if let Some(sent) = self.instances[at].on_their_way[partition].pop_front() {
            self.partitions[partition].push(sent);
            if answered {
                let owned = self.owners.get(&sent.source) == Some(&at);
                self.step(at, Event::Acknowledged(sent.ticket), !owned);
            }
        }
    }

    /// A source goes to another: told, so that the first commits what it has; or untold, so that the first
    /// goes on sending and hears later.
    fn hand_over(&mut self, source: Source, to: usize) {
        let from = self.owners[&source];
        if self.random.random_bool(0.5) {
            self.step(from, Event::Revoked(source), false);
            self.assign(source, to);
        } else if from != to {
            self.assign(source, to);
            self.step(from, Event::Revoked(source), true);
        }
    }

    /// A collector is killed, and begins anew without a source. What it had sent may still arrive.
    fn kill(&mut self, at: usize, order: Order, policy: Policy) {
        let killed = std::mem::replace(&mut self.instances[at], Instance::new(order, policy, 9));
        for (partition, queue) in killed.on_their_way.into_iter().enumerate() {
            if self.ghosts.len() <= partition {
                self.ghosts.resize_with(PARTITIONS, VecDeque::new);
            }
            // Some of it does not.
            let arriving = self.random.random_range(0..=queue.len());
            self.ghosts[partition].extend(queue.into_iter().take(arriving));
        }
        let orphans: Vec<Source> = self
            .owners
            .iter()
            .filter(|(_, owner)| **owner == at)
            .map(|(source, _)| *source)
            .collect();
        for source in orphans {
            let to = self.random.random_range(0..INSTANCES);
            self.assign(source, to);
        }
    }

    fn run(&mut self, steps: usize, end: u64, order: Order, policy: Policy) {
        for source in World::sources() {
            let to = self.random.random_range(0..INSTANCES);
            self.assign(source, to);
        }
        for _ in 0..steps {
            let source = Source {
                topic: 0,
                partition: self.random.random_range(0..SOURCES),
            };
            let at = self.random.random_range(0..INSTANCES);
            let partition = self.random.random_range(0..PARTITIONS);
            match self.random.random_range(0..100) {
                0 => self.kill(at, order, policy),
                1..=2 => self.hand_over(source, at),
                3..=5 => drop(self.step(at, Event::Tick, false)),
                6..=50 => self.read(source, end),
                51..=60 => {
                    let ghost = self.ghosts.get_mut(partition).and_then(VecDeque::pop_front);
                    self.partitions[partition].extend(ghost);
                }
                61..=63 if !self.answers.is_empty() => {
                    let which = self.random.random_range(0..self.answers.len());
                    let (to, answer) = self.answers.swap_remove(which);
                    self.step(to, answer, false);
                }
                _ => self.arrive(at, partition, true),
            }
        }
    }

    /// No more trouble: everything is read and arrives, and what was never answered has been long ago.
    fn settle(&mut self, end: u64) {
        self.calm = true;
        for (to, answer) in std::mem::take(&mut self.answers) {
            self.step(to, answer, false);
        }
        for _ in 0..100_000 {
            self.clock += Duration::from_secs(1);
            for source in World::sources() {
                self.read(source, end);
            }
            for at in 0..INSTANCES {
                for partition in 0..PARTITIONS {
                    self.arrive(at, partition, true);
                }
                self.step(at, Event::Tick, false);
            }
            let at_end = |instance: &Instance, source: &Source| {
                instance.reading[source] >= end && instance.collector.is_settled(*source)
            };
            let committed = |instance: &Instance, source: &Source| {
                let mut sources = instance.collector.sources();
                let (_, next) = sources.find(|(own, _)| own == source).unwrap();
                next == self.committed.get(source).copied().unwrap_or(0)
            };
            let done = |(source, at): (&Source, &usize)| {
                let instance = &self.instances[*at];
                at_end(instance, source) && committed(instance, source)
            };
            if self.owners.iter().all(done) {
                return;
            }
        }
        panic!("it does not settle: {:?} are committed", self.committed);
    }
}

/// The numbers of each source in a partition, repeats left out.
fn firsts(partition: &[Sent]) -> BTreeMap<Source, Vec<u64>> {
    let mut firsts: BTreeMap<Source, Vec<u64>> = BTreeMap::new();
    for sent in partition {
        let numbers = firsts.entry(sent.source).or_default();
        if !numbers.contains(&sent.range.number) {
            numbers.push(sent.range.number);
        }
    }
    firsts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_reader_restores_every_source_whole_in_order_and_once(
        seed: u64,
        order in proptest::sample::select(vec![Order::Spread, Order::Pinned]),
        policy in proptest::sample::select(Policy::ALL.to_vec()),
    ) {
        let end = 150;
        let mut world = World::new(order, policy, seed);
        world.run(2_000, end, order, policy);
        world.settle(end);
        let mut restorer = Restorer::new();
        let mut restored = Vec::new();
        let mut left: Vec<VecDeque<Sent>> =
            world.partitions.iter().map(|sent| sent.iter().copied().collect()).collect();
        while left.iter().any(|queue| !queue.is_empty()) {
            let partition = world.random.random_range(0..PARTITIONS);
            if let Some(sent) = left[partition].pop_front() {
                let source = format!("near/T/{}", sent.source.partition);
                let stamp = Stamp { source, range: sent.range };
                restorer.take(&stamp, (sent.source, sent.range.number), &mut restored);
            }
        }
        prop_assert_eq!(restorer.waiting(), 0);
        let whole: Vec<u64> = (0..end).filter(|offset| is_record(*offset)).collect();
        for source in World::sources() {
            let of_source = restored.iter().filter(|(from, _)| *from == source);
            let numbers: Vec<u64> = of_source.map(|(_, number)| *number).collect();
            prop_assert_eq!(&numbers, &whole);
        }
    }

    #[test]
    fn pinned_sources_stand_in_order_in_their_partition(seed: u64) {
        let mut world = World::new(Order::Pinned, Policy::Adaptive, seed);
        world.run(2_000, 150, Order::Pinned, Policy::Adaptive);
        for (at, partition) in world.partitions.iter().enumerate() {
            for (source, numbers) in firsts(partition) {
                prop_assert_eq!(source.partition as usize % PARTITIONS, at);
                prop_assert!(numbers.is_sorted(), "{:?}: {:?}", source, numbers);
            }
        }
    }

    #[test]
    fn records_of_a_key_stand_in_order_in_their_partition_under_every_policy(
        seed: u64,
        policy in proptest::sample::select(Policy::ALL.to_vec()),
    ) {
        let mut world = World::new(Order::Spread, policy, seed);
        world.run(2_000, 150, Order::Spread, policy);
        for (at, partition) in world.partitions.iter().enumerate() {
            let keyed: Vec<Sent> =
                partition.iter().copied().filter(|sent| key(sent.range.number).is_some()).collect();
            for numbers in firsts(&keyed).values() {
                for wanted in 0..KEYS {
                    let of_key: Vec<u64> =
                        numbers.iter().copied().filter(|number| number % KEYS == wanted).collect();
                    prop_assert!(of_key.is_sorted(), "{:?}", of_key);
                    let place = partition_of_key(&[wanted as u8], PARTITIONS as u32);
                    prop_assert!(of_key.is_empty() || place.0 as usize == at);
                }
            }
        }
    }
}
