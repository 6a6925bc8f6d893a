//! The side that is connected to.

use super::{
    Asked as LinkAsked, Between, Credentials, HandshakeError, Hellos, Node, Offer, Side, opened,
    out_of_turn, peer,
};
use crate::link_v1;
use crate::link_v1::handshake_frame::Frame;
use crate::values::narrow;
use bytes::Bytes;
use prost::Message;

/// A handshake of the side that is connected to. See the module's documentation.
#[derive(Debug)]
pub struct Accepting {
    credentials: Credentials,
    asked: Option<Asked>,
}

/// A node that asks for a link; whether it has the secret is not known yet.
#[derive(Debug)]
struct Asked {
    hellos: Hellos,
    peer: Node,
    link: LinkAsked,
    version: u32,
}

/// Consequences of a frame.
#[derive(Debug)]
pub enum Heard {
    /// Send this, and wait for another.
    Send(link_v1::HandshakeFrame),
    /// The other side has the secret: it is to be welcomed, or refused.
    Known(Known),
}

/// A node that has the secret, and asks for a link.
#[derive(Debug)]
pub struct Known {
    /// The node that asks.
    pub peer: Node,
    /// The link that it asks for.
    pub link: LinkAsked,
    /// Version that is spoken.
    pub version: u32,
    proof: link_v1::HandshakeFrame,
}

impl Accepting {
    /// A handshake that waits for the other side's Hello.
    #[must_use]
    pub fn new(credentials: Credentials) -> Accepting {
        Accepting {
            credentials,
            asked: None,
        }
    }

    /// Takes a frame of the other side, without its length.
    ///
    /// # Errors
    /// [`HandshakeError`]: the connection is of no use. A [`HandshakeError::Refusing`] is to be told to the
    /// other side.
    pub fn step(&mut self, bytes: Bytes) -> Result<Heard, HandshakeError> {
        match (self.asked.take(), opened(bytes.clone())?) {
            (None, Frame::Hello(hello)) => self.hello(&hello, bytes).map(Heard::Send),
            (Some(asked), Frame::Proof(proof)) => {
                let (hellos, peer) = (&asked.hellos, &asked.peer);
                self.credentials
                    .verify(Side::Connects, hellos, peer, &proof)?;
                Ok(Heard::Known(Known {
                    proof: self.credentials.proof(Side::Accepts, hellos),
                    peer: asked.peer,
                    link: asked.link,
                    version: asked.version,
                }))
            }
            (None, _) => Err(out_of_turn("hello")),
            (Some(_), _) => Err(out_of_turn("proof")),
        }
    }

    fn hello(
        &mut self,
        hello: &link_v1::Hello,
        bytes: Bytes,
    ) -> Result<link_v1::HandshakeFrame, HandshakeError> {
        let version = self.credentials.agree(hello)?;
        let between = Between {
            from: narrow(hello.from_shard, "hello.from_shard")?,
            to: narrow(hello.shard, "hello.shard")?,
        };
        let own = self.credentials.hello(&LinkAsked::default());
        let address = Some(hello.child_address.clone());
        self.asked = Some(Asked {
            hellos: Hellos {
                of_connecting: bytes,
                of_accepting: own.encode_to_vec().into(),
            },
            peer: peer(hello),
            link: LinkAsked {
                between,
                child_address: address.filter(|address| !address.is_empty()),
            },
            version,
        });
        Ok(own)
    }
}

impl Known {
    /// The frames that let it in. A link follows.
    #[must_use]
    pub fn welcome(self, offer: &Offer) -> [link_v1::HandshakeFrame; 2] {
        [self.proof, offer.frame(self.version)]
    }
}
