//! Verdicts: whether a record may be handed over to somebody, by what the message brings along.
//!
//! A message may say until when it is of use (its time to live) and who may have it (its audience). Both are
//! held at the moment of handing over, wherever that is, and nothing is taken out of a log for either.
//! [`judge`] is the order in which they are asked; [`Roles`] says who may have what; [`expired`] and
//! [`ClockBound`] say when, by a clock that is somewhere else. [`Batch::is_plain`] says of a whole batch
//! that there is nothing to judge.
//!
//! [`Batch::is_plain`]: crate::Batch::is_plain

mod clock_bound;
mod expiry;
mod roles;

pub use clock_bound::{ClockBound, ClockReading};
pub use expiry::{LogTime, expired};
pub use roles::Roles;

use crate::batch::Record;
use crate::time::AppendTime;

/// An answer to whether a record is handed over, with the reason if it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    HandOver,
    /// It is for roles that the subscriber has not. Nobody is told.
    Forbidden,
    /// The subscriber has not asked for it. Nobody is told.
    Unwanted,
    /// It is too old. Told to who asked to be told.
    Expired,
}

/// Judges a record for one subscriber: first whether its roles may have it, then whether it `wants` it, and
/// only then its age at `now`, which must not be before what the clock of the log shows ([`LogTime`]). So
/// nobody learns of the expiry of what it may not know of, or has not asked for.
pub fn judge(
    record: &Record<'_>,
    appended: AppendTime,
    now: AppendTime,
    roles: &Roles,
    wants: impl FnOnce(&Record<'_>) -> bool,
) -> Verdict {
    if !roles.may_have(record.audience) {
        Verdict::Forbidden
    } else if !wants(record) {
        Verdict::Unwanted
    } else if record
        .ttl_ms
        .is_some_and(|ttl_ms| expired(now, appended, ttl_ms))
    {
        Verdict::Expired
    } else {
        Verdict::HandOver
    }
}

#[cfg(test)]
mod tests;
