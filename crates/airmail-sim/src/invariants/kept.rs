//! G2: numbers that are told as gone by retention had to go: a trim had been asked for, they were
//! too old, or there was too much behind them.

use super::{Checked, Violation};
use crate::ledger::{Entry, Ledger};
use airmail_model::{Extent, LogId, Retention, Sequence, Wall};

/// Largest size of a stored message, with its part of batch, envelope and padding.
const MESSAGE_BYTES_MAX: u64 = 1_500;

/// Messages of one batch, at most.
const BATCH_MESSAGES_MAX: u64 = 40;

/// Contents that a log has to keep.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    /// The log.
    pub log: LogId,
    /// Bounds by which records may go.
    pub retention: Retention,
    /// A trim has been asked for up to here.
    pub trimmed: Sequence,
    /// The highest that the clock has shown.
    pub now: Wall,
}

impl Kept {
    /// Checks a gap told because of retention.
    ///
    /// # Errors
    /// An acknowledged message in it had to be kept.
    pub fn check(&self, ledger: &Ledger, extent: Extent, who: &str) -> Checked {
        // What goes, goes from the front: the last in the gap had the best right to stay.
        let from = extent.first.max(self.trimmed);
        let last = ledger.acked(self.log, from, extent.next()).last();
        let Some((number, id, entry)) = last else {
            return Ok(());
        };
        if ledger.may_be_missing(id) {
            return Ok(());
        }
        let old = self.retention.time_ms.is_some_and(|ms| {
            let age = i64::try_from(ms.saturating_mul(1_000)).unwrap_or(i64::MAX);
            let appended = entry.acked.map_or(0, |acked| acked.appended.0);
            appended < self.now.0.saturating_sub(age)
        });
        let much = self.retention.bytes.is_some_and(|max| {
            // Who was never told of an ack may be behind it too.
            let ours = ledger.iter().filter(|(_, entry)| entry.log == self.log);
            let acked = |entry: &Entry| entry.acked.map(|acked| acked.sequence);
            let behind = ours.filter(|(_, entry)| acked(entry).is_none_or(|at| at >= number));
            // A small part of the bound may go as a whole, and a batch always does.
            (behind.count() as u64 + BATCH_MESSAGES_MAX) * MESSAGE_BYTES_MAX > max - max / 16
        });
        if old || much {
            return Ok(());
        }
        Err(Violation::new(
            "G2 what has gone had to go",
            format!(
                "{who} was told that {} to {} have gone by retention ({:?}), but number {number} \
                 (message {}) had to stay; trimmed before {}",
                extent.first, extent.last, self.retention, id.0, self.trimmed
            ),
        ))
    }
}
