//! Duplicates, holes, gaps, marks, fan-out, credit.

use super::*;

#[test]
fn a_live_delivery_reaches_every_subscription_of_its_topic_and_no_other() {
    let mut driver = Driver::connected();
    let (a, b, again) = (
        driver.live("a", 10),
        driver.live("b", 10),
        driver.live("a", 10),
    );
    driver.deliver(Channel::Live, 9, &["a", "b", "a"]);
    assert_eq!(driver.numbers(a), [10, 12]);
    assert_eq!(driver.numbers(b), [11]);
    assert_eq!(driver.numbers(again), [10, 12]);
}

#[test]
fn a_duplicate_is_dropped() {
    let mut driver = Driver::connected();
    let a = driver.live("a", 10);
    driver.deliver(Channel::Live, 9, &["a", "a"]);
    driver.deliver(Channel::Live, 9, &["a", "a"]);
    assert_eq!(driver.numbers(a), [10, 11]);
    assert_eq!(driver.next(a), Some(12));
}

#[test]
fn nothing_beyond_a_deliverys_range_is_given() {
    let mut driver = Driver::connected();
    let a = driver.live("a", 1);
    driver.reply(delivery(Channel::Live, 0, 2, 1, &["a", "a", "a"]));
    driver.reply(delivery(Channel::Live, 2, 5, 100, &["a"]));
    driver.reply(delivery(Channel::Live, 5, 6, 6, &["a"]));
    assert_eq!(driver.numbers(a), [1, 2, 6]);
    let (late, add) = driver.detached("a", 1);
    driver.reply(delivery(channel_of(&add), 0, 2, 2, &["a", "a"]));
    assert_eq!(driver.numbers(late), [2]);
    assert_eq!(driver.next(late), Some(3));
}

#[test]
fn a_range_up_to_the_number_above_every_number_is_not_taken() {
    let mut driver = Driver::connected();
    let a = driver.live("a", 10);
    let end = u64::MAX;
    for _ in 0..2 {
        driver.reply(delivery(Channel::Live, end - 1, end, end, &["a"]));
        driver.reply(delivery(Channel::Live, 9, end, 10, &["a"]));
    }
    assert!(driver.numbers(a).is_empty());
    driver.deliver(Channel::Live, 9, &["a"]);
    assert_eq!(driver.numbers(a), [10]);
}

#[test]
fn a_delivery_of_one_log_reaches_nobody_who_is_live_on_another() {
    let mut driver = Driver::connected();
    let here = driver.live("a", 10);
    let there = driver.add("a", Start::Latest);
    let add = driver.asked();
    let log = LogId {
        index: airmail_model::LogIndex(1),
        ..LOG
    };
    driver.status(
        &add,
        State::live(LogPosition {
            log,
            ..place_at(10)
        }),
    );
    driver.events.clear();
    driver.deliver(Channel::Live, 9, &["a"]);
    assert_eq!(driver.numbers(here), [10]);
    assert!(driver.numbers(there).is_empty());
}

#[test]
fn a_newcomer_that_begins_earlier_makes_nothing_come_twice() {
    let mut driver = Driver::connected();
    let a = driver.live("a", 10);
    driver.deliver(Channel::Live, 9, &["a", "a"]);
    assert_eq!(driver.numbers(a), [10, 11]);
    let b = driver.live("a", 5);
    driver.deliver(Channel::Live, 9, &["a", "a", "a"]);
    assert!(driver.numbers(b).is_empty());
    let again = driver.asked_all();
    let begins: Vec<Option<u64>> = again.iter().map(starts_at).collect();
    assert_eq!(begins, [Some(12), Some(5)]);
    assert!(driver.numbers(a).is_empty());
}

#[test]
fn an_overlap_gives_only_what_is_new() {
    let mut driver = Driver::connected();
    let a = driver.live("a", 10);
    driver.deliver(Channel::Live, 9, &["a", "a"]);
    driver.deliver(Channel::Live, 8, &["a", "a", "a", "a"]);
    assert_eq!(driver.numbers(a), [10, 11, 12]);
}

#[test]
fn a_hole_is_asked_for_again_from_where_it_begins_under_a_new_generation() {
    let mut driver = Driver::connected();
    let a = driver.live("a", 10);
    driver.deliver(Channel::Live, 9, &["a"]);
    driver.deliver(Channel::Live, 12, &["a"]);
    assert_eq!(driver.numbers(a), [10]);
    driver.poll();
    assert!(matches!(driver.sent[0], Request::Remove { .. }));
    let add = driver.asked();
    assert_eq!(starts_at(&add), Some(11));
    driver.status(&add, detached_at(11));
    driver.deliver(channel_of(&add), 10, &["a", "a", "a"]);
    driver.status(&add, live_at(14));
    driver.deliver(Channel::Live, 13, &["a"]);
    assert_eq!(driver.numbers(a), [11, 12, 13, 14]);
}

#[test]
fn a_hole_of_a_detached_range_renews_only_that_subscription() {
    let mut driver = Driver::connected();
    let live = driver.live("a", 50);
    let (late, add) = driver.detached("a", 1);
    driver.deliver(channel_of(&add), 5, &["a"]);
    let renewed = driver.asked();
    assert_eq!(starts_at(&renewed), Some(1));
    assert!(renewed.generation > add.generation);
    assert!(driver.numbers(late).is_empty());
    driver.deliver(Channel::Live, 49, &["a"]);
    assert_eq!(driver.numbers(live), [50]);
}

#[test]
fn what_an_earlier_generation_is_sent_is_dropped() {
    let mut driver = Driver::connected();
    let (late, add) = driver.detached("a", 1);
    driver.deliver(channel_of(&add), 5, &["a"]);
    let renewed = driver.asked();
    driver.status(&renewed, detached_at(1));
    driver.deliver(channel_of(&add), 0, &["a"]);
    driver.status(&add, State::Removed);
    driver.status(&add, State::Failed(Error::new(ErrorCode::Internal)));
    assert!(driver.numbers(late).is_empty());
    driver.deliver(channel_of(&renewed), 0, &["a"]);
    assert_eq!(driver.numbers(late), [1]);
}

#[test]
fn a_gap_is_told_at_its_exact_edges_and_an_unused_one_only_advances() {
    let mut driver = Driver::connected();
    let (late, add) = driver.detached("a", 5);
    driver.reply(gap(channel_of(&add), 2, 8, GapReason::Retention));
    driver.reply(gap(channel_of(&add), 8, 12, GapReason::Unused));
    driver.reply(gap(channel_of(&add), 12, 12, GapReason::Loss));
    let gaps: Vec<GapSeen> = driver
        .events
        .iter()
        .filter_map(|(_, event)| match event {
            Event::Gap(gap) => Some(*gap),
            _ => None,
        })
        .collect();
    assert_eq!(gaps.len(), 1);
    assert_eq!(
        gaps[0].extent,
        Extent {
            first: Sequence(5),
            last: Sequence(8)
        }
    );
    assert_eq!(
        (gaps[0].why, gaps[0].incarnation),
        (GapReason::Retention, LIFE)
    );
    assert_eq!(driver.next(late), Some(13));
}

#[test]
fn a_live_gap_is_told_to_every_live_subscription_of_the_log() {
    let mut driver = Driver::connected();
    let (a, b) = (driver.live("a", 10), driver.live("b", 10));
    let (late, _) = driver.detached("c", 1);
    driver.reply(gap(Channel::Live, 9, 11, GapReason::Loss));
    let told: Vec<SubscriptionKey> = driver.events.iter().map(|(key, _)| *key).collect();
    assert_eq!(told, [a, b]);
    assert_eq!((driver.next(a), driver.next(late)), (Some(12), Some(1)));
}

#[test]
fn a_mark_advances_every_live_position_and_costs_nothing() {
    let mut driver = Driver::connected();
    let a = driver.live("a", 10);
    let mark = |previous, next| Reply::Mark {
        log: LOG,
        previous: Sequence(previous),
        next: Sequence(next),
    };
    driver.reply(mark(9, 40));
    assert_eq!(driver.next(a), Some(40));
    driver.reply(mark(9, 30));
    assert_eq!(driver.next(a), Some(40));
    assert!(driver.events.is_empty());
    driver.reply(mark(40, 50));
    assert_eq!(starts_at(&driver.asked()), Some(40));
}

#[test]
fn one_who_waits_beyond_the_end_hides_nothing_from_one_who_comes_later() {
    let mut driver = Driver::connected();
    let far = driver.add("a", Start::Sequence(Sequence(14)));
    let add = driver.asked();
    driver.status(&add, live_at(14));
    let near = driver.live("a", 12);
    driver.deliver(Channel::Live, 9, &["a", "a"]);
    assert!(driver.numbers(near).is_empty());
    driver.deliver(Channel::Live, 11, &["a", "a"]);
    driver.deliver(Channel::Live, 13, &["a"]);
    assert_eq!(driver.numbers(near), [12, 13, 14]);
    assert_eq!(driver.numbers(far), [14]);
}

#[test]
fn going_from_detached_to_live_and_back_loses_and_doubles_nothing() {
    let mut driver = Driver::connected();
    let (late, add) = driver.detached("a", 1);
    driver.deliver(channel_of(&add), 0, &["a", "b", "a"]);
    driver.status(&add, live_at(4));
    driver.deliver(Channel::Live, 3, &["a"]);
    driver.status(&add, detached_at(5));
    driver.deliver(Channel::Live, 4, &["a"]);
    driver.deliver(channel_of(&add), 4, &["a"]);
    driver.status(&add, live_at(6));
    driver.deliver(Channel::Live, 5, &["a"]);
    assert_eq!(driver.numbers(late), [1, 3, 4, 5, 6]);
}

#[test]
fn going_live_further_on_than_what_was_told_is_a_hole() {
    let mut driver = Driver::connected();
    let (late, add) = driver.detached("a", 1);
    driver.deliver(channel_of(&add), 0, &["a"]);
    driver.status(&add, live_at(4));
    assert_eq!(starts_at(&driver.asked()), Some(2));
    assert_eq!(driver.numbers(late), [1]);
}

#[test]
fn a_slice_keeps_its_records_numbers() {
    let mut driver = Driver::connected();
    let a = driver.live("a", 10);
    let whole = batch(&["b", "a", "b", "a"]);
    let slice = whole
        .slice(|_, topic| whole.topic(topic).name == "a")
        .unwrap();
    driver.reply(Reply::Delivery(Delivery {
        channel: Channel::Live,
        log: LOG,
        previous: Sequence(9),
        last: Sequence(13),
        base: Sequence(10),
        appended: AppendTime(5),
        clock: None,
        body: Delivered::Slice(slice),
        matches: None,
    }));
    assert_eq!(driver.numbers(a), [11, 13]);
    assert_eq!(driver.next(a), Some(14));
}

#[test]
fn what_was_appended_before_the_time_asked_for_is_not_told() {
    let mut driver = Driver::connected();
    let key = driver.add("a", Start::Time(AppendTime(6)));
    let add = driver.asked();
    driver.status(&add, detached_at(1));
    driver.deliver(channel_of(&add), 0, &["a", "a"]);
    assert_eq!((driver.numbers(key), driver.next(key)), (vec![], Some(3)));
}

#[test]
fn the_cost_of_each_delivery_comes_back_once_and_in_few_credits() {
    let mut driver = Driver::connected();
    let (a, _) = (driver.live("a", 1), driver.live("a", 1));
    let mut cost = 0;
    let mut told = 0;
    for n in 0..8_000 {
        driver.deliver(Channel::Live, n, &["a", "b"]);
        // A duplicate is nobody's: its cost comes back at once.
        driver.deliver(Channel::Live, n, &["a", "b"]);
        cost += 2 * (batch(&["a", "b"]).bytes().len() as u32 + DELIVERY_OVERHEAD_BYTES);
        driver.reply(Reply::Mark {
            log: LOG,
            previous: Sequence(n),
            next: Sequence(n + 2),
        });
        for (_, event) in std::mem::take(&mut driver.events) {
            if let Event::Messages(arrived) = event {
                told += 1;
                driver.subscriber.consumed(arrived.cost);
            }
        }
        driver.poll();
        driver.reply(Reply::Mark {
            log: LOG,
            previous: Sequence(n),
            next: Sequence(n + 1),
        });
    }
    let credits: Vec<u32> = driver
        .sent
        .iter()
        .filter_map(|request| match request {
            Request::Credit { bytes } => Some(*bytes),
            _ => None,
        })
        .collect();
    assert!(told > 0 && driver.next(a) > Some(1));
    let part = SubscriberConfig::default().credit_bytes / CREDIT_PARTS;
    assert!(credits.iter().all(|bytes| *bytes >= part));
    let returned: u32 = credits.iter().sum();
    assert!(
        returned <= cost && cost - returned < part,
        "{returned} of {cost}"
    );
}

#[test]
fn what_an_earlier_connection_delivered_earns_no_credit_on_a_new_one() {
    let mut driver = Driver::connected();
    driver.live("a", 1);
    driver.deliver(Channel::Live, 0, &["a"]);
    driver.subscriber.connected();
    for (_, event) in std::mem::take(&mut driver.events) {
        if let Event::Messages(arrived) = event {
            driver.subscriber.consumed(arrived.cost);
        }
    }
    assert_eq!(driver.subscriber.credit.returnable, 0);
    assert_eq!(driver.subscriber.credit.stale, 0);
}
