//! Readers of a tree's leaves: what they want comes down once, whoever wants it, and nobody waits for another.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

mod wire;

use airmail_link::{CacheLimits, LinkLimits};
use airmail_log::conformance::{Maker, log, spec};
use airmail_log::memory::{self, MemoryStorage};
use airmail_log::{
    Call, Completion, GapWhy, LogStorage, ReaderId, Refusal, Scope, ScopeFilter, Tag,
};
use airmail_model::{Mono, Now, Sequence, TopicName, Wall};
use std::collections::BTreeMap;
use wire::line::Weather;
use wire::tree::Treed;

/// Polls after which something that has not happened never will.
const POLLS_MAX: usize = 20_000;
const PAYLOAD_BYTES: usize = 1_000;

/// Owners of the leaves of a tree.
struct Owners {
    tree: Treed<MemoryStorage>,
    now: Now,
    last: u64,
    /// By leaf and reader: numbers of records, in order, and marks of where the tail is.
    given: BTreeMap<(usize, ReaderId), Vec<u64>>,
    tails: BTreeMap<(usize, ReaderId), Vec<u64>>,
    ended: BTreeMap<(usize, ReaderId), Option<Refusal>>,
    answers: BTreeMap<Tag, Completion>,
}

impl Owners {
    fn new(depth: usize, leaves: usize, cache_bytes: u64) -> Owners {
        let now = Now {
            mono: Mono(1_000_000_000),
            wall: Wall(1_790_000_000_000_000),
        };
        let weather = Weather::calm(1_000);
        let cache = CacheLimits {
            bytes: cache_bytes,
            fetch_bytes: 16_000,
            ..CacheLimits::default()
        };
        let limits = (LinkLimits::default(), cache);
        let storage = memory::open(1, now).unwrap();
        let mut owners = Owners {
            tree: Treed::with_leaves(storage, (depth, leaves), limits, weather),
            now,
            last: 0,
            given: BTreeMap::new(),
            tails: BTreeMap::new(),
            ended: BTreeMap::new(),
            answers: BTreeMap::new(),
        };
        for leaf in 0..leaves {
            let spec = Box::new(spec(owners.tree.capabilities().strongest));
            owners.ask(leaf, |t| Call::Open {
                t,
                log: log(0),
                spec,
            });
        }
        owners
    }

    fn submit(&mut self, leaf: usize, call: Call) {
        self.tree.leaves[leaf].submit(call);
    }

    fn ask(&mut self, leaf: usize, call: impl FnOnce(Tag) -> Call) -> Completion {
        self.last += 1;
        let t = Tag(self.last);
        self.submit(leaf, call(t));
        for _ in 0..POLLS_MAX {
            self.turn();
            if let Some(answer) = self.answers.remove(&t) {
                return answer;
            }
        }
        panic!("no answer");
    }

    /// Appends batches of one record each of a topic.
    fn append(&mut self, batches: usize, topic: &str) {
        let payload = "x".repeat(PAYLOAD_BYTES);
        for _ in 0..batches {
            let batch = Maker::new(log(0)).batch(&[(topic, &payload)]);
            let map = batch.map_epoch();
            let log = log(0);
            let answer = self.ask(0, |t| Call::Append {
                t,
                log,
                map,
                batch,
                sole: false,
            });
            assert!(matches!(answer, Completion::Appended { .. }), "{answer:?}");
        }
    }

    fn read(&mut self, leaf: usize, from: u64, scope: Scope, credit: u32) -> ReaderId {
        self.last += 1;
        let r = ReaderId(self.last);
        self.submit(
            leaf,
            Call::Read {
                r,
                log: log(0),
                from: Sequence(from),
                scope: Box::new(scope),
                credit,
            },
        );
        r
    }

    fn read_all(&mut self, leaf: usize, from: u64) -> ReaderId {
        self.read(leaf, from, Scope::default(), u32::MAX)
    }

    fn turn(&mut self) -> bool {
        let (told, is_quiet) = self.tree.turn(&mut self.now);
        for (leaf, told) in told.into_iter().enumerate() {
            for completion in told {
                self.take(leaf, completion);
            }
        }
        is_quiet
    }

    fn take(&mut self, leaf: usize, completion: Completion) {
        if let Some(t) = completion.tag() {
            self.answers.insert(t, completion);
            return;
        }
        let Some(key) = completion.reader().map(|r| (leaf, r)) else {
            return;
        };
        match completion {
            Completion::Batch { stored, .. } => {
                let records = stored.batch.iter();
                let numbers = records.map(|record| stored.base.plus(record.index.into()).0);
                self.given.entry(key).or_default().extend(numbers);
            }
            Completion::Gap { why, .. } => assert_eq!(why, GapWhy::Unused),
            Completion::Tail { next, .. } => self.tails.entry(key).or_default().push(next.0),
            Completion::Ended { why, .. } => {
                self.ended.insert(key, why);
            }
            other => panic!("{other:?}"),
        }
    }

    /// Polls until nothing comes any more.
    fn settle(&mut self) {
        let mut quiet = 0;
        for _ in 0..POLLS_MAX {
            quiet = if self.turn() { quiet + 1 } else { 0 };
            if quiet > 50 {
                return;
            }
        }
        panic!("it does not settle");
    }

    fn given(&self, leaf: usize, r: ReaderId) -> &[u64] {
        self.given.get(&(leaf, r)).map_or(&[], Vec::as_slice)
    }

    fn last_tail(&self, leaf: usize, r: ReaderId) -> Option<u64> {
        self.tails.get(&(leaf, r))?.last().copied()
    }

    /// Batches that have come down to each node: the leaves first.
    fn fetched(&self) -> Vec<u64> {
        let payload = "x".repeat(PAYLOAD_BYTES);
        let batch = Maker::new(log(0)).batch(&[("a", &payload)]);
        let each = batch.bytes().len() as u64;
        let bytes = self.tree.fetched_bytes();
        bytes.iter().map(|bytes| bytes / each).collect()
    }
}

fn numbers(from: u64, to: u64) -> Vec<u64> {
    (from..=to).collect()
}

#[test]
fn what_many_follow_comes_down_each_link_once() {
    let mut owners = Owners::new(2, 2, 1 << 20);
    let readers: Vec<(usize, ReaderId)> = [0, 0, 1, 1]
        .iter()
        .map(|leaf| (*leaf, owners.read_all(*leaf, 1)))
        .collect();
    owners.settle();
    owners.append(50, "a");
    owners.settle();
    for (leaf, r) in readers {
        assert_eq!(owners.given(leaf, r), numbers(1, 50));
        assert_eq!(owners.last_tail(leaf, r), Some(51));
    }
    // Of two leaves and the node between.
    assert_eq!(owners.fetched(), [50, 50, 50]);
}

#[test]
fn who_comes_later_is_given_what_is_in_memory_and_the_root_is_asked_for_the_rest() {
    let mut owners = Owners::new(1, 1, 20_000);
    owners.append(50, "a");
    let first = owners.read_all(0, 31);
    owners.settle();
    assert_eq!(owners.given(0, first), numbers(31, 50));
    let of_first = owners.fetched()[0];
    let late = owners.read_all(0, 36);
    owners.settle();
    assert_eq!(owners.given(0, late), numbers(36, 50));
    assert_eq!(owners.fetched()[0], of_first, "it was in memory");
    let earlier = owners.read_all(0, 1);
    owners.settle();
    assert_eq!(owners.given(0, earlier), numbers(1, 50));
    assert_eq!(owners.last_tail(0, earlier), Some(51));
}

#[test]
fn readers_of_the_same_history_have_it_fetched_once() {
    let mut owners = Owners::new(2, 2, 1 << 20);
    owners.append(100, "a");
    let mut readers = Vec::new();
    for leaf in [0, 1] {
        for from in [1, 2, 3] {
            readers.push((leaf, from, owners.read_all(leaf, from)));
        }
    }
    owners.settle();
    for (leaf, from, r) in readers {
        assert_eq!(owners.given(leaf, r), numbers(from, 100));
    }
    // Some is under way when two of them meet.
    let fetched = owners.fetched();
    assert!(fetched.iter().all(|batches| *batches <= 150), "{fetched:?}");
}

#[test]
fn who_takes_nothing_holds_up_nobody_and_goes_on_where_it_was() {
    let mut owners = Owners::new(1, 1, 10_000);
    let still = owners.read(0, 1, Scope::default(), 1);
    let live = owners.read_all(0, 1);
    owners.settle();
    owners.append(100, "a");
    owners.settle();
    assert_eq!(owners.given(0, live), numbers(1, 100));
    assert_eq!(owners.given(0, still), [1]);
    let bytes = u32::MAX;
    owners.submit(0, Call::Credit { r: still, bytes });
    owners.settle();
    assert_eq!(owners.given(0, still), numbers(1, 100));
    owners.append(5, "a");
    owners.settle();
    assert_eq!(owners.given(0, still), numbers(1, 105));
}

#[test]
fn what_is_in_memory_is_given_while_the_parent_is_out_of_reach() {
    let mut owners = Owners::new(1, 1, 1 << 20);
    owners.append(20, "a");
    let before = owners.read_all(0, 1);
    owners.settle();
    // Down for good: it is cut again whenever it is there.
    for _ in 0..20 {
        owners.tree.line(0).cut();
        owners.turn();
    }
    let r = owners.read_all(0, 5);
    for _ in 0..20 {
        owners.tree.line(0).cut();
        owners.turn();
    }
    assert_eq!(owners.given(0, r), numbers(5, 20));
    owners.settle();
    owners.append(1, "a");
    owners.settle();
    for (r, from) in [(before, 1), (r, 5)] {
        assert_eq!(owners.given(0, r), numbers(from, 21));
    }
}

#[test]
fn a_topic_is_read_by_the_roots_index_and_from_memory_at_the_tail() {
    let mut owners = Owners::new(1, 1, 1 << 20);
    let topic = TopicName::hash_of(log(0).namespace, "b");
    owners.append(50, "a");
    owners.append(1, "b");
    owners.append(50, "a");
    let scope = Scope {
        filter: ScopeFilter::Topic(topic),
        ..Scope::default()
    };
    let r = owners.read(0, 1, scope, u32::MAX);
    owners.settle();
    assert_eq!(owners.given(0, r), [51]);
    assert!(owners.fetched()[0] <= 2, "{:?}", owners.fetched());
    // Somebody follows everything: then the reader of the topic is given what comes anyway.
    let live = owners.read_all(0, 102);
    owners.settle();
    let before = owners.fetched()[0];
    owners.append(10, "a");
    owners.append(1, "b");
    owners.settle();
    assert_eq!(owners.given(0, live), numbers(102, 112));
    assert_eq!(owners.given(0, r), [51, 112]);
    assert!(owners.fetched()[0] - before <= 11, "{:?}", owners.fetched());
}

#[test]
fn readers_of_a_log_that_is_gone_end() {
    let mut owners = Owners::new(1, 2, 1 << 20);
    owners.append(5, "a");
    let here = owners.read(0, 1, Scope::default(), 1);
    let there = owners.read_all(1, 1);
    owners.settle();
    let (as_of, origin) = (Sequence(9), Box::default());
    let gone = owners.ask(0, |t| Call::Delete {
        t,
        log: log(0),
        as_of,
        origin,
    });
    assert!(matches!(gone, Completion::Done { .. }));
    owners.settle();
    for key in [(0, here), (1, there)] {
        assert_eq!(owners.ended.get(&key), Some(&Some(Refusal::NoLog)));
    }
}
