//! The hash by which Kafka places a record with a key: murmur2, like its Java client's.

use crate::cluster::PartitionId;

const SEED: u32 = 0x9747_b28c;
const MULTIPLIER: u32 = 0x5bd1_e995;
const SHIFT: u32 = 24;

/// Where Kafka's own producer places this key among `partitions`, which must not be 0. It does not depend on
/// leaders, so a key does not move with a fault.
///
/// # Panics
/// If `partitions` is 0: there is no such topic.
#[must_use]
pub fn partition_of_key(key: &[u8], partitions: u32) -> PartitionId {
    let place = (murmur2(key) & 0x7fff_ffff) % partitions;
    PartitionId(place.cast_signed())
}

fn murmur2(data: &[u8]) -> u32 {
    // Keys are far below 4 GiB: a record is.
    let mut hash = SEED ^ data.len() as u32;
    let (words, rest) = data.as_chunks::<4>();
    for word in words {
        let mut word = u32::from_le_bytes(*word).wrapping_mul(MULTIPLIER);
        word ^= word >> SHIFT;
        word = word.wrapping_mul(MULTIPLIER);
        hash = hash.wrapping_mul(MULTIPLIER) ^ word;
    }
    if !rest.is_empty() {
        for (at, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * at);
        }
        hash = hash.wrapping_mul(MULTIPLIER);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(MULTIPLIER);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_kafkas_own_test() {
        // UtilsTest.testMurmur2 of Kafka.
        for (text, hash) in [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            (
                "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8",
                -58_897_971,
            ),
            ("abc", 479_470_107),
        ] {
            assert_eq!(murmur2(text.as_bytes()).cast_signed(), hash, "{text}");
        }
    }
}
