//! Refusals, timeouts, and what is honest to say then.

use super::*;

fn error(code: ErrorCode) -> Option<Error> {
    Some(Error::new(code))
}

/// A driver whose batches have two messages each.
fn pairs(change: impl FnOnce(&mut ProducerConfig)) -> Driver {
    let mut driver = Driver::new(1, |config| {
        config.limits.batch_records = 2;
        change(config);
    });
    driver.producer.connected();
    driver
}

#[test]
fn a_full_disk_is_waited_for_and_nothing_is_lost_doubled_or_reordered() {
    let mut driver = pairs(|_| {});
    let mut node = Node::new(map(1, 1));
    for code in [
        ErrorCode::StorageFull,
        ErrorCode::Overloaded,
        ErrorCode::StorageFailed,
        ErrorCode::Elsewhere,
        ErrorCode::Unavailable,
    ] {
        node.script.extend([None, error(code), error(code)]);
    }
    (0..40).for_each(|ticket| driver.publish("a", ticket));
    driver.run(&mut node);
    assert_eq!(driver.outcomes(), all_stored(0..40));
    let expected: Vec<String> = (0..40).map(|n: u32| n.to_string()).collect();
    assert_eq!(node.payloads(), expected);
}

#[test]
fn every_refusal_that_is_waited_for_is_followed_by_the_same_batch_when_its_delay_is_over() {
    let waited_for = ErrorCode::ALL.iter().filter(|code| code.waited_for());
    for &code in waited_for {
        let mut driver = pairs(|_| {});
        let mut node = Node::new(map(1, 1));
        let delay = Duration::from_secs(2);
        let refusal = Error::new(code).retry_after(delay);
        node.script.extend([Some(refusal.clone()), Some(refusal)]);
        (0..6).for_each(|ticket| driver.publish("a", ticket));
        let begun = driver.now;
        driver.run(&mut node);
        assert_eq!(driver.outcomes(), all_stored(0..6), "{code:?}");
        let expected: Vec<String> = (0..6).map(|n: u32| n.to_string()).collect();
        assert_eq!(node.payloads(), expected, "{code:?}");
        assert!(driver.now - begun >= 2_000, "{code:?}");
    }
}

#[test]
fn nothing_is_sent_again_before_everything_in_flight_is_answered() {
    let mut driver = pairs(|_| {});
    let mut node = Node::new(map(1, 1));
    (0..6).for_each(|ticket| driver.publish("a", ticket));
    assert_eq!(driver.poll(), 3);
    node.script.push_back(error(ErrorCode::StorageFull));
    let sent: Vec<Request> = driver.sent.drain(..).collect();
    driver.reply(node.answer(&sent[0]));
    driver.now += 10_000;
    assert_eq!(driver.poll(), 0);
    driver.reply(node.answer(&sent[1]));
    driver.reply(node.answer(&sent[2]));
    driver.now += 10_000;
    assert_eq!(driver.poll(), 3);
    driver.run(&mut node);
    assert_eq!(driver.outcomes(), all_stored(0..6));
}

#[test]
fn after_an_overload_no_more_is_in_flight_than_the_node_had_taken() {
    let mut driver = pairs(|_| {});
    let mut node = Node::new(map(1, 1));
    (0..40).for_each(|ticket| driver.publish("a", ticket));
    assert_eq!(driver.poll(), 20);
    let sent: Vec<Request> = driver.sent.drain(..).collect();
    // The refusals come first: what was taken waits for its commit.
    for request in &sent[3..] {
        node.script.push_back(error(ErrorCode::Overloaded));
        driver.reply(node.answer(request));
    }
    for request in &sent[..3] {
        driver.reply(node.answer(request));
    }
    driver.now += 10_000;
    assert_eq!(driver.poll(), 3);
    driver.run(&mut node);
    assert_eq!(driver.outcomes(), all_stored(0..40));
}

#[test]
fn a_delay_that_the_node_names_is_kept() {
    let mut driver = pairs(|_| {});
    let mut node = Node::new(map(1, 1));
    driver.publish("a", 0);
    driver.poll();
    let delay = Duration::from_millis(700);
    let full = Error::new(ErrorCode::StorageFull).retry_after(delay);
    node.script.push_back(Some(full));
    let request = driver.sent.remove(0);
    driver.reply(node.answer(&request));
    driver.poll();
    assert!(driver.wake.unwrap() >= driver.now().mono.plus(delay));
}

#[test]
fn a_final_refusal_fails_its_messages_and_leaves_no_hole() {
    let mut driver = pairs(|_| {});
    let mut node = Node::new(map(1, 1));
    node.script
        .extend([None, error(ErrorCode::PermissionDenied)]);
    (0..10).for_each(|ticket| driver.publish("a", ticket));
    driver.run(&mut node);
    let denied = Some(ErrorCode::PermissionDenied);
    let mut expected = all_stored(0..10);
    expected[2].1 = denied;
    expected[3].1 = denied;
    assert_eq!(driver.outcomes(), expected);
    assert_eq!(node.payloads(), ["0", "1", "4", "5", "6", "7", "8", "9"]);
}

#[test]
fn a_refusal_for_all_fails_all_without_a_round_each() {
    let mut driver = pairs(|_| {});
    let mut node = Node::new(map(1, 1));
    node.script
        .extend((0..8).map(|_| error(ErrorCode::NamespaceNotFound)));
    (0..16).for_each(|ticket| driver.publish("a", ticket));
    assert_eq!(driver.poll(), 8);
    driver.run(&mut node);
    let gone = Some(ErrorCode::NamespaceNotFound);
    assert!(driver.outcomes().iter().all(|(_, code)| *code == gone));
}

#[test]
fn an_unknown_producer_begins_a_new_epoch_with_what_is_certainly_not_stored() {
    let mut driver = pairs(|_| {});
    let mut node = Node::new(map(1, 1));
    (0..4).for_each(|ticket| driver.publish("a", ticket));
    driver.run(&mut node);
    node.forget();
    (4..10).for_each(|ticket| driver.publish("a", ticket));
    driver.run(&mut node);
    assert_eq!(driver.outcomes(), all_stored(0..10));
    let expected: Vec<String> = (0..10).map(|n: u32| n.to_string()).collect();
    assert_eq!(node.payloads(), expected);
}

#[test]
fn what_may_be_stored_fails_as_unknown_when_the_node_has_forgotten() {
    let mut driver = pairs(|_| {});
    let mut node = Node::new(map(1, 1));
    (0..2).for_each(|ticket| driver.publish("a", ticket));
    driver.run(&mut node);
    (2..4).for_each(|ticket| driver.publish("a", ticket));
    driver.poll();
    driver.sent.clear();
    driver.producer.disconnected();
    (4..6).for_each(|ticket| driver.publish("a", ticket));
    node.forget();
    driver.producer.connected();
    driver.run(&mut node);
    let unknown = Some(ErrorCode::OutcomeUnknown);
    let mut expected = all_stored(0..6);
    expected[2].1 = unknown;
    expected[3].1 = unknown;
    assert_eq!(driver.outcomes(), expected);
    assert_eq!(node.payloads(), ["0", "1", "4", "5"]);
}

#[test]
fn what_has_an_unknown_outcome_is_sent_again_and_stored_once() {
    for is_stored in [false, true] {
        let mut driver = pairs(|_| {});
        let mut node = Node::new(map(1, 1));
        if !is_stored {
            node.script.push_back(error(ErrorCode::OutcomeUnknown));
        }
        (0..6).for_each(|ticket| driver.publish("a", ticket));
        if is_stored {
            driver.poll();
            let first = driver.sent.remove(0);
            node.answer(&first);
            node.script.push_back(error(ErrorCode::OutcomeUnknown));
            let reply = node.answer(&first);
            driver.reply(reply);
        }
        driver.run(&mut node);
        assert_eq!(driver.outcomes(), all_stored(0..6));
        assert_eq!(node.payloads(), ["0", "1", "2", "3", "4", "5"]);
    }
}

#[test]
fn an_outcome_that_stays_unknown_is_told_when_its_time_is_over_and_the_rest_goes_on_in_a_new_epoch()
{
    let mut driver = pairs(|config| config.delivery_timeout = Duration::from_secs(2));
    let mut node = Node::new(map(1, 1));
    (0..2).for_each(|ticket| driver.publish("a", ticket));
    node.script
        .extend((0..500).map(|_| error(ErrorCode::OutcomeUnknown)));
    driver.run(&mut node);
    let unknown = Some(ErrorCode::OutcomeUnknown);
    assert_eq!(driver.outcomes(), [(0, unknown), (1, unknown)]);
    node.script.clear();
    (2..6).for_each(|ticket| driver.publish("a", ticket));
    driver.run(&mut node);
    assert_eq!(driver.outcomes()[2..], all_stored(2..6));
    assert_eq!(node.payloads(), ["2", "3", "4", "5"]);
}

#[test]
fn a_fenced_producer_stops() {
    let mut driver = pairs(|_| {});
    let mut node = Node::new(map(1, 1));
    node.script
        .extend((0..3).map(|_| error(ErrorCode::ProducerFenced)));
    (0..5).for_each(|ticket| driver.publish("a", ticket));
    driver.run(&mut node);
    assert_eq!(driver.outcomes().len(), 5);
    let late = driver
        .producer
        .publish(driver.now(), NAMESPACE, &message("a", "x"), Ticket(9));
    let Err(PublishError::Refused(error)) = late else {
        panic!("{late:?}");
    };
    assert_eq!(error.code(), ErrorCode::ProducerFenced);
    assert!(driver.producer.is_idle() && node.stored.is_empty());
}

#[test]
fn what_was_never_sent_fails_as_disconnected_when_its_time_is_over() {
    let mut driver = Driver::new(1, |_| {});
    driver.publish("a", 0);
    driver.poll();
    assert_eq!(
        driver.wake,
        Some(driver.now().mono.plus(Duration::from_secs(30)))
    );
    driver.now += 29_999;
    driver.poll();
    assert!(driver.settled.is_empty());
    driver.now += 1;
    driver.poll();
    assert_eq!(driver.outcomes(), [(0, Some(ErrorCode::Disconnected))]);
    driver.publish("a", 1);
    driver.producer.connected();
    let mut node = Node::new(map(1, 1));
    driver.run(&mut node);
    assert_eq!(node.payloads(), ["1"]);
}

#[test]
fn what_was_sent_and_not_answered_fails_as_unknown_when_its_time_is_over() {
    let mut driver = pairs(|_| {});
    let mut node = Node::new(map(1, 1));
    (0..4).for_each(|ticket| driver.publish("a", ticket));
    driver.poll();
    let old: Vec<Request> = driver.sent.drain(..).collect();
    driver.now += 20_000;
    (4..6).for_each(|ticket| driver.publish("a", ticket));
    driver.now += 10_000;
    driver.poll();
    let unknown = Some(ErrorCode::OutcomeUnknown);
    assert_eq!(
        driver.outcomes(),
        (0..4).map(|t| (t, unknown)).collect::<Vec<_>>()
    );
    // The old ones come through after all, before the new epoch's first: it fences nothing lost.
    for request in &old {
        let reply = node.answer(request);
        driver.reply(reply);
    }
    driver.run(&mut node);
    assert_eq!(driver.outcomes()[4..], all_stored(4..6));
    assert_eq!(node.payloads(), ["0", "1", "2", "3", "4", "5"]);
}

#[test]
fn what_was_always_refused_fails_with_the_last_refusal_when_its_time_is_over() {
    let mut driver = pairs(|config| {
        config.delivery_timeout = Duration::from_secs(2);
        config.backoff.cap = Duration::from_millis(500);
    });
    let mut node = Node::new(map(1, 1));
    node.script
        .extend((0..500).map(|_| error(ErrorCode::StorageFull)));
    (0..4).for_each(|ticket| driver.publish("a", ticket));
    driver.run(&mut node);
    let full = Some(ErrorCode::StorageFull);
    assert_eq!(
        driver.outcomes(),
        (0..4).map(|t| (t, full)).collect::<Vec<_>>()
    );
    node.script.clear();
    (4..6).for_each(|ticket| driver.publish("a", ticket));
    driver.run(&mut node);
    assert_eq!(node.payloads(), ["4", "5"]);
}

#[test]
fn giving_up_settles_everything_once_and_honestly() {
    let mut driver = pairs(|config| config.in_flight = 1);
    (0..6).for_each(|ticket| driver.publish("a", ticket));
    assert_eq!(driver.poll(), 1);
    let mut out = ProducerOutput::default();
    let closed = Error::new(ErrorCode::ShuttingDown);
    driver.producer.abandon(&closed, &mut out);
    driver.settled.append(&mut out.settled);
    let codes: Vec<_> = driver
        .outcomes()
        .iter()
        .filter_map(|(_, code)| *code)
        .collect();
    assert_eq!(codes[..2], [ErrorCode::OutcomeUnknown; 2]);
    assert_eq!(codes[2..], [ErrorCode::ShuttingDown; 4]);
    assert!(driver.producer.is_idle());
}

#[test]
fn random_faults_never_lose_double_or_reorder_an_acknowledged_message() {
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};
    for seed in 0..300 {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut driver = Driver::new(3, |config| {
            config.seed = seed;
            config.limits.batch_records = 3;
            config.delivery_timeout = Duration::from_secs(5);
        });
        let mut node = Node::new(map(1, 3));
        let mut epoch = 1;
        let mut ticket = 0;
        driver.producer.connected();
        for _ in 0..200 {
            match random.random_range(0..12) {
                0..5 => {
                    driver.publish(&format!("t{}", random.random_range(0..6)), ticket);
                    ticket += 1;
                }
                5 => driver.now += random.random_range(0..400),
                6 => {
                    driver.producer.connected();
                    driver.sent.clear();
                }
                7 if random.random_bool(0.2) => {
                    epoch += 1;
                    node.set_map(map(epoch, 1 + epoch as u16 % 4));
                }
                8 => {
                    let codes = [
                        ErrorCode::StorageFull,
                        ErrorCode::Overloaded,
                        ErrorCode::OutcomeUnknown,
                        ErrorCode::PermissionDenied,
                    ];
                    node.script
                        .push_back(error(codes[random.random_range(0..4)]));
                }
                _ => {
                    driver.poll();
                    let count = random.random_range(0..=driver.sent.len());
                    for request in driver.sent.drain(..count).collect::<Vec<_>>() {
                        let reply = node.answer(&request);
                        if random.random_bool(0.9) {
                            driver.reply(reply);
                        } else {
                            driver.producer.connected();
                            driver.sent.clear();
                            break;
                        }
                    }
                }
            }
        }
        node.script.clear();
        driver.producer.connected();
        driver.sent.clear();
        driver.run(&mut node);
        check(seed, ticket, &driver, &node);
    }
}

fn check(seed: u64, tickets: u64, driver: &Driver, node: &Node) {
    let outcomes = driver.outcomes();
    let settled: Vec<u64> = outcomes.iter().map(|(ticket, _)| *ticket).collect();
    assert_eq!(settled, (0..tickets).collect::<Vec<_>>(), "seed {seed}");
    let mut seen = std::collections::BTreeSet::new();
    let mut last = std::collections::BTreeMap::new();
    for (_, topic, payload) in &node.stored {
        let number: u64 = payload.parse().unwrap();
        assert!(seen.insert(number), "seed {seed}: {number} is stored twice");
        let before = last.insert(topic.clone(), number);
        assert!(
            before.is_none_or(|before| before < number),
            "seed {seed}: {topic} reordered"
        );
    }
    for (ticket, code) in outcomes {
        match code {
            None => assert!(seen.contains(&ticket), "seed {seed}: {ticket} is lost"),
            Some(ErrorCode::OutcomeUnknown) => {}
            Some(_) => assert!(!seen.contains(&ticket), "seed {seed}: {ticket} is stored"),
        }
    }
    assert_eq!(driver.producer.held_bytes(), 0, "seed {seed}");
}
