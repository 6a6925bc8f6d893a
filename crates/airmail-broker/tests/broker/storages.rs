//! Namespaces in a storage that the node's settings name, and that it has not.

use crate::client::Mode;
use crate::vec_storage::VecStorage;
use crate::world::{PLENTY, World, batch, topic_in};
use airmail_broker::{Command, Outcome, ShardConfig};
use airmail_log::{StorageTraits, TopicPage};
use airmail_model::frame::{Start, State};
use airmail_model::{
    Durability, ErrorCode, Holder, Lane, LogId, LogIndex, NamespaceId, Retention, StorageName,
};

const ORDERS: NamespaceId = NamespaceId(2);
const LOG: LogId = LogId {
    namespace: ORDERS,
    lane: Lane::Normal,
    index: LogIndex(0),
};

/// A node with the namespace `orders`, whose log is in a storage that is not there.
fn world() -> World {
    let storage = StorageName::new("fast").expect("a name");
    let config = ShardConfig {
        storages: [(
            storage,
            StorageTraits {
                strongest: Durability::MEMORY,
                topic_index: true,
                seal: true,
            },
        )]
        .into(),
        ..ShardConfig::default()
    };
    let mut world = World::with(config, VecStorage::new());
    let made = world.command(Command::CreateNamespace {
        name: "orders".into(),
        logs: 1,
        retention: Retention::default(),
        durability: None,
        storage,
    });
    let error = made.expect_err("its log cannot be opened");
    assert_eq!(error.code(), ErrorCode::Elsewhere);
    let made = world.node.shard().catalog().by_name("orders").cloned();
    assert_eq!(made.expect("made").namespace.spec.storage, storage);
    world
}

#[test]
fn whatever_needs_a_log_in_a_storage_that_is_missing_is_told_that_it_is_elsewhere() {
    let mut world = world();
    let client = world.open(1, PLENTY);
    let request = world.publish_batch(client, batch(LOG, 1, &[("a", "x")]));
    world.run();
    let error = world.refused(client, request);
    assert_eq!(error.code(), ErrorCode::Elsewhere);
    assert_eq!(error.holder(), Some(Holder::default()));
    let topic = topic_in(ORDERS, "a");
    world.add_in(ORDERS, client, 1, topic, Start::Latest, None);
    world.run();
    let mode = &world.client(client).sub(1).mode;
    let Mode::Ended(State::Failed(error)) = mode else {
        panic!("subscribed: {mode:?}");
    };
    assert_eq!(error.code(), ErrorCode::Elsewhere);
    let listed = world.command(Command::ListTopics {
        namespace: ORDERS,
        page: TopicPage::default(),
    });
    assert_eq!(listed.expect_err("refused").code(), ErrorCode::Elsewhere);
    world.tell(client, "a", "others are as ever");
}

#[test]
fn a_namespace_in_a_storage_that_is_missing_can_be_deleted() {
    let mut world = world();
    let deleted = world.command(Command::DeleteNamespace {
        name: "orders".into(),
        based_on: None,
    });
    assert_eq!(deleted, Ok(Outcome::Deleted));
    let client = world.open(1, PLENTY);
    let request = world.publish_batch(client, batch(LOG, 1, &[("a", "x")]));
    world.run();
    let error = world.refused(client, request);
    assert_eq!(error.code(), ErrorCode::NamespaceNotFound);
}
