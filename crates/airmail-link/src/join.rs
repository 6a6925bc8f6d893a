//! Joins the shards of a process: each gets a link to every other.

use crate::homes::LogHomes;
use crate::hosted_storage::HostedStorage;
use crate::limits::LinkLimits;
use crate::link_storage::LinkStorage;
use crate::ring::ring;
use crate::sharded_storage::ShardedStorage;
use airmail_log::{LogStorage, Waker};
use std::sync::Arc;

/// Most slots of all rings together.
const SLOTS_MAX: usize = 1 << 18;
/// Fewest slots of a ring.
const SLOTS_MIN: usize = 16;

/// Storages of all shards, of which each has the logs of every one. `storages`, `wakers` and the result are in
/// order of shard; a shard's waker is called, from other shards' threads, when one of them has sent something.
///
/// # Panics
/// If there are not as many storages as wakers, and as many as `homes` has shards.
pub fn join<S: LogStorage>(
    storages: Vec<S>,
    homes: LogHomes,
    wakers: Vec<Waker>,
    limits: LinkLimits,
) -> Vec<ShardedStorage<S>> {
    let shards = storages.len();
    assert_eq!(shards, homes.shards(), "storages and shards");
    assert_eq!(shards, wakers.len(), "storages and wakers");
    let homes = Arc::new(homes);
    let rings = (shards * shards.saturating_sub(1) * 2).max(1);
    let slots = limits.ring_slots.min((SLOTS_MAX / rings).max(SLOTS_MIN));
    let mut hosts: Vec<_> = storages
        .into_iter()
        .map(|storage| HostedStorage::new(storage, limits))
        .collect();
    let mut links: Vec<Vec<_>> = Vec::new();
    for (near, waker) in wakers.iter().enumerate() {
        let mut of_shard = Vec::new();
        for (far, host) in hosts.iter_mut().enumerate() {
            if near == far {
                of_shard.push(None);
                continue;
            }
            let (ours, theirs) = ring(slots, Arc::clone(waker), Arc::clone(&wakers[far]));
            host.add_port(Box::new(theirs));
            of_shard.push(Some(LinkStorage::new(ours, host.capabilities(), limits)));
        }
        links.push(of_shard);
    }
    let shards = hosts.into_iter().zip(links).enumerate();
    shards
        .map(|(shard, (own, links))| ShardedStorage::new(shard, Arc::clone(&homes), own, links))
        .collect()
}
