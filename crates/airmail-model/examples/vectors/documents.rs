//! The files of golden vectors, as text.

use crate::{batches, filters, malformed, marked};
use airmail_model::position::LogPosition;
use airmail_model::{
    ErrorCode, Incarnation, Lane, LogId, LogIndex, MapEpoch, NamespaceId, Position, Sequence,
};
use serde_json::{Value, json};

/// One batch, and what each of the two checks must say of it.
pub(crate) struct Case {
    /// Lower case, with dashes.
    pub(crate) name: String,
    /// The purpose of the vector.
    pub(crate) meaning: &'static str,
    /// The batch.
    pub(crate) bytes: Vec<u8>,
    /// `"accepted"`, or the error and its field.
    pub(crate) edge: Value,
    /// `"accepted"`, the places of damaged records, or the error and its field.
    pub(crate) stored: Value,
    /// The answer to who asked for no payloads, if it is made for one: `"accepted"`, or the error and
    /// its field.
    pub(crate) headers: Option<Value>,
    /// The contents that a reader finds in it, if any check accepts it.
    pub(crate) batch: Value,
}

/// A refusal, as vectors say it.
pub(crate) fn refused(code: ErrorCode, field: &str) -> Value {
    json!({ "error": code.name(), "field": field })
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Every file: name and text.
pub(crate) fn all() -> Vec<(&'static str, String)> {
    vec![
        ("batch.json", pretty(&batch())),
        ("position.json", pretty(&position())),
        ("errors.json", pretty(&errors())),
        ("filter.json", pretty(&filters::document())),
    ]
}

fn pretty(document: &Value) -> String {
    let mut text = serde_json::to_string_pretty(document).expect("values can be written");
    text.push('\n');
    text
}

/// Every batch.
pub(crate) fn all_batches() -> impl Iterator<Item = Case> {
    let cases = batches::all().into_iter();
    cases.chain(marked::all()).chain(malformed::all())
}

fn batch() -> Value {
    let cases: Vec<Value> = all_batches()
        .map(|case| {
            let mut described = json!({
                "name": case.name,
                "meaning": case.meaning,
                "hex": hex(&case.bytes),
                "edge": case.edge,
                "stored": case.stored,
                "batch": case.batch,
            });
            if let Some(headers) = case.headers {
                described["headers"] = headers;
            }
            described
        })
        .collect();
    json!({
        "about": "Batches, and what the check of a client's batch (edge) and the check of a \
                  stored one (stored) must say: accepted, an error with its field, or the places \
                  of damaged records. Where there is `headers`, the batch is made for who asked for no \
                  payloads, and that is the answer of their check, which refuses all others. Default \
                  limits. Numbers of 64 and 128 bits are strings.",
        "cases": cases,
    })
}

/// Some positions.
pub(crate) fn positions() -> Vec<(&'static str, Position)> {
    let namespace = NamespaceId(7);
    let log = |lane, index, incarnation, next| LogPosition {
        log: LogId {
            namespace,
            lane,
            index: LogIndex(index),
        },
        incarnation: Incarnation(incarnation),
        next: Sequence(next),
    };
    let position = |logs| Position {
        namespace,
        epoch: MapEpoch(2),
        logs,
    };
    vec![
        ("of-one-log", position(vec![log(Lane::Normal, 0, 0, 1)])),
        ("of-no-log", position(Vec::new())),
        (
            "of-three-logs",
            position(vec![
                log(Lane::Normal, 0, 0, 4096),
                log(Lane::Normal, 513, 0x0123_4567_89ab_cdef, u64::MAX),
                log(Lane::High, 0, 9, 77),
            ]),
        ),
    ]
}

fn position() -> Value {
    let good: Vec<Value> = positions()
        .into_iter()
        .map(|(name, position)| {
            let logs: Vec<Value> = position
                .logs
                .iter()
                .map(|log| {
                    json!({
                        "lane": log.log.lane.to_string(),
                        "log": log.log.index.0,
                        "incarnation": log.incarnation.to_string(),
                        "next": log.next.to_string(),
                    })
                })
                .collect();
            json!({
                "name": name,
                "text": position.to_string(),
                "namespace_id": position.namespace.0,
                "map_epoch": position.epoch.0,
                "logs": logs,
            })
        })
        .collect();
    json!({
        "about": "Positions and what they say; then texts that are none, each POSITION_INVALID. \
                  Numbers of 64 bits are strings.",
        "positions": good,
        "invalid": invalid_positions(),
    })
}

fn errors() -> Value {
    let table: Vec<Value> = ErrorCode::ALL
        .iter()
        .map(|&code| {
            json!({
                "code": code as u16,
                "name": code.name(),
                "grpc": format!("{:?}", code.grpc()),
                "grpc_code": code.grpc() as u8,
                "retriable": code.retriable(),
                "waited_for": code.waited_for(),
                "text": code.text(),
            })
        })
        .collect();
    let retired: Vec<Value> = ErrorCode::RETIRED
        .iter()
        .map(|old| json!({ "code": old.code, "name": old.name, "instead": old.instead.name() }))
        .collect();
    json!({
        "about": "Every error that a user can see. Numbers and names are never reused: one that is \
                  retired is no longer sent, and read as the one that is sent instead.",
        "errors": table,
        "retired": retired,
    })
}

/// Texts that are no positions.
fn invalid_positions() -> Vec<Value> {
    let good = positions()[0].1.to_string();
    let (head, tail) = good.split_at(good.len() - 3);
    let swapped = if tail.starts_with('A') { "B" } else { "A" };
    [
        ("empty", String::new()),
        ("other-version", good.replacen("pos1-", "pos2-", 1)),
        ("no-prefix", good[5..].to_owned()),
        ("nothing-after-prefix", "pos1-".to_owned()),
        ("cut", head.to_owned()),
        ("changed", format!("{head}{swapped}{}", &tail[1..])),
        ("padded", format!("{good}=")),
        ("not-base64", good.replacen("pos1-", "pos1-*", 1)),
        ("two-joined", format!("{good}{good}")),
    ]
    .into_iter()
    .map(|(name, text)| json!({ "name": name, "text": text }))
    .collect()
}
