//! Waits that do not end are reported. The reporting is in `waiting`, which other test programs
//! have too.

use airmail_testkit::waiting::{alive, overdue, until, waiting};
use std::time::Duration;

#[test]
fn what_hangs_is_told_with_its_test_and_all_that_is_waited_for() {
    assert_eq!(overdue(Duration::ZERO), None);
    let (_wait, _fixture) = (waiting("an answer"), alive("a node of its own"));
    let told = overdue(Duration::from_secs(601)).unwrap();
    let parts = [
        "HANGS",
        "what_hangs_is_told",
        "an answer (6",
        "a node of its own (6",
        "hanging.rs:",
    ];
    for part in parts {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn what_has_come_to_its_end_is_not_told() {
    drop(waiting("something that came"));
    let told = overdue(Duration::from_secs(601)).unwrap_or_default();
    assert!(!told.contains("something that came"), "{told}");
}

#[test]
fn what_comes_is_waited_for() {
    let mut looks = 0;
    until("three looks", Duration::ZERO, || {
        looks += 1;
        (looks == 3).then_some(()).ok_or(format!("{looks} looks"))
    });
}
