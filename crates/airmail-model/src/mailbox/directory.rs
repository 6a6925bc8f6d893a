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
    /// When it was created.
    pub created_at: Wall,
}

/// A queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Its number.
    pub id: QueueId,
    /// Its name.
    pub name: Name,
    /// When it was created.
    pub created_at: Wall,
    /// What it was created with.
    pub settings: QueueSettings,
}

/// What can be chosen for a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueSettings {
    /// Where messages go that expire, or that were handed out too often; none: what expires is
    /// removed.
    pub dead_letter: Option<QueueId>,
    /// After so many leases that ended without an acknowledgement a message is a dead letter;
    /// none: never. Needs `dead_letter`.
    pub deliveries_max: Option<NonZeroU32>,
}

impl QueueSettings {
    /// Whether they fit together.
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

/// Which accounts or queues are listed, always by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which<Id> {
    /// The first ones with a higher number than this.
    After {
        /// 0 for those from the beginning.
        id: Id,
        /// How many at most: 1 to [`LIST_MAX`].
        limit: usize,
    },
    /// Those that there are of these, at most [`LIST_MAX`].
    These(Vec<Id>),
}

impl<Id> Which<Id> {
    /// Whether it keeps the bounds.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`, with the field.
    pub fn check(&self) -> Result<(), Error> {
        let (field, count) = match self {
            Which::After { limit, .. } => ("limit", *limit),
            Which::These(ids) => ("ids", ids.len()),
        };
        if count == 0 || count > LIST_MAX {
            return Err(invalid(field, count, format!("1 to {LIST_MAX}")));
        }
        Ok(())
    }
}
