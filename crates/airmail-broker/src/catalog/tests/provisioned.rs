//! Namespaces for which the storage makes something beforehand, where transcripts do not tell it all.

use super::*;

/// The command that makes a namespace with these provisions.
pub(super) fn create_of(id: u32, name: &str, logs: u16, of: Provisions) -> Change {
    let mut change = create(id, name, logs);
    if let Change::Create { provisions, .. } = &mut change {
        *provisions = of;
    }
    change
}

pub(super) fn provisions(byte: u8) -> Provisions {
    Provisions::new(&[byte]).expect("few")
}

/// A catalog of the namespace `default`, on a node whose storage provisions.
fn provisioning() -> Driver {
    let mut driver = Driver::ready();
    driver.core.config.provisions = true;
    driver
}

/// Whether the last step had the storage remove these.
fn is_withdrawn(driver: &Driver, of: Provisions) -> bool {
    let mut effects = driver.effects.iter();
    effects.any(|effect| match effect {
        CatalogEffect::Withdraw { origin, .. } => origin.provisions == of,
        _ => false,
    })
}

#[test]
fn a_namespace_is_provisioned_for_in_the_storage_that_it_names() {
    let mut driver = provisioning();
    let fast = StorageName::new("fast").expect("a name");
    let storages = &mut driver.core.config.storages;
    storages.insert(fast, in_memory());
    let mut command = create_command("orders");
    if let Command::CreateNamespace { storage, .. } = &mut command {
        *storage = fast;
    }
    driver.ask(7, command);
    let [CatalogEffect::Provision { log, logs, spec }] = driver.effects[..] else {
        panic!("{:?}", driver.effects);
    };
    assert_eq!((log.namespace, logs), (NamespaceId(2), 1));
    assert_eq!((spec.storage, spec.durability), (fast, Durability::MEMORY));
    assert!(spec.provisions.is_none());
    // That storage has nothing to make.
    driver.step(CatalogInput::Provisioned(Ok(Provisions::NONE)));
    assert_eq!(driver.appended()[0], Change::Raise { version: 3 });
}

#[test]
fn an_update_keeps_the_provisions_and_a_deletion_passes_them_on() {
    let raise = Change::Raise { version: 4 };
    let of = provisions(5);
    let changes = [raise, create_of(1, "default", 1, of), update(1, 1, 9)];
    let mut driver = Driver::restarted(&changes);
    let [Order::Open { spec, .. }] = driver.orders()[..] else {
        panic!("{:?}", driver.orders());
    };
    assert_eq!((spec.provisions, spec.as_of), (of, Sequence(3)));
    driver.settle(1);
    driver.ask(7, delete_command("default"));
    driver.write(4, &delete(1, 2));
    let [Order::Delete { origin, .. }] = driver.orders()[..] else {
        panic!("{:?}", driver.orders());
    };
    assert_eq!(origin.provisions, of);
    let changes = [&changes[..], &[delete(1, 2)]].concat();
    let driver = Driver::restarted(&changes);
    assert!(
        matches!(driver.orders()[..], [Order::Delete { origin, .. }] if origin.provisions == of),
        "{:?}",
        driver.orders()
    );
}

#[test]
fn a_namespace_that_another_has_made_as_asked_with_other_provisions_is_the_answer() {
    let mut driver = provisioning();
    driver.ask(7, create_command("orders"));
    driver.step(CatalogInput::Provisioned(Ok(provisions(1))));
    let raise = Change::Raise { version: 4 };
    let own = create_of(2, "orders", 1, provisions(1));
    assert_eq!(driver.appended(), [raise.clone(), own.clone()]);
    driver.give(2, &raise);
    driver.give(3, &create_of(2, "orders", 1, provisions(2)));
    driver.settle(2);
    driver.overtaken(4, &own);
    assert!(is_withdrawn(&driver, provisions(1)));
    let answers = driver.answers();
    let made = matches!(&answers[..], [(7, Ok(Outcome::Namespace(made)))] if made.name == "orders");
    assert!(made, "{answers:?}");
    let entry = driver.core.snapshot().by_name("orders").cloned();
    assert_eq!(entry.expect("made").provisions, provisions(2));
}

#[test]
fn what_the_storage_made_is_withdrawn_unless_the_command_may_be_stored() {
    let of = SystemAppend::Command;
    for (why, is_gone) in [
        (Refusal::Io("gone".into()), true),
        (Refusal::OutcomeUnknown, false),
    ] {
        let mut driver = provisioning();
        driver.ask(7, create_command("orders"));
        driver.step(CatalogInput::Provisioned(Ok(provisions(1))));
        driver.step(CatalogInput::AppendRefused { of, why });
        assert_eq!(is_withdrawn(&driver, provisions(1)), is_gone);
        assert_eq!(driver.answers().len(), 1);
    }
}

#[test]
fn a_command_that_is_lost_from_log_0_leaves_what_was_made_for_it() {
    let mut driver = provisioning();
    driver.ask(7, create_command("orders"));
    driver.step(CatalogInput::Provisioned(Ok(provisions(1))));
    let extent = Extent::starting_at(Sequence(2), 2);
    let of = SystemAppend::Command;
    driver.step(CatalogInput::Appended { of, extent });
    driver.lose(2, 3);
    assert_eq!(driver.answers(), [(7, Err(ErrorCode::OutcomeUnknown))]);
    assert!(!is_withdrawn(&driver, provisions(1)));
}

#[test]
fn a_command_that_is_void_in_a_torn_log_0_leaves_what_was_made_for_it() {
    let mut driver = provisioning();
    driver.ask(7, create_command("orders"));
    driver.step(CatalogInput::Provisioned(Ok(provisions(1))));
    let own = create_of(2, "orders", 1, provisions(1));
    driver.give(2, &create(2, "mails", 1));
    driver.lose(3, 3);
    driver.overtaken(4, &own);
    assert!(!is_withdrawn(&driver, provisions(1)));
    assert_eq!(driver.answers(), [(7, Err(ErrorCode::StorageFailed))]);
}

#[test]
fn a_log_0_that_turns_out_to_be_torn_while_the_storage_provisions_gets_no_command() {
    let mut driver = provisioning();
    driver.ask(7, create_command("orders"));
    driver.lose(2, 2);
    driver.step(CatalogInput::Provisioned(Ok(provisions(1))));
    assert_eq!(driver.appended(), []);
    assert!(is_withdrawn(&driver, provisions(1)));
    assert_eq!(driver.answers(), [(7, Err(ErrorCode::StorageFailed))]);
}
