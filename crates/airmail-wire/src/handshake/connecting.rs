//! The side that connects.

use super::{
    Asked, Credentials, HandshakeError, Hellos, Node, Offer, Side, frame, opened, out_of_turn, peer,
};
use crate::link_v1;
use crate::link_v1::handshake_frame::Frame;
use bytes::Bytes;
use prost::Message;

/// A handshake of the side that connects. See the module's documentation.
#[derive(Debug)]
pub struct Connecting {
    credentials: Credentials,
    hello: Bytes,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Hello,
    Proof { hellos: Hellos, peer: Node },
    Welcome { peer: Node },
}

/// Consequences of a frame.
#[derive(Debug)]
pub enum Told {
    /// Send this, and wait for another.
    Send(link_v1::HandshakeFrame),
    /// Wait for another.
    Wait,
    /// It is done: who the other side is, and what it has.
    Welcome(Node, Offer),
}

impl Connecting {
    /// A handshake for a link, and its first frame.
    #[must_use]
    pub fn begin(credentials: Credentials, asked: &Asked) -> (Connecting, link_v1::HandshakeFrame) {
        let hello = credentials.hello(asked);
        let begun = Connecting {
            credentials,
            hello: hello.encode_to_vec().into(),
            stage: Stage::Hello,
        };
        (begun, hello)
    }

    /// Takes a frame of the other side, without its length.
    ///
    /// # Errors
    /// [`HandshakeError`]: the connection is of no use. A [`HandshakeError::Refusing`] is to be told to the
    /// other side.
    pub fn step(&mut self, bytes: Bytes) -> Result<Told, HandshakeError> {
        match (&self.stage, opened(bytes.clone())?) {
            (Stage::Hello, Frame::Hello(hello)) => {
                self.credentials.agree(&hello)?;
                let hellos = Hellos {
                    of_connecting: self.hello.clone(),
                    of_accepting: bytes,
                };
                let proof = self.credentials.proof(Side::Connects, &hellos);
                let peer = peer(&hello);
                self.stage = Stage::Proof { hellos, peer };
                Ok(Told::Send(proof))
            }
            (Stage::Proof { hellos, peer }, Frame::Proof(proof)) => {
                self.credentials
                    .verify(Side::Accepts, hellos, peer, &proof)?;
                let peer = peer.clone();
                self.stage = Stage::Welcome { peer };
                Ok(Told::Wait)
            }
            (Stage::Welcome { peer }, Frame::Welcome(welcome)) => {
                Ok(Told::Welcome(peer.clone(), Offer::from_wire(welcome)?))
            }
            (Stage::Hello, _) => Err(out_of_turn("hello")),
            (Stage::Proof { .. }, _) => Err(out_of_turn("proof")),
            (Stage::Welcome { .. }, _) => Err(out_of_turn("welcome")),
        }
    }

    /// Whether the other side is known to have the secret: from then on its frames may be long.
    #[must_use]
    pub fn trusts(&self) -> bool {
        matches!(self.stage, Stage::Welcome { .. })
    }
}

impl Offer {
    /// The frame that welcomes.
    pub(super) fn frame(&self, version: u32) -> link_v1::HandshakeFrame {
        frame(Frame::Welcome(self.to_wire(version)))
    }
}
