//! Readers of what is wanted: at least the topics that were named, from where their edit took effect.

use super::batches::log;
use super::{Driver, Seen, Subject};
use crate::contract::{ReaderId, Scope, ScopeFilter, WantEdit};
use airmail_model::{Sequence, TopicHash, TopicName};
use std::collections::BTreeSet;

/// A reader of what is wanted, which says it anew whenever the storage has forgotten it.
struct Wanting {
    r: ReaderId,
    wanted: BTreeSet<TopicHash>,
    /// The last edit; 0 if there was none.
    edit: u32,
    seen: Vec<Seen>,
}

fn hash(topic: &str) -> TopicHash {
    TopicName::hash_of(log(0).namespace, topic)
}

fn hashes(topics: &[&str]) -> Vec<TopicHash> {
    topics.iter().map(|topic| hash(topic)).collect()
}

impl Wanting {
    fn start<S: Subject>(d: &mut Driver<'_, S>, credit: u32) -> Wanting {
        let scope = Scope {
            filter: ScopeFilter::Wanted,
            ..Scope::default()
        };
        Wanting {
            r: d.read(log(0), 1, scope, credit),
            wanted: BTreeSet::new(),
            edit: 0,
            seen: Vec::new(),
        }
    }

    /// Takes what has come. What the storage has forgotten is said anew, in two parts.
    fn follow<S: Subject>(&mut self, d: &mut Driver<'_, S>) {
        loop {
            let seen = d.seen(self.r);
            let is_lost = seen.contains(&Seen::WantsLost);
            self.seen.extend(seen);
            if !is_lost || self.edit == 0 {
                return;
            }
            let all: Vec<TopicHash> = self.wanted.iter().copied().collect();
            let (some, others) = all.split_at(all.len() / 2);
            for (add, more) in [(some, true), (others, false)] {
                self.edit += 1;
                let add = add.to_vec();
                let drop = Vec::new();
                d.want(self.r, self.edit, WantEdit { add, drop, more });
            }
        }
    }

    /// Wants other topics; the number from which they are given.
    fn want<S: Subject>(&mut self, d: &mut Driver<'_, S>, add: &[&str], drop: &[&str]) -> Sequence {
        self.follow(d);
        let (add, drop) = (hashes(add), hashes(drop));
        for topic in &drop {
            self.wanted.remove(topic);
        }
        self.wanted.extend(add.iter().copied());
        self.edit += 1;
        let (first, more) = (self.edit, false);
        d.want(self.r, first, WantEdit { add, drop, more });
        self.follow(d);
        // It may have been forgotten before it took effect, and said anew; or after that.
        let at = self.seen.iter().find_map(|seen| match seen {
            Seen::Effective(edit, at) if *edit >= first => Some(*at),
            _ => None,
        });
        match at {
            Some(Some(at)) => at,
            other => panic!("{:?} has {other:?} for edit {}", self.r, self.edit),
        }
    }

    /// Numbers of the records of a topic that it was given.
    fn given(&self, topic: &str) -> Vec<u64> {
        let records = self.seen.iter().flat_map(Seen::records);
        let mine = records.filter(|(_, name, _)| name == topic);
        mine.map(|(number, ..)| number).collect()
    }
}

/// Nobody has said what is wanted of it.
pub fn a_reader_of_which_nothing_is_wanted_gives_nothing<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    d.append(log(0), &[("mine", "1")]);
    let mut reader = Wanting::start(d, u32::MAX);
    reader.follow(d);
    assert!(reader.seen.is_empty(), "{:?}", reader.seen);
    d.stop(reader.r);
    assert_eq!(d.seen(reader.r), [Seen::Ended(None)]);
}

/// The records of wanted topics, and every number accounted for.
pub fn what_is_wanted_is_given<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    let mut reader = Wanting::start(d, u32::MAX);
    reader.want(d, &["mine", "ours"], &[]);
    let (mut mine, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..10 {
        d.append(log(0), &[("other", "1"), ("more", "2")]);
        let extent = d.append(log(0), &[("mine", "3"), ("other", "4"), ("ours", "5")]);
        mine.push(extent.first.0);
        ours.push(extent.last.0);
        reader.follow(d);
    }
    assert_eq!(reader.given("mine"), mine);
    assert_eq!(reader.given("ours"), ours);
    assert_eq!(d.next_of(reader.r), d.bounds(log(0)).next);
}

/// The records that were there before it began are given from where it began.
pub fn what_was_wanted_first_is_given_from_the_beginning<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    for _ in 0..3 {
        d.append(log(0), &[("mine", "1"), ("other", "2")]);
    }
    let mut reader = Wanting::start(d, u32::MAX);
    assert_eq!(reader.want(d, &["mine"], &[]), Sequence(1));
    reader.follow(d);
    assert_eq!(reader.given("mine"), [1, 3, 5]);
}

/// A topic that is added is given from the number that was told, one that is dropped need not be.
pub fn an_edit_takes_effect_where_it_is_told<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    let mut reader = Wanting::start(d, u32::MAX);
    reader.want(d, &["first"], &[]);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for turn in 0..10 {
        let at = match turn {
            3 => reader.want(d, &["second"], &[]),
            6 => reader.want(d, &["second"], &["first", "second", "never"]),
            _ => Sequence::FIRST,
        };
        let extent = d.append(log(0), &[("first", "1"), ("other", "2"), ("second", "3")]);
        assert!(at <= extent.first, "{at} is behind the end");
        if turn < 6 {
            first.push(extent.first.0);
        }
        if turn >= 3 {
            second.push(extent.last.0);
        }
        reader.follow(d);
    }
    let given = reader.given("first");
    assert!(first.iter().all(|number| given.contains(number)));
    let given = reader.given("second");
    assert!(second.iter().all(|number| given.contains(number)));
}

/// An edit that goes on changes nothing before its last part.
pub fn an_edit_of_parts_takes_effect_at_once<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    d.append(log(0), &[("a", "1"), ("b", "2"), ("c", "3")]);
    let mut reader = Wanting::start(d, u32::MAX);
    for topic in ["a", "b"] {
        let edit = WantEdit {
            add: hashes(&[topic]),
            more: true,
            ..WantEdit::default()
        };
        d.want(reader.r, 0, edit);
        reader.wanted.insert(hash(topic));
    }
    let told: Vec<Seen> = d.seen(reader.r);
    let is_silent = told.iter().all(|seen| *seen == Seen::WantsLost);
    assert!(is_silent, "{told:?}");
    if !told.is_empty() {
        reader.want(d, &["a", "b"], &[]);
    }
    reader.want(d, &["c"], &[]);
    reader.follow(d);
    for (number, topic) in (1..).zip(["a", "b", "c"]) {
        assert_eq!(reader.given(topic), [number]);
    }
}

/// Credit is for what is given.
pub fn what_nobody_wants_takes_no_credit_for_good<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    let mut reader = Wanting::start(d, 1 << 20);
    reader.want(d, &["mine"], &[]);
    let large = "x".repeat(10_000);
    for _ in 0..50 {
        d.append(log(0), &[("other", &large)]);
        reader.follow(d);
    }
    let extent = d.append(log(0), &[("mine", "1")]);
    reader.follow(d);
    assert_eq!(reader.given("mine"), [extent.first.0]);
}
