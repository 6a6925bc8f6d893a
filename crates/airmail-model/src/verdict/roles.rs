//! The roles of a subscriber, against the audience of a message.

use crate::batch::Audience;
use crate::id::RoleId;
use std::sync::Arc;

/// The roles that somebody has.
///
/// ```
/// use airmail_model::RoleId;
/// use airmail_model::verdict::Roles;
/// let roles = Roles::of([RoleId(7), RoleId(3), RoleId(7)]);
/// assert_eq!(roles, Roles::of([RoleId(3), RoleId(7)]));
/// assert_eq!(Roles::default(), Roles::of([]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Roles(Held);

/// Equal roles are equal values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Held {
    None,
    All,
    /// Ascending, each once, at least one.
    These(Arc<[RoleId]>),
}

impl Roles {
    /// No role at all.
    pub const NONE: Roles = Roles(Held::None);
    /// Every role that there is or will be.
    pub const ALL: Roles = Roles(Held::All);

    /// These roles, in any order.
    #[must_use]
    pub fn of(roles: impl IntoIterator<Item = RoleId>) -> Roles {
        let mut roles: Vec<RoleId> = roles.into_iter().collect();
        roles.sort_unstable();
        roles.dedup();
        if roles.is_empty() {
            return Roles::NONE;
        }
        Roles(Held::These(roles.into()))
    }

    /// Whether they are none.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.0 == Held::None
    }

    /// Each of them, ascending; `None` if they are all that there are.
    #[must_use]
    pub fn each(&self) -> Option<&[RoleId]> {
        match &self.0 {
            Held::None => Some(&[]),
            Held::All => None,
            Held::These(held) => Some(held),
        }
    }

    /// Whether who has these roles may have what is for this audience: one of them is among it, or it is empty.
    #[must_use]
    pub fn may_have(&self, mut audience: Audience<'_>) -> bool {
        if audience.is_empty() {
            return true;
        }
        let Some(mut rest) = self.each() else {
            // Input: somebody who has every role.
            return true;
        };
        // Both ascend, so what is below one role of the audience is below the next.
        audience.any(|role| {
            rest = &rest[rest.partition_point(|held| *held < role)..];
            rest.first() == Some(&role)
        })
    }
}

/// No role at all: of what has an audience, nothing.
impl Default for Roles {
    fn default() -> Roles {
        Roles::NONE
    }
}
