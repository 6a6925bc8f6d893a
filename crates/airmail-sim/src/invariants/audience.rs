//! Audience: what is for some roles is given to nobody who has none of them, and to everybody who has one.
//!
//! The simulator knows of each message for whom it is, and of each client which roles it has, and compares the two in its
//! own way. Roles are made by commands while the run goes on, as namespaces are; what is for some is published only when
//! every node knows them, as a publisher asks for a role's number first.

use super::{Checked, Violation};
use crate::entropy::Entropy;
use crate::ledger::Entry;
use crate::message::MessageId;
use airmail_model::{NamespaceId, RoleId};

/// Roles that are made in a run that has any.
const ROLES: u32 = 3;
/// Rate of runs that have roles, in parts of a million.
const ON: u32 = 250_000;
/// Part of the messages that are for some, where some are, in parts of a million.
const RESTRICTED: u32 = 400_000;

/// Facts of the run by which it is judged.
#[derive(Debug)]
pub struct Audiences {
    chance: Entropy,
    /// There are to be roles.
    is_on: bool,
    /// Roles that every node knows.
    made: u32,
}

impl Audiences {
    /// The facts of a run that has not begun.
    #[must_use]
    pub fn new(seed: u64) -> Audiences {
        let mut chance = Entropy::new(seed ^ 0xa0d1_e9ce);
        Audiences {
            is_on: chance.chance(ON),
            chance,
            made: 0,
        }
    }

    /// The name of the role that is to be made next, if there is one to be made.
    #[must_use]
    pub fn to_be_made(&self) -> Option<String> {
        (self.is_on && self.made < ROLES).then(|| format!("role/{}", self.made + 1))
    }

    /// Every node knows the role that was to be made.
    pub const fn made(&mut self) {
        self.made += 1;
    }

    /// The roles that a new message is for. None: it is for everybody.
    #[must_use]
    pub fn of_message(&self, id: MessageId, namespace: NamespaceId) -> Vec<RoleId> {
        // Drawn from the message alone, so that no other draw depends on it.
        let of_space = Entropy::new(self.chance.clone().next() ^ u64::from(namespace.0) << 3);
        let mut chance = Entropy::new(self.chance.clone().next() ^ id.0 << 9);
        if self.made == 0 || !of_space.clone().coin() || !chance.chance(RESTRICTED) {
            return Vec::new();
        }
        let roles = 0..chance.between(1, 2);
        roles
            .map(|_| RoleId(chance.between(1, self.made.into()) as u32))
            .collect()
    }

    /// The roles that a client has, by its number. Those that are not made yet are nobody else's.
    #[must_use]
    pub fn of_client(&self, number: u32) -> Vec<RoleId> {
        let mut chance = Entropy::new(self.chance.clone().next() ^ u64::from(number) << 17);
        let roles = (1..=ROLES).map(RoleId);
        roles.filter(|_| self.is_on && chance.coin()).collect()
    }
}

/// Nothing is for some only.
impl Default for Audiences {
    fn default() -> Audiences {
        Audiences {
            is_on: false,
            ..Audiences::new(0)
        }
    }
}

/// Whether who has these roles is to be given a message. `None`: every role.
#[must_use]
pub fn is_for(entry: &Entry, roles: Option<&[RoleId]>) -> bool {
    let has = |role: &RoleId| roles.is_none_or(|roles| roles.contains(role));
    entry.audience.is_empty() || entry.audience.iter().any(has)
}

/// A message is given to somebody who has these roles.
///
/// # Errors
/// It is for others.
pub fn check_given(
    (id, entry): (MessageId, &Entry),
    roles: Option<&[RoleId]>,
    who: &str,
) -> Checked {
    if is_for(entry, roles) {
        return Ok(());
    }
    let (audience, id) = (&entry.audience, id.0);
    let detail = format!("{who}, who has {roles:?}, gets message {id} for {audience:?}");
    Err(Violation::new(
        "audience: nobody gets what is for others",
        detail,
    ))
}
