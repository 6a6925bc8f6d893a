//! Publishes that are refused, publishes that wait, and the order of their answers.

use crate::client::Mode;
use crate::vec_storage::VecStorage;
use crate::world::{LOG, World, batch};
use airmail_broker::{
    Action, Admission, Admit, AllowAll, Authorizer, Cost, Engine, Grant, Input, Principal,
    ShardConfig,
};
use airmail_log::Refusal;
use airmail_model::frame::{Start, State};
use airmail_model::{
    Error, ErrorCode, GroupId, Holder, Lane, LogId, LogIndex, MapEpoch, NamespaceId, NodeId, Now,
    ProducerSequence, Term,
};
use std::time::Duration;

#[test]
fn each_refusal_of_the_storage_is_told_with_its_facts() {
    let mut world = World::new();
    let client = world.open(1, 0);
    let retry_after = Duration::from_secs(3);
    let out_of_order = Refusal::OutOfOrder {
        expected: ProducerSequence(4),
        found: ProducerSequence(9),
    };
    let holder = Holder {
        node: Some(NodeId(17)),
        group: Some(GroupId(3)),
        term: Term(5),
    };
    let sealed = Refusal::Sealed { next: MapEpoch(2) };
    let table = [
        (Refusal::Full { retry_after }, ErrorCode::StorageFull),
        (out_of_order, ErrorCode::OutOfOrder),
        (Refusal::UnknownProducer, ErrorCode::UnknownProducer),
        (Refusal::Fenced, ErrorCode::ProducerFenced),
        (sealed, ErrorCode::LogSealed),
        (Refusal::OutcomeUnknown, ErrorCode::OutcomeUnknown),
        (Refusal::Io("broken".into()), ErrorCode::StorageFailed),
        (Refusal::Elsewhere(holder), ErrorCode::Elsewhere),
    ];
    for (refusal, code) in table {
        world.node.storage_mut().refusal = Some(refusal);
        let request = world.publish(client, &[("a", "x")]);
        world.run();
        let error = world.refused(client, request);
        assert_eq!(error.code(), code);
        assert!(!error.field_name().is_empty());
        let fact = !error.found().is_empty() || error.delay().is_some();
        assert!(fact, "{error}: no value, and no delay either");
        if code == ErrorCode::OutOfOrder {
            assert_eq!((error.found(), error.expected()), ("9", "4"));
        }
        let told = (code == ErrorCode::Elsewhere).then_some(holder);
        assert_eq!(error.holder(), told);
        assert_eq!(world.node.shard().stats().refused(code), 1);
    }
    world.node.storage_mut().refusal = None;
    world.tell(client, "a", "the session goes on");
}

#[test]
fn a_stale_map_is_refused_with_the_present_one() {
    let mut world = World::new();
    let client = world.open(1, 0);
    let request = world.publish_batch(client, batch(LOG, 2, &[("a", "x")]));
    world.run();
    let (_, result) = &world.client(client).acks[0];
    let refused = result.as_ref().expect_err("stale");
    assert_eq!(refused.error.code(), ErrorCode::MapStale);
    let map = refused.map.as_ref().expect("the present map");
    assert_eq!(
        map,
        &world
            .node
            .shard()
            .catalog()
            .by_name("default")
            .expect("made")
            .map
    );
    let _ = request;
}

#[test]
fn a_topic_in_the_wrong_log_is_a_stale_map() {
    let mut world = World::new();
    let client = world.open(1, 0);
    world.create("many", 8).expect("made");
    let id = NamespaceId(2);
    let map = world
        .node
        .shard()
        .catalog()
        .by_name("many")
        .expect("made")
        .map
        .clone();
    let names = ["a", "b", "c", "d", "e", "f"];
    let right = map.log(crate::world::topic_in(id, "a"), Lane::Normal);
    for name in names {
        let request = world.publish_batch(client, batch(right, 1, &[(name, "x")]));
        world.run();
        if map.log(crate::world::topic_in(id, name), Lane::Normal) == right {
            world.acked(client, request);
        } else {
            assert_eq!(world.refused(client, request).code(), ErrorCode::MapStale);
        }
    }
}

#[test]
fn what_cannot_be_published_to_is_refused_by_name() {
    let mut world = World::new();
    let client = world.open(1, 0);
    let log = |namespace: u32, lane: Lane, index: u16| LogId {
        namespace: NamespaceId(namespace),
        lane,
        index: LogIndex(index),
    };
    let table = [
        (log(0, Lane::Normal, 0), ErrorCode::NamespaceReserved),
        (log(9, Lane::Normal, 0), ErrorCode::NamespaceNotFound),
        (log(1, Lane::High, 5), ErrorCode::MapStale),
        (log(1, Lane::Normal, 5), ErrorCode::MapStale),
    ];
    for (log, code) in table {
        let request = world.publish_batch(client, batch(log, 1, &[("a", "x")]));
        world.run();
        assert_eq!(world.refused(client, request).code(), code);
    }
}

#[test]
fn publishes_to_a_log_are_answered_in_order_refused_ones_too() {
    let mut world = World::new();
    let client = world.open(1, 0);
    world.node.storage_mut().stalled = true;
    let first = world.publish(client, &[("a", "x")]);
    let stale = world.publish_batch(client, batch(LOG, 7, &[("a", "y")]));
    let last = world.publish(client, &[("a", "z")]);
    world.run();
    assert!(world.client(client).acks.is_empty());
    world.node.storage_mut().stalled = false;
    world.run();
    let order: Vec<u64> = world.client(client).acks.iter().map(|(n, _)| *n).collect();
    assert_eq!(order, [first, stale, last]);
}

#[test]
fn an_ack_for_a_session_that_has_ended_is_dropped() {
    let mut world = World::new();
    let client = world.open(1, 0);
    world.node.storage_mut().stalled = true;
    world.publish(client, &[("a", "x")]);
    world.run();
    world.close(client);
    world.node.storage_mut().stalled = false;
    world.run();
    assert_eq!(world.node.shard().stats().published_batches, 1);
}

/// Lets one message pass each second, and refuses batches of more than one.
#[derive(Debug, Default)]
struct OneASecond(u64);

impl Admission for OneASecond {
    fn admit(&mut self, now: Now, _: &Principal, cost: Cost) -> Admit {
        if cost.messages > 1 {
            return Admit::Refuse(Error::new(ErrorCode::Overloaded));
        }
        let wait = self.0.saturating_sub(now.mono.0);
        if wait > 0 {
            return Admit::WaitFor(Duration::from_nanos(wait));
        }
        self.0 = now.mono.0 + 1_000_000_000;
        Admit::Go
    }
}

#[test]
fn what_waits_for_admission_keeps_its_order_and_its_bound() {
    let config = ShardConfig {
        parked_bytes: 500,
        ..ShardConfig::default()
    };
    let mut world = World::starting(config.clone(), VecStorage::new());
    let admission = Box::new(OneASecond::default());
    world.node = Engine::new(
        config,
        VecStorage::new(),
        Box::new(AllowAll),
        admission,
        world.now,
    )
    .expect("a fit storage");
    world.run();
    let client = world.open(1, 0);
    let requests: Vec<u64> = (0..6)
        .map(|n| world.publish(client, &[("a", &n.to_string())]))
        .collect();
    world.run();
    let overflow = world.refused(client, requests[5]).clone();
    assert_eq!(overflow.code(), ErrorCode::Overloaded);
    assert!(overflow.delay().is_some());
    for seconds in 1..5 {
        let answered = world.client(client).acks.iter().filter(|(_, r)| r.is_ok());
        assert_eq!(answered.count(), seconds);
        world.pass(Duration::from_secs(1));
        world.run();
    }
    let refused = world.publish(client, &[("a", "x"), ("a", "y")]);
    world.run();
    assert_eq!(world.refused(client, refused).code(), ErrorCode::Overloaded);
    let acks = world.client(client).acks.iter();
    let stored: Vec<u64> = acks.filter(|(_, r)| r.is_ok()).map(|(n, _)| *n).collect();
    assert_eq!(stored, requests[..5], "in order");
}

/// Nobody may publish or administer, and only the known may subscribe.
#[derive(Debug)]
struct ReadOnly;

impl Authorizer for ReadOnly {
    fn authorize(&self, _: &Principal, action: Action) -> Result<Grant, Error> {
        match action {
            Action::Publish(_) | Action::Administer => {
                Err(Error::new(ErrorCode::PermissionDenied).field("action"))
            }
            Action::Subscribe(..) => Err(Error::new(ErrorCode::Unauthenticated).field("token")),
            _ => Ok(Grant::default()),
        }
    }
}

#[test]
fn the_authorizer_is_asked_before_anything_is_done() {
    let mut world = World::new();
    let config = ShardConfig::default();
    let admission = Box::new(AllowAll);
    world.node = Engine::new(
        config,
        VecStorage::new(),
        Box::new(ReadOnly),
        admission,
        world.now,
    )
    .expect("a fit storage");
    world.run();
    let client = world.open(1, 0);
    let request = world.publish(client, &[("a", "x")]);
    world.run();
    assert_eq!(
        world.refused(client, request).code(),
        ErrorCode::PermissionDenied
    );
    let created = world.create("orders", 1);
    assert_eq!(
        created.expect_err("denied").code(),
        ErrorCode::PermissionDenied
    );
    world.add(client, 0, "a", Start::Latest);
    world.run();
    let sub = world.client(client).sub(0);
    let Mode::Ended(State::Failed(error)) = &sub.mode else {
        panic!("a failure expected: {:?}", sub.mode);
    };
    assert_eq!(error.code(), ErrorCode::Unauthenticated);
    assert_eq!(error.field_name(), "token");
}

#[test]
fn before_the_node_is_ready_it_says_when_to_come_again() {
    let mut world = World::starting(ShardConfig::default(), VecStorage::new());
    let client = world.open(1, 0);
    let request = world.publish(client, &[("a", "x")]);
    world.input(Input::Timer);
    world.run();
    let error = world.refused(client, request);
    assert_eq!(error.code(), ErrorCode::Overloaded);
    assert!(error.delay().is_some());
    world.tell(client, "a", "now it is");
}
