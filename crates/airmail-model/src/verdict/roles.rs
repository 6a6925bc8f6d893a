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

/// Ascending, each once: equal roles are equal values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Held {
    All,
    These(Arc<[RoleId]>),
}

impl Roles {
    /// Every role that there is or will be.
    pub const ALL: Roles = Roles(Held::All);

    /// These roles, in any order.
    #[must_use]
    pub fn of(roles: impl IntoIterator<Item = RoleId>) -> Roles {
        let mut roles: Vec<RoleId> = roles.into_iter().collect();
        roles.sort_unstable();
        roles.dedup();
        Roles(Held::These(roles.into()))
    }

    /// Whether who has these roles may have what is for this audience: one of them is among it, or it is empty.
    #[must_use]
    pub fn may_have(&self, mut audience: Audience<'_>) -> bool {
        if audience.is_empty() {
            return true;
        }
        match &self.0 {
            Held::All => true,
            Held::These(held) => {
                // Both ascend, so what is below one role of the audience is below the next.
                let mut rest = &held[..];
                audience.any(|role| {
                    rest = &rest[rest.partition_point(|held| *held < role)..];
                    rest.first() == Some(&role)
                })
            }
        }
    }
}

/// No role at all: of what has an audience, nothing.
impl Default for Roles {
    fn default() -> Roles {
        Roles::of([])
    }
}
