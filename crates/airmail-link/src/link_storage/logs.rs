//! Logs that the owner has opened over a link: they are opened again over each new connection, before anything
//! else is asked of them.
//!
//! Invariant: a log is lost exactly from the cut, or from when the far end said so, until it is gained.

use airmail_log::{Bounds, Call, Completion, LogSpec, Refusal, Tag};
use airmail_model::{LogId, Mono, Sequence};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Time after which a log is tried again that could not be opened.
const RETRY_AFTER: Duration = Duration::from_millis(250);

/// A log that was opened.
#[derive(Debug)]
struct OpenLog {
    spec: Box<LogSpec>,
    is_lost: bool,
}

/// Logs that were opened. See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct OpenLogs {
    logs: BTreeMap<LogId, OpenLog>,
    /// Calls of the link's own that open logs again, by tag.
    reopening: BTreeMap<Tag, LogId>,
    /// When to try again what could not be opened.
    retry: Option<Mono>,
}

impl OpenLogs {
    /// The owner has opened a log.
    pub(super) fn opened(
        &mut self,
        log: LogId,
        spec: Box<LogSpec>,
        bounds: &Bounds,
        told: &mut VecDeque<Completion>,
    ) {
        let is_lost = false;
        let before = self.logs.insert(log, OpenLog { spec, is_lost });
        if before.is_some_and(|before| before.is_lost) {
            let bounds = *bounds;
            told.push_back(Completion::Gained { log, bounds });
        }
    }

    /// A log that was opened elsewhere is to be opened here, too.
    pub(super) fn open_too(&mut self, log: LogId, spec: Box<LogSpec>) {
        let is_lost = self.logs.get(&log).is_none_or(|open| open.is_lost);
        self.logs.insert(log, OpenLog { spec, is_lost });
    }

    /// A log is used elsewhere: opened again here, it changes nothing of what was made known there.
    pub(super) fn defer(&mut self, log: LogId) {
        if let Some(open) = self.logs.get_mut(&log) {
            open.spec.as_of = Sequence(0);
        }
    }

    /// The spec by which a log was opened.
    pub(super) fn spec_of(&self, log: LogId) -> Option<&LogSpec> {
        self.logs.get(&log).map(|open| &*open.spec)
    }

    /// The owner has deleted a log.
    pub(super) fn deleted(&mut self, log: LogId) {
        self.logs.remove(&log);
    }

    /// The connection is gone, and every log is lost.
    pub(super) fn cut(&mut self, told: &mut VecDeque<Completion>) {
        self.reopening.clear();
        self.retry = None;
        let logs: Vec<LogId> = self.logs.keys().copied().collect();
        for log in logs {
            self.lost(log, told);
        }
    }

    /// A log is lost.
    pub(super) fn lost(&mut self, log: LogId, told: &mut VecDeque<Completion>) {
        let open = self.logs.get_mut(&log);
        if let Some(open) = open.filter(|open| !open.is_lost) {
            open.is_lost = true;
            told.push_back(Completion::Lost { log });
        }
    }

    /// The far end has a log again, or a new life of it has begun.
    pub(super) fn gained(&mut self, log: LogId, bounds: Bounds, told: &mut VecDeque<Completion>) {
        if let Some(open) = self.logs.get_mut(&log) {
            open.is_lost = false;
            told.push_back(Completion::Gained { log, bounds });
        }
    }

    /// Logs to be opened again.
    pub(super) fn lost_logs(&self) -> Vec<LogId> {
        let lost = self.logs.iter().filter(|(_, open)| open.is_lost);
        lost.map(|(log, _)| *log).collect()
    }

    /// The call that opens a log again, unless it was deleted.
    pub(super) fn reopen(&mut self, t: Tag, log: LogId) -> Option<Call> {
        let spec = Box::clone(&self.logs.get(&log)?.spec);
        self.reopening.insert(t, log);
        Some(Call::Open { t, log, spec })
    }

    /// The call was not sent after all.
    pub(super) fn not_reopening(&mut self, log: LogId) {
        self.reopening.retain(|_, of| *of != log);
    }

    /// Takes the answer to a call of the link's own; whether it was one.
    pub(super) fn answered(
        &mut self,
        now: Mono,
        answer: &Completion,
        told: &mut VecDeque<Completion>,
    ) -> bool {
        let Some(log) = answer.tag().and_then(|t| self.reopening.remove(&t)) else {
            // Input: an answer to a call of the owner's.
            return false;
        };
        match answer {
            Completion::Opened { bounds, .. } => self.gained(log, *bounds, told),
            // It was deleted: the owner will learn it from log 0.
            Completion::Refused {
                why: Refusal::NoLog,
                ..
            } => {}
            _ => self.retry = Some(now.plus(RETRY_AFTER)),
        }
        true
    }

    /// Whether calls of the link's own are under way.
    pub(super) fn is_reopening(&self) -> bool {
        !self.reopening.is_empty()
    }

    /// Opens what is not open as soon as that can be.
    pub(super) fn retry_at(&mut self, at: Mono) {
        self.retry = Some(at);
    }

    /// When to try again what could not be opened.
    pub(super) fn retry(&self) -> Option<Mono> {
        self.retry
    }

    /// Whether it is time to try again; then it is not any more.
    pub(super) fn take_retry(&mut self, now: Mono) -> bool {
        self.retry.take_if(|at| *at <= now).is_some()
    }
}
