//! Claims about the table of filters.

use super::*;
use crate::transcript::{batch_with, message};
use airmail_model::TopicHash;
use airmail_model::batch::AttributeValue;

/// Filters of a place that are asked one after the other.
const FEW: usize = 32;

fn filter(text: &str) -> Arc<Filter> {
    Arc::new(Filter::parse(text).unwrap())
}

fn of(topic: u128) -> FilteredPlace {
    FilteredPlace::Topic(TopicHash(topic))
}

#[test]
fn a_filter_that_many_have_is_kept_once_and_as_long_as_somebody_has_it() {
    let mut filters = Filters::new(FEW);
    for n in 0..100 {
        // The same, however it is written.
        let text = ["a = 1 and b = 2", "(a=1) AND b = 2"][n % 2];
        filters.add(SubKey::new(n), of(7), filter(text));
    }
    assert_eq!((filters.kept.len(), filters.users()), (1, 100));
    assert_eq!(filters.of_place.len(), 1);
    let bytes = filters.bytes;
    filters.add(SubKey::new(100), of(8), filter("c = 1"));
    for n in 0..100 {
        filters.remove(SubKey::new(n), of(7));
    }
    assert_eq!((filters.kept.len(), filters.users()), (1, 1));
    filters.remove(SubKey::new(100), of(8));
    filters.remove(SubKey::new(100), of(8));
    assert!(bytes > 0 && filters.bytes == 0);
    assert!(filters.of_place.is_empty() && filters.by_filter.is_empty());
}

#[test]
fn a_place_has_so_many_filters_that_no_value_has_to_be_looked_up_for() {
    let mut filters = Filters::new(FEW);
    let text = |n: usize| format!("a != {n}");
    let mut added = 0;
    let refused = loop {
        let filter = filter(&text(added));
        match filters.may_add(of(7), &filter) {
            Ok(()) => filters.add(SubKey::new(added), of(7), filter),
            Err(error) => break error,
        }
        added += 1;
    };
    assert_eq!(refused.code(), ErrorCode::FilterTooComplex);
    assert_eq!(added, 1024);
    // One that is there costs nothing further, and there is room in another place.
    filters.may_add(of(7), &filter(&text(3))).unwrap();
    filters.may_add(of(8), &filter(&text(added))).unwrap();
    for n in 0..added {
        filters.remove(SubKey::new(n), of(7));
    }
    assert_eq!((filters.bytes, filters.index_bytes), (0, 0));
}

proptest::proptest! {
    #[test]
    fn whatever_number_of_filters_comes_and_goes_those_are_found_that_match(
        steps in proptest::collection::vec((0_usize..90, proptest::bool::weighted(0.7)), 1..200),
        prices in proptest::collection::vec(0_i64..20, 1..4),
    ) {
        let mut filters = Filters::new(FEW);
        let mut known = BTreeMap::new();
        let text = |n: usize| match n % 3 {
            0 => format!("a < {}", n / 4),
            1 => format!("a = {}", n / 4),
            _ => format!("a != {}", n / 4),
        };
        let batch = batch_with(prices.iter().map(|price| {
            message("t", "x").attribute("a", AttributeValue::Integer(*price))
        }));
        for (n, comes) in steps {
            let (sub, at) = (SubKey::new(n), of(7));
            if comes && !known.contains_key(&sub) {
                let filter = filter(&text(n));
                filters.may_add(at, &filter).unwrap();
                proptest::prop_assert_eq!(filters.index_bytes, filters.count_index_bytes());
                filters.add(sub, at, Arc::clone(&filter));
                known.insert(sub, filter);
            } else if !comes && known.remove(&sub).is_some() {
                filters.remove(sub, at);
            }
            while filters.tend(1_000) {}
            proptest::prop_assert_eq!(filters.index_bytes, filters.count_index_bytes());
            for record in batch.iter() {
                let (mut looked, mut found) = (Looked::default(), Vec::new());
                let mut units = u32::MAX;
                while !filters.look(
                    at,
                    &record,
                    (&mut looked, &mut units),
                    #[cfg(feature = "sabotage")]
                    None,
                ) {}
                while let taken @ [_, ..] = looked.take(7) {
                    found.extend_from_slice(taken);
                }
                for (sub, filter) in &known {
                    let key = filters.of(*sub).unwrap();
                    proptest::prop_assert_eq!(found.contains(&key), filter.matches(&record));
                }
                let different: BTreeSet<_> = known.keys().filter_map(|sub| filters.of(*sub)).collect();
                proptest::prop_assert!(found.iter().all(|key| different.contains(key)));
            }
        }
    }
}

#[test]
fn the_memory_of_all_different_filters_is_bounded() {
    let mut filters = Filters::new(FEW);
    let long = "x".repeat(3_900);
    let text = |n: usize| format!("a = '{n}{long}'");
    let mut added = 0;
    let refused = loop {
        let filter = filter(&text(added));
        let place = of(added as u128);
        match filters.may_add(place, &filter) {
            Ok(()) => filters.add(SubKey::new(added), place, filter),
            Err(error) => break error,
        }
        added += 1;
    };
    assert_eq!(refused.code(), ErrorCode::FilterTooComplex);
    assert!(
        (BYTES_MAX / 5_000..BYTES_MAX / 3_900).contains(&added),
        "{added}"
    );
    // What is there already takes no more.
    filters.may_add(of(0), &filter(&text(0))).unwrap();
}
