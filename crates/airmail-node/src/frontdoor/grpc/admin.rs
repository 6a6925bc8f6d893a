//! Admin: namespaces, created, changed and deleted while the node runs; and how its flow and its
//! clock stand.

mod cluster;
mod flow;
mod roles;

use super::{Services, principal_of};
use crate::metrics::Snapshot;
use airmail_broker::{Action, Command, Outcome, Principal};
use airmail_log::ClockState;
use airmail_model::{Error, ErrorCode, Namespace, StorageName};
use airmail_proto::message::log_from_proto;
use airmail_proto::namespace::{namespace_to_proto, spec_from_proto};
use airmail_proto::server::admin_server::Admin;
use airmail_proto::v1;
use tonic::{Request, Response, Status};

impl Services {
    /// Has a command done; what came of it.
    async fn command(&self, principal: &Principal, command: Command) -> Result<Outcome, Error> {
        let shards = self.door.shards();
        let outcome = shards.change(self.handle(), principal.clone(), command);
        outcome.await
    }

    /// Has a namespace made or changed; as it is then.
    async fn change(
        &self,
        principal: &Principal,
        command: Command,
    ) -> Result<v1::Namespace, Error> {
        match self.command(principal, command).await? {
            Outcome::Namespace(namespace) => Ok(namespace_to_proto(&namespace)),
            Outcome::Deleted | Outcome::Role(_) | Outcome::Topics { .. } => {
                Err(Error::new(ErrorCode::Internal))
            }
        }
    }

    async fn create(
        &self,
        request: Request<v1::CreateNamespaceRequest>,
    ) -> Result<v1::Namespace, Error> {
        let principal = principal_of(&request)?;
        let request = request.into_inner();
        self.handle().check_up()?;
        Namespace::check_name(&request.name)?;
        let spec = spec_from_proto(request.spec.as_ref())?;
        let command = Command::CreateNamespace {
            name: request.name,
            logs: spec.logs.unwrap_or(1),
            retention: spec.retention.unwrap_or_default(),
            durability: spec.durability,
            storage: spec.storage.unwrap_or_default(),
        };
        self.change(&principal, command).await
    }

    async fn update(
        &self,
        request: Request<v1::UpdateNamespaceRequest>,
    ) -> Result<v1::Namespace, Error> {
        let principal = principal_of(&request)?;
        let request = request.into_inner();
        self.handle().check_up()?;
        let spec = spec_from_proto(request.spec.as_ref())?;
        let command = Command::UpdateNamespace {
            name: request.name,
            logs: spec.logs,
            retention: spec.retention,
            durability: spec.durability,
            storage: spec.storage,
            based_on: (request.based_on > 0).then_some(request.based_on),
        };
        self.change(&principal, command).await
    }

    async fn move_to(
        &self,
        request: Request<v1::MoveNamespaceRequest>,
    ) -> Result<v1::Namespace, Error> {
        let principal = principal_of(&request)?;
        let request = request.into_inner();
        self.handle().check_up()?;
        let command = Command::MoveNamespace {
            name: request.name,
            storage: StorageName::or_first(&request.storage, "namespace.storage")?,
            based_on: (request.based_on > 0).then_some(request.based_on),
        };
        self.change(&principal, command).await
    }

    async fn recreate(
        &self,
        request: Request<v1::RecreateNamespaceRequest>,
    ) -> Result<v1::Namespace, Error> {
        let principal = principal_of(&request)?;
        let request = request.into_inner();
        self.handle().check_up()?;
        let command = Command::RecreateNamespace {
            name: request.name,
            based_on: (request.based_on > 0).then_some(request.based_on),
        };
        self.change(&principal, command).await
    }

    async fn accept(
        &self,
        request: Request<v1::AcceptLossRequest>,
    ) -> Result<v1::Namespace, Error> {
        let principal = principal_of(&request)?;
        self.handle().check_up()?;
        let log = log_from_proto(request.into_inner().log.as_ref())?;
        self.change(&principal, Command::AcceptLoss { log }).await
    }

    async fn delete(
        &self,
        request: Request<v1::DeleteNamespaceRequest>,
    ) -> Result<v1::DeleteNamespaceResponse, Error> {
        let principal = principal_of(&request)?;
        let request = request.into_inner();
        self.handle().check_up()?;
        let command = Command::DeleteNamespace {
            name: request.name,
            based_on: (request.based_on > 0).then_some(request.based_on),
        };
        match self.command(&principal, command).await? {
            Outcome::Deleted => Ok(v1::DeleteNamespaceResponse {}),
            Outcome::Namespace(_) | Outcome::Role(_) | Outcome::Topics { .. } => {
                Err(Error::new(ErrorCode::Internal))
            }
        }
    }

    async fn accept_clock(
        &self,
        request: Request<v1::AcceptClockRequest>,
    ) -> Result<v1::Clock, Error> {
        let principal = principal_of(&request)?;
        self.handle().check_up()?;
        let may = self.authorizer.authorize(&principal, Action::Administer);
        may?;
        Ok(clock_to_proto(&self.door.shards().accept_clock().await?))
    }

    fn begin_to_drain(
        &self,
        request: &Request<v1::DrainRequest>,
    ) -> Result<v1::DrainResponse, Error> {
        let principal = principal_of(request)?;
        self.authorizer.authorize(&principal, Action::Administer)?;
        let connections = self.cluster.drain()?;
        tracing::info!(
            connections,
            "draining: clients are asked to go on at other nodes"
        );
        Ok(v1::DrainResponse { connections })
    }

    /// State of every shard: the only one as soon as it answers, one of several as it stood last if it
    /// does not answer soon.
    async fn snapshots(&self) -> Result<Vec<Snapshot>, Error> {
        let shards = self.door.shards();
        if shards.count() == 1 {
            return Ok(vec![self.handle().snapshot().await?]);
        }
        Ok(shards.answers().await.snapshots)
    }

    fn find(&self, name: &str) -> Result<v1::Namespace, Error> {
        self.handle().check_up()?;
        let entry = self.handle().namespace(name)?;
        Ok(namespace_to_proto(&entry.namespace))
    }

    fn all(&self) -> Result<v1::ListNamespacesResponse, Error> {
        self.handle().check_up()?;
        let catalog = self.handle().catalog();
        let namespaces = catalog
            .iter()
            .map(|entry| namespace_to_proto(&entry.namespace));
        Ok(v1::ListNamespacesResponse {
            namespaces: namespaces.collect(),
        })
    }
}

fn clock_to_proto(clock: &ClockState) -> v1::Clock {
    v1::Clock {
        wall_us: clock.wall.0,
        trusted_us: clock.trusted.0,
        held: clock.held.map(|held| v1::ClockJump {
            by_us: held.by_us,
            noticed_at_us: held.noticed.0,
            left_ms: u64::try_from(held.left.as_millis()).unwrap_or(u64::MAX),
        }),
        jumps: clock.jumps,
    }
}

#[tonic::async_trait]
impl Admin for Services {
    async fn create_namespace(
        &self,
        request: Request<v1::CreateNamespaceRequest>,
    ) -> Result<Response<v1::Namespace>, Status> {
        let call = self.call("CreateNamespace");
        Self::answer(&call, self.create(request).await)
    }

    async fn get_namespace(
        &self,
        request: Request<v1::GetNamespaceRequest>,
    ) -> Result<Response<v1::Namespace>, Status> {
        let call = self.call("GetNamespace");
        Self::answer(&call, self.find(&request.into_inner().name))
    }

    async fn list_namespaces(
        &self,
        _request: Request<v1::ListNamespacesRequest>,
    ) -> Result<Response<v1::ListNamespacesResponse>, Status> {
        let call = self.call("ListNamespaces");
        Self::answer(&call, self.all())
    }

    async fn update_namespace(
        &self,
        request: Request<v1::UpdateNamespaceRequest>,
    ) -> Result<Response<v1::Namespace>, Status> {
        let call = self.call("UpdateNamespace");
        Self::answer(&call, self.update(request).await)
    }

    async fn move_namespace(
        &self,
        request: Request<v1::MoveNamespaceRequest>,
    ) -> Result<Response<v1::Namespace>, Status> {
        let call = self.call("MoveNamespace");
        Self::answer(&call, self.move_to(request).await)
    }

    async fn recreate_namespace(
        &self,
        request: Request<v1::RecreateNamespaceRequest>,
    ) -> Result<Response<v1::Namespace>, Status> {
        let call = self.call("RecreateNamespace");
        Self::answer(&call, self.recreate(request).await)
    }

    async fn accept_loss(
        &self,
        request: Request<v1::AcceptLossRequest>,
    ) -> Result<Response<v1::Namespace>, Status> {
        let call = self.call("AcceptLoss");
        Self::answer(&call, self.accept(request).await)
    }

    async fn create_role(
        &self,
        request: Request<v1::CreateRoleRequest>,
    ) -> Result<Response<v1::Role>, Status> {
        let call = self.call("CreateRole");
        Self::answer(&call, roles::create(self, request).await)
    }

    async fn get_role(
        &self,
        request: Request<v1::GetRoleRequest>,
    ) -> Result<Response<v1::Role>, Status> {
        let call = self.call("GetRole");
        Self::answer(&call, roles::find(self, request.into_inner().name))
    }

    async fn list_roles(
        &self,
        _request: Request<v1::ListRolesRequest>,
    ) -> Result<Response<v1::ListRolesResponse>, Status> {
        let call = self.call("ListRoles");
        Self::answer(&call, roles::list(self))
    }

    async fn delete_role(
        &self,
        request: Request<v1::DeleteRoleRequest>,
    ) -> Result<Response<v1::DeleteRoleResponse>, Status> {
        let call = self.call("DeleteRole");
        Self::answer(&call, roles::delete(self, request).await)
    }

    async fn get_flow(
        &self,
        _request: Request<v1::GetFlowRequest>,
    ) -> Result<Response<v1::Flow>, Status> {
        let call = self.call("GetFlow");
        let shards = self.snapshots().await;
        let flow = shards.map(|shards| flow::to_proto(&shards, self.handle().mono()));
        Self::answer(&call, flow)
    }

    async fn get_clock(
        &self,
        _request: Request<v1::GetClockRequest>,
    ) -> Result<Response<v1::Clock>, Status> {
        let call = self.call("GetClock");
        let shards = self.snapshots().await;
        let clock = shards.map(|shards| clock_to_proto(&Snapshot::sum(&shards).clock));
        Self::answer(&call, clock)
    }

    async fn accept_clock(
        &self,
        request: Request<v1::AcceptClockRequest>,
    ) -> Result<Response<v1::Clock>, Status> {
        let call = self.call("AcceptClock");
        Self::answer(&call, self.accept_clock(request).await)
    }

    async fn delete_namespace(
        &self,
        request: Request<v1::DeleteNamespaceRequest>,
    ) -> Result<Response<v1::DeleteNamespaceResponse>, Status> {
        let call = self.call("DeleteNamespace");
        Self::answer(&call, self.delete(request).await)
    }

    async fn get_cluster(
        &self,
        _request: Request<v1::GetClusterRequest>,
    ) -> Result<Response<v1::Cluster>, Status> {
        let call = self.call("GetCluster");
        let (seen, catalog) = (self.cluster.seen(), self.handle().catalog());
        let cluster = cluster::to_proto(&seen, &catalog, self.handle().mono());
        Self::answer(&call, Ok(cluster))
    }

    async fn drain(
        &self,
        request: Request<v1::DrainRequest>,
    ) -> Result<Response<v1::DrainResponse>, Status> {
        let call = self.call("Drain");
        Self::answer(&call, self.begin_to_drain(&request))
    }
}
