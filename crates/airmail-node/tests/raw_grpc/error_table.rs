//! The table of errors, whole: each is provoked by a test that is named here, from the command
//! line, the SDK or a raw stream, some of them through the node's places for who decides.

use crate::node::{DEFAULT, Node, batch_of, message};
use airmail_model::batch::ProducerStamp;
use airmail_model::{ErrorCode, MapEpoch, ProducerEpoch, ProducerId, ProducerSequence};
use airmail_proto::error::{error_from_status, request_id_of};
use airmail_proto::v1;
use airmail_proto::v1::publish_request::Kind;
use std::path::Path;

/// Where an error is provoked, or why it cannot be.
enum Proof {
    /// File, below `crates`, and test.
    Test(&'static str, &'static str),
    /// The cause why no request provokes it.
    Reserved(&'static str),
}

use Proof::{Reserved, Test};

const RAW: &str = "airmail-node/tests/raw_grpc/errors.rs";
const TABLE: &str = "airmail-node/tests/raw_grpc/error_table.rs";
const MAILBOX: &str = "airmail-node/tests/raw_grpc/mailbox.rs";
const REFUSALS: &str = "airmail-node/tests/sdk/refusals.rs";

const BAD_MESSAGE: Proof = Test(RAW, "a_bad_message_names_what_is_wrong_with_it");
const BAD_NAMESPACE: Proof = Test(RAW, "namespaces_say_what_is_wrong_with_them");
const BAD_SUBSCRIPTION: Proof = Test(RAW, "a_bad_subscription_fails_alone");
const OUT_OF_ORDER: Proof = Test(RAW, "an_out_of_order_producer_is_told_what_was_expected");
const OTHER_NAMESPACE: Proof = Test(RAW, "a_batch_for_another_namespace_is_refused");
const PASSING: Proof = Test(REFUSALS, "what_may_pass_is_tried_again_and_stored_once");
const UNKNOWN: Proof = Test(
    REFUSALS,
    "what_has_an_unknown_outcome_is_sent_again_and_stored_once",
);
const AUTHORIZER: Proof = Test(
    REFUSALS,
    "who_may_not_publish_is_told_and_the_connection_goes_on",
);

/// The compiler asks for a line for each new error.
fn proof(code: ErrorCode) -> Proof {
    match code {
        ErrorCode::InvalidArgument => Test(TABLE, "a_request_without_its_field_is_told_which"),
        ErrorCode::MessageTooLarge | ErrorCode::TopicInvalid | ErrorCode::AttributesInvalid => {
            BAD_MESSAGE
        }
        ErrorCode::BatchTooLarge => Test(
            RAW,
            "an_oversized_request_is_refused_and_the_connection_goes_on",
        ),
        ErrorCode::BatchMalformed => Test(TABLE, "bytes_that_are_no_batch_are_refused"),
        ErrorCode::PositionInvalid => BAD_SUBSCRIPTION,
        ErrorCode::SubscriptionInvalid => BAD_SUBSCRIPTION,
        ErrorCode::NamespaceInvalid
        | ErrorCode::NamespaceExists
        | ErrorCode::DurabilityUnavailable => BAD_NAMESPACE,
        ErrorCode::NamespaceNotFound | ErrorCode::NamespaceReserved => OTHER_NAMESPACE,
        ErrorCode::NamespaceChanged => Test(
            "airmail-node/tests/raw_grpc/services.rs",
            "a_change_of_a_namespace_says_what_it_is_based_on",
        ),
        ErrorCode::MapStale => Test(
            RAW,
            "a_stale_map_is_refused_with_the_new_one_and_the_stream_goes_on",
        ),
        // Nothing seals a log until a namespace's map can change, and no storage has its logs on several
        // nodes yet: the node's admission says it here.
        ErrorCode::LogSealed
        | ErrorCode::Elsewhere
        | ErrorCode::StorageFailed
        | ErrorCode::Overloaded => PASSING,
        ErrorCode::OutcomeUnknown => UNKNOWN,
        ErrorCode::OutOfOrder | ErrorCode::UnknownProducer => OUT_OF_ORDER,
        ErrorCode::ProducerFenced => Test(TABLE, "an_older_epoch_of_a_producer_is_fenced"),
        ErrorCode::StorageFull => Test(
            "airmail/tests/end_to_end/disk_full.rs",
            "a_full_disk_refuses_publishes_and_heals",
        ),
        ErrorCode::ProtocolUnsupported => Test(RAW, "a_hello_that_cannot_be_met_names_the_field"),
        ErrorCode::HelloExpected => Test(RAW, "a_stream_that_does_not_begin_with_hello_is_told_so"),
        ErrorCode::Unimplemented => Test(RAW, "what_is_reserved_is_unimplemented_by_name"),
        // Everyone may do everything until authentication is built: its place refuses here.
        ErrorCode::Unauthenticated | ErrorCode::PermissionDenied => AUTHORIZER,
        ErrorCode::ShuttingDown => Test(
            "airmail-node/tests/raw_grpc/stop.rs",
            "streams_are_told_that_the_node_is_stopping",
        ),
        ErrorCode::Internal => Reserved("a fault of the node itself: no request may provoke it"),
        ErrorCode::Disconnected => Test(
            "airmail-node/tests/sdk/connections.rs",
            "without_a_node_the_error_names_the_address",
        ),
        ErrorCode::Unavailable => Test(
            "airmail/tests/end_to_end/cluster.rs",
            "subscribers_of_a_gateway_miss_nothing_and_get_nothing_twice_when_the_tower_is_killed",
        ),
        ErrorCode::LogSuspended => Test(
            "airmail/tests/end_to_end/kafka_loss.rs",
            "a_namespace_whose_topic_is_deleted_goes_on_when_it_is_made_anew",
        ),
        ErrorCode::FilterInvalid => BAD_SUBSCRIPTION,
        ErrorCode::FilterTooComplex => Test(
            "airmail-node/tests/raw_grpc/filters.rs",
            "a_filter_that_is_too_complex_is_told_which_bound_it_exceeds",
        ),
        ErrorCode::RoleNotFound | ErrorCode::RoleExists => Test(
            "airmail/tests/end_to_end/audience.rs",
            "roles_are_not_believed_unless_the_node_is_told_to_and_only_known_ones_can_be_named",
        ),
        code => mailbox_proof(code),
    }
}

/// Errors of mailboxes, on the wire; those of the store are provoked by the suite of both as well.
fn mailbox_proof(code: ErrorCode) -> Proof {
    match code {
        ErrorCode::QueueNameExists
        | ErrorCode::AccountNameExists
        | ErrorCode::QueueNotFound
        | ErrorCode::AccountNotFound
        | ErrorCode::QueueNotEmpty
        | ErrorCode::AccountNotEmpty => Test(
            MAILBOX,
            "what_is_wrong_with_an_account_or_queue_is_told_by_name",
        ),
        ErrorCode::NoPermissionToRead
        | ErrorCode::QueueIsEmpty
        | ErrorCode::NoQueuesFound
        | ErrorCode::NoMessageFound => {
            Test(MAILBOX, "what_is_not_there_to_be_read_is_told_by_name")
        }
        ErrorCode::LeaseEnded => Test(
            MAILBOX,
            "leases_are_extended_released_and_acknowledged_and_end",
        ),
        ErrorCode::UnknownRequestType => Test(MAILBOX, "an_unknown_request_is_told_by_its_name"),
        ErrorCode::MailboxesAway => Test(
            "airmail/tests/end_to_end/mailbox_postgres.rs",
            "a_node_starts_without_its_database_and_goes_on_when_it_comes",
        ),
        ErrorCode::MailboxesUnusable => Test(
            "airmail-mailbox/tests/away.rs",
            "the_schema_is_brought_up_once",
        ),
        code => unreachable!("{code:?} has no test"),
    }
}

/// The text of a test, from its name to the next function's.
fn body<'a>(text: &'a str, test: &str) -> Option<&'a str> {
    let begin = text.find(&format!("fn {test}("))?;
    let rest = &text[begin..];
    let end = rest.find("\n}\n").unwrap_or(rest.len());
    Some(&rest[..end])
}

#[test]
fn every_error_of_the_table_is_provoked_or_reserved() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut reserved = Vec::new();
    for code in ErrorCode::ALL {
        let (file, test) = match proof(*code) {
            Test(file, test) => (file, test),
            Reserved(why) => {
                reserved.push((*code, why));
                continue;
            }
        };
        let text = std::fs::read_to_string(crates.join(file)).unwrap();
        let body = body(&text, test).unwrap_or_else(|| panic!("{file} has no test {test}"));
        let named = body.contains(code.name()) || body.contains(&format!("{code:?}"));
        assert!(named, "{file}: {test} does not speak of {}", code.name());
    }
    let codes: Vec<ErrorCode> = reserved.iter().map(|(code, _)| *code).collect();
    let unprovoked = [ErrorCode::Internal];
    assert_eq!(codes, unprovoked, "{reserved:?}");
}

#[tokio::test]
async fn a_request_without_its_field_is_told_which() {
    let node = Node::in_memory().await;
    node.publish_one("t", "before").await.unwrap();
    let empty = v1::PublishOneRequest::default();
    let status = node.client().publish_one(empty).await.unwrap_err();
    let error = error_from_status(&status);
    assert_eq!(error.code(), ErrorCode::InvalidArgument, "{error}");
    assert_eq!(error.field_name(), "message", "{error}");
    assert!(!request_id_of(&status).is_empty());
    let mut publisher = node.publisher().await;
    publisher.greet().await;
    let batches = vec![v1::PublishBatch::default()];
    let batches = Kind::Batches(v1::PublishBatches { batches });
    publisher.send(batches).await;
    let ack = publisher.ack().await;
    let error = airmail_proto::error::error_from_proto(&ack.error.unwrap());
    assert_eq!(error.code(), ErrorCode::InvalidArgument, "{error}");
    assert!(!error.field_name().is_empty(), "{error}");
    node.publish_one("t", "after").await.unwrap();
    assert_eq!(node.history("t").await, ["before", "after"]);
    node.stop().await;
}

#[tokio::test]
async fn bytes_that_are_no_batch_are_refused() {
    let node = Node::in_memory().await;
    let mut publisher = node.publisher().await;
    publisher.greet().await;
    for (request, bytes) in [&b""[..], b"x", &[0; 1_000], &[0xff; 1_000]]
        .iter()
        .enumerate()
    {
        let error = publisher.refused(request as u64, bytes).await;
        assert_eq!(error.code(), ErrorCode::BatchMalformed, "{error}");
        assert!(!error.field_name().is_empty(), "{error}");
    }
    let plain = v1::Messages {
        messages: vec![message("t", "the stream goes on")],
    };
    publisher
        .publish(9, v1::publish_batch::Body::Messages(plain))
        .await;
    assert!(publisher.ack().await.error.is_none());
    assert_eq!(node.history("t").await, ["the stream goes on"]);
    node.stop().await;
}

#[tokio::test]
async fn an_older_epoch_of_a_producer_is_fenced() {
    let node = Node::in_memory().await;
    let mut publisher = node.publisher().await;
    publisher.greet().await;
    let stamped = |epoch, sequence, text| {
        let producer = ProducerStamp {
            id: ProducerId(5),
            epoch: ProducerEpoch(epoch),
            sequence: ProducerSequence(sequence),
        };
        batch_of(DEFAULT, MapEpoch(1), &[("t", text)], Some(producer))
    };
    let ack = publisher.bytes(0, stamped(3, 0, "new").bytes()).await;
    assert!(ack.error.is_none());
    let error = publisher.refused(1, stamped(2, 0, "old").bytes()).await;
    assert_eq!(error.code(), ErrorCode::ProducerFenced, "{error}");
    assert_eq!((error.field_name(), error.found()), ("producer_epoch", "2"));
    let ack = publisher.bytes(2, stamped(3, 1, "newer").bytes()).await;
    assert!(ack.error.is_none());
    assert_eq!(node.history("t").await, ["new", "newer"]);
    node.stop().await;
}
