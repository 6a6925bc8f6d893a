//! Accounts and queues, as they are created and listed.

use super::id::{AccountId, Name, QueueId};
use super::message::invalid;
use crate::{Error, Wall};
use std::num::NonZeroU32;

/// Accounts or queues that one request may list.
pub const LIST_MAX: usize = 1000;

/// An account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its number.
    pub id: AccountId,
    /// Its name.
    pub name: Name,
    /// The time at which it was created.
    pub created_at: Wall,
}

/// A queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Its number.
    pub id: QueueId,
    /// Its name.
    pub name: Name,
    /// The time at which it was created.
    pub created_at: Wall,
    /// The settings that it was created with.
    pub settings: QueueSettings,
}

/// The settings of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueSettings {
    /// The queue for messages that expire or were handed out too often; none: expired messages are
    /// removed.
    pub dead_letter: Option<QueueId>,
    /// The number of leases that may end without an acknowledgement before a message is a dead letter;
    /// none: any number. Needs `dead_letter`.
    pub deliveries_max: Option<NonZeroU32>,
}

impl QueueSettings {
    /// Checks that they fit together.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a bound on deliveries without a queue for dead letters.
    pub fn check(&self) -> Result<(), Error> {
        match (self.deliveries_max, self.dead_letter) {
            (Some(most), None) => Err(invalid(
                "deliveries_max",
                most,
                "only with a queue for dead letters".to_owned(),
            )),
            _ => Ok(()),
        }
    }
}

/// A selection of accounts or queues, which are listed by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection<Id> {
    /// The first ones with a higher number than `id`.
    After {
        /// The number before the first; 0 for the beginning.
        id: Id,
        /// The number of entries wanted, 1 to [`LIST_MAX`].
        limit: usize,
    },
    /// The existing ones among these numbers, of which there are at most [`LIST_MAX`].
    These(Vec<Id>),
}

impl<Id> Selection<Id> {
    /// Checks the bounds.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`, with the field.
    pub fn check(&self) -> Result<(), Error> {
        let (field, count) = match self {
            Selection::After { limit, .. } => ("limit", *limit),
            Selection::These(ids) => ("ids", ids.len()),
        };
        if count == 0 || count > LIST_MAX {
            return Err(invalid(field, count, format!("1 to {LIST_MAX}")));
        }
        Ok(())
    }
}
