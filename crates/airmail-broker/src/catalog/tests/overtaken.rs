//! Commands before which another writer of log 0 was there, and a start that another has made.

use super::*;

#[test]
fn a_command_that_finds_another_version_is_void_and_written_again() {
    let mut driver = Driver::ready();
    driver.ask(7, update_command("default", 5));
    let change = update(1, 1, 5);
    assert_eq!(driver.appended(), std::slice::from_ref(&change));
    // An append of which nobody knew whether it got in has got in before.
    driver.give(2, &update(1, 1, 4));
    driver.overtaken(3, &change);
    assert_eq!(driver.answers(), []);
    assert_eq!(driver.appended(), [update(1, 2, 5)]);
    driver.write(4, &update(1, 2, 5));
    for _ in 0..4 {
        driver.settle(1);
    }
    let entry = driver.core.snapshot().by_name("default").cloned();
    let namespace = entry.expect("there").namespace.clone();
    assert_eq!(
        (namespace.version, namespace.spec.retention.time_ms),
        (3, Some(5))
    );
    assert_eq!(driver.answers(), [(7, Ok(Outcome::Namespace(namespace)))]);
}

#[test]
fn a_command_before_which_others_always_come_is_refused_after_eight_times() {
    let mut driver = Driver::ready();
    driver.ask(7, update_command("default", 5));
    let mut at = 2;
    for version in 1..=8 {
        let change = update(1, version, 5);
        assert_eq!(driver.answers(), []);
        assert_eq!(driver.appended(), std::slice::from_ref(&change));
        driver.give(at, &update(1, version, 100 + version));
        driver.overtaken(at + 1, &change);
        at += 2;
    }
    let changed = Err(ErrorCode::NamespaceChanged);
    assert_eq!(driver.answers(), [(7, changed)]);
    assert_eq!(driver.appended(), []);
}

#[test]
fn a_first_start_that_another_was_quicker_at_is_ready_in_whatever_order_it_hears_of_it() {
    for logs_first in [false, true] {
        let mut driver = Driver::new();
        driver.step(CatalogInput::Start);
        driver.step(CatalogInput::Opened(bounds(1, 1)));
        driver.step(CatalogInput::Tail);
        let own = create(1, "default", 1);
        assert_eq!(driver.appended(), std::slice::from_ref(&own));
        // Another's, word for word the same.
        driver.give(1, &own);
        if logs_first {
            driver.settle(1);
        }
        driver.overtaken(2, &own);
        if !logs_first {
            assert!(!driver.core.is_ready());
            driver.settle(1);
        }
        assert!(driver.core.is_ready());
        assert_eq!(driver.core.failure(), None);
    }
}

#[test]
fn a_namespace_that_another_has_made_as_it_was_asked_for_is_the_answer() {
    let mut driver = Driver::ready();
    driver.ask(7, create_command("orders"));
    driver.give(2, &create(2, "orders", 1));
    driver.overtaken(3, &create(2, "orders", 1));
    assert_eq!(driver.answers(), [], "its log is not open");
    driver.settle(2);
    let made = driver.core.snapshot().by_name("orders").cloned();
    let made = Outcome::Namespace(made.expect("made").namespace.clone());
    assert_eq!(driver.answers(), [(7, Ok(made))]);
}

#[test]
fn whoever_comes_second_at_a_first_start_is_ready_with_what_the_first_has_made() {
    for first in [
        create(1, "default", 1),
        create(1, "default", 2),
        create(1, "orders", 1),
    ] {
        let mut driver = Driver::restarted(&[]);
        let own = create(1, "default", 1);
        assert_eq!(driver.appended(), std::slice::from_ref(&own));
        driver.give(1, &first);
        let Change::Create { spec, .. } = &first else {
            panic!("{first:?}");
        };
        for _ in 0..spec.logs {
            driver.settle(1);
        }
        assert!(!driver.core.is_ready());
        driver.overtaken(2, &own);
        assert!(driver.core.is_ready(), "{first:?}");
        assert!(driver.core.failure().is_none());
        assert_eq!(driver.core.snapshot().len(), 1);
    }
}

#[test]
fn what_is_settled_is_what_no_order_is_under_way_for() {
    let mut driver = Driver::ready();
    let progress = |folded, settled| Progress {
        folded: Sequence(folded),
        settled: Sequence(settled),
    };
    assert_eq!(driver.core.progress(), progress(2, 2));
    driver.give(2, &create(2, "orders", 1));
    assert_eq!(driver.core.progress(), progress(3, 2));
    driver.settle(2);
    assert_eq!(driver.core.progress(), progress(3, 3));
}
