//! Healing: no more faults, and everyone must end with everything.

use super::reader::Reader;
use super::{Asked, StorageRun};
use crate::batching::topic_name;
use crate::invariants::{Checked, Violation};
use airmail_log::{Call, LogStorage, ReaderId, TopicPage};
use airmail_model::Sequence;
use std::collections::BTreeSet;
use std::time::Duration;

const TURNS_MAX: u32 = 20_000;
/// Bounds on a turn's wait for the journal's next time.
const WAIT_MIN: Duration = Duration::from_millis(1);
const WAIT_MAX: Duration = Duration::from_millis(50);

impl StorageRun {
    /// Ends the faults, starts the process once more, and waits until all is acknowledged and read.
    pub(super) fn heal(&mut self) -> Checked {
        self.evidence.note(format_args!("healing"));
        let ending = self.weather.clear_up(&mut self.chance);
        self.end(ending);
        self.boot()?;
        self.until("opened", |run| run.logs.iter().all(|state| state.opened))?;
        self.until("acknowledged", |run| {
            run.send();
            run.lines.iter().all(super::line::Line::is_idle)
        })?;
        for log in 0..self.logs.len() {
            self.start_reader(Reader::new(log, None, Sequence::FIRST));
            let topic = topic_name(0).hash(self.logs[log].log.namespace);
            self.start_reader(Reader::new(log, Some(topic), Sequence::FIRST));
        }
        self.until("read", |run| {
            let ids: Vec<ReaderId> = run.readers.keys().copied().collect();
            ids.into_iter().for_each(|id| run.grant(id, 10_000));
            run.readers.values().all(|reader| reader.at_tail)
        })?;
        for (id, reader) in &self.readers {
            let state = &self.logs[reader.log];
            if reader.tiling.next < state.told {
                let detail = format!("reader {} ends at {}", id.0, reader.tiling.next);
                return Err(Violation::new("G2 everything acknowledged arrives", detail));
            }
            self.complete(*id, reader)?;
        }
        for log in 0..self.logs.len() {
            self.listed.clear();
            self.list_topics(log);
            self.until("listed", |run| run.calls.is_empty())?;
        }
        Ok(())
    }

    fn until(&mut self, what: &str, mut done: impl FnMut(&mut StorageRun) -> bool) -> Checked {
        for _ in 0..TURNS_MAX {
            if done(self) {
                return Ok(());
            }
            self.turn()?;
            let wait = self
                .wake
                .map_or(Duration::ZERO, |wake| wake.since(self.weather.now.mono));
            self.weather.later(wait.clamp(WAIT_MIN, WAIT_MAX));
        }
        let detail = format!(
            "without faults not everything is {what}; calls {:?}, lines {:?}",
            self.calls, self.lines
        );
        Err(Violation::new("liveness", detail))
    }

    /// Asks for the next page of a log's topics.
    pub(super) fn list_topics(&mut self, log: usize) {
        let tag = self.tag(Asked::Topics { log });
        let page = TopicPage {
            prefix: String::new(),
            after: self.listed.last().cloned().unwrap_or_default(),
            limit: 3,
        };
        let id = self.logs[log].log;
        if let Some(storage) = &mut self.storage {
            storage.submit(Call::Topics {
                t: tag,
                log: id,
                page: Box::new(page),
            });
        }
    }

    /// Every topic with a message that must be there has been listed.
    pub(super) fn check_listed(&self, log: usize) -> Checked {
        let state = &self.logs[log];
        if state.may_shrink() {
            return Ok(());
        }
        let listed: BTreeSet<_> = self.listed.iter().map(String::as_str).collect();
        let names = (0..7).map(topic_name);
        for name in names {
            let hash = name.hash(state.log.namespace);
            let held = self.evidence.ledger.iter().any(|(id, entry)| {
                entry.log == state.log
                    && entry.topic == hash
                    && entry.acked.is_some()
                    && !self.evidence.ledger.may_be_missing(id)
            });
            if held && !listed.contains(name.as_str()) {
                let detail = format!("{} does not list {name}, lists {listed:?}", state.log);
                return Err(Violation::new("contract", detail));
            }
        }
        Ok(())
    }
}
