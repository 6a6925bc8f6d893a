//! A proxy before a node: refuses calls, loses their answers, or keeps them waiting, and lets all others
//! through to the node.

use airmail_client::Error;
use airmail_proto::error::status_from_error;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::Status;
use tonic::client::GrpcService as _;
use tonic::service::Routes;
use tonic::transport::{Channel, Endpoint, Server};

/// The fate of the next calls.
#[derive(Clone, Debug, Default)]
enum Plan {
    #[default]
    Pass,
    /// Number of calls answered with this error, which do nothing.
    Refuse(Error, u32),
    /// Number of calls done whose answers are lost on the way back.
    Lose(u32),
    /// None is ever answered.
    Hold,
}

#[derive(Debug, Default)]
struct State {
    plan: Plan,
    calls: BTreeMap<String, u32>,
}

/// The fate of one call.
enum Way {
    Through,
    Refused(Error),
    Lost,
    Held,
}

#[derive(Clone, Debug)]
pub(crate) struct FaultyProxy {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
    _server: Arc<JoinSet<()>>,
}

impl FaultyProxy {
    pub(crate) async fn before(node: SocketAddr) -> FaultyProxy {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let endpoint = Endpoint::from_shared(format!("http://{node}")).unwrap();
        let channel = endpoint.connect_lazy();
        let state = Arc::new(Mutex::new(State::default()));
        let passing = Arc::clone(&state);
        let router = axum::Router::new().fallback(move |request: Request| {
            let (state, channel) = (Arc::clone(&passing), channel.clone());
            async move {
                let way = state.lock().way(request.uri().path());
                meet(way, request, channel).await
            }
        });
        let mut server = JoinSet::new();
        server.spawn(async move {
            let served = Server::builder().add_routes(Routes::from(router));
            let incoming = TcpListenerStream::new(listener);
            served.serve_with_incoming(incoming).await.unwrap();
        });
        FaultyProxy {
            address,
            state,
            _server: Arc::new(server),
        }
    }

    /// The next `times` calls are answered with this error, and do nothing.
    pub(crate) fn refuse(&self, error: Error, times: u32) {
        self.plan(Plan::Refuse(error, times));
    }

    /// The next `times` calls are done, and nobody hears of it.
    pub(crate) fn lose(&self, times: u32) {
        self.plan(Plan::Lose(times));
    }

    /// No call is answered.
    pub(crate) fn hold(&self) {
        self.plan(Plan::Hold);
    }

    pub(crate) fn pass(&self) {
        self.plan(Plan::Pass);
    }

    fn plan(&self, plan: Plan) {
        let mut state = self.state.lock();
        *state = State {
            plan,
            calls: BTreeMap::new(),
        };
    }

    /// Calls of this name since the plan was made.
    pub(crate) fn calls(&self, name: &str) -> u32 {
        let state = self.state.lock();
        let calls = state.calls.iter();
        let of_name = calls.filter(|(path, _)| path.rsplit('/').next() == Some(name));
        of_name.map(|(_, count)| count).sum()
    }
}

impl State {
    fn way(&mut self, path: &str) -> Way {
        *self.calls.entry(path.to_owned()).or_default() += 1;
        match &mut self.plan {
            Plan::Refuse(error, times) if *times > 0 => {
                *times -= 1;
                Way::Refused(error.clone())
            }
            Plan::Lose(times) if *times > 0 => {
                *times -= 1;
                Way::Lost
            }
            Plan::Hold => Way::Held,
            _ => Way::Through,
        }
    }
}

async fn meet(way: Way, request: Request, channel: Channel) -> Response {
    match way {
        Way::Through => through(request, channel).await,
        Way::Refused(error) => status_from_error(&error, "r-1").into_http(),
        Way::Lost => {
            drop(through(request, channel).await);
            // As something between says it, which does not know either.
            Status::unavailable("upstream is gone").into_http()
        }
        Way::Held => std::future::pending().await,
    }
}

async fn through(request: Request, mut channel: Channel) -> Response {
    std::future::poll_fn(|context| channel.poll_ready(context))
        .await
        .unwrap();
    match channel.call(request.map(tonic::body::Body::new)).await {
        Ok(response) => response.map(Body::new),
        Err(error) => Status::from_error(Box::new(error)).into_http(),
    }
}
