//! One subscription from outside: where it began, and what it has been given.

use super::Space;
use crate::invariants::complete::Given;
use crate::invariants::gaps::Told;
use crate::invariants::order::Order;
use crate::invariants::{Checked, Violation, gaps};
use crate::ledger::Ledger;
use crate::message::{MessageId, identify};
use airmail_client::core::{Arrived, GapSeen};
use airmail_log::GapWhy;
use airmail_model::frame::GapReason;
use airmail_model::{AppendTime, Incarnation, LogId, Position, Sequence, TopicHash};

/// Where a subscription's own range begins, as far as that is known.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum From {
    /// When its first status comes.
    Unknown,
    Number(Sequence),
    Time(AppendTime),
}

/// One subscription.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    pub(super) space: usize,
    pub(super) topic: TopicHash,
    pub(super) log: LogId,
    pub(super) from: From,
    order: Order,
    pub(super) given: Given,
    life: Option<Incarnation>,
    /// Where its first status put it, if what was before may have been removed.
    pub(super) begun: Option<Sequence>,
    pub(super) position: Option<Position>,
}

impl Watch {
    pub(super) fn new(space: usize, topic: TopicHash, log: LogId, from: From) -> Watch {
        Watch {
            space,
            topic,
            log,
            from,
            order: Order::default(),
            given: Given::default(),
            life: None,
            begun: None,
            position: None,
        }
    }

    /// The first number that it must account for. `None`: not known.
    pub(super) fn first(&self, ledger: &Ledger) -> Option<Sequence> {
        let time = match self.from {
            From::Unknown => return None,
            From::Number(number) => return Some(number.max(self.begun.unwrap_or(number))),
            From::Time(time) => time,
        };
        let mut acked = ledger.acked(self.log, Sequence(0), Sequence::MAX);
        let first =
            acked.find(|(_, _, entry)| entry.acked.is_some_and(|acked| acked.appended >= time));
        let first = first.map_or(Sequence::MAX, |(sequence, ..)| sequence);
        Some(first.max(self.begun.unwrap_or(first)))
    }

    /// Whether it has been told of all that is acknowledged, when it stands at `next`. One that
    /// begins at a time may wait, where the clock was set back, before what is not its own.
    pub(super) fn is_done(&self, next: Sequence, ledger: &Ledger) -> bool {
        let mut left = ledger.acked(self.log, next, Sequence::MAX);
        match self.from {
            // What was appended before a time that was still to come is not waited for.
            From::Time(time) => left.all(|(_, _, entry)| {
                let early = entry.acked.is_some_and(|acked| acked.appended < time);
                early || entry.topic != self.topic
            }),
            _ => next > ledger.last_acked(self.log),
        }
    }

    /// Messages have come. `check` says whether they may.
    pub(super) fn messages(
        &mut self,
        arrived: &Arrived,
        ledger: &mut Ledger,
        mut check: impl FnMut(&mut Ledger, MessageId, Sequence) -> Checked,
        who: &str,
    ) -> Checked {
        self.lives(arrived.incarnation, who)?;
        for (number, record) in arrived.iter() {
            let Some((id, _)) = identify(record.payload) else {
                let detail = format!("{who}: number {number} is not what was published");
                return Err(Violation::new("G7 damage is never served", detail));
            };
            let early = match self.from {
                From::Unknown => true,
                From::Number(from) => number < from,
                From::Time(time) => arrived.appended < time,
            };
            let stranger = ledger
                .get(id)
                .is_none_or(|entry| entry.topic != self.topic || entry.log != arrived.log);
            if early || stranger {
                let detail = format!(
                    "{who}: number {number} (message {}) from {:?}",
                    id.0, self.from
                );
                return Err(Violation::new("G2 only what was asked for", detail));
            }
            check(ledger, id, number)?;
            self.order.see(ledger, id, number, who)?;
            self.given.messages.insert(id);
        }
        Ok(())
    }

    /// Something will not come.
    pub(super) fn gap(
        &mut self,
        gap: &GapSeen,
        ledger: &Ledger,
        spaces: &[Space],
        who: &str,
    ) -> Checked {
        self.lives(gap.incarnation, who)?;
        self.given.missing.push(gap.extent);
        let told = Told {
            log: gap.log,
            topic: Some(self.topic),
            extent: gap.extent,
            why: match gap.why {
                GapReason::Loss => GapWhy::Loss,
                GapReason::Unused => GapWhy::Unused,
                GapReason::Retention | GapReason::Expiry => GapWhy::Retention,
            },
            retained: spaces[self.space].shrinks,
        };
        gaps::check(ledger, &told, who)
    }

    fn lives(&mut self, incarnation: Incarnation, who: &str) -> Checked {
        let life = *self.life.get_or_insert(incarnation);
        if life == incarnation {
            return Ok(());
        }
        let detail = format!("{who}: life {incarnation} after {life}");
        Err(Violation::new("G4 a durable log keeps its life", detail))
    }
}
