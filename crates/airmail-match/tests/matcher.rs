//! A matcher finds what a loop over its filters finds, whatever comes, goes and is made anew meanwhile.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

use airmail_match::{Cursor, FilterId, Matcher, MatcherLimits, TooComplex};
use airmail_model::batch::{AttributeValue, BatchTarget};
use airmail_model::filter::{Facts, Filter};
use airmail_model::{
    Batch, BatchEncoder, Checked, Limits, LogId, MapEpoch, Message, NamespaceId, TopicName,
};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn batch(attributes: impl IntoIterator<Item = (String, AttributeValue)>) -> Checked<Batch> {
    let topic = TopicName::new("t", &Limits::DEFAULT).unwrap();
    let message = Message {
        attributes: attributes.into_iter().collect(),
        ..Message::new(topic, "")
    };
    let mut encoder = BatchEncoder::new(NamespaceId(1));
    encoder.push(&message, 0, &Limits::DEFAULT).unwrap();
    let log = LogId {
        namespace: NamespaceId(1),
        ..LogId::default()
    };
    let target = BatchTarget {
        log,
        epoch: MapEpoch(1),
        producer: None,
        producer_time: 0,
    };
    let bytes = encoder.finish(&target).bytes().clone();
    Batch::check(bytes, &Limits::DEFAULT).unwrap()
}

fn filter(text: &str) -> Filter {
    Filter::parse(text).unwrap()
}

/// Matches of a record, in one go.
fn matches(matcher: &mut Matcher, batch: &Checked<Batch>) -> Vec<FilterId> {
    let facts = Facts::read(batch.record(0).attributes);
    let mut cursor = Cursor::new();
    matcher.begin(&facts, &mut cursor);
    assert!(matcher.advance(&facts, &mut cursor, &mut { u32::MAX }));
    cursor.matches().to_vec()
}

fn tend(matcher: &mut Matcher) {
    while matcher.tend(10_000) {}
}

/// Names enough that not each has an axis; the first ones come most often.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![4 => 0..3_u8, 1 => 0..20_u8].prop_map(|n| format!("n{n}"))
}

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => (-3_i32..40).prop_map(|n| n.to_string()),
        1 => (-3_i32..40).prop_map(|n| format!("{:?}", f64::from(n) / 2.0)),
    ]
}

fn word() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "''",
        "'a'",
        "'ab'",
        "'long enough a'",
        "'long enough b'",
    ])
    .prop_map(str::to_owned)
}

fn test() -> impl Strategy<Value = String> {
    let sign = || prop::sample::select(vec!["=", "!=", "<", "<=", ">", ">="]);
    let start = prop::sample::select(vec!["''", "'a'", "'long en'", "'long enough a'"]);
    prop_oneof![
        4 => (name(), number(), 0..9_u8).prop_map(|(name, low, width)| {
            let high = low.parse::<f64>().unwrap() + f64::from(width);
            format!("{name} between {low} and {high:?}")
        }),
        3 => (name(), sign(), number()).prop_map(|(name, sign, value)| format!("{name} {sign} {value}")),
        2 => (name(), sign(), word()).prop_map(|(name, sign, value)| format!("{name} {sign} {value}")),
        1 => (name(), start).prop_map(|(name, start)| format!("{name} starts with {start}")),
        1 => (name(), vec(number(), 1..5)).prop_map(|(name, values)| format!("{name} in ({})", values.join(","))),
        1 => (name(), vec(word(), 1..3)).prop_map(|(name, values)| format!("{name} not in ({})", values.join(","))),
        1 => name().prop_map(|name| format!("has {name}")),
        1 => (name(), any::<bool>()).prop_map(|(name, bit)| format!("{name} = {bit}")),
    ]
}

fn text() -> impl Strategy<Value = String> {
    let all = || vec(test(), 1..4).prop_map(|tests| tests.join(" and "));
    prop_oneof![
        8 => all(),
        2 => vec(all(), 2..4).prop_map(|parts| parts.join(" or ")),
        1 => all().prop_map(|part| format!("not ({part})")),
        1 => (test(), all()).prop_map(|(one, part)| format!("{one} and not ({part})")),
    ]
}

fn attributes() -> impl Strategy<Value = Vec<(String, AttributeValue)>> {
    let words = vec![
        "",
        "a",
        "ab",
        "long enough a",
        "long enough b",
        "long enough c",
    ];
    let value = prop_oneof![
        4 => (-3_i64..40).prop_map(AttributeValue::Integer),
        2 => (-6_i32..80).prop_map(|n| AttributeValue::Float(f64::from(n) / 4.0)),
        2 => prop::sample::select(words).prop_map(|word| AttributeValue::String(word.to_owned())),
        1 => any::<bool>().prop_map(AttributeValue::Bool),
    ];
    btree_map(name(), value, 0..6).prop_map(|attributes| attributes.into_iter().collect())
}

#[derive(Clone, Debug)]
enum Step {
    Insert(String),
    Remove(usize),
    Change(usize, String),
    Tend(u32),
    Begin(Vec<(String, AttributeValue)>),
    Advance(u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => text().prop_map(Step::Insert),
        3 => any::<usize>().prop_map(Step::Remove),
        1 => (any::<usize>(), text()).prop_map(|(at, text)| Step::Change(at, text)),
        2 => prop_oneof![1..200_u32, 10_000..200_000_u32].prop_map(Step::Tend),
        3 => attributes().prop_map(Step::Begin),
        4 => prop_oneof![1..30_u32, Just(u32::MAX)].prop_map(Step::Advance),
    ]
}

/// A record under way.
struct UnderWay {
    batch: Checked<Batch>,
    cursor: Cursor,
    /// Filters that have been there, unchanged, since it was begun.
    stayed: BTreeSet<FilterId>,
    /// Filters that there were when it was begun.
    known: BTreeSet<FilterId>,
}

/// A matcher beside a list of its filters.
struct World {
    matcher: Matcher,
    filters: BTreeMap<FilterId, Filter>,
    under_way: Option<UnderWay>,
    done: usize,
}

impl World {
    fn new(texts: &[String]) -> World {
        let mut world = World {
            matcher: Matcher::new(MatcherLimits::DEFAULT),
            filters: BTreeMap::new(),
            under_way: None,
            done: 0,
        };
        for text in texts {
            world.step(&Step::Insert(text.clone()));
        }
        world
    }

    fn nth(&self, at: usize) -> Option<FilterId> {
        self.filters
            .keys()
            .nth(at % self.filters.len().max(1))
            .copied()
    }

    fn gone(&mut self, id: FilterId) {
        if let Some(under_way) = &mut self.under_way {
            under_way.stayed.remove(&id);
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Insert(text) => {
                let Ok(filter) = Filter::parse(text) else {
                    return;
                };
                let id = self.matcher.insert(filter.clone()).unwrap();
                assert!(
                    self.filters.insert(id, filter).is_none(),
                    "an id given twice"
                );
            }
            Step::Remove(at) => {
                let Some(id) = self.nth(*at) else { return };
                assert_eq!(self.matcher.remove(id), self.filters.remove(&id));
                assert_eq!(self.matcher.remove(id), None);
                self.gone(id);
            }
            Step::Change(at, text) => {
                let (Some(id), Ok(filter)) = (self.nth(*at), Filter::parse(text)) else {
                    return;
                };
                let before = self.matcher.change(id, filter.clone()).unwrap();
                assert_eq!(before, self.filters.insert(id, filter));
                self.gone(id);
            }
            Step::Tend(units) => {
                self.matcher.tend(*units);
            }
            Step::Begin(attributes) => {
                let batch = batch(attributes.clone());
                let mut cursor = Cursor::new();
                if let Some(before) = self.under_way.take() {
                    cursor = before.cursor;
                }
                self.matcher
                    .begin(&Facts::read(batch.record(0).attributes), &mut cursor);
                let known: BTreeSet<FilterId> = self.filters.keys().copied().collect();
                self.under_way = Some(UnderWay {
                    batch,
                    cursor,
                    stayed: known.clone(),
                    known,
                });
            }
            Step::Advance(units) => self.advance(*units),
        }
    }

    fn advance(&mut self, mut units: u32) {
        let Some(mut under_way) = self.under_way.take() else {
            return;
        };
        let batch = under_way.batch.clone();
        let facts = Facts::read(batch.record(0).attributes);
        if !self
            .matcher
            .advance(&facts, &mut under_way.cursor, &mut units)
        {
            self.under_way = Some(under_way);
            return;
        }
        self.done += 1;
        let found = under_way.cursor.matches();
        let once: BTreeSet<FilterId> = found.iter().copied().collect();
        assert_eq!(once.len(), found.len(), "one found twice");
        assert!(
            once.is_subset(&under_way.known),
            "one found that came later"
        );
        for id in &under_way.stayed {
            let filter = &self.filters[id];
            assert_eq!(
                once.contains(id),
                filter.matches_facts(&facts),
                "{filter} of {facts:?}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_record_finds_what_a_loop_finds_whatever_happens_meanwhile(
        texts in vec(text(), 0..200),
        steps in vec(step(), 0..120),
    ) {
        let mut world = World::new(&texts);
        for step in &steps {
            world.step(step);
        }
        world.matcher.check();
        world.step(&Step::Advance(u32::MAX));
    }

    #[test]
    fn an_index_that_was_made_anew_finds_what_a_loop_finds(
        texts in vec(text(), 64..400),
        records in vec(attributes(), 1..30),
        removed in vec(any::<usize>(), 0..100),
    ) {
        let mut world = World::new(&texts);
        tend(&mut world.matcher);
        world.matcher.check();
        prop_assert_eq!(world.matcher.stats().rebuilds, 1);
        for at in removed {
            world.step(&Step::Remove(at));
        }
        for attributes in records {
            world.step(&Step::Begin(attributes));
            world.step(&Step::Advance(u32::MAX));
        }
        world.matcher.check();
        tend(&mut world.matcher);
        world.matcher.check();
    }

    #[test]
    fn the_same_calls_give_the_same_matches_in_the_same_order(
        texts in vec(text(), 0..200),
        records in vec(attributes(), 1..10),
    ) {
        let run = || {
            let mut world = World::new(&texts);
            tend(&mut world.matcher);
            let found = records.iter().map(|record| matches(&mut world.matcher, &batch(record.clone())));
            let found: Vec<_> = found.collect();
            (found, world.matcher.stats(), world.matcher.bytes())
        };
        prop_assert_eq!(run(), run());
    }
}

#[test]
fn a_record_that_everything_matches_stops_within_its_units_and_goes_on() {
    let mut matcher = Matcher::new(MatcherLimits::DEFAULT);
    for n in 0..5000 {
        matcher.insert(filter(&format!("x > -{n}"))).unwrap();
    }
    let batch = batch([("x".to_owned(), 7_i64.into())]);
    let facts = Facts::read(batch.record(0).attributes);
    for _ in 0..2 {
        let mut cursor = Cursor::new();
        matcher.begin(&facts, &mut cursor);
        let (mut turns, mut found) = (0, 0);
        while !matcher.advance(&facts, &mut cursor, &mut 100) {
            turns += 1;
            assert!(cursor.matches().len() - found <= 612, "in one turn");
            found = cursor.matches().len();
        }
        assert_eq!(cursor.matches().len(), 5000);
        assert!(turns >= 9, "{turns}");
        // Once in lists, once in the grid.
        tend(&mut matcher);
    }
    assert_eq!(matcher.stats().rebuilds, 1);
}

#[test]
fn an_index_made_anew_within_a_record_begins_it_again() {
    let mut matcher = Matcher::new(MatcherLimits::DEFAULT);
    let mut ids = BTreeSet::new();
    for n in 0..1000 {
        ids.insert(
            matcher
                .insert(filter(&format!("x > -{n} or has y")))
                .unwrap(),
        );
    }
    let batch = batch([("x".to_owned(), 7_i64.into())]);
    let facts = Facts::read(batch.record(0).attributes);
    let mut cursor = Cursor::new();
    matcher.begin(&facts, &mut cursor);
    assert!(!matcher.advance(&facts, &mut cursor, &mut 300));
    assert!(!cursor.matches().is_empty());
    tend(&mut matcher);
    let later = matcher.insert(filter("x = 7")).unwrap();
    assert!(matcher.advance(&facts, &mut cursor, &mut { u32::MAX }));
    let found: BTreeSet<FilterId> = cursor.matches().iter().copied().collect();
    assert_eq!(found, ids);
    assert!(!found.contains(&later));
}

/// Intervals of a tenth of the values, on each of `each` of `names` names.
fn intervals(count: u64, names: u64, each: u64) -> impl Iterator<Item = String> {
    (0..count).map(move |n| {
        let test = |at: u64| {
            let low = airmail_model::random::nth(n, at) % 900_000;
            let name = (n + at) % names;
            format!("a{name} between {low} and {}", low + 100_000)
        };
        (0..each).map(test).collect::<Vec<_>>().join(" and ")
    })
}

#[test]
fn memory_is_as_promised_and_as_was_foreseen_when_filters_came() {
    for (names, bytes_max) in [(4, 600), (16, 1024)] {
        let mut matcher = Matcher::new(MatcherLimits::DEFAULT);
        for text in intervals(20_000, names, 4) {
            matcher.insert(filter(&text)).unwrap();
        }
        tend(&mut matcher);
        let each = matcher.bytes() / matcher.len();
        assert!(each <= bytes_max, "{each} bytes with {names} names");
    }
}

#[test]
fn few_candidates_are_compared_and_most_of_them_match() {
    let mut matcher = Matcher::new(MatcherLimits::DEFAULT);
    for text in intervals(20_000, 4, 4) {
        matcher.insert(filter(&text)).unwrap();
    }
    tend(&mut matcher);
    for n in 0..200_u64 {
        let value = |at| i64::try_from(airmail_model::random::nth(n, at) % 1_000_000).unwrap();
        let attributes = (0..4).map(|at| (format!("a{at}"), value(at).into()));
        matches(&mut matcher, &batch(attributes));
    }
    let stats = matcher.stats();
    assert!(stats.matches > 200, "{stats:?}");
    assert!(stats.candidates < 2 * stats.matches, "{stats:?}");
}

#[test]
fn filters_that_nothing_can_be_looked_up_for_have_a_bound() {
    let limits = MatcherLimits {
        residual: 2,
        ..MatcherLimits::DEFAULT
    };
    let mut matcher = Matcher::new(limits);
    let first = matcher.insert(filter("a != 1")).unwrap();
    matcher.insert(filter("not has a or b = 2")).unwrap();
    let refused = matcher.insert(filter("not a = 1"));
    assert_eq!(refused, Err(TooComplex::Residual(2)));
    assert_eq!(
        TooComplex::Residual(2).to_string(),
        "FILTER_TOO_COMPLEX: filters without a bound or a value to look for, limit: 2"
    );
    let usual = matcher.insert(filter("a = 1 and b != 2")).unwrap();
    assert_eq!(
        matcher.change(usual, filter("b != 2")),
        Err(TooComplex::Residual(2))
    );
    assert_eq!(matcher.get(usual), Some(&filter("a = 1 and b != 2")));
    assert_eq!(
        matcher.change(first, filter("c != 3")),
        Ok(Some(filter("a != 1")))
    );
    matcher.check();
    assert_eq!(matcher.len(), 3);
}

#[test]
fn memory_has_a_bound_and_what_goes_makes_room() {
    let limits = MatcherLimits {
        bytes: 100_000,
        ..MatcherLimits::DEFAULT
    };
    let mut matcher = Matcher::new(limits);
    let mut texts = intervals(10_000, 4, 4);
    let mut ids = Vec::new();
    let refused = loop {
        match matcher.insert(filter(&texts.next().unwrap())) {
            Ok(id) => ids.push(id),
            Err(refused) => break refused,
        }
    };
    assert!(matches!(refused, TooComplex::Bytes(bytes, 100_000) if bytes > 100_000));
    assert!((100..1000).contains(&ids.len()), "{}", ids.len());
    let changed = matcher
        .change(ids[0], filter(&texts.next().unwrap()))
        .unwrap();
    assert!(changed.is_some(), "a change needs no more than there is");
    for id in ids.drain(..10) {
        assert!(matcher.remove(id).is_some());
    }
    matcher.insert(filter(&texts.next().unwrap())).unwrap();
    matcher.check();
}

#[test]
fn names_have_a_bound_and_their_numbers_are_used_again() {
    let mut matcher = Matcher::new(MatcherLimits::DEFAULT);
    let names = |from: usize| -> String {
        let tests = (from..from + 255).map(|n| format!("has n{n}"));
        tests.collect::<Vec<_>>().join(" and ")
    };
    let mut ids = Vec::new();
    for n in 0..257 {
        ids.push(matcher.insert(filter(&names(n * 255))).unwrap());
    }
    assert_eq!(
        matcher.insert(filter("has another")),
        Err(TooComplex::Names)
    );
    matcher.remove(ids[7]);
    let another = matcher.insert(filter("has another")).unwrap();
    assert_eq!(
        matches(&mut matcher, &batch([("another".to_owned(), true.into())])),
        [another]
    );
    matcher.check();
}

#[test]
fn a_filter_that_nothing_matches_takes_no_place() {
    let mut matcher = Matcher::new(MatcherLimits::DEFAULT);
    let id = matcher.insert(filter("a > 1 and a = 'x'")).unwrap();
    matcher.check();
    assert_eq!(
        matches(&mut matcher, &batch([("a".to_owned(), 2_i64.into())])),
        []
    );
    assert!(matcher.remove(id).is_some());
    assert!(matcher.is_empty());
}
