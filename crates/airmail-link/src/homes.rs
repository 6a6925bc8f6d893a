//! Homes: which shard has which log.
//!
//! A log that was found in a shard's directory is there, however many shards there are now. Every other log
//! is new, and its home follows from its id and the number of shards: the same at every shard, without a
//! word between them. The logs of a namespace go round the shards, from one that its id chooses, so that they
//! are spread evenly.
//!
//! Invariants: log 0 is always at shard 0; a log's home never changes while the process runs.

use airmail_model::{LogId, random};
use std::collections::BTreeMap;
use std::fmt;

/// Homes of all logs. See the module's documentation.
#[derive(Clone, Debug)]
pub struct LogHomes {
    shards: usize,
    found: BTreeMap<LogId, usize>,
}

/// A log was found at a shard that is not its home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TwoHomes {
    /// The log.
    pub log: LogId,
    /// The shard that has it already, or is the only one that may.
    pub home: usize,
    /// The shard at which it was found, too.
    pub found: usize,
}

impl fmt::Display for TwoHomes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TwoHomes { log, home, found } = self;
        write!(
            f,
            "log {log} was found at shard {found}, and its home is shard {home}"
        )
    }
}

impl std::error::Error for TwoHomes {}

impl LogHomes {
    /// Homes among `shards` shards, at least 1, of which none has a log yet.
    #[must_use]
    pub fn new(shards: usize) -> LogHomes {
        assert!(shards > 0, "no shards");
        LogHomes {
            shards,
            found: BTreeMap::new(),
        }
    }

    /// Number of shards.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.shards
    }

    /// Takes note of a log that a shard has in its directory.
    ///
    /// # Errors
    /// [`TwoHomes`]: another shard has it too, or it is log 0 and this is not shard 0; nothing changes.
    pub fn found(&mut self, log: LogId, shard: usize) -> Result<(), TwoHomes> {
        assert!(shard < self.shards, "shard {shard} of {}", self.shards);
        let is_system = log == LogId::SYSTEM;
        let home = if is_system {
            0
        } else {
            *self.found.get(&log).unwrap_or(&shard)
        };
        if home != shard {
            return Err(TwoHomes {
                log,
                home,
                found: shard,
            });
        }
        self.found.insert(log, shard);
        Ok(())
    }

    /// The shard that has a log, or is to have it.
    #[must_use]
    pub fn home(&self, log: LogId) -> usize {
        if log == LogId::SYSTEM {
            return 0;
        }
        match self.found.get(&log) {
            Some(shard) => *shard,
            None => self.of_new(log),
        }
    }

    fn of_new(&self, log: LogId) -> usize {
        // Both lanes of an index share a home, so that what a subscription waits for is in one place.
        let first = random::nth(u64::from(log.namespace.0), 0);
        let place = (first >> 32) + u64::from(log.index.0);
        (place % self.shards as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_model::{Lane, LogIndex, NamespaceId};

    fn log(namespace: u32, index: u16) -> LogId {
        LogId {
            namespace: NamespaceId(namespace),
            lane: Lane::Normal,
            index: LogIndex(index),
        }
    }

    #[test]
    fn log_0_is_at_shard_0() {
        for shards in 1..=64 {
            let mut homes = LogHomes::new(shards);
            assert_eq!(homes.home(LogId::SYSTEM), 0);
            if shards > 1 {
                assert!(homes.found(LogId::SYSTEM, 1).is_err());
            }
            assert_eq!(homes.home(LogId::SYSTEM), 0);
        }
    }

    #[test]
    fn both_lanes_of_an_index_share_a_home() {
        for shards in 1..=9 {
            let homes = LogHomes::new(shards);
            for (namespace, index) in
                (1..40).flat_map(|namespace| (0..12).map(move |i| (namespace, i)))
            {
                let normal = log(namespace, index);
                let high = LogId {
                    lane: Lane::High,
                    ..normal
                };
                assert_eq!(homes.home(high), homes.home(normal));
            }
        }
    }

    #[test]
    fn the_logs_of_a_namespace_are_spread_evenly() {
        let homes = LogHomes::new(4);
        for namespace in 1..100 {
            let mut logs = [0; 4];
            for index in 0..8 {
                logs[homes.home(log(namespace, index))] += 1;
            }
            assert_eq!(logs, [2; 4]);
        }
    }

    #[test]
    fn namespaces_of_one_log_are_spread() {
        let homes = LogHomes::new(4);
        let mut logs = [0; 4];
        for namespace in 1..=1000 {
            logs[homes.home(log(namespace, 0))] += 1;
        }
        assert!(
            logs.iter().all(|logs| (200..300).contains(logs)),
            "{logs:?}"
        );
    }

    #[test]
    fn the_home_of_a_new_log_is_the_same_in_every_release() {
        let homes = LogHomes::new(5);
        let found: Vec<_> = (1..=8).map(|n| homes.home(log(n, 0))).collect();
        assert_eq!(found, [1, 4, 3, 1, 3, 1, 0, 1]);
    }

    #[test]
    fn a_log_stays_where_it_was_found() {
        let mut homes = LogHomes::new(3);
        for shard in 0..3 {
            let log = log(7, shard as u16);
            homes.found(log, shard).unwrap();
            assert_eq!(homes.home(log), shard);
        }
    }

    #[test]
    fn a_log_that_two_shards_have_is_told() {
        let mut homes = LogHomes::new(3);
        homes.found(log(7, 0), 2).unwrap();
        homes.found(log(7, 0), 2).unwrap();
        let two = homes.found(log(7, 0), 1).unwrap_err();
        assert_eq!((two.home, two.found), (2, 1));
        assert_eq!(homes.home(log(7, 0)), 2);
    }
}
