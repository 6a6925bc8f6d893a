//! Cards: what each node says of itself to all others.

use airmail_wire::link_v1;
use prost::Message as _;

/// Most bytes of a card.
pub const CARD_BYTES_MAX: usize = 1024;

/// Words of a node about itself. See `link.proto`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Card {
    /// Name of the node.
    pub name: String,
    /// The start of the node that it is of.
    pub boot: u64,
    /// Rises with each card of that start.
    pub count: u64,
    /// It takes publishes.
    pub pilot: bool,
    /// It makes deliveries.
    pub copilot: bool,
    /// It has logs.
    pub tower: bool,
    /// Its zone. Empty: none was given.
    pub zone: String,
    /// Name of the machine that it runs on.
    pub host: String,
    /// Where clients connect: `HOST:PORT`.
    pub client_address: String,
    /// Its number of shards.
    pub shards: u16,
    /// Connections of clients.
    pub connections: u32,
    /// Its clients are asked to go on at other nodes.
    pub draining: bool,
    /// It stops.
    pub leaving: bool,
    /// The ways by which it has its logs.
    pub ways: Ways,
    /// The release that it is of.
    pub release: String,
}

/// The ways by which a node has its logs, and others have them from it, as it says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ways {
    /// Nodes whose logs it uses and to which it has no link, the first few.
    pub unlinked: Vec<String>,
    /// Its place in a tree, if it is in one.
    pub tree: Option<TreeCard>,
    /// Where others link to it for its logs: `HOST:PORT`. Empty: nowhere.
    pub link_address: String,
}

/// The place of a node in a tree, as it says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeCard {
    /// Its logs are those of a parent: it is not the root.
    pub is_child: bool,
    /// Name of its parent. Empty: it has none.
    pub parent: String,
    /// Nodes above it. 0 of a child: it has no way to the root.
    pub depth: u32,
    /// Its children.
    pub children: u32,
    /// Half of the time that a question to the parent and its answer take, in microseconds.
    pub delay_us: u32,
    /// Time for which something that it follows has not been at its end, in milliseconds.
    pub behind_ms: u32,
}

/// Reason for which bytes are no card.
#[derive(Debug, thiserror::Error)]
pub enum CardError {
    /// They are no protobuf of one.
    #[error("a card: {0}")]
    Protobuf(#[from] prost::DecodeError),
    /// A field has a value that it cannot have.
    #[error("a card's {field} is {value}")]
    Value {
        /// The field.
        field: &'static str,
        /// The value.
        value: String,
    },
}

impl Card {
    /// A card's bytes. One that would be too long names fewer nodes to which it has no link.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut card = link_v1::Card {
            name: self.name.clone(),
            boot: self.boot,
            count: self.count,
            pilot: self.pilot,
            copilot: self.copilot,
            tower: self.tower,
            zone: self.zone.clone(),
            host: self.host.clone(),
            client_address: self.client_address.clone(),
            shards: self.shards.into(),
            connections: self.connections,
            draining: self.draining,
            leaving: self.leaving,
            unlinked: self.ways.unlinked.clone(),
            release: self.release.clone(),
            tree: self.ways.tree.as_ref().map(TreeCard::to_wire),
            link_address: self.ways.link_address.clone(),
        };
        while card.encoded_len() > CARD_BYTES_MAX && card.unlinked.pop().is_some() {}
        card.encode_to_vec()
    }

    /// A card of bytes.
    ///
    /// # Errors
    /// They are none.
    pub fn decode(bytes: &[u8]) -> Result<Card, CardError> {
        let value = |field, value: String| CardError::Value { field, value };
        if bytes.len() > CARD_BYTES_MAX {
            return Err(value("length", format!("{} bytes", bytes.len())));
        }
        let card = link_v1::Card::decode(bytes)?;
        if card.name.is_empty() {
            return Err(value("name", "empty".to_owned()));
        }
        let shards = card.shards;
        Ok(Card {
            name: card.name,
            boot: card.boot,
            count: card.count,
            pilot: card.pilot,
            copilot: card.copilot,
            tower: card.tower,
            zone: card.zone,
            host: card.host,
            client_address: card.client_address,
            shards: u16::try_from(shards).map_err(|_| value("shards", shards.to_string()))?,
            connections: card.connections,
            draining: card.draining,
            leaving: card.leaving,
            ways: Ways {
                unlinked: card.unlinked,
                tree: card.tree.map(TreeCard::from_wire),
                link_address: card.link_address,
            },
            release: card.release,
        })
    }

    /// Age of a card among those of its node.
    pub(crate) fn age(&self) -> (u64, u64) {
        (self.boot, self.count)
    }
}

impl TreeCard {
    fn to_wire(&self) -> link_v1::TreeCard {
        link_v1::TreeCard {
            is_child: self.is_child,
            parent: self.parent.clone(),
            depth: self.depth,
            children: self.children,
            delay_us: self.delay_us,
            behind_ms: self.behind_ms,
        }
    }

    fn from_wire(card: link_v1::TreeCard) -> TreeCard {
        TreeCard {
            is_child: card.is_child,
            parent: card.parent,
            depth: card.depth,
            children: card.children,
            delay_us: card.delay_us,
            behind_ms: card.behind_ms,
        }
    }
}

/// Whether two cards differ in nothing but their age.
pub(crate) fn say_the_same(one: Option<&Card>, other: Option<&Card>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => {
            let count = other.count;
            *other
                == Card {
                    count,
                    ..one.clone()
                }
        }
        (None, None) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card() -> Card {
        Card {
            name: "g1".into(),
            boot: 7,
            count: 9,
            pilot: true,
            copilot: true,
            tower: false,
            zone: "west".into(),
            host: "machine".into(),
            client_address: "10.0.0.1:7400".into(),
            shards: 2,
            connections: 1_000,
            draining: true,
            leaving: false,
            release: "0.1.0".into(),
            ways: Ways {
                link_address: "10.0.0.1:7402".into(),
                unlinked: vec!["t1".into()],
                tree: Some(TreeCard {
                    is_child: true,
                    parent: "r1".into(),
                    depth: 1,
                    children: 2,
                    delay_us: 40_000,
                    behind_ms: 3,
                }),
            },
        }
    }

    #[test]
    fn a_card_is_read_as_it_was_written() {
        assert_eq!(Card::decode(&card().encode()).unwrap(), card());
    }

    #[test]
    fn a_card_that_would_be_too_long_names_fewer_nodes() {
        let mut long = card();
        long.ways.unlinked = (0..500).map(|node| format!("tower-{node}")).collect();
        let bytes = long.encode();
        assert!(bytes.len() <= CARD_BYTES_MAX && bytes.len() > CARD_BYTES_MAX - 20);
        assert!(Card::decode(&bytes).unwrap().ways.unlinked.len() > 50);
    }

    #[test]
    fn what_is_no_card_is_refused() {
        assert!(Card::decode(b"\xff\xff").is_err());
        assert!(Card::decode(b"").is_err(), "it has no name");
        assert!(Card::decode(&vec![0; CARD_BYTES_MAX + 1]).is_err());
    }
}
