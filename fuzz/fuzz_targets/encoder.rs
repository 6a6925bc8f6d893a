//! The batch encoder, which keeps its memory from batch to batch: from any messages it makes
//! batches that any node takes, which hold the messages unchanged, and still do when later ones are
//! made.

#![no_main]

use airmail_fuzz::fuzz_target;
use airmail_model::batch::{AttributeValue, BatchTarget, ProducerStamp};
use airmail_model::{
    Batch, BatchEncoder, Checked, Limits, LogId, LogIndex, MapEpoch, Message, NamespaceId,
    ProducerEpoch, ProducerId, ProducerSequence, TopicName,
};
use libfuzzer_sys::arbitrary::{self, Arbitrary};

const NAMESPACE: NamespaceId = NamespaceId(7);
/// The longest payload: more than what is kept of an encoder's memory, a few times.
const PAYLOAD_BYTES: u32 = 40_000;
/// Batches are small, so that an input costs little.
const LIMITS: Limits = Limits {
    batch_bytes: 100_000,
    ..Limits::DEFAULT
};

#[derive(Arbitrary, Debug)]
enum Step {
    Push {
        topic: u8,
        bytes: u16,
        large: bool,
        time: i64,
        attribute: Option<i64>,
        by_reference: bool,
    },
    Finish {
        producer: bool,
        time: i64,
        control: bool,
    },
}

/// A message as it was handed over.
type Given = (TopicName, Vec<u8>, Option<i64>, i64);

struct World {
    encoder: BatchEncoder,
    open: Vec<Given>,
    made: Vec<(Checked<Batch>, Vec<Given>)>,
    pushed: u8,
}

impl World {
    fn push(&mut self, given: Given, by_reference: bool) {
        let (topic, payload, attribute, time) = &given;
        let pushed = if by_reference && attribute.is_none() {
            let hash = topic.hash(NAMESPACE);
            self.encoder
                .push_payload(topic, payload, hash, *time, &LIMITS)
        } else {
            let mut message = Message::new(topic.clone(), payload.clone());
            let attributes =
                attribute.map(|value| ("n".to_owned(), AttributeValue::Integer(value)));
            message.attributes.extend(attributes);
            self.encoder.push(&message, *time, &LIMITS)
        };
        if pushed.is_ok() {
            self.open.push(given);
        }
        assert_eq!(self.encoder.is_empty(), self.open.is_empty());
    }

    fn finish(&mut self, producer: bool, time: i64, control: bool) {
        if self.open.is_empty() {
            return;
        }
        if control {
            self.encoder.control();
        }
        let length = self.encoder.len();
        let log = LogId {
            namespace: NAMESPACE,
            index: LogIndex(3),
            ..LogId::default()
        };
        let batch = self.encoder.finish(&BatchTarget {
            log,
            epoch: MapEpoch(1),
            producer: producer.then_some(ProducerStamp {
                id: ProducerId(5),
                epoch: ProducerEpoch(1),
                sequence: ProducerSequence(9),
            }),
            producer_time: time,
        });
        assert_eq!(batch.bytes().len(), length);
        assert_eq!(batch.is_control(), control);
        self.made.push((batch, std::mem::take(&mut self.open)));
    }
}

fn check(batch: &Checked<Batch>, given: &[Given]) {
    let bytes = batch.bytes().clone();
    let (checked, damaged) = Batch::check_stored(bytes.clone()).expect("made by the encoder");
    assert!(damaged.is_empty());
    // Only a node makes a batch of commands.
    let taken = Batch::check(bytes, &LIMITS);
    assert_eq!(taken.is_err(), batch.is_control(), "{taken:?}");
    assert_eq!(usize::from(checked.records()), given.len());
    for (record, (topic, payload, attribute, time)) in checked.iter().zip(given) {
        assert_eq!(record.topic_name, topic.as_str());
        assert_eq!(record.payload, payload);
        assert_eq!(record.attributes.count(), usize::from(attribute.is_some()));
        // Told as what it is after the batch's own time, as far as that can be told.
        let after = time.saturating_sub(checked.producer_time());
        let after = after.min(u32::MAX.into());
        assert_eq!(record.time, checked.producer_time().saturating_add(after));
    }
}

fuzz_target!(|steps: Vec<Step>| {
    let mut world = World {
        encoder: BatchEncoder::new(NAMESPACE),
        open: Vec::new(),
        made: Vec::new(),
        pushed: 0,
    };
    for step in steps {
        match step {
            Step::Push {
                topic,
                bytes,
                large,
                time,
                attribute,
                by_reference,
            } => {
                let name = "t".repeat(usize::from(topic % 4) + 1);
                let topic = TopicName::new(&name, &LIMITS).expect("a name");
                let bytes = u32::from(bytes) % if large { PAYLOAD_BYTES } else { 200 };
                world.pushed = world.pushed.wrapping_add(1);
                let payload = vec![world.pushed; bytes as usize];
                world.push((topic, payload, attribute, time), by_reference);
            }
            Step::Finish {
                producer,
                time,
                control,
            } => world.finish(producer, time, control),
        }
    }
    world.finish(false, 0, false);
    for (batch, given) in &world.made {
        check(batch, given);
    }
});
