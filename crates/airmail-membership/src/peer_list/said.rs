//! Questions and answers of nodes with a fixed list, as bytes.
//!
//! ```text
//! 1: question, 2: answer u8 · place u16 · boot of who asks u64 · number of who says it u64 · its card
//! ```

use super::Place;
use crate::card::Card;
use crate::seal::SealError;
use airmail_model::NodeId;
use bytes::{Buf, BufMut};

/// Bytes before the card.
pub(super) const HEAD_BYTES: usize = 1 + 2 + 8 + 8;
pub(super) const QUESTION: u8 = 1;
const ANSWER: u8 = 2;

/// One question or answer.
pub(super) struct Said {
    pub(super) is_question: bool,
    pub(super) place: Place,
    /// Start of the node that asks.
    pub(super) asker: u64,
    pub(super) node: NodeId,
    pub(super) card: Card,
}

impl Said {
    pub(super) fn encode(&self) -> Vec<u8> {
        let card = self.card.encode();
        let mut bytes = Vec::with_capacity(HEAD_BYTES + card.len());
        bytes.put_u8(if self.is_question { QUESTION } else { ANSWER });
        bytes.put_u16(self.place.0);
        bytes.put_u64(self.asker);
        bytes.put_u64(self.node.0);
        bytes.put_slice(&card);
        bytes
    }

    pub(super) fn decode(mut bytes: &[u8]) -> Result<Said, SealError> {
        if bytes.len() < HEAD_BYTES {
            return Err(SealError::Malformed);
        }
        let is_question = match bytes.get_u8() {
            QUESTION => true,
            ANSWER => false,
            _ => return Err(SealError::Malformed),
        };
        let place = Place(bytes.get_u16());
        let (asker, node) = (bytes.get_u64(), NodeId(bytes.get_u64()));
        let card = Card::decode(bytes).map_err(|_| SealError::Malformed)?;
        Ok(Said {
            is_question,
            place,
            asker,
            node,
            card,
        })
    }
}
