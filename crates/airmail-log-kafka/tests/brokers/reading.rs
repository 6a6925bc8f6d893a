//! Claims about consumers.

use crate::owner::{Owner, records, values};
use airmail_log_kafka::brokers::{
    Brokers as _, ConsumerId, Failure, Partition, RECORD_OVERHEAD_BYTES, Taken, Told,
};
use airmail_log_kafka::place::Offset;
use airmail_testkit::kafka::KafkaCluster;
use airmail_testkit::waiting;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};
use std::time::Duration;

/// A topic of one partition with so many records; each says its offset.
fn filled(owner: &mut Owner, name: &str, count: u64) -> Partition {
    let topic = owner.make(name, 1, 1);
    let partition = Partition::new(&topic, 0);
    let tokens: Vec<_> = (0..count)
        .map(|at| owner.produce(&partition, &at.to_string()))
        .collect();
    for token in tokens {
        owner.produced(token).unwrap();
    }
    partition
}

fn numbered(offsets: std::ops::Range<u64>) -> Vec<(Offset, String)> {
    offsets.map(|at| (Offset(at), at.to_string())).collect()
}

fn end(at: u64) -> Taken {
    Taken::End { next: Offset(at) }
}

pub(crate) fn a_consumer_begins_in_the_middle(cluster: &mut KafkaCluster) {
    let mut owner = Owner::of(cluster);
    let partition = filled(&mut owner, "middle", 100);
    let consumer = owner.consume(0, &partition, Offset(37));
    let taken = owner.take_until(consumer, Offset(100));
    assert_eq!(values(&taken), numbered(37..100));
    // And at the very end.
    let consumer = owner.consume(1, &partition, Offset(100));
    assert_eq!(owner.take_until(consumer, Offset(100)), [end(100)]);
}

pub(crate) fn the_end_is_told_once_and_again_after_more(cluster: &mut KafkaCluster) {
    let mut owner = Owner::of(cluster);
    let partition = filled(&mut owner, "ends", 2);
    let consumer = owner.consume(0, &partition, Offset(0));
    let taken = owner.take_until(consumer, Offset(2));
    assert_eq!(values(&taken), numbered(0..2));
    assert_eq!(taken.last(), Some(&end(2)));
    let mut all = Vec::new();
    for at in 2..5 {
        owner.store(&partition, &at.to_string());
        all.extend(owner.take_until(consumer, Offset(at + 1)));
    }
    assert_eq!(values(&all), numbered(2..5));
    let ends: Vec<_> = all
        .iter()
        .filter(|one| matches!(one, Taken::End { .. }))
        .collect();
    assert_eq!(ends, [&end(3), &end(4), &end(5)]);
}

pub(crate) fn no_more_is_taken_than_asked_for_and_the_rest_is_told(cluster: &mut KafkaCluster) {
    let mut owner = Owner::of(cluster);
    let partition = filled(&mut owner, "bounded", 50);
    let consumer = owner.consume(0, &partition, Offset(0));
    let mut all = Vec::new();
    // Room for one record and a half: so it is two, unless fewer were there.
    let most = RECORD_OVERHEAD_BYTES + RECORD_OVERHEAD_BYTES / 2;
    waiting::until("all records, by twos", Duration::from_millis(1), || {
        let taken = owner.take(consumer, most);
        assert!(records(&taken).len() <= 2, "{taken:?}");
        all.extend(taken);
        let is_all = all.last() == Some(&end(50));
        is_all.then_some(()).ok_or(format!("{} taken", all.len()))
    });
    assert_eq!(values(&all), numbered(0..50));
    assert_eq!(owner.take(consumer, u64::MAX), []);
}

pub(crate) fn two_slots_read_one_partition_each_for_itself(cluster: &mut KafkaCluster) {
    let mut owner = Owner::of(cluster);
    let partition = filled(&mut owner, "slots", 60);
    let tail = owner.consume(0, &partition, Offset(60));
    let late = owner.consume(1, &partition, Offset(0));
    assert_eq!(owner.take_until(tail, Offset(60)), [end(60)]);
    for at in 60..70 {
        owner.store(&partition, &at.to_string());
    }
    // Whoever is not taken from holds nobody up.
    let taken = owner.take_until(tail, Offset(70));
    assert_eq!(values(&taken), numbered(60..70));
    let taken = owner.take_until(late, Offset(70));
    assert_eq!(values(&taken), numbered(0..70));
}

pub(crate) fn a_partition_can_be_read_again_in_its_slot_and_nothing_is_told_of_who_was_stopped(
    cluster: &mut KafkaCluster,
) {
    let mut owner = Owner::of(cluster);
    let partition = filled(&mut owner, "again", 40);
    for _ in 0..10 {
        // Some are stopped before they have begun, some in between.
        let gone = owner.consume(0, &partition, Offset(20));
        owner.brokers.stop(gone);
        let first = owner.consume(0, &partition, Offset(10));
        let taken = owner.take_until(first, Offset(40));
        assert_eq!(values(&taken), numbered(10..40));
        owner.brokers.stop(first);
        let second = owner.consume(0, &partition, Offset(0));
        assert_eq!(owner.take(first, u64::MAX), []);
        let taken = owner.take_until(second, Offset(40));
        assert_eq!(values(&taken), numbered(0..40));
        owner.brokers.stop(second);
    }
    owner.brokers.stop(ConsumerId(0));
    assert_eq!(owner.rest(), []);
}

pub(crate) fn a_slot_that_is_not_there_ends_its_consumer(cluster: &mut KafkaCluster) {
    let mut owner = Owner::of(cluster);
    let topic = owner.make("no-slot", 1, 1);
    let partition = Partition::new(&topic, 0);
    let consumer = owner.consume(200, &partition, Offset(0));
    let why = owner.until("its end", |told| match told {
        Told::Ended { consumer: of, why } if *of == consumer => Some(why.clone()),
        _ => None,
    });
    assert!(matches!(why, Failure::Other(_)), "{why:?}");
}

pub(crate) fn records_that_are_not_ours_have_no_time_of_sending(cluster: &mut KafkaCluster) {
    let mut owner = Owner::of(cluster);
    let topic = owner.make("foreign", 1, 1);
    let partition = Partition::new(&topic, 0);
    let producer: BaseProducer = cluster.client().create().unwrap();
    let foreign = BaseRecord::<str, str>::to("foreign").payload("foreign");
    producer
        .send(foreign.partition(0))
        .map_err(|(error, _)| error)
        .unwrap();
    producer.flush(waiting::PATIENCE).unwrap();
    owner.store(&partition, "ours");
    let consumer = owner.consume(0, &partition, Offset(0));
    let taken = owner.take_until(consumer, Offset(2));
    let sent: Vec<_> = records(&taken).iter().map(|one| one.sent_ms).collect();
    assert_eq!(sent, [None, Some(1_700_000_000_123)]);
}
