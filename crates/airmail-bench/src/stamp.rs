//! The head of each payload: which run, who sent it, which it is, and when.

/// What a message says of itself. Little endian in the payload's first [`Stamp::BYTES`] bytes:
/// run (4), publisher (4), number (8), sent (8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Which run; what another left behind is no part of this one.
    pub run: u32,
    /// Who sent it, from 0.
    pub publisher: u32,
    /// Which of the publisher's messages it is, from 0.
    pub number: u64,
    /// When it was, or should have been, published: microseconds of [`crate::clock`].
    pub sent_us: u64,
}

impl Stamp {
    /// Bytes that a stamp takes.
    pub const BYTES: usize = 24;

    /// As it stands at the head of a payload.
    #[must_use]
    pub fn bytes(&self) -> [u8; Stamp::BYTES] {
        let mut bytes = [0; Stamp::BYTES];
        bytes[..4].copy_from_slice(&self.run.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.publisher.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.number.to_le_bytes());
        bytes[16..].copy_from_slice(&self.sent_us.to_le_bytes());
        bytes
    }

    /// Puts another number and time into a payload that has a stamp.
    pub(crate) fn put(payload: &mut [u8], number: u64, sent_us: u64) {
        if let Some(place) = payload.get_mut(8..Stamp::BYTES) {
            place[..8].copy_from_slice(&number.to_le_bytes());
            place[8..].copy_from_slice(&sent_us.to_le_bytes());
        }
    }

    /// Reads the stamp of a payload; nothing if it is too short for one.
    #[must_use]
    pub fn read(payload: &[u8]) -> Option<Stamp> {
        let (run, rest) = payload.split_first_chunk()?;
        let (publisher, rest) = rest.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let (sent_us, _) = rest.split_first_chunk()?;
        Some(Stamp {
            run: u32::from_le_bytes(*run),
            publisher: u32::from_le_bytes(*publisher),
            number: u64::from_le_bytes(*number),
            sent_us: u64::from_le_bytes(*sent_us),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_comes_back_from_its_payload() {
        let stamp = Stamp {
            run: 1,
            publisher: 2,
            number: 3,
            sent_us: 4,
        };
        let mut payload = stamp.bytes().to_vec();
        payload.resize(100, b'.');
        assert_eq!(Stamp::read(&payload), Some(stamp));
        assert_eq!(Stamp::read(&payload[..23]), None);
    }
}
