//! The task that keeps a client publishing; each client has one. It opens the publish stream,
//! applies what the node answers, and keeps the time. Messages do not pass through it.

use super::accumulator::{Accumulator, AccumulatorStatus};
use super::publish_stream::{PublishEvent, PublishStream};
use crate::context::ClientContext;
use airmail_model::Mono;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// A future whose end asks a client to shut down; given by the client's user.
pub(crate) type Shutdown = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Abandons the accumulator when the task ends, however it ends, so that nobody waits in vain.
struct AbandonOnDrop(Arc<Accumulator>);

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// Runs until the client is closed and everything is settled. A task that is ended before it has begun is over, too.
pub(crate) fn run(
    shared: Arc<ClientContext>,
    accumulator: Arc<Accumulator>,
    shutdown: Option<Shutdown>,
) -> impl Future<Output = ()> + Send {
    let guard = AbandonOnDrop(accumulator);
    async move { keep_publishing(shared, &guard, shutdown).await }
}

async fn keep_publishing(
    shared: Arc<ClientContext>,
    guard: &AbandonOnDrop,
    shutdown: Option<Shutdown>,
) {
    let accumulator = &guard.0;
    let mut shutdown = shutdown.unwrap_or_else(|| Box::pin(std::future::pending()));
    let mut stream = PublishStream::new(Arc::clone(&shared), Arc::clone(accumulator));
    // Set anew only to an earlier time: mostly the deadline that it was set to has been met when it
    // fires.
    let mut timer = Box::pin(tokio::time::sleep(Duration::ZERO));
    let mut armed = Mono::NEVER;
    loop {
        let AccumulatorStatus {
            ended,
            stream_wanted,
            wake,
        } = accumulator.advance(armed);
        if ended {
            return;
        }
        if wake < armed {
            armed = wake;
            timer.set(tokio::time::sleep(wake.since(shared.mono())));
        }
        tokio::select! {
            // Polled in this order, which is fair: each of the first two is rare.
            biased;
            () = &mut shutdown => {
                shutdown = Box::pin(std::future::pending());
                accumulator.close();
            }
            () = accumulator.task_wanted() => {}
            event = stream.next(stream_wanted) => match event {
                PublishEvent::Opened(welcome) => accumulator.stream_opened(welcome),
                PublishEvent::Response(kind) => {
                    if let Err(error) = accumulator.apply_response(kind) {
                        stream.hold_off(accumulator.stream_lost(&error));
                    }
                }
                PublishEvent::Moved => accumulator.stream_moved(),
                PublishEvent::Lost(error) => stream.hold_off(accumulator.stream_lost(&error)),
            },
            () = &mut timer, if armed != Mono::NEVER => armed = Mono::NEVER,
        }
    }
}
