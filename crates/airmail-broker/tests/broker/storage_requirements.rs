//! Storages that a shard cannot honour: it refuses them at its start, by the capability's name.

use crate::behind::numbers;
use crate::client::Mode;
use crate::vec_storage::VecStorage;
use crate::world::{LOG, PLENTY, World};
use airmail_broker::{AllowAll, Engine, ShardConfig, UnfitStorage};
use airmail_log::{AppendClock, Dedup, Numbering};
use airmail_model::frame::Start;
use airmail_model::{Now, Sequence};
use std::time::Duration;

fn refusal(storage: VecStorage) -> Option<UnfitStorage> {
    let allow = || Box::new(AllowAll);
    Engine::new(
        ShardConfig::default(),
        storage,
        allow(),
        allow(),
        Now::default(),
    )
    .err()
}

#[test]
fn a_storage_that_leaves_retries_out_when_they_are_read_and_has_no_holes_is_refused() {
    let mut storage = VecStorage::new();
    storage.dedup = Dedup::AtRead;
    let refusal = refusal(storage).expect("refused");
    let dedup = Dedup::AtRead;
    assert_eq!(refusal, UnfitStorage::Numbering { dedup });
    let text = refusal.to_string();
    assert!(
        text.contains("dedup is AtRead") && text.contains("numbering Dense"),
        "{text}"
    );
}

#[test]
fn a_storage_that_recognises_them_when_they_are_applied_will_do() {
    let mut storage = VecStorage::new();
    storage.dedup = Dedup::AtApply;
    assert_eq!(refusal(storage), None);
}

#[test]
fn a_storage_of_many_writers_clocks_and_copies_will_do() {
    let mut storage = VecStorage::new();
    storage.dedup = Dedup::AtRead;
    storage.numbering = Numbering::Sparse;
    storage.clock = AppendClock::Within(Duration::from_secs(5));
    storage.many_writers = true;
    assert_eq!(refusal(storage), None);
}

#[test]
fn over_numbers_with_holes_late_and_live_subscribers_get_everything_in_order() {
    let mut storage = VecStorage::new();
    storage.numbering = Numbering::Sparse;
    let mut world = World::with(ShardConfig::default(), storage);
    let client = world.open(1, PLENTY);
    for n in 0..20 {
        world.publish(client, &[("a", &n.to_string()), ("b", "other")]);
    }
    world.run();
    world.add(client, 0, "a", Start::Earliest);
    // In the hole before the eleventh batch, and in that batch.
    world.add(client, 1, "a", Start::Sequence(Sequence(10 * 4096 + 100)));
    world.add(client, 2, "a", Start::Sequence(Sequence(11 * 4096)));
    world.run();
    world.tell(client, "a", "20");
    for (subscription, first) in [(0, 0), (1, 10), (2, 10)] {
        let payloads = world.client(client).payloads(subscription);
        assert_eq!(payloads, numbers(first..21), "from {first}");
        let mode = &world.client(client).sub(subscription).mode;
        assert_eq!(*mode, Mode::Live(LOG));
    }
}

/// The storage of these tests can do neither, and fails a test in which it is asked to.
#[test]
fn a_storage_that_cannot_seal_heal_or_be_read_beyond_its_end_will_do() {
    assert_eq!(refusal(VecStorage::new()), None);
}
