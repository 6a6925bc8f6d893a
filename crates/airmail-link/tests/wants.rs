//! Readers of what is wanted, over a line that is slow, is cut and loses ranges: they are given the records of the
//! topics that are in effect, and nothing that nobody asked for.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

mod wire;

use airmail_link::LinkLimits;
use airmail_log::conformance::{Maker, log, spec};
use airmail_log::memory::{self, MemoryStorage};
use airmail_log::{
    Call, Completion, GapWhy, LogStorage, ReaderId, Scope, ScopeFilter, Tag, WantEdit,
};
use airmail_model::{Extent, Mono, Now, Sequence, TopicHash, TopicName, Wall};
use std::collections::{BTreeMap, BTreeSet};
use wire::Linked;
use wire::line::{Weather, below};

const READER: ReaderId = ReaderId(7);
const TOPICS: u64 = 6;
const STEPS: usize = 300;
const POLLS_MAX: usize = 30_000;

fn hash(topic: u64) -> TopicHash {
    TopicName::hash_of(log(0).namespace, &topic.to_string())
}

/// The owner of a reader of what is wanted, and what it knows.
struct Run {
    link: Linked<MemoryStorage>,
    now: Now,
    random: u64,
    tags: u64,
    /// Numbers of the records of each topic, as acknowledged.
    stored: BTreeMap<TopicHash, BTreeSet<Sequence>>,
    /// Topics that the owner wants, by its last edit.
    wanted: BTreeSet<TopicHash>,
    /// Topics that were wanted as of each edit that has not taken effect.
    asked: BTreeMap<u32, BTreeSet<TopicHash>>,
    effective: BTreeSet<TopicHash>,
    /// Those as of edits that have no answer any more, and may take effect all the same: of two towers one may have
    /// forgotten everything, and the other one goes on.
    passing: Vec<BTreeSet<TopicHash>>,
    has_towers: bool,
    /// Each stretch that was accounted for, and what had to be given of it.
    given: Vec<(Extent, BTreeSet<TopicHash>)>,
    edit: u32,
    next: Sequence,
    records: BTreeMap<Sequence, TopicHash>,
    lost: usize,
    refused: usize,
    left_out: usize,
}

impl Run {
    fn new(seed: u64, limits: LinkLimits, weather: Weather, has_towers: bool) -> Run {
        let now = Now {
            mono: Mono(1_000_000_000),
            wall: Wall(1_790_000_000_000_000),
        };
        let storage = memory::open(1, now).unwrap();
        let mut run = Run {
            link: if has_towers {
                Linked::by_towers(storage, limits, weather, true)
            } else {
                Linked::by_line(storage, limits, weather, true)
            },
            now,
            random: seed,
            tags: 1,
            stored: BTreeMap::new(),
            wanted: BTreeSet::new(),
            asked: BTreeMap::new(),
            effective: BTreeSet::new(),
            passing: Vec::new(),
            has_towers,
            given: Vec::new(),
            edit: 0,
            next: Sequence::FIRST,
            records: BTreeMap::new(),
            lost: 0,
            refused: 0,
            left_out: 0,
        };
        let spec = Box::new(spec(run.link.capabilities().strongest));
        run.link.submit(Call::Open {
            t: Tag(1),
            log: log(0),
            spec,
        });
        let filter = ScopeFilter::Wanted;
        run.link.submit(Call::Read {
            r: READER,
            log: log(0),
            from: Sequence::FIRST,
            scope: Box::new(Scope {
                filter,
                ..Scope::default()
            }),
            credit: 1 << 30,
        });
        run
    }

    fn below(&mut self, bound: u64) -> u64 {
        below(&mut self.random, bound)
    }

    fn publish(&mut self) {
        let topics: Vec<String> = (0..=self.below(3))
            .map(|_| self.below(TOPICS).to_string())
            .collect();
        let records: Vec<_> = topics.iter().map(|topic| (topic.as_str(), "x")).collect();
        let batch = Maker::new(log(0)).batch(&records);
        self.tags += 1;
        self.link.submit(Call::Append {
            t: Tag(self.tags),
            log: log(0),
            map: batch.map_epoch(),
            batch,
            sole: false,
        });
    }

    fn some_topics(&mut self) -> Vec<TopicHash> {
        let all = 0..TOPICS;
        all.filter(|_| self.below(3) == 0).map(hash).collect()
    }

    fn edit(&mut self) {
        let (add, drop) = (self.some_topics(), self.some_topics());
        for topic in &drop {
            self.wanted.remove(topic);
        }
        self.wanted.extend(&add);
        let more = self.below(4) == 0;
        self.want(add, drop, more);
        if more {
            self.want(Vec::new(), Vec::new(), false);
        }
    }

    fn want(&mut self, add: Vec<TopicHash>, drop: Vec<TopicHash>, more: bool) {
        self.edit += 1;
        if !more {
            self.asked.insert(self.edit, self.wanted.clone());
        }
        self.link.submit(Call::Want {
            r: READER,
            edit: self.edit,
            topics: Box::new(WantEdit { add, drop, more }),
        });
    }

    fn poll(&mut self) -> bool {
        let (out, is_quiet) = self.link.turn(&mut self.now);
        for completion in out {
            self.told(completion);
        }
        is_quiet
    }

    fn told(&mut self, completion: Completion) {
        match completion {
            Completion::Effective { edit, at, .. } => {
                let asked = self.asked.remove(&edit).expect("asked");
                assert!(self.asked.keys().all(|other| *other > edit), "in order");
                match at {
                    Some(at) => {
                        assert_eq!(at, self.next);
                        self.passing.clear();
                        self.effective = asked;
                    }
                    None => self.refused += 1,
                }
            }
            Completion::WantsLost { .. } => {
                self.lost += 1;
                let forgotten = std::mem::take(&mut self.asked).into_values();
                if self.has_towers {
                    self.passing.extend(forgotten);
                }
                let all = self.wanted.iter().copied().collect();
                self.want(all, Vec::new(), false);
            }
            Completion::Batch { stored, .. } => {
                for record in stored.batch.iter() {
                    let number = stored.base.plus(record.index.into());
                    let topic = TopicName::hash_of(log(0).namespace, record.topic_name);
                    let is_wanted = {
                        let mut sets = self.sets().chain([&self.effective]);
                        sets.any(|set| set.contains(&topic))
                    };
                    assert!(is_wanted, "{number} is not wanted");
                    assert!(
                        self.records.insert(number, topic).is_none(),
                        "{number} twice"
                    );
                }
                self.passed(stored.extent);
            }
            Completion::Gap { extent, why, .. } => {
                assert_eq!(why, GapWhy::Unused);
                self.left_out += 1;
                self.passed(extent);
            }
            Completion::Tail { next, .. } => assert_eq!(next, self.next),
            Completion::Appended { .. }
            | Completion::Opened { .. }
            | Completion::Gained { .. }
            | Completion::Lost { .. } => {}
            other => panic!("{other:?}"),
        }
    }

    /// Sets that are wanted as of each edit that may take effect next.
    fn sets(&self) -> impl Iterator<Item = &BTreeSet<TopicHash>> {
        self.asked.values().chain(&self.passing)
    }

    fn passed(&mut self, extent: Extent) {
        assert_eq!(extent.first, self.next);
        self.next = extent.next();
        let is_certain = |topic: &&TopicHash| self.sets().all(|set| set.contains(*topic));
        let certain = self.effective.iter().filter(is_certain).copied();
        self.given.push((extent, certain.collect()));
    }

    fn finish(&mut self) {
        self.link.calm();
        let mut quiet = 0;
        for _ in 0..POLLS_MAX {
            quiet = if self.poll() { quiet + 1 } else { 0 };
            if quiet > 10 {
                return;
            }
        }
        panic!("the link does not come to rest");
    }

    /// Holds what was given against what the storage has.
    fn check(mut self) -> (usize, usize) {
        assert!(self.asked.is_empty(), "{:?} without an answer", self.asked);
        let mut storage = self.link.into_storage();
        let r = ReaderId(9);
        storage.submit(Call::Read {
            r,
            log: log(0),
            from: Sequence::FIRST,
            scope: Box::default(),
            credit: u32::MAX,
        });
        let mut end = None;
        while end.is_none() {
            let mut out = Vec::new();
            storage.poll(self.now, &mut out);
            for completion in out {
                match completion {
                    Completion::Batch { r: of, stored } if of == r => {
                        for record in stored.batch.iter() {
                            let topic = TopicName::hash_of(log(0).namespace, record.topic_name);
                            let number = stored.base.plus(record.index.into());
                            self.stored.entry(topic).or_default().insert(number);
                        }
                    }
                    Completion::Tail { r: of, next } if of == r => end = Some(next),
                    _ => {}
                }
            }
        }
        assert_eq!(Some(self.next), end, "everything is accounted for");
        for (extent, effective) in &self.given {
            for topic in effective {
                let stored = self.stored.get(topic).into_iter().flatten();
                for number in stored.filter(|number| extent.contains(**number)) {
                    assert_eq!(self.records.get(number), Some(topic), "{number} is missing");
                }
            }
        }
        (self.lost, self.left_out)
    }
}

fn weather(seed: u64) -> Weather {
    Weather {
        seed,
        delay: 5,
        cuts: 30,
        cuts_max: 1_000,
        is_late: seed.is_multiple_of(2),
        holes: if seed.is_multiple_of(3) { 20 } else { 0 },
        room: 16,
    }
}

fn limits(wants: usize) -> LinkLimits {
    LinkLimits {
        window_bytes: 2_000,
        reader_bytes: 300,
        marks: 8,
        wants,
        ..LinkLimits::default()
    }
}

fn run(seed: u64, limits: LinkLimits, has_towers: bool) -> Run {
    let mut run = Run::new(seed, limits, weather(seed), has_towers);
    for _ in 0..STEPS {
        match run.below(4) {
            0 | 1 => run.publish(),
            2 => run.edit(),
            _ => {}
        }
        for _ in 0..run.below(4) {
            run.poll();
        }
    }
    run.edit();
    run.finish();
    run
}

#[test]
fn what_is_in_effect_is_given_and_nothing_that_nobody_asked_for() {
    let (mut lost, mut left_out) = (0, 0);
    for seed in 1..=200 {
        let seen = run(seed, limits(1_000), false).check();
        lost += seen.0;
        left_out += seen.1;
    }
    assert!(lost > 100 && left_out > 2_000, "{lost}, {left_out}");
}

#[test]
fn what_is_in_effect_is_given_by_whichever_of_two_towers() {
    let (mut lost, mut left_out, mut moved) = (0, 0, 0);
    for seed in 1..=200 {
        let run = run(seed, limits(1_000), true);
        moved += run.link.moved();
        let seen = run.check();
        lost += seen.0;
        left_out += seen.1;
    }
    assert!(
        left_out > 2_000 && moved > 100,
        "{lost}, {left_out}, {moved}"
    );
}

#[test]
fn an_edit_for_which_there_is_no_room_changes_nothing() {
    let mut refused = 0;
    for seed in 1..=20 {
        let mut run = Run::new(seed, limits(TOPICS as usize), weather(1), false);
        run.link.calm();
        run.want((0..3).map(hash).collect(), Vec::new(), false);
        run.wanted = (0..3).map(hash).collect();
        run.asked.insert(run.edit, run.wanted.clone());
        // Of two parts the second one is too much.
        run.want((3..5).map(hash).collect(), Vec::new(), true);
        run.want((5..20).map(hash).collect(), Vec::new(), false);
        for _ in 0..50 {
            run.publish();
            run.poll();
        }
        run.finish();
        refused += run.refused;
        assert_eq!(run.effective, run.wanted);
        run.check();
    }
    assert_eq!(refused, 20);
}
