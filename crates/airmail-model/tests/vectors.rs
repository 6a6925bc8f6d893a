//! Golden vectors: this crate does what they say, and the program that writes them gives the same.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

#[path = "../examples/vectors/batches.rs"]
mod batches;
#[path = "../examples/vectors/documents.rs"]
mod documents;
#[path = "../examples/vectors/filters.rs"]
mod filters;
#[path = "../examples/vectors/malformed.rs"]
mod malformed;
#[path = "../examples/vectors/malformed_records.rs"]
mod malformed_records;
#[path = "../examples/vectors/marked.rs"]
mod marked;

use airmail_model::batch::{AttributeValue, BatchTarget, Record};
use airmail_model::filter::{Facts, Filter, FilterError};
use airmail_model::{
    Batch, BatchEncoder, Checked, Error, ErrorCode, Limits, LogId, MapEpoch, Message, NamespaceId,
    Position, TopicName,
};
use bytes::Bytes;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../vectors")
        .join(name)
}

fn document(name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(file(name)).unwrap()).unwrap()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap()
}

fn bytes(hex: &str) -> Bytes {
    let digits = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digits).collect()
}

fn refusal(error: &Error) -> Value {
    json!({ "error": error.code().name(), "field": error.field_name() })
}

fn describe(batch: &Checked<Batch>) -> Value {
    let extensions: Vec<Value> = batch
        .extensions()
        .map(|(kind, value)| json!({ "type": kind, "hex": documents::hex(value) }))
        .collect();
    json!({
        "namespace_id": batch.namespace().0,
        "lane": batch.log().lane.to_string(),
        "log": batch.log().index.0,
        "map_epoch": batch.map_epoch().0,
        "control": batch.is_control(),
        "sliced": batch.is_sliced(),
        "headers": batch.is_headers(),
        "expiring": batch.is_expiring(),
        "restricted": batch.is_restricted(),
        "producer": batch.producer().map(|producer| json!({
            "id": producer.id.to_string(),
            "epoch": producer.epoch.0,
            "sequence": producer.sequence.to_string(),
        })),
        "producer_time": batch.producer_time().to_string(),
        "extensions": extensions,
        "records": batch.iter().map(|record| describe_record(&record)).collect::<Vec<_>>(),
    })
}

fn describe_record(record: &Record<'_>) -> Value {
    let attributes: Map<String, Value> = record
        .attributes
        .map(|(name, value)| {
            let value = match value {
                AttributeValue::String(text) => json!({ "string": text }),
                AttributeValue::Integer(number) => json!({ "integer": number.to_string() }),
                AttributeValue::Float(number) => json!({ "float": number }),
                AttributeValue::Bool(bit) => json!({ "bool": bit }),
            };
            (name.to_owned(), value)
        })
        .collect();
    json!({
        "index": record.index,
        "topic": record.topic_name,
        "topic_hash": format!("{:032x}", record.topic_hash.0),
        "time": record.time.to_string(),
        "attributes": attributes,
        "key_hex": record.key.map(documents::hex),
        "ttl_ms": record.ttl_ms,
        "deliver_at": record.deliver_at.map(|at| at.to_string()),
        "version": record.version.map(|version| version.to_string()),
        "audience": record.audience.map(|role| role.0).collect::<Vec<_>>(),
        "payload_hex": documents::hex(record.payload),
    })
}

#[test]
fn every_batch_is_judged_as_its_vector_says() {
    let mut wrong = Vec::new();
    for case in document("batch.json")["cases"].as_array().unwrap() {
        let bytes = bytes(text(case, "hex"));
        let edge = match Batch::check(bytes.clone(), &Limits::DEFAULT) {
            Ok(_) => json!("accepted"),
            Err(error) => refusal(&error),
        };
        let headers = Batch::check_headers(bytes.clone());
        let (stored, batch) = match Batch::check_stored(bytes) {
            Ok((batch, damaged)) if damaged.is_empty() => (json!("accepted"), Some(batch)),
            Ok((_, damaged)) => (json!({ "damaged": damaged }), None),
            Err(error) => (refusal(&error), None),
        };
        let expected_batch = &case["batch"];
        let (headers, batch) = match headers {
            Ok(headers) => (json!("accepted"), batch.or(Some(headers))),
            Err(error) if case["headers"].is_null() => {
                assert!(!error.field_name().is_empty());
                (Value::Null, batch)
            }
            Err(error) => (refusal(&error), batch),
        };
        let described = batch.as_ref().map_or(Value::Null, describe);
        if edge != case["edge"]
            || stored != case["stored"]
            || headers != case["headers"]
            || (!expected_batch.is_null() && *expected_batch != described)
        {
            wrong.push(format!(
                "{}: {edge} {stored} {headers} {described:#}",
                text(case, "name")
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn there_are_twenty_malformed_batches_and_no_two_cases_of_one_name() {
    let document = document("batch.json");
    let cases = document["cases"].as_array().unwrap();
    let malformed = cases
        .iter()
        .filter(|case| case["stored"].get("error").is_some())
        .count();
    assert!(malformed >= 20, "{malformed}");
    let names: BTreeSet<&str> = cases.iter().map(|case| text(case, "name")).collect();
    assert_eq!(names.len(), cases.len());
}

#[test]
fn every_position_reads_as_its_vector_says() {
    let document = document("position.json");
    for case in document["positions"].as_array().unwrap() {
        let position: Position = text(case, "text").parse().unwrap();
        assert_eq!(position.to_string(), text(case, "text"));
        assert_eq!(json!(position.namespace.0), case["namespace_id"]);
        assert_eq!(json!(position.epoch.0), case["map_epoch"]);
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
        assert_eq!(json!(logs), case["logs"]);
    }
    for case in document["invalid"].as_array().unwrap() {
        let error = text(case, "text").parse::<Position>().unwrap_err();
        assert_eq!(
            error.code(),
            ErrorCode::PositionInvalid,
            "{}",
            text(case, "name")
        );
        assert_eq!(error.field_name(), "position");
    }
}

/// A batch of one message with the attributes of a record of `filter.json`.
fn batch_of(record: &Value) -> Checked<Batch> {
    let mut message = Message::new(TopicName::new("t", &Limits::DEFAULT).unwrap(), "");
    for (name, value) in record.as_object().unwrap() {
        let (kind, value) = value.as_object().unwrap().iter().next().unwrap();
        let value = match kind.as_str() {
            "string" => AttributeValue::String(value.as_str().unwrap().to_owned()),
            "integer" => AttributeValue::Integer(value.as_str().unwrap().parse().unwrap()),
            "float" => AttributeValue::Float(value.as_f64().unwrap()),
            _ => AttributeValue::Bool(value.as_bool().unwrap()),
        };
        message = message.attribute(name.clone(), value);
    }
    let mut encoder = BatchEncoder::new(NamespaceId(1));
    encoder.push(&message, 0, &Limits::DEFAULT).unwrap();
    let target = BatchTarget {
        log: LogId {
            namespace: NamespaceId(1),
            ..LogId::default()
        },
        epoch: MapEpoch(1),
        producer: None,
        producer_time: 0,
    };
    Batch::check(encoder.finish(&target).bytes().clone(), &Limits::DEFAULT).unwrap()
}

#[test]
fn every_filter_is_shown_and_matches_as_its_vector_says() {
    let document = document("filter.json");
    let records = document["records"].as_object().unwrap().iter();
    let records: Vec<_> = records
        .map(|(name, record)| (name.as_str(), batch_of(record)))
        .collect();
    for case in document["filters"].as_array().unwrap() {
        let written = text(case, "filter");
        let filter = Filter::parse(written).unwrap_or_else(|error| panic!("{written}: {error}"));
        assert_eq!(filter.to_string(), text(case, "shown"));
        assert_eq!(Filter::parse(text(case, "shown")), Ok(filter.clone()));
        let wanted: BTreeSet<&str> = case["matches"]
            .as_array()
            .unwrap()
            .iter()
            .map(|name| name.as_str().unwrap())
            .collect();
        for (name, batch) in &records {
            let record = batch.record(0);
            let facts = Facts::read(record.attributes);
            let matches = [filter.matches(&record), filter.matches_facts(&facts)];
            assert_eq!(matches, [wanted.contains(name); 2], "{written} of {name}");
        }
    }
}

#[test]
fn every_text_that_is_no_filter_is_refused_as_its_vector_says() {
    let document = document("filter.json");
    let both = ["invalid", "too_complex"];
    for case in both
        .iter()
        .flat_map(|list| document[list].as_array().unwrap())
    {
        let written = text(case, "filter");
        let error = Filter::parse(written).expect_err(written);
        let mut said = match &error {
            FilterError::Invalid {
                line,
                column,
                found,
                expected,
            } => {
                json!({ "line": line, "column": column, "found": found, "expected": expected })
            }
            FilterError::TooComplex { bound, found } => {
                json!({ "bound": bound.name(), "found": found })
            }
        };
        said["error"] = json!(error.name());
        said["filter"] = json!(written);
        assert_eq!(said, *case);
    }
}

#[test]
fn the_vectors_are_as_their_program_writes_them() {
    for (name, fresh) in documents::all() {
        let stored = std::fs::read_to_string(file(name)).unwrap();
        let hint = "cargo run -p airmail-model --example vectors";
        assert!(stored == fresh, "vectors/{name} is stale: {hint}");
    }
}

#[test]
fn no_two_errors_share_a_number_or_a_name_not_even_with_a_retired_one() {
    let (sent, retired) = (ErrorCode::ALL.iter(), ErrorCode::RETIRED.iter());
    let numbers = sent.clone().map(|&code| code as u16);
    let names = sent.map(|code| code.name());
    let numbers: BTreeSet<u16> = numbers.chain(retired.clone().map(|old| old.code)).collect();
    let names: BTreeSet<&str> = names.chain(retired.map(|old| old.name)).collect();
    let count = ErrorCode::ALL.len() + ErrorCode::RETIRED.len();
    assert_eq!(numbers.len(), count);
    assert_eq!(names.len(), count);
    for &code in ErrorCode::ALL {
        assert_eq!(ErrorCode::from_u16(code as u16), Some(code));
        assert_eq!(ErrorCode::from_name(code.name()), Some(code));
    }
}

#[test]
fn a_retired_error_is_read_as_the_one_that_is_sent_instead() {
    for old in ErrorCode::RETIRED {
        assert_eq!(ErrorCode::from_u16(old.code), Some(old.instead));
        assert_eq!(ErrorCode::from_name(old.name), Some(old.instead));
    }
    assert_eq!(ErrorCode::from_u16(32), Some(ErrorCode::Internal));
}
