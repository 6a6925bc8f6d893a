//! Checks of the storage's answers against the ledger.

use super::{Asked, StorageRun};
use crate::census::Kind;
use crate::invariants::{Checked, Violation};
use airmail_log::{Bounds, Completion, Refusal, Tag, TopicSeen};
use airmail_model::Sequence;

impl StorageRun {
    pub(super) fn answer(&mut self, answer: Completion) -> Checked {
        if answer.tag().is_some_and(|t| self.orphans.remove(&t)) {
            return Ok(());
        }
        match answer {
            Completion::Batch { r, stored } => self.batch(r, &stored),
            Completion::Gap { r, extent, why } => self.gap(r, extent, why),
            Completion::Tail { r, next } => self.tail(r, next),
            Completion::Ended { r, why } => self.ended(r, why.is_some()),
            Completion::Sealed { r, last, next } => self.seal_told(r, last, next),
            Completion::Effective { .. }
            | Completion::WantsLost { .. }
            | Completion::Clock { .. }
            | Completion::Suspended { .. } => {
                contract(&format!("{answer:?}: nothing has led to it"))
            }
            // Unasked: what they tell is asked for where it matters.
            Completion::Gained { .. } | Completion::Lost { .. } => Ok(()),
            Completion::Provisioned { t, .. } => mismatch(t, self.calls.remove(&t)),
            Completion::Opened { t, bounds } => match self.calls.remove(&t) {
                Some(Asked::Open(log)) => self.opened(log, bounds),
                Some(Asked::OpenLate(log)) => self.opened_late(log),
                call => mismatch(t, call),
            },
            Completion::Bounds { t, bounds } => match self.calls.remove(&t) {
                Some(Asked::Bounds(log)) => self.bounds(log, bounds),
                call => mismatch(t, call),
            },
            Completion::Appended {
                t,
                extent,
                at,
                held,
                duplicate,
                ..
            } => match self.calls.remove(&t) {
                Some(Asked::Append { line }) => {
                    self.check_alone()?;
                    self.check_seal(line, t, duplicate)?;
                    self.evidence.add(Kind::Duplicate, u64::from(duplicate));
                    self.appended(line, t, extent, at, held.synced)
                }
                Some(Asked::Doomed { line }) => self.doomed_stored(line, extent),
                call => mismatch(t, call),
            },
            Completion::Found { t, at } => self.time_found(t, at),
            Completion::Topics { t, page } => match self.calls.remove(&t) {
                Some(Asked::Topics { log }) => self.topics(log, page),
                call => mismatch(t, call),
            },
            Completion::Done { t } => match self.calls.remove(&t) {
                Some(Asked::Trim(_)) => Ok(()),
                Some(Asked::Seal(log)) => {
                    self.logs[log].be_sealed(t);
                    Ok(())
                }
                Some(Asked::Delete(log)) => {
                    self.deleted(log);
                    Ok(())
                }
                call => mismatch(t, call),
            },
            Completion::Refused { t, why } => self.refusal(t, &why),
        }
    }

    fn time_found(&mut self, t: Tag, at: Sequence) -> Checked {
        match self.calls.remove(&t) {
            Some(Asked::FindTime { log, at: asked, by }) => {
                self.evidence.count(Kind::TimeFound);
                if self.logs[log].may_shrink() || by.is_none_or(|by| at <= by) {
                    return Ok(());
                }
                contract(&format!("find_time({asked}) gave {at}, later than {by:?}"))
            }
            call => mismatch(t, call),
        }
    }

    fn refusal(&mut self, t: Tag, why: &Refusal) -> Checked {
        match self.calls.remove(&t) {
            Some(Asked::Append { line }) => self.append_refused(line, t, why),
            Some(Asked::Doomed { .. }) => {
                self.count_refusal(why);
                Ok(())
            }
            Some(Asked::OpenLate(log)) => self.late_refused(log, why),
            Some(call) => self.refused(call, why),
            None => mismatch(t, None),
        }
    }

    fn refused(&mut self, call: Asked, why: &Refusal) -> Checked {
        match (&call, why) {
            // A query may meet the failing disk; it is simply asked again some day.
            (_, Refusal::Io(_) | Refusal::Full { .. } | Refusal::OutcomeUnknown) => {
                match call {
                    Asked::Open(log) => self.open_log(log),
                    Asked::Topics { log } => self.list_topics(log),
                    Asked::Delete(log) => self.open_log(log),
                    _ => {}
                }
                Ok(())
            }
            _ => contract(&format!("{call:?} was refused: {why}")),
        }
    }

    fn opened(&mut self, log: usize, bounds: Bounds) -> Checked {
        self.begin_life(log, bounds)?;
        self.logs[log].opened = true;
        self.bounds(log, bounds)?;
        let resumed: Vec<_> = self
            .waiting
            .extract_if(.., |reader| reader.log == log)
            .collect();
        for reader in resumed {
            self.start_reader(reader);
        }
        Ok(())
    }

    fn bounds(&mut self, log: usize, bounds: Bounds) -> Checked {
        let state = &self.logs[log];
        let odd = bounds.first > bounds.next
            || bounds.first < Sequence::FIRST
            || bounds.reach < bounds.next.max(state.told)
            || (!state.may_shrink() && bounds.first > Sequence::FIRST);
        if odd {
            let detail = format!("{}: {bounds:?}, told up to {}", state.log, state.told);
            return Err(Violation::new("G4 a log never steps back", detail));
        }
        Ok(())
    }

    fn topics(&mut self, log: usize, page: Vec<TopicSeen>) -> Checked {
        for seen in page.iter() {
            if self.listed.last().is_some_and(|last| *last >= seen.name) {
                return contract(&format!("topic {} is out of order", seen.name));
            }
            self.listed.push(seen.name.clone());
        }
        if page.is_empty() {
            self.check_listed(log)
        } else {
            self.list_topics(log);
            Ok(())
        }
    }
}

pub(super) fn contract(detail: &str) -> Checked {
    Err(Violation::new("contract", detail))
}

fn mismatch(tag: Tag, call: Option<Asked>) -> Checked {
    contract(&format!(
        "tag {} has an answer to another call than {call:?}",
        tag.0
    ))
}
