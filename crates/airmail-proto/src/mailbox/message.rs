//! Messages of mailboxes: sent, asked for and handed out.

use super::{recipients_from_proto, recipients_to_proto};
use crate::error::{error_from_proto, error_to_proto};
use crate::v1;
use airmail_model::mailbox::message::check_wait;
use airmail_model::mailbox::{
    AccountId, LeaseId, Message, MessageId, Outgoing, QueueId, Receipt, Receive, Take,
};
use airmail_model::{Error, ErrorCode, Wall};
use std::time::Duration;

/// Messages of one piece of an answer are together no larger, unless one alone is: any gRPC client
/// takes this much at once.
const PIECE_BYTES: usize = 256 << 10;
/// Bytes of a message beside its content and key, at most.
const HEAD_BYTES: usize = 100;

/// A message to be sent, from a message. Its bounds are still to be checked.
#[must_use]
pub fn outgoing_from_proto(message: v1::OutgoingMessage) -> Outgoing {
    Outgoing {
        queue: QueueId(message.queue),
        sender: AccountId(message.from),
        recipients: recipients_from_proto(message.to),
        content: message.content,
        // Still too high, and refused as such.
        priority: u8::try_from(message.priority).unwrap_or(u8::MAX),
        key: (!message.key.is_empty()).then_some(message.key),
        delay_ms: message.delay_ms,
        lifetime_ms: (message.lifetime_ms > 0).then_some(message.lifetime_ms),
    }
}

/// A message to be sent, as a message.
#[must_use]
pub fn outgoing_to_proto(message: Outgoing) -> v1::OutgoingMessage {
    v1::OutgoingMessage {
        queue: message.queue.0,
        from: message.sender.0,
        to: recipients_to_proto(message.recipients),
        content: message.content,
        priority: message.priority.into(),
        key: message.key.unwrap_or_default(),
        delay_ms: message.delay_ms,
        lifetime_ms: message.lifetime_ms.unwrap_or(0),
    }
}

/// A message that was handed out, as a message.
#[must_use]
pub fn message_to_proto(message: Message) -> v1::MailboxMessage {
    v1::MailboxMessage {
        id: message.id.0,
        queue: message.queue.0,
        origin: message.origin.0,
        from: message.sender.0,
        to: recipients_to_proto(message.recipients),
        content: message.content,
        created_at: message.created_at.0,
        priority: message.priority.into(),
        key: message.key.unwrap_or_default(),
        expires_at: message.expires_at.map(|time| time.0),
        deliveries: message.deliveries,
        lease: message.lease.map_or(0, |lease| lease.0),
    }
}

/// A message that was handed out, from a message.
#[must_use]
pub fn message_from_proto(message: v1::MailboxMessage) -> Message {
    Message {
        id: MessageId(message.id),
        queue: QueueId(message.queue),
        origin: QueueId(message.origin),
        sender: AccountId(message.from),
        recipients: recipients_from_proto(message.to),
        content: message.content,
        created_at: Wall(message.created_at),
        priority: u8::try_from(message.priority).unwrap_or(u8::MAX),
        key: (!message.key.is_empty()).then_some(message.key),
        expires_at: message.expires_at.map(Wall),
        deliveries: message.deliveries,
        lease: (message.lease != 0).then_some(LeaseId(message.lease)),
    }
}

/// Messages that were handed out, in pieces that any client can take.
#[must_use]
pub fn pieces(messages: Vec<Message>) -> Vec<v1::ReceiveResponse> {
    let mut pieces: Vec<v1::ReceiveResponse> = Vec::new();
    let mut room = 0;
    for message in messages {
        let key = message.key.as_ref().map_or(0, String::len);
        let bytes = HEAD_BYTES + key + message.content.len();
        match pieces.last_mut() {
            Some(piece) if bytes <= room => piece.messages.push(message_to_proto(message)),
            _ => {
                room = PIECE_BYTES.max(bytes);
                let messages = vec![message_to_proto(message)];
                pieces.push(v1::ReceiveResponse { messages });
            }
        }
        room -= bytes;
    }
    pieces
}

/// Reads what a reader asks for, and how long it waits. Its bounds are still to be checked, but for that
/// of the wait.
///
/// # Errors
/// `INVALID_ARGUMENT` for too long a wait.
pub fn receive_from_proto(request: &v1::ReceiveRequest) -> Result<(Receive, Duration), Error> {
    check_wait(request.wait_ms)?;
    let receive = Receive {
        queue: QueueId(request.queue),
        reader: AccountId(request.reader),
        broadcast: request.broadcast,
        count: request.count.max(1) as usize,
        take: match request.take {
            None | Some(v1::receive_request::Take::Peek(false)) => Take::Remove,
            Some(v1::receive_request::Take::Peek(true)) => Take::Peek,
            Some(v1::receive_request::Take::LeaseMs(lease_ms)) => Take::Lease { lease_ms },
        },
    };
    Ok((receive, Duration::from_millis(request.wait_ms)))
}

/// A reader's request, as a message.
#[must_use]
pub fn receive_to_proto(request: Receive, wait: Duration) -> v1::ReceiveRequest {
    v1::ReceiveRequest {
        queue: request.queue.0,
        reader: request.reader.0,
        broadcast: request.broadcast,
        count: u32::try_from(request.count).unwrap_or(u32::MAX),
        take: match request.take {
            Take::Remove => None,
            Take::Peek => Some(v1::receive_request::Take::Peek(true)),
            Take::Lease { lease_ms } => Some(v1::receive_request::Take::LeaseMs(lease_ms)),
        },
        wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
    }
}

/// Leased messages, from messages.
#[must_use]
pub fn receipts_from_proto(receipts: Vec<v1::MailboxReceipt>) -> Vec<Receipt> {
    let receipt = |receipt: v1::MailboxReceipt| Receipt {
        message: MessageId(receipt.message),
        lease: LeaseId(receipt.lease),
    };
    receipts.into_iter().map(receipt).collect()
}

/// Leased messages, as messages.
#[must_use]
pub fn receipts_to_proto(receipts: &[Receipt]) -> Vec<v1::MailboxReceipt> {
    let receipt = |receipt: &Receipt| v1::MailboxReceipt {
        message: receipt.message.0,
        lease: receipt.lease.0,
    };
    receipts.iter().map(receipt).collect()
}

/// Results of messages that were sent, as a message.
#[must_use]
pub fn sent_to_proto(results: Vec<Result<MessageId, Error>>) -> v1::SendResponse {
    let result = |result: Result<MessageId, Error>| v1::SendResult {
        kind: Some(match result {
            Ok(id) => v1::send_result::Kind::Id(id.0),
            Err(error) => v1::send_result::Kind::Error(error_to_proto(&error)),
        }),
    };
    v1::SendResponse {
        results: results.into_iter().map(result).collect(),
    }
}

/// Results of messages that were sent, from a message.
#[must_use]
pub fn sent_from_proto(response: v1::SendResponse) -> Vec<Result<MessageId, Error>> {
    let result = |result: v1::SendResult| match result.kind {
        Some(v1::send_result::Kind::Id(id)) => Ok(MessageId(id)),
        Some(v1::send_result::Kind::Error(error)) => Err(error_from_proto(&error)),
        None => Err(Error::new(ErrorCode::OutcomeUnknown)),
    };
    response.results.into_iter().map(result).collect()
}

/// Results for leases, as a message.
#[must_use]
pub fn settled_to_proto(results: Vec<Result<(), Error>>) -> v1::SettleResponse {
    let result = |result: Result<(), Error>| v1::SettleResult {
        error: result.err().as_ref().map(error_to_proto),
    };
    v1::SettleResponse {
        results: results.into_iter().map(result).collect(),
    }
}

/// Results for leases, from a message.
#[must_use]
pub fn settled_from_proto(response: v1::SettleResponse) -> Vec<Result<(), Error>> {
    let result = |result: v1::SettleResult| match result.error {
        Some(error) => Err(error_from_proto(&error)),
        None => Ok(()),
    };
    response.results.into_iter().map(result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_model::mailbox::Recipients;
    use airmail_model::mailbox::message::{CONTENT_BYTES_MAX, KEY_BYTES_MAX};
    use prost::Message as _;

    fn sent() -> Outgoing {
        Outgoing {
            priority: 9,
            key: Some("k".into()),
            delay_ms: 5,
            lifetime_ms: Some(6),
            ..Outgoing::new(QueueId(1), AccountId(2), Recipients::Broadcast, "content")
        }
    }

    fn handed_out(content: Vec<u8>) -> Message {
        Message {
            id: MessageId(i64::MAX),
            queue: QueueId(i32::MAX),
            origin: QueueId(i32::MAX),
            sender: AccountId(i32::MAX),
            recipients: Recipients::Direct(AccountId(i32::MAX)),
            content: content.into(),
            created_at: Wall(i64::MAX),
            priority: 9,
            key: Some("k".repeat(KEY_BYTES_MAX)),
            expires_at: Some(Wall(i64::MAX)),
            deliveries: u32::MAX,
            lease: Some(LeaseId(i64::MAX)),
        }
    }

    #[test]
    fn messages_survive() {
        assert_eq!(outgoing_from_proto(outgoing_to_proto(sent())), sent());
        let plain = Outgoing::new(
            QueueId(1),
            AccountId(2),
            Recipients::Direct(AccountId(3)),
            "",
        );
        assert_eq!(outgoing_from_proto(outgoing_to_proto(plain.clone())), plain);
        let message = handed_out(vec![0, 255]);
        assert_eq!(
            message_from_proto(message_to_proto(message.clone())),
            message
        );
        let message = Message {
            recipients: Recipients::Broadcast,
            key: None,
            expires_at: None,
            lease: None,
            ..message
        };
        assert_eq!(
            message_from_proto(message_to_proto(message.clone())),
            message
        );
    }

    #[test]
    fn a_priority_that_is_too_high_stays_so() {
        let message = v1::OutgoingMessage {
            priority: 256,
            ..outgoing_to_proto(sent())
        };
        let error = outgoing_from_proto(message).check().unwrap_err();
        assert_eq!(error.field_name(), "priority");
    }

    #[test]
    fn requests_survive_and_an_empty_one_removes_one_message() {
        let lease = Take::Lease { lease_ms: 5 };
        for take in [Take::Peek, Take::Remove, lease] {
            let request = Receive::new(QueueId(1), AccountId(2)).count(7).take(take);
            let wait = Duration::from_secs(5);
            let back = receive_from_proto(&receive_to_proto(request, wait));
            assert_eq!(back.unwrap(), (request, wait));
        }
        let (empty, wait) = receive_from_proto(&v1::ReceiveRequest::default()).unwrap();
        assert_eq!(
            (empty.count, empty.take, wait),
            (1, Take::Remove, Duration::ZERO)
        );
        let long = v1::ReceiveRequest {
            wait_ms: u64::MAX,
            ..Default::default()
        };
        assert_eq!(
            receive_from_proto(&long).unwrap_err().field_name(),
            "wait_ms"
        );
    }

    #[test]
    fn results_and_receipts_survive() {
        let error = Error::new(ErrorCode::QueueNotFound).field("queue").value(7);
        let sent = vec![Ok(MessageId(1)), Err(error.clone())];
        assert_eq!(sent_from_proto(sent_to_proto(sent.clone())), sent);
        let settled = vec![Ok(()), Err(error)];
        assert_eq!(
            settled_from_proto(settled_to_proto(settled.clone())),
            settled
        );
        let receipts = vec![handed_out(Vec::new()).receipt().unwrap()];
        assert_eq!(receipts_from_proto(receipts_to_proto(&receipts)), receipts);
    }

    #[test]
    fn a_piece_is_never_larger_than_any_client_takes() {
        let mut messages = vec![handed_out(vec![1; CONTENT_BYTES_MAX])];
        messages.extend((0..1000).map(|n| handed_out(vec![2; n])));
        let pieces = pieces(messages.clone());
        assert_eq!(pieces[0].messages.len(), 1);
        for piece in &pieces[1..] {
            assert!(piece.encoded_len() <= PIECE_BYTES);
        }
        let all = pieces.into_iter().flat_map(|piece| piece.messages);
        assert_eq!(all.map(message_from_proto).collect::<Vec<_>>(), messages);
        assert!((3..10).contains(&super::pieces(messages).len()));
    }
}
