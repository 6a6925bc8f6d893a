//! First starts, which make the namespace `default`.

use super::*;

#[test]
fn a_first_start_makes_the_namespace_default_and_is_ready_when_its_logs_are() {
    let mut driver = Driver::restarted(&[]);
    let default = create(1, "default", 1);
    driver.write(1, &default);
    assert_eq!(driver.orders().len(), 1);
    assert!(!driver.core.is_ready());
    driver.settle(1);
    assert!(driver.core.is_ready());
    assert!(driver.core.snapshot().by_name("default").is_some());
    assert_eq!(driver.answers(), [], "nobody has asked");
}

#[test]
fn a_log_0_that_is_torn_during_a_first_start_stays_torn_when_that_is_done() {
    let mut driver = Driver::restarted(&[]);
    let default = create(1, "default", 1);
    assert_eq!(driver.appended(), std::slice::from_ref(&default));
    let appended = std::mem::take(&mut driver.effects);
    driver.lose(1, 1);
    driver.effects = appended;
    driver.write(2, &default);
    driver.settle(1);
    assert!(driver.core.is_ready());
    assert!(driver.core.failure().is_some());
}

#[test]
fn a_log_0_without_its_first_command_makes_no_namespace_and_is_ready() {
    let mut driver = Driver::new();
    driver.step(CatalogInput::Start);
    driver.step(CatalogInput::Opened(bounds(1, 2)));
    driver.lose(1, 1);
    driver.step(CatalogInput::Tail);
    assert_eq!(driver.appended(), []);
    assert!(driver.core.is_ready());
    assert!(driver.core.failure().is_some());
}

#[test]
fn a_first_namespace_whose_fate_is_unknown_ends_no_commands() {
    let of = SystemAppend::Command;
    let default = create(1, "default", 1);
    for was_stored in [true, false] {
        let mut driver = Driver::restarted(&[]);
        assert_eq!(driver.appended(), std::slice::from_ref(&default));
        let why = Refusal::OutcomeUnknown;
        driver.step(CatalogInput::AppendRefused { of, why });
        assert!(!driver.core.is_ready());
        driver.step(CatalogInput::Retry);
        assert_eq!(driver.appended(), std::slice::from_ref(&default));
        let second = 1 + u64::from(was_stored);
        if was_stored {
            // The first attempt counts: the second one is void.
            driver.give(1, &default);
        }
        let extent = number(second);
        driver.step(CatalogInput::Appended { of, extent });
        driver.give(second, &default);
        driver.settle(1);
        assert!(driver.core.is_ready(), "stored: {was_stored}");
        assert_eq!(driver.core.failure(), None);
        driver.ask(7, create_command("orders"));
        assert_eq!(driver.appended(), [create(2, "orders", 1)]);
    }
}
