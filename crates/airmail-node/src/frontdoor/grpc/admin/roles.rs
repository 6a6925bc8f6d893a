//! Admin of roles: created, found, listed and deleted.

use crate::frontdoor::grpc::{Services, principal_of};
use airmail_broker::{Command, Outcome};
use airmail_model::{Error, ErrorCode, Role};
use airmail_proto::v1;
use tonic::Request;

fn role_to_proto(role: Role) -> v1::Role {
    v1::Role {
        name: role.name,
        id: role.id.0,
    }
}

pub(super) async fn create(
    services: &Services,
    request: Request<v1::CreateRoleRequest>,
) -> Result<v1::Role, Error> {
    let principal = principal_of(&request)?;
    services.handle().check_up()?;
    let name = request.into_inner().name;
    let command = Command::CreateRole { name };
    match services.command(&principal, command).await? {
        Outcome::Role(role) => Ok(role_to_proto(role)),
        _ => Err(Error::new(ErrorCode::Internal)),
    }
}

pub(super) async fn delete(
    services: &Services,
    request: Request<v1::DeleteRoleRequest>,
) -> Result<v1::DeleteRoleResponse, Error> {
    let principal = principal_of(&request)?;
    services.handle().check_up()?;
    let name = request.into_inner().name;
    let command = Command::DeleteRole { name };
    match services.command(&principal, command).await? {
        Outcome::Deleted => Ok(v1::DeleteRoleResponse {}),
        _ => Err(Error::new(ErrorCode::Internal)),
    }
}

pub(super) fn find(services: &Services, name: String) -> Result<v1::Role, Error> {
    services.handle().check_up()?;
    let catalog = services.handle().catalog();
    let role = catalog.roles().role(&name);
    role.map(role_to_proto).ok_or_else(|| Role::not_found(name))
}

pub(super) fn list(services: &Services) -> Result<v1::ListRolesResponse, Error> {
    services.handle().check_up()?;
    let catalog = services.handle().catalog();
    let roles = catalog.roles().iter().map(role_to_proto);
    Ok(v1::ListRolesResponse {
        roles: roles.collect(),
    })
}
