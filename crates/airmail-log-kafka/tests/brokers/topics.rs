//! Claims about questions and orders.

use crate::owner::{Owner, settings};
use airmail_log_kafka::brokers::{
    Answer, Brokers as _, ConsumerId, Described, Failure, NotTaken, Order, Partition, Question,
    Told, Topic,
};
use airmail_log_kafka::place::Offset;
use airmail_testkit::kafka::KafkaCluster;
use airmail_testkit::waiting;
use std::thread;
use std::time::Duration;

pub(crate) fn a_watermark_is_never_below_an_acknowledged_record(cluster: &mut KafkaCluster) {
    let mut owner = Owner::of(cluster);
    let topic = owner.make("watermarks", 1, 1);
    let partition = Partition::new(&topic, 0);
    // A consumer keeps watermarks of its own, which must be no answer.
    let consumer = owner.consume(0, &partition, Offset(0));
    for at in 0..50 {
        let stored = owner.store(&partition, "x");
        let answer = owner.ask_patiently(&partition, Question::Watermarks);
        let (low, high) = (Offset(0), Offset(at + 1));
        assert_eq!(stored.offset, Offset(at));
        assert_eq!(answer, Answer::Watermarks { low, high });
    }
    owner.take_until(consumer, Offset(50));
}

pub(crate) fn the_first_record_of_a_time_is_found(cluster: &mut KafkaCluster) {
    let mut owner = Owner::of(cluster);
    let topic = owner.make("times", 1, 1);
    let partition = Partition::new(&topic, 0);
    let found = owner.ask_patiently(&partition, Question::OffsetAt { at_ms: 0 });
    assert_eq!(found, Answer::Offset(None));
    let mut times = Vec::new();
    for _ in 0..3 {
        times.push(owner.store(&partition, "x").appended_ms);
        // So that no two have the same time.
        thread::sleep(Duration::from_millis(5));
    }
    for (at, time) in (0..).zip(&times) {
        for at_ms in [*time, time - 1] {
            let found = owner.ask_patiently(&partition, Question::OffsetAt { at_ms });
            assert_eq!(
                found,
                Answer::Offset(Some(Offset(at))),
                "{at_ms} of {times:?}"
            );
        }
    }
    let at_ms = times[2] + 1;
    let found = owner.ask_patiently(&partition, Question::OffsetAt { at_ms });
    assert_eq!(found, Answer::Offset(None));
    // What this client cannot ask fails, and is not made up.
    let failed = owner.ask(&partition, Question::EpochEnd { epoch: 0 });
    assert!(
        matches!(failed, Answer::Failed(Failure::Other(_))),
        "{failed:?}"
    );
}

pub(crate) fn a_topic_has_the_settings_that_it_was_made_with_and_those_that_were_altered(
    cluster: &mut KafkaCluster,
) {
    let mut owner = Owner::of(cluster);
    let topic = Topic::new("set");
    let create = Order::Create {
        topic: topic.clone(),
        partitions: 3,
        replicas: 1,
        settings: settings(&[
            ("retention.ms", "3600000"),
            ("max.message.bytes", "2097152"),
        ]),
    };
    assert_eq!(owner.order(create.clone()), Answer::Done);
    assert_eq!(owner.order(create), Answer::Failed(Failure::Exists));
    let first = described(&mut owner, &topic);
    assert_eq!((first.partitions, first.replicas), (3, 1));
    let get = |name: &str| first.settings.get(name).map(String::as_str);
    assert_eq!(get("retention.ms"), Some("3600000"));
    assert_eq!(get("max.message.bytes"), Some("2097152"));
    assert_eq!(get("message.timestamp.type"), Some("LogAppendTime"));
    // A default.
    assert_eq!(get("cleanup.policy"), Some("delete"));

    let altered = owner.order(Order::Alter {
        topic: topic.clone(),
        settings: [("retention.ms".to_owned(), "7200000".to_owned())].into(),
    });
    assert_eq!(altered, Answer::Done);
    let second = described(&mut owner, &topic);
    let mut wanted = first.settings.clone();
    wanted.insert("retention.ms".to_owned(), "7200000".to_owned());
    assert_eq!(second.settings, wanted);

    let wrong = owner.order(Order::Alter {
        topic,
        settings: [("retention.ms".to_owned(), "for ever".to_owned())].into(),
    });
    assert!(
        matches!(wrong, Answer::Failed(Failure::Other(_))),
        "{wrong:?}"
    );
}

pub(crate) fn described(owner: &mut Owner, topic: &Topic) -> Described {
    let topic = topic.clone();
    match owner.order(Order::Describe { topic }) {
        Answer::Described(described) => *described,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn topics_are_listed_and_deleted(cluster: &mut KafkaCluster) {
    let mut owner = Owner::of(cluster);
    for name in ["listed.b", "listed.a", "other.listed.c"] {
        owner.make(name, 1, 1);
    }
    let list = Order::List {
        prefix: "listed.".to_owned(),
    };
    let topic = Topic::new;
    let listed = Answer::Topics(vec![topic("listed.a"), topic("listed.b")]);
    assert_eq!(owner.order(list.clone()), listed);
    let delete = Order::Delete {
        topic: topic("listed.a"),
    };
    assert_eq!(owner.order(delete.clone()), Answer::Done);
    assert_eq!(owner.order(list), Answer::Topics(vec![topic("listed.b")]));
    assert_eq!(owner.order(delete), Answer::Failed(Failure::NoTopic));
}

pub(crate) fn deleted_records_are_out_of_range(cluster: &mut KafkaCluster) {
    let mut owner = Owner::of(cluster);
    let topic = owner.make("cut", 1, 1);
    let partition = Partition::new(&topic, 0);
    for _ in 0..10 {
        owner.store(&partition, "x");
    }
    let delete = |before| Order::DeleteRecords {
        partition: Partition::new(&Topic::new("cut"), 0),
        before: Offset(before),
    };
    assert_eq!(owner.order(delete(4)), Answer::Done);
    let kept = Answer::Watermarks {
        low: Offset(4),
        high: Offset(10),
    };
    assert_eq!(owner.ask_patiently(&partition, Question::Watermarks), kept);
    // Below the first that is kept: it changes nothing.
    assert_eq!(owner.order(delete(2)), Answer::Done);
    assert_eq!(owner.ask_patiently(&partition, Question::Watermarks), kept);
    // Above the watermark: refused.
    let refused = owner.order(delete(11));
    assert!(matches!(refused, Answer::Failed(_)), "{refused:?}");

    for (from, slot) in [(Offset(3), 0), (Offset(11), 1)] {
        let consumer = owner.consume(slot, &partition, from);
        until_told(&mut owner, consumer, &Told::OutOfRange { consumer });
        assert_eq!(owner.take(consumer, u64::MAX), []);
        owner.brokers.stop(consumer);
    }
    let consumer = owner.consume(0, &partition, Offset(4));
    let taken = owner.take_until(consumer, Offset(10));
    assert_eq!(taken.len(), 7);
    assert_eq!(owner.rest(), []);
}

pub(crate) fn a_topic_that_is_not_there_is_told_as_such_and_not_made(cluster: &mut KafkaCluster) {
    let mut owner = Owner::of(cluster);
    let topic = Topic::new("nowhere");
    let partition = Partition::new(&topic, 0);
    let none = Answer::Failed(Failure::NoTopic);
    let asked = owner.ask(&partition, Question::Watermarks);
    assert!(
        asked == none || asked == Answer::Failed(Failure::TimedOut),
        "{asked:?}"
    );
    let describe = Order::Describe {
        topic: topic.clone(),
    };
    assert_eq!(owner.order(describe.clone()), none);
    let settings = settings_of_nothing();
    let alter = Order::Alter {
        topic: topic.clone(),
        settings,
    };
    assert_eq!(owner.order(alter), none);
    let (cut, before) = (partition.clone(), Offset(1));
    let delete = Order::DeleteRecords {
        partition: cut,
        before,
    };
    assert_eq!(owner.order(delete), none);
    let consumer = owner.consume(0, &partition, Offset(0));
    let token = owner.token();
    let new = crate::owner::record("x");
    // librdkafka may know already that it is not there.
    match owner.brokers.produce(token, &partition, new) {
        Ok(()) => _ = owner.produced(token).unwrap_err(),
        Err(refused) => assert!(matches!(refused, NotTaken::Invalid(_)), "{refused:?}"),
    }
    let why = Failure::NoTopic;
    until_told(&mut owner, consumer, &Told::Ended { consumer, why });
    assert_eq!(owner.order(describe), none);

    // A partition that a topic does not have.
    let topic = owner.make("narrow", 1, 1);
    let beyond = Partition::new(&topic, 7);
    assert_eq!(owner.ask(&beyond, Question::Watermarks), none);
}

/// Takes from a consumer until this is told of it: its failure stands among what is to be taken.
fn until_told(owner: &mut Owner, consumer: ConsumerId, wanted: &Told) {
    waiting::until("news of a consumer", Duration::from_millis(5), || {
        assert_eq!(owner.take(consumer, u64::MAX), []);
        let rest = owner.rest();
        rest.contains(wanted)
            .then_some(())
            .ok_or(format!("{rest:?}"))
    });
}

fn settings_of_nothing() -> airmail_log_kafka::brokers::Settings {
    [("retention.ms".to_owned(), "1".to_owned())].into()
}

pub(crate) fn a_broker_of_version_4_is_told_apart(cluster: &mut KafkaCluster) {
    let mut owner = Owner::of(cluster);
    assert_eq!(owner.order(Order::Version), Answer::Version { major: 4 });
}
