//! A log, as far as its readers are served here: who reads it, and who fetches what they get.

use super::cache::StretchId;
use airmail_log::{Bounds, ReaderId};
use airmail_model::{Extent, Incarnation, MapEpoch, Mono, Sequence, TopicHash};
use std::collections::{BTreeMap, BTreeSet};

/// A reader, above, that fills the cache for those who wait where it stands.
#[derive(Debug)]
pub(super) struct Fetcher {
    /// The topic that it reads. `None`: everything.
    pub(super) topic: Option<TopicHash>,
    /// The first number that it has not given.
    pub(super) next: Sequence,
    /// The stretch that it fills, once it has given something.
    pub(super) stretch: Option<StretchId>,
    /// Bytes that are on their way at a time: few at first, and twice as many each time that they were taken.
    window: u32,
    /// Credit that it has.
    pub(super) credit: i64,
    /// It has given everything before `next`.
    pub(super) is_at_tail: bool,
    /// Time since which it has not, after it had.
    pub(super) behind_since: Option<Mono>,
}

impl Fetcher {
    /// One that begins at a number, with so much credit.
    pub(super) fn begin(topic: Option<TopicHash>, next: Sequence, window: u32) -> Fetcher {
        Fetcher {
            topic,
            next,
            stretch: None,
            window,
            credit: window.into(),
            is_at_tail: false,
            behind_since: None,
        }
    }

    /// Somebody waits for more: the credit that it is to be given, if it has little left. Its window is at most this.
    pub(super) fn more_credit(&mut self, window_max: u32) -> Option<u32> {
        if self.credit > i64::from(self.window / 2) {
            return None;
        }
        self.window = self.window.saturating_mul(2).min(window_max);
        let bytes = u32::try_from(i64::from(self.window) - self.credit).unwrap_or(u32::MAX);
        self.credit += i64::from(bytes);
        Some(bytes)
    }

    /// Whether who stands at a number, and wants a topic or everything, gets what comes next of it.
    pub(super) fn serves(&self, topic: Option<TopicHash>, number: Sequence) -> bool {
        self.next == number && (self.topic.is_none() || self.topic == topic)
    }

    /// It has given these numbers.
    pub(super) fn gave(&mut self, now: Mono, extent: Extent) {
        self.next = extent.next();
        if std::mem::take(&mut self.is_at_tail) {
            self.behind_since = Some(now);
        }
    }

    /// It has given everything before a number.
    pub(super) fn at_tail(&mut self, next: Sequence) {
        if self.next == next {
            self.is_at_tail = true;
            self.behind_since = None;
        }
    }
}

/// A log. See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct CachedLog {
    /// Readers of the owner.
    pub(super) readers: BTreeSet<ReaderId>,
    /// Fetchers, by their readers above.
    pub(super) fetchers: BTreeMap<ReaderId, Fetcher>,
    /// Readers that have begun since its end was asked for last.
    pub(super) unasked: BTreeSet<ReaderId>,
    /// Readers that began before its end was asked for; there is no answer yet.
    pub(super) asking: BTreeSet<ReaderId>,
    /// The first number that is kept, and the log's life, as they were last told.
    pub(super) bounds: Option<(Sequence, Incarnation)>,
    /// Its last number, and the map that goes on, if it is sealed.
    pub(super) sealed: Option<(Sequence, MapEpoch)>,
    /// It cannot be used above at the moment: what is here is given without a question.
    pub(super) is_lost: bool,
    /// It was deleted.
    pub(super) is_gone: bool,
}

impl CachedLog {
    /// Takes note of its bounds; whether what is here of it is of an earlier life.
    pub(super) fn note(&mut self, bounds: &Bounds) -> bool {
        self.is_gone = false;
        let before = self.bounds.replace((bounds.first, bounds.incarnation));
        let is_other = before.is_some_and(|(_, incarnation)| incarnation != bounds.incarnation);
        // A log weaker than `fsync` goes on above its reservation after a crash, also where it is sealed: what lies between
        // is told as a gap, and then that it is sealed.
        let has_moved = |(last, _): &(Sequence, MapEpoch)| last.plus(1) < bounds.next;
        if is_other || self.sealed.as_ref().is_some_and(has_moved) {
            self.sealed = None;
        }
        is_other
    }

    /// Whether nothing of it has to be remembered.
    pub(super) fn is_over(&self) -> bool {
        self.is_gone && self.readers.is_empty() && self.fetchers.is_empty()
    }

    /// The fetcher of everything, or of a topic, that stands at a number.
    pub(super) fn fetcher_at(
        &mut self,
        topic: Option<TopicHash>,
        number: Sequence,
    ) -> Option<(ReaderId, &mut Fetcher)> {
        let at = self
            .fetchers
            .iter_mut()
            .filter(|(_, one)| one.serves(topic, number));
        let at = at.min_by_key(|(_, fetcher)| fetcher.topic);
        at.map(|(above, fetcher)| (*above, fetcher))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_log_is_sealed_is_asked_for_again_when_it_has_gone_on_above() {
        let map = MapEpoch(2);
        let bounds = |next| Bounds {
            first: Sequence::FIRST,
            next: Sequence(next),
            reach: Sequence(next),
            incarnation: Incarnation(7),
            first_time: None,
            bytes: 0,
            sealed: Some(map),
        };
        let mut log = CachedLog {
            sealed: Some((Sequence(1), map)),
            ..CachedLog::default()
        };
        assert!(!log.note(&bounds(2)));
        assert_eq!(log.sealed, Some((Sequence(1), map)));
        assert!(!log.note(&bounds(486)), "it has the life that it had");
        assert_eq!(log.sealed, None);
    }
}
