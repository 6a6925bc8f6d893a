//! Versions of commands: those that log 0 is raised to, and those that are not known.

use super::super::change::SYSTEM_EPOCH;
use super::*;
use airmail_model::batch::BatchTarget;
use airmail_model::{BatchEncoder, Limits, LogId, Message, TopicName};

#[test]
fn the_first_command_that_needs_a_later_version_raises_log_0_in_its_own_batch() {
    let copied = |id, name: &str| {
        let mut change = create(id, name, 1);
        if let Change::Create { spec, .. } = &mut change {
            spec.durability.copies = 2;
        }
        change
    };
    let mut driver = Driver::ready();
    driver.core.config.first.strongest.copies = 2;
    driver.ask(7, create_command("orders"));
    let (raise, orders) = (Change::Raise { version: 2 }, copied(2, "orders"));
    assert_eq!(driver.appended(), [raise, orders.clone()]);
    let batch = orders.to_batch(Wall(1), 1).expect("small");
    let of = SystemAppend::Command;
    let extent = Extent::starting_at(Sequence(2), 2);
    driver.step(CatalogInput::Appended { of, extent });
    driver.step(given(2, batch));
    driver.settle(2);
    let answers = driver.answers();
    let made = matches!(answers[..], [(7, Ok(Outcome::Namespace(_)))]);
    assert!(made, "{answers:?}");
    let entry = driver.core.snapshot().by_name("orders").cloned();
    assert_eq!(entry.expect("made").as_of, Sequence(3));
    driver.ask(8, create_command("bills"));
    assert_eq!(driver.appended(), [copied(3, "bills")], "it is raised");
}

#[test]
fn a_log_0_of_a_later_version_is_served_as_far_as_it_is_read_and_not_changed() {
    let later = Change::Raise {
        version: change::LAST_VERSION + 1,
    };
    let mut driver = Driver::ready();
    driver.give(2, &later);
    let mut restarted = Driver::restarted(&[create(1, "default", 1), later]);
    assert!(!restarted.core.is_ready());
    restarted.settle(1);
    for mut driver in [driver, restarted] {
        assert!(driver.core.is_ready());
        let failure = driver.core.failure().map(ToString::to_string);
        let failure = failure.expect("it says why it takes no command");
        let later = format!("commands of version {}", change::LAST_VERSION + 1);
        assert!(failure.contains(&later), "{failure}");
        assert!(driver.core.snapshot().by_name("default").is_some());
        driver.ask(7, create_command("orders"));
        assert_eq!(driver.answers(), [(7, Err(ErrorCode::StorageFailed))]);
        assert_eq!(driver.appended(), []);
    }
}

#[test]
fn a_command_of_a_later_version_is_void() {
    let mut driver = Driver::ready();
    driver.step(given(2, payload(&[9, 9, 9])));
    assert_eq!(driver.orders(), []);
    assert_eq!(driver.core.snapshot().len(), 1);
}

/// A batch of one record that no node of this version writes.
pub(super) fn payload(bytes: &[u8]) -> Checked<Batch> {
    let topic = TopicName::new("namespaces", &Limits::DEFAULT).expect("a name");
    let mut encoder = BatchEncoder::new(LogId::SYSTEM.namespace);
    let message = Message::new(topic, bytes.to_vec());
    encoder.push(&message, 0, &Limits::DEFAULT).expect("small");
    encoder.control();
    encoder.finish(&BatchTarget {
        log: LogId::SYSTEM,
        epoch: SYSTEM_EPOCH,
        producer: None,
        producer_time: 0,
    })
}
