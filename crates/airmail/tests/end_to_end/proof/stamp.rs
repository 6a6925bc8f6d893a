//! Payloads that the harnesses publish: each names its publisher and its number, and is, to the
//! last byte, a function of these. So a payload that was never published cannot be taken for one
//! that was.

use bytes::Bytes;

const MAGIC: &[u8; 8] = b"stamped:";
/// Bytes of a stamp, without filling.
pub(crate) const STAMP_BYTES: usize = 28;

/// Publisher of a message, and its number among those to its topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stamp {
    pub(crate) publisher: u32,
    /// The topic, by its place in the harness's list.
    pub(crate) topic: u32,
    /// 0, 1, 2, … of this publisher to this topic.
    pub(crate) number: u64,
    /// Length of the payload.
    pub(crate) bytes: u32,
}

impl Stamp {
    /// The payload: the stamp, and filling that follows from it.
    pub(crate) fn payload(self) -> Bytes {
        let bytes = (self.bytes as usize).max(STAMP_BYTES);
        let mut out = Vec::with_capacity(bytes + 8);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&self.publisher.to_le_bytes());
        out.extend_from_slice(&self.topic.to_le_bytes());
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&self.bytes.to_le_bytes());
        let mut state = self.number ^ u64::from(self.publisher) << 32 ^ u64::from(self.topic) << 48;
        while out.len() < bytes {
            state = state
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(0x1405_7b7e_f767_814f);
            out.extend_from_slice(&(state >> 16).to_le_bytes());
        }
        out.truncate(bytes);
        out.into()
    }

    /// The stamp at the beginning of `bytes`, whatever follows.
    pub(crate) fn at(bytes: &[u8]) -> Option<Stamp> {
        let rest = bytes.strip_prefix(MAGIC)?;
        let word = |at: usize| Some(u32::from_le_bytes(rest.get(at..at + 4)?.try_into().ok()?));
        Some(Stamp {
            publisher: word(0)?,
            topic: word(4)?,
            number: u64::from(word(8)?) | u64::from(word(12)?) << 32,
            bytes: word(16)?,
        })
    }

    /// The stamp of a payload that is, to the byte, what such a stamp gives.
    pub(crate) fn read(payload: &[u8]) -> Option<Stamp> {
        let bytes = payload.len() as u32;
        Stamp::at(payload).filter(|stamp| stamp.bytes == bytes && stamp.payload() == payload)
    }

    /// Where stamps begin in `bytes`.
    pub(crate) fn find_all(bytes: &[u8]) -> impl Iterator<Item = (usize, Stamp)> {
        let starts = bytes.windows(MAGIC.len()).enumerate();
        starts
            .filter(|(_, window)| window == MAGIC)
            .filter_map(|(at, _)| Some((at, Stamp::at(&bytes[at..])?)))
    }
}

#[test]
fn a_payload_with_another_bit_is_not_taken_for_one_that_was_published() {
    let stamp = Stamp {
        publisher: 3,
        topic: 1,
        number: 77,
        bytes: 61,
    };
    let payload = stamp.payload();
    assert_eq!(Stamp::read(&payload), Some(stamp));
    for bit in 0..payload.len() * 8 {
        let mut hit = payload.to_vec();
        hit[bit / 8] ^= 1 << (bit % 8);
        assert_ne!(Stamp::read(&hit), Some(stamp));
    }
}
