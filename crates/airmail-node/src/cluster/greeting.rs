//! Greeting: the handshake over a socket, in either role, within a bounded time.

use super::credentials::Identity;
use super::link_end::LinkEnd;
use airmail_wire::handshake::{
    Accepting, Between, Connecting, HELLO_BYTES_MAX, Heard, Known, Node, Offer, Told,
};
use airmail_wire::{FRAME_BYTES_MAX, FrameReader, FrameWriter, link_v1};
use bytes::Bytes;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Time that a handshake may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// A connection in its handshake.
#[derive(Debug)]
pub(super) struct Greeting {
    stream: TcpStream,
    reader: FrameReader,
}

impl Greeting {
    /// The handshake of a connection that has just been made.
    pub(super) fn new(stream: TcpStream) -> Result<Greeting, LinkEnd> {
        stream.set_nodelay(true)?;
        Ok(Greeting {
            stream,
            reader: FrameReader::new(HELLO_BYTES_MAX),
        })
    }

    /// Asks for a link: who the other node is, and what it has.
    pub(super) async fn ask(
        &mut self,
        identity: &Identity,
        between: Between,
    ) -> Result<(Node, Offer), LinkEnd> {
        let asked = timeout(PATIENCE, self.ask_in_time(identity, between)).await;
        let asked = asked.unwrap_or(Err(LinkEnd::Silent));
        self.tell_refusal(asked).await
    }

    async fn ask_in_time(
        &mut self,
        identity: &Identity,
        between: Between,
    ) -> Result<(Node, Offer), LinkEnd> {
        let (mut connecting, hello) = Connecting::begin(identity.credentials()?, between);
        self.send([&hello]).await?;
        loop {
            match connecting.step(self.frame().await?)? {
                Told::Send(frame) => self.send([&frame]).await?,
                Told::Wait => {}
                Told::Welcome(peer, offer) => return Ok((peer, offer)),
            }
            if connecting.trusts() {
                self.reader.allow(FRAME_BYTES_MAX);
            }
        }
    }

    /// Waits until it is known who asks for a link.
    pub(super) async fn known(&mut self, identity: &Identity) -> Result<Known, LinkEnd> {
        let known = timeout(PATIENCE, self.known_in_time(identity)).await;
        let known = known.unwrap_or(Err(LinkEnd::Silent));
        self.tell_refusal(known).await
    }

    async fn known_in_time(&mut self, identity: &Identity) -> Result<Known, LinkEnd> {
        let mut accepting = Accepting::new(identity.credentials()?);
        loop {
            match accepting.step(self.frame().await?)? {
                Heard::Send(frame) => self.send([&frame]).await?,
                Heard::Known(known) => return Ok(known),
            }
        }
    }

    /// Lets in who has asked.
    pub(super) async fn welcome(&mut self, known: Known, offer: &Offer) -> Result<(), LinkEnd> {
        let [proof, welcome] = known.welcome(offer);
        let sent = timeout(PATIENCE, self.send([&proof, &welcome])).await;
        self.reader.allow(FRAME_BYTES_MAX);
        sent.unwrap_or(Err(LinkEnd::Silent))
    }

    /// Passes a result on; the other side is told of a refusal, if it still listens.
    pub(super) async fn tell_refusal<T>(
        &mut self,
        result: Result<T, LinkEnd>,
    ) -> Result<T, LinkEnd> {
        if let Err(end) = &result
            && let Some(refusal) = end.refusal()
        {
            // An error says that it does not listen.
            let _ = timeout(PATIENCE, self.send([&refusal.frame()])).await;
        }
        result
    }

    /// The connection, and what has come of it.
    pub(super) fn into_parts(self) -> (TcpStream, FrameReader) {
        (self.stream, self.reader)
    }

    async fn frame(&mut self) -> Result<Bytes, LinkEnd> {
        loop {
            if let Some(frame) = self.reader.frame()? {
                return Ok(frame);
            }
            if self.stream.read_buf(self.reader.room()).await? == 0 {
                return Err(LinkEnd::Closed);
            }
        }
    }

    async fn send<const N: usize>(
        &mut self,
        frames: [&link_v1::HandshakeFrame; N],
    ) -> Result<(), LinkEnd> {
        let mut writer = FrameWriter::default();
        for frame in frames {
            writer.put_plain(frame);
        }
        Ok(self.stream.write_all_buf(&mut writer).await?)
    }
}
