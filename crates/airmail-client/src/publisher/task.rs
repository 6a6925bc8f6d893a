//! The task that publishes: one for each client. It opens the stream, takes in what the node says,
//! and keeps the time; messages do not pass through it.

use super::desk::{Desk, Standing};
use super::wire::{Happening, Wire};
use crate::context::ClientContext;
use airmail_model::Mono;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// A future whose end asks a client to shut down; given by the client's user.
pub(crate) type Shutdown = Pin<Box<dyn Future<Output = ()> + Send>>;

/// When the task ends, however it does, nobody waits in vain.
struct Ending(Arc<Desk>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// Runs until closed and settled.
pub(crate) async fn run(shared: Arc<ClientContext>, desk: Arc<Desk>, shutdown: Option<Shutdown>) {
    let ending = Ending(desk);
    let desk = &ending.0;
    let mut shutdown = shutdown.unwrap_or_else(|| Box::pin(std::future::pending()));
    let mut wire = Wire::new(Arc::clone(&shared), Arc::clone(desk));
    // Left alone while it is early enough: what it is set to is mostly long past when it matters.
    let mut timer = Box::pin(tokio::time::sleep(Duration::ZERO));
    let mut armed = Mono::NEVER;
    loop {
        let Standing {
            ended,
            wanted,
            wake,
        } = desk.tend(armed);
        if ended {
            return;
        }
        if wake < armed {
            armed = wake;
            timer.set(tokio::time::sleep(wake.since(shared.mono())));
        }
        tokio::select! {
            // In a fair order: each of the first two is rare.
            biased;
            () = &mut shutdown => {
                shutdown = Box::pin(std::future::pending());
                desk.close();
            }
            () = desk.task_wanted() => {}
            happening = wire.next(wanted) => match happening {
                Happening::Opened(welcome) => desk.opened(welcome),
                Happening::Response(kind) => {
                    if let Err(error) = desk.answered(kind) {
                        wire.hold_off(desk.lost(&error));
                    }
                }
                Happening::Lost(error) => wire.hold_off(desk.lost(&error)),
            },
            () = &mut timer, if armed != Mono::NEVER => armed = Mono::NEVER,
        }
    }
}
