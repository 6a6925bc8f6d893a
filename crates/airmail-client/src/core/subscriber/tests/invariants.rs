//! Each invariant is asserted: a state that breaks it is complained of under its name.

use super::*;
use crate::core::subscriber::slot::Mode;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// One live subscription, one detached, one that has ended and one that waits to be asked for.
fn busy() -> Subscriber {
    let mut desk = Desk::connected();
    desk.live("a", 10);
    let gone = desk.live("b", 10);
    desk.detached("c", 1);
    desk.subscriber.remove(gone);
    let waits = desk.add("d", Start::Latest);
    let busy = Error::new(ErrorCode::Overloaded);
    let add = desk.asked_all().pop().unwrap();
    desk.status(&add, State::Failed(busy));
    assert_eq!(waits.index(), add.subscription.0);
    desk.subscriber
}

/// What is said where `look` panics.
fn complaint(look: impl FnOnce()) -> String {
    let panicked = catch_unwind(AssertUnwindSafe(look)).expect_err("nothing was complained of");
    let text = panicked.downcast::<String>().map(|text| *text);
    let text = text.expect("a text");
    text.trim_start_matches("assertion `left == right` failed: ")
        .to_owned()
}

type Break = fn(&mut Subscriber);

#[test]
fn a_state_that_breaks_an_invariant_is_complained_of_under_its_name() {
    let breaks: [(&str, Break); 11] = [
        ("numbers", |s| s.free.push(0)),
        ("numbers", |s| s.slots[0].mode = Mode::Free),
        ("place", |s| s.slots[0].place = None),
        ("place", |s| {
            s.slots[0].start = Some(Box::new(Start::Latest))
        }),
        ("asking", |s| s.connected = false),
        ("asking", |s| s.retries.clear()),
        ("asking", |s| s.slots[2].mode = Mode::Unsent),
        ("ranges", |s| s.slots[0].mode = Mode::Detached),
        ("ranges", |s| s.slots[2].mode = Mode::Live),
        ("ranges", |s| s.live.ranges.clear()),
        ("told", |s| s.told.push((0, 0, Sequence(1)))),
    ];
    for (name, change) in breaks {
        let mut subscriber = busy();
        assert!(subscriber.check() > 0);
        change(&mut subscriber);
        let complaint = complaint(|| {
            subscriber.check();
        });
        assert!(
            complaint.starts_with(&format!("{name}: ")),
            "{name}: {complaint}"
        );
    }
}

#[test]
fn a_step_that_forgets_a_place_or_sets_it_back_is_complained_of() {
    let steps: [Break; 2] = [
        |s| s.slots[2].place = None,
        |s| {
            if let Some(place) = &mut s.slots[2].place {
                place.next = Sequence(0);
            }
        },
    ];
    for step in steps {
        let mut subscriber = busy();
        let out = SubscriberOutput::default();
        let before = subscriber.before(&out);
        step(&mut subscriber);
        let complaint = complaint(|| subscriber.after(before, 0, &out));
        assert!(complaint.starts_with("place: "), "{complaint}");
    }
}

#[test]
fn a_step_that_loses_or_doubles_credit_is_complained_of() {
    let steps: [Break; 3] = [
        |s| s.credit.free += 1,
        |s| s.credit.free -= 1,
        |s| s.credit.out += 7,
    ];
    for step in steps {
        let mut subscriber = busy();
        subscriber.credit.free = 5;
        let out = SubscriberOutput::default();
        let before = subscriber.before(&out);
        step(&mut subscriber);
        let complaint = complaint(|| subscriber.after(before, 0, &out));
        assert!(complaint.starts_with("credit: "), "{complaint}");
    }
}

#[test]
fn a_step_that_tells_what_is_never_told_is_complained_of() {
    let mut subscriber = busy();
    let mut out = SubscriberOutput::default();
    let before = subscriber.before(&out);
    let key = SubscriptionKey::new(0, 0);
    out.events.push((key, Event::Status(State::Removed)));
    let complaint = complaint(|| subscriber.after(before, 0, &out));
    assert!(complaint.starts_with("told: "), "{complaint}");
}
