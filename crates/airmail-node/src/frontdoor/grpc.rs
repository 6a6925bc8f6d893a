//! The gRPC front door: the one place where messages of the API (`v1`) occur. It translates, and speaks to
//! the node through sessions and calls of its [`FrontDoor`], or to the mailboxes.
//!
//! Publish and Subscribe are framed below tonic's codec, which copies every message into a buffer of its
//! own, once on the way in and once on the way out: [`request_body`] takes a message out of the HTTP/2 frame in
//! which it came, and [`response_body`] hands a batch to the connection as the memory in which it is stored,
//! shared by all that it goes to. On the wire it is plain gRPC. Every other call is tonic's.
//!
//! The identity of a connection's client is established when it is accepted ([`listener`]). A stream is given
//! it by [`connection_calls`], and a call finds it among its request's extensions.

pub(crate) mod acceptor;
mod admin;
mod connection_calls;
mod health;
mod history;
pub(crate) mod listener;
mod mailbox;
mod plain_messages;
mod publish;
mod request_body;
mod response_body;
mod routes;
mod subscribe;
mod tonic_errors;
mod topics;
pub(crate) mod turned_away;

pub(crate) use health::Health;
pub(crate) use routes::all_routes;

use super::FrontDoor;
use crate::cluster::view::ClusterView;
use crate::metrics::Metrics;
use crate::shard_handle::ShardHandle;
use crate::storage::Standing;
use airmail_broker::{Authorizer, Principal};
use airmail_mailbox::Mailboxes;
use airmail_model::{Error, ErrorCode, bug};
use airmail_proto::error::{status_from_error, unread_error};
use airmail_proto::server::airmail_server::Airmail;
use airmail_proto::v1;
use futures::Stream;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use tonic::{Request, Response, Status};

/// A stream of answers.
type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Every service. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Services {
    /// Sessions, and whatever else the node is asked.
    pub(crate) door: FrontDoor,
    /// The cluster, as this node sees it.
    pub(crate) cluster: ClusterView,
    pub(crate) mailboxes: Mailboxes,
    /// State of the data directory, if the mailboxes are in it.
    pub(crate) mailbox_standing: Option<Arc<Standing>>,
    /// Whether requests of mailboxes are answered here.
    pub(crate) serves_mailboxes: bool,
    /// Decides about requests of mailboxes, and about settings that belong to no namespace; everything else
    /// is decided by the shard, which asks the same one.
    pub(crate) authorizer: Arc<dyn Authorizer>,
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Services").finish_non_exhaustive()
    }
}

/// A call, for its errors and its lines in the log.
#[derive(Clone, Debug)]
struct Call {
    name: &'static str,
    request_id: String,
}

impl Call {
    /// The status of an error, which is logged under the same request id.
    fn status(&self, error: &Error) -> Status {
        tracing::info!(
            call = self.name,
            request_id = self.request_id,
            code = error.code().name(),
            field = error.field_name(),
            value = error.found(),
            limit = error.expected(),
            "call refused"
        );
        status_from_error(error, &self.request_id)
    }
}

impl Services {
    fn call(&self, name: &'static str) -> Call {
        Call {
            name,
            request_id: self.handle().request_id(),
        }
    }

    fn handle(&self) -> &ShardHandle {
        self.door.handle()
    }

    fn metrics(&self) -> &Metrics {
        self.door.metrics()
    }

    /// Gives a call's result, or its status.
    fn answer<T>(call: &Call, result: Result<T, Error>) -> Result<Response<T>, Status> {
        result
            .map(Response::new)
            .map_err(|error| call.status(&error))
    }
}

/// The client that a request comes from, as its connection says.
fn principal_of<T>(request: &Request<T>) -> Result<Arc<Principal>, Error> {
    let principal = request.extensions().get::<Arc<Principal>>();
    principal.cloned().ok_or_else(|| {
        bug!("a request has come without the identity of its connection");
        Error::new(ErrorCode::Internal).field("principal")
    })
}

/// Reads the end of a stream's requests: the client is done (`None`), or sent something wrong.
fn reading_error(door: &FrontDoor, status: &Status) -> Option<Error> {
    unread_error(status, door.limits().frame_bytes)
}

#[tonic::async_trait]
impl Airmail for Services {
    type HistoryStream = Answers<v1::HistoryResponse>;

    async fn publish_one(
        &self,
        request: Request<v1::PublishOneRequest>,
    ) -> Result<Response<v1::PublishOneResponse>, Status> {
        let call = self.call("PublishOne");
        Self::answer(&call, publish::one(self, request).await)
    }

    async fn history(
        &self,
        request: Request<v1::HistoryRequest>,
    ) -> Result<Response<Self::HistoryStream>, Status> {
        let call = self.call("History");
        let stream = history::stream(self, &call, request).await;
        Self::answer(&call, stream)
    }

    async fn list_topics(
        &self,
        request: Request<v1::ListTopicsRequest>,
    ) -> Result<Response<v1::ListTopicsResponse>, Status> {
        let call = self.call("ListTopics");
        Self::answer(&call, topics::list(self, request).await)
    }
}
