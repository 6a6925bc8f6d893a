//! Records in flight to one partition: given to the producer and not acknowledged.
//!
//! One record in a while is a *probe*: it is timed until as many records have ended as were sent
//! with it, which within a partition are the same ones. A probe that stays out reveals a node that
//! answers nothing.

use crate::cluster::NodeId;
use std::time::Duration;

#[derive(Clone, Copy, Debug)]
struct Probe {
    /// Its number among the sent.
    number: u64,
    since: Duration,
}

/// One partition's.
#[derive(Clone, Debug, Default)]
pub(crate) struct PartitionFlight {
    sent: u64,
    ended: u64,
    bytes: u64,
    probe: Option<Probe>,
    /// The node that leads it, or led it last.
    pub(crate) leader: Option<NodeId>,
}

impl PartitionFlight {
    /// A record sets out.
    pub(crate) fn depart(&mut self, bytes: u32, now: Duration) {
        self.sent += 1;
        self.bytes += u64::from(bytes);
        let number = self.sent;
        self.probe.get_or_insert(Probe { number, since: now });
    }

    /// A record was acknowledged or has failed; how long the probe took, if it was the probe.
    pub(crate) fn arrive(&mut self, bytes: u32, now: Duration) -> Option<Duration> {
        self.ended += 1;
        self.bytes = self.bytes.saturating_sub(u64::from(bytes));
        let probe = self.probe.filter(|probe| self.ended >= probe.number)?;
        self.probe = None;
        Some(now.saturating_sub(probe.since))
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Time for which the probe has been out.
    pub(crate) fn probe_age(&self, now: Duration) -> Duration {
        self.probe
            .map_or(Duration::ZERO, |probe| now.saturating_sub(probe.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn one_record_at_a_time_is_timed() {
        let mut flight = PartitionFlight::default();
        flight.depart(10, MS);
        flight.depart(20, 2 * MS);
        assert_eq!(flight.bytes(), 30);
        assert_eq!(flight.probe_age(5 * MS), 4 * MS);
        assert_eq!(flight.arrive(10, 6 * MS), Some(5 * MS));
        assert_eq!(flight.probe_age(7 * MS), Duration::ZERO);
        assert_eq!(flight.arrive(20, 8 * MS), None);
        flight.depart(5, 9 * MS);
        assert_eq!(flight.arrive(5, 11 * MS), Some(2 * MS));
        assert_eq!(flight.bytes(), 0);
    }
}
