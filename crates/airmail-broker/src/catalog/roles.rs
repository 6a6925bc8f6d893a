//! The roles as they stand: names for whoever may receive what is addressed to them.
//!
//! They are part of the fold of log 0, so every node knows the same ones, and of the same snapshot as the namespaces. A
//! number is never given again, so that what was addressed to a role that is deleted is for nobody who comes later.

use airmail_model::role::ROLES_MAX;
use airmail_model::{Role, RoleId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Every role, by name and by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleDirectory {
    by_name: BTreeMap<Arc<str>, RoleId>,
    by_id: BTreeMap<RoleId, Arc<str>>,
    /// The highest number that was ever given.
    last: RoleId,
}

impl RoleDirectory {
    /// The number of a role.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<RoleId> {
        self.by_name.get(name).copied()
    }

    /// The role of a name.
    #[must_use]
    pub fn role(&self, name: &str) -> Option<Role> {
        let (name, id) = self.by_name.get_key_value(name)?;
        let name = name.to_string();
        Some(Role { id: *id, name })
    }

    /// Whether there is a role of this number.
    #[must_use]
    pub fn has(&self, id: RoleId) -> bool {
        self.by_id.contains_key(&id)
    }

    /// Each role, in byte order of name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Role> {
        self.by_name.iter().map(|(name, id)| Role {
            id: *id,
            name: name.to_string(),
        })
    }

    /// Number of roles.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// The highest number that was ever given.
    pub(crate) fn last(&self) -> RoleId {
        self.last
    }

    /// The number of the next role; `None` when the last one was given.
    pub(super) fn next_id(&self) -> Option<RoleId> {
        self.last.0.checked_add(1).map(RoleId)
    }

    /// Adds a role; `false` if its number was given before, its name is in use, or there are as many as can be.
    pub(super) fn create(&mut self, id: RoleId, name: &str) -> bool {
        if id <= self.last || self.by_name.contains_key(name) || self.len() >= ROLES_MAX {
            return false;
        }
        let name: Arc<str> = name.into();
        self.by_name.insert(Arc::clone(&name), id);
        self.by_id.insert(id, name);
        self.last = id;
        true
    }

    /// Takes a role out; `false` if there is none of this number.
    pub(super) fn delete(&mut self, id: RoleId) -> bool {
        let Some(name) = self.by_id.remove(&id) else {
            // Input: a command about a role that another one has deleted.
            return false;
        };
        self.by_name.remove(&name);
        true
    }
}
