//! Greeting: the handshake over a socket, in either role, within a bounded time.

use super::credentials::Identity;
use super::link_end::LinkEnd;
use airmail_wire::handshake::{
    Accepting, Asked, Connecting, HELLO_BYTES_MAX, Heard, Known, Node, Offer, Told,
};
use airmail_wire::{FRAME_BYTES_MAX, FrameReader, FrameWriter, link_v1};
use bytes::Bytes;
use rustix::net::sockopt;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Time that a handshake may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Time after which a peer is given up that acknowledges nothing of what was sent: it has gone without a word, or
/// something between has.
const LOST: Duration = Duration::from_secs(10);
/// Time without a word after which a peer is asked whether it is there, and between two such questions.
const QUIET: Duration = Duration::from_secs(4);
const ASKED: Duration = Duration::from_secs(2);
/// Questions without an answer that are enough.
const UNANSWERED: u32 = 3;

/// Has the system find out that a peer is lost.
fn watch(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, QUIET)?;
    sockopt::set_tcp_keepintvl(stream, ASKED)?;
    sockopt::set_tcp_keepcnt(stream, UNANSWERED)?;
    let lost = u32::try_from(LOST.as_millis()).unwrap_or(u32::MAX);
    sockopt::set_tcp_user_timeout(stream, lost)?;
    Ok(())
}

/// A connection in its handshake.
#[derive(Debug)]
pub(super) struct Greeting {
    stream: TcpStream,
    reader: FrameReader,
}

impl Greeting {
    /// The handshake of a connection that has just been made.
    pub(super) fn new(stream: TcpStream) -> Result<Greeting, LinkEnd> {
        watch(&stream)?;
        Ok(Greeting {
            stream,
            reader: FrameReader::new(HELLO_BYTES_MAX),
        })
    }

    /// Asks for a link: who the other node is, and what it has.
    pub(super) async fn ask(
        &mut self,
        identity: &Identity,
        asked: &Asked,
    ) -> Result<(Node, Offer), LinkEnd> {
        let answer = timeout(PATIENCE, self.ask_in_time(identity, asked)).await;
        let answer = answer.unwrap_or(Err(LinkEnd::Silent));
        self.tell_refusal(answer).await
    }

    async fn ask_in_time(
        &mut self,
        identity: &Identity,
        asked: &Asked,
    ) -> Result<(Node, Offer), LinkEnd> {
        let (mut connecting, hello) = Connecting::begin(identity.credentials()?, asked);
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

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn a_peer_that_is_lost_is_found_by_the_system() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stream = TcpStream::connect(address).await.unwrap();
        let (stream, _) = Greeting::new(stream).unwrap().into_parts();
        assert_eq!(sockopt::tcp_user_timeout(&stream).unwrap(), 10_000);
        assert!(sockopt::socket_keepalive(&stream).unwrap());
        assert!(stream.nodelay().unwrap());
    }
}
