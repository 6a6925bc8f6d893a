//! Claims about records that are stored.

use crate::owner::{Owner, record, records, settings};
use airmail_log_kafka::brokers::{
    Answer, Brokers as _, NewRecord, NotTaken, Order, Partition, Told, Topic,
};
use airmail_log_kafka::place::Offset;
use airmail_log_kafka::shell::KafkaSettings;
use airmail_model::Now;
use airmail_testkit::kafka::KafkaCluster;
use airmail_testkit::waiting;
use bytes::Bytes;
use std::time::Duration;

pub(crate) fn records_come_back_at_the_offsets_of_their_reports_in_order_with_times_and_headers(
    cluster: &mut KafkaCluster,
) {
    let mut owner = Owner::of(cluster);
    let topic = owner.make("storing", 2, 1);
    let partitions = [Partition::new(&topic, 0), Partition::new(&topic, 1)];
    let mut tokens = Vec::new();
    for count in 0..400 {
        let partition = count % 2;
        let token = owner.token();
        let new = NewRecord {
            sent_ms: 1_000_000 + i64::try_from(count).unwrap(),
            ..record(&format!("record {count}"))
        };
        let taken = owner.brokers.produce(token, &partitions[partition], new);
        assert_eq!(taken, Ok(()));
        tokens.push(token);
    }
    // Reports come in the order of each partition.
    let mut reports = Vec::new();
    waiting::until("all reports", Duration::from_millis(5), || {
        reports.extend(owner.rest());
        (reports.len() == tokens.len())
            .then_some(())
            .ok_or(format!("{} reports", reports.len()))
    });
    for (at, partition) in partitions.iter().enumerate() {
        let of = tokens.iter().skip(at).step_by(2);
        let stored: Vec<_> = reports
            .iter()
            .filter_map(|told| match told {
                Told::Produced { token, result } if of.clone().any(|one| one == token) => {
                    Some((*token, result.clone().unwrap()))
                }
                _ => None,
            })
            .collect();
        let told: Vec<_> = stored.iter().map(|(token, _)| *token).collect();
        assert_eq!(told, of.copied().collect::<Vec<_>>());

        let consumer = owner.consume(0, partition, Offset(0));
        let taken = owner.take_until(consumer, Offset(200));
        let taken = records(&taken);
        assert_eq!(taken.len(), 200);
        for (place, (record, (_, report))) in taken.iter().zip(&stored).enumerate() {
            let count = 2 * place + at;
            assert_eq!(record.offset, report.offset);
            assert_eq!(record.appended_ms, report.appended_ms);
            assert!(record.appended_ms > 1_700_000_000_000, "{record:?}");
            assert_eq!(
                record.sent_ms,
                Some(1_000_000 + i64::try_from(count).unwrap())
            );
            assert_eq!(record.key, None);
            assert_eq!(
                record.value.as_deref(),
                Some(format!("record {count}").as_bytes())
            );
        }
    }
}

pub(crate) fn keys_and_contents_that_are_not_there_come_back_so(cluster: &mut KafkaCluster) {
    let mut owner = Owner::of(cluster);
    let topic = Topic::new("compacted");
    let made = owner.order(Order::Create {
        topic: topic.clone(),
        partitions: 1,
        replicas: 1,
        settings: settings(&[("cleanup.policy", "compact")]),
    });
    assert_eq!(made, Answer::Done);
    let partition = Partition::new(&topic, 0);
    let (key, empty) = (Some(Bytes::from_static(b"key")), Some(Bytes::new()));
    let wanted = [
        (key.clone(), Some(Bytes::from_static(b"value"))),
        (key.clone(), empty),
        (key, None),
    ];
    for (key, value) in wanted.clone() {
        let token = owner.token();
        let sent_ms = -5;
        let new = NewRecord {
            key,
            value,
            sent_ms,
        };
        owner.brokers.produce(token, &partition, new).unwrap();
        owner.produced(token).unwrap();
    }
    // A compacted topic wants a key.
    let token = owner.produce(&partition, "no key");
    owner.produced(token).unwrap_err();
    let consumer = owner.consume(0, &partition, Offset(0));
    let taken = owner.take_until(consumer, Offset(3));
    let found = records(&taken).into_iter();
    let found: Vec<_> = found
        .inspect(|record| assert_eq!(record.sent_ms, Some(-5)))
        .map(|record| (record.key.clone(), record.value.clone()))
        .collect();
    assert_eq!(found, wanted);
}

pub(crate) fn a_record_of_two_mebibytes_is_stored_and_a_larger_one_is_invalid(
    cluster: &mut KafkaCluster,
) {
    let mut owner = Owner::of(cluster);
    let topic = Topic::new("large");
    let made = owner.order(Order::Create {
        topic: topic.clone(),
        partitions: 1,
        replicas: 1,
        settings: settings(&[("max.message.bytes", "2162688")]),
    });
    assert_eq!(made, Answer::Done);
    let partition = Partition::new(&topic, 0);
    let large = "x".repeat(2 << 20);
    owner.store(&partition, &large);
    let token = owner.token();
    let larger = record(&large.repeat(2));
    let refused = owner.brokers.produce(token, &partition, larger);
    assert!(matches!(refused, Err(NotTaken::Invalid(_))), "{refused:?}");
    let consumer = owner.consume(0, &partition, Offset(0));
    let taken = owner.take_until(consumer, Offset(1));
    let found = records(&taken);
    assert_eq!(found[0].value.as_deref(), Some(large.as_bytes()));
    assert_eq!(owner.rest(), []);
}

pub(crate) fn no_more_records_are_under_way_than_the_settings_allow(cluster: &mut KafkaCluster) {
    let mut settings = KafkaSettings::new(&cluster.bootstrap());
    settings.records_max = 3;
    let mut owner = Owner::with(settings);
    let topic = owner.make("few", 1, 1);
    let partition = Partition::new(&topic, 0);
    // A report that was not told counts, so that the list of them is bounded too.
    let tokens: Vec<_> = (0..3).map(|_| owner.produce(&partition, "x")).collect();
    let token = owner.token();
    let full = owner.brokers.produce(token, &partition, record("x"));
    assert_eq!(full, Err(NotTaken::Full));
    for token in tokens {
        owner.produced(token).unwrap();
    }
    owner.store(&partition, "y");
    assert_eq!(owner.rest(), []);
}

pub(crate) fn closing_tells_everything_and_takes_nothing_more(cluster: &mut KafkaCluster) {
    let mut owner = Owner::of(cluster);
    let topic = owner.make("closing", 1, 1);
    let partition = Partition::new(&topic, 0);
    let consumer = owner.consume(0, &partition, Offset(0));
    let tokens: Vec<_> = (0..500).map(|_| owner.produce(&partition, "x")).collect();
    assert!(!owner.brokers.is_closed());
    owner.brokers.close(Now::default());
    let token = owner.token();
    let late = owner.brokers.produce(token, &partition, record("late"));
    assert!(matches!(late, Err(NotTaken::Failed(_))), "{late:?}");
    for token in tokens {
        owner.produced(token).unwrap();
    }
    let answer = owner.order(Order::List {
        prefix: String::new(),
    });
    assert!(matches!(answer, Answer::Failed(_)), "{answer:?}");
    assert_eq!(owner.take(consumer, u64::MAX), []);
    waiting::until("it is closed", Duration::from_millis(5), || {
        owner.poll();
        let is_closed = owner.brokers.is_closed();
        is_closed.then_some(()).ok_or("it is open".to_owned())
    });
    assert_eq!(owner.rest(), []);
}
