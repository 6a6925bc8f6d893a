//! Mixes of requests that a client makes, with the probability of each.

use super::call::Kind;
use rand::Rng;
use serde::{Deserialize, Serialize};

/// Queues that clients use (tables 2.6 and 6.2).
pub const QUEUES: usize = 2;
/// Reads, out of 100, that remove the message (tables 2.6 and 6.2).
pub const REMOVED_PERCENT: u32 = 90;

/// A mix of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mix {
    /// The node alone (figures 3.5 to 3.8).
    Ping,
    /// The paper's workload of the whole system (table 6.2).
    Workload,
    /// Its workload of the database alone (table 2.6).
    Database,
    /// Half of the clients send this number of messages at once, the others take as many.
    Batch(u32),
}

impl Mix {
    /// Each kind of request, and how many of 100 are of it. Of a batch: of all clients' together.
    #[must_use]
    pub fn shares(self) -> &'static [(Kind, u32)] {
        match self {
            Mix::Ping => &[(Kind::Ping, 100)],
            Mix::Workload => &[
                (Kind::Send, 20),
                (Kind::Read, 60),
                (Kind::ReadBroadcast, 20),
            ],
            Mix::Database => &[
                (Kind::Send, 20),
                (Kind::Read, 20),
                (Kind::ReadBroadcast, 20),
                (Kind::Find, 20),
                (Kind::Queues, 20),
            ],
            Mix::Batch(_) => &[(Kind::Send, 50), (Kind::Read, 50)],
        }
    }

    /// Messages, out of 100 sent, that are broadcasts.
    #[must_use]
    pub fn broadcast_percent(self) -> u32 {
        match self {
            Mix::Workload => 10,
            Mix::Database => 30,
            Mix::Ping | Mix::Batch(_) => 0,
        }
    }

    /// Messages of one request.
    #[must_use]
    pub fn batch(self) -> u32 {
        match self {
            Mix::Batch(messages) => messages,
            Mix::Ping | Mix::Workload | Mix::Database => 1,
        }
    }

    /// Chooses a client's next request.
    #[must_use]
    pub fn next(self, client: u32, random: &mut impl Rng) -> Kind {
        if let Mix::Batch(_) = self {
            // Who sends and who receives does not change.
            return if client.is_multiple_of(2) {
                Kind::Send
            } else {
                Kind::Read
            };
        }
        let mut dice = random.random_range(0..100);
        for (kind, share) in self.shares() {
            if dice < *share {
                return *kind;
            }
            dice -= share;
        }
        Kind::Ping
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::SmallRng;
    use std::collections::BTreeMap;

    #[test]
    fn shares_are_of_a_hundred_and_come_as_often() {
        for mix in [Mix::Ping, Mix::Workload, Mix::Database] {
            let all: u32 = mix.shares().iter().map(|(_, share)| share).sum();
            assert_eq!(all, 100, "{mix:?}");
            let mut random = SmallRng::seed_from_u64(1);
            let mut seen: BTreeMap<Kind, u32> = BTreeMap::new();
            for _ in 0..100_000 {
                *seen.entry(mix.next(0, &mut random)).or_default() += 1;
            }
            for (kind, share) in mix.shares() {
                let found = seen[kind] / 100;
                assert!(found.abs_diff(share * 10) < 20, "{mix:?} {kind:?}: {found}");
            }
            assert_eq!(seen.len(), mix.shares().len());
        }
    }

    #[test]
    fn a_client_of_a_batch_sends_or_receives_and_nothing_else() {
        let mut random = SmallRng::seed_from_u64(1);
        for _ in 0..10 {
            assert_eq!(Mix::Batch(5).next(4, &mut random), Kind::Send);
            assert_eq!(Mix::Batch(5).next(7, &mut random), Kind::Read);
        }
    }
}
