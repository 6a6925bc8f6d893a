//! Accepts connections and serves the gRPC services on them.
//!
//! A node's only shard accepts for itself, on its own thread; each of several takes what was accepted for it
//! ([`super::acceptor`]), and serves it in the same way.
//!
//! A connection that does not speak HTTP/2 is closed, with a line in the log; no other notices. One
//! that asks for mailboxes moves to their threads ([`crate::runtime::connection_migration`]). When the node
//! stops, each gets a GOAWAY and ends when its streams have.
//!
//! A place is for who uses it. A connection has to make its first request soon; from then on it is
//! asked now and then whether it is there, and is closed if it does not answer, or if it takes nothing
//! of what it is sent ([`crate::peer_stall`]). Who finds no place is told so ([`super::turned_away`]).

use super::Services;
use super::acceptor::{Accepted, Place};
use super::connection_calls::ConnectionCalls;
use super::tonic_errors::TonicErrors;
use super::turned_away::TurnedAway;
use crate::logging_rate_limit::LoggingRateLimit;
use crate::runtime::connection_migration::{Home, MigratingStream};
use crate::runtime::select_cold::select_cold;
use airmail_broker::Principal;
use futures::future::{BoxFuture, Either};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;

const STREAM_WINDOW_BYTES: u32 = 1 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;
const STREAMS_MAX: u32 = 1_024;
/// A batch with all that is around it fits one frame, and is then not copied to be put together.
const FRAME_BYTES: u32 = 256 << 10;
const SEND_BUFFER_BYTES: usize = 1 << 20;
/// A peer that takes nothing and says nothing is given up after so many times the time after which it
/// is asked: by then it has not answered for long.
const STARVATION: u32 = 3;
/// Time that a connection closed for its silence may take to hear it.
const FAREWELL: Duration = Duration::from_secs(1);
/// This port's name in metrics.
pub(crate) const DOOR: &str = "grpc";
/// Pause before the next connection is accepted when the system has no more to give (files, memory).
pub(super) const BREATH: Duration = Duration::from_millis(100);

/// Everything that a connection needs.
#[derive(Clone)]
pub(crate) struct Connections {
    pub(crate) routes: Routes,
    pub(crate) services: Services,
    /// Time that a connection may take to make its first request.
    pub(crate) begin: Duration,
    /// Time that a connection may be silent before it is asked, and then take to answer.
    pub(crate) keep_alive: Duration,
    /// Cancelled when connections are to be dropped as they are.
    pub(crate) abandon: CancellationToken,
    /// Where connections go that ask for mailboxes.
    pub(crate) mailbox_threads: Handle,
}

/// The bound on connections, and what is done about those beyond it.
#[derive(Debug)]
pub(crate) struct Crowded {
    /// Connections at once.
    most: u32,
    /// Tells those for whom there is no place.
    turned_away: TurnedAway,
    told: LoggingRateLimit,
}

impl Crowded {
    pub(crate) fn beyond(most: u32) -> Crowded {
        Crowded {
            most,
            turned_away: TurnedAway::default(),
            told: LoggingRateLimit::default(),
        }
    }

    pub(super) fn is_full(&self, services: &Services) -> bool {
        services.metrics().connections.get() >= i64::from(self.most)
    }

    pub(super) fn turn_away(&mut self, stream: TcpStream, peer: SocketAddr, services: &Services) {
        services.metrics().doors.turned_away(DOOR);
        if let Some(times) = self.told.happened(Instant::now()) {
            tracing::warn!(%peer, limit = self.most, times, "turned away: too many connections");
        }
        self.turned_away.tell(stream, self.most, services);
    }

    /// Counts a connection that has a place.
    pub(super) fn count(services: &Services) {
        services.metrics().connections.inc();
        services.metrics().connections_opened.inc();
    }
}

type Service = TowerToHyperService<ConnectionCalls<TonicErrors<Routes>>>;
type Connection = hyper_util::server::conn::auto::Connection<
    'static,
    TokioIo<MigratingStream>,
    Service,
    TokioExecutor,
>;
type Ended = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// A cause to interrupt a connection.
enum Interruption {
    Stopping,
    /// It has made no request in time.
    Silent,
}

/// The way on of a connection.
enum Course {
    Ended(Ended),
    /// It asks for mailboxes.
    Leaves,
}

impl Connections {
    /// Accepts until the node stops.
    pub(crate) async fn accept(self, listener: TcpListener, mut crowded: Crowded) {
        let stop = self.services.handle().stop().clone();
        let mut troubles = LoggingRateLimit::default();
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) if crowded.is_full(&self.services) => {
                    crowded.turn_away(stream, peer, &self.services);
                }
                Ok((stream, peer)) => {
                    Crowded::count(&self.services);
                    self.take(stream, peer, None);
                }
                Err(error) => {
                    self.services.metrics().doors.not_accepted(DOOR);
                    if let Some(times) = troubles.happened(Instant::now()) {
                        tracing::warn!(%error, times, "connections are not accepted");
                    }
                    tokio::time::sleep(BREATH).await;
                }
            }
        }
    }

    /// Takes what was accepted for this shard, until the node stops. They are counted already.
    pub(crate) async fn take_accepted(self, mut accepted: mpsc::Receiver<Accepted>) {
        let stop = self.services.handle().stop().clone();
        loop {
            let next = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                next = accepted.recv() => next,
            };
            let Some(Accepted {
                stream,
                peer,
                place,
            }) = next
            else {
                // Input: whoever accepts has ended, as it does when the node stops.
                return;
            };
            match TcpStream::from_std(stream) {
                Ok(stream) => self.take(stream, peer, Some(place)),
                Err(error) => self.take_leave(Err(error.into()), peer),
            }
        }
    }

    fn take(&self, stream: TcpStream, peer: SocketAddr, place: Option<Place>) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%peer, %error, "no TCP_NODELAY");
        }
        self.services
            .door
            .tasks()
            .spawn(self.clone().serve(stream, peer, place));
    }

    /// Serves a connection on this shard, until it has ended or moves. It has its place so long.
    async fn serve(self, stream: TcpStream, peer: SocketAddr, _place: Option<Place>) {
        let home = Arc::new(Home::default());
        let mut connection = Box::pin(self.connection(stream, &home));
        let course = {
            let served = until_it_leaves(connection.as_mut(), &home);
            select_cold(self.interruption(&home), served).await
        };
        let ended = match course {
            Either::Right(Course::Ended(ended)) => ended,
            Either::Left(Interruption::Stopping) => self.wind_up(connection).await,
            Either::Left(Interruption::Silent) => self.close_silent(connection, &home, peer).await,
            Either::Right(Course::Leaves) => {
                let (tasks, threads) = (
                    self.services.door.tasks().clone(),
                    self.mailbox_threads.clone(),
                );
                tasks.spawn_on(self.serve_there(connection, home, peer), &threads);
                return;
            }
        };
        self.take_leave(ended, peer);
    }

    /// Waits for what comes once or never.
    async fn interruption(&self, home: &Home) -> Interruption {
        let stop = pin!(self.services.handle().stop().cancelled());
        let silence = pin!(home.first_request().is_overdue(self.begin));
        match futures::future::select(stop, silence).await {
            Either::Left(_) => Interruption::Stopping,
            Either::Right(_) => Interruption::Silent,
        }
    }

    /// Ends a connection that has made no request. One that makes it in the last moment is answered.
    async fn close_silent(
        &self,
        mut connection: Pin<Box<Connection>>,
        home: &Home,
        peer: SocketAddr,
    ) -> Ended {
        connection.as_mut().graceful_shutdown();
        let ended = tokio::time::timeout(FAREWELL, connection.as_mut()).await;
        if home.first_request().has_come() {
            return match ended {
                Ok(ended) => ended,
                Err(_) => self.wind_up(connection).await,
            };
        }
        self.services.metrics().doors.silent.inc();
        tracing::debug!(%peer, "connection closed: it made no request");
        Ok(())
    }

    /// Serves a connection that has moved, to its end.
    fn serve_there(
        self,
        mut connection: Pin<Box<Connection>>,
        home: Arc<Home>,
        peer: SocketAddr,
    ) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            home.arrive();
            let stop = self.services.handle().stop().cancelled();
            let ended = match select_cold(stop, connection.as_mut()).await {
                Either::Right(ended) => ended,
                Either::Left(()) => self.wind_up(connection).await,
            };
            self.take_leave(ended, peer);
        })
    }

    fn connection(&self, stream: TcpStream, home: &Arc<Home>) -> Connection {
        let mut builder = Builder::new(TokioExecutor::new()).http2_only();
        builder
            .http2()
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_concurrent_streams(STREAMS_MAX)
            .max_frame_size(FRAME_BYTES)
            .max_send_buf_size(SEND_BUFFER_BYTES)
            .keep_alive_interval(self.keep_alive)
            .keep_alive_timeout(self.keep_alive);
        let services = self.services.clone();
        let others = TonicErrors::new(self.routes.clone(), services.handle().clone());
        // Everyone is anonymous until authentication is built; then the connection says who its client is.
        let principal = Arc::new(Principal::default());
        let service = ConnectionCalls::new(services, others, principal, Arc::clone(home));
        let service = TowerToHyperService::new(service);
        let patience = self.keep_alive.saturating_mul(STARVATION);
        let stream = MigratingStream::new(stream, Arc::clone(home), patience);
        builder
            .serve_connection(TokioIo::new(stream), service)
            .into_owned()
    }

    /// Lets what is under way end, while there is patience.
    async fn wind_up(&self, mut connection: Pin<Box<Connection>>) -> Ended {
        connection.as_mut().graceful_shutdown();
        match select_cold(self.abandon.cancelled(), connection).await {
            Either::Left(()) => Ok(()),
            Either::Right(ended) => ended,
        }
    }

    fn take_leave(&self, ended: Ended, peer: SocketAddr) {
        self.services.metrics().connections.dec();
        match ended {
            Ok(()) => tracing::debug!(%peer, "connection ended"),
            Err(error) => {
                self.services.metrics().connections_failed.inc();
                tracing::info!(%peer, error = causes(error.as_ref()), "connection closed");
            }
        }
    }
}

/// Serves a connection until it has ended, or until a call on it says that it is to be elsewhere.
async fn until_it_leaves(mut connection: Pin<&mut Connection>, home: &Home) -> Course {
    poll_fn(|cx| match connection.as_mut().poll(cx) {
        Poll::Ready(ended) => Poll::Ready(Course::Ended(ended)),
        Poll::Pending if home.is_leaving() => Poll::Ready(Course::Leaves),
        Poll::Pending => Poll::Pending,
    })
    .await
}

/// An error with all that caused it, in one line.
fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text.push_str(": ");
        text.push_str(&next.to_string());
        cause = next.source();
    }
    text
}
