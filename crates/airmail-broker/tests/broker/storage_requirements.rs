//! Storages that a shard cannot honour: it refuses them at its start, by the capability's name.

use crate::vec_storage::VecStorage;
use airmail_broker::{AllowAll, Engine, ShardConfig, UnfitStorage};
use airmail_log::Dedup;
use airmail_model::Now;

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
fn a_storage_that_recognises_retries_only_when_they_are_read_is_refused() {
    let mut storage = VecStorage::new();
    storage.dedup = Dedup::AtRead;
    let refusal = refusal(storage).expect("refused");
    let found = Dedup::AtRead;
    assert_eq!(refusal, UnfitStorage::Dedup { found });
    assert!(refusal.to_string().contains("dedup is AtRead"));
}

#[test]
fn a_storage_with_many_writers_is_refused() {
    let mut storage = VecStorage::new();
    storage.many_writers = true;
    let refusal = refusal(storage).expect("refused");
    assert_eq!(refusal, UnfitStorage::ManyWriters);
    assert!(refusal.to_string().contains("many_writers is true"));
}

/// The storage of these tests can do neither, and fails a test in which it is asked to.
#[test]
fn a_storage_that_cannot_seal_heal_or_be_read_beyond_its_end_will_do() {
    assert_eq!(refusal(VecStorage::new()), None);
}
