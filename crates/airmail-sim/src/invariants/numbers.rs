//! G3 and G4: a number is one message's for ever, and a message has one number.

use super::{Checked, Violation};
use crate::message::MessageId;
use airmail_model::{Incarnation, LogId, Sequence};
use std::collections::{BTreeMap, BTreeSet};

/// A place in a log's life.
pub type Place = (LogId, Incarnation, Sequence);

/// Every number that was ever told to anyone.
#[derive(Debug, Default)]
pub struct Numbers {
    messages: BTreeMap<Place, MessageId>,
    places: BTreeMap<MessageId, Place>,
    /// These may have two places.
    twice: BTreeSet<MessageId>,
}

impl Numbers {
    /// A message was seen at a place.
    ///
    /// # Errors
    /// Another message was seen there before (G4: numbers are never reused), or the message was
    /// seen elsewhere (G3: nothing is stored twice).
    pub fn see(&mut self, place: Place, id: MessageId, how: &str) -> Checked {
        let (log, incarnation, sequence) = place;
        let before = *self.messages.entry(place).or_insert(id);
        if before != id {
            return Err(Violation::new(
                "G4 a number is never reused",
                format!(
                    "{log} (life {incarnation}) number {sequence}: message {} {how}, \
                     message {} before",
                    id.0, before.0
                ),
            ));
        }
        if self.twice.contains(&id) {
            return Ok(());
        }
        let earlier = *self.places.entry(id).or_insert(place);
        if earlier != place {
            return Err(Violation::new(
                "G3 nothing is stored twice",
                format!(
                    "message {} {how} as {log} number {sequence} (life {incarnation}), before as \
                     {} number {} (life {})",
                    id.0, earlier.0, earlier.2, earlier.1
                ),
            ));
        }
        Ok(())
    }

    /// Messages were taken back with the files that they were in: their numbers are free.
    pub fn forget_all(&mut self, gone: impl Fn(&MessageId) -> bool) {
        self.places.retain(|id, _| !gone(id));
        self.messages.retain(|_, id| !gone(id));
    }

    /// A message may be in the files that were put back, and whoever published it does not know, or was
    /// told that it is not stored: it may be published once more.
    pub fn may_be_twice(&mut self, id: MessageId) {
        self.twice.insert(id);
    }

    /// A message that was lost, as its durability allows, may be published again under another
    /// number.
    pub fn release(&mut self, id: MessageId) {
        self.places.remove(&id);
    }
}
