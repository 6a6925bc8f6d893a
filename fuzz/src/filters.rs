//! Filters made of the language's own words, and records with attributes that these ask for.

use airmail_model::batch::{AttributeValue, BatchTarget};
use airmail_model::{
    Batch, BatchEncoder, Checked, Limits, LogId, MapEpoch, Message, NamespaceId, TopicName,
};
use std::collections::BTreeMap;

const NAMES: [&str; 8] = [
    "a",
    "b",
    "c",
    "d",
    "\"in\"",
    "a-name-of-more-than-8",
    "a-name-of-more-than-9",
    "\"é\"",
];
const VALUES: [&str; 12] = [
    "0",
    "-1",
    "12",
    "12.0",
    "3.5",
    "9007199254740993",
    "9007199254740992.0",
    "''",
    "'ab'",
    "'long enough a'",
    "true",
    "false",
];
const TESTS: [&str; 14] = [
    "N = V",
    "N != V",
    "N < V",
    "N <= V",
    "N > V",
    "N >= V",
    "N between V and V",
    "N in (V)",
    "N in (V, V, V)",
    "N not in (V)",
    "N starts with V",
    "has N",
    "not has N",
    "not N = V",
];

/// The filters of some bytes: each byte a word or two; a zero ends one. Not each can be parsed.
pub fn texts(bytes: &[u8]) -> impl Iterator<Item = String> {
    bytes.split(|byte| *byte == 0).map(text)
}

fn text(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut bytes = bytes.iter().copied();
    let mut open = 0_usize;
    while let Some(byte) = bytes.next() {
        let test = TESTS[usize::from(byte) % TESTS.len()];
        // What stands between two tests, and how deep it goes.
        let link = bytes.next().unwrap_or(0);
        for letter in test.chars() {
            let choice = match letter {
                'N' => NAMES[usize::from(link) % NAMES.len()],
                'V' => VALUES[usize::from(bytes.next().unwrap_or(byte)) % VALUES.len()],
                _ => {
                    text.push(letter);
                    continue;
                }
            };
            text.push_str(choice);
        }
        if open > 0 && link & 64 != 0 {
            text.push(')');
            open -= 1;
        }
        if bytes.len() > 0 {
            text.push_str(if link & 8 == 0 { " and " } else { " or " });
            if link & 16 != 0 {
                text.push_str("not ");
            }
            if link & 32 != 0 {
                text.push('(');
                open += 1;
            }
        }
    }
    text.push_str(&")".repeat(open));
    text
}

/// A batch of one record: each two bytes are an attribute's name and value.
pub fn batch(bytes: &[u8]) -> Checked<Batch> {
    let mut attributes = BTreeMap::new();
    for pair in bytes.chunks(2) {
        let name = NAMES[usize::from(pair[0]) % NAMES.len()].trim_matches('"');
        let value = match pair.get(1).copied().unwrap_or(0) % 16 {
            0 => AttributeValue::Integer(0),
            1 => AttributeValue::Integer(-1),
            2 => AttributeValue::Integer(12),
            3 => AttributeValue::Float(12.0),
            4 => AttributeValue::Float(3.5),
            5 => AttributeValue::Float(-0.0),
            6 => AttributeValue::Integer(9_007_199_254_740_993),
            7 => AttributeValue::Float(9_007_199_254_740_992.0),
            8 => AttributeValue::String(String::new()),
            9 => AttributeValue::String("ab".to_owned()),
            10 => AttributeValue::String("long enough a".to_owned()),
            11 => AttributeValue::String("long enough b".to_owned()),
            12 => AttributeValue::Bool(true),
            13 => AttributeValue::Bool(false),
            _ => continue,
        };
        attributes.insert(name.to_owned(), value);
    }
    let topic = TopicName::new("t", &Limits::DEFAULT).expect("a name");
    let message = Message {
        attributes: attributes.into_iter().collect(),
        ..Message::new(topic, "")
    };
    let mut encoder = BatchEncoder::new(NamespaceId(1));
    encoder
        .push(&message, 0, &Limits::DEFAULT)
        .expect("it fits");
    encoder.finish(&BatchTarget {
        log: LogId {
            namespace: NamespaceId(1),
            ..LogId::default()
        },
        epoch: MapEpoch(1),
        producer: None,
        producer_time: 0,
    })
}
