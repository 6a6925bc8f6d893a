//! Carrying: what moves bytes between a socket and a port, until either ends.
//!
//! Both directions are one task, on the thread of the shard whose port it is. It sends as soon as there is
//! something, and all that has gathered meanwhile in one write; a port that is full is not read for, so that the
//! other side's window closes.

use super::link_end::LinkEnd;
use crate::metrics::cluster::LinkBytes;
use airmail_log::Waker;
use airmail_wire::{Carrier, FrameReader, FrameWriter, OnWire, PortLimits, WirePort, wire_port};
use bytes::Buf as _;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Bytes that are encoded before they are written.
const WRITE_BYTES: usize = 256 << 10;

/// Wakes both directions: one waits for something to send, the other for room.
#[derive(Debug, Default)]
struct Woken {
    to_send: Notify,
    room: Notify,
}

/// One who carries what a port says, over one connection after another.
#[derive(Debug)]
pub(super) struct Carrying<Out, In> {
    carrier: Carrier<Out, In>,
    woken: Arc<Woken>,
}

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
        (port, Carrying { carrier, woken })
    }

    /// Carries over a connection, of which `reader` has what has come already, until it ends.
    pub(super) async fn carry(
        &self,
        mut stream: TcpStream,
        reader: FrameReader,
        bytes: &LinkBytes,
        stop: &CancellationToken,
    ) -> LinkEnd {
        let (read, write) = stream.split();
        self.carrier.up();
        // Dropped in mid-write at the worst: the connection is of no use then.
        let end = tokio::select! {
            Err(end) = self.receive(read, reader, bytes) => end,
            Err(end) = self.send(write, bytes) => end,
            () = stop.cancelled() => LinkEnd::Stopping,
        };
        self.carrier.cut();
        end
    }

    async fn receive(
        &self,
        mut read: ReadHalf<'_>,
        mut reader: FrameReader,
        bytes: &LinkBytes,
    ) -> Result<Infallible, LinkEnd> {
        loop {
            let mut has_given = false;
            loop {
                if !self.carrier.has_room() {
                    self.carrier.wake();
                    self.woken.room.notified().await;
                    continue;
                }
                let Some(message) = reader.message()? else {
                    break;
                };
                self.carrier.give(message);
                has_given = true;
            }
            if has_given {
                self.carrier.wake();
            }
            match read.read_buf(reader.room()).await? {
                0 => return Err(LinkEnd::Closed),
                length => bytes.received.inc_by(length as u64),
            };
        }
    }

    async fn send(
        &self,
        mut write: WriteHalf<'_>,
        bytes: &LinkBytes,
    ) -> Result<Infallible, LinkEnd> {
        let mut writer = FrameWriter::default();
        loop {
            while writer.remaining() < WRITE_BYTES {
                let Some(message) = self.carrier.take() else {
                    break;
                };
                writer.put(message);
            }
            if writer.has_remaining() {
                let length = write.write_buf(&mut writer).await?;
                bytes.sent.inc_by(length as u64);
            } else {
                self.woken.to_send.notified().await;
            }
        }
    }
}
