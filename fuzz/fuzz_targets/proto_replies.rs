//! Bytes from a node: messages of the API, translated like the SDK does.

#![no_main]

use airmail_fuzz::fuzz_target;
use airmail_model::MapEpoch;
use airmail_model::frame::{News, Nodes};
use airmail_proto::error::{error_from_proto, error_from_status, error_to_proto};
use airmail_proto::hello::{
    nodes_from_proto, nodes_to_proto, welcome_from_proto, welcome_to_proto,
};
use airmail_proto::mailbox::{
    message_from_proto, message_to_proto, queue_from_proto, queue_to_proto,
};
use airmail_proto::namespace::{namespace_from_proto, namespace_to_proto};
use airmail_proto::publish::{ack_from_proto, ack_to_proto, maps_from_proto};
use airmail_proto::subscribe::{
    FromNode, delivery_from_proto, expired_from_proto, gap_from_proto, place_from_proto,
    reply_from_proto, reply_to_proto,
};
use airmail_proto::v1;
use bytes::Bytes;
use prost::Message as _;
use tonic::{Code, Status};

fn published(response: v1::PublishResponse) {
    match response.kind {
        Some(v1::publish_response::Kind::Hello(hello)) => welcome(&hello),
        Some(v1::publish_response::Kind::Acks(acks)) => {
            for ack in &acks.acks {
                let Ok((request, result)) = ack_from_proto(ack) else {
                    continue;
                };
                let again = ack_to_proto(request, &result, |_| "n".to_owned());
                assert_eq!(ack_from_proto(&again), Ok((request, result)));
            }
        }
        Some(v1::publish_response::Kind::Maps(maps)) => {
            let _ = maps_from_proto(&maps);
        }
        Some(v1::publish_response::Kind::Nodes(nodes)) => told(&nodes_from_proto(&nodes)),
        Some(v1::publish_response::Kind::Alive(_)) | None => {}
    }
}

/// Translates nodes back and forth.
fn told(nodes: &Nodes) {
    assert_eq!(nodes_from_proto(&nodes_to_proto(nodes)), *nodes);
}

fn welcome(hello: &v1::ServerHello) {
    if let Ok(welcome) = welcome_from_proto(hello) {
        let again = welcome_from_proto(&welcome_to_proto(&welcome));
        assert_eq!(again, Ok(welcome));
    }
}

/// Translates a reply back and forth: a reply that was understood is understood again.
fn delivered(response: v1::SubscribeResponse, headers_only: bool) {
    match reply_from_proto(response, headers_only) {
        Ok(FromNode::Reply(reply)) => {
            let again = reply_to_proto(&reply, |_| MapEpoch(1)).expect("no ack comes here");
            assert!(reply_from_proto(again, headers_only).is_ok());
        }
        Ok(FromNode::News(News::Nodes(nodes))) => told(&nodes),
        Ok(FromNode::Welcome(_) | FromNode::News(News::Alive(_))) | Err(_) => {}
    }
}

fn history(response: v1::HistoryResponse, headers_only: bool) {
    match response.kind {
        Some(v1::history_response::Kind::Delivery(delivery)) => {
            let _ = delivery_from_proto(delivery, headers_only);
        }
        Some(v1::history_response::Kind::Gap(gap)) => {
            let _ = gap_from_proto(&gap);
        }
        Some(v1::history_response::Kind::Begin(at)) => {
            let _ = place_from_proto(&at);
        }
        Some(v1::history_response::Kind::Expired(expired)) => {
            let _ = expired_from_proto(&expired);
        }
        None => {}
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&kind, bytes)) = data.split_first() else {
        return;
    };
    let headers_only = kind >= 128;
    match kind % 8 {
        0 => published(v1::PublishResponse::decode(bytes).unwrap_or_default()),
        1 => delivered(
            v1::SubscribeResponse::decode(bytes).unwrap_or_default(),
            headers_only,
        ),
        2 => history(
            v1::HistoryResponse::decode(bytes).unwrap_or_default(),
            headers_only,
        ),
        3 => {
            let error = error_from_proto(&v1::Error::decode(bytes).unwrap_or_default());
            assert_eq!(error_from_proto(&error_to_proto(&error)), error);
        }
        4 => {
            let namespace = v1::Namespace::decode(bytes).unwrap_or_default();
            if let Ok(namespace) = namespace_from_proto(namespace) {
                let again = namespace_from_proto(namespace_to_proto(&namespace));
                assert_eq!(again, Ok(namespace));
            }
        }
        5 => {
            let pieces = v1::ReceiveResponse::decode(bytes).unwrap_or_default();
            for message in pieces.messages {
                let message = message_from_proto(message);
                let again = message_from_proto(message_to_proto(message.clone()));
                assert_eq!(again, message);
            }
        }
        6 => {
            if let Ok(queue) = queue_from_proto(v1::Queue::decode(bytes).unwrap_or_default()) {
                assert_eq!(queue_from_proto(queue_to_proto(&queue)), Ok(queue));
            }
        }
        _ => {
            let Some((&code, details)) = bytes.split_first() else {
                return;
            };
            let details = Bytes::copy_from_slice(details);
            let code = Code::from_i32((code % 20).into());
            let _ = error_from_status(&Status::with_details(code, "refused", details));
        }
    }
});
