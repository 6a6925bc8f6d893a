//! Batches with a sound head and malformed records.

use crate::batches::{Plan, many_topics, message};
use crate::documents::{Case, refused};
use crate::malformed::{Cases, RECORDS, add, add_judged, patched, put, seal};
use airmail_model::batch::AttributeValue;
use airmail_model::{ErrorCode, RoleId};
use serde_json::{Value, json};

/// Where the bodies of `many_topics` lie.
const BODIES: usize = RECORDS + 3 * 20;

/// Adds every case.
pub(crate) fn add_all(cases: &mut Cases) {
    records(cases);
    sliced(cases);
    bodies(cases);
    attributes(cases);
    limits(cases);
}

/// Adds a case whose head is good: stored, it costs one record.
fn damaged(
    cases: &mut Cases,
    name: &str,
    meaning: &'static str,
    bytes: Vec<u8>,
    (place, edge): (usize, Value),
) {
    let stored = json!({ "damaged": [place] });
    add_judged(cases, name, meaning, bytes, (edge, stored));
}

/// Puts the right checksum on the body of record 0, and then in the header.
pub(crate) fn seal_body(bytes: &mut [u8], record: usize) {
    let bodies = u32::from_le_bytes(bytes[16..20].try_into().expect("four bytes")) as usize;
    let end = u32::from_le_bytes(bytes[record..record + 4].try_into().expect("four bytes"));
    let crc = crc32c::crc32c(&bytes[bodies..bodies + end as usize]);
    bytes[record + 4..record + 8].copy_from_slice(&crc.to_le_bytes());
    seal(bytes);
}

fn records(cases: &mut Cases) {
    let third = RECORDS + 40;
    patched(
        cases,
        &[
            (
                "record-topic",
                "a topic that is not in the table",
                third + 12,
                &[2],
                "batch.record[2].topic",
            ),
            (
                "index-skipped",
                "an index missing in a whole batch",
                third + 14,
                &[3],
                "batch.record[2].index",
            ),
            (
                "index-again",
                "an index twice",
                third + 14,
                &[1],
                "batch.record[2].index",
            ),
            (
                "record-flag",
                "a record flag that is not known",
                third + 16,
                &[32],
                "batch.record[2].flags",
            ),
            (
                "body-end-beyond",
                "a body that ends after the batch",
                third,
                &[12],
                "batch.record[2].body_end",
            ),
            (
                "body-end-back",
                "a body that ends before it begins",
                RECORDS + 20,
                &[2],
                "batch.record[1].body_end",
            ),
        ],
    );
    let mut bytes = many_topics().encode();
    put(&mut bytes, third, &[10]);
    let crc = crc32c::crc32c(&bytes[BODIES + 6..BODIES + 10]);
    put(&mut bytes, third + 4, &crc.to_le_bytes());
    seal(&mut bytes);
    let refusal = refused(ErrorCode::BatchMalformed, "batch.record[2].body_end");
    add(
        cases,
        "bodies-rest",
        "a byte after the last body",
        bytes,
        refusal,
    );
}

fn sliced(cases: &mut Cases) {
    let mut sliced = many_topics();
    sliced.kept = Some(vec![0, 2]);
    let refusal = refused(ErrorCode::BatchMalformed, "batch.record[1].index");
    let edge = refused(ErrorCode::BatchMalformed, "batch.flags");
    // One topic is left: the tables are shorter by its entry and name.
    let second = RECORDS - 20 - 5 + 20;
    for (name, meaning, index) in [
        ("sliced-index-back", "a slice's indices must ascend", 0_u16),
        ("sliced-index-beyond", "an index that no batch has", 4096),
    ] {
        let mut bytes = sliced.encode();
        put(&mut bytes, second + 14, &index.to_le_bytes());
        seal(&mut bytes);
        let judged = (edge.clone(), refusal.clone());
        add_judged(cases, name, meaning, bytes, judged);
    }
}

fn bodies(cases: &mut Cases) {
    let mut bytes = many_topics().encode();
    bytes[BODIES + 3] ^= 1;
    let edge = refused(ErrorCode::BatchMalformed, "batch.record[1].body_crc");
    damaged(
        cases,
        "body-damaged",
        "a bit of record 1 has flipped",
        bytes,
        (1, edge),
    );

    let mut bytes = many_topics().encode();
    put(&mut bytes, RECORDS + 18, &[4]);
    seal(&mut bytes);
    let edge = refused(
        ErrorCode::BatchMalformed,
        "batch.record[0].attributes_length",
    );
    damaged(
        cases,
        "attributes-length",
        "attributes longer than the body",
        bytes,
        (0, edge),
    );

    let record = 66 + 20 + 6;
    for (flag, part) in [
        (1, "ttl_ms"),
        (2, "deliver_at"),
        (4, "version"),
        (8, "key"),
        (16, "audience"),
    ] {
        let mut bytes = Plan::of(vec![message("orders", "\u{1}")]).encode();
        bytes[record + 16] = flag;
        seal(&mut bytes);
        let edge = refused(
            ErrorCode::BatchMalformed,
            &format!("batch.record[0].{part}"),
        );
        let name = format!("cut-{}", part.replace('_', "-"));
        damaged(
            cases,
            &name,
            "a flag announces what the body is too short for",
            bytes,
            (0, edge),
        );
    }
    let mut unsorted = message("orders", "x");
    unsorted.audience = vec![RoleId(3), RoleId(5)];
    let mut bytes = Plan::of(vec![unsorted]).encode();
    bytes[record + 20 + 1] = 9;
    seal_body(&mut bytes, record);
    let edge = refused(ErrorCode::BatchMalformed, "batch.record[0].audience");
    damaged(
        cases,
        "audience-unsorted",
        "roles must ascend",
        bytes,
        (0, edge),
    );
}

fn attributes(cases: &mut Cases) {
    let record = 66 + 20 + 6;
    let invalid = || refused(ErrorCode::AttributesInvalid, "batch.record[0].attributes");
    let two = message("orders", "x")
        .attribute("a", AttributeValue::Bool(true))
        .attribute("b", AttributeValue::Float(1.5));
    let encoded = Plan::of(vec![two]).encode();
    let body = record + 20;
    let changes: [(&str, &'static str, usize, &[u8]); 6] = [
        ("attribute-twice", "two attributes of one name", 6, b"a"),
        ("attribute-kind", "a kind that is not known", 5, &[9]),
        ("attribute-bool", "a bool that is neither 0 nor 1", 3, &[2]),
        (
            "attribute-nan",
            "a float that is not a number",
            7,
            &[0, 0, 0, 0, 0, 0, 0xf8, 0x7f],
        ),
        (
            "attribute-cut",
            "a name longer than the attributes",
            4,
            &[200],
        ),
        (
            "attribute-name-utf8",
            "a name that is not UTF-8",
            6,
            &[0xff],
        ),
    ];
    for (name, meaning, at, value) in changes {
        let mut bytes = encoded.clone();
        put(&mut bytes, body + at, value);
        seal_body(&mut bytes, record);
        damaged(cases, name, meaning, bytes, (0, invalid()));
    }
}

/// Well formed, but beyond a client's limits; stored ones were held to the limits of their day.
fn limits(cases: &mut Cases) {
    let mut many = message("orders", "x");
    many.attributes = (0..64)
        .map(|n| (format!("a{n:02}"), AttributeValue::Bool(true)))
        .collect();
    let mut bytes = Plan::of(vec![many]).encode();
    // One more by hand, in front: the encoder would refuse it.
    let record = 66 + 20 + 6;
    let more = [1, 4, b'a', 1];
    bytes.splice(record + 20..record + 20, more);
    for at in [12, record, record + 18] {
        bytes[at] = bytes[at].wrapping_add(4);
        if bytes[at] < 4 {
            bytes[at + 1] += 1;
        }
    }
    seal_body(&mut bytes, record);
    let edge = refused(ErrorCode::AttributesInvalid, "batch.record[0].attributes");
    cases.push(Case {
        name: "attributes-65".into(),
        meaning: "one attribute more than a message may have",
        bytes,
        edge,
        stored: json!("accepted"),
        headers: None,
        batch: Value::Null,
    });
}
