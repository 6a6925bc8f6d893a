//! Administration: creating, listing, changing and deleting namespaces and roles; the state of a node's flow
//! control and clock.

mod roles;

use crate::context::ClientContext;
use crate::node_clock::NodeClock;
use crate::node_cluster::NodeCluster;
use crate::node_flow::FlowGate;
use crate::nodes::Node;
use airmail_model::{Durability, Error, LogId, Namespace, NamespaceSpec, Retention, StorageName};
use airmail_proto::message::log_to_proto;
use airmail_proto::namespace::{SpecChange, namespace_from_proto, spec_to_proto};
use airmail_proto::v1;
use std::sync::Arc;

/// Administers a node's namespaces and roles.
///
/// A change whose answer is lost with the connection gives `OUTCOME_UNKNOWN`: it was done, or not.
///
/// ```no_run
/// # async fn example(client: airmail_client::Client) -> Result<(), airmail_model::Error> {
/// use airmail_model::Retention;
///
/// let admin = client.admin();
/// let week = Retention { time_ms: Some(7 * 24 * 3_600_000), bytes: None };
/// let made = admin.create("orders", Some(4), Some(week), None).await?;
/// assert_eq!(made.spec.logs, 4);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Admin {
    shared: Arc<ClientContext>,
}

impl Admin {
    pub(crate) fn new(shared: Arc<ClientContext>) -> Admin {
        Admin { shared }
    }

    /// Creates a namespace. A parameter that is `None` gets the default of [`NamespaceSpec`];
    /// durability, the strongest that the node's storage has.
    ///
    /// # Errors
    /// `NAMESPACE_EXISTS`, `NAMESPACE_INVALID`, `DURABILITY_UNAVAILABLE`.
    pub async fn create(
        &self,
        name: &str,
        logs: Option<u16>,
        retention: Option<Retention>,
        durability: Option<Durability>,
    ) -> Result<Namespace, Error> {
        let storage = StorageName::FIRST;
        self.create_in(storage, name, logs, retention, durability)
            .await
    }

    /// Creates a namespace whose logs are in this one of the node's storages. Parameters as in
    /// [`create`](Self::create); durability, the strongest that this storage has.
    ///
    /// # Errors
    /// Those of [`create`](Self::create), and `INVALID_ARGUMENT` for a storage that the node has not.
    pub async fn create_in(
        &self,
        storage: StorageName,
        name: &str,
        logs: Option<u16>,
        retention: Option<Retention>,
        durability: Option<Durability>,
    ) -> Result<Namespace, Error> {
        let request = v1::CreateNamespaceRequest {
            name: name.to_owned(),
            spec: Some(spec_to_proto(&SpecChange {
                logs: Some(logs.unwrap_or(NamespaceSpec::default().logs)),
                retention,
                durability,
                storage: Some(storage),
            })),
        };
        namespace_from_proto(
            self.shared
                .call(false, Node::create_namespace, request)
                .await?,
        )
    }

    /// Gets a namespace.
    ///
    /// # Errors
    /// `NAMESPACE_NOT_FOUND`.
    pub async fn get(&self, name: &str) -> Result<Namespace, Error> {
        let name = name.to_owned();
        let request = v1::GetNamespaceRequest { name };
        namespace_from_proto(self.shared.call(true, Node::get_namespace, request).await?)
    }

    /// Lists all namespaces.
    ///
    /// # Errors
    /// `DISCONNECTED`, and what else the node says.
    pub async fn list(&self) -> Result<Vec<Namespace>, Error> {
        let request = v1::ListNamespacesRequest {};
        let answer = self
            .shared
            .call(true, Node::list_namespaces, request)
            .await?;
        answer
            .namespaces
            .into_iter()
            .map(namespace_from_proto)
            .collect()
    }

    /// Changes a namespace. A parameter that is `None` stays as it is; a retention replaces the
    /// whole of the old one. With `based_on`, only if the namespace is still at this version.
    ///
    /// # Errors
    /// `NAMESPACE_NOT_FOUND`, `NAMESPACE_CHANGED`, `DURABILITY_UNAVAILABLE`; `UNIMPLEMENTED` for
    /// another number of logs.
    pub async fn update(
        &self,
        name: &str,
        logs: Option<u16>,
        retention: Option<Retention>,
        durability: Option<Durability>,
        based_on: Option<u64>,
    ) -> Result<Namespace, Error> {
        let request = v1::UpdateNamespaceRequest {
            name: name.to_owned(),
            spec: Some(spec_to_proto(&SpecChange {
                logs,
                retention,
                durability,
                storage: None,
            })),
            based_on: based_on.unwrap_or(0),
        };
        namespace_from_proto(
            self.shared
                .call(false, Node::update_namespace, request)
                .await?,
        )
    }

    /// Moves a namespace to another of the node's storages, with its publishers and subscribers; what was published
    /// before stays where it is for as long as retention keeps it. With `based_on`, only if the namespace is still at
    /// this version.
    ///
    /// # Errors
    /// `NAMESPACE_NOT_FOUND`, `NAMESPACE_CHANGED`, `DURABILITY_UNAVAILABLE`; `INVALID_ARGUMENT` for a storage that the
    /// node has not and for the one that it is in; `UNIMPLEMENTED` where logs cannot be moved away from.
    pub async fn move_to(
        &self,
        storage: StorageName,
        name: &str,
        based_on: Option<u64>,
    ) -> Result<Namespace, Error> {
        let request = v1::MoveNamespaceRequest {
            name: name.to_owned(),
            storage: storage.to_string(),
            based_on: based_on.unwrap_or(0),
        };
        namespace_from_proto(
            self.shared
                .call(false, Node::move_namespace, request)
                .await?,
        )
    }

    /// Gets the state of the node's flow control: one entry for each gate that is on.
    ///
    /// # Errors
    /// No node answers.
    pub async fn flow(&self) -> Result<Vec<FlowGate>, Error> {
        let request = v1::GetFlowRequest {};
        let flow = self.shared.call(true, Node::get_flow, request).await?;
        Ok(flow.gates.into_iter().map(FlowGate::from).collect())
    }

    /// Gets the state of the node's wall clock.
    ///
    /// # Errors
    /// No node answers.
    pub async fn clock(&self) -> Result<NodeClock, Error> {
        let request = v1::GetClockRequest {};
        let clock = self.shared.call(true, Node::get_clock, request).await?;
        Ok(clock.into())
    }

    /// Has the node trust its wall clock as it is now; gives the clock's state after that.
    ///
    /// # Errors
    /// No node answers; `PERMISSION_DENIED`.
    pub async fn accept_clock(&self) -> Result<NodeClock, Error> {
        let request = v1::AcceptClockRequest {};
        let clock = self.shared.call(true, Node::accept_clock, request).await?;
        Ok(clock.into())
    }

    /// Gets the nodes of the cluster, as the node that answers sees them.
    ///
    /// # Errors
    /// No node answers.
    pub async fn cluster(&self) -> Result<NodeCluster, Error> {
        let request = v1::GetClusterRequest {};
        let cluster = self.shared.call(true, Node::get_cluster, request).await?;
        Ok(cluster.into())
    }

    /// Has the node ask its clients to go on at other nodes, until it is stopped; gives the number of its
    /// connections.
    ///
    /// # Errors
    /// No node answers; `INVALID_ARGUMENT` where there is no other node for clients; `PERMISSION_DENIED`.
    pub async fn drain(&self) -> Result<u32, Error> {
        let request = v1::DrainRequest {};
        let drained = self.shared.call(true, Node::drain, request).await?;
        Ok(drained.connections)
    }

    /// Makes a namespace anew where it is, since its storage has lost all of its logs: what they held is told as lost, and
    /// its publishers and subscribers go on. With `based_on`, only if the namespace is still at this version.
    ///
    /// # Errors
    /// `NAMESPACE_NOT_FOUND`, `NAMESPACE_CHANGED`; `INVALID_ARGUMENT` as long as its logs are not known to be gone.
    pub async fn recreate(&self, name: &str, based_on: Option<u64>) -> Result<Namespace, Error> {
        let request = v1::RecreateNamespaceRequest {
            name: name.to_owned(),
            based_on: based_on.unwrap_or(0),
        };
        namespace_from_proto(
            self.shared
                .call(false, Node::recreate_namespace, request)
                .await?,
        )
    }

    /// Accepts that a log has lost its end: it goes on where it was cut, in a new life. Gives its namespace.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` of a log that is not suspended, or of which nothing is left.
    pub async fn accept_loss(&self, log: LogId) -> Result<Namespace, Error> {
        let log = Some(log_to_proto(log));
        let request = v1::AcceptLossRequest { log };
        namespace_from_proto(self.shared.call(false, Node::accept_loss, request).await?)
    }

    /// Deletes a namespace and everything in it. With `based_on`, only if it is still at this
    /// version.
    ///
    /// # Errors
    /// `NAMESPACE_NOT_FOUND`, `NAMESPACE_CHANGED`.
    pub async fn delete(&self, name: &str, based_on: Option<u64>) -> Result<(), Error> {
        let request = v1::DeleteNamespaceRequest {
            name: name.to_owned(),
            based_on: based_on.unwrap_or(0),
        };
        self.shared
            .call(false, Node::delete_namespace, request)
            .await
            .map(|_| ())
    }
}
