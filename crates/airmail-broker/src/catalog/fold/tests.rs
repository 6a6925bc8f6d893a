//! Tests of the fold.

use super::*;
use airmail_model::LogId;

fn create(id: u32, name: &str) -> Change {
    Change::Create {
        id: NamespaceId(id),
        name: name.to_owned(),
        spec: NamespaceSpec {
            logs: 7,
            ..NamespaceSpec::default()
        },
        provisions: Provisions::NONE,
    }
}

#[test]
fn after_the_last_number_there_is_no_next() {
    let mut fold = Fold::default();
    assert!(fold.apply(&create(u32::MAX, "last"), Sequence(1)));
    assert_eq!(fold.next_id(), None);
}

#[test]
fn a_command_of_a_version_that_log_0_was_not_raised_to_is_void() {
    let mut fold = Fold::default();
    let mut copied = create(1, "a");
    if let Change::Create { spec, .. } = &mut copied {
        spec.durability.copies = 3;
    }
    let version = copied.version();
    assert!(!fold.apply(&copied, Sequence(1)));
    assert!(fold.apply(&Change::Raise { version }, Sequence(2)));
    assert!(!fold.apply(&Change::Raise { version }, Sequence(3)), "once");
    assert!(fold.apply(&copied, Sequence(4)));
}

#[test]
fn a_namespace_keeps_its_storage_until_nothing_of_it_is_left() {
    let mut fold = Fold::default();
    let storage = StorageName::new("fast").expect("a name");
    let mut fast = create(1, "a");
    if let Change::Create { spec, .. } = &mut fast {
        spec.storage = storage;
    }
    let id = NamespaceId(1);
    let version = fast.version();
    assert!(fold.apply(&Change::Raise { version }, Sequence(1)));
    assert!(fold.apply(&fast, Sequence(2)));
    let update = Change::Update {
        id,
        based_on: 1,
        retention: airmail_model::Retention::default(),
        durability: airmail_model::Durability::OS,
    };
    assert!(fold.apply(&update, Sequence(3)));
    let entry = fold.catalog.get(id).expect("made");
    assert_eq!(entry.log_spec().storage, storage);
    assert!(fold.apply(&Change::Delete { id, based_on: 2 }, Sequence(4)));
    let dying = fold.dying.get(&id).expect("its log may be there");
    assert_eq!(dying.logs[0].origin.storage, storage);
}

#[test]
fn a_command_based_on_another_version_is_void() {
    let mut fold = Fold::default();
    let id = NamespaceId(1);
    let mut apply = |at, change: &Change| fold.apply(change, Sequence(at));
    assert!(apply(1, &create(1, "a")));
    assert!(!apply(2, &create(1, "b")), "the number is taken");
    assert!(!apply(3, &create(2, "a")), "the name is taken");
    assert!(!apply(4, &Change::Delete { id, based_on: 2 }));
    assert!(apply(5, &Change::Delete { id, based_on: 1 }));
    assert!(!apply(6, &create(1, "a")), "numbers are never reused");
    assert_eq!(fold.next_id(), Some(NamespaceId(2)));
    let logs = DyingLogs {
        first: LogIndex(0),
        logs: 7,
        has_high: false,
        origin: Origin::default(),
    };
    let dying = Dying {
        as_of: Sequence(5),
        logs: vec![logs],
    };
    assert_eq!(fold.dying.get(&id), Some(&dying));
    assert!(fold.apply(&Change::Purged { id, epoch: None }, Sequence(7)));
    assert!(fold.dying.is_empty());
}

#[test]
fn a_namespace_is_of_the_command_that_changed_it_last_and_of_no_void_one() {
    let mut fold = Fold::default();
    let id = NamespaceId(1);
    let update = |based_on| Change::Update {
        id,
        based_on,
        retention: airmail_model::Retention::default(),
        durability: airmail_model::Durability::OS,
    };
    for (at, change, as_of) in [
        (3, create(1, "a"), 3),
        (4, create(1, "a"), 3),
        (6, update(1), 6),
        (8, update(1), 6),
        (9, update(2), 9),
    ] {
        fold.apply(&change, Sequence(at));
        let entry = fold.catalog.get(id).expect("made");
        assert_eq!(entry.as_of, Sequence(as_of), "after {at}");
        assert_eq!(entry.log_spec().as_of, entry.as_of);
    }
}

/// A namespace `a` of seven logs, that was moved to `far` and back to the first storage.
fn moved_twice() -> Fold {
    let mut fold = Fold::default();
    let id = NamespaceId(1);
    let far = StorageName::new("far").expect("a name");
    let to = |based_on, storage| Change::Move {
        id,
        based_on,
        storage,
        provisions: Provisions::NONE,
    };
    let version = super::super::change::LAST_VERSION;
    assert!(fold.apply(&Change::Raise { version }, Sequence(1)));
    assert!(fold.apply(&create(1, "a"), Sequence(2)));
    assert!(
        !fold.apply(&to(1, StorageName::FIRST), Sequence(3)),
        "there"
    );
    assert!(fold.apply(&to(1, far), Sequence(4)));
    assert!(!fold.apply(&to(1, StorageName::FIRST), Sequence(5)), "late");
    assert!(fold.apply(&to(2, StorageName::FIRST), Sequence(6)));
    fold
}

#[test]
fn a_moved_namespace_has_logs_that_it_never_had_and_keeps_the_others() {
    let fold = moved_twice();
    let entry = fold.catalog.get(NamespaceId(1)).expect("made");
    let mut logs: Vec<LogId> = Vec::new();
    for map in entry.maps() {
        logs.extend(map.logs(airmail_model::Lane::Normal));
    }
    let indexes: Vec<u16> = logs.iter().map(|log| log.index.0).collect();
    assert_eq!(indexes, (0..21).collect::<Vec<u16>>());
    let epochs: Vec<u32> = entry.maps().map(|map| map.epoch.0).collect();
    assert_eq!(epochs, [1, 2, 3]);
    assert_eq!(entry.namespace.earlier.len(), 2);
    let topic = airmail_model::TopicHash(u128::MAX);
    let (last_of_1, last_of_2) = (logs[6], logs[13]);
    assert_eq!(entry.successor(last_of_1, topic), Some(last_of_2));
    assert_eq!(entry.predecessor(last_of_2, topic), Some(last_of_1));
    assert_eq!(entry.successor(logs[20], topic), None);
    assert_eq!(entry.predecessor(last_of_1, topic), None);
}

#[test]
fn earlier_logs_are_retired_once_and_told_of_until_they_are_purged() {
    let mut fold = moved_twice();
    let id = NamespaceId(1);
    let epoch = MapEpoch(1);
    let retired = |logs: u64| Change::Retired {
        id,
        epoch,
        ends: (1..=logs).map(Sequence).collect(),
        high_ends: Vec::new(),
    };
    let purged = Change::Purged {
        id,
        epoch: Some(epoch),
    };
    assert!(!fold.apply(&purged, Sequence(7)), "its logs are kept");
    assert!(!fold.apply(&retired(6), Sequence(8)), "it has seven");
    assert!(fold.apply(&retired(7), Sequence(9)));
    assert!(!fold.apply(&retired(7), Sequence(10)), "once");
    let mut deleted = fold.clone();
    assert!(deleted.apply(&Change::Delete { id, based_on: 3 }, Sequence(11)));
    let left = |fold: &Fold| fold.dying.get(&id).map(|dying| dying.logs.len());
    assert_eq!(left(&deleted), Some(3), "it may still be there");
    let entry = fold.catalog.get(id).expect("made");
    let log = entry.earlier[0]
        .map
        .logs(airmail_model::Lane::Normal)
        .last();
    let end = entry.earlier[0].retired_end(log.expect("seven"));
    assert_eq!(end, Some(Sequence(7)));
    assert_eq!(entry.namespace.earlier.len(), 1);
    assert!(fold.apply(&purged, Sequence(11)));
    assert!(!fold.apply(&purged, Sequence(12)), "once");
    assert!(fold.apply(&Change::Delete { id, based_on: 3 }, Sequence(13)));
    assert_eq!(left(&fold), Some(2));
}

#[test]
fn a_namespace_whose_log_indexes_are_used_up_stays_where_it_is() {
    let spec = NamespaceSpec {
        logs: 1024,
        ..NamespaceSpec::default()
    };
    let mut namespace = first_version(NamespaceId(1), "a", &spec);
    namespace.first_log = LogIndex(u16::MAX - 2047);
    let entry = Entry::new(namespace.clone(), Provisions::NONE, Sequence(1));
    let far = StorageName::new("far").expect("a name");
    let last = moved(&entry, far).expect("the last 1024 are left");
    assert_eq!(last.first_log, LogIndex(u16::MAX - 1023));
    let entry = Entry::new(last, Provisions::NONE, Sequence(2));
    assert_eq!(moved(&entry, StorageName::FIRST), None);
}
