//! Batches whose header says something of their records: that some expire, that some are restricted, that
//! payloads were left out. And headers that lie.
//!
//! As in `malformed`, offsets are written as numbers.

use crate::batches::{Plan, many_topics, message};
use crate::documents::{Case, refused};
use crate::malformed::seal;
use airmail_model::batch::AttributeValue;
use airmail_model::{ErrorCode, Message, RoleId};
use serde_json::{Value, json};

/// The upper byte of a batch's flags, and what it says.
const UPPER_FLAGS: usize = 11;
const EXPIRING: u8 = 1;
const RESTRICTED: u8 = 2;
/// The lower byte, and what it says.
const LOWER_FLAGS: usize = 10;
const HEADERS: u8 = 4;

/// Every case.
pub(crate) fn all() -> Vec<Case> {
    let mut cases = lies();
    cases.extend(slices());
    cases.extend(headers());
    cases.extend(malformed_headers());
    cases
}

fn flags() -> Value {
    refused(ErrorCode::BatchMalformed, "batch.flags")
}

fn expiring() -> Message {
    Message {
        ttl_ms: Some(1500),
        ..message("orders", "soon old")
    }
}

fn restricted() -> Message {
    Message {
        audience: vec![RoleId(3), RoleId(5)],
        ..message("stock", "for some")
    }
}

fn marked() -> Plan {
    Plan::of(vec![expiring(), restricted(), message("orders", "plain")])
}

/// A case with its upper flags changed. What a reader finds stays as it was.
fn with_flags(case: Case, upper: u8) -> Case {
    let mut case = case;
    case.bytes[UPPER_FLAGS] = upper;
    seal(&mut case.bytes);
    case
}

fn lies() -> Vec<Case> {
    let untold = "stored by another program: what the records say counts";
    let nothing = "no record is so: what the records say counts";
    let of = |message| Plan::of(vec![message]);
    vec![
        with_flags(of(expiring()).case("expiring-untold", untold, flags()), 0),
        with_flags(
            of(restricted()).case("restricted-untold", untold, flags()),
            0,
        ),
        with_flags(
            marked().case("one-for-the-other", untold, flags()),
            RESTRICTED,
        ),
        with_flags(
            many_topics().case("expiring-for-nothing", nothing, flags()),
            EXPIRING,
        ),
        with_flags(
            many_topics().case("restricted-for-nothing", nothing, flags()),
            RESTRICTED,
        ),
        with_flags(
            many_topics().case(
                "flag-ignored",
                "a flag that need not be known",
                json!("accepted"),
            ),
            0x80,
        ),
    ]
}

fn slices() -> Vec<Case> {
    let of = |kept: &[u16], name: &str, meaning| {
        let plan = Plan {
            kept: Some(kept.to_vec()),
            ..marked()
        };
        plan.case(name, meaning, flags())
    };
    vec![
        marked().case("expiring-and-restricted", "one of each", json!("accepted")),
        of(&[0, 2], "sliced-expiring", "no restricted record was kept"),
        of(&[1, 2], "sliced-restricted", "no expiring record was kept"),
        of(&[2], "sliced-neither", "what is kept brings nothing along"),
    ]
}

/// A case for who asked for no payloads, refused by the two other checks.
fn headers_case(plan: Plan, name: &str, meaning: &'static str) -> Case {
    let case = Plan {
        headers: true,
        ..plan
    };
    Case {
        stored: flags(),
        headers: Some(json!("accepted")),
        ..case.case(name, meaning, flags())
    }
}

fn headers() -> Vec<Case> {
    let keeping = |kept: &[u16], plan: Plan| Plan {
        kept: Some(kept.to_vec()),
        ..plan
    };
    let mut all_fields = marked();
    all_fields.messages.push(Message {
        key: Some("customer-1".into()),
        version: Some(9),
        attributes: vec![
            ("a".into(), AttributeValue::Bool(false)),
            ("city".into(), AttributeValue::String("Zürich".into())),
        ],
        ..expiring()
    });
    let mut whole = headers_case(
        Plan::of(vec![message("orders", ""), message("stock", "")]),
        "headers-whole",
        "nothing was left out but payloads, and the batch is not sliced",
    );
    whole.bytes[LOWER_FLAGS] = HEADERS;
    seal(&mut whole.bytes);
    vec![
        headers_case(
            keeping(&[0, 1, 2], many_topics()),
            "headers",
            "payloads left out of bodies that had nothing else",
        ),
        headers_case(
            keeping(&[1, 3], all_fields),
            "headers-of-fields",
            "all that stands before the payload is left",
        ),
        whole,
    ]
}

fn malformed_headers() -> Vec<Case> {
    let with = message("orders", "x").attribute("a", AttributeValue::Bool(true));
    let plan = Plan {
        kept: Some(vec![0]),
        ..Plan::of(vec![with])
    };
    let mut damaged = headers_case(plan, "headers-damaged", "a bit of what is left has flipped");
    let last = damaged.bytes.len() - 1;
    damaged.bytes[last] ^= 1;
    damaged.headers = Some(refused(
        ErrorCode::BatchMalformed,
        "batch.record[0].body_crc",
    ));
    let mut payload = headers_case(
        many_topics(),
        "headers-payload",
        "payloads are there all the same",
    );
    payload.bytes[LOWER_FLAGS] = HEADERS;
    seal(&mut payload.bytes);
    payload.headers = Some(refused(
        ErrorCode::BatchMalformed,
        "batch.record[0].payload",
    ));
    [damaged, payload]
        .into_iter()
        .map(|case| Case {
            batch: Value::Null,
            ..case
        })
        .collect()
}
