//! The gRPC services: they translate, and speak to the shard through its [`Link`], or to the
//! mailboxes.

pub(crate) mod admin;
pub(crate) mod history;
mod mailbox;
pub(crate) mod plain;
pub(crate) mod publish;
pub(crate) mod streams;
pub(crate) mod subscribe;
pub(crate) mod topics;
pub(crate) mod window;

use super::link::Link;
use super::metrics::Metrics;
use super::storage::Standing;
use airmail_broker::{Authorizer, Principal};
use airmail_mailbox::Mailboxes;
use airmail_model::{Error, MapEpoch, NamespaceId};
use airmail_proto::hello::{NamedMap, Welcome, check_client_hello, welcome_to_proto};
use airmail_proto::namespace::DEFAULT_NAMESPACE;
use airmail_proto::server::airmail_server::Airmail;
use airmail_proto::v1;
use futures::Stream;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use tokio_util::task::TaskTracker;
use tonic::{Request, Response, Status};

/// A stream of answers.
type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Every service. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Services {
    pub(crate) link: Link,
    pub(crate) metrics: Arc<Metrics>,
    /// The tasks that read streams' requests.
    pub(crate) tasks: TaskTracker,
    pub(crate) mailboxes: Mailboxes,
    /// Of the data directory, if the mailboxes are in it.
    pub(crate) mailbox_standing: Option<Arc<Standing>>,
    /// Asked by who asks for mailboxes, or sets what is no namespace's; all else asks the shard, which
    /// asks the same.
    pub(crate) authorizer: Arc<dyn Authorizer>,
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Services").finish_non_exhaustive()
    }
}

/// A call, for its errors and its lines in the log.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) name: &'static str,
    pub(crate) request_id: String,
}

impl Call {
    /// The status of an error, which is logged under the same request id.
    pub(crate) fn status(&self, error: &Error) -> Status {
        tracing::info!(
            call = self.name,
            request_id = self.request_id,
            code = error.code().name(),
            field = error.field_name(),
            value = error.found(),
            limit = error.expected(),
            "call refused"
        );
        airmail_proto::error::status_from_error(error, &self.request_id)
    }
}

impl Services {
    pub(crate) fn call(&self, name: &'static str) -> Call {
        Call {
            name,
            request_id: self.link.request_id(),
        }
    }

    /// Gives a call's result, or its status.
    fn answer<T>(call: &Call, result: Result<T, Error>) -> Result<Response<T>, Status> {
        result
            .map(Response::new)
            .map_err(|error| call.status(&error))
    }
}

/// Who asks. Anonymous, until authentication is built.
pub(crate) fn principal() -> Principal {
    Principal::default()
}

/// The epoch of a namespace's map; 0 if there is none of that number.
pub(crate) fn epoch_of(link: &Link, id: NamespaceId) -> MapEpoch {
    let catalog = link.catalog();
    catalog.get(id).map_or(MapEpoch(0), |entry| entry.map.epoch)
}

/// The answer to a client's Hello.
pub(crate) fn welcome(
    link: &Link,
    request_id: &str,
    hello: &v1::ClientHello,
) -> Result<v1::ServerHello, Error> {
    tracing::debug!(request_id, client = hello.client, "hello");
    let protocol = check_client_hello(hello)?;
    link.check_up()?;
    let default = [DEFAULT_NAMESPACE.to_owned()];
    let wanted: &[String] = if hello.namespaces.is_empty() {
        &default
    } else {
        &hello.namespaces
    };
    let mut namespaces = Vec::with_capacity(wanted.len());
    for name in wanted {
        let entry = link.namespace(name)?;
        namespaces.push(NamedMap {
            name: entry.namespace.name.clone(),
            map: entry.map.clone(),
        });
    }
    Ok(welcome_to_proto(&Welcome {
        protocol,
        node: link.node().to_owned(),
        limits: link.limits().clone(),
        namespaces,
    }))
}

/// The error of a stream that does not begin with Hello, or has two.
pub(crate) fn hello_expected(found: &str) -> Error {
    Error::new(airmail_model::ErrorCode::HelloExpected)
        .field("kind")
        .value(found)
        .limit("hello first, and only first")
}

/// What to make of a stream's reading end: the client is done (`None`), or what is wrong.
pub(crate) fn reading_error(link: &Link, status: &Status) -> Option<Error> {
    airmail_proto::error::unread_error(status, link.limits().frame_bytes)
}

#[tonic::async_trait]
impl Airmail for Services {
    type HistoryStream = Answers<v1::HistoryResponse>;

    async fn publish_one(
        &self,
        request: Request<v1::PublishOneRequest>,
    ) -> Result<Response<v1::PublishOneResponse>, Status> {
        let call = self.call("PublishOne");
        Self::answer(&call, publish::one(self, request.into_inner()).await)
    }

    async fn history(
        &self,
        request: Request<v1::HistoryRequest>,
    ) -> Result<Response<Self::HistoryStream>, Status> {
        let call = self.call("History");
        let stream = history::stream(self, &call, request.into_inner()).await;
        Self::answer(&call, stream)
    }

    async fn list_topics(
        &self,
        request: Request<v1::ListTopicsRequest>,
    ) -> Result<Response<v1::ListTopicsResponse>, Status> {
        let call = self.call("ListTopics");
        Self::answer(&call, topics::list(self, request.into_inner()).await)
    }
}
