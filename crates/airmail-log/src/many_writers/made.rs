//! Provisions of the logs: nothing but a number for each namespace, which has to be brought along.

use crate::contract::Refusal;
use airmail_model::{LogId, NamespaceId, Provisions, bug};
use std::collections::{BTreeMap, BTreeSet};

/// Provisions for some logs.
#[derive(Debug)]
struct Made {
    first: LogId,
    logs: u16,
    /// One of them was opened: log 0 names them.
    is_named: bool,
    /// Indexes of those that are deleted.
    deleted: BTreeSet<u16>,
}

impl Made {
    fn has(&self, log: LogId) -> bool {
        let index = log.index.0.checked_sub(self.first.index.0);
        log.namespace == self.first.namespace && index.is_some_and(|index| index < self.logs)
    }
}

/// All provisions, by their number.
#[derive(Debug, Default)]
pub(super) struct Provisioned {
    last: u64,
    /// Number of those that were withdrawn.
    pub(super) withdrawn: u64,
    made: BTreeMap<u64, Made>,
}

fn number_of(provisions: &Provisions) -> Option<u64> {
    let bytes = provisions.as_bytes().try_into().ok()?;
    Some(u64::from_le_bytes(bytes))
}

impl Provisioned {
    pub(super) fn make(&mut self, first: LogId, logs: u16) -> Provisions {
        self.last += 1;
        let made = Made {
            first,
            logs,
            is_named: false,
            deleted: BTreeSet::new(),
        };
        self.made.insert(self.last, made);
        Provisions::new(&self.last.to_le_bytes()).unwrap_or_default()
    }

    fn find(&mut self, log: LogId, provisions: &Provisions) -> Option<&mut Made> {
        let made = self.made.get_mut(&number_of(provisions)?)?;
        made.has(log).then_some(made)
    }

    /// A log is to be opened with these.
    ///
    /// # Errors
    /// They are not there, or not for it.
    pub(super) fn open(&mut self, log: LogId, provisions: &Provisions) -> Result<(), Refusal> {
        match self.find(log, provisions) {
            Some(made) => {
                made.is_named = true;
                Ok(())
            }
            None => Err(Refusal::Io(format!("{log} has no {provisions:?}"))),
        }
    }

    /// A log is deleted. The provisions go with the last of their logs.
    pub(super) fn delete(&mut self, log: LogId, provisions: &Provisions) {
        let Some(made) = self.find(log, provisions) else {
            // Input: a deletion that is done again, or of a log that was never made.
            return;
        };
        made.deleted.insert(log.index.0);
        if made.deleted.len() == usize::from(made.logs)
            && let Some(number) = number_of(provisions)
        {
            self.made.remove(&number);
        }
    }

    /// No namespace will ever have these.
    pub(super) fn withdraw(&mut self, provisions: &Provisions) {
        let Some(number) = number_of(provisions) else {
            bug!("withdrawn: {provisions:?}, which were never made");
            return;
        };
        if let Some(made) = self.made.get(&number).filter(|made| made.is_named) {
            bug!(
                "withdrawn: {provisions:?} of {}, which are in use",
                made.first
            );
            return;
        }
        self.withdrawn += u64::from(self.made.remove(&number).is_some());
    }

    /// Namespaces with provisions that a log was opened with.
    pub(super) fn named(&self) -> impl Iterator<Item = NamespaceId> + '_ {
        let named = self.made.values().filter(|made| made.is_named);
        named.map(|made| made.first.namespace)
    }
}
