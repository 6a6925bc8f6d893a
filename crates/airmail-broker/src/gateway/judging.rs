//! Judging: which records of a batch are left out because they have expired.
//!
//! A batch without records that expire costs one look at its header, and is given on as it is. Of any other the records
//! are looked at once, by the log's time of this step ([`log_clock`](super::log_clock)); so what is left out is the same
//! for all who are given the batch within the step.

use super::{Gateway, GatewayEffects};
use crate::keys::{LogKey, SubKey};
use airmail_model::frame::{Delivered, Expired, Reply};
use airmail_model::verdict::{ClockReading, expired};
use airmail_model::{AppendTime, Batch, Sequence};
use std::collections::BTreeMap;

/// Findings about a batch, by the time of one step.
#[derive(Debug, Default)]
pub(super) struct Judged {
    /// The time by which it was judged. `None`: none of its records expires.
    pub(super) clock: Option<ClockReading>,
    /// Whether each of its records has expired, by place in its table; empty if none has.
    pub(super) expired: Vec<bool>,
    /// The numbers of those that have, by their topics' places.
    by_topic: BTreeMap<u16, Vec<Sequence>>,
}

impl Judged {
    /// Whether nothing is left out.
    pub(super) fn is_whole(&self) -> bool {
        self.expired.is_empty()
    }

    /// The numbers of the records of a topic that have expired.
    fn of_topic(&self, place: u16) -> &[Sequence] {
        self.by_topic.get(&place).map_or(&[], Vec::as_slice)
    }
}

/// Rest of a part of a batch, when what has expired is left out.
pub(super) enum Left {
    /// All of it, or some; with the time by which it was judged, if anything of it expires.
    Some(Delivered, Option<ClockReading>, Vec<Sequence>),
    /// Nothing but the numbers of what has expired.
    Nothing(Vec<Sequence>),
    /// It is not known what has expired.
    Unknown,
}

impl Gateway {
    /// Judges a batch of a log, at this step's time. `None`: the log's clock is not known.
    pub(super) fn judge(
        &mut self,
        log: LogKey,
        (batch, base): (&Batch, Sequence),
        appended: AppendTime,
    ) -> Option<Judged> {
        if !batch.is_expiring() {
            return Some(Judged::default());
        }
        let last = base.plus(u64::from(batch.numbers()) - 1);
        let clock = self.log_time(log, (base, last), appended)?;
        let too_old = |ttl_ms| expired(clock.clock, appended, ttl_ms);
        let mut judged = Judged {
            clock: Some(clock),
            ..Judged::default()
        };
        for (record, place) in batch.iter().zip(0_usize..) {
            if record.ttl_ms.is_some_and(too_old) {
                judged.expired.resize(batch.records().into(), false);
                judged.expired[place] = true;
                let of_topic = judged.by_topic.entry(record.topic).or_default();
                of_topic.push(base.plus(record.index.into()));
            }
        }
        Some(judged)
    }

    /// Judges the part of a batch that is for one who is behind, all of whose records are of its topic.
    pub(super) fn judge_part(
        &mut self,
        log: LogKey,
        body: Delivered,
        base: Sequence,
        appended: AppendTime,
    ) -> Left {
        let is_expiring = match &body {
            Delivered::Whole(batch) => batch.is_expiring(),
            Delivered::Slice(slice) => slice.is_expiring(),
        };
        if !is_expiring {
            return Left::Some(body, None, Vec::new());
        }
        let batch = body.to_batch();
        let Some(judged) = self.judge(log, (&batch, base), appended) else {
            // Input: a log whose clock was not asked for lately.
            return Left::Unknown;
        };
        if judged.is_whole() {
            return Left::Some(body, judged.clock, Vec::new());
        }
        let numbers = judged.by_topic.values().flatten().copied().collect();
        let places = (0..batch.records()).zip(&judged.expired);
        let kept: Vec<u16> = places.filter(|(_, gone)| !**gone).map(|(n, _)| n).collect();
        match batch.slice_of(&kept) {
            Some(slice) => Left::Some(Delivered::Slice(slice), judged.clock, numbers),
            None => Left::Nothing(numbers),
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
        session.charge(expired.cost());
        out.reply(session.id, Reply::Expired(expired));
    }

    /// Tells those of a live session's subscriptions that asked for it of what has expired of their topics, whose places
    /// in the batch stand beside them.
    pub(super) fn tell_expired_live(
        &mut self,
        log: LogKey,
        judged: &Judged,
        subs: impl Iterator<Item = (u16, SubKey)>,
        out: &mut GatewayEffects,
    ) {
        if judged.is_whole() {
            return;
        }
        for (place, sub) in subs {
            self.tell_expired(sub, log, judged.of_topic(place), out);
        }
    }
}
