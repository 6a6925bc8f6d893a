//! Settings of the cores for a run: small, so that a run of seconds meets every bound.

use crate::entropy::Entropy;
use crate::plant::Plant;
use airmail_broker::{ShardConfig, SweepSettings};
use airmail_flow::{GateSettings, LimiterKind, LimiterSettings, SharesSettings};
use airmail_link::{CacheLimits, LinkLimits, TowerLimits};
use airmail_log::journal::JournalConfig;
use airmail_model::{Retention, Synced};
use std::ops::RangeInclusive;
use std::time::Duration;

/// A journal's settings: tiny segments, blocks and caches.
#[must_use]
pub fn journal(chance: &mut Entropy, plant: Option<Plant>) -> JournalConfig {
    let segment_bytes = 1 << chance.between(12, 16);
    JournalConfig {
        seed: chance.next(),
        segment_bytes,
        meta_segment_bytes: 1 << chance.between(12, 14),
        fill_bytes: chance.below(3) * 4096,
        recycled_max: chance.index(3),
        spare_time: Duration::from_millis(chance.between(1, 500)),
        block_bytes: 1 << chance.between(10, 13),
        checkpoint_bytes: 1 << chance.between(12, 16),
        commit_bytes: 1 << chance.between(10, 16),
        pending_bytes: 1 << chance.between(13, 18),
        unsynced_bytes: chance.below(4) * 8_000,
        unsynced_time: Duration::from_millis(chance.between(1, 100)),
        cache_bytes: chance.below(4) * 4_000,
        run_cache_bytes: chance.below(4) * 4_000,
        read_bytes: 1 << chance.between(9, 14),
        reads_max: chance.index(8) + 1,
        reserve_numbers: chance.between(1, 500),
        retention_interval: Duration::from_millis(chance.between(1, 200)),
        probe_interval: Duration::from_millis(chance.between(1, 100)),
        greater_is_next: plant == Some(Plant::ProducerGreaterIsNext),
        bug: plant.and_then(Plant::in_log),
        ..JournalConfig::default()
    }
}

/// Bounds of caches, in half of the runs: so small that hardly anything stays, or room for everything.
#[must_use]
pub fn cache(chance: &mut Entropy) -> Option<CacheLimits> {
    chance.coin().then(|| CacheLimits {
        bytes: chance.below(4) * (1 << chance.between(9, 18)),
        fetch_bytes: 1 << chance.between(6, 16),
        turn_bytes: 1 << chance.between(6, 16),
    })
}

/// A log's durability: `fsync` but for two in `of`, of which each is one of the weaker two.
#[must_use]
pub fn durability(chance: &mut Entropy, of: u64) -> Synced {
    match chance.below(of) {
        0 => Synced::Memory,
        1 => Synced::Os,
        _ => Synced::Fsync,
    }
}

/// A log's retention: none but for two in `of`, of which one is held to a time, the other to bytes.
#[must_use]
pub fn retention(
    chance: &mut Entropy,
    of: u64,
    time_ms: RangeInclusive<u64>,
    bytes: RangeInclusive<u64>,
) -> Retention {
    let mut drawn = Retention::default();
    match chance.below(of) {
        0 => drawn.time_ms = Some(chance.between(*time_ms.start(), *time_ms.end())),
        1 => drawn.bytes = Some(chance.between(*bytes.start(), *bytes.end())),
        _ => {}
    }
    drawn
}

/// A shard's settings: few readers, small steps.
#[must_use]
pub fn shard(chance: &mut Entropy, plant: Option<Plant>) -> ShardConfig {
    // Drawn aside, so that no other draw depends on it.
    let mut aside = chance.clone();
    aside.next();
    ShardConfig {
        filters_few: aside.index(4),
        matching_units: 1 << aside.between(0, 8),
        matching_found: 1 << aside.between(0, 6),
        matching_bytes: 1 << aside.between(9, 16),
        seed: chance.next(),
        bug: plant.and_then(Plant::in_broker),
        mark_interval: Duration::from_millis(chance.between(1, 200)),
        catch_up_readers: chance.index(3) + 1,
        catch_up_step_bytes: 1 << chance.between(9, 13),
        catch_up_quantum_bytes: 1 << chance.between(10, 14),
        catch_up_span: chance.between(1, 300),
        catch_up_sweeps: SweepSettings {
            members: chance.index(12) + 2,
            near: chance.between(0, 100),
            apart: Duration::from_millis(chance.between(1, 500)),
            calm: Duration::from_millis(chance.between(0, 50)),
        },
        tail_window_bytes: 1 << chance.between(10, 16),
        retry_delay: Duration::from_millis(chance.between(1, 50)),
        publish_gate: chance.coin().then(|| publish_gate(chance)),
        publish_waiting_bytes: 1 << chance.between(10, 20),
        delivery_gate: chance.coin().then(|| delivery_gate(chance)),
        ..ShardConfig::default()
    }
}

/// Limits of the links between shards: small windows, few messages at a time.
#[must_use]
pub fn link(chance: &mut Entropy, plant: Option<Plant>) -> LinkLimits {
    LinkLimits {
        append_bytes: 1 << chance.between(12, 18),
        calls: 1 << chance.between(7, 12),
        window_bytes: 1 << chance.between(10, 16),
        reader_bytes: 1 << chance.between(8, 14),
        marks: 1 << chance.between(2, 10),
        turn_messages: 1 << chance.between(0, 8),
        bug: plant.and_then(Plant::in_link),
        ..LinkLimits::default()
    }
}

/// Limits of how logs are spread over towers: short patience, few at a time.
#[must_use]
pub fn towers(chance: &mut Entropy, plant: Option<Plant>) -> TowerLimits {
    let mut ms = |from, to| Duration::from_millis(chance.between(from, to));
    TowerLimits {
        stale_after: ms(50, 1_000),
        rest: ms(100, 5_000),
        ask_every: ms(20, 500),
        towers_per_log: chance.index(TowerLimits::TOWERS_PER_LOG_MAX) + 1,
        takeover_logs: chance.index(4) + 1,
        uptake_logs_per_s: u32::try_from(chance.between(5, 200)).unwrap_or(20),
        ask_logs: chance.index(8) + 1,
        moving_bytes: 1 << chance.between(8, 16),
        bug: plant.and_then(Plant::in_link),
    }
}

/// Topics that may be wanted over the links of a shard: none, a few, or all.
#[must_use]
pub fn wants(chance: &mut Entropy) -> usize {
    match chance.below(4) {
        0 => 0,
        1 => chance.index(20) + 1,
        _ => 1 << 20,
    }
}

/// Any limiter. One draw in five is one of those that were added to the first four. It is told by a remainder
/// that no gate of the seeds in `tests/seeds.rs` has: they walk what they are kept for.
fn limiter(chance: &mut Entropy) -> LimiterKind {
    let (first, added) = LimiterKind::ALL.split_at(4);
    let drawn = chance.next();
    let (kinds, number) = if (drawn >> 43) % 5 == 2 {
        (added, drawn >> 8)
    } else {
        (first, drawn)
    };
    kinds[(number % kinds.len() as u64) as usize]
}

/// Any limiter, with so small a bound and so short a line that publishes wait and are refused.
fn publish_gate(chance: &mut Entropy) -> GateSettings {
    GateSettings {
        window_messages: chance.between(1, 200),
        waiting_messages_max: chance.between(0, 500),
        burst_ms: chance.between(1, 100),
        standing_ms: chance.below(50),
        wait_ms_max: chance.between(1, 200),
        retry_ms_min: chance.between(1, 10),
        retry_ms_max: chance.between(10, 100),
        limiter: LimiterSettings {
            kind: limiter(chance),
            bound_initial: chance.between(1, 300),
            ..LimiterSettings::DEFAULT
        },
    }
}

/// Any limiter, with so small a bound that deliveries are put off.
fn delivery_gate(chance: &mut Entropy) -> SharesSettings {
    SharesSettings {
        window: chance.between(1, 20_000),
        limiter: LimiterSettings {
            kind: limiter(chance),
            bound_initial: chance.between(1, 20_000),
            ..LimiterSettings::DEFAULT
        },
    }
}
