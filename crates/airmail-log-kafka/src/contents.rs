//! Contents of a log: how much there is from an offset on, and since when.
//!
//! Kafka tells neither the bytes of a partition nor the time of its first record with its bounds. So whoever reads
//! the log through notes both at samples: at each record while they are few, and then at every second, fourth, …, so
//! that there are never more than [`SAMPLES_MAX`]. Between samples the answer is the sample's before.

use crate::place::Offset;
use std::collections::VecDeque;

/// The most samples of a log.
const SAMPLES_MAX: usize = 4096;

/// Bytes of a sample in a statement.
const SAMPLE_BYTES: usize = 24;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sample {
    offset: Offset,
    appended_ms: i64,
    bytes_before: u64,
}

/// Samples of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    samples: VecDeque<Sample>,
    bytes: u64,
    /// Records from one sample to the next: 2 to the power of this.
    thinned: u32,
    count: u64,
}

impl Contents {
    /// Takes the next record that holds messages.
    pub(crate) fn take(&mut self, offset: Offset, appended_ms: i64, bytes: u64) {
        if self.count.trailing_zeros() >= self.thinned {
            self.samples.push_back(Sample {
                offset,
                appended_ms,
                bytes_before: self.bytes,
            });
        }
        self.count += 1;
        self.bytes += bytes;
        self.thin(SAMPLES_MAX);
    }

    /// Leaves out every second sample until there are no more than `most`.
    fn thin(&mut self, most: usize) {
        while self.samples.len() > most {
            self.thinned += 1;
            let mut at = 0_usize;
            self.samples.retain(|_| {
                at += 1;
                at % 2 == 1
            });
        }
    }

    /// Writes down no more than so many samples.
    pub(crate) fn encode(&self, most: usize, out: &mut Vec<u8>) {
        let mut few = self.clone();
        few.thin(most);
        out.extend(few.bytes.to_be_bytes());
        out.extend(few.thinned.to_be_bytes());
        out.extend(few.count.to_be_bytes());
        for sample in few.samples {
            out.extend(sample.offset.0.to_be_bytes());
            out.extend(sample.appended_ms.to_be_bytes());
            out.extend(sample.bytes_before.to_be_bytes());
        }
    }

    /// Reads what was written down. `None`: it is something else.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Contents> {
        let (all, bytes) = bytes.split_first_chunk()?;
        let (thinned, bytes) = bytes.split_first_chunk()?;
        let (count, bytes) = bytes.split_first_chunk()?;
        let samples = bytes.chunks(SAMPLE_BYTES).map(|bytes| {
            let (offset, bytes) = bytes.split_first_chunk()?;
            let (appended_ms, bytes) = bytes.split_first_chunk()?;
            Some(Sample {
                offset: Offset(u64::from_be_bytes(*offset)),
                appended_ms: i64::from_be_bytes(*appended_ms),
                bytes_before: u64::from_be_bytes(bytes.try_into().ok()?),
            })
        });
        Some(Contents {
            samples: samples.collect::<Option<_>>()?,
            bytes: u64::from_be_bytes(*all),
            thinned: u32::from_be_bytes(*thinned),
            count: u64::from_be_bytes(*count),
        })
    }

    /// Forgets samples that no offset from `first` on needs.
    pub(crate) fn forget_before(&mut self, first: Offset) {
        while self.samples.get(1).is_some_and(|s| s.offset <= first) {
            self.samples.pop_front();
        }
    }

    /// Time of the first record from `first` on, and the bytes from there. `None`: there is nothing that is known of.
    pub(crate) fn from(&self, first: Offset) -> Option<(i64, u64)> {
        let at = self.samples.partition_point(|s| s.offset < first);
        let sample = match self.samples.get(at) {
            Some(sample) => sample,
            None if self.thinned > 0 => self.samples.back()?,
            None => return None,
        };
        Some((
            sample.appended_ms,
            self.bytes.saturating_sub(sample.bytes_before),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_records_are_known_exactly() {
        let mut contents = Contents::default();
        assert_eq!(contents.from(Offset(0)), None);
        for n in 0..10 {
            contents.take(Offset(n * 2), n as i64, 100);
        }
        assert_eq!(contents.from(Offset(0)), Some((0, 1000)));
        assert_eq!(contents.from(Offset(3)), Some((2, 800)));
        contents.forget_before(Offset(4));
        assert_eq!(contents.from(Offset(4)), Some((2, 800)));
        assert_eq!(contents.from(Offset(19)), None);
    }

    #[test]
    fn what_is_written_down_is_read_as_it_was_or_more_roughly() {
        let mut contents = Contents::default();
        for n in 0..100 {
            contents.take(Offset(n), n as i64, 10);
        }
        let encoded = |most| {
            let mut bytes = Vec::new();
            contents.encode(most, &mut bytes);
            bytes
        };
        assert_eq!(Contents::decode(&encoded(100)), Some(contents.clone()));
        let few = Contents::decode(&encoded(10)).unwrap();
        assert!(few.samples.len() <= 10);
        assert_eq!(few.from(Offset(0)), Some((0, 1000)));
        assert_eq!(Contents::decode(&encoded(100)[..30]), None);
    }

    #[test]
    fn many_records_are_known_roughly_and_take_bounded_room() {
        let mut contents = Contents::default();
        for n in 0..100_000 {
            contents.take(Offset(n), n as i64, 10);
        }
        assert!(contents.samples.len() <= SAMPLES_MAX);
        let (at, bytes) = contents.from(Offset(50_000)).unwrap();
        assert!((50_000..50_100).contains(&at), "{at}");
        assert!((499_000..=500_000).contains(&bytes), "{bytes}");
    }
}
