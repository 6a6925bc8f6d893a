//! The open batch of a log, which gathers messages; and how much of the memory bound a message
//! takes.

use super::{MessageRef, Ticket};
use airmail_model::batch::{AttributeValue, PushError};
use airmail_model::{BatchEncoder, Limits, Message, Mono, NamespaceId, TopicHash};

/// Number of bytes of the memory bound that a message takes beyond its own: tables and ticket.
const MESSAGE_OVERHEAD_BYTES: usize = 64;

/// Computes how many bytes of the memory bound a message takes.
pub(super) fn held_bytes(message: &MessageRef<'_>) -> usize {
    let body = match message {
        MessageRef::Message(message) => message.payload.len() + attributes_bytes(message),
        MessageRef::Payload(_, payload) => payload.len(),
    };
    MESSAGE_OVERHEAD_BYTES + message.topic().as_str().len() + body
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

/// A batch that still gathers messages.
#[derive(Debug)]
pub(super) struct OpenBatch {
    pub(super) encoder: BatchEncoder,
    pub(super) tickets: Vec<Ticket>,
    /// Number of bytes of the memory bound that its messages take.
    pub(super) held_bytes: usize,
    /// Time at which its first message was published.
    pub(super) published: Mono,
    /// The producer's wall clock at its first message; no later message is given an earlier time.
    pub(super) time: i64,
}

impl OpenBatch {
    /// Makes an empty one.
    pub(super) fn new(namespace: NamespaceId) -> OpenBatch {
        OpenBatch {
            encoder: BatchEncoder::new(namespace),
            tickets: Vec::new(),
            held_bytes: 0,
            published: Mono(0),
            time: 0,
        }
    }

    /// Takes the tickets, and leaves room for as many: the next batch will likely have as many
    /// messages.
    pub(super) fn take_tickets(&mut self) -> Vec<Ticket> {
        let next = Vec::with_capacity(self.tickets.len());
        std::mem::replace(&mut self.tickets, next)
    }

    /// Appends a message; returns whether it is the first.
    pub(super) fn push(
        &mut self,
        message: &MessageRef<'_>,
        hash: TopicHash,
        bytes: usize,
        ticket: Ticket,
        (published, time): (Mono, i64),
        limits: &Limits,
    ) -> Result<bool, PushError> {
        let begins = self.tickets.is_empty();
        let time = if begins { time } else { time.max(self.time) };
        match message {
            MessageRef::Message(message) => {
                self.encoder.push_hashed(message, hash, time, limits)?
            }
            MessageRef::Payload(topic, payload) => {
                self.encoder
                    .push_payload(topic, payload, hash, time, limits)?;
            }
        }
        if begins {
            self.time = time;
            self.published = published;
        }
        self.tickets.push(ticket);
        self.held_bytes += bytes;
        Ok(begins)
    }
}
