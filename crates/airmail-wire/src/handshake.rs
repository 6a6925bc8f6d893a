//! The handshake: who the two sides of a connection are, before anything else is said.
//!
//! Each side sends a Hello with bytes that were never used before, and proves by the cluster's secret that it
//! has read both. The side that connects proves first, so nobody is shown a proof who has none. Only then does
//! the other side say what it has. What a peer says of itself is believed, once it is known to have the secret.
//!
//! ```text
//! connects              accepts
//!    Hello  ──────────▶           which version, which cluster?
//!           ◀──────────  Hello
//!    Proof  ──────────▶           of both Hellos
//!           ◀──────────  Proof, Welcome
//! ```
//!
//! Invariants: a proof is of both Hellos as they were sent, with all that a later version says in them, and of
//! the side that it is from, so that neither a recorded one nor a reflected one holds; whoever refuses says why.

mod accepting;
mod connecting;
mod offer;

use crate::link_v1;
use crate::link_v1::handshake_frame::Frame;
use crate::link_v1::refused::Why;
use crate::malformed::Malformed;
use crate::secret::SecretHash;
pub use crate::secret::{SECRET_BYTES_MIN, Secret};
pub use accepting::{Accepting, Heard, Known};
use airmail_model::NodeId;
use bytes::Bytes;
pub use connecting::{Connecting, Told};
pub use offer::{Offer, OfferedStorage};
use prost::Message;
use std::fmt;
use std::ops::RangeInclusive;

/// Versions of the protocol that this release speaks. A node that speaks version 1 alone knows neither time to live nor
/// audience: it would give messages to clients who are not to have them.
pub const VERSIONS: RangeInclusive<u32> = 2..=2;
/// Bytes of a challenge.
pub const CHALLENGE_BYTES: usize = 32;
/// Most bytes of a frame of the handshake before a peer is known. A Welcome may be longer.
pub const HELLO_BYTES_MAX: usize = 4 << 10;

/// Letters of a peer's name that are shown.
const NAME_SHOWN: usize = 64;

/// A node, as it says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its cluster; 0: none yet, it takes that of the other side.
    pub cluster: u64,
    /// Its name, unique in its cluster.
    pub name: String,
    /// Its number.
    pub node: NodeId,
    /// Rises with each of its starts.
    pub boot: u64,
}

/// The two ends of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Between {
    /// The shard of the side that connects.
    pub from: u16,
    /// The shard of the other side, which has logs.
    pub to: u16,
}

/// A link that is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Its ends.
    pub between: Between,
    /// Where others reach the side that connects, if it does so as a child in a tree: then it has all logs by this link,
    /// whichever shard they are at.
    pub child_address: Option<String>,
}

/// Everything that one side needs for a handshake.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// This side's node.
    pub node: Node,
    /// `None`: nothing is proven, which only loopback may do without.
    pub secret: Option<Secret>,
    /// Versions that it speaks; [`VERSIONS`] but in tests.
    pub versions: RangeInclusive<u32>,
    /// Random bytes, of the system's, that were never used before.
    pub challenge: [u8; CHALLENGE_BYTES],
}

/// Reason for which a handshake has failed.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// Something came that is no frame of a handshake, or none that may come now.
    #[error("no handshake: {0}")]
    Malformed(#[from] Malformed),
    /// This side refuses the other.
    #[error("refused: {0}")]
    Refusing(Refusal),
    /// The other side refuses this one.
    #[error("refused by the other side: {0}")]
    Refused(Refusal),
}

/// Refusals, with the facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The reason.
    pub why: Why,
    /// In words.
    pub text: String,
    /// Where another node is that may be asked.
    pub instead: Option<String>,
}

impl Refusal {
    /// A refusal in words.
    pub fn new(why: Why, text: impl Into<String>) -> Refusal {
        Refusal {
            why,
            text: text.into(),
            instead: None,
        }
    }

    /// The frame that tells it.
    #[must_use]
    pub fn frame(&self) -> link_v1::HandshakeFrame {
        frame(Frame::Refused(link_v1::Refused {
            why: self.why.into(),
            text: self.text.clone(),
            instead: self.instead.clone().unwrap_or_default(),
        }))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.text, self.why.as_str_name())
    }
}

fn frame(frame: Frame) -> link_v1::HandshakeFrame {
    link_v1::HandshakeFrame { frame: Some(frame) }
}

/// A frame that came, or the refusal in it.
fn opened(bytes: Bytes) -> Result<Frame, HandshakeError> {
    let message = link_v1::HandshakeFrame::decode(bytes).map_err(Malformed::from)?;
    match message.frame {
        Some(Frame::Refused(refused)) => Err(HandshakeError::Refused(Refusal {
            why: refused.why(),
            text: refused.text.escape_debug().to_string(),
            instead: Some(refused.instead).filter(|instead| !instead.is_empty()),
        })),
        Some(frame) => Ok(frame),
        None => Err(out_of_turn("handshake_frame.frame")),
    }
}

fn out_of_turn(field: &'static str) -> HandshakeError {
    HandshakeError::Malformed(Malformed::Missing { field })
}

/// The sides of a connection, by the word that a proof of each is over.
#[derive(Clone, Copy, Debug)]
enum Side {
    Connects,
    Accepts,
}

impl Side {
    const fn word(self) -> &'static [u8] {
        match self {
            Side::Connects => b"airmail link connects",
            Side::Accepts => b"airmail link accepts",
        }
    }
}

/// Both Hellos, as they were sent.
#[derive(Debug)]
struct Hellos {
    of_connecting: Bytes,
    of_accepting: Bytes,
}

impl Credentials {
    fn hello(&self, asked: &Asked) -> link_v1::HandshakeFrame {
        frame(Frame::Hello(link_v1::Hello {
            version_min: *self.versions.start(),
            version_max: *self.versions.end(),
            challenge: Bytes::copy_from_slice(&self.challenge),
            cluster: self.node.cluster,
            name: self.node.name.clone(),
            node: self.node.node.0,
            boot: self.node.boot,
            shard: asked.between.to.into(),
            from_shard: asked.between.from.into(),
            child_address: asked.child_address.clone().unwrap_or_default(),
        }))
    }

    /// The version to be spoken with who sent `hello`, if there is one and the clusters are one.
    fn agree(&self, hello: &link_v1::Hello) -> Result<u32, HandshakeError> {
        let refuse = |why, text| Err(HandshakeError::Refusing(Refusal::new(why, text)));
        let (ours, theirs) = (&self.versions, hello.version_min..=hello.version_max);
        let (us, them) = (shown(&self.node.name), shown(&hello.name));
        let highest = *ours.end().min(theirs.end());
        if !ours.contains(&highest) || !theirs.contains(&highest) {
            let text = format!("node {us} speaks versions {ours:?}, node {them} {theirs:?}");
            return refuse(Why::Version, text);
        }
        let (own, other) = (self.node.cluster, hello.cluster);
        if own != 0 && other != 0 && own != other {
            let text = format!("node {us} is of cluster {own:016x}, node {them} of {other:016x}");
            return refuse(Why::Cluster, text);
        }
        if hello.challenge.len() != CHALLENGE_BYTES {
            let length = format!("{} bytes", hello.challenge.len());
            return Err(Malformed::value("hello.challenge", length).into());
        }
        Ok(highest)
    }

    /// The keyed hash of both Hellos for a side; `None` without a secret.
    fn mac(&self, side: Side, hellos: &Hellos) -> Option<SecretHash> {
        let secret = self.secret.as_ref()?;
        secret.hash([side.word(), &hellos.of_connecting, &hellos.of_accepting])
    }

    fn proof(&self, side: Side, hellos: &Hellos) -> link_v1::HandshakeFrame {
        let mac = self.mac(side, hellos);
        let mac = mac.map(|mac| Bytes::copy_from_slice(&mac.bytes()));
        frame(Frame::Proof(link_v1::Proof {
            mac: mac.unwrap_or_default(),
        }))
    }

    /// Whether the proof of a peer is of who has the secret.
    fn verify(
        &self,
        side: Side,
        hellos: &Hellos,
        peer: &Node,
        proof: &link_v1::Proof,
    ) -> Result<(), HandshakeError> {
        // Who has a secret lets nobody in without it, whatever becomes of the hash.
        let holds = match &self.secret {
            Some(_) => self.mac(side, hellos).is_some_and(|mac| mac.is(&proof.mac)),
            None => proof.mac.is_empty(),
        };
        if holds {
            return Ok(());
        }
        let (us, them) = (shown(&self.node.name), shown(&peer.name));
        let text = match (&self.secret, proof.mac.is_empty()) {
            (None, _) => format!("node {us} has no secret, and node {them} has one"),
            (Some(_), true) => format!("node {us} has a secret, and node {them} has none"),
            (Some(_), false) => format!("nodes {us} and {them} have different secrets"),
        };
        Err(HandshakeError::Refusing(Refusal::new(Why::Secret, text)))
    }
}

/// A name that a peer has said, for a person.
fn shown(name: &str) -> String {
    name.chars()
        .take(NAME_SHOWN)
        .collect::<String>()
        .escape_debug()
        .to_string()
}

fn peer(hello: &link_v1::Hello) -> Node {
    Node {
        cluster: hello.cluster,
        name: hello.name.clone(),
        node: NodeId(hello.node),
        boot: hello.boot,
    }
}
