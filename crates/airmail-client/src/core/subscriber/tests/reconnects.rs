//! Lost connections, refusals, ends.

use super::*;

#[test]
fn everything_is_asked_for_again_from_its_place() {
    let mut desk = Desk::connected();
    let a = desk.live("a", 10);
    let (b, add) = desk.detached("b", 3);
    desk.deliver(Channel::Live, 9, &["a"]);
    desk.deliver(channel_of(&add), 2, &["b"]);
    desk.subscriber.disconnected();
    assert_eq!((desk.next(a), desk.next(b)), (Some(11), Some(4)));
    desk.subscriber.connected();
    desk.poll();
    let starts: Vec<Option<u64>> = desk
        .sent
        .iter()
        .map(|request| match request {
            Request::Add(add) => starts_at(add),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(starts, [Some(11), Some(4)]);
}

#[test]
fn latest_stays_latest_only_until_the_first_status() {
    let mut desk = Desk::connected();
    desk.add("a", Start::Latest);
    assert_eq!(desk.asked().start, Start::Latest);
    desk.subscriber.connected();
    let add = desk.asked();
    assert_eq!(add.start, Start::Latest);
    desk.status(&add, live_at(10));
    desk.subscriber.connected();
    assert_eq!(starts_at(&desk.asked()), Some(10));
}

#[test]
fn a_subscription_made_or_ended_while_not_connected_takes_effect_at_the_next_connection() {
    let mut desk = Desk::new();
    let gone = desk.add("a", Start::Earliest);
    desk.subscriber.remove(gone);
    desk.add("b", Start::Earliest);
    desk.poll();
    assert!(desk.sent.is_empty());
    desk.subscriber.connected();
    let add = desk.asked();
    assert_eq!((add.topic, add.start), (topic("b"), Start::Earliest));
}

#[test]
fn a_key_is_never_reused_though_its_number_is() {
    let mut desk = Desk::connected();
    let first = desk.live("a", 10);
    desk.subscriber.remove(first);
    let second = desk.add("b", Start::Latest);
    assert_ne!(first, second);
    let add = desk.asked();
    assert_eq!(add.subscription, SubscriptionId(0));
    desk.status(&add, live_at(10));
    assert_eq!((desk.next(first), desk.next(second)), (None, Some(10)));
    desk.subscriber.remove(first);
    assert_eq!(desk.next(second), Some(10));
}

#[test]
fn another_life_of_the_log_begins_where_the_node_says_and_the_rest_of_the_old_is_told_as_lost() {
    let mut desk = Desk::connected();
    let a = desk.live("a", 1_000);
    desk.subscriber.connected();
    let add = desk.asked();
    desk.status(
        &add,
        State::Detached {
            log: LOG,
            incarnation: Incarnation(8),
            next: Sequence(1),
            resumed: false,
        },
    );
    let Event::Gap(gap) = &desk.events[0].1 else {
        panic!("{:?}", desk.events);
    };
    assert_eq!(
        (gap.extent.first, gap.extent.last),
        (Sequence(1_000), Sequence::MAX)
    );
    assert_eq!((gap.why, gap.incarnation), (GapReason::Loss, LIFE));
    desk.events.clear();
    desk.deliver(channel_of(&add), 0, &["a"]);
    assert_eq!(desk.numbers(a), [1]);
    assert_eq!(
        desk.subscriber.position(a).unwrap().logs[0].incarnation,
        Incarnation(8)
    );
}

#[test]
fn a_refusal_that_may_pass_is_tried_again_after_its_delay() {
    let mut desk = Desk::connected();
    let a = desk.live("a", 10);
    desk.subscriber.connected();
    let add = desk.asked();
    let delay = std::time::Duration::from_secs(2);
    let busy = Error::new(ErrorCode::Overloaded).retry_after(delay);
    desk.status(&add, State::Failed(busy));
    assert!(desk.events.is_empty());
    let wake = desk.poll().unwrap();
    assert!(desk.sent.is_empty() && wake >= desk.now.plus(delay));
    desk.now = wake;
    assert_eq!(starts_at(&desk.asked()), Some(10));
    assert_eq!(desk.next(a), Some(10));
}

#[test]
fn a_final_refusal_is_told_and_frees_the_key() {
    let mut desk = Desk::connected();
    let key = desk.add("a", Start::Latest);
    let add = desk.asked();
    desk.status(&add, State::Failed(Error::new(ErrorCode::PermissionDenied)));
    assert_eq!(desk.events.len(), 1);
    assert!(matches!(&desk.events[0].1, Event::Status(State::Failed(_))));
    assert_eq!(desk.next(key), None);
    desk.subscriber.connected();
    desk.poll();
    assert!(desk.sent.is_empty());
}

#[test]
fn a_refusal_is_waited_for_or_told_as_the_table_says() {
    for &code in ErrorCode::ALL {
        let mut desk = Desk::connected();
        desk.add("a", Start::Latest);
        let add = desk.asked();
        desk.status(&add, State::Failed(Error::new(code)));
        assert_eq!(desk.events.is_empty(), code.waited_for(), "{code:?}");
        let said = desk.subscriber.refused().map(Error::code);
        assert_eq!(said, code.waited_for().then_some(code));
    }
}

#[test]
fn a_look_into_history_ends_with_complete() {
    let mut desk = Desk::connected();
    let key = desk.subscriber.add(Wanted {
        namespace: NAMESPACE,
        topic: topic("a"),
        start: Start::Earliest,
        until: Some(Until::Now),
    });
    let add = desk.asked();
    assert_eq!(add.until, Some(Until::Now));
    desk.status(&add, detached_at(1));
    desk.deliver(channel_of(&add), 0, &["a"]);
    desk.status(&add, State::Complete { next: Sequence(2) });
    assert!(matches!(
        desk.events[2].1,
        Event::Status(State::Complete { .. })
    ));
    assert_eq!(desk.next(key), None);
}

#[test]
fn nothing_is_told_of_a_subscription_after_its_removal() {
    let mut desk = Desk::connected();
    let a = desk.live("a", 10);
    let (b, add) = desk.detached("b", 1);
    desk.subscriber.remove(a);
    desk.subscriber.remove(b);
    desk.deliver(Channel::Live, 9, &["a"]);
    desk.deliver(channel_of(&add), 0, &["b"]);
    desk.status(&add, State::Removed);
    assert!(desk.events.is_empty());
    desk.poll();
    let removes = desk
        .sent
        .iter()
        .filter(|request| matches!(request, Request::Remove { .. }));
    assert_eq!(removes.count(), 2);
}

#[test]
fn many_subscriptions_are_asked_for_in_bounded_steps() {
    let mut desk = Desk::new();
    for n in 0..10_000 {
        desk.add(&format!("t{n}"), Start::Latest);
    }
    desk.subscriber.connected();
    assert_eq!(desk.poll(), Some(desk.now));
    assert_eq!(desk.sent.len(), 4_096);
    desk.poll();
    assert_eq!(desk.poll(), None);
    assert_eq!(desk.sent.len(), 10_000);
}

#[test]
fn who_resumes_in_another_life_of_the_log_loses_nothing_and_keeps_its_own_count() {
    let mut desk = Desk::connected();
    let key = desk.add("a", Start::Latest);
    let add = desk.asked();
    desk.status(&add, live_at(10));
    desk.events.clear();
    desk.deliver(Channel::Live, 9, &["a", "a"]);
    assert_eq!(desk.numbers(key), [10, 11]);
    desk.status(
        &add,
        State::Detached {
            log: LOG,
            incarnation: Incarnation(8),
            next: Sequence(10),
            resumed: true,
        },
    );
    let gaps = desk
        .events
        .iter()
        .filter(|(_, event)| matches!(event, Event::Gap(_)));
    assert_eq!(gaps.count(), 0);
    let place = desk.subscriber.position(key).unwrap().logs[0];
    assert_eq!(
        (place.incarnation, place.next),
        (Incarnation(8), Sequence(12))
    );
    desk.deliver(channel_of(&add), 9, &["a", "a", "a"]);
    assert_eq!(desk.numbers(key), [12], "what it has had is dropped");
}

#[test]
fn a_number_that_the_log_has_not_got_to_is_no_position_and_is_asked_for_again_as_a_number() {
    let mut desk = Desk::connected();
    let wish = Start::Sequence(Sequence(500));
    let key = desk.add("a", wish.clone());
    let add = desk.asked();
    assert_eq!(add.start, wish);
    desk.status(&add, detached_at(10));
    assert_eq!(desk.next(key), None);
    desk.subscriber.connected();
    let add = desk.asked();
    assert_eq!(add.start, wish);
    desk.status(&add, detached_at(400));
    desk.reply(gap(channel_of(&add), 399, 499, GapReason::Unused));
    desk.status(&add, live_at(500));
    assert_eq!(desk.next(key), Some(500));
    desk.deliver(Channel::Live, 499, &["a"]);
    assert_eq!(desk.numbers(key), [500]);
    desk.subscriber.connected();
    assert_eq!(starts_at(&desk.asked()), Some(501));
}

#[test]
fn a_number_that_the_log_has_not_got_to_waits_on_in_another_life_and_loses_nothing() {
    let mut desk = Desk::connected();
    let wish = Start::Sequence(Sequence(500));
    let key = desk.add("a", wish.clone());
    let add = desk.asked();
    desk.status(&add, detached_at(10));
    desk.subscriber.connected();
    let add = desk.asked();
    assert_eq!(add.start, wish);
    desk.status(
        &add,
        State::Detached {
            log: LOG,
            incarnation: Incarnation(8),
            next: Sequence(5),
            resumed: false,
        },
    );
    let is_gap = |event: &Event| matches!(event, Event::Gap(_));
    assert!(!desk.events.iter().any(|(_, event)| is_gap(event)));
    assert_eq!(desk.next(key), None);
    desk.subscriber.connected();
    assert_eq!(desk.asked().start, wish);
}

#[test]
fn a_number_that_the_log_has_got_to_is_a_position_from_then_on() {
    for live in [true, false] {
        let mut desk = Desk::connected();
        let key = desk.add("a", Start::Sequence(Sequence(500)));
        let add = desk.asked();
        let (state, channel) = if live {
            (live_at(400), Channel::Live)
        } else {
            (detached_at(400), channel_of(&add))
        };
        desk.status(&add, state);
        assert_eq!(desk.next(key), None);
        desk.reply(delivery(channel, 399, 501, 500, &["a", "a"]));
        assert_eq!(desk.numbers(key), [500, 501]);
        assert_eq!(desk.next(key), Some(502));
        desk.subscriber.connected();
        assert_eq!(starts_at(&desk.asked()), Some(502), "not from 500 again");
    }
}
