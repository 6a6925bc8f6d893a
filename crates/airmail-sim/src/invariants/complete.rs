//! G1, G2, G4: in the end everyone has everything: each acknowledged message of a reader's range
//! was given to it, or was in a gap that it was told.

use super::filters::Wishes;
use super::selections::Subject;
use super::{Checked, Violation, audience};
use crate::ledger::Ledger;
use crate::message::MessageId;
use airmail_model::{AppendTime, Extent, LogId, RoleId, Sequence};
use std::collections::BTreeSet;

/// Deliveries to a reader in its whole life.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// Messages.
    pub messages: BTreeSet<MessageId>,
    /// Messages that its client has found too old to be handed over.
    pub expired: BTreeSet<MessageId>,
    /// Numbers that it was told will not come, because they are removed or lost.
    pub missing: Vec<Extent>,
    /// Roles that it has. `None`: every role.
    pub roles: Option<Vec<RoleId>>,
    /// Messages of its topic that it wants. `None`: all.
    pub wishes: Option<Wishes>,
    /// Time before which appended messages were not asked for. Time does not run backwards in a
    /// log, unless damage, or a crash that a durability below `fsync` allows to cost something,
    /// destroyed the record of how far it was; or that the storage's clocks are several. It may from
    /// one log of a line to the next.
    pub not_before: Option<AppendTime>,
    /// Time from which appended messages were not asked for.
    pub not_after: Option<AppendTime>,
}

/// Checks the range `[from, next)` of a reader of one log.
///
/// # Errors
/// An acknowledged message is neither given nor told as missing.
pub fn check(
    ledger: &Ledger,
    log: LogId,
    subject: Subject,
    range: (Sequence, Sequence),
    given: &Given,
    who: &str,
) -> Checked {
    for (number, id, entry) in ledger.acked(log, range.0, range.1) {
        let wanted = subject.has(entry);
        let is_early = || {
            let appended = entry.acked.map(|acked| acked.appended);
            let goes_back = ledger.places.is_some()
                || !ledger.damaged.is_empty()
                || ledger.bereft.contains(&log)
                || ledger.lines.may_move(log);
            goes_back
                && appended
                    .zip(given.not_before)
                    .is_some_and(|(at, from)| at < from)
        };
        let is_late = || {
            let appended = entry.acked.map(|acked| acked.appended);
            let late = appended.zip(given.not_after);
            ledger.places.is_some() && late.is_some_and(|(at, until)| at >= until)
        };
        let told = || given.missing.iter().any(|extent| extent.contains(number));
        if !wanted
            || !audience::is_for(entry, given.roles.as_deref())
            || (given.wishes.as_ref()).is_some_and(|wishes| !wishes.want(entry, number))
            || given.messages.contains(&id)
            || given.expired.contains(&id)
            || ledger.expiry.excuses(entry)
            || entry.excused
            || told()
            || is_early()
            || is_late()
        {
            continue;
        }
        return Err(Violation::new(
            "G2 everything acknowledged arrives",
            format!(
                "{who}, at {} of {log} since {}, never got message {} (number {number})",
                range.1, range.0, id.0
            ),
        ));
    }
    Ok(())
}
