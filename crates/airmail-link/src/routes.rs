//! Routes: which shard a call goes to.

use crate::homes::LogHomes;
use airmail_log::{Call, Completion, ReaderId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Routes by log, and for what is said to a reader, by where that was started.
#[derive(Debug)]
pub(crate) struct Routes {
    homes: Arc<LogHomes>,
    /// Where each reader was started.
    readers: BTreeMap<ReaderId, usize>,
}

impl Routes {
    pub(crate) fn new(homes: Arc<LogHomes>) -> Routes {
        Routes {
            homes,
            readers: BTreeMap::new(),
        }
    }

    /// The shard that a call is for. A reader that is not known has ended.
    pub(crate) fn home(&mut self, call: &Call) -> Option<usize> {
        let Some(log) = call.log() else {
            // Input: what is said to a reader, which goes where that was started.
            return self.readers.get(&call.reader()?).copied();
        };
        let home = self.homes.home(log);
        if let Call::Read { r, .. } = call {
            self.readers.insert(*r, home);
        }
        Some(home)
    }

    /// Forgets the readers that have ended among these completions.
    pub(crate) fn forget_ended(&mut self, completions: &[Completion]) {
        for completion in completions {
            if let Completion::Ended { r, .. } = completion {
                self.readers.remove(r);
            }
        }
    }
}
