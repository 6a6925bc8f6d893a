//! G2 and G3: a publisher's messages of one topic keep their order, and each comes once.

use super::{Checked, Violation};
use crate::ledger::Ledger;
use crate::message::MessageId;
use airmail_model::{Sequence, TopicHash};
use std::collections::BTreeMap;

/// One reader's view of each publisher's messages.
#[derive(Clone, Debug, Default)]
pub struct Order {
    last: BTreeMap<(u32, TopicHash), MessageId>,
    number: Option<Sequence>,
}

impl Order {
    /// The reader was given a message.
    ///
    /// # Errors
    /// Its number is not above the last one's, or the publisher made it before one seen already.
    pub fn see(&mut self, ledger: &Ledger, id: MessageId, number: Sequence, who: &str) -> Checked {
        if let Some(last) = self.number
            && number <= last
        {
            return Err(Violation::new(
                "G2 numbers rise",
                format!("{who} got number {number} after {last} (message {})", id.0),
            ));
        }
        self.number = Some(number);
        let Some(entry) = ledger.get(id) else {
            return Err(Violation::new(
                "G7 what is served was published",
                format!("{who} got message {}, which nobody published", id.0),
            ));
        };
        if entry.refused {
            return Err(Violation::new(
                "G8 what was refused is not stored",
                format!(
                    "{who} got message {}, whose publisher was told of its refusal",
                    id.0
                ),
            ));
        }
        if entry.reborn {
            // Lost below its durability, it may have been published once more.
            return Ok(());
        }
        let key = (entry.publisher, entry.topic);
        if let Some(last) = self.last.insert(key, id)
            && id <= last
        {
            return Err(Violation::new(
                "G3 a publisher's order holds, and nothing comes twice",
                format!("{who} got message {} after {} of one topic", id.0, last.0),
            ));
        }
        Ok(())
    }
}
