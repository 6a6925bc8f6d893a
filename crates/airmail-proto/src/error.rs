//! The error table as messages of the API and as gRPC statuses, both ways.
//!
//! A status carries a `google.rpc.ErrorInfo` (reason = the error's name, domain `airmail`, metadata
//! `code`, `field`, `value`, `limit`, `retriable`, `request_id`, `node`, `group`, `term`) and, where the
//! node knows a delay, a `google.rpc.RetryInfo`, so that any gRPC client can act on it without reading text.

use crate::v1;
use airmail_model::{Error, ErrorCode, GroupId, Holder, NodeId, Term};
use std::time::Duration;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

/// The domain of every `google.rpc.ErrorInfo` that a node sends.
pub const DOMAIN: &str = "airmail";

#[expect(clippy::disallowed_types, reason = "tonic-types asks for it")]
type Metadata = std::collections::HashMap<String, String>;

/// An error as a message.
#[must_use]
pub fn error_to_proto(error: &Error) -> v1::Error {
    let code = error.code();
    v1::Error {
        code: u32::from(code as u16),
        name: code.name().to_owned(),
        message: error.to_string(),
        field: error.field_name().to_owned(),
        value: error.found().to_owned(),
        limit: error.expected().to_owned(),
        retriable: code.retriable(),
        retry_after_ms: error
            .delay()
            .map(|delay| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX)),
        holder: error.holder().map(|holder| v1::Holder {
            node: holder.node.map(|node| node.0),
            group: holder.group.map(|group| group.0),
            term: holder.term.0,
        }),
    }
}

/// An error from a message. One that this version does not know becomes `INTERNAL` with the
/// message's text as its value.
#[must_use]
pub fn error_from_proto(error: &v1::Error) -> Error {
    let code = u16::try_from(error.code).ok().and_then(ErrorCode::from_u16);
    match code.or_else(|| ErrorCode::from_name(&error.name)) {
        Some(code) => {
            let told = with_facts(
                code,
                &error.field,
                &error.value,
                &error.limit,
                error.retry_after_ms.map(Duration::from_millis),
            );
            with_holder(told, error.holder.as_ref().map(holder_from_proto))
        }
        None => Error::new(ErrorCode::Internal).value(&error.message),
    }
}

/// An error as the status of a whole call. `request_id` lets a user find it in the node's log.
#[must_use]
pub fn status_from_error(error: &Error, request_id: &str) -> Status {
    let code = error.code();
    let facts = [
        ("code", (code as u16).to_string()),
        ("field", error.field_name().to_owned()),
        ("value", error.found().to_owned()),
        ("limit", error.expected().to_owned()),
        ("retriable", code.retriable().to_string()),
        ("request_id", request_id.to_owned()),
    ];
    let facts = facts.into_iter().chain(facts_of_holder(error.holder()));
    let known = facts.filter(|(_, value)| !value.is_empty());
    let mut details = ErrorDetails::new();
    details.set_error_info(
        code.name(),
        DOMAIN,
        known
            .map(|(key, value)| (key.to_owned(), value))
            .collect::<Metadata>(),
    );
    if let Some(delay) = error.delay() {
        details.set_retry_info(Some(delay));
    }
    let grpc = Code::from_i32(code.grpc() as i32);
    Status::with_error_details(grpc, error.to_string(), details)
}

/// The error that a status carries. A status without Airmail's details was made by the transport or
/// by something between client and node: a broken connection is `DISCONNECTED`.
#[must_use]
pub fn error_from_status(status: &Status) -> Error {
    let details = status.get_error_details();
    let known = details
        .error_info()
        .filter(|info| info.domain == DOMAIN)
        .and_then(|info| Some((ErrorCode::from_name(&info.reason)?, info)));
    let Some((code, info)) = known else {
        return error_of_transport(status);
    };
    let fact = |name: &str| info.metadata.get(name).map_or("", String::as_str);
    let delay = details.retry_info().and_then(|retry| retry.retry_delay);
    let error = with_facts(code, fact("field"), fact("value"), fact("limit"), delay);
    // A holder always has a term.
    let holder = fact("term").parse().ok().map(|term| Holder {
        node: fact("node").parse().ok().map(NodeId),
        group: fact("group").parse().ok().map(GroupId),
        term: Term(term),
    });
    with_holder(error, holder)
}

fn holder_from_proto(holder: &v1::Holder) -> Holder {
    Holder {
        node: holder.node.map(NodeId),
        group: holder.group.map(GroupId),
        term: Term(holder.term),
    }
}

/// The facts of a status that tell who has what was asked for; empty ones are not known.
fn facts_of_holder(holder: Option<Holder>) -> [(&'static str, String); 3] {
    let node = holder.and_then(|holder| holder.node);
    let group = holder.and_then(|holder| holder.group);
    [
        (
            "node",
            node.map_or_else(String::new, |node| node.to_string()),
        ),
        (
            "group",
            group.map_or_else(String::new, |group| group.to_string()),
        ),
        (
            "term",
            holder.map_or_else(String::new, |holder| holder.term.to_string()),
        ),
    ]
}

/// Whether a node of ours says this, and neither the transport nor something between: what its error
/// means is then what the table says.
#[must_use]
pub fn is_told_by_a_node(status: &Status) -> bool {
    let details = status.get_error_details();
    let info = details.error_info();
    info.is_some_and(|info| info.domain == DOMAIN)
}

/// The request id that a status carries, or the empty string.
#[must_use]
pub fn request_id_of(status: &Status) -> String {
    let details = status.get_error_details();
    let id = details
        .error_info()
        .and_then(|info| info.metadata.get("request_id"));
    id.cloned().unwrap_or_default()
}

/// Whether tonic refused to decode a message for its size, and what it said.
#[must_use]
pub fn is_oversize(status: &Status) -> bool {
    status.code() == Code::OutOfRange && status.message().contains("message length too large")
}

/// The table's error for a message larger than `frame_bytes`.
#[must_use]
pub fn oversize_error(status_message: &str, frame_bytes: u32) -> Error {
    let found = status_message
        .split("found ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next())
        .unwrap_or("more");
    Error::new(ErrorCode::BatchTooLarge)
        .field("request")
        .value(format!("{found} bytes"))
        .limit(format!("{frame_bytes} bytes"))
}

/// The table's error for a request that gRPC's own layers refused before anything of it was read: one
/// that is too large, is no message of the API, or is compressed. `None` for any other status.
#[must_use]
pub fn unread_error(status: &Status, frame_bytes: u32) -> Option<Error> {
    if !status.details().is_empty() {
        // A handler's own.
        return None;
    }
    let message = status.message();
    match status.code() {
        Code::OutOfRange if is_oversize(status) => Some(oversize_error(message, frame_bytes)),
        Code::Internal | Code::InvalidArgument => Some(malformed(message)),
        Code::Unimplemented if message.starts_with("Content is compressed") => {
            let error = Error::unimplemented("grpc-encoding").value(message);
            Some(error.limit("identity"))
        }
        _ => None,
    }
}

/// The error for bytes that could not be decoded, from prost's words: first where it was, from
/// the inside out, as `Message.topic: PublishOneRequest.message: `, and then what.
fn malformed(message: &str) -> Error {
    let mut what = message
        .strip_prefix("failed to decode Protobuf message: ")
        .unwrap_or(message);
    let mut path: Vec<&str> = Vec::new();
    while let Some((place, rest)) = what.split_once(": ")
        && let Some((_, field)) = place.split_once('.')
        && place
            .chars()
            .all(|c| c.is_alphanumeric() || "._".contains(c))
    {
        path.push(field);
        what = rest;
    }
    let is_text = what.contains("UTF-8");
    let code = match path.first() {
        Some(&"topic") if is_text => ErrorCode::TopicInvalid,
        _ => ErrorCode::InvalidArgument,
    };
    path.reverse();
    let field = if path.is_empty() {
        "request".to_owned()
    } else {
        path.join(".")
    };
    let limit = if is_text {
        "UTF-8"
    } else {
        "a message as airmail.v1 has it"
    };
    Error::new(code).field(field).value(what).limit(limit)
}

/// Beginning of the text of a status that was made of an HTTP response which is not gRPC's.
pub const NOT_GRPC: &str = "grpc-status header missing";

/// Whether an error says that no node has answered, but something else at its address.
#[must_use]
pub fn is_of_no_node(error: &Error) -> bool {
    error.code() == ErrorCode::ProtocolUnsupported && error.field_name() == "url"
}

fn error_of_transport(status: &Status) -> Error {
    // Something on the way that is busy, or has lost the node, says so by HTTP alone, too.
    let is_of_gateway = status.code() == Code::Unavailable;
    if status.message().starts_with(NOT_GRPC) && !is_of_gateway {
        // An answer, but not of a gRPC server: the address is another port's.
        return Error::new(ErrorCode::ProtocolUnsupported)
            .field("url")
            .value("an answer that is not gRPC")
            .limit("the address of a node's gRPC port");
    }
    let code = match status.code() {
        Code::InvalidArgument => ErrorCode::InvalidArgument,
        Code::OutOfRange => ErrorCode::BatchTooLarge,
        Code::Unimplemented => ErrorCode::Unimplemented,
        Code::Unauthenticated => ErrorCode::Unauthenticated,
        Code::PermissionDenied => ErrorCode::PermissionDenied,
        Code::ResourceExhausted => ErrorCode::Overloaded,
        _ => ErrorCode::Disconnected,
    };
    Error::new(code).value(status.message())
}

fn with_facts(
    code: ErrorCode,
    field: &str,
    value: &str,
    limit: &str,
    delay: Option<Duration>,
) -> Error {
    let error = Error::new(code).field(field).value(value).limit(limit);
    match delay {
        Some(delay) => error.retry_after(delay),
        None => error,
    }
}

fn with_holder(error: Error, holder: Option<Holder>) -> Error {
    match holder {
        Some(holder) => error.held_by(holder),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(code: ErrorCode) -> Error {
        Error::new(code)
            .field("payload")
            .value("2000000 bytes")
            .limit("1048576 bytes")
            .retry_after(Duration::from_millis(1_500))
    }

    #[test]
    fn every_error_survives_the_message() {
        for code in ErrorCode::ALL {
            let error = sample(*code);
            assert_eq!(error_from_proto(&error_to_proto(&error)), error);
            let bare = Error::new(*code);
            assert_eq!(error_from_proto(&error_to_proto(&bare)), bare);
        }
    }

    #[test]
    fn every_error_survives_the_status_and_keeps_its_request_id() {
        for code in ErrorCode::ALL {
            let error = sample(*code);
            let status = status_from_error(&error, "r-17");
            assert_eq!(status.code() as i32, code.grpc() as i32);
            assert_eq!(error_from_status(&status), error);
            assert_eq!(request_id_of(&status), "r-17");
            let bare = Error::new(*code);
            assert_eq!(error_from_status(&status_from_error(&bare, "")), bare);
        }
    }

    #[test]
    fn who_has_the_log_survives_message_and_status_as_far_as_it_is_known() {
        let (node, group) = (Some(NodeId(u64::MAX)), Some(GroupId(3)));
        for (node, group, term) in [
            (node, group, 5),
            (None, group, 5),
            (node, None, 0),
            (None, None, 0),
        ] {
            let term = Term(term);
            let holder = Holder { node, group, term };
            let error = sample(ErrorCode::Elsewhere).held_by(holder);
            assert_eq!(error_from_proto(&error_to_proto(&error)), error);
            assert_eq!(error_from_status(&status_from_error(&error, "r-17")), error);
        }
    }

    #[test]
    fn an_error_of_a_later_version_keeps_its_text() {
        let later = v1::Error {
            code: 9_999,
            name: "LATER".into(),
            message: "LATER: of tomorrow".into(),
            ..Default::default()
        };
        let error = error_from_proto(&later);
        assert_eq!(error.code(), ErrorCode::Internal);
        assert_eq!(error.found(), "LATER: of tomorrow");
    }

    #[test]
    fn a_retired_error_of_an_older_node_is_read_as_the_one_sent_instead() {
        let older = v1::Error {
            code: 32,
            name: "INTERNAL_ERROR".into(),
            field: "database".into(),
            ..Default::default()
        };
        let error = error_from_proto(&older);
        assert_eq!(error.code(), ErrorCode::Internal);
        assert_eq!(error.field_name(), "database");
    }

    #[test]
    fn a_broken_connection_is_disconnected() {
        for code in [
            Code::Unavailable,
            Code::Unknown,
            Code::Cancelled,
            Code::Internal,
        ] {
            let error = error_from_status(&Status::new(code, "broken pipe"));
            assert_eq!(error.code(), ErrorCode::Disconnected);
            assert_eq!(error.found(), "broken pipe");
        }
    }

    #[test]
    fn an_answer_that_is_not_grpc_is_another_ports() {
        let text = "grpc-status header missing, mapped from HTTP status code 404";
        let error = error_from_status(&Status::unimplemented(text));
        assert_eq!(error.code(), ErrorCode::ProtocolUnsupported);
        assert_eq!(error.field_name(), "url");
        assert!(is_of_no_node(&error));
        let text = "grpc-status header missing, mapped from HTTP status code 503";
        let error = error_from_status(&Status::unavailable(text));
        assert_eq!(error.code(), ErrorCode::Disconnected);
        assert!(!is_of_no_node(&error));
    }

    #[test]
    fn what_cannot_be_decoded_names_the_field_and_what_is_wrong() {
        use crate::v1::PublishOneRequest;
        use prost::Message as _;
        // Fields 1 and 2 of a request: the namespace, and a message, whose field 1 is its topic.
        for (bytes, code, field, value) in [
            (
                &b"\x12\x03\x0a\x01\xff"[..],
                ErrorCode::TopicInvalid,
                "message.topic",
                "UTF-8",
            ),
            (
                b"\x0a\x01\xff",
                ErrorCode::InvalidArgument,
                "namespace",
                "UTF-8",
            ),
            (
                b"\x12\x7f",
                ErrorCode::InvalidArgument,
                "message",
                "underflow",
            ),
            (b"\xff", ErrorCode::InvalidArgument, "request", "varint"),
        ] {
            let error = PublishOneRequest::decode(bytes).unwrap_err();
            let error = unread_error(&Status::internal(error.to_string()), 9).unwrap();
            assert_eq!(error.code(), code, "{error}");
            assert_eq!(error.field_name(), field, "{error}");
            assert!(error.found().contains(value), "{error}");
            assert!(!error.expected().is_empty(), "{error}");
        }
        let missing = unread_error(&Status::internal("Missing request message."), 9);
        assert_eq!(missing.unwrap().field_name(), "request");
        let ours = status_from_error(&Error::new(ErrorCode::Internal), "r");
        assert_eq!(unread_error(&ours, 9), None);
    }

    #[test]
    fn an_oversize_message_names_found_and_limit() {
        let text = "Error, decoded message length too large: found 99 bytes, the limit is: 9 bytes";
        let status = Status::out_of_range(text);
        assert!(is_oversize(&status));
        let error = oversize_error(status.message(), 9);
        assert_eq!(error.found(), "99 bytes");
        assert_eq!(error.expected(), "9 bytes");
    }
}
