//! G2 and G7: the reason that a gap is told with is true.

use super::selections::Subject;
use super::{Checked, Violation};
use crate::ledger::Ledger;
use airmail_log::GapWhy;
use airmail_model::{Extent, LogId};

/// A reader's request, and the gap that it was told.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// The log.
    pub log: LogId,
    /// Topics that it reads.
    pub subject: Subject,
    /// The numbers that will not come.
    pub extent: Extent,
    /// Reason of the gap.
    pub why: GapWhy,
    /// Retention or a trim may have taken records of this log.
    pub retained: bool,
}

/// Checks a gap against the acknowledged messages.
///
/// # Errors
/// An acknowledged message is in it, and is neither damaged nor excused; or there was nothing that
/// could have been lost or removed.
pub fn check(ledger: &Ledger, told: &Told, who: &str) -> Checked {
    let Told { log, extent, .. } = *told;
    let broken = |what: String| {
        Err(Violation::new(
            "G2 a gap's reason is so",
            format!(
                "{who} was told {:?} for {log} {} to {}: {what}",
                told.why, extent.first, extent.last
            ),
        ))
    };
    if told.why == GapWhy::Retention {
        return if told.retained {
            Ok(())
        } else {
            broken("this log keeps everything".into())
        };
    }
    if told.why == GapWhy::Loss && ledger.damaged.is_empty() && !ledger.bereft.contains(&log) {
        return broken("nothing was lost".into());
    }
    for (number, id, entry) in ledger.acked(log, extent.first, extent.next()) {
        let held = told.subject.has(entry) && !ledger.may_be_missing(id);
        let damaged = told.why == GapWhy::Unused && ledger.damaged.contains(&id);
        if held || (damaged && told.subject.has(entry)) {
            return broken(format!("message {} has number {number}", id.0));
        }
    }
    Ok(())
}
