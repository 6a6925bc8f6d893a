//! Log 0: opened, read to its end and ever on, and folded.

use super::change::{Change, LAST_VERSION, SYSTEM_EPOCH};
use super::commands::Became;
use super::messages::{CatalogEffect, CatalogEffects};
use super::{CatalogCore, Phase};
use crate::storage_refusals;
use airmail_log::{Bounds, GapWhy, LogSpec, ReaderId, Refusal, Soundness, Stored};
use airmail_model::bug;
use airmail_model::{
    Error, ErrorCode, Extent, LogId, Now, Provisions, Retention, Sequence, StorageName,
};

/// State of log 0.
#[derive(Debug, Default)]
pub(super) struct SystemLog {
    /// The storage was asked to open it, and has not answered.
    pub(super) is_opening: bool,
    /// The storage has a reader of it.
    pub(super) is_read: bool,
    /// The first number that has not been folded.
    pub(super) next: Sequence,
    /// Something that it says is not known, because numbers are missing or of a version that this program
    /// does not read: there may be no namespace.
    pub(super) is_torn: bool,
}

impl CatalogCore {
    pub(super) fn open(&mut self, out: &mut CatalogEffects) {
        self.log.is_opening = true;
        out.push(CatalogEffect::Open(LogSpec {
            durability: self.config.first.strongest,
            retention: Retention::default(),
            epoch: SYSTEM_EPOCH,
            as_of: Sequence(0),
            storage: StorageName::FIRST,
            provisions: Provisions::NONE,
            soundness: Soundness::default(),
        }));
    }

    pub(super) fn opened(&mut self, bounds: &Bounds, out: &mut CatalogEffects) {
        if self.phase != Phase::Opening {
            bug!("log 0 is opened at {} once more", bounds.first);
            return;
        }
        self.phase = Phase::Replaying;
        self.failure = None;
        self.log.is_opening = false;
        self.log.next = bounds.first;
        self.read(out);
    }

    pub(super) fn open_refused(&mut self, why: &Refusal, out: &mut CatalogEffects) {
        self.failure = Some(storage_refusals::error(why, LogId::SYSTEM, None));
        self.log.is_opening = false;
        out.push(CatalogEffect::RetryLater);
    }

    /// Reads log 0 on, from what has been folded.
    fn read(&mut self, out: &mut CatalogEffects) {
        self.log.is_read = true;
        out.push(CatalogEffect::Read {
            from: self.log.next,
            credit_bytes: self.config.read_window_bytes,
        });
    }

    /// The storage has failed the reader: it reads on from there, later.
    pub(super) fn reader_ended(&mut self, out: &mut CatalogEffects) {
        self.log.is_read = false;
        out.push(CatalogEffect::RetryLater);
    }

    /// Opens log 0, reads it on, or makes the first namespace, if one of them has failed.
    pub(super) fn retry(&mut self, now: Now, out: &mut CatalogEffects) {
        if self.log.is_read || self.log.is_opening {
            return self.begin_again(now, out);
        }
        if self.phase == Phase::Opening {
            self.open(out);
        } else {
            self.read(out);
        }
    }

    /// Folds the next commands of log 0.
    pub(super) fn batch(
        &mut self,
        now: Now,
        r: ReaderId,
        stored: &Stored,
        out: &mut CatalogEffects,
    ) {
        for record in stored.batch.iter() {
            // What cannot be read is void for everybody: a later version counts only behind a raise to it.
            let change = Change::decode(record.payload);
            let at = stored.base.plus(record.index.into());
            let applied = change.as_ref().is_some_and(|c| self.fold.apply(c, at));
            #[cfg(feature = "sabotage")]
            if self.config.bug == Some(crate::sabotage::Bug::NumberFreed) {
                self.fold.free_numbers();
            }
            #[cfg(feature = "sabotage")]
            if self.config.bug == Some(crate::sabotage::Bug::ProvisionsForgotten) {
                self.fold.forget_provisions();
            }
            let became = if applied {
                Became::Applied
            } else {
                Became::Void
            };
            self.met(Extent::starting_at(at, 1), became);
            if let Some(change) = change.filter(|_| applied) {
                self.changed(&change, out);
            }
        }
        self.log.next = stored.extent.next();
        if self.has_begun() && !self.log.is_torn {
            // Whatever has become of this node's own first command: somebody has made a namespace.
            self.failure = None;
        }
        if self.fold.version > LAST_VERSION && !self.log.is_torn {
            let version = self.fold.version;
            let error = Error::new(ErrorCode::StorageFailed)
                .field("log")
                .value(format_args!(
                    "{} has commands of version {version}",
                    LogId::SYSTEM
                ))
                .limit(format_args!(
                    "{LAST_VERSION}, by a later version of airmail"
                ));
            self.tear(error);
            self.check_ready();
        }
        let bytes = u32::try_from(stored.batch.bytes().len()).unwrap_or(u32::MAX);
        out.push(CatalogEffect::Credit { r, bytes });
        self.conclude(now, out);
    }

    /// Something of log 0 is missing: what was folded may be wrong. What is known goes on being
    /// served, but nothing is changed any more: the commands that wait are refused as soon as it is known
    /// what became of the one under way.
    pub(super) fn gap(&mut self, now: Now, extent: Extent, why: GapWhy, out: &mut CatalogEffects) {
        self.log.next = extent.next();
        if why != GapWhy::Unused {
            let lost = format!("{} to {}", extent.first, extent.last);
            let error = Error::new(ErrorCode::StorageFailed)
                .field("log")
                .value(format_args!("{} lacks numbers {lost}", LogId::SYSTEM))
                .limit("restored from a copy");
            self.tear(error);
            self.met(extent, Became::Lost);
            self.conclude(now, out);
            self.check_ready();
        }
    }

    /// Notes why not all that log 0 says is known from here on.
    fn tear(&mut self, error: Error) {
        self.failure = Some(error);
        self.log.is_torn = true;
    }

    /// Log 0 has been read to its end: the first time, its namespaces are known.
    pub(super) fn tail(&mut self, now: Now, out: &mut CatalogEffects) {
        if self.phase != Phase::Replaying {
            return;
        }
        self.phase = Phase::Settling;
        self.order_all(out);
        if !self.has_begun() && self.failure.is_none() {
            self.create_default(now, out);
        }
        self.check_ready();
    }

    /// Whether a namespace was ever made, or it cannot be known.
    pub(super) fn has_begun(&self) -> bool {
        self.fold.last_id.0 != 0 || self.log.is_torn
    }

    /// Ready, once nothing of the start is under way. Where log 0 is damaged there may be no
    /// namespace: what is known is served, and [`CatalogCore::failure`] says why it is not all.
    pub(super) fn check_ready(&mut self) {
        let waits = self.current.is_some()
            || self.settling.values().any(|s| s.left > 0)
            || self.snapshot.is_empty() && !self.has_begun();
        if self.phase == Phase::Settling && !waits {
            self.phase = Phase::Ready;
            self.settling.clear();
        }
    }
}
