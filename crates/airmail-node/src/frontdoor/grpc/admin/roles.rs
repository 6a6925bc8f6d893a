//! Admin of roles: created, found, listed and deleted.

use crate::frontdoor::grpc::{Services, principal_of};
use airmail_broker::{Command, Outcome, Principal};
use airmail_model::{Error, ErrorCode, Role};
use airmail_proto::v1;
use tonic::Request;

fn role_to_proto(role: Role) -> v1::Role {
    v1::Role {
        name: role.name,
        id: role.id.0,
    }
}

async fn change<T>(
    services: &Services,
    request: &Request<T>,
    command: Command,
) -> Result<Outcome, Error> {
    let principal = principal_of(request)?;
    services.handle().check_up()?;
    let principal = Principal::clone(&principal);
    let shards = services.door.shards();
    shards.change(services.handle(), principal, command).await
}

pub(super) async fn create(
    services: &Services,
    request: Request<v1::CreateRoleRequest>,
) -> Result<v1::Role, Error> {
    let name = request.get_ref().name.clone();
    match change(services, &request, Command::CreateRole { name }).await? {
        Outcome::Role(role) => Ok(role_to_proto(role)),
        _ => Err(Error::new(ErrorCode::Internal)),
    }
}

pub(super) async fn delete(
    services: &Services,
    request: Request<v1::DeleteRoleRequest>,
) -> Result<v1::DeleteRoleResponse, Error> {
    let name = request.get_ref().name.clone();
    match change(services, &request, Command::DeleteRole { name }).await? {
        Outcome::Deleted => Ok(v1::DeleteRoleResponse {}),
        _ => Err(Error::new(ErrorCode::Internal)),
    }
}

pub(super) fn find(services: &Services, name: String) -> Result<v1::Role, Error> {
    services.handle().check_up()?;
    match services.handle().catalog().roles().find(&name) {
        Some(id) => Ok(role_to_proto(Role { id, name })),
        None => Err(Role::not_found(name)),
    }
}

pub(super) fn list(services: &Services) -> Result<v1::ListRolesResponse, Error> {
    services.handle().check_up()?;
    let catalog = services.handle().catalog();
    let roles = catalog.roles().iter().map(role_to_proto);
    Ok(v1::ListRolesResponse {
        roles: roles.collect(),
    })
}
