//! Sound batches, with the contents that a reader must find in them.

use crate::documents::{Case, hex, refused};
use airmail_model::batch::{AttributeValue, BatchTarget, EXTENSION_TRACE_CONTEXT, ProducerStamp};
use airmail_model::{
    BatchEncoder, ErrorCode, Lane, Limits, LogId, LogIndex, MapEpoch, Message, NamespaceId,
    ProducerEpoch, ProducerId, ProducerSequence, RoleId, TopicName,
};
use serde_json::{Map, Value, json};

/// When every batch here was made: 2023-11-14 22:13:20 UTC, in microseconds.
pub(crate) const TIME: i64 = 1_700_000_000_000_000;
const NAMESPACE: NamespaceId = NamespaceId(7);

/// The contents of a batch; its encoding and its description are derived from it separately.
pub(crate) struct Plan {
    pub(crate) messages: Vec<Message>,
    pub(crate) target: BatchTarget,
    pub(crate) control: bool,
    pub(crate) extensions: Vec<(u8, Vec<u8>)>,
    /// Indices of the records to keep, if it is sliced.
    pub(crate) kept: Option<Vec<u16>>,
    /// Whether payloads are left out of what is kept.
    pub(crate) headers: bool,
}

/// A message.
pub(crate) fn message(topic: &str, payload: &'static str) -> Message {
    let topic = TopicName::new(topic, &Limits::DEFAULT).expect("a good name");
    Message::new(topic, payload)
}

impl Plan {
    /// A batch of a producer, for log 3 of namespace 7, made by map 2.
    pub(crate) fn of(messages: Vec<Message>) -> Plan {
        let log = LogId {
            namespace: NAMESPACE,
            lane: Lane::Normal,
            index: LogIndex(3),
        };
        let producer = ProducerStamp {
            id: ProducerId(0x1122_3344_5566_7788),
            epoch: ProducerEpoch(4),
            sequence: ProducerSequence(1000),
        };
        Plan {
            messages,
            target: BatchTarget {
                log,
                epoch: MapEpoch(2),
                producer: Some(producer),
                producer_time: TIME,
            },
            control: false,
            extensions: Vec::new(),
            kept: None,
            headers: false,
        }
    }

    /// The batch; message n was made n milliseconds after the first.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut encoder = BatchEncoder::new(NAMESPACE);
        for (message, n) in self.messages.iter().zip(0..) {
            encoder
                .push_reserved(message, TIME + n * 1000, &Limits::DEFAULT)
                .expect("it fits");
        }
        for (kind, value) in &self.extensions {
            encoder.extension(*kind, value).expect("it fits");
        }
        if self.control {
            encoder.control();
        }
        let batch = encoder.finish(&self.target);
        match &self.kept {
            Some(kept) => {
                let slice = if self.headers {
                    batch.headers_of(kept)
                } else {
                    batch.slice_of(kept)
                };
                let slice = slice.expect("some are kept");
                slice.to_batch().bytes().to_vec()
            }
            None => batch.bytes().to_vec(),
        }
    }

    /// Describes what a reader must find.
    fn describe(&self) -> Value {
        let target = &self.target;
        let kept: Vec<(u16, &Message)> = (0_u16..)
            .zip(&self.messages)
            .filter(|(index, _)| self.kept.as_ref().is_none_or(|kept| kept.contains(index)))
            .collect();
        let records: Vec<Value> = kept
            .iter()
            .map(|(index, message)| describe(*index, message, self.headers))
            .collect();
        let extensions: Vec<Value> = self
            .extensions
            .iter()
            .map(|(kind, value)| json!({ "type": kind, "hex": hex(value) }))
            .collect();
        json!({
            "namespace_id": target.log.namespace.0,
            "lane": target.log.lane.to_string(),
            "log": target.log.index.0,
            "map_epoch": target.epoch.0,
            "control": self.control,
            "sliced": self.kept.is_some(),
            "headers": self.headers,
            "expiring": kept.iter().any(|(_, message)| message.ttl_ms.is_some()),
            "restricted": kept.iter().any(|(_, message)| !message.audience.is_empty()),
            "producer": target.producer.map(|producer| json!({
                "id": producer.id.to_string(),
                "epoch": producer.epoch.0,
                "sequence": producer.sequence.to_string(),
            })),
            "producer_time": target.producer_time.to_string(),
            "extensions": extensions,
            "records": records,
        })
    }

    pub(crate) fn case(self, name: &str, meaning: &'static str, edge: Value) -> Case {
        let (bytes, batch) = (self.encode(), self.describe());
        Case {
            name: name.into(),
            meaning,
            bytes,
            edge,
            stored: json!("accepted"),
            headers: None,
            batch,
        }
    }
}

fn describe(index: u16, message: &Message, headers: bool) -> Value {
    let attributes: Map<String, Value> = message
        .attributes
        .iter()
        .map(|(name, value)| {
            let value = match value {
                AttributeValue::String(text) => json!({ "string": text }),
                AttributeValue::Integer(number) => json!({ "integer": number.to_string() }),
                AttributeValue::Float(number) => json!({ "float": number }),
                AttributeValue::Bool(bit) => json!({ "bool": bit }),
            };
            (name.clone(), value)
        })
        .collect();
    json!({
        "index": index,
        "topic": message.topic.as_str(),
        "topic_hash": format!("{:032x}", message.topic.hash(NAMESPACE).0),
        "time": (TIME + i64::from(index) * 1000).to_string(),
        "attributes": attributes,
        "key_hex": message.key.as_ref().map(|key| hex(key)),
        "ttl_ms": message.ttl_ms,
        "deliver_at": message.deliver_at.map(|at| at.to_string()),
        "version": message.version.map(|version| version.to_string()),
        "audience": message.audience.iter().map(|role| role.0).collect::<Vec<_>>(),
        "payload_hex": hex(if headers { &[] } else { &message.payload }),
    })
}

/// Three records of two topics: what most malformed cases are made from.
pub(crate) fn many_topics() -> Plan {
    Plan::of(vec![
        message("orders", "one"),
        message("stock", "two"),
        message("orders", "three"),
    ])
}

/// Every good case.
pub(crate) fn all() -> Vec<Case> {
    let mut cases = plain();
    cases.extend(optional_fields());
    cases
}

fn plain() -> Vec<Case> {
    let accepted = || json!("accepted");
    let flags = || refused(ErrorCode::BatchMalformed, "batch.flags");
    let one = || Plan::of(vec![message("orders", "hello")]);
    let attributes = message("orders", "with attributes")
        .attribute("weight", AttributeValue::Float(0.5))
        .attribute("urgent", AttributeValue::Bool(true))
        .attribute("city", AttributeValue::String("Zürich".into()))
        .attribute("count", AttributeValue::Integer(-3));
    let mut anonymous = one();
    anonymous.target.producer = None;
    let mut control = one();
    control.control = true;
    let mut traced = one();
    let parent = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    traced.extensions = vec![(EXTENSION_TRACE_CONTEXT, parent.to_vec())];
    let mut strange = one();
    strange.extensions = vec![(200, b"later".to_vec()), (201, Vec::new())];
    let mut sliced = many_topics();
    sliced.kept = Some(vec![0, 2]);
    let mut last = many_topics();
    last.kept = Some(vec![2]);
    let mut high = one();
    high.target.log.lane = Lane::High;
    vec![
        one().case("one-topic", "one record", accepted()),
        many_topics().case("many-topics", "two topics, three records", accepted()),
        Plan::of(vec![message("ж", ""), message("t", "")]).case(
            "empty-payloads",
            "bodies of no bytes at all, and a topic that is not ASCII",
            accepted(),
        ),
        Plan::of(vec![attributes]).case("attributes", "one of each kind, sorted", accepted()),
        anonymous.case("anonymous", "no producer: not de-duplicated", accepted()),
        traced.case(
            "trace-context",
            "the trace context as an extension",
            accepted(),
        ),
        strange.case(
            "unknown-extensions",
            "unknown extensions are kept",
            accepted(),
        ),
        control.case(
            "control",
            "made by the system; refused from clients",
            flags(),
        ),
        sliced.case(
            "sliced",
            "one of two topics kept; indices keep their values",
            flags(),
        ),
        last.case("sliced-last", "only the last record kept", flags()),
        high.case("lane-high", "the other lane", accepted()),
    ]
}

fn optional_fields() -> Vec<Case> {
    let reserved = |field| refused(ErrorCode::Unimplemented, field);
    let with = |change: fn(&mut Message)| {
        let mut message = message("orders", "reserved");
        change(&mut message);
        Plan::of(vec![message])
    };
    let all = with(|message| {
        message.key = Some("customer-1".into());
        message.ttl_ms = Some(60_000);
        message.deliver_at = Some(TIME + 1);
        message.version = Some(9);
        message.audience = vec![RoleId(1), RoleId(70_000)];
        message.attributes = vec![("a".into(), AttributeValue::Bool(false))];
    });
    let ttl = with(|message| message.ttl_ms = Some(1500));
    let deliver_at = with(|message| message.deliver_at = Some(TIME + 5_000_000));
    let version = with(|message| message.version = Some(u64::MAX));
    let key = with(|message| message.key = Some("customer-1".into()));
    let audience = with(|message| message.audience = vec![RoleId(3), RoleId(5)]);
    vec![
        ttl.case("ttl", "a time to live", json!("accepted")),
        deliver_at.case(
            "deliver-at",
            "a time of delivery: reserved",
            reserved("deliver_at"),
        ),
        version.case("version", "a version: reserved", reserved("version")),
        key.case("key", "an ordering key: reserved", reserved("key")),
        audience.case("audience", "roles that may receive it", json!("accepted")),
        all.case(
            "all-fields",
            "everything a body can have: reserved",
            reserved("key"),
        ),
    ]
}
