//! Messages of one of the publishers of both lanes, as they come.

use super::report::StreamOfRun;
use crate::clock::now_us;
use crate::latency::Latencies;
use airmail_client::Lane;
use serde::Serialize;

/// Bits of a message's number; above them is who has published it.
const NUMBER_BITS: u32 = 56;

/// A publisher's part in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The flood: as much as goes of one lane.
    Flood,
    /// The other lane.
    Beside,
    /// The flood's lane at the rate of the other one.
    Control,
}

impl Role {
    /// All.
    pub const ALL: [Role; 3] = [Role::Flood, Role::Beside, Role::Control];

    /// Name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Role::Flood => "flood",
            Role::Beside => "beside",
            Role::Control => "control",
        }
    }
}

/// Head of each payload: when the message was handed over, or due, and who has published it under which number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) role: Role,
    pub(super) number: u64,
    pub(super) due_us: u64,
}

impl Stamp {
    pub(super) const BYTES: usize = 16;

    pub(super) fn bytes(self) -> [u8; Stamp::BYTES] {
        let number = self.number | (self.role as u64) << NUMBER_BITS;
        let mut bytes = [0; Stamp::BYTES];
        bytes[..8].copy_from_slice(&self.due_us.to_le_bytes());
        bytes[8..].copy_from_slice(&number.to_le_bytes());
        bytes
    }

    /// The stamp of a payload. `None`: it is that of a message that has made the lane's log.
    pub(super) fn read(payload: &[u8]) -> Option<Stamp> {
        let (due_us, rest) = payload.split_first_chunk()?;
        let number = u64::from_le_bytes(*rest.first_chunk()?);
        let role = usize::try_from(number >> NUMBER_BITS).ok()?;
        Some(Stamp {
            role: *Role::ALL.get(role)?,
            number: number & ((1 << NUMBER_BITS) - 1),
            due_us: u64::from_le_bytes(*due_us),
        })
    }
}

/// Messages of a publisher, as they came.
#[derive(Debug, Default)]
pub(super) struct Got {
    latencies: Latencies,
    pub(super) messages: u64,
    out_of_order: u64,
    /// Bytes of payload that came in each second of the run, up to the last in which something came.
    by_second: Vec<u64>,
}

impl Got {
    /// Counts a message, with the bytes of its payload, in a run that has begun then.
    pub(super) fn take(&mut self, stamp: Stamp, begun_us: u64, bytes: usize) {
        let now = now_us();
        self.latencies.record(now.saturating_sub(stamp.due_us));
        self.out_of_order += u64::from(stamp.number != self.messages);
        self.messages += 1;
        let second = now.saturating_sub(begun_us) / 1_000_000;
        let second = usize::try_from(second).unwrap_or_default();
        if self.by_second.len() <= second {
            self.by_second.resize(second + 1, 0);
        }
        self.by_second[second] += bytes as u64;
    }

    /// The outcome.
    pub(super) fn report(&self, lane: Lane, role: Role, published: u64) -> StreamOfRun {
        StreamOfRun {
            lane: lane.to_string(),
            role,
            published,
            delivered: self.messages,
            out_of_order: self.out_of_order,
            latency_us: self.latencies.percentiles(),
            bytes_by_second: self.by_second.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_says_whose_a_message_is_and_its_number() {
        for role in Role::ALL {
            let stamp = Stamp {
                role,
                number: 7,
                due_us: u64::MAX,
            };
            assert_eq!(Stamp::read(&stamp.bytes()), Some(stamp));
        }
        assert_eq!(Stamp::read(b""), None);
        assert_eq!(Stamp::read(&[0xff; Stamp::BYTES]), None);
    }

    #[test]
    fn a_message_that_comes_again_or_before_others_is_out_of_order() {
        let mut got = Got::default();
        for number in [0, 1, 1, 3, 3] {
            let stamp = Stamp {
                role: Role::Flood,
                number,
                due_us: 0,
            };
            got.take(stamp, now_us(), 16);
        }
        let report = got.report(Lane::Normal, Role::Flood, 4);
        assert_eq!((report.delivered, report.out_of_order), (5, 2));
    }
}
