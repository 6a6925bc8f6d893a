//! Batching, order, bounds, lost connections, new maps.

use super::*;
use airmail_model::Sequence;

#[test]
fn messages_gather_while_two_batches_are_in_flight() {
    let mut driver = Driver::connected(1);
    let mut node = Node::new(map(1, 1));
    for ticket in 0..2 {
        driver.publish("a", ticket);
        assert_eq!(driver.poll(), 1);
    }
    for ticket in 2..100 {
        driver.publish("a", ticket);
        assert_eq!(driver.poll(), 0);
    }
    let first = driver.sent.remove(0);
    driver.reply(node.answer(&first));
    assert_eq!(driver.poll(), 1);
    driver.run(&mut node);
    assert_eq!(driver.outcomes(), all_stored(0..100));
    let batches: Vec<usize> = driver.settled.iter().map(|s| s.tickets.len()).collect();
    assert_eq!(batches, [1, 1, 98]);
}

#[test]
fn an_ack_names_each_messages_number() {
    let mut driver = Driver::connected(1);
    let mut node = Node::new(map(1, 1));
    (0..5).for_each(|ticket| driver.publish("a", ticket));
    driver.run(&mut node);
    let settled = &driver.settled[0];
    let extent = settled.result.as_ref().unwrap().extent;
    assert_eq!((extent.first, extent.last), (Sequence(1), Sequence(5)));
    assert_eq!(settled.tickets, (0..5).map(Ticket).collect::<Vec<_>>());
}

#[test]
fn full_batches_go_out_up_to_the_window_and_no_further() {
    let mut driver = Driver::new(1, |config| {
        config.in_flight = 3;
        config.limits.batch_records = 2;
    });
    driver.producer.connected();
    (0..20).for_each(|ticket| driver.publish("a", ticket));
    assert_eq!(driver.poll(), 3);
    let mut node = Node::new(map(1, 1));
    let first = driver.sent.remove(0);
    driver.reply(node.answer(&first));
    assert_eq!(driver.poll(), 1);
    driver.run(&mut node);
    assert_eq!(driver.outcomes(), all_stored(0..20));
}

#[test]
fn no_more_batches_are_in_flight_than_the_node_knows_again() {
    for (own, nodes, most) in [(usize::MAX, 64, 64), (usize::MAX, 5, 5), (3, 64, 3)] {
        let mut driver = Driver::new(1, |config| {
            config.in_flight = own;
            config.batch_messages = 1;
        });
        driver.producer.set_limits(Limits {
            batches_in_flight: nodes,
            ..Limits::DEFAULT
        });
        driver.producer.connected();
        (0..100).for_each(|ticket| driver.publish("a", ticket));
        assert_eq!(driver.poll(), most);
        let mut node = Node::new(map(1, 1));
        driver.run(&mut node);
        assert_eq!(driver.outcomes(), all_stored(0..100));
    }
}

#[test]
fn the_bytes_of_a_log_in_flight_are_bounded_but_one_batch_always_goes() {
    let mut driver = Driver::new(1, |config| {
        config.in_flight_bytes = 300;
        config.limits.batch_records = 1;
    });
    driver.producer.connected();
    (0..20).for_each(|ticket| driver.publish("a", ticket));
    let sent = driver.poll();
    assert!((2..20).contains(&sent), "{sent} of 20");
    let size = |request: &Request| match request {
        Request::Publish { batch, .. } => batch.bytes().len(),
        _ => 0,
    };
    assert!(driver.sent.iter().map(size).sum::<usize>() <= 300);
    let mut node = Node::new(map(1, 1));
    driver.run(&mut node);
    assert_eq!(driver.outcomes(), all_stored(0..20));
    let mut tight = Driver::new(1, |config| config.in_flight_bytes = 1);
    tight.producer.connected();
    (0..3).for_each(|ticket| tight.publish("a", ticket));
    assert_eq!(tight.poll(), 1);
}

#[test]
fn a_batch_holds_no_more_messages_than_it_may_whatever_the_node_lets() {
    let mut driver = Driver::new(1, |config| config.batch_messages = 2);
    driver.producer.set_limits(Limits::DEFAULT);
    driver.producer.connected();
    (0..6).for_each(|ticket| driver.publish("a", ticket));
    let mut node = Node::new(map(1, 1));
    driver.run(&mut node);
    assert!(driver.settled.iter().all(|s| s.tickets.len() == 2));
    assert_eq!(driver.outcomes(), all_stored(0..6));
}

#[test]
fn the_connections_window_is_shared_by_its_logs_in_turn() {
    let mut driver = Driver::new(8, |config| {
        config.limits.unacked_bytes = 400;
        config.limits.batch_records = 1;
    });
    driver.producer.connected();
    let mut node = Node::new(map(1, 8));
    (0..64).for_each(|ticket| driver.publish(&format!("t{}", ticket % 32), ticket));
    let sent = driver.poll();
    assert!(sent < 8, "{sent}");
    driver.run(&mut node);
    assert_eq!(driver.outcomes(), all_stored(0..64));
}

#[test]
fn topics_are_split_over_logs_by_the_map_and_keep_their_order() {
    let mut driver = Driver::connected(4);
    let mut node = Node::new(map(1, 4));
    (0..200).for_each(|ticket| driver.publish(&format!("t{}", ticket % 10), ticket));
    driver.run(&mut node);
    assert_eq!(driver.outcomes(), all_stored(0..200));
    let map = map(1, 4);
    let mut logs = Vec::new();
    for topic in 0..10u64 {
        let topic = format!("t{topic}");
        let of: Vec<_> = node.stored.iter().filter(|s| s.1 == topic).collect();
        let numbers: Vec<u64> = of.iter().map(|s| s.2.parse().unwrap()).collect();
        assert!(numbers.is_sorted() && numbers.len() == 20);
        let log = map.log(TopicName::hash_of(NAMESPACE, &topic), Lane::Normal);
        assert!(of.iter().all(|s| s.0 == log));
        logs.push(log);
    }
    logs.sort_unstable();
    logs.dedup();
    assert!(logs.len() > 1);
}

#[test]
fn the_memory_bound_is_answered_with_full_and_room_comes_back() {
    let mut driver = Driver::new(1, |config| config.memory_bytes = 200);
    driver.producer.connected();
    let now = driver.now();
    let offer = |driver: &mut Driver, ticket| {
        let message = message("a", "0123456789");
        driver
            .producer
            .publish(now, NAMESPACE, &message, Ticket(ticket))
    };
    assert_eq!(offer(&mut driver, 0), Ok(()));
    assert_eq!(offer(&mut driver, 1), Ok(()));
    assert_eq!(offer(&mut driver, 2), Err(PublishError::Full));
    assert!(driver.producer.held_bytes() <= 200);
    driver.run(&mut Node::new(map(1, 1)));
    assert_eq!(driver.producer.held_bytes(), 0);
    assert_eq!(offer(&mut driver, 2), Ok(()));
}

#[test]
fn one_message_above_the_memory_bound_is_taken_when_nothing_else_is_held() {
    let mut driver = Driver::new(1, |config| config.memory_bytes = 1);
    driver.publish("a", 0);
    let second = message("a", "1");
    let taken = driver
        .producer
        .publish(driver.now(), NAMESPACE, &second, Ticket(1));
    assert_eq!(taken, Err(PublishError::Full));
}

#[test]
fn what_can_never_be_stored_is_refused_at_once() {
    let mut driver = Driver::connected(1);
    let mut message = message("a", "x");
    message.payload = vec![0; 2 << 20].into();
    let refused = driver
        .producer
        .publish(driver.now(), NAMESPACE, &message, Ticket(0));
    let Err(PublishError::Refused(error)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(error.code(), ErrorCode::MessageTooLarge);
    assert!(driver.producer.is_idle());
    let unknown = driver
        .producer
        .publish(driver.now(), NamespaceId(9), &message, Ticket(0));
    assert_eq!(unknown, Err(PublishError::Unresolved));
}

#[test]
fn a_lost_connection_resends_the_same_bytes_and_stores_nothing_twice() {
    let mut driver = Driver::new(1, |config| config.limits.batch_records = 3);
    driver.producer.connected();
    let mut node = Node::new(map(1, 1));
    (0..12).for_each(|ticket| driver.publish("a", ticket));
    driver.poll();
    let before: Vec<Request> = driver.sent.drain(..).collect();
    // The node stores the first two, and the connection is cut before it can say so.
    node.answer(&before[0]);
    node.answer(&before[1]);
    driver.producer.disconnected();
    driver.poll();
    assert!(driver.sent.is_empty());
    driver.producer.connected();
    driver.poll();
    let bytes = |request: &Request| match request {
        Request::Publish { batch, .. } => batch.bytes().clone(),
        other => panic!("{other:?}"),
    };
    let again: Vec<_> = driver.sent.iter().map(bytes).collect();
    assert_eq!(again, before.iter().map(bytes).collect::<Vec<_>>());
    driver.run(&mut node);
    assert_eq!(driver.outcomes(), all_stored(0..12));
    let expected: Vec<String> = (0..12).map(|n: u32| n.to_string()).collect();
    assert_eq!(node.payloads(), expected);
    let duplicates = driver
        .settled
        .iter()
        .filter(|s| s.result.as_ref().unwrap().duplicate);
    assert_eq!(duplicates.count(), 2);
}

#[test]
fn an_answer_to_an_earlier_connections_request_is_ignored() {
    let mut driver = Driver::connected(1);
    let mut node = Node::new(map(1, 1));
    driver.publish("a", 0);
    driver.poll();
    let late = node.answer(&driver.sent.remove(0));
    driver.producer.connected();
    driver.reply(late);
    assert!(driver.settled.is_empty());
    driver.run(&mut node);
    assert_eq!(driver.outcomes(), all_stored(0..1));
    assert_eq!(node.payloads(), ["0"]);
}

#[test]
fn a_stale_map_is_replaced_and_each_topic_keeps_its_order() {
    let mut driver = Driver::new(1, |config| config.limits.batch_records = 5);
    driver.producer.connected();
    let mut node = Node::new(map(1, 1));
    (0..40).for_each(|ticket| driver.publish(&format!("t{}", ticket % 7), ticket));
    driver.poll();
    for request in driver.sent.drain(..2).collect::<Vec<_>>() {
        driver.reply(node.answer(&request));
    }
    node.set_map(map(2, 4));
    (40..60).for_each(|ticket| driver.publish(&format!("t{}", ticket % 7), ticket));
    driver.run(&mut node);
    assert_eq!(driver.outcomes(), all_stored(0..60));
    for topic in 0..7u64 {
        let of = node.stored.iter().filter(|s| s.1 == format!("t{topic}"));
        let numbers: Vec<u64> = of.map(|s| s.2.parse().unwrap()).collect();
        assert!(numbers.is_sorted(), "{numbers:?}");
    }
    assert_eq!(node.stored.len(), 60);
}

#[test]
fn one_seed_and_one_script_give_one_run() {
    let run = || {
        let mut driver = Driver::connected(3);
        let mut node = Node::new(map(1, 3));
        for n in 0..30 {
            let full = Error::new(ErrorCode::StorageFull);
            node.script.push_back((n % 3 == 0).then_some(full));
        }
        (0..50).for_each(|ticket| driver.publish(&format!("t{}", ticket % 9), ticket));
        driver.run(&mut node);
        (driver.now, node.stored, driver.settled)
    };
    assert_eq!(run(), run());
}
