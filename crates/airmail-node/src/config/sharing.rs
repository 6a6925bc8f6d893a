//! Shares the settings of a node among its shards.
//!
//! What bounds the memory or the work of a node is for all of its shards together, and each gets its part;
//! what bounds one connection or one stream is the same on every shard. A part has a least size, below
//! which a shard could not work: so a small bound among many shards may be exceeded, by as many least
//! parts as there are shards.

use super::{Config, invalid};
use airmail_model::Error;
use airmail_model::quantity::ByteSize;

/// Shards of a node at most.
pub const SHARDS_MAX: u16 = 64;

/// The smallest part of the cache.
const CACHE_MIN: u64 = 1 << 20;
/// Readers for late subscribers that a shard has at least, if the node may have as many.
const READERS_MIN: u32 = 2;

impl Config {
    /// Whether there can be so many shards.
    pub(super) fn check_shards(&self) -> Result<(), Error> {
        if (1..=SHARDS_MAX).contains(&self.shards) {
            return Ok(());
        }
        let bound = format!("1 to {SHARDS_MAX}");
        Err(invalid("node.shards").value(self.shards).limit(bound))
    }

    /// The settings of one shard: its part of what is for all together. Those of a node with one shard are
    /// the shard's.
    #[must_use]
    pub fn of_one_shard(&self) -> Config {
        let mut config = self.clone();
        if self.shards <= 1 {
            return config;
        }
        let shards = u64::from(self.shards);
        let part = |whole: u64, least: u64| (whole / shards).max(least.min(whole));
        // A batch has to fit.
        let batch = u64::from(self.limits.frame_bytes) + (1 << 20);
        config.cache = ByteSize(part(self.cache.0, CACHE_MIN));
        config.pending = ByteSize(part(self.pending.0, batch));
        config.readers = (self.readers / u32::from(self.shards)).max(READERS_MIN.min(self.readers));
        let (flow, whole) = (&mut config.flow, &self.flow);
        flow.publish_in_flight = whole.publish_in_flight.div_ceil(shards);
        flow.publish_waiting = whole.publish_waiting.div_ceil(shards);
        flow.delivery_in_flight = ByteSize(part(whole.delivery_in_flight.0, batch));
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(shards: u16) -> Config {
        Config {
            shards,
            ..Config::default()
        }
    }

    #[test]
    fn there_are_one_to_sixty_four_shards() {
        for shards in [1, 2, 64] {
            with(shards).validate().unwrap();
        }
        for shards in [0, 65, u16::MAX] {
            let error = with(shards).validate().unwrap_err();
            assert_eq!(error.field_name(), "node.shards");
            assert_eq!(error.found(), shards.to_string());
            assert_eq!(error.expected(), "1 to 64");
        }
    }

    #[test]
    fn a_single_shard_has_all_and_several_have_their_parts() {
        assert_eq!(with(1).of_one_shard(), with(1));
        let (whole, part) = (with(4), with(4).of_one_shard());
        assert_eq!(part.cache.0 * 4, whole.cache.0);
        assert_eq!(part.pending.0 * 4, whole.pending.0);
        assert_eq!(part.readers * 4, whole.readers);
        assert_eq!(
            part.flow.publish_in_flight * 4,
            whole.flow.publish_in_flight
        );
        assert_eq!(part.limits, whole.limits);
        assert_eq!(part.connections, whole.connections);
    }

    #[test]
    fn a_part_is_large_enough_to_work_with_and_never_more_than_the_whole() {
        let part = with(64).of_one_shard();
        assert!(part.pending.0 > u64::from(part.limits.frame_bytes));
        assert_eq!((part.cache.0, part.readers), (CACHE_MIN, READERS_MIN));
        let small = Config {
            cache: ByteSize(4096),
            readers: 1,
            ..with(8)
        };
        let part = small.of_one_shard();
        assert_eq!((part.cache.0, part.readers), (4096, 1));
    }
}
