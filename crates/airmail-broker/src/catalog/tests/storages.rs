//! Namespaces in a storage that has a name.

use super::*;

fn fast() -> StorageName {
    StorageName::new("fast").expect("a name")
}

/// A catalog of the namespace `default`, on a node that has a storage `fast` in memory.
fn with_fast() -> Driver {
    let mut driver = Driver::ready();
    let storages = &mut driver.core.config.storages;
    storages.insert(fast(), in_memory());
    driver
}

fn create_in(storage: StorageName, durability: Option<Durability>) -> Command {
    Command::CreateNamespace {
        name: "orders".into(),
        logs: 1,
        retention: Retention::default(),
        durability,
        storage,
    }
}

/// The command that log 0 gets for it.
fn created() -> Change {
    let mut change = create(2, "orders", 1);
    if let Change::Create { spec, .. } = &mut change {
        (spec.storage, spec.durability) = (fast(), Durability::MEMORY);
    }
    change
}

/// A catalog in which a namespace was made in the storage `fast`, which this node has not.
fn without_fast() -> Driver {
    let raise = Change::Raise { version: 3 };
    let changes = [create(1, "default", 1), raise, created()];
    let mut driver = Driver::restarted(&changes);
    driver.settle(1);
    driver.fail(2, ErrorCode::Elsewhere);
    driver
}

fn refusal(driver: &Driver) -> Error {
    let refusals = driver.effects.iter().filter_map(|effect| match effect {
        CatalogEffect::Answer { result, .. } => result.clone().err(),
        _ => None,
    });
    match refusals.last() {
        Some(CommandRefusal::Failed(error)) => error,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn a_namespace_in_a_storage_raises_log_0_and_is_as_durable_as_that_storage() {
    let mut driver = with_fast();
    driver.ask(7, create_in(fast(), None));
    assert_eq!(driver.appended(), [Change::Raise { version: 3 }, created()]);
    let batch = created().to_batch(Wall(1), 1).expect("small");
    let of = SystemAppend::Command;
    let extent = Extent::starting_at(Sequence(2), 2);
    driver.step(CatalogInput::Appended { of, extent });
    driver.step(given(2, batch));
    let [Order::Open { spec, .. }] = driver.orders()[..] else {
        panic!("ordered: {:?}", driver.orders());
    };
    assert_eq!((spec.storage, spec.as_of), (fast(), Sequence(3)));
    driver.settle(2);
    let answers = driver.answers();
    let made =
        matches!(&answers[..], [(7, Ok(Outcome::Namespace(made)))] if made.spec.storage == fast());
    assert!(made, "{answers:?}");
    driver.ask(8, create_command("bills"));
    assert_eq!(driver.appended(), [create(3, "bills", 1)], "in the first");
}

#[test]
fn more_durability_than_the_storage_has_is_refused() {
    let mut driver = with_fast();
    driver.ask(7, create_in(fast(), Some(Durability::OS)));
    let error = refusal(&driver);
    assert_eq!(error.code(), ErrorCode::DurabilityUnavailable);
    assert_eq!((error.found(), error.expected()), ("os", "memory"));
}

#[test]
fn a_storage_that_the_node_has_not_is_refused_with_those_that_it_has() {
    let slow = StorageName::new("slow").expect("a name");
    for (mut driver, limit) in [
        (with_fast(), "fast, or none for the first"),
        (
            Driver::ready(),
            "none: the node has no other than its first",
        ),
    ] {
        driver.ask(7, create_in(slow, None));
        let error = refusal(&driver);
        assert_eq!(error.code(), ErrorCode::InvalidArgument);
        assert_eq!(error.field_name(), "namespace.storage");
        assert_eq!((error.found(), error.expected()), ("slow", limit));
        assert_eq!(driver.appended(), []);
    }
}

#[test]
fn the_storage_of_a_namespace_cannot_be_changed() {
    let mut driver = with_fast();
    let change = |storage| match update_command("default", 5) {
        Command::UpdateNamespace {
            name,
            logs,
            retention,
            durability,
            based_on,
            ..
        } => Command::UpdateNamespace {
            name,
            logs,
            retention,
            durability,
            storage: Some(storage),
            based_on,
        },
        other => other,
    };
    driver.ask(7, change(fast()));
    let error = refusal(&driver);
    assert_eq!(error.code(), ErrorCode::Unimplemented);
    assert_eq!(error.field_name(), "namespace.storage");
    driver.ask(8, change(StorageName::FIRST));
    assert_eq!(driver.appended(), [update(1, 1, 5)], "it is in that one");
}

#[test]
fn a_namespace_whose_storage_is_missing_is_served_and_not_changed() {
    let mut driver = without_fast();
    assert!(driver.core.is_ready());
    assert!(driver.core.snapshot().by_name("orders").is_some());
    driver.ask(7, update_command("orders", 5));
    let error = refusal(&driver);
    assert_eq!(error.code(), ErrorCode::Elsewhere);
    assert_eq!(error.field_name(), "namespace.storage");
    assert_eq!(driver.appended(), []);
    driver.ask(8, update_command("default", 5));
    assert_eq!(driver.appended(), [update(1, 1, 5)], "others are as ever");
}

#[test]
fn a_namespace_whose_storage_is_missing_is_deleted_and_its_logs_when_the_storage_is_there() {
    let mut driver = without_fast();
    driver.ask(7, delete_command("orders"));
    let deletion = delete(2, 1);
    driver.write(4, &deletion);
    let order = Order::Delete {
        namespace: NamespaceId(2),
        first: LogIndex(0),
        logs: 1,
        has_high: false,
        as_of: Sequence(4),
        origin: Origin {
            storage: fast(),
            ..Origin::default()
        },
    };
    assert_eq!(driver.orders(), [order]);
    driver.fail(2, ErrorCode::Elsewhere);
    assert_eq!(driver.answers(), [(7, Ok(Outcome::Deleted))]);
    assert_eq!(driver.appended(), [], "its logs are left");
    let raise = Change::Raise { version: 3 };
    let changes = [create(1, "default", 1), raise, created(), deletion];
    let mut driver = Driver::restarted(&changes);
    assert_eq!(driver.orders().last(), Some(&order));
    driver.settle(1);
    driver.settle(2);
    let id = NamespaceId(2);
    assert_eq!(driver.appended(), [Change::Purged { id, epoch: None }]);
}
