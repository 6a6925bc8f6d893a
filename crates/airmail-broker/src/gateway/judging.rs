//! Judging: which records of a batch are left out, because they are for other roles, are not wanted, or have expired.
//!
//! A batch of which neither roles nor time leave out anything costs one look at its header, and is given on as it is to
//! whoever has no filter. Any other is judged by the log's time of this step ([`log_clock`](super::log_clock)) and by the roles of whom it is for. At the tail that is for
//! many at once ([`left_out`](super::left_out)); here it is for one who is behind, record by record. Nobody is told of what
//! is for others; of what has expired, whoever asked to be.

use super::left_out::{JudgedBatch, LeftOut};
use super::{Gateway, GatewayEffects};
use crate::keys::{LogKey, SessionKey, SubKey};
use airmail_log::Stored;
use airmail_model::batch::Record;
use airmail_model::frame::{Delivered, Expired, Reply};
use airmail_model::verdict::{ClockReading, Roles, Verdict, judge};
use airmail_model::{AppendTime, Batch, Sequence};
use std::sync::Arc;

/// A time for what does not expire.
const ANY_TIME: AppendTime = AppendTime(i64::MIN);

/// Rest of a part of a batch, when what is not for its subscriber is left out.
pub(super) enum Left {
    /// All of it, or some; with the time by which it was judged, if anything of it expires.
    Some(Delivered, Option<ClockReading>, Vec<Sequence>),
    /// Nothing but the numbers of what has expired.
    Nothing(Vec<Sequence>),
    /// It is not known what has expired.
    Unknown,
}

impl Gateway {
    /// The time by which a batch is judged in this step, if anything in it expires. `Err`: the log's clock is not known.
    fn judging_time(
        &mut self,
        log: LogKey,
        (batch, base): (&Batch, Sequence),
        appended: AppendTime,
    ) -> Result<Option<ClockReading>, ClockUnknown> {
        if !batch.is_expiring() {
            return Ok(None);
        }
        let last = base.plus(u64::from(batch.numbers()) - 1);
        let time = self.log_time(log, (base, last), appended);
        time.map(Some).ok_or(ClockUnknown)
    }

    /// Judges a batch at the tail, for whoever is there. `None`: it brings nothing along.
    pub(super) fn judge_live(
        &mut self,
        log: LogKey,
        stored: &Stored,
    ) -> Result<Option<JudgedBatch>, ClockUnknown> {
        if stored.batch.is_plain() {
            return Ok(None);
        }
        let batch = (&*stored.batch, stored.base);
        let clock = self.judging_time(log, batch, stored.appended)?;
        Ok(Some(JudgedBatch::of(batch, stored.appended, clock)))
    }

    /// Judges the part of a batch that is for one who is behind: all of its records are of its topic, or it is for a
    /// selection.
    pub(super) fn judge_part(
        &mut self,
        log: LogKey,
        (session, sub): (SessionKey, SubKey),
        body: Delivered,
        base: Sequence,
        appended: AppendTime,
    ) -> Left {
        let body = match self.subs[sub].scope().selection() {
            None => body,
            Some(selection) => match self.select(body, selection) {
                Some(selected) => selected,
                None => return Left::Nothing(Vec::new()),
            },
        };
        let is_plain = match &body {
            Delivered::Whole(batch) => batch.is_plain(),
            Delivered::Slice(slice) => slice.is_plain(),
        };
        let filter = self.subs.filters.filter_of(sub).map(Arc::clone);
        #[cfg(feature = "sabotage")]
        let filter =
            filter.filter(|_| self.config.bug != Some(crate::sabotage::Bug::LateUnfiltered));
        if is_plain && filter.is_none() {
            return Left::Some(body, None, Vec::new());
        }
        let batch = body.to_batch();
        let Ok(clock) = self.judging_time(log, (&batch, base), appended) else {
            // Input: a log whose clock was not asked for lately.
            return Left::Unknown;
        };
        let namespace = self.logs[log].id.namespace;
        let roles = self.sessions[session].roles(namespace);
        #[cfg(feature = "sabotage")]
        let roles = match self.config.bug {
            Some(crate::sabotage::Bug::LateForbidden) => &Roles::ALL,
            _ => roles,
        };
        let wants = |record: &Record<'_>| {
            let filter = filter.as_ref();
            filter.is_none_or(|filter| filter.matches(record))
        };
        let verdicts = judge_each(&batch, base, (appended, clock), roles, wants);
        self.stats.forbidden += verdicts.forbidden;
        self.stats.filtered += verdicts.filtered;
        let (kept, expired) = (verdicts.kept, verdicts.expired);
        if kept.len() == usize::from(batch.records()) {
            return Left::Some(body, clock, Vec::new());
        }
        match batch.slice_of(&kept) {
            Some(slice) => Left::Some(Delivered::Slice(slice), clock, expired),
            None => Left::Nothing(expired),
        }
    }

    /// Tells a subscription of records that have expired, if it asked for that.
    pub(super) fn tell_expired(
        &mut self,
        key: SubKey,
        log: LogKey,
        numbers: &[Sequence],
        out: &mut GatewayEffects,
    ) {
        self.stats.expired += numbers.len() as u64;
        if numbers.is_empty() || !self.subs.is_told_of_expiry(key) {
            return;
        }
        let sub = &self.subs[key];
        let expired = Expired {
            subscription: sub.id,
            generation: sub.generation,
            log: self.logs[log].id,
            numbers: numbers.to_vec(),
        };
        let session = &mut self.sessions[sub.session];
        session.charge(expired.log.lane, expired.cost());
        out.reply(session.id, Reply::Expired(expired));
    }

    /// Counts what a live session's subscriptions are not given of their topics, whose places in the batch stand beside
    /// them, and tells those that asked for it of what has expired.
    pub(super) fn tell_left_out(
        &mut self,
        log: LogKey,
        left_out: &LeftOut,
        subs: impl Iterator<Item = (u16, SubKey)>,
        out: &mut GatewayEffects,
    ) {
        for (topic, sub) in subs {
            if let Some(of_topic) = left_out.of_topic(topic) {
                self.stats.forbidden += of_topic.forbidden;
                self.tell_expired(sub, log, &of_topic.expired, out);
            }
        }
    }
}

/// A log's clock is not known: nothing that expires can be judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockUnknown;

/// Verdicts on the records of a batch, for somebody.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Verdicts {
    /// Places of those that are handed over.
    pub(super) kept: Vec<u16>,
    /// Numbers of those that have expired.
    pub(super) expired: Vec<Sequence>,
    /// Number of those that are for others.
    pub(super) forbidden: u64,
    /// Number of those that are not wanted.
    pub(super) filtered: u64,
}

/// Judges each record of a batch for somebody with these roles.
pub(super) fn judge_each(
    batch: &Batch,
    base: Sequence,
    (appended, clock): (AppendTime, Option<ClockReading>),
    roles: &Roles,
    wants: impl Fn(&Record<'_>) -> bool,
) -> Verdicts {
    let now = clock.map_or(ANY_TIME, |of| of.clock);
    let mut verdicts = Verdicts::default();
    for (record, place) in batch.iter().zip(0..) {
        match judge(&record, appended, now, roles, &wants) {
            Verdict::HandOver => verdicts.kept.push(place),
            Verdict::Expired => verdicts.expired.push(base.plus(record.index.into())),
            Verdict::Forbidden => verdicts.forbidden += 1,
            Verdict::Unwanted => verdicts.filtered += 1,
        }
    }
    verdicts
}
