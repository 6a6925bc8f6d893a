//! Lines: the logs that have a topic one after the other, as one row of places.
//!
//! A namespace that is moved gets other logs, whose numbers begin anew, and each of its topics goes on in the log at the
//! same place of the next map. The oracle and the invariants know a line by its first log, and a place in it by a number
//! that rises over all of its logs: so what they say of a log's order holds over moves as well. Only what talks to the
//! node names the logs themselves.
//!
//! In a namespace that is never moved a line is a log, and a place is a number.

use airmail_model::{Extent, LogId, LogIndex, NamespaceId, Sequence};
use std::collections::BTreeMap;

/// Bits of a place that are the number in its log.
const NUMBER_BITS: u32 = 40;

/// Namespaces that are moved, each with the number of logs of its maps, which stays.
#[derive(Clone, Debug, Default)]
pub struct Lines(BTreeMap<NamespaceId, u16>);

impl Lines {
    /// A namespace may be moved from here on.
    pub fn add(&mut self, namespace: NamespaceId, logs: u16) {
        self.0.insert(namespace, logs.max(1));
    }

    /// Whether a line may be of several logs.
    #[must_use]
    pub fn may_move(&self, line: LogId) -> bool {
        self.0.contains_key(&line.namespace)
    }

    /// The line of a log.
    #[must_use]
    pub fn of(&self, log: LogId) -> LogId {
        match self.0.get(&log.namespace) {
            Some(logs) => LogId {
                index: LogIndex(log.index.0 % logs),
                ..log
            },
            None => log,
        }
    }

    /// Number of moves after which a log is made.
    #[must_use]
    pub fn moves_before(&self, log: LogId) -> u16 {
        let logs = self.0.get(&log.namespace);
        logs.map_or(0, |logs| log.index.0 / logs)
    }

    /// The logs of a line, up to that after so many moves.
    pub fn logs(&self, line: LogId, moves: u16) -> impl Iterator<Item = LogId> + use<> {
        let logs = self.0.get(&line.namespace).copied().unwrap_or(0);
        (0..=moves).map(move |nth| LogId {
            index: LogIndex(line.index.0 + nth * logs),
            ..line
        })
    }

    /// The place in its line of a log's number.
    #[must_use]
    pub fn place(&self, log: LogId, number: Sequence) -> Sequence {
        // Beyond every number there is no place, in no log.
        if number.0 >> NUMBER_BITS != 0 {
            return number;
        }
        Sequence(u64::from(self.moves_before(log)) << NUMBER_BITS | number.0)
    }

    /// The first place behind all of a log.
    #[must_use]
    pub fn after(&self, log: LogId) -> Sequence {
        Sequence((u64::from(self.moves_before(log)) + 1) << NUMBER_BITS)
    }

    /// The places of a log's numbers.
    #[must_use]
    pub fn places(&self, log: LogId, numbers: Extent) -> Extent {
        Extent {
            first: self.place(log, numbers.first),
            last: self.place(log, numbers.last),
        }
    }
}

/// The number in its log of a place in a line.
#[must_use]
pub const fn number_of(place: Sequence) -> Sequence {
    Sequence(place.0 & ((1 << NUMBER_BITS) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_model::Lane;

    fn log(index: u16) -> LogId {
        LogId {
            namespace: NamespaceId(7),
            lane: Lane::Normal,
            index: LogIndex(index),
        }
    }

    #[test]
    fn what_is_in_a_later_log_of_a_line_is_behind_all_of_an_earlier_one() {
        let mut lines = Lines::default();
        assert_eq!(lines.of(log(4)), log(4), "it is not moved");
        assert_eq!(lines.place(log(4), Sequence(9)), Sequence(9));
        lines.add(NamespaceId(7), 3);
        assert_eq!(lines.of(log(4)), log(1));
        assert_eq!(
            lines.logs(log(1), 2).collect::<Vec<_>>(),
            [log(1), log(4), log(7)]
        );
        let (early, late) = (
            lines.place(log(1), Sequence(1_000_000)),
            lines.place(log(4), Sequence::FIRST),
        );
        assert!(early < late, "{early} and {late}");
        assert!(early < lines.after(log(1)) && lines.after(log(1)) < late);
        assert_eq!(number_of(late), Sequence::FIRST);
        assert_eq!(lines.place(log(4), Sequence::MAX), Sequence::MAX);
    }
}
