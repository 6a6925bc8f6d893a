//! The stamp at the head of each payload: its run, publisher, number and time.
//!
//! A payload with less than [`Stamp::BYTES`] bytes has a short stamp, with fewer bits for the run
//! and the publisher; the payload's length says which of the two it has.

/// Identity of a message. Little endian in the payload's first bytes: run (4), publisher (4),
/// number (8), sent (8); in a short one run (2), publisher (2), number (5), sent (7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The run; messages that another run left behind are no part of this one.
    pub run: u32,
    /// The publisher that sent it, from 0.
    pub publisher: u32,
    /// Its number among the publisher's messages, from 0.
    pub number: u64,
    /// When it was, or should have been, published: microseconds of [`crate::clock`].
    pub sent_us: u64,
}

impl Stamp {
    /// Bytes that a stamp takes.
    pub const BYTES: usize = 24;
    /// Bytes that a short one takes: the smallest payload there is.
    pub const SHORT_BYTES: usize = 16;

    /// Whether a payload of `size` bytes with this stamp is of `run`, of which a short stamp has the
    /// low half.
    #[must_use]
    pub fn is_of(&self, run: u32, size: usize) -> bool {
        let known = if size < Stamp::BYTES {
            0xffff
        } else {
            u32::MAX
        };
        self.run == run & known
    }

    /// A payload of `size` bytes that begins with it, and has dots behind it. At least a short stamp.
    #[must_use]
    pub fn payload(&self, size: usize) -> Vec<u8> {
        let mut payload = if size < Stamp::BYTES {
            [
                &self.run.to_le_bytes()[..2],
                &self.publisher.to_le_bytes()[..2],
            ]
            .concat()
        } else {
            [self.run.to_le_bytes(), self.publisher.to_le_bytes()].concat()
        };
        payload.resize(size.max(Stamp::SHORT_BYTES), b'.');
        Stamp::put(&mut payload, self.number, self.sent_us);
        payload
    }

    /// Bytes of the stamp at the head of a payload.
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
    pub fn put(payload: &mut [u8], number: u64, sent_us: u64) {
        let (number, sent_us) = (number.to_le_bytes(), sent_us.to_le_bytes());
        if let Some(place) = payload.get_mut(8..Stamp::BYTES) {
            place[..8].copy_from_slice(&number);
            place[8..].copy_from_slice(&sent_us);
        } else if let Some(place) = payload.get_mut(4..Stamp::SHORT_BYTES) {
            place[..5].copy_from_slice(&number[..5]);
            place[5..].copy_from_slice(&sent_us[..7]);
        }
    }

    /// Reads the stamp of a payload; nothing if it is too short for one.
    #[must_use]
    pub fn read(payload: &[u8]) -> Option<Stamp> {
        if payload.len() < Stamp::BYTES {
            return Stamp::read_short(payload);
        }
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

    fn read_short(payload: &[u8]) -> Option<Stamp> {
        let (run, rest) = payload.split_first_chunk()?;
        let (publisher, rest) = rest.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk::<5>()?;
        let (sent_us, _) = rest.split_first_chunk::<7>()?;
        let wide = |bytes: &[u8]| {
            let mut all = [0; 8];
            all[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(all)
        };
        Some(Stamp {
            run: u16::from_le_bytes(*run).into(),
            publisher: u16::from_le_bytes(*publisher).into(),
            number: wide(number),
            sent_us: wide(sent_us),
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
        assert_eq!(stamp.payload(100), payload);
        assert_eq!(Stamp::read(&payload[..15]), None);
    }

    #[test]
    fn a_short_stamp_knows_its_message_and_half_of_its_run() {
        let stamp = Stamp {
            run: 0x7_1234,
            publisher: 2,
            number: 3 << 32,
            sent_us: 4 << 48,
        };
        for size in Stamp::SHORT_BYTES..Stamp::BYTES {
            let payload = stamp.payload(size);
            assert_eq!(payload.len(), size);
            let read = Stamp::read(&payload).unwrap();
            assert_eq!(
                read,
                Stamp {
                    run: 0x1234,
                    ..stamp
                }
            );
            assert!(read.is_of(stamp.run, size) && !read.is_of(stamp.run + 1, size));
        }
        assert!(stamp.is_of(stamp.run, 24) && !stamp.is_of(stamp.run + (1 << 16), 24));
    }
}
