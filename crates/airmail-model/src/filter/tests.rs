//! Filters against an evaluator of the tree that is written here alone.

use super::*;
use crate::batch::{AttributeValue, BatchTarget};
use crate::{
    Batch, BatchEncoder, Checked, Limits, LogId, MapEpoch, Message, NamespaceId, TopicName,
};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use std::cmp::Ordering;
use std::collections::BTreeMap;

const NAMES: [&str; 6] = [
    "a",
    "b",
    "in",
    "a name of more than 8",
    "a name of more than 9",
    "é",
];
const TEXTS: [&str; 6] = ["", "a", "ab", "it's", "it", "Ж\n\""];

type Attributes = BTreeMap<&'static str, AttributeValue>;

fn text() -> impl Strategy<Value = String> {
    prop::sample::select(&TEXTS[..]).prop_map(str::to_owned)
}

fn number() -> impl Strategy<Value = AttributeValue> {
    // Halves: what is compared is small, so that a float holds it exactly.
    let halves = -4_i32..5;
    prop_oneof![
        (-2_i64..3).prop_map(AttributeValue::Integer),
        halves.prop_map(|halves| AttributeValue::Float(f64::from(halves) / 2.0)),
    ]
}

fn value() -> impl Strategy<Value = AttributeValue> {
    prop_oneof![
        3 => number(),
        2 => text().prop_map(AttributeValue::String),
        1 => any::<bool>().prop_map(AttributeValue::Bool),
    ]
}

fn comparison() -> impl Strategy<Value = Comparison> {
    prop::sample::select(vec![
        Comparison::Equal,
        Comparison::Unequal,
        Comparison::Less,
        Comparison::LessOrEqual,
        Comparison::Greater,
        Comparison::GreaterOrEqual,
    ])
}

fn check() -> impl Strategy<Value = Check> {
    let words = || text().prop_map(AttributeValue::String);
    let equality = prop::sample::select(vec![Comparison::Equal, Comparison::Unequal]);
    prop_oneof![
        (equality, value()).prop_map(|(sign, value)| Check::Compare(sign, value)),
        (comparison(), number()).prop_map(|(sign, value)| Check::Compare(sign, value)),
        (comparison(), words()).prop_map(|(sign, value)| Check::Compare(sign, value)),
        (number(), number()).prop_map(|(low, high)| Check::Between(low, high)),
        (words(), words()).prop_map(|(low, high)| Check::Between(low, high)),
        vec(number(), 1..4).prop_map(Check::In),
        vec(words(), 1..4).prop_map(Check::NotIn),
        vec(number(), 1..4).prop_map(Check::NotIn),
        text().prop_map(Check::StartsWith),
        Just(Check::Has),
    ]
}

fn expression() -> impl Strategy<Value = Expression> {
    let name = prop::sample::select(&NAMES[..]).prop_map(str::to_owned);
    let test = (name, check()).prop_map(|(name, check)| Expression::Test(Test { name, check }));
    test.prop_recursive(4, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 2..4).prop_map(Expression::And),
            vec(inner.clone(), 2..4).prop_map(Expression::Or),
            inner.prop_map(|part| Expression::Not(Box::new(part))),
        ]
    })
}

fn attributes() -> impl Strategy<Value = Attributes> {
    btree_map(prop::sample::select(&NAMES[..]), value(), 0..NAMES.len())
}

fn batch(attributes: &Attributes) -> Checked<Batch> {
    let topic = TopicName::new("t", &Limits::DEFAULT).unwrap();
    let attributes = attributes.iter();
    let message = Message {
        attributes: attributes
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect(),
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

/// The order of two values of one type.
fn order(a: &AttributeValue, b: &AttributeValue) -> Option<Ordering> {
    let number = |value: &AttributeValue| match value {
        AttributeValue::Integer(number) => Some(*number as f64),
        AttributeValue::Float(number) => Some(*number),
        _ => None,
    };
    match (a, b) {
        (AttributeValue::String(a), AttributeValue::String(b)) => Some(a.cmp(b)),
        (AttributeValue::Bool(a), AttributeValue::Bool(b)) => Some(a.cmp(b)),
        _ => number(a)?.partial_cmp(&number(b)?),
    }
}

fn is_true(test: &Test, attributes: &Attributes) -> bool {
    let Some(found) = attributes.get(test.name.as_str()) else {
        return false;
    };
    let against = |value| order(found, value);
    match &test.check {
        Check::Has => true,
        Check::StartsWith(start) => match found {
            AttributeValue::String(text) => text.get(..start.len()) == Some(start),
            _ => false,
        },
        Check::In(values) => values
            .iter()
            .any(|value| against(value) == Some(Ordering::Equal)),
        Check::NotIn(values) => values
            .iter()
            .all(|value| against(value).is_some_and(Ordering::is_ne)),
        Check::Between(low, high) => {
            against(low).is_some_and(Ordering::is_ge) && against(high).is_some_and(Ordering::is_le)
        }
        Check::Compare(sign, value) => against(value).is_some_and(|order| match sign {
            Comparison::Equal => order.is_eq(),
            Comparison::Unequal => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
        }),
    }
}

fn holds(expression: &Expression, attributes: &Attributes) -> bool {
    match expression {
        Expression::And(parts) => parts.iter().all(|part| holds(part, attributes)),
        Expression::Or(parts) => parts.iter().any(|part| holds(part, attributes)),
        Expression::Not(part) => !holds(part, attributes),
        Expression::Test(test) => is_true(test, attributes),
    }
}

proptest! {
    #[test]
    fn a_filter_shows_what_parses_to_the_same(expression in expression()) {
        let Ok(filter) = Filter::parse(&expression.to_string()) else {
            // Too many conjunctions.
            prop_assert!(expression.conjunctions().is_err());
            return Ok(());
        };
        prop_assert_eq!(Filter::parse(&filter.to_string()), Ok(filter.clone()));
        prop_assert_eq!(filter.to_string(), filter.expression().to_string());
    }

    #[test]
    fn a_filter_matches_what_its_tree_says(expression in expression(), attributes in vec(attributes(), 1..8)) {
        let Ok(filter) = Filter::parse(&expression.to_string()) else {
            return Ok(());
        };
        for attributes in attributes {
            let batch = batch(&attributes);
            let record = batch.record(0);
            let wanted = holds(&expression, &attributes);
            prop_assert_eq!(filter.matches(&record), wanted, "{} of {:?}", filter, attributes);
            prop_assert_eq!(filter.matches_facts(&Facts::read(record.attributes)), wanted);
        }
    }

    #[test]
    fn the_normal_form_is_true_where_the_filter_is(expression in expression(), attributes in vec(attributes(), 1..8)) {
        let Ok(conjunctions) = expression.conjunctions() else {
            return Ok(());
        };
        prop_assert!((1..=CONJUNCTIONS_MAX).contains(&conjunctions.len()));
        for attributes in attributes {
            let is_fulfilled = |literal: &Literal<'_>| is_true(literal.test, &attributes) != literal.negated;
            let is_one_fulfilled = conjunctions.iter().any(|all| all.literals.iter().all(is_fulfilled));
            prop_assert_eq!(is_one_fulfilled, holds(&expression, &attributes));
        }
    }

    #[test]
    fn any_text_is_a_filter_or_refused_with_its_place(text in "[ab(){},=<>!'\"0-9. \n-]{0,40}|.{0,40}|(not |has |a|in|=|1|\\(|\\)| or | and |,){0,20}") {
        match Filter::parse(&text) {
            Ok(filter) => prop_assert_eq!(Filter::parse(&filter.to_string()), Ok(filter)),
            Err(FilterError::Invalid { line, column, .. }) => {
                let line = text.split('\n').nth(line as usize - 1);
                let characters = line.map(|line| line.chars().count());
                prop_assert!(characters.is_some_and(|count| column as usize <= count + 1));
            }
            Err(FilterError::TooComplex { .. }) => {}
        }
    }
}

#[test]
fn what_multiplies_is_refused_before_it_is_made() {
    let all: Vec<String> = (0..60).map(|n| format!("(a{n}=1 or b{n}=1)")).collect();
    let error = Filter::parse(&all.join(" and ")).unwrap_err();
    let expected = FilterError::TooComplex {
        bound: Bound::Conjunctions,
        found: 128,
    };
    assert_eq!(error, expected);
    assert_eq!(
        error.to_string(),
        "FILTER_TOO_COMPLEX: conjunctions: 128, limit: 64"
    );
}

#[test]
fn a_filter_of_four_intervals_takes_little_memory() {
    let tests: Vec<String> = (0..4)
        .map(|n| format!("a{n} between {n} and 1000"))
        .collect();
    let filter = Filter::parse(&tests.join(" and ")).unwrap();
    assert!(filter.heap_bytes() <= 128, "{}", filter.heap_bytes());
}

#[test]
fn an_error_names_the_place_what_is_there_and_what_would_do() {
    let error = Filter::parse("region = 'eu'\n  and price > 'x' or").unwrap_err();
    assert_eq!(
        error.to_string(),
        "FILTER_INVALID: line 2, column 21: found the end, expected a name, `has`, `not` or `(`"
    );
}
