//! Sending, receiving, settling and finding messages.

use super::Mailbox;
use crate::nodes::Node;
use airmail_model::mailbox::message::{BATCH_MAX, check_batch};
use airmail_model::mailbox::{
    AccountId, Message, MessageId, Outgoing, Receipt, Receive, Settle, Take,
};
use airmail_model::{Error, ErrorCode};
use airmail_proto::error::error_from_status;
use airmail_proto::mailbox as translate;
use airmail_proto::v1;
use std::time::Duration;

/// Number of bytes of messages in one request, unless one message alone has more. A node accepts so
/// many in one request, with what is around them.
const REQUEST_BYTES_MAX: usize = 2 << 20;
/// Number of bytes that a message takes in a request beside its content and key, at most.
const HEAD_BYTES: usize = 64;

impl Mailbox {
    /// Sends a message.
    ///
    /// # Errors
    /// `QUEUE_NOT_FOUND`, `ACCOUNT_NOT_FOUND`, `MESSAGE_TOO_LARGE`, `INVALID_ARGUMENT`,
    /// `OUTCOME_UNKNOWN`.
    pub async fn send(&self, message: Outgoing) -> Result<MessageId, Error> {
        let mut sent = self.send_all(vec![message]).await;
        sent.pop()
            .unwrap_or_else(|| Err(Error::new(ErrorCode::Internal)))
    }

    /// Sends any number of messages, in their order; each succeeds or fails by itself, as in
    /// [`Mailbox::send`]. Many go in one request. After a request that fails as a whole no further
    /// one is made, and the rest fails with its error.
    pub async fn send_all(&self, messages: Vec<Outgoing>) -> Vec<Result<MessageId, Error>> {
        let mut results = Vec::with_capacity(messages.len());
        let mut good = Vec::new();
        let mut places = Vec::new();
        for message in messages {
            // A message that no node accepts must not fail those beside it.
            let checked = message.check();
            if checked.is_ok() {
                places.push(results.len());
                good.push(translate::outgoing_to_proto(message));
            }
            results.push(checked.map(|()| MessageId(0)));
        }
        let mut places = places.into_iter();
        let mut failed = None;
        for batch in batches(good) {
            let places = places.by_ref().take(batch.len()).collect::<Vec<_>>();
            let sent = match &failed {
                None => self.send_batch(batch).await,
                Some(error) => Err(Error::clone(error)),
            };
            let sent = sent.unwrap_or_else(|error| {
                failed = Some(error.clone());
                vec![Err(error); places.len()]
            });
            for (place, result) in places.into_iter().zip(sent) {
                results[place] = result;
            }
        }
        results
    }

    async fn send_batch(
        &self,
        messages: Vec<v1::OutgoingMessage>,
    ) -> Result<Vec<Result<MessageId, Error>>, Error> {
        let count = messages.len();
        let request = v1::SendRequest { messages };
        let sent = translate::sent_from_proto(self.change(Node::send, request).await?);
        complete(sent, count)
    }

    /// The oldest messages for a reader: 1 to as many as asked for, and no more than have
    /// [`ANSWER_BYTES_MAX`](super::ANSWER_BYTES_MAX) together. If there are none, waits for them
    /// for up to `wait`, at most an hour; nothing is asked again and again meanwhile. A node that
    /// stops sends its readers away, and another, or the same one later, is asked for the rest of
    /// the time.
    ///
    /// Removed messages are handed out at most once: a connection that is lost may take messages
    /// with it. A reader that must not lose any takes leases.
    ///
    /// # Errors
    /// `QUEUE_IS_EMPTY`, `QUEUE_NOT_FOUND`, `ACCOUNT_NOT_FOUND`, `INVALID_ARGUMENT`,
    /// `OUTCOME_UNKNOWN`.
    pub async fn receive(&self, request: Receive, wait: Duration) -> Result<Vec<Message>, Error> {
        request.check()?;
        let shared = &self.shared;
        let begun = shared.mono();
        let ask = |node: Node| {
            // A node that was asked later waits for less.
            let rest = wait.saturating_sub(shared.mono().since(begun));
            let request = translate::receive_to_proto(request, rest);
            node.receive(request)
        };
        let timeout = wait.saturating_add(shared.call_timeout);
        let repeatable = request.take == Take::Peek;
        let answer = shared.call_within(timeout, repeatable, &ask).await?;
        let mut pieces = answer.into_inner();
        let mut messages = Vec::new();
        loop {
            match shared.answer_in_time(pieces.message()).await {
                Ok(Some(piece)) => {
                    let piece = piece.messages.into_iter();
                    messages.extend(piece.map(translate::message_from_proto));
                }
                Ok(None) => return Ok(messages),
                // What has come has left the queue: it is the reader's.
                Err(status) if !messages.is_empty() => {
                    let error = error_from_status(&status);
                    tracing::warn!(%error, "an answer broke off: the rest of it is lost or leased");
                    return Ok(messages);
                }
                Err(status) => {
                    let error = error_from_status(&status);
                    return Err(match error.code() {
                        ErrorCode::Disconnected => {
                            Error::new(ErrorCode::OutcomeUnknown).value(error.found())
                        }
                        _ => error,
                    });
                }
            }
        }
    }

    /// Acknowledges a leased message: it is removed.
    ///
    /// # Errors
    /// `LEASE_ENDED`; `INVALID_ARGUMENT` without a receipt, as of a message that is not leased.
    pub async fn acknowledge(&self, receipt: impl Into<Option<Receipt>>) -> Result<(), Error> {
        self.settle_one(receipt.into(), Settle::Acknowledge).await
    }

    /// Extends a lease: it ends `lease` from now.
    ///
    /// # Errors
    /// Those of [`Mailbox::acknowledge`].
    pub async fn extend(
        &self,
        receipt: impl Into<Option<Receipt>>,
        lease: Duration,
    ) -> Result<(), Error> {
        let lease_ms = millis(lease);
        let extend = Settle::Extend { lease_ms };
        self.settle_one(receipt.into(), extend).await
    }

    /// Releases a leased message: it is handed out again after `delay`.
    ///
    /// # Errors
    /// Those of [`Mailbox::acknowledge`].
    pub async fn release(
        &self,
        receipt: impl Into<Option<Receipt>>,
        delay: Duration,
    ) -> Result<(), Error> {
        let delay_ms = millis(delay);
        let release = Settle::Release { delay_ms };
        self.settle_one(receipt.into(), release).await
    }

    async fn settle_one(&self, receipt: Option<Receipt>, what: Settle) -> Result<(), Error> {
        let receipt = receipt.ok_or_else(|| {
            let error = Error::new(ErrorCode::InvalidArgument).field("receipt");
            error.limit("that of a leased message")
        })?;
        let mut settled = self.settle(&[receipt], what).await?;
        settled
            .pop()
            .unwrap_or_else(|| Err(Error::new(ErrorCode::Internal)))
    }

    /// Acknowledges, extends or releases leased messages, 1 to [`BATCH_MAX`]; each succeeds or
    /// fails by itself, with `LEASE_ENDED`.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`, `OUTCOME_UNKNOWN`.
    pub async fn settle(
        &self,
        receipts: &[Receipt],
        what: Settle,
    ) -> Result<Vec<Result<(), Error>>, Error> {
        check_batch("receipts", receipts.len())?;
        let receipts = translate::receipts_to_proto(receipts);
        let count = receipts.len();
        let settled = match what {
            Settle::Acknowledge => {
                let request = v1::AcknowledgeRequest { receipts };
                self.change(Node::acknowledge, request).await?
            }
            Settle::Extend { lease_ms } => {
                let request = v1::ExtendRequest { receipts, lease_ms };
                self.change(Node::extend, request).await?
            }
            Settle::Release { delay_ms } => {
                let request = v1::ReleaseRequest { receipts, delay_ms };
                self.change(Node::release, request).await?
            }
        };
        complete(translate::settled_from_proto(settled), count)
    }

    /// Shows a message by its number.
    ///
    /// # Errors
    /// `NO_MESSAGE_FOUND`; `NO_PERMISSION_TO_READ` if it is for another account.
    pub async fn look_up(&self, message: MessageId, reader: AccountId) -> Result<Message, Error> {
        let (id, reader) = (message.0, reader.0);
        let request = v1::LookUpMessageRequest { id, reader };
        shown(self.read(Node::look_up_message, request).await?.message)
    }

    /// Shows the oldest message from `sender` to `reader`, in any queue.
    ///
    /// # Errors
    /// `NO_MESSAGE_FOUND`, `ACCOUNT_NOT_FOUND`.
    pub async fn find_from(&self, sender: AccountId, reader: AccountId) -> Result<Message, Error> {
        let (from, reader) = (sender.0, reader.0);
        let request = v1::FindMessageRequest { from, reader };
        shown(self.read(Node::find_message, request).await?.message)
    }
}

/// Divides messages into requests that a node takes.
fn batches(messages: Vec<v1::OutgoingMessage>) -> Vec<Vec<v1::OutgoingMessage>> {
    let mut batches: Vec<Vec<v1::OutgoingMessage>> = Vec::new();
    let mut bytes = 0;
    for message in messages {
        let more = HEAD_BYTES + message.key.len() + message.content.len();
        match batches.last_mut() {
            Some(batch) if batch.len() < BATCH_MAX && bytes + more <= REQUEST_BYTES_MAX => {
                batch.push(message);
                bytes += more;
            }
            _ => {
                batches.push(vec![message]);
                bytes = more;
            }
        }
    }
    batches
}

/// Checks that an answer has one result for each message of the request.
fn complete<T>(results: Vec<T>, count: usize) -> Result<Vec<T>, Error> {
    if results.len() == count {
        return Ok(results);
    }
    let error = Error::new(ErrorCode::Internal).field("results");
    Err(error.value(results.len()).limit(count))
}

fn shown(message: Option<v1::MailboxMessage>) -> Result<Message, Error> {
    let message = message.map(translate::message_from_proto);
    message.ok_or_else(|| Error::new(ErrorCode::Internal).field("message"))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_no_larger_than_a_node_takes() {
        let message = |bytes: usize| v1::OutgoingMessage {
            content: vec![0; bytes].into(),
            ..Default::default()
        };
        let small = batches(vec![message(1); 2 * BATCH_MAX + 1]);
        let lengths: Vec<usize> = small.iter().map(Vec::len).collect();
        assert_eq!(lengths, [BATCH_MAX, BATCH_MAX, 1]);
        let large = batches(vec![message(1 << 20); 3]);
        assert_eq!(large.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1, 1]);
        assert!(batches(Vec::new()).is_empty());
    }
}
