//! Losses: what storages have lost of logs, as log 0 says it, and what was decided about it.
//!
//! A tower whose storage has lost something of a log says so, and the log stops for every node (`suspended`): nothing of it
//! is given or taken. It goes on only by a command of an operator's. What was lost may be accepted: then the log goes on in a
//! new life where it was cut, and who stands in the life before is told how much of that is gone ([`Crossing`]). Or, where
//! all of it is gone, its namespace is made anew under the next map: then all logs of the map before are lost, and what
//! stood in them goes on in the next.
//!
//! A report is of one life of a log: one of a life before, by a tower that has slept, is void.

use super::change::Change;
use super::fold::{Fold, LOGS_EVER_MAX};
use super::messages::CatalogEffects;
use super::namespaces::{EarlierMap, EarlierState, Entry};
use super::{CatalogCore, Phase};
use airmail_log::{LogLoss, LogSpec, Soundness};
use airmail_model::bug;
use airmail_model::{
    Incarnation, LogId, LogIndex, MapEpoch, Namespace, NamespaceId, Now, Provisions, Sequence,
};

/// Losses of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogLosses {
    /// Those that were accepted, the oldest first.
    pub cuts: Vec<LogCut>,
    /// The one about which nothing is decided: the log has stopped.
    pub suspended: Option<LogLoss>,
}

/// Loss of a log's end that was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogCut {
    /// The life that it has ended.
    pub life: Incarnation,
    /// The life that it has begun.
    pub next_life: Incarnation,
    /// The number from which on the life before lost what it had, and the new one goes on.
    pub at: Sequence,
    /// The number behind the last that was lost.
    pub end: Sequence,
}

/// Way from an earlier life of a log into the present one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// The earlier life.
    pub life: Incarnation,
    /// Everything before this number is the same in both. The present life is new from here on.
    pub at: Sequence,
    /// Everything of the earlier life from `at` up to this number is lost.
    pub end: Sequence,
}

impl LogLosses {
    fn soundness(&self) -> Soundness {
        Soundness {
            cuts: u32::try_from(self.cuts.len()).unwrap_or(u32::MAX),
            cut_at: self.cuts.last().map_or(Sequence(0), |cut| cut.at),
            is_suspended: self.suspended.is_some(),
        }
    }
}

impl Entry {
    /// Loss about which nothing is decided, of a log that has stopped.
    #[must_use]
    pub fn suspended(&self, log: LogId) -> Option<&LogLoss> {
        self.losses.get(&log)?.suspended.as_ref()
    }

    /// Every log that has stopped, in order of index, with its loss.
    pub fn all_suspended(&self) -> impl Iterator<Item = (LogId, &LogLoss)> + '_ {
        let all = self.losses.iter();
        all.filter_map(|(log, losses)| Some((*log, losses.suspended.as_ref()?)))
    }

    /// Way into a log's present life from one that was ended by an accepted loss.
    pub(crate) fn crossing(&self, log: LogId, life: Incarnation) -> Option<Crossing> {
        let cuts = &self.losses.get(&log)?.cuts;
        let place = cuts.iter().position(|cut| cut.life == life)?;
        // A later cut may have been further down.
        let at = cuts[place..].iter().map(|cut| cut.at).min()?;
        let end = cuts[place].end.max(at);
        Some(Crossing { life, at, end })
    }

    /// Settings of a log of its present map.
    pub(crate) fn spec_of(&self, log: LogId) -> LogSpec {
        let losses = self.losses.get(&log);
        LogSpec {
            soundness: losses.map(LogLosses::soundness).unwrap_or_default(),
            ..self.log_spec()
        }
    }

    fn has(&self, log: LogId) -> bool {
        self.all_logs().any(|of| of == log)
    }

    /// Whether a log's storage may be believed that it has lost something: it has not said so before, or less.
    fn may_suspend(&self, log: LogId, loss: &LogLoss) -> bool {
        let losses = self.losses.get(&log).cloned().unwrap_or_default();
        let is_present = losses
            .cuts
            .last()
            .is_none_or(|cut| cut.next_life == loss.life);
        let is_news = match losses.suspended {
            Some(told) => told.at.is_some() && loss.at.is_none(),
            None => true,
        };
        self.has(log) && is_present && is_news
    }

    /// Whether a log of its present map is gone for good, as far as its storage has said.
    pub(super) fn is_gone(&self) -> bool {
        self.all_suspended().any(|(_, loss)| loss.at.is_none())
    }

    /// Its present map as one that is lost, as the command `at` says.
    fn to_lost(&self, as_of: Sequence) -> EarlierMap {
        let logs = self.all_logs();
        let end = |log| self.suspended(log).map_or(Sequence::MAX, |loss| loss.end);
        EarlierMap {
            state: EarlierState::Retired {
                ends: logs.map(end).collect(),
                as_of,
                is_purged: false,
                is_lost: true,
            },
            ..self.to_earlier()
        }
    }
}

impl Fold {
    /// Does what a command about losses says; `false` if it is void.
    pub(super) fn apply_loss(&mut self, change: &Change, at: Sequence) -> bool {
        match change {
            Change::Suspend { log, loss } => self.suspended(*log, loss, at),
            Change::Truncate {
                log,
                cuts,
                at: cut_at,
            } => self.truncated(*log, (*cuts, *cut_at), at),
            Change::Recreate {
                id,
                based_on,
                provisions,
            } => {
                let version = self.catalog.get(*id).map(|of| of.namespace.version);
                version == Some(*based_on) && self.recreated(*id, *provisions, at)
            }
            other => {
                bug!("{other:?} is about no loss");
                false
            }
        }
    }

    /// Notes that a log has stopped; `false` if that is void.
    fn suspended(&mut self, log: LogId, loss: &LogLoss, at: Sequence) -> bool {
        self.change_losses(
            log,
            at,
            |entry| entry.may_suspend(log, loss),
            |losses| {
                losses.suspended = Some(*loss);
            },
        )
    }

    /// Notes that the loss of a log's end is accepted, its `count`th; `false` if that is void.
    fn truncated(&mut self, log: LogId, (count, cut_at): (u32, Sequence), at: Sequence) -> bool {
        let is_next = |entry: &Entry| {
            let cuts = entry.losses.get(&log).map_or(0, |losses| losses.cuts.len());
            let suspended = entry.suspended(log).and_then(|loss| loss.at);
            usize::try_from(count).is_ok_and(|count| count == cuts + 1) && suspended == Some(cut_at)
        };
        self.change_losses(log, at, is_next, |losses| {
            if let Some(loss) = losses.suspended.take() {
                losses.cuts.push(LogCut {
                    life: loss.life,
                    next_life: loss.next_life,
                    at: cut_at,
                    end: loss.end.max(cut_at),
                });
            }
        })
    }

    fn change_losses(
        &mut self,
        log: LogId,
        at: Sequence,
        may: impl FnOnce(&Entry) -> bool,
        change: impl FnOnce(&mut LogLosses),
    ) -> bool {
        let entry = self.catalog.get(log.namespace);
        let Some(entry) = entry.filter(|entry| may(entry)) else {
            // Input: a command about a log that is no more, or of which this is known.
            return false;
        };
        let mut changed = Entry::clone(entry);
        changed.as_of = at;
        change(changed.losses.entry(log).or_default());
        self.catalog.put(changed);
        true
    }

    /// Puts a namespace's logs under the next map, since all of those of the present one are lost; `false` if that cannot be.
    fn recreated(&mut self, id: NamespaceId, provisions: Provisions, at: Sequence) -> bool {
        let entry = self.catalog.get(id).filter(|entry| entry.is_gone());
        let Some((entry, namespace)) = entry.and_then(|of| Some((of, recreated(of)?))) else {
            // Input: a command about a namespace that another one has made anew.
            return false;
        };
        let mut earlier = entry.earlier.clone();
        earlier.push(entry.to_lost(at));
        let mut made = Entry::new(namespace, provisions, at);
        made.has_high = entry.has_high;
        self.catalog.put(made.with_earlier(earlier));
        true
    }
}

/// A namespace as it is when it was made anew where it is; `None` if it has no log indexes left.
pub(super) fn recreated(entry: &Entry) -> Option<Namespace> {
    let mut namespace = entry.namespace.clone();
    let logs = u32::from(namespace.spec.logs);
    let first = u32::from(namespace.first_log.0) + logs;
    if first + logs > LOGS_EVER_MAX {
        return None;
    }
    namespace.first_log = LogIndex(u16::try_from(first).ok()?);
    namespace.epoch = MapEpoch(namespace.epoch.0.checked_add(1)?);
    namespace.version += 1;
    Some(namespace)
}

impl CatalogCore {
    /// A log's storage has lost something of it: log 0 is told, unless it knows. What is told before all is ready, or
    /// cannot be written, is told again.
    pub(super) fn suspended(
        &mut self,
        now: Now,
        log: LogId,
        loss: &LogLoss,
        out: &mut CatalogEffects,
    ) {
        let entry = self.fold.catalog.get(log.namespace);
        let is_news = entry.is_some_and(|entry| entry.may_suspend(log, loss));
        if is_news && self.phase == Phase::Ready && !self.log.is_torn {
            let loss = *loss;
            self.note(now, &Change::Suspend { log, loss }, out);
        }
    }
}

#[cfg(test)]
mod tests;
