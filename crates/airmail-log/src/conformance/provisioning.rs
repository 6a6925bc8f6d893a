//! Provisions of the suite's logs, where a storage asks for them: as a node would, for each log that is made.
//!
//! A case opens a log by a spec that says nothing of provisions. The driver has them made when the log is new, which
//! it is again when it was deleted and a spec of a later place is there; a spec of an earlier place names what
//! was made before.

use super::{Driver, Subject};
use crate::contract::{Call, Completion, LogSpec, Tag};
use airmail_model::{LogId, Provisions, Sequence};

/// Provisions of a log, and the places of the last spec and deletion.
#[derive(Debug, Default)]
pub(super) struct Provisioned {
    provisions: Option<Provisions>,
    opened: Sequence,
    deleted: Option<Sequence>,
}

impl Provisioned {
    /// Takes note of a deletion, unless the log was made or changed by a later command.
    pub(super) fn delete(&mut self, as_of: Sequence) {
        if as_of >= self.opened {
            self.deleted = self.deleted.max(Some(as_of));
        }
    }

    /// The provisions for a spec of this place, if they need not be made.
    fn open(&mut self, as_of: Sequence) -> Option<Provisions> {
        self.opened = self.opened.max(as_of);
        if self.deleted.is_some_and(|deleted| as_of >= deleted) {
            self.deleted = None;
            self.provisions = None;
        }
        self.provisions
    }
}

impl<S: Subject> Driver<'_, S> {
    /// A spec with the provisions that the storage asks for; or the tag under which it has refused to make them.
    pub(super) fn provisioned_for(
        &mut self,
        log: LogId,
        spec: &LogSpec,
    ) -> Result<Box<LogSpec>, Tag> {
        let mut spec = Box::new(*spec);
        let is_here = spec.storage.is_first() && log != LogId::SYSTEM;
        if !self.capabilities().provisions || !is_here || !spec.provisions.is_none() {
            return Ok(spec);
        }
        let known = self.provisioned.entry(log).or_default().open(spec.as_of);
        if let Some(provisions) = known {
            spec.provisions = provisions;
            return Ok(spec);
        }
        let tag = self.call(|t| Call::Provision {
            t,
            log,
            logs: 1,
            spec: spec.clone(),
        });
        match self.answer(tag) {
            Completion::Provisioned { provisions, .. } => {
                spec.provisions = *provisions;
                self.provisioned.entry(log).or_default().provisions = Some(*provisions);
                Ok(spec)
            }
            refused => {
                self.answers.insert(tag, refused);
                Err(tag)
            }
        }
    }
}
