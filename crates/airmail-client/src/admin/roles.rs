//! Administration of roles.

use super::Admin;
use crate::nodes::Node;
use airmail_model::{Error, Role, RoleId};
use airmail_proto::v1;

impl Admin {
    /// Creates a role, to which messages can be addressed ([`Message::for_roles`](airmail_model::Message::for_roles)).
    ///
    /// # Errors
    /// `ROLE_EXISTS`; `INVALID_ARGUMENT` for a name that cannot be, or beyond 65,536 roles.
    pub async fn create_role(&self, name: &str) -> Result<Role, Error> {
        let name = name.to_owned();
        let request = v1::CreateRoleRequest { name };
        let answer = self.shared.call(false, Node::create_role, request).await?;
        Ok(role_from_proto(answer))
    }

    /// Finds a role by its name.
    ///
    /// # Errors
    /// `ROLE_NOT_FOUND`.
    pub async fn role(&self, name: &str) -> Result<Role, Error> {
        let name = name.to_owned();
        let request = v1::GetRoleRequest { name };
        let answer = self.shared.call(true, Node::get_role, request).await?;
        Ok(role_from_proto(answer))
    }

    /// Lists all roles, in byte order of name.
    ///
    /// # Errors
    /// No node answers.
    pub async fn roles(&self) -> Result<Vec<Role>, Error> {
        let request = v1::ListRolesRequest {};
        let answer = self.shared.call(true, Node::list_roles, request).await?;
        Ok(answer.roles.into_iter().map(role_from_proto).collect())
    }

    /// Deletes a role. What is addressed to it stays so, and nobody who comes later has it.
    ///
    /// # Errors
    /// `ROLE_NOT_FOUND`.
    pub async fn delete_role(&self, name: &str) -> Result<(), Error> {
        let name = name.to_owned();
        let request = v1::DeleteRoleRequest { name };
        let deleted = self.shared.call(false, Node::delete_role, request);
        deleted.await.map(|_| ())
    }
}

fn role_from_proto(role: v1::Role) -> Role {
    Role {
        id: RoleId(role.id),
        name: role.name,
    }
}
