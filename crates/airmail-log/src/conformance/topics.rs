//! Reading one topic, and listing topics.

use super::batches::{Maker, log, spec};
use super::{Driver, Seen, Subject};
use crate::contract::{Call, Completion, GapWhy, Scope, ScopeFilter, TopicPage, TopicSeen};
use airmail_model::{LogId, NamespaceId, Sequence, TopicName};

fn scope(log: LogId, topic: &str) -> Scope {
    Scope {
        filter: ScopeFilter::Topic(TopicName::hash_of(log.namespace, topic)),
        ..Scope::default()
    }
}

/// Whether tiles hold exactly the batches with the topic whole, and `Unused` for all else.
fn assert_topic(tiles: &[Seen], topic: &str, expected: &[u64]) {
    let mut got = Vec::new();
    for tile in tiles {
        match tile {
            Seen::Gap(_, why) => assert_eq!(*why, GapWhy::Unused),
            Seen::Batch(_) => {
                let records = tile.records();
                let mine = records.iter().filter(|(_, name, _)| name == topic);
                let mine: Vec<u64> = mine.map(|(number, ..)| *number).collect();
                assert!(!mine.is_empty(), "a batch without {topic}: {records:?}");
                got.extend(mine);
            }
            _ => {}
        }
    }
    assert_eq!(got, expected);
}

fn page(prefix: &str, after: &str, limit: u32) -> TopicPage {
    TopicPage {
        prefix: prefix.to_owned(),
        after: after.to_owned(),
        limit,
    }
}

fn list<S: Subject>(d: &mut Driver<'_, S>, log: LogId, page: &TopicPage) -> Vec<TopicSeen> {
    match d.ask(|t| Call::Topics {
        t,
        log,
        page: Box::new(page.clone()),
    }) {
        Completion::Topics { page, .. } => page,
        other => panic!("topics were answered with {other:?}"),
    }
}

fn names(page: &[TopicSeen]) -> Vec<&str> {
    page.iter().map(|seen| seen.name.as_str()).collect()
}

/// Batches that hold it are given whole.
pub fn a_topic_scope_is_tiled_with_unused_numbers<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    if !d.capabilities().topic_index {
        return;
    }
    let mut wanted = Vec::new();
    for _ in 0..10 {
        d.append(log(0), &[("other", "1"), ("more", "2")]);
        let extent = d.append(log(0), &[("mine", "3"), ("other", "4"), ("mine", "5")]);
        wanted.extend([extent.first.0, extent.last.0]);
        d.append(log(0), &[("more", "6")]);
    }
    let reader = d.read(log(0), 1, scope(log(0), "mine"), u32::MAX);
    let tiles = d.tiles(reader);
    assert_topic(&tiles, "mine", &wanted);
    assert_eq!(d.next_of(reader), d.bounds(log(0)).next);
    let batches = tiles.iter().filter(|tile| matches!(tile, Seen::Batch(_)));
    assert_eq!(batches.count(), 10);
}

/// A rewind on an empty topic ends at the tail, having accounted for everything.
pub fn a_topic_that_was_never_used_is_all_unused<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    if !d.capabilities().topic_index {
        return;
    }
    for _ in 0..10 {
        d.append(log(0), &[("other", "1"), ("more", "2")]);
    }
    let reader = d.read(log(0), 1, scope(log(0), "mine"), u32::MAX);
    let seen = d.seen(reader);
    assert_eq!(seen.last(), Some(&Seen::Tail(Sequence(21))));
    assert_topic(&seen, "mine", &[]);
    assert_eq!(d.next_of(reader), Sequence(21));
}

/// Appends to other topics only: the reader's position moves on though no batch comes.
pub fn a_live_topic_reader_makes_progress_over_other_topics<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    if !d.capabilities().topic_index {
        return;
    }
    let reader = d.read(log(0), 1, scope(log(0), "mine"), u32::MAX);
    d.append(log(0), &[("other", "1")]);
    let tiles = d.tiles(reader);
    assert_topic(&tiles, "mine", &[]);
    assert_eq!(d.next_of(reader), Sequence(2));
    d.append(log(0), &[("mine", "2")]);
    let tiles = d.tiles(reader);
    assert_topic(&tiles, "mine", &[2]);
    d.append(log(0), &[("other", "3")]);
    d.tiles(reader);
    assert_eq!(d.next_of(reader), Sequence(4));
}

/// Hashes are seeded with the namespace.
pub fn the_same_name_in_another_namespace_is_another_topic<S: Subject>(d: &mut Driver<'_, S>) {
    let there = LogId {
        namespace: NamespaceId(8),
        ..log(0)
    };
    let spec = spec(d.capabilities().strongest);
    d.open_with(log(0), &spec);
    d.open_with(there, &spec);
    if !d.capabilities().topic_index {
        return;
    }
    d.append(log(0), &[("mine", "1")]);
    d.append(there, &[("mine", "2")]);
    let reader = d.read(there, 1, scope(log(0), "mine"), u32::MAX);
    let tiles = d.tiles(reader);
    assert_topic(&tiles, "mine", &[]);
    let reader = d.read(there, 1, scope(there, "mine"), u32::MAX);
    let tiles = d.tiles(reader);
    assert_topic(&tiles, "mine", &[1]);
}

/// Rare and frequent topics, over more than any index entry holds.
pub fn a_topic_is_found_in_a_long_log<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    if !d.capabilities().topic_index {
        return;
    }
    let filler = "x".repeat(700);
    let mut tags = Vec::new();
    for n in 1..=600u64 {
        let topic = match n {
            17 | 300 | 599 => "rare".to_owned(),
            _ if n % 10 == 0 => "tenth".to_owned(),
            _ => format!("t{}", n % 97),
        };
        tags.push(d.send(&Maker::new(log(0)).batch(&[(&topic, &filler)])));
    }
    for tag in tags {
        d.answer(tag);
    }
    let rare = d.read(log(0), 1, scope(log(0), "rare"), u32::MAX);
    let tiles = d.tiles(rare);
    assert_topic(&tiles, "rare", &[17, 300, 599]);
    let late = d.read(log(0), 301, scope(log(0), "rare"), u32::MAX);
    let tiles = d.tiles(late);
    assert_topic(&tiles, "rare", &[599]);
    let tenth = d.read(log(0), 1, scope(log(0), "tenth"), 1);
    let mut tiles = Vec::new();
    for _ in 0..700 {
        tiles.extend(d.tiles(tenth));
        d.credit(tenth, 1000);
    }
    let expected: Vec<u64> = (1..=60).map(|n| n * 10).filter(|n| *n != 300).collect();
    assert_topic(&tiles, "tenth", &expected);
    assert_eq!(d.next_of(tenth), Sequence(601));
}

/// Expects a number at which each was seen.
pub fn topics_are_listed_once_each_in_order<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    assert_eq!(list(d, log(0), &page("", "", 10)), []);
    d.append(log(0), &[("b", "1"), ("a", "2"), ("b", "3")]);
    d.append(log(0), &[("c", "4")]);
    d.append(log(0), &[("a", "5")]);
    d.open(log(1));
    d.append(log(1), &[("elsewhere", "6")]);
    let listed = list(d, log(0), &page("", "", 10));
    assert_eq!(names(&listed), ["a", "b", "c"]);
    let used = [vec![2, 5], vec![1, 2, 3], vec![4]];
    for (seen, used) in listed.iter().zip(used) {
        assert!(seen.last >= Sequence(used[0]), "{seen:?}");
        assert!(seen.last < Sequence(6), "{seen:?}");
    }
}

/// Every page goes on where the last ended, and an empty one is the last.
pub fn topics_are_listed_by_prefix_and_page<S: Subject>(d: &mut Driver<'_, S>) {
    d.open(log(0));
    let mut expected = Vec::new();
    for n in 0..50 {
        let topic = format!("{}/{}", ["x", "y", "yy"][n % 3], (n * 7) % 50);
        d.append(log(0), &[(&topic, "1"), ("z", "2")]);
        expected.push(topic);
    }
    expected.push("z".to_owned());
    expected.sort();
    for prefix in ["", "x", "y", "y/", "yy/1", "z", "zz", "\u{10ffff}"] {
        let wanted = expected.iter().filter(|topic| topic.starts_with(prefix));
        let wanted: Vec<&str> = wanted.map(String::as_str).collect();
        for limit in [1, 7, 1000] {
            let mut got: Vec<String> = Vec::new();
            loop {
                let after = got.last().cloned().unwrap_or_default();
                let listed = list(d, log(0), &page(prefix, &after, limit));
                assert!(listed.len() <= limit as usize);
                if listed.is_empty() {
                    break;
                }
                got.extend(listed.into_iter().map(|seen| seen.name));
            }
            assert_eq!(got, wanted, "prefix {prefix:?}, pages of {limit}");
        }
    }
}
