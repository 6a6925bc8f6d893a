//! Statements that are there: the fold of their topic, by logs and lives.
//!
//! Statements stand in the compacted topic of the rows, under keys of their own. A key names the log and its
//! life; a statement about another life of a log is never found under it. Several nodes may write about one log:
//! the older statement is merely older, and two about one place are both true, though one of them may know better what was
//! removed from the log's beginning. So nothing is ever written over: a head's key has its place and its digest and a
//! part's its digest, and what has become superfluous is removed by name.
//!
//! Whole statements about the two newest places stay. A node that writes a third one, and has not seen what another one
//! has removed meanwhile, still leaves one behind that is whole.
//!
//! Values are kept of what those two name, and of what came behind them: at most three statements for each life of a
//! log that is there.

use crate::place::Offset;
use crate::rows::log_key;
use crate::statement::{Fields, Head, PartId, Statement, VERSION, digest};
use airmail_model::{Incarnation, LogId};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// First bytes of keys. Those of rows are lower.
const PART: u8 = 4;
const HEAD: u8 = 5;
/// Bytes of a part before its contents: version, life, place.
const PART_HEADER_BYTES: usize = 17;
/// Whole statements that stay.
const KEPT: usize = 2;

/// Name of a record of statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StatementKey {
    pub(crate) log: LogId,
    pub(crate) incarnation: Incarnation,
    pub(crate) what: Named,
}

/// Thing that a key names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// A head, by its place and its digest.
    Head(Offset, u64),
    Part(PartId),
}

impl StatementKey {
    pub(crate) fn encode(&self) -> Bytes {
        let kind = match self.what {
            Named::Head(..) => HEAD,
            Named::Part(_) => PART,
        };
        let mut key = vec![kind];
        key.extend(log_key(self.log));
        key.extend(self.incarnation.0.to_be_bytes());
        match self.what {
            Named::Head(place, digest) => {
                key.extend(place.0.to_be_bytes());
                key.extend(digest.to_be_bytes());
            }
            Named::Part(id) => id.encode(&mut key),
        }
        key.into()
    }

    /// Reads a key; `None` for what names something else.
    pub(crate) fn decode(key: &[u8]) -> Option<StatementKey> {
        let mut fields = Fields(key);
        let kind = fields.u8()?;
        let log = fields.log()?;
        let incarnation = Incarnation(fields.u64()?);
        let what = match kind {
            HEAD => Named::Head(Offset(fields.u64()?), fields.u64()?),
            PART => Named::Part(PartId::decode(&mut fields)?),
            _ => return None,
        };
        fields.0.is_empty().then_some(StatementKey {
            log,
            incarnation,
            what,
        })
    }
}

/// A part's value: which life and place it is of, and its bytes.
pub(crate) fn part_value(incarnation: Incarnation, place: Offset, bytes: &[u8]) -> Bytes {
    let mut value = Vec::with_capacity(PART_HEADER_BYTES + bytes.len());
    value.push(VERSION);
    value.extend(incarnation.0.to_be_bytes());
    value.extend(place.0.to_be_bytes());
    value.extend(bytes);
    value.into()
}

/// Reads a part's value; `None` for one of another version or life.
fn read_part(incarnation: Incarnation, value: &Bytes) -> Option<Part> {
    let mut fields = Fields(value);
    let is_known = fields.u8()? == VERSION && fields.u64()? == incarnation.0;
    let place = Offset(fields.u64()?);
    let value = Some(value.slice(PART_HEADER_BYTES..));
    is_known.then_some(Part { place, value })
}

#[derive(Clone, Debug)]
struct Part {
    /// The place of the statement that it was written for.
    place: Offset,
    /// `None`: superfluous.
    value: Option<Bytes>,
}

/// Statements about one life of a log.
#[derive(Clone, Debug, Default)]
struct Stated {
    heads: BTreeMap<(Offset, u64), Head>,
    parts: BTreeMap<PartId, Part>,
}

impl Stated {
    fn value(&self, id: &PartId) -> Option<&Bytes> {
        self.parts.get(id)?.value.as_ref()
    }

    /// Whole statements, the newest first.
    fn whole(&self) -> impl Iterator<Item = &Head> {
        let is_whole = |head: &&Head| head.parts.iter().all(|id| self.value(id).is_some());
        self.heads.values().rev().filter(is_whole)
    }

    /// Names of all that has become superfluous.
    fn superfluous(&self) -> Vec<Named> {
        let mut places: Vec<Offset> = self.whole().map(|head| head.next).collect();
        places.dedup();
        let Some(oldest) = places.get(KEPT - 1).copied() else {
            // Input: a log of which there are no more statements than stay.
            return Vec::new();
        };
        let kept = self.heads.range((oldest, 0)..);
        let named: BTreeSet<PartId> = kept.flat_map(|(_, head)| &head.parts).copied().collect();
        let heads = self.heads.range(..(oldest, 0));
        let heads = heads.map(|((place, digest), _)| Named::Head(*place, *digest));
        let is_over = |(id, part): &(&PartId, &Part)| part.place <= oldest && !named.contains(id);
        let parts = self.parts.iter().filter(is_over);
        heads.chain(parts.map(|(id, _)| Named::Part(*id))).collect()
    }

    /// Lets go of the bytes of what is superfluous.
    fn shrink(&mut self) {
        for name in self.superfluous() {
            if let Named::Part(id) = name
                && let Some(part) = self.parts.get_mut(&id)
            {
                part.value = None;
            }
        }
    }
}

/// Statements about all logs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Statements {
    logs: BTreeMap<LogId, BTreeMap<Incarnation, Stated>>,
}

impl Statements {
    /// Takes the next record of the topic. The place of a statement that is whole by it.
    pub(crate) fn take(&mut self, key: &StatementKey, value: Option<&Bytes>) -> Option<Offset> {
        match (key.what, value) {
            (Named::Head(place, of), Some(value)) => {
                let head = Head::decode(value)?;
                if head.next != place || digest(value) != of {
                    return None;
                }
                let stated = self.of(key);
                stated.heads.insert((place, of), head);
                stated.shrink();
                let newest = stated.whole().next().map(|head| head.next);
                return newest.filter(|newest| *newest == place);
            }
            (Named::Part(id), Some(value)) => {
                let part = read_part(key.incarnation, value)?;
                self.of(key).parts.insert(id, part);
            }
            (Named::Head(place, of), None) => {
                self.of(key).heads.remove(&(place, of));
            }
            (Named::Part(id), None) => {
                self.of(key).parts.remove(&id);
            }
        }
        if let Some(lives) = self.logs.get_mut(&key.log) {
            lives.retain(|_, stated| !stated.heads.is_empty() || !stated.parts.is_empty());
            if lives.is_empty() {
                self.logs.remove(&key.log);
            }
        }
        None
    }

    fn of(&mut self, key: &StatementKey) -> &mut Stated {
        let lives = self.logs.entry(key.log).or_default();
        lives.entry(key.incarnation).or_default()
    }

    /// The whole statements about this life of a log, the newest first.
    pub(crate) fn statements(
        &self,
        log: LogId,
        incarnation: Incarnation,
    ) -> impl Iterator<Item = Statement> {
        let stated = self.logs.get(&log).and_then(|of| of.get(&incarnation));
        stated.into_iter().flat_map(|stated| {
            stated.whole().map(|head| Statement {
                head: head.clone(),
                parts: {
                    let parts = head.parts.iter();
                    let values = parts.filter_map(|id| Some((*id, stated.value(id)?.clone())));
                    values.collect()
                },
            })
        })
    }

    /// The place of the newest whole statement about this life of a log.
    pub(crate) fn place(&self, log: LogId, incarnation: Incarnation) -> Option<Offset> {
        let stated = self.logs.get(&log)?.get(&incarnation)?;
        stated.whole().next().map(|head| head.next)
    }

    /// Whether a part is there.
    pub(crate) fn has(&self, log: LogId, incarnation: Incarnation, id: &PartId) -> bool {
        let stated = self.logs.get(&log).and_then(|of| of.get(&incarnation));
        stated.is_some_and(|stated| stated.value(id).is_some())
    }

    /// Names of what has become superfluous about this life of a log.
    pub(crate) fn superfluous(&self, log: LogId, incarnation: Incarnation) -> Vec<StatementKey> {
        let stated = self.logs.get(&log).and_then(|of| of.get(&incarnation));
        let names = stated.map(Stated::superfluous).unwrap_or_default();
        let key = |what| StatementKey {
            log,
            incarnation,
            what,
        };
        names.into_iter().map(key).collect()
    }

    /// The lives of a log about which anything is there.
    pub(crate) fn lives(&self, log: LogId) -> Vec<Incarnation> {
        let lives = self.logs.get(&log).into_iter();
        lives.flat_map(BTreeMap::keys).copied().collect()
    }

    /// The logs about which anything is there.
    pub(crate) fn logs(&self) -> Vec<LogId> {
        self.logs.keys().copied().collect()
    }

    /// Names of everything about a life of a log.
    pub(crate) fn all(&self, log: LogId, incarnation: Incarnation) -> Vec<StatementKey> {
        let stated = self.logs.get(&log).and_then(|of| of.get(&incarnation));
        let names = stated.into_iter().flat_map(|stated| {
            let heads = stated
                .heads
                .keys()
                .map(|(place, of)| Named::Head(*place, *of));
            heads.chain(stated.parts.keys().map(|id| Named::Part(*id)))
        });
        let key = |what| StatementKey {
            log,
            incarnation,
            what,
        };
        names.map(key).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::StatementConfig;
    use crate::log::Scan;
    use crate::producers::RecordFacts;
    use airmail_model::batch::ProducerStamp;
    use airmail_model::{ProducerEpoch, ProducerId, ProducerSequence};

    const LIFE: Incarnation = Incarnation(7);

    fn key(what: Named) -> StatementKey {
        StatementKey {
            log: LogId::SYSTEM,
            incarnation: LIFE,
            what,
        }
    }

    /// A statement about a log with so many records of one producer.
    fn about(records: u64) -> Statement {
        let mut scan = Scan::new(Offset(0), &StatementConfig::default());
        for n in 0..records {
            scan.producers.take(&RecordFacts {
                offset: Offset(n),
                appended_ms: 0,
                sent_ms: 0,
                stamp: Some(ProducerStamp {
                    id: ProducerId(1),
                    epoch: ProducerEpoch(1),
                    sequence: ProducerSequence(n),
                }),
                messages: 1,
            });
            scan.newest.known_to(Offset(n + 1));
        }
        Statement::of(&scan)
    }

    fn take_parts(statements: &mut Statements, of: &Statement) {
        for (id, bytes) in &of.parts {
            let value = part_value(LIFE, of.head.next, bytes);
            statements.take(&key(Named::Part(*id)), Some(&value));
        }
    }

    fn take_head(statements: &mut Statements, of: &Statement) -> Option<Offset> {
        let value = of.head.encode();
        let head = key(Named::Head(of.head.next, digest(&value)));
        statements.take(&head, Some(&value))
    }

    #[test]
    fn a_key_is_read_as_it_was_written_and_is_no_row() {
        let part = *about(1).parts.keys().next().unwrap();
        for what in [Named::Head(Offset(5), 6), Named::Part(part)] {
            let bytes = key(what).encode();
            assert!(bytes.len() <= 64, "a key of the brokers");
            assert_eq!(StatementKey::decode(&bytes), Some(key(what)));
            assert_eq!(StatementKey::decode(&bytes[1..]), None);
            assert_eq!(crate::rows::Row::read(&bytes, &[1; 13]), None);
        }
    }

    #[test]
    fn a_statement_counts_when_its_head_and_all_its_parts_are_there() {
        let mut statements = Statements::default();
        let (one, two) = (about(1), about(2));
        take_parts(&mut statements, &one);
        assert_eq!(statements.place(LogId::SYSTEM, LIFE), None, "no head");
        assert_eq!(take_head(&mut statements, &one), Some(Offset(1)));
        assert_eq!(take_head(&mut statements, &two), None, "no parts");
        assert_eq!(statements.place(LogId::SYSTEM, LIFE), Some(Offset(1)));
        take_parts(&mut statements, &two);
        assert_eq!(statements.place(LogId::SYSTEM, LIFE), Some(Offset(2)));
        assert_eq!(statements.place(LogId::SYSTEM, Incarnation(8)), None);
    }

    #[test]
    fn two_whole_statements_stay_and_all_before_them_is_superfluous() {
        let mut statements = Statements::default();
        for records in 1..=4 {
            let statement = about(records);
            take_parts(&mut statements, &statement);
            take_head(&mut statements, &statement);
        }
        // Somebody has begun, and not come to an end.
        take_parts(&mut statements, &about(5));
        let names = statements.superfluous(LogId::SYSTEM, LIFE);
        let head = |n| Named::Head(Offset(n), digest(&about(n).head.encode()));
        let heads: Vec<Named> = [1, 2].map(head).to_vec();
        let parts = [1, 2].map(|n| Named::Part(*about(n).parts.keys().next().unwrap()));
        let found: Vec<Named> = names.iter().map(|key| key.what).collect();
        assert_eq!(found[..2], heads);
        assert!(parts.iter().all(|part| found.contains(part)) && found.len() == 4);
        for name in names {
            statements.take(&name, None);
        }
        assert_eq!(statements.statements(LogId::SYSTEM, LIFE).count(), 2);
        assert_eq!(statements.all(LogId::SYSTEM, LIFE).len(), 5);
        for name in statements.all(LogId::SYSTEM, LIFE) {
            statements.take(&name, None);
        }
        assert_eq!(statements.logs(), []);
    }
}
