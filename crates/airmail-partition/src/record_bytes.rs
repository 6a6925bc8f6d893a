//! Size of a record in one of Kafka's batches, before compression.

/// Size of a batch's head, before its first record.
pub(crate) const BATCH_HEAD: u32 = 61;
/// Attributes, distances in time and in offset, number of headers.
const RECORD_HEAD: u64 = 1 + 2 + 2 + 1;

/// An estimate from the lengths of key and value; `None` is a field that the record does not have.
///
/// Headers and the exact distance in time and offset are left out; it is rather high, for a partition that is
/// left with room for one more record costs nothing, while one that is left too late has a batch with a
/// single record.
#[must_use]
pub fn record_bytes(key: Option<usize>, value: Option<usize>) -> u32 {
    let body = RECORD_HEAD + field(key) + field(value);
    u32::try_from(prefix(body) + body).unwrap_or(u32::MAX)
}

fn field(length: Option<usize>) -> u64 {
    length.map_or(1, |length| prefix(length as u64) + length as u64)
}

/// The length of a length: a zigzag varint, which has 6 bits in its first byte and 7 in others.
fn prefix(length: u64) -> u64 {
    let mut prefix = 1;
    let mut left = length >> 6;
    while left > 0 {
        prefix += 1;
        left >>= 7;
    }
    prefix
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_length_costs_its_varint() {
        assert_eq!(record_bytes(None, None), 1 + 6 + 1 + 1);
        assert_eq!(record_bytes(Some(0), Some(63)), 2 + 6 + 1 + 64);
        assert_eq!(record_bytes(None, Some(64)), 2 + 6 + 1 + 66);
        assert_eq!(record_bytes(None, Some(8_192)), 3 + 6 + 1 + 3 + 8_192);
    }
}
