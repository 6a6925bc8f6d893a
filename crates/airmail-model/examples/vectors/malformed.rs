//! Malformed batches, up to the end of the head; `malformed_records` has those behind it.
//!
//! Offsets are written as numbers here, as `docs/batch-format.md` gives them, so that a change of
//! the layout by accident does not change these with it.

use crate::batches::{Plan, many_topics, message};
use crate::documents::{Case, refused};
use crate::malformed_records;
use airmail_model::{ErrorCode, NamespaceId, TopicName};
use serde_json::Value;

/// Where the parts of [`many_topics`] lie.
pub(crate) const NAMES: usize = 66 + 2 * 20;
pub(crate) const RECORDS: usize = NAMES + 6 + 5;

/// Puts the right checksum in the header.
pub(crate) fn seal(bytes: &mut [u8]) {
    let bodies = u32::from_le_bytes(bytes[16..20].try_into().expect("four bytes")) as usize;
    let crc = crc32c::crc32c(&bytes[8..bodies]);
    bytes[4..8].copy_from_slice(&crc.to_le_bytes());
}

pub(crate) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// Every malformed case.
pub(crate) fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    whole(&mut cases);
    header(&mut cases);
    header_by_hand(&mut cases);
    topics(&mut cases);
    names(&mut cases);
    malformed_records::add_all(&mut cases);
    cases
}

pub(crate) type Cases = Vec<Case>;

/// A case refused by both checks alike.
pub(crate) fn add(
    cases: &mut Cases,
    name: &str,
    meaning: &'static str,
    bytes: Vec<u8>,
    refusal: Value,
) {
    add_judged(cases, name, meaning, bytes, (refusal.clone(), refusal));
}

/// A case with the results of the check at the edge and of the check of stored bytes.
pub(crate) fn add_judged(
    cases: &mut Cases,
    name: &str,
    meaning: &'static str,
    bytes: Vec<u8>,
    (edge, stored): (Value, Value),
) {
    cases.push(Case {
        name: name.into(),
        meaning,
        bytes,
        edge,
        stored,
        headers: None,
        batch: Value::Null,
    });
}

/// A change to [`many_topics`]: name, meaning, where, what is put there, the field refused.
pub(crate) type Patch = (
    &'static str,
    &'static str,
    usize,
    &'static [u8],
    &'static str,
);

/// Adds a case for each change, its checksum right, malformed for both checks.
pub(crate) fn patched(cases: &mut Cases, patches: &[Patch]) {
    for &(name, meaning, at, value, field) in patches {
        let mut bytes = many_topics().encode();
        put(&mut bytes, at, value);
        seal(&mut bytes);
        add(
            cases,
            name,
            meaning,
            bytes,
            refused(ErrorCode::BatchMalformed, field),
        );
    }
}

fn whole(cases: &mut Cases) {
    let good = many_topics().encode();
    let changed = |at: usize, value: &[u8]| {
        let mut bytes = good.clone();
        put(&mut bytes, at, value);
        bytes
    };
    let mut case = |name, meaning, bytes, field| {
        let refusal = refused(ErrorCode::BatchMalformed, field);
        add(cases, name, meaning, bytes, refusal);
    };
    let length = "batch.length";
    case("empty", "no bytes", Vec::new(), length);
    case("header-cut", "65 bytes", good[..65].to_vec(), length);
    let cut = good[..good.len() - 1].to_vec();
    case("cut", "the last byte is missing", cut, length);
    case(
        "longer",
        "a byte too many",
        [&good[..], &[0]].concat(),
        length,
    );
    case("zeros", "66 bytes of 0", vec![0; 66], "batch.magic");
    case("magic", "not AMBT", changed(0, b"AMBX"), "batch.magic");
    let version = changed(8, &[2]);
    case("version-2", "an unknown version", version, "batch.version");
    let crc = changed(28, &[9]);
    case("header-crc", "changed when sealed", crc, "batch.header_crc");
    let offset = "batch.bodies_offset";
    let beyond = changed(16, &[255; 4]);
    case(
        "bodies-offset-beyond",
        "bodies after the end",
        beyond,
        offset,
    );
    let early = changed(16, &[80, 0]);
    case("bodies-offset-early", "bodies in the tables", early, offset);
    let records = changed(20, &[255, 255]);
    case("too-many-records", "no room for so many", records, offset);
}

fn header(cases: &mut Cases) {
    patched(
        cases,
        &[
            (
                "flag-unknown",
                "a flag that must be known",
                10,
                &[8, 0],
                "batch.flags",
            ),
            (
                "reserved",
                "the reserved byte is not 0",
                27,
                &[1],
                "batch.reserved",
            ),
            ("lane-2", "there is no such lane", 26, &[2], "batch.lane"),
            (
                "sequence-end",
                "the sequence would overflow",
                48,
                &[255; 8],
                "batch.producer_sequence",
            ),
            (
                "no-producer-epoch",
                "no producer, but an epoch",
                40,
                &[0; 8],
                "batch.producer_epoch",
            ),
            (
                "no-topics",
                "records of no topic",
                22,
                &[0, 0],
                "batch.topics",
            ),
        ],
    );
}

fn header_by_hand(cases: &mut Cases) {
    let mut bytes = many_topics().encode();
    put(&mut bytes, 36, &[0; 12]);
    seal(&mut bytes);
    let refusal = refused(ErrorCode::BatchMalformed, "batch.producer_sequence");
    add(
        cases,
        "no-producer-sequence",
        "no producer, but a sequence",
        bytes,
        refusal,
    );
    let mut bytes = many_topics().encode();
    bytes[9] = 1;
    seal(&mut bytes);
    add(
        cases,
        "codec-1",
        "a codec: reserved",
        bytes,
        refused(ErrorCode::Unimplemented, "codec"),
    );
    let mut traced = many_topics();
    traced.extensions = vec![(1, b"0123".to_vec())];
    let mut bytes = traced.encode();
    bytes[67] = 5;
    seal(&mut bytes);
    let refusal = refused(ErrorCode::BatchMalformed, "batch.extensions");
    add(
        cases,
        "extension-cut",
        "an extension longer than all of them",
        bytes,
        refusal,
    );
    // Without records the record table's room must be filled by names: a longer last name.
    let mut bytes = many_topics().encode();
    put(&mut bytes, 20, &[0, 0]);
    seal(&mut bytes);
    let refusal = refused(ErrorCode::BatchMalformed, "batch.records");
    add(cases, "no-records", "a batch of nothing", bytes, refusal);
}

fn topics(cases: &mut Cases) {
    patched(
        cases,
        &[
            (
                "hash",
                "a hash that is not the name's",
                66,
                &[0],
                "batch.topic[0].hash",
            ),
            (
                "name-end-beyond",
                "a name longer than all names",
                66 + 36,
                &[99],
                "batch.topic[1].name_end",
            ),
            (
                "name-end-back",
                "a name that ends before it begins",
                66 + 36,
                &[2],
                "batch.topic[1].name_end",
            ),
            (
                "topic-unused",
                "a topic of no record",
                RECORDS + 20 + 12,
                &[0],
                "batch.topic[1]",
            ),
        ],
    );
    let hash = |name: &str| TopicName::hash_of(NamespaceId(7), name).0.to_le_bytes();
    let mut bytes = many_topics().encode();
    bytes[66 + 36] = 10;
    put(&mut bytes, 66 + 20, &hash("stoc"));
    seal(&mut bytes);
    let refusal = refused(ErrorCode::BatchMalformed, "batch.bodies_offset");
    add(
        cases,
        "names-rest",
        "a byte after the last name",
        bytes,
        refusal,
    );
}

fn names(cases: &mut Cases) {
    let hash = |name: &str| TopicName::hash_of(NamespaceId(7), name).0.to_le_bytes();
    let invalid = |n| refused(ErrorCode::TopicInvalid, &format!("batch.topic[{n}].name"));
    let mut bytes = many_topics().encode();
    bytes[NAMES] = 0xff;
    seal(&mut bytes);
    add(
        cases,
        "name-not-utf8",
        "a name that is not UTF-8",
        bytes,
        invalid(0),
    );
    let mut bytes = many_topics().encode();
    bytes[NAMES] = b'\n';
    put(&mut bytes, 66, &hash("\nrders"));
    seal(&mut bytes);
    add(
        cases,
        "name-control",
        "a control character in a name",
        bytes,
        invalid(0),
    );
    let mut bytes = many_topics().encode();
    bytes[66 + 16] = 0;
    seal(&mut bytes);
    add(cases, "name-empty", "a name of no bytes", bytes, invalid(0));
    let mut bytes = Plan::of(vec![message("stock", "one"), message("other", "two")]).encode();
    put(&mut bytes, NAMES + 5, b"stock");
    put(&mut bytes, 66 + 20, &hash("stock"));
    seal(&mut bytes);
    let refusal = refused(ErrorCode::BatchMalformed, "batch.topic[1].hash");
    add(
        cases,
        "topic-twice",
        "two entries of one topic",
        bytes,
        refusal,
    );
}
