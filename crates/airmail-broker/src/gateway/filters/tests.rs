//! Claims about the table of filters.

use super::*;
use airmail_model::TopicHash;

fn filter(text: &str) -> Arc<Filter> {
    Arc::new(Filter::parse(text).unwrap())
}

fn of(session: usize, topic: u128) -> (SessionKey, FilteredPlace) {
    (
        SessionKey::new(session),
        FilteredPlace::Topic(TopicHash(topic)),
    )
}

fn code(result: Result<(), Error>) -> ErrorCode {
    result.unwrap_err().code()
}

#[test]
fn a_filter_that_many_have_is_kept_once_and_as_long_as_somebody_has_it() {
    let mut filters = Filters::default();
    for n in 0..100 {
        // The same, however it is written.
        let text = ["a = 1 and b = 2", "(a=1) AND b = 2"][n % 2];
        filters.add(SubKey::new(n), of(n, 7), filter(text));
    }
    assert_eq!((filters.kept.len(), filters.users()), (1, 100));
    assert_eq!(
        filters.of_place[&FilteredPlace::Topic(TopicHash(7))].len(),
        1
    );
    let bytes = filters.bytes;
    filters.add(SubKey::new(100), of(100, 8), filter("c = 1"));
    for n in 0..100 {
        filters.remove(SubKey::new(n), of(n, 7));
    }
    assert_eq!((filters.kept.len(), filters.users()), (1, 1));
    filters.remove(SubKey::new(100), of(100, 8));
    filters.remove(SubKey::new(100), of(100, 8));
    assert!(bytes > 0 && filters.bytes == 0);
    assert!(filters.of_place.is_empty() && filters.of_stream.is_empty());
    assert!(filters.by_filter.is_empty());
}

#[test]
fn a_stream_has_one_filter_for_a_topic_and_a_topic_few_different_ones() {
    let mut filters = Filters::default();
    let text = |n: usize| format!("a = {n}");
    for n in 0..OF_PLACE_MAX {
        let filter = filter(&text(n));
        filters.may_add(of(n, 7), &filter).unwrap();
        filters.add(SubKey::new(n), of(n, 7), filter);
    }
    let one_more = filter(&text(OF_PLACE_MAX));
    let refused = filters.may_add(of(99, 7), &one_more);
    assert_eq!(code(refused), ErrorCode::FilterTooComplex);
    filters.may_add(of(99, 8), &one_more).unwrap();
    filters.may_add(of(99, 7), &filter(&text(3))).unwrap();
    let again = filters.may_add(of(3, 7), &filter(&text(3)));
    assert_eq!(code(again), ErrorCode::SubscriptionInvalid);
    filters.remove(SubKey::new(3), of(3, 7));
    filters.may_add(of(3, 7), &one_more).unwrap();
}

#[test]
fn the_memory_of_all_different_filters_is_bounded() {
    let mut filters = Filters::default();
    let long = "x".repeat(3_900);
    let text = |n: usize| format!("a = '{n}{long}'");
    let mut added = 0;
    let refused = loop {
        let filter = filter(&text(added));
        let place = of(added, added as u128);
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
    filters.may_add(of(added, 0), &filter(&text(0))).unwrap();
}
