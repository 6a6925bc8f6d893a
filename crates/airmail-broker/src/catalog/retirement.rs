//! Retirement of earlier logs: when retention has left nothing in any log of an earlier map, log 0 is told so.
//!
//! The side that has the logs says which of them are empty and have been for a while. From the command on, their
//! positions are answered by what it says of their ends, so that the storage can be done with them. Any shard may write
//! it: the first one counts.
//!
//! Invariant: what is noted is of logs that are kept.

use super::change::Change;
use super::messages::CatalogEffects;
use super::namespaces::EarlierMap;
use super::{CatalogCore, Phase};
use airmail_model::{LogId, Now, Sequence};
use std::collections::BTreeMap;

/// Logs of earlier maps that are empty, with where each ended.
#[derive(Debug, Default)]
pub(super) struct Emptied(BTreeMap<LogId, Sequence>);

impl Emptied {
    /// Where each log of a map ended, in order of lane and index, if all of them are empty.
    fn ends(&self, earlier: &EarlierMap) -> Option<Vec<Sequence>> {
        let logs = earlier.all_logs();
        logs.map(|log| self.0.get(&log).copied()).collect()
    }

    fn forget(&mut self, earlier: &EarlierMap) {
        for log in earlier.all_logs() {
            self.0.remove(&log);
        }
    }

    /// Every log that is noted.
    pub(super) fn logs(&self) -> impl Iterator<Item = LogId> + '_ {
        self.0.keys().copied()
    }
}

impl CatalogCore {
    /// A log of an earlier map is empty, and ends there for ever.
    pub(super) fn emptied(
        &mut self,
        now: Now,
        log: LogId,
        end: Sequence,
        out: &mut CatalogEffects,
    ) {
        let entry = self.snapshot.get(log.namespace);
        let earlier = entry.and_then(|entry| entry.earlier_of(log)).cloned();
        let Some(earlier) = earlier.filter(EarlierMap::is_kept) else {
            // Input: a log that was retired or deleted meanwhile.
            return;
        };
        if self.phase != Phase::Ready || self.log.is_torn {
            return;
        }
        self.emptied.0.insert(log, end);
        if let Some(mut ends) = self.emptied.ends(&earlier) {
            self.emptied.forget(&earlier);
            let (id, epoch) = (log.namespace, earlier.map.epoch);
            let high_ends = ends.split_off(earlier.logs().into());
            let retired = Change::Retired {
                id,
                epoch,
                ends,
                high_ends,
            };
            self.note(now, &retired, out);
        }
    }

    /// Forgets what is noted of logs that are not kept any more.
    pub(super) fn forget_emptied(&mut self) {
        let snapshot = &self.snapshot;
        let is_kept = |log: LogId| {
            let entry = snapshot.get(log.namespace);
            let earlier = entry.and_then(|entry| entry.earlier_of(log));
            earlier.is_some_and(EarlierMap::is_kept)
        };
        self.emptied.0.retain(|log, _| is_kept(*log));
    }
}
