//! HTTP: `/healthz`, `/readyz`, `/metrics`. On a thread of its own, so that it answers when the
//! shard does not.
//!
//! It has a bound on connections of its own, so that a crowd at the other port does not keep health
//! and metrics from being seen, nor the other way round. A request has to come soon, on a new
//! connection and on one that is kept; and no connection is kept for long, so that one whose client
//! reads nothing ends. HTTP/2 is spoken as well, so that who takes this port for the other one hears
//! that it is not. What a browser asks for a page of somebody else's is refused ([`same_origin`]).

pub mod same_origin;

use crate::bugs;
use crate::first_request::FirstRequest;
use crate::logging_rate_limit::LoggingRateLimit;
use crate::metrics::{Metrics, Snapshot};
use crate::shard_handle::ShardHandle;
use crate::shards::{Answers, Shards};
use airmail_model::Error;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use same_origin::SameOrigin;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::TaskTracker;

/// Time that a connection is kept for further requests.
const LIFE: Duration = Duration::from_secs(60);
/// Time that the last answer may take to be taken.
const FAREWELL: Duration = Duration::from_secs(5);
/// Connections beyond the bound that are told so at the same time; further ones are closed at once.
pub(crate) const TURNED_AWAY: u32 = 4;
/// Time that this may take.
const TURNING_AWAY: Duration = Duration::from_secs(1);
/// Pause before the next connection is accepted when the system has no more to give (files, memory).
const BREATH: Duration = Duration::from_millis(100);
/// This port's name in metrics.
pub(crate) const DOOR: &str = "http";

/// Everything that the port needs.
#[derive(Clone)]
pub(crate) struct HttpDoor {
    pub(crate) shards: Shards,
    pub(crate) metrics: Arc<Metrics>,
    /// The rule about which requests are answered.
    pub(crate) own: SameOrigin,
    /// Connections at once.
    pub(crate) most: u32,
    /// Time that the head of a request may take.
    pub(crate) begin: Duration,
    /// The connections.
    pub(crate) tasks: TaskTracker,
}

impl HttpDoor {
    /// Accepts until the node stops.
    pub(crate) async fn accept(self, listener: TcpListener) {
        let router = Router::new()
            .route("/healthz", get(healthz))
            .route("/readyz", get(readyz))
            .route("/metrics", get(text))
            .with_state(self.clone());
        let places = |count: u32| Arc::new(Semaphore::new(count as usize));
        let (places, turned_away) = (places(self.most), places(TURNED_AWAY));
        let mut troubles = LoggingRateLimit::default();
        loop {
            let accepted = tokio::select! {
                biased;
                () = self.shards.stop().cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Err(error) => {
                    self.metrics.doors.not_accepted(DOOR);
                    if let Some(times) = troubles.happened(Instant::now()) {
                        tracing::warn!(%error, times, "HTTP connections are not accepted");
                    }
                    sleep(BREATH).await;
                }
                Ok((stream, _)) => match Arc::clone(&places).try_acquire_owned() {
                    Ok(place) => {
                        let served = self.clone().serve(stream, router.clone(), place);
                        self.tasks.spawn(served);
                    }
                    Err(_) => {
                        self.metrics.doors.turned_away(DOOR);
                        if let Ok(place) = Arc::clone(&turned_away).try_acquire_owned() {
                            self.tasks.spawn(turn_away(stream, self.most, place));
                        }
                    }
                },
            }
        }
    }

    async fn serve(self, stream: TcpStream, router: Router, _place: OwnedSemaphorePermit) {
        let _open = self.metrics.doors.http_connection();
        let reached = match stream.local_addr() {
            Ok(address) => address.ip(),
            Err(error) => {
                tracing::debug!(%error, "HTTP connection closed: it has no address any more");
                return;
            }
        };
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(self.begin);
        builder.http2().timer(TokioTimer::new());
        let first_request = Arc::new(FirstRequest::default());
        let asked = Asked {
            own: self.own.clone(),
            reached,
            metrics: Arc::clone(&self.metrics),
            first_request: Arc::clone(&first_request),
        };
        let checked = router.layer(from_fn_with_state(asked, check));
        let service = TowerToHyperService::new(checked);
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(error, "HTTP connection closed");
                }
                return;
            }
            () = first_request.is_overdue(self.begin) => return,
            () = self.shards.stop().cancelled() => {}
            () = sleep(LIFE) => {}
        }
        connection.as_mut().graceful_shutdown();
        if timeout(FAREWELL, connection).await.is_err() {
            tracing::debug!("HTTP connection closed: its client takes no answer");
        }
    }
}

/// State of one connection, which every request on it is held to.
#[derive(Clone)]
struct Asked {
    own: SameOrigin,
    /// The address that the connection was made to.
    reached: IpAddr,
    metrics: Arc<Metrics>,
    first_request: Arc<FirstRequest>,
}

/// Notes that the connection has made a request, and answers it if it is for a page of the node's own.
async fn check(State(asked): State<Asked>, request: Request, next: Next) -> Response {
    asked.first_request.note();
    match asked.own.check(asked.reached, &request) {
        Ok(()) => next.run(request).await,
        Err(foreign) => {
            asked.metrics.doors.http_refused(foreign.header);
            foreign.into_response()
        }
    }
}

/// Tells a client that there are so many connections already.
async fn turn_away(stream: TcpStream, most: u32, _place: OwnedSemaphorePermit) {
    let told = async move {
        let mut stream = stream;
        let body = format!("too many connections (http.connections: {most})\n");
        let answer = format!(
            "HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain; charset=utf-8\r\n\
             content-length: {}\r\nretry-after: 1\r\nconnection: close\r\n\r\n{body}",
            body.len(),
        );
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await?;
        // What is closed with something unread takes back what was said.
        let mut rest = [0; 512];
        while stream.read(&mut rest).await? > 0 {}
        std::io::Result::Ok(())
    };
    // Whatever becomes of it, it is over then.
    let _ = timeout(TURNING_AWAY, told).await;
}

async fn healthz() -> &'static str {
    "ok\n"
}

async fn readyz(State(shared): State<HttpDoor>) -> Response {
    let refusals = shared.shards.iter().map(ShardHandle::check_up);
    if let Some(why) = refusals.filter_map(Result::err).next() {
        return unavailable(&Error::from(why).to_string());
    }
    if let Some(why) = bugs::why_not_ready() {
        return unavailable(&why);
    }
    let Answers { snapshots, silent } = shared.shards.answers().await;
    match silent {
        None => readiness(&Snapshot::sum(&snapshots)),
        Some(silent) => unavailable(&silent.to_string()),
    }
}

/// A node whose disk is full still answers: reading goes on.
fn readiness(snapshot: &Snapshot) -> Response {
    match &snapshot.trouble {
        _ if !snapshot.ready => unavailable("the shard is not ready"),
        None => "ready\n".into_response(),
        Some(trouble) if trouble.full => {
            format!("ready to read; the disk is full: {}\n", trouble.error).into_response()
        }
        Some(trouble) => unavailable(&format!("the storage fails: {}", trouble.error)),
    }
}

/// Metrics of a node whose only shard is silent are not there. Of several they are: those of the others count,
/// and health says which is silent.
async fn text(State(shared): State<HttpDoor>) -> Response {
    let Answers { snapshots, silent } = shared.shards.answers().await;
    if let Some(silent) = silent.filter(|_| snapshots.len() == 1) {
        return unavailable(&silent.to_string());
    }
    let turns = shared.shards.iter().map(ShardHandle::turns).collect();
    match shared.metrics.text(snapshots, turns) {
        Ok(text) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, kind)], text).into_response()
        }
        Err(_) => unavailable("metrics cannot be written"),
    }
}

fn unavailable(why: &str) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response()
}
