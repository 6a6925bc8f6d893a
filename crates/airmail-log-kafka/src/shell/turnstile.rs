//! The turnstile: lets the first record of a partition through alone.
//!
//! Brokers keep a producer's records of a partition in their order, by their numbers: one whose predecessor is missing is
//! refused. But a broker that knows nothing of a producer takes any number, so that of several first records under way at
//! once a later one can be stored without an earlier. So until a producer's record is known to be stored in a partition,
//! one is under way there at most, and others wait here. A broker may forget a producer that it has not heard of for a day:
//! then it is first again.

use crate::brokers::{NewRecord, Partition, Token};
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// Time without a record after which a producer counts as unknown to a partition's leader.
const FORGOTTEN: Duration = Duration::from_secs(3600);

/// A record that waits.
pub(super) type Waiting = (Token, NewRecord);

/// A partition, as far as one producer's records are concerned.
#[derive(Debug)]
struct Standing {
    is_known: bool,
    /// The first record is under way.
    has_first: bool,
    used: Instant,
    waiting: VecDeque<Waiting>,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Turnstile {
    standings: BTreeMap<Partition, Standing>,
    /// First records that are under way.
    firsts: BTreeMap<Token, Partition>,
}

impl Turnstile {
    /// Takes note of a record that is to be sent. Given back if it may be sent now; else it waits.
    pub(super) fn enter(
        &mut self,
        token: Token,
        partition: &Partition,
        record: NewRecord,
        now: Instant,
    ) -> Option<NewRecord> {
        let Some(standing) = self.standings.get_mut(partition) else {
            // Input: the first record that there is of the partition.
            self.standings.insert(
                partition.clone(),
                Standing {
                    is_known: false,
                    has_first: true,
                    used: now,
                    waiting: VecDeque::new(),
                },
            );
            self.firsts.insert(token, partition.clone());
            return Some(record);
        };
        if standing.is_known && now.duration_since(standing.used) >= FORGOTTEN {
            standing.is_known = false;
        }
        standing.used = now;
        if standing.is_known {
            return Some(record);
        }
        if standing.has_first {
            standing.waiting.push_back((token, record));
            return None;
        }
        standing.has_first = true;
        self.firsts.insert(token, partition.clone());
        Some(record)
    }

    /// A record was not sent after all.
    pub(super) fn leave(&mut self, token: Token) {
        let partition = self.firsts.remove(&token);
        let standing = partition.and_then(|of| self.standings.get_mut(&of));
        if let Some(standing) = standing {
            standing.has_first = false;
        }
    }

    /// Takes note of a report. If it is a partition's first one, gives the records that have waited for it.
    pub(super) fn reported(
        &mut self,
        token: Token,
        is_stored: bool,
    ) -> Option<(Partition, VecDeque<Waiting>)> {
        if self.firsts.is_empty() {
            return None;
        }
        let partition = self.firsts.remove(&token)?;
        let standing = self.standings.get_mut(&partition)?;
        standing.has_first = false;
        standing.is_known = is_stored;
        let waiting = std::mem::take(&mut standing.waiting);
        Some((partition, waiting))
    }

    /// Whether records wait.
    pub(super) fn has_waiting(&self) -> bool {
        self.firsts.values().any(|partition| {
            let standing = self.standings.get(partition);
            standing.is_some_and(|standing| !standing.waiting.is_empty())
        })
    }

    /// Everything that waits; the producer is another from now on.
    pub(super) fn begin_anew(&mut self) -> Vec<Token> {
        let standings = std::mem::take(self).standings;
        let waiting = standings.into_values().flat_map(|of| of.waiting);
        let mut waiting: Vec<Token> = waiting.map(|(token, _)| token).collect();
        waiting.sort_unstable();
        waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::brokers::Topic;

    fn record() -> NewRecord {
        NewRecord {
            key: None,
            value: None,
            sent_ms: 0,
        }
    }

    fn partition(number: u16) -> Partition {
        Partition::new(&Topic::new("t"), number)
    }

    #[test]
    fn the_first_record_of_a_partition_goes_alone_and_those_behind_it_when_it_is_stored() {
        let mut turnstile = Turnstile::default();
        let now = crate::shell::clock::now();
        let enter = |turnstile: &mut Turnstile, token, number| {
            let partition = partition(number);
            turnstile
                .enter(Token(token), &partition, record(), now)
                .is_some()
        };
        assert!(enter(&mut turnstile, 1, 0));
        assert!(!enter(&mut turnstile, 2, 0));
        assert!(enter(&mut turnstile, 3, 1), "another partition");
        let (of, waiting) = turnstile.reported(Token(1), true).unwrap();
        assert_eq!((of, waiting.len()), (partition(0), 1));
        assert!(enter(&mut turnstile, 4, 0) && enter(&mut turnstile, 5, 0));
        assert!(turnstile.reported(Token(4), true).is_none());
        // Another partition's first one is not stored: nothing is known of the producer there.
        assert!(!enter(&mut turnstile, 6, 1));
        assert_eq!(turnstile.reported(Token(3), false).unwrap().1.len(), 1);
        assert!(enter(&mut turnstile, 7, 1));
        assert!(!enter(&mut turnstile, 8, 1));
        assert_eq!(turnstile.begin_anew(), [Token(8)]);
        assert!(enter(&mut turnstile, 9, 0) && !enter(&mut turnstile, 10, 0));
        turnstile.leave(Token(9));
        assert_eq!(turnstile.begin_anew(), [Token(10)]);
    }

    #[test]
    fn who_has_sent_nothing_for_long_is_first_again() {
        let mut turnstile = Turnstile::default();
        let begun = crate::shell::clock::now();
        let of = partition(0);
        assert!(turnstile.enter(Token(1), &of, record(), begun).is_some());
        turnstile.reported(Token(1), true);
        let soon = begun + FORGOTTEN / 2;
        assert!(turnstile.enter(Token(2), &of, record(), soon).is_some());
        let late = soon + FORGOTTEN;
        assert!(turnstile.enter(Token(3), &of, record(), late).is_some());
        assert!(turnstile.enter(Token(4), &of, record(), late).is_none());
    }
}
