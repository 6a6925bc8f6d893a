//! Each invariant is asserted: the check of a state that breaks it panics with its name.

use super::*;
use crate::core::subscriber::deliveries::Recipient;
use crate::core::subscriber::subscription_slot::{Mode, PartMode};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A subscriber with a live subscription, a detached one, one that has ended, one to be
/// requested again, and a live selection.
fn busy() -> Subscriber {
    let mut driver = Driver::connected();
    driver.live("a", 10);
    let gone = driver.live("b", 10);
    driver.detached("c", 1);
    driver.subscriber.remove(gone);
    let waits = driver.add("d", Start::Latest);
    let busy = Error::new(ErrorCode::Overloaded);
    let add = driver.asked_all().pop().unwrap();
    driver.status(&add, State::Failed(busy));
    assert_eq!(waits.index(), add.subscription.0);
    let selection = driver.live_selection(LOG, 10).0;
    assert_eq!(selection.index(), 3);
    driver.subscriber
}

/// Gives the message with which `look` panics.
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
    let breaks: [(&str, Break); 13] = [
        ("numbers", |s| s.free.push(0)),
        ("numbers", |s| s.slots[0].mode = Mode::Free),
        ("position", |s| s.slots[0].parts.swap(0, 1)),
        ("position", |s| {
            s.slots[0].start = Some(Box::new(Start::Latest))
        }),
        ("requests", |s| s.connected = false),
        ("requests", |s| s.retries.clear()),
        ("requests", |s| s.slots[2].mode = Mode::Unsent),
        ("ranges", |s| {
            s.slots[0].set_mode(Lane::Normal, PartMode::Detached)
        }),
        ("ranges", |s| {
            s.slots[2].set_mode(Lane::Normal, PartMode::Live)
        }),
        ("ranges", |s| s.live.ranges.clear()),
        ("ranges", |s| {
            s.slots[3].set_mode(Lane::Normal, PartMode::Detached)
        }),
        ("ranges", |s| s.slots[3].wanted = Wanted::Topic(topic("a"))),
        ("events", |s| {
            s.recipients.push(Recipient {
                index: 0,
                topic: Some(0),
                from: Sequence(1),
            });
        }),
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
fn a_step_that_forgets_a_position_or_sets_it_back_is_complained_of() {
    let steps: [Break; 2] = [
        |s| s.slots[2].parts[0] = None,
        |s| {
            if let Some(part) = &mut s.slots[2].parts[0] {
                part.at.next = Sequence(0);
            }
        },
    ];
    for step in steps {
        let mut subscriber = busy();
        let out = SubscriberOutput::default();
        let before = subscriber.begin_check(&out);
        step(&mut subscriber);
        let complaint = complaint(|| subscriber.end_check(before, 0, &out));
        assert!(complaint.starts_with("position: "), "{complaint}");
    }
}

#[test]
fn a_step_that_loses_or_doubles_credit_is_complained_of() {
    let steps: [Break; 3] = [
        |s| s.credit.returnable += 1,
        |s| s.credit.returnable -= 1,
        |s| s.credit.with_users += 7,
    ];
    for step in steps {
        let mut subscriber = busy();
        subscriber.credit.returnable = 5;
        let out = SubscriberOutput::default();
        let before = subscriber.begin_check(&out);
        step(&mut subscriber);
        let complaint = complaint(|| subscriber.end_check(before, 0, &out));
        assert!(complaint.starts_with("credit: "), "{complaint}");
    }
}

#[test]
fn a_step_that_tells_what_is_never_told_is_complained_of() {
    let mut subscriber = busy();
    let mut out = SubscriberOutput::default();
    let before = subscriber.begin_check(&out);
    let key = SubscriptionKey::new(0, 0);
    out.events.push((key, Event::Status(State::Removed)));
    let complaint = complaint(|| subscriber.end_check(before, 0, &out));
    assert!(complaint.starts_with("events: "), "{complaint}");
}
