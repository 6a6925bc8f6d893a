//! Deliveries for tests.

use super::Event;
use airmail_model::batch::BatchTarget;
use airmail_model::frame::{Channel, Delivered, Delivery, Reply};
use airmail_model::{
    AppendTime, BatchEncoder, Limits, LogId, MapEpoch, Message, Sequence, TopicName,
};

/// A delivery of one message of a log, with this number and a payload of so many bytes.
pub(super) fn delivery_in(log: LogId, number: u64, bytes: usize) -> Event {
    let mut encoder = BatchEncoder::new(log.namespace);
    let topic = TopicName::new("t", &Limits::DEFAULT).unwrap();
    let message = Message::new(topic, vec![0; bytes]).lane(log.lane);
    encoder.push(&message, 0, &Limits::DEFAULT).unwrap();
    let batch = encoder.finish(&BatchTarget {
        log,
        epoch: MapEpoch(1),
        producer: None,
        producer_time: 0,
    });
    Event::Reply(Reply::Delivery(Delivery {
        channel: Channel::Live,
        log,
        previous: Sequence(number.saturating_sub(1)),
        last: Sequence(number),
        base: Sequence(number),
        appended: AppendTime(0),
        clock: None,
        body: Delivered::Whole(batch),
        matches: None,
    }))
}
