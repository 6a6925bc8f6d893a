//! Lane high overtakes lane normal, has room beside a full window of it, and leaves it a part.

use super::*;
use airmail_model::Lane::{High, Normal};

/// A producer whose batches hold one message each.
fn one_by_one(change: impl FnOnce(&mut ProducerConfig)) -> Driver {
    let mut driver = Driver::new(1, |config| {
        config.limits.batch_records = 1;
        change(config);
    });
    driver.producer.connected();
    driver
}

/// Offers a message of 100 bytes.
fn offer(driver: &mut Driver, topic: &str, lane: Lane, ticket: u64) -> Result<(), PublishError> {
    let message = message(topic, &"x".repeat(100)).lane(lane);
    let now = driver.now();
    driver
        .producer
        .publish(now, NAMESPACE, &message, Ticket(ticket))
}

/// Gives the lanes of what was sent, in order.
fn lanes(sent: &[Request]) -> Vec<Lane> {
    let lane = |request: &Request| match request {
        Request::Publish { batch, .. } => batch.log().lane,
        other => panic!("{other:?}"),
    };
    sent.iter().map(lane).collect()
}

/// Counts the bytes in flight of a lane.
fn in_flight(driver: &Driver, lane: Lane) -> usize {
    driver.producer.unacked_bytes.of(lane)
}

#[test]
fn what_lane_high_has_is_sent_first() {
    let mut driver = one_by_one(|_| {});
    for ticket in 0..4 {
        offer(&mut driver, "a", Normal, ticket).unwrap();
    }
    for ticket in 4..7 {
        offer(&mut driver, "a", High, ticket).unwrap();
    }
    assert_eq!(driver.poll(), 7);
    let expected = [High, High, High, Normal, Normal, Normal, Normal];
    assert_eq!(lanes(&driver.sent), expected);
    driver.run(&mut Node::new(map(1, 1)));
    assert_eq!(driver.outcomes(), all_stored(0..7));
}

#[test]
fn a_full_window_of_lane_normal_does_not_stop_lane_high() {
    let mut driver = one_by_one(|config| config.limits.unacked_bytes = 4_096);
    for ticket in 0..100 {
        offer(&mut driver, "a", Normal, ticket).unwrap();
    }
    let sent = driver.poll();
    assert!(sent < 100 && driver.poll() == 0, "the window is full");
    offer(&mut driver, "a", High, 100).unwrap();
    assert!(driver.producer.is_due());
    assert_eq!(driver.poll(), 1);
    assert_eq!(lanes(&driver.sent)[sent..], [High]);
    for ticket in 101..200 {
        offer(&mut driver, "a", High, ticket).unwrap();
    }
    driver.poll();
    let bytes = in_flight(&driver, High) + in_flight(&driver, Normal);
    assert!(bytes <= 4_096 / 8 * 9, "{bytes} bytes in flight");
    driver.run(&mut Node::new(map(1, 1)));
}

#[test]
fn a_full_memory_of_lane_normal_does_not_refuse_lane_high() {
    let mut driver = one_by_one(|config| config.memory_bytes = 8_000);
    let mut ticket = 0..;
    let mut take = |driver: &mut Driver, lane| {
        let more = ticket
            .by_ref()
            .take_while(|n| offer(driver, "a", lane, *n).is_ok());
        more.count()
    };
    let normal = take(&mut driver, Normal);
    let held = driver.producer.held_bytes();
    assert!(held <= 8_000);
    let high = take(&mut driver, High);
    assert!((1..normal).contains(&high), "{high} beside {normal}");
    assert!(driver.producer.held_bytes() - held <= 1_000);
}

#[test]
fn lane_high_never_takes_all_of_the_window_however_much_it_has() {
    let mut driver = one_by_one(|config| config.limits.unacked_bytes = 4_096);
    for ticket in 0..100 {
        offer(&mut driver, "a", High, ticket).unwrap();
        offer(&mut driver, "b", Normal, 100 + ticket).unwrap();
    }
    driver.poll();
    let (high, normal) = (in_flight(&driver, High), in_flight(&driver, Normal));
    assert!(high > 3 * normal && high <= 4_096 / 8 * 7, "{high}");
    // Room for one batch more may be left.
    assert!(normal > 4_096 / 4 - 300, "{normal}");
    driver.run(&mut Node::new(map(1, 1)));
}

#[test]
fn without_lane_high_the_bounds_are_as_before() {
    let mut driver = one_by_one(|config| {
        config.limits.unacked_bytes = 4_096;
        config.memory_bytes = 20_000;
    });
    let held = |driver: &Driver| driver.producer.held_bytes();
    let taken = (0..).take_while(|n| offer(&mut driver, "a", Normal, *n).is_ok());
    let taken = taken.count();
    let one = held(&driver) / taken;
    assert_eq!(taken, 20_000 / one);
    let sent = driver.poll();
    let batch = in_flight(&driver, Normal) / sent;
    assert_eq!(sent, 4_096 / batch);
}

#[test]
fn a_batch_never_mixes_lanes_and_each_lane_of_a_topic_keeps_its_order() {
    let mut driver = Driver::connected(1);
    let mut node = Node::new(map(1, 1));
    for ticket in 0..60 {
        let lane = if ticket % 3 == 0 { High } else { Normal };
        let message = message("a", &ticket.to_string()).lane(lane);
        let now = driver.now();
        let taken = driver
            .producer
            .publish(now, NAMESPACE, &message, Ticket(ticket));
        assert_eq!(taken, Ok(()));
    }
    driver.run(&mut node);
    for lane in Lane::ALL {
        let of_lane = node.stored.iter().filter(|(log, ..)| log.lane == lane);
        let numbers: Vec<u64> = of_lane.map(|stored| stored.2.parse().unwrap()).collect();
        let expected = (0..60).filter(|n| (n % 3 == 0) == (lane == High));
        assert_eq!(numbers, expected.collect::<Vec<_>>(), "{lane}");
    }
}

#[test]
fn messages_that_are_batched_again_by_a_new_map_stay_in_their_lane() {
    let mut driver = one_by_one(|_| {});
    let mut node = Node::new(map(1, 1));
    node.set_map(map(2, 4));
    for ticket in 0..20 {
        let lane = if ticket % 2 == 0 { High } else { Normal };
        offer(&mut driver, &format!("t{}", ticket % 5), lane, ticket).unwrap();
    }
    driver.run(&mut node);
    assert_eq!(driver.outcomes(), all_stored(0..20));
    let high = node.stored.iter().filter(|(log, ..)| log.lane == High);
    assert_eq!((high.count(), node.stored.len()), (10, 20));
}
