//! Bytes from a client: messages of the API, translated like a node does.

#![no_main]

use airmail_fuzz::fuzz_target;
use airmail_model::{Batch, Limits, LogIndex, LogMap, MapEpoch, NamespaceId};
use airmail_proto::hello::{check_client_hello, welcome_from_proto};
use airmail_proto::mailbox::{
    outgoing_from_proto, outgoing_to_proto, queues_from_proto, queues_to_proto, receive_from_proto,
    receive_to_proto,
};
use airmail_proto::message::messages_to_batches;
use airmail_proto::namespace::{spec_from_proto, spec_to_proto};
use airmail_proto::subscribe::{
    start_from_proto, start_to_proto, subscribe_from_proto, subscribe_to_proto, until_from_proto,
    until_to_proto,
};
use airmail_proto::v1;
use prost::Message as _;

const LIMITS: Limits = Limits::DEFAULT;

fn publish(batches: v1::PublishBatches) {
    for batch in batches.batches {
        match batch.body {
            Some(v1::publish_batch::Body::Batch(bytes)) => {
                let _ = Batch::check(bytes, &LIMITS);
            }
            Some(v1::publish_batch::Body::Messages(messages)) => plain(messages.messages),
            None => {}
        }
    }
}

/// Plain messages become batches that any node takes, and none is lost.
fn plain(messages: Vec<v1::Message>) {
    let map = LogMap::even(NamespaceId(1), MapEpoch(1), LogIndex(0), 3);
    let count = messages.len();
    if let Ok(batches) = messages_to_batches(&map, messages, 1, &LIMITS) {
        let mut found = 0;
        for batch in batches {
            let checked =
                Batch::check(batch.bytes().clone(), &LIMITS).expect("made by the encoder");
            found += usize::from(checked.records());
        }
        assert_eq!(found, count);
    }
}

fn add(add: &v1::Add) {
    if let Ok(subscribe) = subscribe_from_proto(add, &LIMITS, |_| Some(NamespaceId(1))) {
        let again = subscribe_to_proto(&subscribe, &add.namespace, &add.topic, add.batches);
        let again = subscribe_from_proto(&again, &LIMITS, |_| Some(NamespaceId(1)));
        assert_eq!(again, Ok(subscribe));
    }
}

fn history(request: &v1::HistoryRequest) {
    if let Ok(Some(start)) = start_from_proto(request.since.as_ref()) {
        let again = start_from_proto(Some(&start_to_proto(&start)));
        assert_eq!(again, Ok(Some(start)));
    }
    if let Ok(until) = until_from_proto(request.until.as_ref()) {
        assert_eq!(until_from_proto(until_to_proto(until).as_ref()), Ok(until));
    }
}

fn spec(spec: Option<&v1::NamespaceSpec>) {
    if let Ok(change) = spec_from_proto(spec) {
        let again = spec_from_proto(Some(&spec_to_proto(&change)));
        assert!(again.is_ok());
    }
}

/// Checks a send: each message keeps its bounds or is refused, and is the same on its way back.
fn send(request: v1::SendRequest) {
    for message in request.messages {
        let message = outgoing_from_proto(message);
        if message.check().is_ok() {
            let again = outgoing_from_proto(outgoing_to_proto(message.clone()));
            assert_eq!(again, message);
        }
    }
}

fn receive(request: &v1::ReceiveRequest) {
    if let Ok((receive, wait)) = receive_from_proto(request)
        && receive.check().is_ok()
    {
        let again = receive_from_proto(&receive_to_proto(receive, wait));
        assert_eq!(again, Ok((receive, wait)));
    }
}

fn list(request: v1::ListQueuesRequest) {
    let which = queues_from_proto(request);
    if which.check().is_ok() {
        assert_eq!(queues_from_proto(queues_to_proto(which.clone())), which);
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&kind, bytes)) = data.split_first() else {
        return;
    };
    match kind % 9 {
        0 => match v1::PublishRequest::decode(bytes).map(|request| request.kind) {
            Ok(Some(v1::publish_request::Kind::Hello(hello))) => {
                let _ = check_client_hello(&hello);
            }
            Ok(Some(v1::publish_request::Kind::Batches(batches))) => publish(batches),
            _ => {}
        },
        1 => {
            let messages = v1::Messages::decode(bytes).map(|messages| messages.messages);
            plain(messages.unwrap_or_default());
        }
        2 => match v1::SubscribeRequest::decode(bytes).map(|request| request.kind) {
            Ok(Some(v1::subscribe_request::Kind::Hello(hello))) => {
                let _ = check_client_hello(&hello);
            }
            Ok(Some(v1::subscribe_request::Kind::Add(wanted))) => add(&wanted),
            _ => {}
        },
        3 => history(&v1::HistoryRequest::decode(bytes).unwrap_or_default()),
        4 => spec(
            v1::CreateNamespaceRequest::decode(bytes)
                .unwrap_or_default()
                .spec
                .as_ref(),
        ),
        5 => send(v1::SendRequest::decode(bytes).unwrap_or_default()),
        6 => receive(&v1::ReceiveRequest::decode(bytes).unwrap_or_default()),
        7 => list(v1::ListQueuesRequest::decode(bytes).unwrap_or_default()),
        _ => {
            let _ = welcome_from_proto(&v1::ServerHello::decode(bytes).unwrap_or_default());
        }
    }
});
