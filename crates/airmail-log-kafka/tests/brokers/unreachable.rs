//! Claims about brokers that nobody reaches. They need none.

use crate::owner::{Owner, record};
use airmail_log_kafka::brokers::{
    Answer, Brokers as _, Failure, NotTaken, Partition, Question, Topic, Unstored,
};
use airmail_log_kafka::place::Offset;
use airmail_log_kafka::shell::{KafkaSettings, LibrdkafkaBrokers, OpenError};
use airmail_model::Now;
use airmail_testkit::lasting::lasting_address;
use airmail_testkit::waiting;
use std::sync::Arc;
use std::time::Duration;

fn nowhere() -> KafkaSettings {
    let mut settings = KafkaSettings::new(&lasting_address());
    settings.flush = Duration::from_millis(100);
    settings
}

#[test]
fn a_queue_that_is_full_takes_nothing_and_closing_tells_all_that_was_taken() {
    let mut settings = nowhere();
    settings.queue_bytes = 1 << 20;
    let mut owner = Owner::with(settings);
    let partition = Partition::new(&Topic::new("nowhere"), 0);
    let value = "x".repeat(100_000);
    let mut tokens = Vec::new();
    let refused = loop {
        let token = owner.token();
        match owner.brokers.produce(token, &partition, record(&value)) {
            Ok(()) => tokens.push(token),
            Err(refused) => break refused,
        }
        assert!(tokens.len() < 1000);
    };
    assert_eq!(refused, NotTaken::Full);
    assert!(tokens.len() >= 9, "{} taken", tokens.len());
    assert_eq!(owner.rest(), []);

    owner.brokers.close(Now::default());
    for token in tokens {
        let Unstored(why) = owner.produced(token).unwrap_err();
        assert!(!why.is_empty());
    }
    waiting::until("it is closed", Duration::from_millis(5), || {
        owner.poll();
        let is_closed = owner.brokers.is_closed();
        is_closed.then_some(()).ok_or("it is open".to_owned())
    });
    assert_eq!(owner.rest(), []);
}

#[test]
fn questions_fail_and_it_is_told_that_nothing_can_be_stored() {
    let mut owner = Owner::with(nowhere());
    let partition = Partition::new(&Topic::new("nowhere"), 0);
    let consumer = owner.consume(0, &partition, Offset(0));
    for _ in 0..3 {
        let answer = owner.ask(&partition, Question::Watermarks);
        assert_eq!(answer, Answer::Failed(Failure::TimedOut));
    }
    waiting::until("the trouble is told", Duration::from_millis(5), || {
        owner.poll();
        owner.brokers.trouble().map(|_| ()).ok_or(String::new())
    });
    // That brokers are not there passes by itself.
    assert_eq!(owner.take(consumer, u64::MAX), []);
    assert_eq!(owner.rest(), []);
}

#[test]
fn a_record_that_nobody_has_acknowledged_is_told_as_not_known_when_the_client_closes() {
    let mut settings = nowhere();
    settings.flush = Duration::from_millis(100);
    let mut owner = Owner::with(settings);
    let partition = Partition::new(&Topic::new("nowhere"), 0);
    let tokens = ["first", "behind it"].map(|value| owner.produce(&partition, value));
    owner.brokers.close(airmail_model::Now::default());
    for token in tokens {
        owner.produced(token).unwrap_err();
    }
}

#[test]
fn what_cannot_be_set_is_refused_by_name_before_anything_is_started() {
    for name in ["acks", "ssl.no.such"] {
        let mut settings = nowhere();
        settings.properties = vec![(name.to_owned(), "all".to_owned())];
        let refused = LibrdkafkaBrokers::open(settings, Arc::new(|| ())).unwrap_err();
        assert!(refused.to_string().contains(name), "{refused}");
    }
    // Known only when a client is made: the threads that were started before it end.
    let mut settings = nowhere();
    let property = ("sasl.mechanisms", "SCRAM-SHA-512");
    settings.properties = vec![
        ("security.protocol".to_owned(), "sasl_plaintext".to_owned()),
        (property.0.to_owned(), property.1.to_owned()),
        ("sasl.username".to_owned(), "a".to_owned()),
        ("sasl.password".to_owned(), "b".to_owned()),
    ];
    let refused = LibrdkafkaBrokers::open(settings, Arc::new(|| ())).unwrap_err();
    assert!(
        matches!(
            refused,
            OpenError::Client(_) | OpenError::Unsupported { .. }
        ),
        "{refused}"
    );
}
