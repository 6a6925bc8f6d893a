//! Answers to calls that change nothing, but for what a log's clock has shown: a log's bounds, its clock, the place
//! of a time in it, and its topics.
//!
//! The handler borrows the logs and segments as they are. Listing topics begins a reader of its
//! own.

use super::Journal;
use super::effects::Effects;
use super::logs::Logs;
use super::read::Reader;
use super::readers::Readers;
use super::retention::list;
use super::segment_set::SegmentSet;
use super::topics::TopicsJob;
use crate::contract::{Completion, Refusal, Scope, Tag, TopicPage};
use airmail_model::{AppendTime, LogId, Now, bug};

/// The parts of the journal that answering a call reads or changes.
struct Asking<'j> {
    logs: &'j mut Logs,
    segments: &'j SegmentSet,
    readers: &'j mut Readers,
    effects: &'j mut Effects,
}

impl Asking<'_> {
    fn tell_bounds(&mut self, t: Tag, id: LogId) {
        let log = self.logs.named(id);
        self.effects.tell(match log {
            Some(log) => Completion::Bounds {
                t,
                bounds: log.bounds(),
            },
            None => Completion::Refused {
                t,
                why: Refusal::NoLog,
            },
        });
    }

    /// Tells the time that an append would be stamped with now.
    fn tell_clock(&mut self, t: Tag, id: LogId, now: Now) {
        self.effects.tell(match self.logs.named_mut(id) {
            Some(log) => Completion::Clock {
                t,
                at: log.clock.read(now),
            },
            None => Completion::Refused {
                t,
                why: Refusal::NoLog,
            },
        });
    }

    fn find_time(&mut self, t: Tag, id: LogId, at: AppendTime) {
        let log = self.logs.named(id);
        let Some(log) = log else {
            // Input: an owner that names a log which is not open, or was deleted.
            let why = Refusal::NoLog;
            return self.effects.tell(Completion::Refused { t, why });
        };
        let (earlier, next) = log.kept.around(at);
        let mut found = earlier.map_or(log.numbers.first, |place| place.last.plus(1));
        // Behind the last one that is older, not at the first that is not: what was between may be
        // lost, and is told.
        if let Some(place) = next {
            let list = list(self.segments, log.slot, place.block);
            let older = list.iter().take_while(|location| location.time < at);
            found = older.fold(found, |found, one| found.max(one.last().plus(1)));
        }
        let older = log.recent.iter().take_while(|recent| recent.time < at);
        found = older.fold(found, |found, one| found.max(one.next()));
        let at = found.max(log.numbers.first).min(log.numbers.visible);
        self.effects.tell(Completion::Found { t, at });
    }

    fn list_topics(&mut self, t: Tag, id: LogId, page: TopicPage) {
        let log = self.logs.named(id);
        let Some(log) = log else {
            // Input: an owner that names a log which is not open, or was deleted.
            return self.effects.tell(Completion::Refused {
                t,
                why: Refusal::NoLog,
            });
        };
        let Some(r) = self.readers.free_id() else {
            bug!("no reader's id is free");
            let why = Refusal::OutcomeUnknown;
            return self.effects.tell(Completion::Refused { t, why });
        };
        let scope = Scope {
            until: Some(log.numbers.visible),
            ..Scope::default()
        };
        let mut reader = Reader::new(r, log.slot, log.numbers.first, &scope, 0);
        reader.credit = i64::MAX;
        reader.job = Some(Box::new(TopicsJob::new(t, page)));
        self.readers.start(reader);
    }
}

impl Journal {
    fn asking(&mut self) -> Asking<'_> {
        Asking {
            logs: &mut self.logs,
            segments: &self.segments,
            readers: &mut self.readers,
            effects: &mut self.effects,
        }
    }

    /// Tells a log's bounds.
    pub(super) fn tell_bounds(&mut self, t: Tag, id: LogId) {
        self.asking().tell_bounds(t, id);
    }

    /// Tells what the clock of a log's append times shows.
    pub(super) fn tell_clock(&mut self, t: Tag, id: LogId) {
        let now = self.time.now();
        self.asking().tell_clock(t, id, now);
    }

    /// Tells the first number of a log that may have been appended at a time, or later.
    pub(super) fn find_time(&mut self, t: Tag, id: LogId, at: AppendTime) {
        self.asking().find_time(t, id, at);
    }

    /// Begins to list a page of a log's topics.
    pub(super) fn list_topics(&mut self, t: Tag, id: LogId, page: TopicPage) {
        self.asking().list_topics(t, id, page);
    }
}
