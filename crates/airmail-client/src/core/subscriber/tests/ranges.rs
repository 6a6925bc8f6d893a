//! Duplicates, holes, gaps, marks, fan-out, credit.

use super::*;

#[test]
fn a_live_delivery_reaches_every_subscription_of_its_topic_and_no_other() {
    let mut desk = Desk::connected();
    let (a, b, again) = (desk.live("a", 10), desk.live("b", 10), desk.live("a", 10));
    desk.deliver(Channel::Live, 9, &["a", "b", "a"]);
    assert_eq!(desk.numbers(a), [10, 12]);
    assert_eq!(desk.numbers(b), [11]);
    assert_eq!(desk.numbers(again), [10, 12]);
}

#[test]
fn a_duplicate_is_dropped() {
    let mut desk = Desk::connected();
    let a = desk.live("a", 10);
    desk.deliver(Channel::Live, 9, &["a", "a"]);
    desk.deliver(Channel::Live, 9, &["a", "a"]);
    assert_eq!(desk.numbers(a), [10, 11]);
    assert_eq!(desk.next(a), Some(12));
}

#[test]
fn nothing_beyond_a_deliverys_range_is_given() {
    let mut desk = Desk::connected();
    let a = desk.live("a", 1);
    desk.reply(delivery(Channel::Live, 0, 2, 1, &["a", "a", "a"]));
    desk.reply(delivery(Channel::Live, 2, 5, 100, &["a"]));
    desk.reply(delivery(Channel::Live, 5, 6, 6, &["a"]));
    assert_eq!(desk.numbers(a), [1, 2, 6]);
    let (late, add) = desk.detached("a", 1);
    desk.reply(delivery(channel_of(&add), 0, 2, 2, &["a", "a"]));
    assert_eq!(desk.numbers(late), [2]);
    assert_eq!(desk.next(late), Some(3));
}

#[test]
fn a_range_up_to_the_number_above_every_number_is_not_taken() {
    let mut desk = Desk::connected();
    let a = desk.live("a", 10);
    let end = u64::MAX;
    for _ in 0..2 {
        desk.reply(delivery(Channel::Live, end - 1, end, end, &["a"]));
        desk.reply(delivery(Channel::Live, 9, end, 10, &["a"]));
    }
    assert!(desk.numbers(a).is_empty());
    desk.deliver(Channel::Live, 9, &["a"]);
    assert_eq!(desk.numbers(a), [10]);
}

#[test]
fn a_delivery_of_one_log_reaches_nobody_who_is_live_on_another() {
    let mut desk = Desk::connected();
    let here = desk.live("a", 10);
    let there = desk.add("a", Start::Latest);
    let add = desk.asked();
    let log = LogId {
        index: airmail_model::LogIndex(1),
        ..LOG
    };
    desk.status(
        &add,
        State::Live {
            log,
            incarnation: LIFE,
            next: Sequence(10),
        },
    );
    desk.events.clear();
    desk.deliver(Channel::Live, 9, &["a"]);
    assert_eq!(desk.numbers(here), [10]);
    assert!(desk.numbers(there).is_empty());
}

#[test]
fn a_newcomer_that_begins_earlier_makes_nothing_come_twice() {
    let mut desk = Desk::connected();
    let a = desk.live("a", 10);
    desk.deliver(Channel::Live, 9, &["a", "a"]);
    assert_eq!(desk.numbers(a), [10, 11]);
    let b = desk.live("a", 5);
    desk.deliver(Channel::Live, 9, &["a", "a", "a"]);
    assert!(desk.numbers(b).is_empty());
    let again = desk.asked_all();
    let begins: Vec<Option<u64>> = again.iter().map(starts_at).collect();
    assert_eq!(begins, [Some(12), Some(5)]);
    assert!(desk.numbers(a).is_empty());
}

#[test]
fn an_overlap_gives_only_what_is_new() {
    let mut desk = Desk::connected();
    let a = desk.live("a", 10);
    desk.deliver(Channel::Live, 9, &["a", "a"]);
    desk.deliver(Channel::Live, 8, &["a", "a", "a", "a"]);
    assert_eq!(desk.numbers(a), [10, 11, 12]);
}

#[test]
fn a_hole_is_asked_for_again_from_where_it_begins_under_a_new_generation() {
    let mut desk = Desk::connected();
    let a = desk.live("a", 10);
    desk.deliver(Channel::Live, 9, &["a"]);
    desk.deliver(Channel::Live, 12, &["a"]);
    assert_eq!(desk.numbers(a), [10]);
    desk.poll();
    assert!(matches!(desk.sent[0], Request::Remove { .. }));
    let add = desk.asked();
    assert_eq!(starts_at(&add), Some(11));
    desk.status(&add, detached_at(11));
    desk.deliver(channel_of(&add), 10, &["a", "a", "a"]);
    desk.status(&add, live_at(14));
    desk.deliver(Channel::Live, 13, &["a"]);
    assert_eq!(desk.numbers(a), [11, 12, 13, 14]);
}

#[test]
fn a_hole_of_a_detached_range_renews_only_that_subscription() {
    let mut desk = Desk::connected();
    let live = desk.live("a", 50);
    let (late, add) = desk.detached("a", 1);
    desk.deliver(channel_of(&add), 5, &["a"]);
    let renewed = desk.asked();
    assert_eq!(starts_at(&renewed), Some(1));
    assert!(renewed.generation > add.generation);
    assert!(desk.numbers(late).is_empty());
    desk.deliver(Channel::Live, 49, &["a"]);
    assert_eq!(desk.numbers(live), [50]);
}

#[test]
fn what_an_earlier_generation_is_sent_is_dropped() {
    let mut desk = Desk::connected();
    let (late, add) = desk.detached("a", 1);
    desk.deliver(channel_of(&add), 5, &["a"]);
    let renewed = desk.asked();
    desk.status(&renewed, detached_at(1));
    desk.deliver(channel_of(&add), 0, &["a"]);
    desk.status(&add, State::Removed);
    desk.status(&add, State::Failed(Error::new(ErrorCode::Internal)));
    assert!(desk.numbers(late).is_empty());
    desk.deliver(channel_of(&renewed), 0, &["a"]);
    assert_eq!(desk.numbers(late), [1]);
}

#[test]
fn a_gap_is_told_at_its_exact_edges_and_an_unused_one_only_advances() {
    let mut desk = Desk::connected();
    let (late, add) = desk.detached("a", 5);
    desk.reply(gap(channel_of(&add), 2, 8, GapReason::Retention));
    desk.reply(gap(channel_of(&add), 8, 12, GapReason::Unused));
    desk.reply(gap(channel_of(&add), 12, 12, GapReason::Loss));
    let gaps: Vec<GapSeen> = desk
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
    assert_eq!(desk.next(late), Some(13));
}

#[test]
fn a_live_gap_is_told_to_every_live_subscription_of_the_log() {
    let mut desk = Desk::connected();
    let (a, b) = (desk.live("a", 10), desk.live("b", 10));
    let (late, _) = desk.detached("c", 1);
    desk.reply(gap(Channel::Live, 9, 11, GapReason::Loss));
    let told: Vec<SubscriptionKey> = desk.events.iter().map(|(key, _)| *key).collect();
    assert_eq!(told, [a, b]);
    assert_eq!((desk.next(a), desk.next(late)), (Some(12), Some(1)));
}

#[test]
fn a_mark_advances_every_live_position_and_costs_nothing() {
    let mut desk = Desk::connected();
    let a = desk.live("a", 10);
    let mark = |previous, next| Reply::Mark {
        log: LOG,
        previous: Sequence(previous),
        next: Sequence(next),
    };
    desk.reply(mark(9, 40));
    assert_eq!(desk.next(a), Some(40));
    desk.reply(mark(9, 30));
    assert_eq!(desk.next(a), Some(40));
    assert!(desk.events.is_empty());
    desk.reply(mark(40, 50));
    assert_eq!(starts_at(&desk.asked()), Some(40));
}

#[test]
fn one_who_waits_beyond_the_end_hides_nothing_from_one_who_comes_later() {
    let mut desk = Desk::connected();
    let far = desk.add("a", Start::Sequence(Sequence(14)));
    let add = desk.asked();
    desk.status(&add, live_at(14));
    let near = desk.live("a", 12);
    desk.deliver(Channel::Live, 9, &["a", "a"]);
    assert_eq!(desk.numbers(near), []);
    desk.deliver(Channel::Live, 11, &["a", "a"]);
    desk.deliver(Channel::Live, 13, &["a"]);
    assert_eq!(desk.numbers(near), [12, 13, 14]);
    assert_eq!(desk.numbers(far), [14]);
}

#[test]
fn going_from_detached_to_live_and_back_loses_and_doubles_nothing() {
    let mut desk = Desk::connected();
    let (late, add) = desk.detached("a", 1);
    desk.deliver(channel_of(&add), 0, &["a", "b", "a"]);
    desk.status(&add, live_at(4));
    desk.deliver(Channel::Live, 3, &["a"]);
    desk.status(&add, detached_at(5));
    desk.deliver(Channel::Live, 4, &["a"]);
    desk.deliver(channel_of(&add), 4, &["a"]);
    desk.status(&add, live_at(6));
    desk.deliver(Channel::Live, 5, &["a"]);
    assert_eq!(desk.numbers(late), [1, 3, 4, 5, 6]);
}

#[test]
fn going_live_further_on_than_what_was_told_is_a_hole() {
    let mut desk = Desk::connected();
    let (late, add) = desk.detached("a", 1);
    desk.deliver(channel_of(&add), 0, &["a"]);
    desk.status(&add, live_at(4));
    assert_eq!(starts_at(&desk.asked()), Some(2));
    assert_eq!(desk.numbers(late), [1]);
}

#[test]
fn a_slice_keeps_its_records_numbers() {
    let mut desk = Desk::connected();
    let a = desk.live("a", 10);
    let whole = batch(&["b", "a", "b", "a"]);
    let slice = whole
        .slice(|_, topic| whole.topic(topic).name == "a")
        .unwrap();
    desk.reply(Reply::Delivery(Delivery {
        channel: Channel::Live,
        log: LOG,
        previous: Sequence(9),
        last: Sequence(13),
        base: Sequence(10),
        appended: AppendTime(5),
        body: Delivered::Slice(slice),
    }));
    assert_eq!(desk.numbers(a), [11, 13]);
    assert_eq!(desk.next(a), Some(14));
}

#[test]
fn what_was_appended_before_the_time_asked_for_is_not_told() {
    let mut desk = Desk::connected();
    let key = desk.add("a", Start::Time(AppendTime(6)));
    let add = desk.asked();
    desk.status(&add, detached_at(1));
    desk.deliver(channel_of(&add), 0, &["a", "a"]);
    assert_eq!((desk.numbers(key), desk.next(key)), (vec![], Some(3)));
}

#[test]
fn the_cost_of_each_delivery_comes_back_once_and_in_few_credits() {
    let mut desk = Desk::connected();
    let (a, _) = (desk.live("a", 1), desk.live("a", 1));
    let mut cost = 0;
    let mut told = 0;
    for n in 0..8_000 {
        desk.deliver(Channel::Live, n, &["a", "b"]);
        // A duplicate is nobody's: its cost comes back at once.
        desk.deliver(Channel::Live, n, &["a", "b"]);
        cost += 2 * (batch(&["a", "b"]).bytes().len() as u32 + DELIVERY_OVERHEAD_BYTES);
        desk.reply(Reply::Mark {
            log: LOG,
            previous: Sequence(n),
            next: Sequence(n + 2),
        });
        for (_, event) in std::mem::take(&mut desk.events) {
            if let Event::Messages(arrived) = event {
                told += 1;
                desk.subscriber.consumed(arrived.cost);
            }
        }
        desk.poll();
        desk.reply(Reply::Mark {
            log: LOG,
            previous: Sequence(n),
            next: Sequence(n + 1),
        });
    }
    let credits: Vec<u32> = desk
        .sent
        .iter()
        .filter_map(|request| match request {
            Request::Credit { bytes } => Some(*bytes),
            _ => None,
        })
        .collect();
    assert!(told > 0 && desk.next(a) > Some(1));
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
    let mut desk = Desk::connected();
    desk.live("a", 1);
    desk.deliver(Channel::Live, 0, &["a"]);
    desk.subscriber.connected();
    for (_, event) in std::mem::take(&mut desk.events) {
        if let Event::Messages(arrived) = event {
            desk.subscriber.consumed(arrived.cost);
        }
    }
    assert_eq!(desk.subscriber.credit.free, 0);
    assert_eq!(desk.subscriber.credit.stale, 0);
}
