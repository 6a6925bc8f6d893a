//! Shards of one process, joined: each uses the logs of all.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

use airmail_link::{LinkLimits, LogHomes, ShardedStorage, join};
use airmail_log::conformance::{Maker, log, spec};
use airmail_log::memory::{self, MemoryStorage};
use airmail_log::{Call, Completion, LogStorage, ReaderId, Refusal, Scope, Tag, Waker};
use airmail_model::{Extent, LogId, Mono, Now, Sequence, Wall};
use std::sync::Arc;

/// Turns after which shards that still have something to do are taken to be out of their minds.
const TURNS_MAX: usize = 100_000;

struct World {
    shards: Vec<Option<ShardedStorage<MemoryStorage>>>,
    told: Vec<Vec<Completion>>,
    now: Now,
    tags: u64,
}

impl World {
    fn new(shards: usize, limits: LinkLimits) -> World {
        let now = Now {
            mono: Mono(1_000_000_000),
            wall: Wall(1_790_000_000_000_000),
        };
        let storages = (0..shards)
            .map(|seed| memory::open(seed as u64 + 1, now).unwrap())
            .collect();
        let wakers = (0..shards).map(|_| Arc::new(|| {}) as Waker).collect();
        let shards = join(storages, LogHomes::new(shards), wakers, limits);
        World {
            told: shards.iter().map(|_| Vec::new()).collect(),
            shards: shards.into_iter().map(Some).collect(),
            now,
            tags: 0,
        }
    }

    fn shard(&mut self, shard: usize) -> &mut ShardedStorage<MemoryStorage> {
        self.shards[shard].as_mut().unwrap()
    }

    /// Polls a shard; whether anything came of it.
    fn turn(&mut self, shard: usize) -> bool {
        self.now.mono.0 += 1_000;
        let now = self.now;
        let Some(storage) = &mut self.shards[shard] else {
            return false;
        };
        let told = &mut self.told[shard];
        let before = told.len();
        let deadline = storage.poll(now, told);
        told.len() > before || deadline.is_some_and(|at| at <= now.mono)
    }

    /// Polls all shards but `stalled` until nothing more happens.
    fn settle_without(&mut self, stalled: Option<usize>) {
        let mut quiet = 0;
        for _ in 0..TURNS_MAX {
            let mut any = false;
            for shard in (0..self.shards.len()).filter(|shard| Some(*shard) != stalled) {
                any |= self.turn(shard);
            }
            // A message takes a turn of either side.
            quiet = if any { 0 } else { quiet + 1 };
            if quiet > 4 {
                return;
            }
        }
        panic!("the shards do not come to rest");
    }

    fn settle(&mut self) {
        self.settle_without(None);
    }

    fn call(&mut self, shard: usize, call: impl FnOnce(Tag) -> Call) -> Tag {
        self.tags += 1;
        let t = Tag(self.tags);
        self.shard(shard).submit(call(t));
        t
    }

    fn answer(&mut self, shard: usize, t: Tag) -> Completion {
        let told = &mut self.told[shard];
        let at = told.iter().position(|of| of.tag() == Some(t));
        told.remove(at.unwrap_or_else(|| panic!("shard {shard} has no answer under {t:?}")))
    }

    fn open(&mut self, shard: usize, log: LogId) -> Completion {
        let spec = spec(self.shard(shard).capabilities().strongest);
        let spec = Box::new(spec);
        let t = self.call(shard, |t| Call::Open { t, log, spec });
        self.settle();
        self.answer(shard, t)
    }

    fn send(&mut self, shard: usize, log: LogId, payload: &str) -> Tag {
        let batch = Maker::new(log).batch(&[("a", payload)]);
        let map = batch.map_epoch();
        self.call(shard, |t| Call::Append {
            t,
            log,
            map,
            batch,
            sole: false,
        })
    }

    fn read(&mut self, shard: usize, log: LogId) -> ReaderId {
        self.tags += 1;
        let r = ReaderId(self.tags);
        self.shard(shard).submit(Call::Read {
            r,
            log,
            from: Sequence::FIRST,
            scope: Box::new(Scope::default()),
            credit: 1 << 20,
        });
        r
    }

    /// Extents that a reader was given.
    fn extents(&self, shard: usize, reader: ReaderId) -> Vec<Extent> {
        let told = self.told[shard].iter();
        told.filter_map(|of| match of {
            Completion::Batch { r, stored } if *r == reader => Some(stored.extent),
            _ => None,
        })
        .collect()
    }
}

fn ones(numbers: impl IntoIterator<Item = u64>) -> Vec<Extent> {
    let numbers = numbers.into_iter();
    numbers
        .map(|n| Extent::starting_at(Sequence(n), 1))
        .collect()
}

fn is_appended(answer: &Completion, n: u64) -> bool {
    matches!(answer, Completion::Appended { extent, .. } if extent.first == Sequence(n))
}

/// Logs of which each shard is the home of one.
fn one_for_each(shards: usize) -> Vec<LogId> {
    let homes = LogHomes::new(shards);
    let logs = (0..shards).map(|shard| {
        let mut logs = (0..100).map(log);
        logs.find(|log| homes.home(*log) == shard).unwrap()
    });
    logs.collect()
}

#[test]
fn a_log_is_used_by_every_shard() {
    let mut world = World::new(2, LinkLimits::default());
    for log in one_for_each(2) {
        let mut readers = Vec::new();
        for shard in 0..2 {
            let opened = world.open(shard, log);
            assert!(matches!(opened, Completion::Opened { .. }), "{opened:?}");
            readers.push(world.read(shard, log));
        }
        for n in 1..=6 {
            let shard = (n % 2) as usize;
            let t = world.send(shard, log, "x");
            world.settle();
            let answer = world.answer(shard, t);
            assert!(is_appended(&answer, n), "{answer:?}");
        }
        for (shard, reader) in readers.into_iter().enumerate() {
            assert_eq!(world.extents(shard, reader), ones(1..=6));
        }
    }
}

#[test]
fn a_shard_that_stalls_stops_only_who_needs_its_logs() {
    let limits = LinkLimits {
        ring_slots: 16,
        ..LinkLimits::default()
    };
    let mut world = World::new(3, limits);
    let logs = one_for_each(3);
    for log in &logs {
        for shard in 0..3 {
            world.open(shard, *log);
        }
    }
    let stalled_reader = world.read(2, logs[0]);
    world.settle();
    let held_up: Vec<Tag> = (0..100).map(|_| world.send(0, logs[2], "x")).collect();
    let mut served = Vec::new();
    for n in 1..=100 {
        served.push((n, world.send(0, logs[1], "x"), world.send(1, logs[0], "x")));
        world.settle_without(Some(2));
    }
    for (n, one, other) in served {
        assert!(is_appended(&world.answer(0, one), n));
        assert!(is_appended(&world.answer(1, other), n));
    }
    assert!(world.told[0].iter().all(|of| of.tag() != Some(held_up[0])));
    world.settle();
    for (n, t) in (1..).zip(held_up) {
        assert!(is_appended(&world.answer(0, t), n));
    }
    assert_eq!(world.extents(2, stalled_reader), ones(1..=100));
}

#[test]
fn a_new_life_of_a_log_is_told_to_every_other_shard() {
    let mut world = World::new(3, LinkLimits::default());
    for log in one_for_each(3) {
        for shard in 0..3 {
            world.open(shard, log);
        }
        let t = world.call(1, |t| Call::Renew { t, log });
        world.settle();
        let Completion::Opened { bounds, .. } = world.answer(1, t) else {
            panic!("the new life was not begun");
        };
        for shard in 0..3 {
            let gained = std::mem::take(&mut world.told[shard]);
            let told = Completion::Gained { log, bounds };
            let expected = if shard == 1 { vec![] } else { vec![told] };
            assert_eq!(gained, expected, "shard {shard}");
        }
    }
}

#[test]
fn shards_close_in_any_order_and_store_what_others_were_promised() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
        let mut world = World::new(3, LinkLimits::default());
        let logs = one_for_each(3);
        for log in &logs {
            for shard in 0..3 {
                world.open(shard, *log);
            }
        }
        let mut sent = Vec::new();
        for shard in order {
            for log in &logs {
                sent.push((shard, world.send(shard, *log, "x")));
            }
            let now = world.now;
            world.shard(shard).close(now);
            // Some turns pass before the next one is told.
            for _ in 0..3 {
                for shard in order {
                    world.turn(shard);
                }
            }
        }
        world.settle();
        for (shard, t) in sent {
            let answer = world.answer(shard, t);
            let is_stored = matches!(answer, Completion::Appended { .. });
            assert!(is_stored, "{order:?}: shard {shard}: {answer:?}");
        }
        for shard in 0..3 {
            assert!(world.shard(shard).is_closed(), "{order:?}: shard {shard}");
        }
        let late = world.send(0, logs[1], "x");
        world.settle();
        let why = world.answer(0, late);
        let is_busy = matches!(
            why,
            Completion::Refused {
                why: Refusal::Busy { .. },
                ..
            }
        );
        assert!(is_busy, "{why:?}");
    }
}

#[test]
fn a_shard_that_has_gone_is_waited_for_by_none() {
    let mut world = World::new(2, LinkLimits::default());
    let logs = one_for_each(2);
    for log in &logs {
        world.open(0, *log);
    }
    world.settle();
    let t = world.send(0, logs[1], "x");
    world.shards[1] = None;
    world.settle();
    assert!(world.told[0].contains(&Completion::Lost { log: logs[1] }));
    let now = world.now;
    world.shard(0).close(now);
    world.settle();
    assert!(matches!(world.answer(0, t), Completion::Refused { .. }));
    assert!(world.shard(0).is_closed());
}
