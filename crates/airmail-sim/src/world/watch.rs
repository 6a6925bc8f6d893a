//! One subscription from outside: its start, and its deliveries.

use super::Space;
use crate::census::Kind;
use crate::invariants::complete::{self, Given};
use crate::invariants::ends::Asked;
use crate::invariants::gaps::Told;
use crate::invariants::order::Order;
use crate::invariants::selections::Subject;
use crate::invariants::{Checked, Violation, audience, filters, gaps};
use crate::ledger::{Entry, Ledger};
use crate::message::{MessageId, identify};
use airmail_client::core::{ExpiredSeen, GapSeen, ReceivedBatch, SubscriptionKey};
use airmail_log::GapWhy;
use airmail_model::frame::{GapReason, State};
use airmail_model::{AppendTime, Extent, Incarnation, Lane, LogId, Position, RoleId, Sequence};

/// Where a subscription's own range begins, as far as that is known.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum From {
    /// When its first status comes.
    Unknown,
    /// A number, and its place in the log that a status has named. Until something has come it is asked for again after
    /// a break, and is counted in the log that takes publishes then.
    Wish(Sequence, Option<Sequence>),
    /// A place in the line.
    Number(Sequence),
    Time(AppendTime),
}

/// One subscription.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    pub(super) space: usize,
    /// Topics that it reads.
    pub(super) subject: Subject,
    /// The line of its topics.
    pub(super) log: LogId,
    /// The log of the line that it was last told to be in.
    pub(super) at: LogId,
    is_live: bool,
    pub(super) from: From,
    order: Order,
    pub(super) given: Given,
    /// It begins, or is complete, at the end that the log has when it is asked for.
    pub(super) end: Option<Asked>,
    /// It is there that it begins.
    pub(super) begins_at_end: bool,
    /// It is in lane high, of which some gateway had not heard when it was asked for.
    pub(super) is_early: bool,
    /// The highest number that had been acknowledged when it was asked for.
    pub(super) floor: Sequence,
    /// The life of a log that it is in.
    life: Option<(LogId, Incarnation)>,
    /// Where its first status put it, if what was before may have been removed.
    pub(super) begun: Option<Sequence>,
    pub(super) position: Option<Position>,
    /// The files have been set back, and the node has not yet said where it stands.
    pub(super) away: bool,
    /// It got something before the files were set back, and has not been told of a loss since.
    old: bool,
    /// It has been told of a loss, and reads again.
    again: bool,
}

impl Watch {
    pub(super) fn new(
        space: usize,
        subject: Subject,
        log: LogId,
        from: From,
        roles: Vec<RoleId>,
    ) -> Watch {
        let not_before = match from {
            From::Time(time) => Some(time),
            _ => None,
        };
        let given = Given {
            not_before,
            roles: Some(roles),
            ..Given::default()
        };
        Watch {
            space,
            subject,
            log,
            at: log,
            is_live: false,
            from,
            order: Order::default(),
            given,
            end: None,
            begins_at_end: false,
            is_early: false,
            floor: Sequence(0),
            life: None,
            begun: None,
            position: None,
            away: false,
            old: false,
            again: false,
        }
    }

    /// A history until a time has ended before `next`: what had been acknowledged when it was asked for and is of before
    /// that time was given, wherever it stands.
    pub(super) fn check_ended(&self, next: Sequence, ledger: &Ledger, who: &str) -> Checked {
        let (Some(from), Some(_)) = (self.first(ledger), self.given.not_after) else {
            return Ok(());
        };
        // It may have ended where an old leader said that the log ends.
        if ledger.places.is_none() || ledger.old_ends {
            return Ok(());
        }
        let range = (from.max(next), self.floor.plus(1));
        complete::check(ledger, self.log, self.subject, range, &self.given, who)
    }

    /// The files were set back to an older copy.
    pub(super) fn files_set_back(&mut self) {
        self.away = true;
        self.old = self.life.is_some();
        // That the namespace has lane high may be forgotten.
        self.is_early = self.log.lane == Lane::High;
    }

    /// It is told that what it stands on is lost: it gets everything that there is.
    fn begin_again(&mut self) {
        if !matches!(self.from, From::Time(_)) {
            self.from = From::Number(Sequence::FIRST);
        }
        (self.old, self.again) = (false, true);
        (self.life, self.begun) = (None, None);
        self.order = Order::default();
        self.given.missing.clear();
        if let Some(wishes) = &mut self.given.wishes {
            wishes.begin_again();
        }
    }

    /// Whether a message is of its topics, and for who has its roles and its wish.
    fn is_for(&self, entry: &Entry, place: Sequence) -> bool {
        let wishes = self.given.wishes.as_ref();
        let is_wanted =
            self.subject.has(entry) && wishes.is_none_or(|wishes| wishes.want(entry, place));
        is_wanted && audience::is_for(entry, self.given.roles.as_deref())
    }

    /// Whether it waits for a number that the log has not got to.
    pub(super) fn is_ahead(&self, ledger: &Ledger) -> bool {
        matches!(self.from, From::Number(from) | From::Wish(_, Some(from)) if from > ledger.last_acked(self.log))
    }

    /// The first number that it must account for. `None`: not known.
    pub(super) fn first(&self, ledger: &Ledger) -> Option<Sequence> {
        let time = match self.from {
            From::Unknown | From::Wish(_, None) => return None,
            From::Number(number) | From::Wish(_, Some(number)) => {
                return Some(number.max(self.begun.unwrap_or(number)));
            }
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
            From::Time(time) => left.all(|(place, _, entry)| {
                let early = entry.acked.is_some_and(|acked| acked.appended < time);
                let is_mine = self.is_for(entry, place);
                early || !is_mine || ledger.expiry.excuses(entry)
            }),
            // Of what comes before a number that is still to come in a later log nothing is said.
            From::Wish(_, Some(from)) if from > ledger.last_acked(self.log) => true,
            _ => next > ledger.last_acked(self.log),
        }
    }

    /// It is told where it stands in a log, and whether it is live there. Gives how it has gone on in a later log of its
    /// line than it was in, if it has.
    pub(super) fn stands(
        &mut self,
        (log, next): (LogId, Sequence),
        (is_live, shrinks): (bool, bool),
        ledger: &Ledger,
    ) -> Option<Kind> {
        if let From::Wish(number, _) = self.from {
            self.from = From::Wish(number, Some(ledger.lines.place(log, number)));
        }
        let was_live = std::mem::replace(&mut self.is_live, is_live);
        let before = std::mem::replace(&mut self.at, log);
        if before < log && shrinks && matches!(self.from, From::Time(_)) {
            // As where it began: what of later logs was removed before it got there is not told.
            self.given.missing.push(Extent {
                first: ledger.lines.after(before),
                last: ledger.lines.place(log, next).before(),
            });
        }
        let has_stood = self.life.is_some_and(|(log, _)| log == before);
        (before < log && has_stood).then_some(if was_live {
            Kind::MovedLive
        } else {
            Kind::MovedBehind
        })
    }

    /// Its filter is changed, or is not. Whether that was asked for.
    pub(super) fn change_answered(&mut self, state: &State, ledger: &Ledger) -> bool {
        let Some(wishes) = &mut self.given.wishes else {
            return false;
        };
        match state {
            State::Changed { places } => {
                let lane = self.log.lane;
                let place = places.iter().find(|at| at.log.lane == lane);
                wishes.changed(place.map(|at| ledger.lines.place(at.log, at.next)))
            }
            _ => wishes.unchanged(),
        }
    }

    /// Messages have come. `check` says whether they may. Gives how many of them have expired on the way.
    pub(super) fn messages(
        &mut self,
        (arrived, key): (&ReceivedBatch, SubscriptionKey),
        ledger: &mut Ledger,
        mut check: impl FnMut(&mut Ledger, MessageId, Sequence) -> Checked,
        who: &str,
    ) -> Result<u64, Violation> {
        let time = arrived.time(ledger.expiry.now().mono);
        let mut gone = 0;
        if let Some((number, _)) = arrived.iter_of(key).next() {
            self.comes(ledger.lines.place(arrived.log, number));
        }
        self.lives((arrived.log, arrived.incarnation), ledger, who)?;
        let line = ledger.lines.of(arrived.log);
        for (number, record) in arrived.iter_of(key) {
            let place = ledger.lines.place(arrived.log, number);
            let Some((id, _)) = identify(record.payload) else {
                let detail = format!("{who}: number {number} is not what was published");
                return Err(Violation::new("G7 damage is never served", detail));
            };
            let early = match self.from {
                From::Unknown | From::Wish(..) => true,
                From::Number(from) => place < from,
                // Who comes back with a position in an earlier log asks for no time any more.
                From::Time(time) => {
                    arrived.appended < time && ledger.lines.moves_before(arrived.log) == 0
                }
            };
            let is_late = |until: AppendTime| arrived.appended >= until;
            let late = ledger.places.is_some() && self.given.not_after.is_some_and(is_late);
            let stranger = ledger
                .get(id)
                .is_none_or(|entry| !self.subject.has(entry) || entry.log != line);
            if early || late || stranger {
                let detail = format!(
                    "{who}: number {number} (message {}) from {:?}",
                    id.0, self.from
                );
                return Err(Violation::new("G2 only what was asked for", detail));
            }
            if arrived.is_expired(&record, time) {
                self.given.expired.insert(id);
                gone += 1;
                continue;
            }
            if let Some(entry) = ledger.get(id) {
                let expiry = &ledger.expiry;
                let place = (arrived.log, arrived.appended);
                expiry.check_given((id, entry), place, who)?;
                audience::check_given((id, entry), self.given.roles.as_deref(), who)?;
                let (number, wishes) =
                    (ledger.lines.place(arrived.log, number), &self.given.wishes);
                filters::check_given((id, entry), number, wishes.as_ref(), who)?;
            }
            check(ledger, id, place)?;
            self.order.see(ledger, id, place, who)?;
            self.given.messages.insert(id);
        }
        Ok(gone)
    }

    /// Messages are told to have expired.
    ///
    /// # Errors
    /// One is of another topic or for others, or never expires.
    pub(super) fn expired(&self, told: &ExpiredSeen, ledger: &Ledger, who: &str) -> Checked {
        let line = ledger.lines.of(told.log);
        for number in &told.numbers {
            let place = ledger.lines.place(told.log, *number);
            let mut there = ledger.acked(line, place, place.plus(1));
            let is_wrong = there.any(|(place, _, entry)| {
                let is_mine = self.is_for(entry, place);
                !is_mine || entry.ttl_ms.is_none() || !ledger.expiry.excuses(entry)
            });
            if is_wrong {
                let detail = format!("{who}: number {number} of {}", told.log);
                return Err(Violation::new(
                    "expiry: what is told to expire does",
                    detail,
                ));
            }
        }
        Ok(())
    }

    /// Something will not come. Gives whether it is the rest of a log's life.
    ///
    /// # Errors
    /// It is not so.
    pub(super) fn gap(
        &mut self,
        gap: &GapSeen,
        ledger: &Ledger,
        spaces: &[Space],
        who: &str,
    ) -> Result<bool, Violation> {
        if gap.extent.last == Sequence::MAX && ledger.restored {
            self.begin_again();
            return Ok(true);
        }
        self.lives((gap.log, gap.incarnation), ledger, who)?;
        let extent = ledger.lines.places(gap.log, gap.extent);
        self.comes(extent.first);
        self.given.missing.push(extent);
        // To who reads again, what is no longer kept is lost with the rest.
        let shrinks = spaces[self.space].shrinks;
        let first = self.again && shrinks && gap.extent.first == Sequence::FIRST;
        let told = Told {
            log: ledger.lines.of(gap.log),
            subject: self.subject,
            extent,
            why: match gap.why {
                GapReason::Loss if first => GapWhy::Retention,
                GapReason::Loss => GapWhy::Loss,
                GapReason::Unused => GapWhy::Unused,
                GapReason::Retention => GapWhy::Retention,
            },
            retained: shrinks,
        };
        gaps::check(ledger, &told, who)?;
        Ok(false)
    }

    /// Something comes to it, from a place on: what it has wished for is known. Where it waited for a number that its log
    /// never got to, it has all of the log after that.
    fn comes(&mut self, first: Sequence) {
        if let From::Wish(_, Some(place)) = self.from {
            self.from = From::Number(first.min(place));
        }
    }

    /// A log keeps its life, but for one that begins for somebody else's position: who came after the
    /// files were set back goes on in it.
    fn lives(&mut self, life: (LogId, Incarnation), ledger: &Ledger, who: &str) -> Checked {
        let (log, before) = *self.life.get_or_insert(life);
        if (log, before) == life || log != life.0 || (ledger.restored && !self.old) {
            self.life = Some(life);
            return Ok(());
        }
        let detail = format!("{who}: life {} after {before}", life.1);
        Err(Violation::new("G4 a durable log keeps its life", detail))
    }
}
