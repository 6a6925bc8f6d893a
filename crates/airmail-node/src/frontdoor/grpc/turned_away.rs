//! Tells clients for whom there is no place that there is none, in words.
//!
//! A connection beyond the bound is served for a moment all the same, so that its client hears an
//! error of the table with a delay, and not that a pipe is broken. So are only a few at a time, and
//! none for long. Who comes beyond these takes the place of the one that has had it for longest: a client
//! asks at once and is answered, and those that say nothing keep nobody from hearing it.

use super::Services;
use airmail_model::{Error, ErrorCode};
use airmail_proto::error::status_from_error;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::codegen::http::{Request, Response};

/// Connections that are told at the same time.
pub(crate) const PLACES: u32 = 16;
/// Time that a client may take to ask and to hear it.
const PATIENCE: Duration = Duration::from_secs(2);
/// When to try again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Tells those who are turned away.
#[derive(Clone, Debug, Default)]
pub(crate) struct TurnedAway {
    /// Those that are being told, in the order in which they came.
    told: Arc<Mutex<VecDeque<AbortHandle>>>,
}

impl TurnedAway {
    /// Tells a client that there are so many connections already.
    pub(super) fn tell(&self, stream: TcpStream, open: u32, services: &Services) {
        let stop = services.handle().stop().clone();
        let error = Error::new(ErrorCode::Overloaded)
            .field("listen.connections")
            .value(open)
            .limit(open)
            .retry_after(RETRY_AFTER);
        let refusal = Refusal {
            error,
            request_id: services.handle().request_id(),
            told: Arc::new(Notify::new()),
        };
        let task = services.door.tasks().spawn(async move {
            // Whatever becomes of it, it is over then.
            tokio::select! {
                _ = tokio::time::timeout(PATIENCE, tell(stream, refusal)) => {}
                () = stop.cancelled() => {}
            }
        });
        let mut told = self.told.lock();
        told.retain(|one| !one.is_finished());
        while told.len() >= PLACES as usize
            && let Some(first) = told.pop_front()
        {
            first.abort();
        }
        told.push_back(task.abort_handle());
    }
}

async fn tell(stream: TcpStream, refusal: Refusal) {
    let told = Arc::clone(&refusal.told);
    let mut builder = Builder::new(TokioExecutor::new()).http2_only();
    builder.http2().timer(TokioTimer::new());
    let service = TowerToHyperService::new(refusal);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        _ = connection.as_mut() => return,
        () = told.notified() => {}
    }
    connection.as_mut().graceful_shutdown();
    // It has been told; how the connection ends does not matter.
    let _ = connection.await;
}

/// Answers every call with the same error.
#[derive(Clone, Debug)]
struct Refusal {
    error: Error,
    request_id: String,
    told: Arc<Notify>,
}

impl<B> Service<Request<B>> for Refusal {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<B>) -> Self::Future {
        self.told.notify_one();
        ready(Ok(
            status_from_error(&self.error, &self.request_id).into_http()
        ))
    }
}
