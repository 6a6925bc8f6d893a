//! One reader of one log, and its deliveries over all its lives.

use super::StorageRun;
use super::upheaval::SEALED_FOR;
use crate::batching::topic_name;
use crate::census::Kind;
use crate::invariants::bounded::Budget;
use crate::invariants::complete::Given;
use crate::invariants::gaps::Told;
use crate::invariants::kept::Kept;
use crate::invariants::order::Order;
use crate::invariants::tiling::Tiling;
use crate::invariants::{Checked, Violation, complete, durable_first, gaps};
use crate::message::identify;
use airmail_log::{Call, GapWhy, LogStorage, ReaderId, Scope, ScopeFilter, Stored};
use airmail_model::{AppendTime, Extent, MapEpoch, Sequence, TopicHash};

const READERS_MAX: usize = 6;

/// A reader that is open, or would be if the process ran.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    pub(super) log: usize,
    pub(super) topic: Option<TopicHash>,
    from: Sequence,
    pub(super) until: Option<Sequence>,
    pub(super) tiling: Tiling,
    order: Order,
    given: Given,
    budget: Budget,
    base: Option<Sequence>,
    appended: AppendTime,
    pub(super) at_tail: bool,
    pub(super) stopping: bool,
    /// Its log has been deleted: what still comes says nothing.
    pub(super) orphan: bool,
}

impl Reader {
    /// Forgets the time of its last batch: with records their times are lost, too, and the clock may have
    /// been set back.
    pub(super) fn forget_time(&mut self) {
        self.appended = AppendTime(i64::MIN);
    }

    pub(super) fn new(log: usize, topic: Option<TopicHash>, from: Sequence) -> Reader {
        Reader {
            log,
            topic,
            from,
            until: None,
            tiling: Tiling::new(from),
            order: Order::default(),
            given: Given::default(),
            budget: Budget::default(),
            base: None,
            appended: AppendTime(i64::MIN),
            at_tail: false,
            stopping: false,
            orphan: false,
        }
    }
}

impl StorageRun {
    /// Opens a reader somewhere.
    pub(super) fn open_reader(&mut self) {
        let log = self.chance.index(self.logs.len());
        if self.readers.len() >= READERS_MAX || !self.logs[log].opened {
            return;
        }
        let namespace = self.logs[log].log.namespace;
        let topic = self.chance.coin();
        let topic = topic.then(|| topic_name(self.chance.below(7)).hash(namespace));
        self.evidence
            .add(Kind::TopicRead, u64::from(topic.is_some()));
        let from = Sequence(self.chance.between(1, self.logs[log].told.0 + 3));
        let mut reader = Reader::new(log, topic, from);
        let length = self.chance.below(50);
        reader.until = self.chance.chance(200_000).then_some(from.plus(length));
        self.start_reader(reader);
    }

    /// Asks the storage for the numbers that a reader still lacks.
    pub(super) fn start_reader(&mut self, mut reader: Reader) {
        self.last_reader += 1;
        let id = ReaderId(self.last_reader);
        let credit = u32::try_from(self.chance.below(3_000)).unwrap_or(0);
        reader.budget = Budget::new(credit);
        reader.tiling = Tiling::new(reader.tiling.next);
        reader.at_tail = false;
        let filter = reader.topic.map_or(ScopeFilter::All, ScopeFilter::Topic);
        let scope = Scope {
            filter,
            until: reader.until,
            ..Scope::default()
        };
        let log = self.logs[reader.log].log;
        if let Some(storage) = &mut self.storage {
            storage.submit(Call::Read {
                r: id,
                log,
                from: reader.tiling.next,
                scope: Box::new(scope),
                credit,
            });
        }
        self.readers.insert(id, reader);
    }

    /// Gives a reader credit.
    pub(super) fn feed_reader(&mut self) {
        let ids: Vec<ReaderId> = self.readers.keys().copied().collect();
        let Some(id) = self.chance.pick(&ids).copied() else {
            return;
        };
        let bytes = u32::try_from(self.chance.below(20_000)).unwrap_or(0);
        self.grant(id, bytes);
    }

    pub(super) fn grant(&mut self, id: ReaderId, bytes: u32) {
        if let (Some(storage), Some(reader)) = (&mut self.storage, self.readers.get_mut(&id)) {
            reader.budget.grant(bytes);
            storage.submit(Call::Credit { r: id, bytes });
        }
    }

    /// Ends a reader.
    pub(super) fn stop_reader(&mut self) {
        let ids: Vec<ReaderId> = self.readers.keys().copied().collect();
        let id = self.chance.pick(&ids).copied();
        if let Some(reader) = id.and_then(|id| self.readers.get_mut(&id))
            && let (Some(storage), Some(id), false) = (&mut self.storage, id, reader.stopping)
        {
            reader.stopping = true;
            storage.submit(Call::Stop { r: id });
        }
    }

    pub(super) fn batch(&mut self, id: ReaderId, stored: &Stored) -> Checked {
        let Some(reader) = self.readers.get_mut(&id) else {
            return unknown(id);
        };
        if reader.orphan {
            return Ok(());
        }
        let state = &mut self.logs[reader.log];
        let who = format!(
            "reader {} of {} (topic {:?})",
            id.0, state.log, reader.topic
        );
        let Extent { first, last } = stored.extent;
        reader.tiling.take(first, last, &who)?;
        reader.at_tail = false;
        // The pieces of a damaged batch overdraw together what the whole would.
        if reader.base.replace(stored.base) == Some(stored.base) {
            self.evidence.count(Kind::BatchSplit);
        } else {
            let bytes = stored.batch.bytes().len() as u64;
            reader.budget.spend_alone(bytes, &who)?;
        }
        state.told = state.told.max(stored.extent.next());
        if stored.appended < reader.appended {
            let detail = format!("{who}: {} after {}", stored.appended, reader.appended);
            return Err(Violation::new("G2 append time never falls", detail));
        }
        reader.appended = stored.appended;
        for record in stored.batch.iter() {
            let number = stored.base.plus(record.index.into());
            if !stored.extent.contains(number) {
                continue;
            }
            let Some((message, _)) = identify(record.payload) else {
                let detail = format!("{who}: number {number} is not what was published");
                return Err(Violation::new("G7 damage is never served", detail));
            };
            let durability = self
                .evidence
                .ledger
                .get(message)
                .map(|entry| entry.durability);
            let durability = durability
                .unwrap_or_default()
                .min(state.spec.durability.synced);
            durable_first::check(&self.weather.machine, message, durability, "delivered")?;
            let place = (state.log, state.incarnation, number);
            self.evidence
                .ledger
                .numbers
                .see(place, message, "delivered")?;
            if number < reader.from || reader.given.messages.contains(&message) {
                continue;
            }
            reader
                .order
                .see(&self.evidence.ledger, message, number, &who)?;
            reader.given.messages.insert(message);
        }
        Ok(())
    }

    pub(super) fn gap(&mut self, id: ReaderId, extent: Extent, why: GapWhy) -> Checked {
        let Some(reader) = self.readers.get_mut(&id) else {
            return unknown(id);
        };
        if reader.orphan {
            return Ok(());
        }
        let state = &mut self.logs[reader.log];
        let who = format!("reader {} of {}", id.0, state.log);
        self.evidence.count(match why {
            GapWhy::Unused => Kind::GapUnused,
            GapWhy::Retention => Kind::GapRetention,
            GapWhy::Loss => Kind::GapLoss,
        });
        reader.tiling.take(extent.first, extent.last, &who)?;
        reader.at_tail = false;
        state.told = state.told.max(extent.next());
        if why != GapWhy::Unused {
            reader.given.missing.push(extent);
        }
        if why == GapWhy::Loss {
            reader.forget_time();
        }
        let told = Told {
            log: state.log,
            subject: reader.topic.into(),
            extent,
            why,
            retained: state.may_shrink(),
        };
        gaps::check(&self.evidence.ledger, &told, &who)?;
        if why != GapWhy::Retention || state.changed {
            return Ok(());
        }
        let kept = Kept {
            log: state.log,
            retention: state.spec.retention,
            trimmed: state.trimmed,
            now: self.latest.wall,
        };
        kept.check(&self.evidence.ledger, extent, &who)
    }

    pub(super) fn tail(&mut self, id: ReaderId, next: Sequence) -> Checked {
        let Some(reader) = self.readers.get_mut(&id) else {
            return unknown(id);
        };
        if reader.orphan {
            return Ok(());
        }
        // A reader that began beyond the end is told of the end, not of its own place.
        if next != reader.tiling.next && reader.tiling.next <= self.logs[reader.log].told {
            let detail = format!(
                "reader {} stands at {}, told {next}",
                id.0, reader.tiling.next
            );
            return Err(Violation::new(
                "G2 the tail is where the reader stands",
                detail,
            ));
        }
        reader.at_tail = true;
        Ok(())
    }

    /// A reader has come to the end of a sealed log.
    pub(super) fn seal_told(&mut self, id: ReaderId, last: Sequence, next: MapEpoch) -> Checked {
        let Some(reader) = self.readers.get_mut(&id) else {
            return unknown(id);
        };
        let state = &self.logs[reader.log];
        let here = last.plus(1) == reader.tiling.next || reader.tiling.next > state.told;
        if !reader.orphan && (state.seal.is_none() || next != SEALED_FOR || !here) {
            let detail = format!("reader {} was told of a seal at {last} for {next}", id.0);
            return Err(Violation::new("contract", detail));
        }
        self.evidence.count(Kind::SealTold);
        reader.at_tail = true;
        Ok(())
    }

    /// Ends a reader: its deliveries must have been complete.
    pub(super) fn ended(&mut self, id: ReaderId, failed: bool) -> Checked {
        let Some(reader) = self.readers.remove(&id) else {
            return unknown(id);
        };
        if reader.orphan {
            return Ok(());
        }
        if failed && !reader.stopping {
            self.start_reader(reader);
            return Ok(());
        }
        if !reader.stopping && reader.until.is_none_or(|until| reader.tiling.next < until) {
            let detail = format!("reader {} ended at {}", id.0, reader.tiling.next);
            return Err(Violation::new("contract", detail));
        }
        self.complete(id, &reader)
    }

    pub(super) fn complete(&self, id: ReaderId, reader: &Reader) -> Checked {
        complete::check(
            &self.evidence.ledger,
            self.logs[reader.log].log,
            reader.topic.into(),
            (reader.from, reader.tiling.next),
            &reader.given,
            &format!("reader {}", id.0),
        )
    }
}

fn unknown(id: ReaderId) -> Checked {
    Err(Violation::new(
        "contract",
        format!("something was told to reader {} after its end", id.0),
    ))
}
