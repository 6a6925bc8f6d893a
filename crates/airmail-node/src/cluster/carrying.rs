//! Carrying: what moves bytes between a socket and a port, until either ends.
//!
//! Both directions are one task, on the thread of the shard whose port it is. It sends as soon as there is
//! something, and all that has gathered meanwhile in one write; a port that is full is not read for, so that the
//! other side's window closes.
//!
//! A link on which nothing is said carries signs of life, so that one whose other end stands still or is cut off is
//! found long before TCP would. They come from the shard's own thread: one that has no turns is silent.
//!
//! Nodes have words of their own for each other, which are no port's: of those the last one that was not sent is, before
//! what the port says ([`Words`]), and what comes is shown to the node first.

use super::hearing::{Heard, Hearing, LOOK};
use super::link_end::LinkEnd;
use crate::metrics::cluster::LinkMeters;
use airmail_log::Waker;
use airmail_wire::{Carrier, FrameReader, FrameWriter, OnWire, PortLimits, WirePort, wire_port};
use bytes::Buf as _;
use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Bytes that are encoded before they are written.
const WRITE_BYTES: usize = 256 << 10;

/// Wakes both directions: one waits for something to send, the other for room.
#[derive(Debug, Default)]
struct Woken {
    to_send: Notify,
    room: Notify,
}

/// Things that have happened on a connection since somebody looked.
#[derive(Debug, Default)]
struct Happened {
    sent: AtomicBool,
    received: AtomicBool,
    /// Nothing is read, because the port has no room.
    is_full: AtomicBool,
    /// A sign of life is due.
    alive_due: AtomicBool,
}

/// One who carries what a port says, over one connection after another.
#[derive(Debug)]
pub(super) struct Carrying<Out, In> {
    carrier: Carrier<Out, In>,
    woken: Arc<Woken>,
    words: Arc<Words<Out>>,
}

/// Words of the node that go over a link: a later one takes the place of one that was not sent.
#[derive(Debug)]
pub(super) struct Words<Out> {
    last: Mutex<Option<Out>>,
    woken: Arc<Woken>,
}

impl<Out> Words<Out> {
    /// Sends a word.
    pub(super) fn say(&self, word: Out) {
        *self.last.lock() = Some(word);
        self.woken.to_send.notify_one();
    }

    fn take(&self) -> Option<Out> {
        self.last.lock().take()
    }
}

/// Looks at what comes first: what is for the node is not given back.
pub(super) type Hear<'a, In> = &'a (dyn Fn(In) -> Option<In> + Send + Sync);

impl<Out: OnWire + Send, In: OnWire + Send> Carrying<Out, In> {
    /// A port, whose owner is woken by `owner`, and whoever carries for it.
    pub(super) fn port(owner: Waker) -> (WirePort<Out, In>, Carrying<Out, In>) {
        let woken = Arc::<Woken>::default();
        let wakes = Arc::clone(&woken);
        let waker: Waker = Arc::new(move || {
            wakes.to_send.notify_one();
            wakes.room.notify_one();
        });
        let (port, carrier) = wire_port(PortLimits::default(), owner, waker);
        let words = Arc::new(Words {
            last: Mutex::new(None),
            woken: Arc::clone(&woken),
        });
        let carrying = Carrying {
            carrier,
            woken,
            words,
        };
        (port, carrying)
    }

    /// Words of the node that go over the connection that there is.
    pub(super) fn words(&self) -> Arc<Words<Out>> {
        Arc::clone(&self.words)
    }

    /// Carries over a connection, of which `reader` has what has come already, until it ends.
    pub(super) async fn carry(
        &self,
        (mut stream, reader): (TcpStream, FrameReader),
        meters: &LinkMeters,
        hear: Hear<'_, In>,
        stop: &CancellationToken,
    ) -> LinkEnd {
        let (read, write) = stream.split();
        let happened = Happened::default();
        self.carrier.up();
        meters.links.inc();
        // Dropped in mid-write at the worst: the connection is of no use then.
        let end = tokio::select! {
            Err(end) = self.receive((read, reader), hear, (meters, &happened)) => end,
            Err(end) = self.send(write, (meters, &happened)) => end,
            Err(end) = self.watch((meters, &happened)) => end,
            () = stop.cancelled() => LinkEnd::Stopping,
        };
        meters.links.dec();
        self.carrier.cut();
        self.words.take();
        end
    }

    async fn receive(
        &self,
        (mut read, mut reader): (ReadHalf<'_>, FrameReader),
        hear: Hear<'_, In>,
        (meters, happened): (&LinkMeters, &Happened),
    ) -> Result<Infallible, LinkEnd> {
        loop {
            let mut has_given = false;
            loop {
                if !self.carrier.has_room() {
                    self.carrier.wake();
                    happened.is_full.store(true, Ordering::Relaxed);
                    self.woken.room.notified().await;
                    happened.is_full.store(false, Ordering::Relaxed);
                    continue;
                }
                let Some(message) = reader.message()? else {
                    break;
                };
                if let Some(message) = hear(message) {
                    self.carrier.give(message);
                    has_given = true;
                }
            }
            if has_given {
                self.carrier.wake();
            }
            match read.read_buf(reader.room()).await? {
                0 => return Err(LinkEnd::Closed),
                length => meters.received.inc_by(length as u64),
            };
            happened.received.store(true, Ordering::Relaxed);
        }
    }

    async fn send(
        &self,
        mut write: WriteHalf<'_>,
        (meters, happened): (&LinkMeters, &Happened),
    ) -> Result<Infallible, LinkEnd> {
        let mut writer = FrameWriter::default();
        loop {
            if let Some(word) = self.words.take() {
                writer.put(word);
            }
            while writer.remaining() < WRITE_BYTES {
                let Some(message) = self.carrier.take() else {
                    break;
                };
                writer.put(message);
            }
            if happened.alive_due.swap(false, Ordering::Relaxed) && !writer.has_remaining() {
                writer.put_alive();
            }
            if writer.has_remaining() {
                let length = write.write_buf(&mut writer).await?;
                meters.sent.inc_by(length as u64);
                happened.sent.store(true, Ordering::Relaxed);
            } else {
                self.woken.to_send.notified().await;
            }
        }
    }

    /// Has signs of life sent, and ends when none come.
    async fn watch(
        &self,
        (meters, happened): (&LinkMeters, &Happened),
    ) -> Result<Infallible, LinkEnd> {
        let mut hearing = Hearing::new();
        let mut waiting = Waiting::of(meters);
        loop {
            sleep(LOOK).await;
            waiting.set(self.carrier.waiting_bytes());
            if !happened.sent.swap(false, Ordering::Relaxed) {
                happened.alive_due.store(true, Ordering::Relaxed);
                self.woken.to_send.notify_one();
            }
            let is_full = happened.is_full.load(Ordering::Relaxed);
            let has_come = happened.received.swap(false, Ordering::Relaxed) || is_full;
            match hearing.look(has_come) {
                Heard::Well => {}
                Heard::Silent => _ = meters.silences.inc(),
                Heard::Lost => return Err(LinkEnd::Silent),
            }
        }
    }
}

/// One link's part of the bytes that wait, which is nothing when it ends.
struct Waiting<'m> {
    all: &'m Gauge,
    own: i64,
}

impl Waiting<'_> {
    fn of(meters: &LinkMeters) -> Waiting<'_> {
        let all = &meters.waiting;
        Waiting { all, own: 0 }
    }

    fn set(&mut self, bytes: usize) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.all.inc_by(bytes - self.own);
        self.own = bytes;
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::cluster::ClusterMetrics;
    use airmail_link::{FromHost, ToHost};
    use airmail_wire::FRAME_BYTES_MAX;
    use tokio::net::TcpListener;

    #[test]
    fn the_bytes_that_wait_are_those_of_all_links_and_go_with_a_link() {
        let meters = ClusterMetrics::default().link_meters("other");
        let (mut one, mut other) = (Waiting::of(&meters), Waiting::of(&meters));
        one.set(1_000);
        other.set(500);
        assert_eq!(meters.waiting.get(), 1_500);
        one.set(200);
        assert_eq!(meters.waiting.get(), 700);
        drop(other);
        assert_eq!(meters.waiting.get(), 200);
    }

    #[tokio::test]
    async fn an_end_that_says_nothing_is_lost_and_was_told_that_this_one_lives() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stream = TcpStream::connect(address).await.unwrap();
        let (mut other, _) = listener.accept().await.unwrap();
        let (_port, carrying) = Carrying::<ToHost, FromHost>::port(Arc::new(|| {}));
        let meters = ClusterMetrics::default().link_meters("other");
        let reader = FrameReader::new(FRAME_BYTES_MAX);
        let stop = CancellationToken::new();
        let end = carrying
            .carry((stream, reader), &meters, &Some, &stop)
            .await;
        assert!(matches!(end, LinkEnd::Silent), "{end}");
        assert_eq!(meters.silences.get(), 1);
        let mut heard = Vec::new();
        other.read_to_end(&mut heard).await.unwrap();
        assert!(
            heard.len() >= 4 && heard.iter().all(|byte| *byte == 0),
            "{heard:?}"
        );
    }
}
