//! Namespaces: made, changed, deleted, and the same after a restart.

use crate::client::Mode;
use crate::publish_gate;
use crate::vec_storage::VecStorage;
use crate::world::{LOG, PLENTY, World, batch, topic_in};
use airmail_broker::{Command, FirstNamespace, Outcome, ShardConfig};
use airmail_log::{Call, Tag, TopicPage};
use airmail_model::frame::{Start, State};
use airmail_model::{
    Durability, Error, ErrorCode, Lane, LogId, Namespace, NamespaceId, Retention, Sequence,
    StorageName,
};
use std::time::Duration;

fn namespace(outcome: Result<Outcome, Error>) -> Namespace {
    match outcome {
        Ok(Outcome::Namespace(namespace)) => namespace,
        other => panic!("{other:?} instead of a namespace"),
    }
}

fn code(outcome: Result<Outcome, Error>) -> ErrorCode {
    outcome.expect_err("refused").code()
}

fn update(name: &str, logs: Option<u16>, time_ms: u64, based_on: Option<u64>) -> Command {
    Command::UpdateNamespace {
        name: name.into(),
        logs,
        retention: Some(Retention {
            time_ms: Some(time_ms),
            bytes: None,
        }),
        durability: Some(Durability::OS),
        storage: None,
        based_on,
    }
}

fn delete(name: &str) -> Command {
    Command::DeleteNamespace {
        name: name.into(),
        based_on: None,
    }
}

#[test]
fn the_first_start_makes_the_namespace_default_and_later_ones_keep_it() {
    let config = ShardConfig {
        default_namespace: FirstNamespace {
            logs: 4,
            ..FirstNamespace::default()
        },
        ..ShardConfig::default()
    };
    let world = World::with(config, VecStorage::new());
    let catalog = world.node.shard().catalog().clone();
    let made = &catalog.by_name("default").expect("made").namespace;
    assert_eq!(
        (made.id, made.spec.logs, made.version),
        (NamespaceId(1), 4, 1)
    );
    assert_eq!(made.spec.durability, Durability::FSYNC);
    assert_eq!(world.node.storage().logs().len(), 5);
    let world = World::with(
        ShardConfig::default(),
        world.node.into_storage().restarted(),
    );
    assert_eq!(world.node.shard().catalog(), &catalog);
}

#[test]
fn namespaces_are_the_same_after_a_restart() {
    let mut world = World::new();
    let orders = namespace(world.create("orders", 3));
    assert_eq!(orders.id, NamespaceId(2));
    namespace(world.create("bills", 1));
    let changed = namespace(world.command(update("orders", Some(3), 1_000, Some(1))));
    assert_eq!(changed.version, 2);
    assert_eq!(world.command(delete("bills")), Ok(Outcome::Deleted));
    let before = world.node.shard().catalog().clone();
    let names: Vec<&str> = before.iter().map(|e| e.namespace.name.as_str()).collect();
    assert_eq!(names, ["default", "orders"]);
    let mut world = World::with(
        ShardConfig::default(),
        world.node.into_storage().restarted(),
    );
    assert_eq!(world.node.shard().catalog(), &before);
    assert_eq!(
        namespace(world.create("bills", 1)).id,
        NamespaceId(4),
        "never reused"
    );
}

#[test]
fn a_change_reaches_the_logs_at_once() {
    let mut world = World::new();
    namespace(world.command(update("default", None, 5_000, None)));
    let spec = world.node.storage().spec(LOG);
    assert_eq!(spec.retention.time_ms, Some(5_000));
    assert_eq!(spec.durability, Durability::OS);
}

#[test]
fn what_a_namespace_cannot_be_is_refused_with_the_field() {
    let mut storage = VecStorage::new();
    storage.strongest = Durability::OS;
    let mut world = World::with(ShardConfig::default(), storage);
    assert_eq!(code(world.create("default", 1)), ErrorCode::NamespaceExists);
    assert_eq!(
        code(world.create("_system", 1)),
        ErrorCode::NamespaceInvalid
    );
    assert_eq!(code(world.create("a b", 1)), ErrorCode::NamespaceInvalid);
    for logs in [0, 1_025] {
        let error = world.create("orders", logs).expect_err("refused");
        assert_eq!(error.code(), ErrorCode::NamespaceInvalid);
        assert_eq!(error.field_name(), "logs");
        assert_eq!(error.found(), logs.to_string());
    }
    let durable = world.command(Command::CreateNamespace {
        name: "orders".into(),
        logs: 1,
        retention: Retention::default(),
        durability: Some(Durability::FSYNC),
        storage: StorageName::FIRST,
    });
    assert_eq!(code(durable), ErrorCode::DurabilityUnavailable);
    let copied = world.command(Command::CreateNamespace {
        name: "orders".into(),
        logs: 1,
        retention: Retention::default(),
        durability: "memory:2".parse().ok(),
        storage: StorageName::FIRST,
    });
    let error = copied.expect_err("refused");
    assert_eq!(error.code(), ErrorCode::DurabilityUnavailable);
    assert_eq!((error.found(), error.expected()), ("memory:2", "os"));
    let logs = world.command(update("default", Some(2), 1, None));
    assert_eq!(code(logs), ErrorCode::Unimplemented);
    let retention = world.command(update("default", None, 0, None));
    assert_eq!(code(retention), ErrorCode::NamespaceInvalid);
    let stale = world.command(update("default", None, 1, Some(9)));
    assert_eq!(code(stale), ErrorCode::NamespaceChanged);
    assert_eq!(
        code(world.command(delete("nothing"))),
        ErrorCode::NamespaceNotFound
    );
    assert_eq!(world.node.shard().catalog().len(), 1, "nothing has changed");
}

#[test]
fn commands_given_together_are_done_one_after_the_other() {
    let mut world = World::new();
    let create = |name: &str| Command::CreateNamespace {
        name: name.into(),
        logs: 1,
        retention: Retention::default(),
        durability: None,
        storage: StorageName::FIRST,
    };
    let first = world.begin(create("orders"));
    let twice = world.begin(create("orders"));
    let gone = world.begin(delete("orders"));
    let again = world.begin(create("orders"));
    world.run();
    let mut answer = |id| world.outcomes.remove(&id).expect("answered");
    assert_eq!(namespace(answer(first)).id, NamespaceId(2));
    assert_eq!(code(answer(twice)), ErrorCode::NamespaceExists);
    assert_eq!(answer(gone), Ok(Outcome::Deleted));
    assert_eq!(namespace(answer(again)).id, NamespaceId(3));
}

#[test]
fn deleting_a_namespace_ends_its_subscribers_and_its_publishes() {
    let mut world = World::new();
    let id = namespace(world.create("orders", 2)).id;
    let map = world
        .node
        .shard()
        .catalog()
        .get(id)
        .expect("made")
        .map
        .clone();
    let (live, stuck) = (world.open(1, PLENTY), world.open(2, 0));
    let log = map.log(topic_in(id, "a"), Lane::Normal);
    world.add(live, 0, "a", Start::Latest);
    world.add_in(id, live, 1, topic_in(id, "a"), Start::Latest, None);
    world.run();
    world.publish_batch(live, batch(log, 1, &[("a", "x")]));
    world.run();
    world.add_in(id, stuck, 1, topic_in(id, "a"), Start::Earliest, None);
    world.add_in(
        id,
        live,
        2,
        topic_in(id, "a"),
        Start::Sequence(Sequence(99)),
        None,
    );
    world.run();
    assert_eq!(world.client(stuck).sub(1).mode, Mode::Detached);
    assert_eq!(world.command(delete("orders")), Ok(Outcome::Deleted));
    for (client, n) in [(live, 1), (live, 2), (stuck, 1)] {
        let Mode::Ended(State::Failed(error)) = &world.client(client).sub(n).mode else {
            panic!("{:?}", world.client(client).sub(n));
        };
        assert_eq!(error.code(), ErrorCode::NamespaceNotFound);
    }
    let request = world.publish_batch(live, batch(log, 1, &[("a", "y")]));
    world.run();
    assert_eq!(
        world.refused(live, request).code(),
        ErrorCode::NamespaceNotFound
    );
    assert_eq!(world.node.storage().logs(), [LogId::SYSTEM, LOG]);
    world.tell(live, "a", "elsewhere");
    assert_eq!(world.client(live).payloads(0), ["elsewhere"]);
}

#[test]
fn a_deletion_cut_short_by_a_stop_is_finished_at_the_next_start() {
    let mut world = World::new();
    namespace(world.create("orders", 2));
    world.node.storage_mut().deaf_to_delete = true;
    world.begin(delete("orders"));
    world.run();
    assert_eq!(world.node.shard().catalog().len(), 1, "gone for its users");
    let mut storage = world.node.into_storage().restarted();
    assert_eq!(storage.logs().len(), 4, "but not from the storage");
    storage.deaf_to_delete = false;
    let mut world = World::with(ShardConfig::default(), storage);
    assert_eq!(world.node.storage().logs(), [LogId::SYSTEM, LOG]);
    assert_eq!(namespace(world.create("orders", 1)).id, NamespaceId(3));
}

#[test]
fn topics_of_all_logs_are_listed_in_order_page_by_page() {
    let mut world = World::new();
    let id = namespace(world.create("many", 16)).id;
    let map = world
        .node
        .shard()
        .catalog()
        .get(id)
        .expect("made")
        .map
        .clone();
    let client = world.open(1, 0);
    let names: Vec<String> = (0..100).map(|n| format!("t{n:03}")).collect();
    for name in names.iter().chain(&names[..10]) {
        let log = map.log(topic_in(id, name), Lane::Normal);
        world.publish_batch(client, batch(log, 1, &[(name, "x")]));
    }
    world.run();
    let mut listed = Vec::new();
    loop {
        let page = TopicPage {
            prefix: "t".into(),
            after: listed.last().cloned().unwrap_or_default(),
            limit: 30,
        };
        let namespace = id;
        let outcome = world.command(Command::ListTopics { namespace, page });
        let Ok(Outcome::Topics { topics, more }) = outcome else {
            panic!("{outcome:?}");
        };
        listed.extend(topics.into_iter().map(|topic| topic.name));
        if !more {
            break;
        }
    }
    assert_eq!(listed, names);
    let page = TopicPage::default();
    let namespace = NamespaceId(77);
    let unknown = world.command(Command::ListTopics { namespace, page });
    assert_eq!(code(unknown), ErrorCode::NamespaceNotFound);
}

#[test]
fn a_lost_piece_of_log_0_stops_changes_but_not_messages() {
    let mut world = World::new();
    namespace(world.create("orders", 1));
    let mut storage = world.node.into_storage().restarted();
    storage.damage(LogId::SYSTEM, Sequence(2));
    let mut world = World::with(ShardConfig::default(), storage);
    assert!(world.node.shard().failure().is_some());
    assert_eq!(code(world.create("bills", 1)), ErrorCode::StorageFailed);
    let client = world.open(1, 0);
    world.tell(client, "a", "still served");
}

#[test]
fn a_node_that_lost_the_first_command_of_log_0_is_ready_and_says_why_it_has_no_namespace() {
    let world = World::new();
    let mut storage = world.node.into_storage().restarted();
    storage.damage(LogId::SYSTEM, Sequence(1));
    let world = World::with(ShardConfig::default(), storage);
    assert!(world.node.shard().catalog().is_empty());
    assert!(world.node.shard().failure().is_some());
}

#[test]
fn copies_are_kept_over_a_restart_and_told_by_the_ack() {
    let three: Durability = "fsync:3".parse().expect("a durability");
    let two: Durability = "os:2".parse().expect("a durability");
    let mut storage = VecStorage::new();
    storage.strongest = three;
    let mut world = World::with(ShardConfig::default(), storage);
    let made = namespace(world.create("orders", 1));
    assert_eq!(made.spec.durability, three, "the most that there is");
    let changed = namespace(world.command(Command::UpdateNamespace {
        name: "orders".into(),
        logs: None,
        retention: None,
        durability: Some(two),
        storage: None,
        based_on: None,
    }));
    assert_eq!(changed.spec.durability, two);
    let storage = world.node.into_storage().restarted();
    let mut world = World::with(ShardConfig::default(), storage);
    let catalog = world.node.shard().catalog();
    let entry = catalog.by_name("orders").expect("it was made");
    assert_eq!(entry.namespace.spec.durability, two);
    let log = entry.map.logs(Lane::Normal).next().expect("a log");
    assert_eq!(world.node.storage().spec(log).durability, two);
    let client = world.open(1, 0);
    world.publish_batch(client, batch(log, 1, &[("a", "x")]));
    world.run();
    let (_, result) = &world.client(client).acks[0];
    assert_eq!(result.as_ref().expect("stored").held, two);
}

#[test]
fn a_default_namespace_that_the_storage_cannot_give_keeps_the_node_from_being_ready() {
    let config = ShardConfig {
        default_namespace: FirstNamespace {
            durability: Some(Durability::FSYNC),
            ..FirstNamespace::default()
        },
        ..ShardConfig::default()
    };
    let mut storage = VecStorage::new();
    storage.strongest = Durability::MEMORY;
    let mut world = World::starting(config, storage);
    world.run();
    assert!(!world.node.shard().ready());
    let why = world.node.shard().failure().expect("a reason");
    assert_eq!(why.code(), ErrorCode::DurabilityUnavailable);
}

/// The log of a namespace that has one.
fn only_log(id: u32) -> LogId {
    LogId {
        namespace: NamespaceId(id),
        ..LOG
    }
}

/// Has another shard, which shares the storage, create `orders` as namespace 2. This one does not read it yet.
fn made_elsewhere(world: &mut World) {
    let mut other = World::new();
    namespace(other.create("orders", 1));
    let batch = other.node.storage().last_batch(LogId::SYSTEM);
    let append = Call::Append {
        t: Tag(u64::MAX),
        log: LogId::SYSTEM,
        map: batch.map_epoch(),
        batch,
        sole: false,
    };
    world.node.storage_mut().system_unread = true;
    airmail_log::LogStorage::submit(world.node.storage_mut(), append);
    world.run();
}

#[test]
fn a_namespace_that_another_shard_has_just_made_is_looked_for_before_it_is_refused() {
    let mut world = World::new();
    let client = world.open(1, PLENTY);
    made_elsewhere(&mut world);
    let (id, log) = (NamespaceId(2), only_log(2));
    let first = world.publish_batch(client, batch(log, 1, &[("a", "x")]));
    let second = world.publish_batch(client, batch(log, 1, &[("a", "y")]));
    let beginning = Start::Sequence(Sequence(1));
    world.add_in(id, client, 0, topic_in(id, "a"), beginning, None);
    world.run();
    assert!(world.client(client).acks.is_empty());
    world.node.storage_mut().system_unread = false;
    world.run();
    assert_eq!(world.acked(client, first), Sequence(1));
    assert_eq!(world.acked(client, second), Sequence(2));
    assert_eq!(world.client(client).payloads(0), ["x", "y"]);
    let none = world.publish_batch(client, batch(only_log(3), 1, &[("a", "x")]));
    world.run();
    let refused = world.refused(client, none).code();
    assert_eq!(refused, ErrorCode::NamespaceNotFound);
}

#[test]
fn whoever_names_what_log_0_cannot_be_asked_for_in_time_is_told_to_come_again() {
    let mut world = World::new();
    let client = world.open(1, PLENTY);
    made_elsewhere(&mut world);
    let unread = world.publish_batch(client, batch(only_log(2), 1, &[("a", "x")]));
    world.run();
    world.pass(Duration::from_secs(1));
    world.run();
    let refused = world.refused(client, unread);
    assert_eq!(refused.code(), ErrorCode::Overloaded);
    assert!(refused.delay().is_some());
}

#[test]
fn whoever_would_wait_at_the_gate_with_what_is_not_known_is_told_to_come_again() {
    let mut world = publish_gate::world(ShardConfig::default());
    let client = world.open(1, PLENTY);
    made_elsewhere(&mut world);
    world.node.storage_mut().stalled = true;
    // As many as may be in flight, so that the next one has to wait.
    let known = [1, 2].map(|n| world.publish(client, &[("a", &n.to_string())]));
    let unread = world.publish_batch(client, batch(only_log(2), 1, &[("a", "x")]));
    world.run();
    world.pass(Duration::from_secs(1));
    world.run();
    world.node.storage_mut().stalled = false;
    world.run();
    let refused = world.refused(client, unread);
    assert_eq!(refused.code(), ErrorCode::Overloaded);
    assert!(refused.delay().is_some());
    for request in known {
        world.acked(client, request);
    }
}

#[test]
fn no_more_waits_for_log_0_than_there_is_room_for_and_who_comes_beyond_is_told_to_come_again() {
    let mut world = World::new();
    let client = world.open(1, PLENTY);
    made_elsewhere(&mut world);
    let payload = "x".repeat(900_000);
    let large = || batch(only_log(2), 1, &[("a", &payload)]);
    let all: Vec<_> = (0..20)
        .map(|_| world.publish_batch(client, large()))
        .collect();
    world.run();
    // 16 MiB of them wait.
    let (waiting, beyond) = all.split_at(18);
    for request in beyond {
        let refused = world.refused(client, *request);
        assert_eq!(refused.code(), ErrorCode::Overloaded);
        assert!(refused.delay().is_some());
    }
    world.node.storage_mut().system_unread = false;
    world.run();
    for (request, number) in waiting.iter().zip(1..) {
        assert_eq!(world.acked(client, *request), Sequence(number));
    }
}
