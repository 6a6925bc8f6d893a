//! Upkeep: storages are told what log 0 names.

use super::provisioned::{create_of, provisions};
use super::*;
use airmail_log::{Kept, KeptMap};

impl Driver {
    /// A catalog of the namespaces `default`, of one log, and `orders`, of three.
    fn of_two() -> Driver {
        let mut driver = Driver::restarted(&two());
        driver.settle(1);
        (0..3).for_each(|_| driver.settle(2));
        driver
    }

    /// The same where `orders` is deleted, and its logs cannot be yet.
    fn of_one_and_one_to_go() -> Driver {
        let mut driver = Driver::restarted(&[&two()[..], &[delete(2, 1)]].concat());
        driver.settle(1);
        (0..3).for_each(|_| driver.fail(2, ErrorCode::StorageFailed));
        driver
    }

    /// Everything that storages are told, the last one first.
    fn keep(&mut self) -> Vec<&Kept> {
        assert!(self.core.is_ready());
        self.step(CatalogInput::Upkeep);
        let kept = self.effects.iter().rev().map(|effect| match effect {
            CatalogEffect::Keep(kept) => kept,
            other => panic!("{other:?}"),
        });
        kept.collect()
    }
}

fn two() -> [Change; 3] {
    [
        Change::Raise { version: 4 },
        create_of(1, "default", 1, provisions(1)),
        create_of(2, "orders", 3, provisions(2)),
    ]
}

/// Namespace and provisions of each map, and whether it is to go.
fn told(kept: &Kept) -> Vec<(u32, Provisions, bool)> {
    let map = |map: &KeptMap| {
        let is_to_go = map.retention.is_none();
        (map.namespace.0, map.origin.provisions, is_to_go)
    };
    kept.maps.iter().map(map).collect()
}

#[test]
fn a_storage_is_told_the_namespaces_that_there_are_and_those_that_are_to_go() {
    let mut driver = Driver::of_two();
    let kept = driver.keep()[0];
    assert_eq!(kept.storage, StorageName::FIRST);
    let both = [(1, provisions(1), false), (2, provisions(2), false)];
    assert_eq!(told(kept), both);
    let mut driver = Driver::of_one_and_one_to_go();
    let one = [(1, provisions(1), false), (2, provisions(2), true)];
    assert_eq!(told(driver.keep()[0]), one);
}

#[test]
fn every_storage_is_told_of_all_maps_and_where_they_are() {
    let fast = StorageName::new("fast").expect("a name");
    let mut driver = Driver::of_two();
    driver.core.config.storages.insert(fast, in_memory());
    let kept = driver.keep();
    let storages: Vec<_> = kept.iter().map(|kept| kept.storage).collect();
    assert_eq!(storages, [StorageName::FIRST, fast]);
    assert_eq!(kept[0].maps, kept[1].maps);
    let mut maps = kept[1].maps.iter();
    assert!(maps.all(|map| map.origin.storage == StorageName::FIRST));
}

#[test]
fn a_storage_is_told_which_ids_and_maps_nobody_has_yet() {
    let mut driver = Driver::of_one_and_one_to_go();
    let kept = driver.keep()[0];
    assert_eq!(kept.last, NamespaceId(2));
    let present: Vec<_> = kept.present.iter().collect();
    assert_eq!(present, [(&NamespaceId(1), &MapEpoch(1))]);
}
