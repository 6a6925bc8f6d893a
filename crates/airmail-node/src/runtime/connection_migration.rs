//! Connections that move to other threads.
//!
//! A connection begins at a shard, whose thread owns all that publish and subscribe. One that asks
//! for mailboxes before it streams has nothing to do with a shard: it moves, as it is, to the
//! runtime of the mailboxes, which has many threads. So no single one is what all their requests go
//! through, and a shard does not wait for them.
//!
//! What moves is the connection's future. Its socket is registered anew where it is polled next; the
//! timers of its keep-alive stay with the shard's runtime, which lives for longer.

use crate::first_request::FirstRequest;
use crate::peer_stall::PeerStall;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// It has not said what it is for.
const NEW: u8 = 0;
/// It streams, and stays.
const STAYS: u8 = 1;
/// It has asked for mailboxes.
const LEAVES: u8 = 2;
/// It is served by the threads of mailboxes.
const ARRIVED: u8 = 3;

/// Where a connection is served, and is to be served.
#[derive(Debug, Default)]
pub(crate) struct Home {
    place: AtomicU8,
    first_request: FirstRequest,
}

impl Home {
    /// Whether it has made a request at all.
    pub(crate) fn first_request(&self) -> &FirstRequest {
        &self.first_request
    }

    /// A request of mailboxes has come.
    pub(crate) fn ask_for_mailboxes(&self) {
        self.decide(LEAVES);
    }

    /// A stream of a shard's has been opened.
    pub(crate) fn stay(&self) {
        self.decide(STAYS);
    }

    fn decide(&self, whither: u8) {
        // What was decided first holds. A load is all that most requests cost.
        let place = &self.place;
        if place.load(Ordering::Relaxed) == NEW {
            let _ = place.compare_exchange(NEW, whither, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Whether it is to move now.
    pub(crate) fn is_leaving(&self) -> bool {
        self.place.load(Ordering::Relaxed) == LEAVES
    }

    /// It is on its new runtime, and has not been polled there.
    pub(crate) fn arrive(&self) {
        self.place.store(ARRIVED, Ordering::Relaxed);
    }
}

/// The socket of a connection that may move.
#[derive(Debug)]
pub(crate) struct MigratingStream {
    /// Absent only if it could not be registered anew.
    stream: Option<TcpStream>,
    home: Arc<Home>,
    /// It is registered where it is served for good.
    settled: bool,
    stall: PeerStall,
}

impl MigratingStream {
    /// A peer that takes nothing and says nothing for so long as `patience` is given up.
    pub(crate) fn new(stream: TcpStream, home: Arc<Home>, patience: Duration) -> MigratingStream {
        MigratingStream {
            stream: Some(stream),
            home,
            settled: false,
            stall: PeerStall::new(patience),
        }
    }

    /// The socket, registered with the runtime that polls it.
    fn here(&mut self) -> io::Result<Pin<&mut TcpStream>> {
        if !self.settled {
            match self.home.place.load(Ordering::Relaxed) {
                STAYS => self.settled = true,
                ARRIVED => {
                    self.settled = true;
                    let moved = self.stream.take().map(TcpStream::into_std).transpose()?;
                    self.stream = moved.map(TcpStream::from_std).transpose()?;
                }
                _ => {}
            }
        }
        let stream = self.stream.as_mut().map(Pin::new);
        stream.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl AsyncRead for MigratingStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let read = match this.here() {
            Ok(stream) => stream.poll_read(cx, buffer),
            Err(error) => Poll::Ready(Err(error)),
        };
        if buffer.filled().len() > before {
            this.stall.heard();
        }
        read
    }
}

impl AsyncWrite for MigratingStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = match this.here() {
            Ok(stream) => stream.poll_write(cx, bytes),
            Err(error) => Poll::Ready(Err(error)),
        };
        this.stall.look(written, cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = match this.here() {
            Ok(stream) => stream.poll_write_vectored(cx, slices),
            Err(error) => Poll::Ready(Err(error)),
        };
        this.stall.look(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut().here() {
            Ok(stream) => stream.poll_flush(cx),
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut().here() {
            Ok(stream) => stream.poll_shutdown(cx),
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_connection_is_for_is_decided_by_its_first_call() {
        let streams = Home::default();
        assert!(!streams.is_leaving());
        streams.stay();
        streams.ask_for_mailboxes();
        assert!(!streams.is_leaving());
        let asks = Home::default();
        asks.ask_for_mailboxes();
        asks.stay();
        assert!(asks.is_leaving());
        asks.arrive();
        asks.ask_for_mailboxes();
        assert!(!asks.is_leaving(), "it moves once");
    }

    #[test]
    fn a_socket_goes_on_after_the_runtime_that_it_began_on_has_gone() {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let runtime = || {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
        };
        let (first, second) = (runtime().unwrap(), runtime().unwrap());
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut peer = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        accepted.set_nonblocking(true).unwrap();
        let home = Arc::new(Home::default());
        let mut moving = first.block_on(async {
            let stream = TcpStream::from_std(accepted).unwrap();
            let mut moving = MigratingStream::new(stream, Arc::clone(&home), Duration::MAX);
            moving.write_all(b"one").await.unwrap();
            moving
        });
        home.ask_for_mailboxes();
        home.arrive();
        // While the first runtime is still there: its registration is given up.
        second.block_on(moving.write_all(b"two")).unwrap();
        drop(first);
        second.block_on(async {
            std::io::Write::write_all(&mut peer, b"three").unwrap();
            let mut heard = [0; 5];
            moving.read_exact(&mut heard).await.unwrap();
            assert_eq!(&heard, b"three");
        });
        let mut said = [0; 6];
        std::io::Read::read_exact(&mut peer, &mut said).unwrap();
        assert_eq!(&said, b"onetwo");
    }
}
