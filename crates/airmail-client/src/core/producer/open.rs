//! The batch that gathers messages, and what these take of the memory bound.

use super::{Offer, Ticket};
use airmail_model::batch::{AttributeValue, PushError};
use airmail_model::{BatchEncoder, Limits, Message, Mono, NamespaceId, TopicHash};

/// What a message takes of the memory bound beyond its own bytes: tables and ticket.
const MESSAGE_OVERHEAD_BYTES: usize = 64;

/// What a message takes of the memory bound.
pub(super) fn held_bytes(offer: &Offer<'_>) -> usize {
    let body = match offer {
        Offer::Message(message) => message.payload.len() + attributes_bytes(message),
        Offer::Payload(_, payload) => payload.len(),
    };
    MESSAGE_OVERHEAD_BYTES + offer.topic().as_str().len() + body
}

fn attributes_bytes(message: &Message) -> usize {
    let attributes = message.attributes.iter().map(|(name, value)| {
        let value = match value {
            AttributeValue::String(text) => text.len(),
            _ => 8,
        };
        name.len() + value
    });
    attributes.sum()
}

/// The batch that gathers messages.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) encoder: BatchEncoder,
    pub(super) tickets: Vec<Ticket>,
    /// Of the memory bound.
    pub(super) bytes: usize,
    /// When its first message was published.
    pub(super) since: Mono,
    /// The producer's time of its first message; no later one is given an earlier time.
    pub(super) time: i64,
}

impl Open {
    /// Of nothing yet.
    pub(super) fn new(namespace: NamespaceId) -> Open {
        Open {
            encoder: BatchEncoder::new(namespace),
            tickets: Vec::new(),
            bytes: 0,
            since: Mono(0),
            time: 0,
        }
    }

    /// The tickets, leaving room for as many: the next batch will likely have as many messages.
    pub(super) fn take_tickets(&mut self) -> Vec<Ticket> {
        let next = Vec::with_capacity(self.tickets.len());
        std::mem::replace(&mut self.tickets, next)
    }

    /// Adds a message; whether it is the first.
    pub(super) fn push(
        &mut self,
        offer: &Offer<'_>,
        hash: TopicHash,
        bytes: usize,
        ticket: Ticket,
        (since, time): (Mono, i64),
        limits: &Limits,
    ) -> Result<bool, PushError> {
        let begins = self.tickets.is_empty();
        let time = if begins { time } else { time.max(self.time) };
        match offer {
            Offer::Message(message) => self.encoder.push_hashed(message, hash, time, limits)?,
            Offer::Payload(topic, payload) => {
                self.encoder
                    .push_payload(topic, payload, hash, time, limits)?;
            }
        }
        if begins {
            self.time = time;
            self.since = since;
        }
        self.tickets.push(ticket);
        self.bytes += bytes;
        Ok(begins)
    }
}
