//! Each invariant is asserted: the check of a state that breaks it panics with its name.

use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A producer with two batches in flight, one sealed and one open, and in lane high one in flight.
fn busy() -> Producer {
    let mut driver = Driver::new(1, |config| config.limits.batch_records = 2);
    driver.producer.connected();
    (0..4).for_each(|ticket| driver.publish("a", ticket));
    let (now, high) = (driver.now(), message("a", "high").lane(Lane::High));
    let taken = driver.producer.publish(now, NAMESPACE, &high, Ticket(7));
    assert_eq!((taken, driver.poll()), (Ok(()), 3));
    (4..7).for_each(|ticket| driver.publish("a", ticket));
    driver.producer
}

/// Gives the message with which `look` panics.
fn complaint(look: impl FnOnce()) -> String {
    let panicked = catch_unwind(AssertUnwindSafe(look)).expect_err("nothing was complained of");
    let text = panicked.downcast::<String>().map(|text| *text);
    let text = text.expect("a text");
    text.trim_start_matches("assertion `left == right` failed: ")
        .to_owned()
}

type Break = fn(&mut Producer);

fn queue(producer: &mut Producer) -> &mut LogQueue {
    producer.queues.values_mut().next().unwrap()
}

#[test]
fn a_state_that_breaks_an_invariant_is_complained_of_under_its_name() {
    let breaks: [(&str, Break); 16] = [
        ("memory", |p| p.held_bytes.add(Lane::Normal, 1)),
        ("memory", |p| p.config.memory_bytes = 1),
        ("connection", |p| p.unacked_bytes.add(Lane::Normal, 1)),
        ("connection", |p| p.connected = false),
        ("requests", |p| p.requests.clear()),
        ("requests", |p| p.next_request = 0),
        ("window", |p| p.config.in_flight = 1),
        ("window", |p| p.config.in_flight_bytes = 1),
        ("numbers", |p| queue(p).next += 1),
        ("numbers", |p| queue(p).batches.swap(0, 1)),
        ("numbers", |p| queue(p).epoch = ProducerEpoch(9)),
        ("order", |p| queue(p).batches.swap(1, 2)),
        ("order", |p| queue(p).batches[0].request = None),
        ("tickets", |p| {
            queue(p).batches[0].tickets.pop();
        }),
        ("maps", |p| {
            let known = p.maps.get_mut(&NAMESPACE).unwrap();
            known.newer = Some(known.current.clone());
        }),
        ("maps", |p| p.maps.clear()),
    ];
    for (name, change) in breaks {
        let mut producer = busy();
        assert!(producer.check() > 0);
        change(&mut producer);
        let complaint = complaint(|| {
            producer.check();
        });
        // What is swapped is first seen by its numbers.
        let order = name == "order" && complaint.starts_with("numbers: ");
        assert!(
            complaint.starts_with(&format!("{name}: ")) || order,
            "{name}: {complaint}"
        );
    }
}

#[test]
fn a_ticket_that_a_step_loses_or_doubles_is_complained_of() {
    for accepted in [1, 0] {
        let mut producer = busy();
        let mut out = ProducerOutput::default();
        let before = producer.begin_check(&out);
        if accepted == 0 {
            out.settled.push(Settled {
                tickets: vec![Ticket(0)],
                log: LogId::default(),
                result: Err(Error::new(ErrorCode::Overloaded)),
            });
        }
        let complaint = complaint(|| producer.end_check(before, accepted, &out));
        assert!(complaint.starts_with("tickets: "), "{complaint}");
    }
}

#[test]
fn bytes_beyond_the_connections_bound_are_complained_of() {
    let mut producer = busy();
    let out = ProducerOutput::default();
    let unacked = std::mem::take(&mut producer.unacked_bytes);
    let before = producer.begin_check(&out);
    producer.unacked_bytes = unacked;
    producer.config.limits.unacked_bytes = 1;
    let complaint = complaint(|| producer.end_check(before, 0, &out));
    assert!(complaint.starts_with("connection: "), "{complaint}");
}

#[test]
fn a_poll_that_leaves_something_that_nothing_moves_on_is_complained_of() {
    let mut driver = Driver::connected(1);
    driver.publish("a", 0);
    let now = driver.now().mono;
    let producer = &driver.producer;
    let stands = complaint(|| producer.check_polled(now, None));
    assert!(stands.starts_with("progress: "), "{stands}");
    let idle = Driver::connected(1).producer;
    let at_once = complaint(|| idle.check_polled(now, Some(now)));
    assert!(at_once.starts_with("progress: "), "{at_once}");
}
