//! Upkeep: storages are told what log 0 names.

use super::provisioned::create_of;
use super::*;
use airmail_log::{Kept, KeptMap};

fn provisions(byte: u8) -> Provisions {
    Provisions::new(&[byte]).expect("few")
}

impl Driver {
    /// Starts with these commands in log 0, and has a log of each of these namespaces settled.
    fn settled(changes: &[Change], namespaces: &[u32]) -> Driver {
        let mut driver = Driver::restarted(changes);
        for namespace in namespaces {
            driver.settle(*namespace);
        }
        assert!(driver.core.is_ready());
        driver
    }

    /// Everything that storages were told in the last step.
    fn kept(&self) -> Vec<&Kept> {
        let effects = self.effects.iter();
        let kept = effects.filter_map(|effect| match effect {
            CatalogEffect::Keep(kept) => Some(kept),
            _ => None,
        });
        kept.collect()
    }
}

fn told(map: &KeptMap) -> (u32, u16, Provisions, bool) {
    let log = map.log.namespace.0;
    (log, map.logs, map.spec.provisions, map.is_dying)
}

#[test]
fn a_storage_is_told_the_namespaces_that_there_are_and_those_that_are_to_go() {
    let changes = [
        Change::Raise { version: 4 },
        create_of(1, "default", 1, provisions(1)),
        create_of(2, "orders", 3, provisions(2)),
        delete(2, 1),
    ];
    let mut driver = Driver::settled(&changes[..3], &[1, 2, 2, 2]);
    driver.step(CatalogInput::Upkeep);
    let [kept] = driver.kept()[..] else {
        panic!("{:?}", driver.effects);
    };
    assert_eq!(kept.storage, StorageName::FIRST);
    let maps: Vec<_> = kept.maps.iter().map(told).collect();
    let both = [(1, 1, provisions(1), false), (2, 3, provisions(2), false)];
    assert_eq!(maps, both);
    let mut driver = Driver::restarted(&changes);
    driver.settle(1);
    (0..3).for_each(|_| driver.fail(2, ErrorCode::StorageFailed));
    driver.step(CatalogInput::Upkeep);
    let maps: Vec<_> = driver.kept()[0].maps.iter().map(told).collect();
    let one = [(1, 1, provisions(1), false), (2, 3, provisions(2), true)];
    assert_eq!(maps, one);
}

#[test]
fn each_storage_is_told_what_is_its_own() {
    let fast = StorageName::new("fast").expect("a name");
    let mut driver = Driver::settled(
        &[
            Change::Raise { version: 4 },
            create_of(1, "default", 1, provisions(1)),
        ],
        &[1],
    );
    driver.core.config.storages.insert(fast, in_memory());
    driver.step(CatalogInput::Upkeep);
    let kept = driver.kept();
    let storages: Vec<_> = kept.iter().map(|of| (of.storage, of.maps.len())).collect();
    assert_eq!(storages, [(StorageName::FIRST, 1), (fast, 0)]);
}

#[test]
fn a_storage_is_told_which_ids_and_maps_nobody_has_yet() {
    let changes = [
        Change::Raise { version: 4 },
        create_of(1, "default", 1, provisions(1)),
        create_of(2, "orders", 1, provisions(2)),
        delete(2, 1),
    ];
    let mut driver = Driver::restarted(&changes);
    driver.settle(1);
    driver.fail(2, ErrorCode::StorageFailed);
    driver.step(CatalogInput::Upkeep);
    let kept = driver.kept()[0];
    assert_eq!(kept.last, NamespaceId(2));
    let present: Vec<_> = kept.present.iter().collect();
    assert_eq!(present, [(&NamespaceId(1), &MapEpoch(1))]);
}
