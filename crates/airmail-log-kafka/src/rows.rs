//! Rows about logs, in the compacted topic `<prefix>.state`: what a restart has to know and Kafka has no place for.
//!
//! A row is a true statement that never becomes false: *a spec of this place was taken over*, *the log was deleted as of
//! this place*, *this life was begun*, *this loss was accepted*. So any number of nodes may write them, and the fold is a maximum: a node that has
//! slept and writes an older row changes nothing. For that, the place is part of the key; whoever writes a higher row
//! removes the lower one.

use crate::place::Offset;
use airmail_model::{Lane, LogId, LogIndex, MapEpoch, NamespaceId, Sequence};
use bytes::Bytes;
use std::collections::BTreeMap;

/// Bytes of a log in a key.
const LOG_BYTES: usize = 7;
/// Bytes of a key: kind, log, place.
const KEY_BYTES: usize = 16;
/// Bytes of a value: version, epoch, nonce.
const VALUE_BYTES: usize = 13;
/// The form of rows.
const VERSION: u8 = 1;

/// Statement of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Statement {
    /// A spec of this place, with this map, was taken over.
    Spec { as_of: Sequence, epoch: MapEpoch },
    /// The log was deleted as of this place.
    Deleted { as_of: Sequence },
    /// Lives, so many, were begun in the topic with this nonce, beside the first.
    Lives { count: u32, nonce: u64 },
    /// Losses of its end, so many, were accepted in the topic with this nonce, the last one at this offset.
    Cuts { count: u32, nonce: u64, at: Offset },
}

/// A statement about a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) log: LogId,
    pub(crate) statement: Statement,
}

/// A log in a key.
pub(crate) fn log_key(log: LogId) -> [u8; LOG_BYTES] {
    let [n0, n1, n2, n3] = log.namespace.0.to_be_bytes();
    let [i0, i1] = log.index.0.to_be_bytes();
    [n0, n1, n2, n3, log.lane as u8, i0, i1]
}

/// The log in a key.
pub(crate) fn read_log([n0, n1, n2, n3, lane, i0, i1]: [u8; LOG_BYTES]) -> Option<LogId> {
    Some(LogId {
        namespace: NamespaceId(u32::from_be_bytes([n0, n1, n2, n3])),
        lane: Lane::from_u8(lane)?,
        index: LogIndex(u16::from_be_bytes([i0, i1])),
    })
}

impl Row {
    pub(crate) fn key(&self) -> Bytes {
        let (kind, place) = match self.statement {
            Statement::Spec { as_of, .. } => (1, as_of.0),
            Statement::Deleted { as_of } => (2, as_of.0),
            Statement::Lives { count, .. } => (3, count.into()),
            Statement::Cuts { count, .. } => (4, count.into()),
        };
        let mut key = vec![kind];
        key.extend(log_key(self.log));
        key.extend(place.to_be_bytes());
        key.into()
    }

    pub(crate) fn value(&self) -> Bytes {
        let (epoch, nonce) = match self.statement {
            Statement::Spec { epoch, .. } => (epoch.0, 0),
            Statement::Deleted { .. } => (0, 0),
            Statement::Lives { nonce, .. } | Statement::Cuts { nonce, .. } => (0, nonce),
        };
        let mut value = vec![VERSION];
        value.extend(epoch.to_be_bytes());
        value.extend(nonce.to_be_bytes());
        if let Statement::Cuts { at, .. } = self.statement {
            value.extend(at.0.to_be_bytes());
        }
        value.into()
    }

    /// Reads a row; `None` for one of another version.
    pub(crate) fn read(key: &[u8], value: &[u8]) -> Option<Row> {
        let key: &[u8; KEY_BYTES] = key.try_into().ok()?;
        let (value, rest) = value.split_first_chunk::<VALUE_BYTES>()?;
        let [kind, l0, l1, l2, l3, l4, l5, l6, place @ ..] = *key;
        let [version, e0, e1, e2, e3, nonce @ ..] = *value;
        if version != VERSION {
            return None;
        }
        let at = match (kind, <[u8; 8]>::try_from(rest)) {
            (4, Ok(at)) => Offset(u64::from_be_bytes(at)),
            (1..=3, _) if rest.is_empty() => Offset(0),
            _ => return None,
        };
        let place = u64::from_be_bytes(place);
        let as_of = Sequence(place);
        Some(Row {
            log: read_log([l0, l1, l2, l3, l4, l5, l6])?,
            statement: match kind {
                1 => Statement::Spec {
                    as_of,
                    epoch: MapEpoch(u32::from_be_bytes([e0, e1, e2, e3])),
                },
                2 => Statement::Deleted { as_of },
                3 => Statement::Lives {
                    count: u32::try_from(place).ok()?,
                    nonce: u64::from_be_bytes(nonce),
                },
                4 => Statement::Cuts {
                    count: u32::try_from(place).ok()?,
                    nonce: u64::from_be_bytes(nonce),
                    at,
                },
                _ => return None,
            },
        })
    }
}

/// All that the rows say of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogRows {
    /// Place and map of the last spec.
    pub(crate) spec: Option<(Sequence, MapEpoch)>,
    /// Place of the last deletion.
    pub(crate) deleted: Option<Sequence>,
    /// Count of lives, and the topic they are of.
    lives: Option<(u32, u64)>,
    /// Count of cuts, the topic they are of, and the offset of the last.
    cuts: Option<(u32, u64, Offset)>,
}

impl LogRows {
    /// Lives begun in a topic beside the first.
    pub(crate) fn lives(&self, nonce: u64) -> u32 {
        match self.lives {
            Some((count, of)) if of == nonce => count,
            _ => 0,
        }
    }

    /// Cuts in a topic, and where the last one was.
    pub(crate) fn cuts(&self, nonce: u64) -> (u32, Offset) {
        match self.cuts {
            Some((count, of, at)) if of == nonce => (count, at),
            _ => (0, Offset(0)),
        }
    }
}

/// The fold of all rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows {
    logs: BTreeMap<LogId, LogRows>,
}

impl Rows {
    pub(crate) fn of(&self, log: LogId) -> LogRows {
        self.logs.get(&log).copied().unwrap_or_default()
    }

    /// Takes a row. The one that it makes superfluous, if there is one.
    pub(crate) fn take(&mut self, row: Row) -> Option<Row> {
        let of = self.logs.entry(row.log).or_default();
        let before = match row.statement {
            Statement::Spec { as_of, epoch } => {
                let before = of.spec.filter(|spec| *spec < (as_of, epoch));
                of.spec = of.spec.max(Some((as_of, epoch)));
                let (as_of, epoch) = before.filter(|(before, _)| *before != as_of)?;
                Statement::Spec { as_of, epoch }
            }
            Statement::Deleted { as_of } => {
                let before = of.deleted.filter(|before| *before < as_of);
                of.deleted = of.deleted.max(Some(as_of));
                Statement::Deleted { as_of: before? }
            }
            Statement::Lives { count, nonce } => {
                let before = of.lives;
                if before.is_some_and(|(before, of)| of == nonce && before >= count) {
                    return None;
                }
                of.lives = Some((count, nonce));
                let (count, nonce) = before.filter(|(before, _)| *before != count)?;
                Statement::Lives { count, nonce }
            }
            Statement::Cuts { count, nonce, at } => {
                let before = of.cuts;
                if before.is_some_and(|(before, of, _)| of == nonce && before >= count) {
                    return None;
                }
                of.cuts = Some((count, nonce, at));
                let (count, nonce, at) = before.filter(|(before, ..)| *before != count)?;
                Statement::Cuts { count, nonce, at }
            }
        };
        Some(Row {
            log: row.log,
            statement: before,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Row> {
        let statement = [
            Statement::Spec {
                as_of: Sequence(7),
                epoch: MapEpoch(2),
            },
            Statement::Deleted { as_of: Sequence(9) },
            Statement::Lives {
                count: 3,
                nonce: 77,
            },
            Statement::Cuts {
                count: 2,
                nonce: 77,
                at: Offset(55),
            },
        ];
        statement
            .map(|statement| Row {
                log: LogId::SYSTEM,
                statement,
            })
            .to_vec()
    }

    #[test]
    fn a_row_is_read_as_it_was_written() {
        for row in rows() {
            assert_eq!(Row::read(&row.key(), &row.value()), Some(row));
            assert_eq!(Row::read(&row.key()[1..], &row.value()), None);
            let mut other = row.value().to_vec();
            other[0] = 2;
            assert_eq!(Row::read(&row.key(), &other), None, "another version");
        }
    }

    #[test]
    fn the_fold_does_not_depend_on_the_order_of_rows() {
        let spec = |as_of, epoch| Row {
            log: LogId::SYSTEM,
            statement: Statement::Spec {
                as_of: Sequence(as_of),
                epoch: MapEpoch(epoch),
            },
        };
        let rows = [spec(1, 1), spec(5, 2), spec(3, 1), spec(5, 3)];
        let mut folds = Vec::new();
        for first in 0..rows.len() {
            let mut fold = Rows::default();
            for n in 0..rows.len() {
                fold.take(rows[(first + n) % rows.len()]);
            }
            folds.push(fold.of(LogId::SYSTEM));
        }
        for fold in folds {
            assert_eq!(fold.spec, Some((Sequence(5), MapEpoch(3))));
        }
    }

    #[test]
    fn a_higher_row_makes_the_lower_one_superfluous() {
        let mut fold = Rows::default();
        for row in rows() {
            assert_eq!(fold.take(row), None);
            assert_eq!(fold.take(row), None);
        }
        let higher = Statement::Deleted {
            as_of: Sequence(10),
        };
        let before = fold.take(Row {
            log: LogId::SYSTEM,
            statement: higher,
        });
        assert_eq!(before, Some(rows()[1]));
        assert_eq!(fold.of(LogId::SYSTEM).lives(77), 3);
        assert_eq!(fold.of(LogId::SYSTEM).lives(78), 0);
    }
}
