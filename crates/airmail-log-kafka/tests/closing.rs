//! Closing leaves nothing behind. In a program of its own, so that all threads are this test's.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test panics where something is wrong")]

use airmail_log_kafka::brokers::{
    Brokers as _, ConsumerId, NewRecord, Partition, Question, Slot, Token, Topic,
};
use airmail_log_kafka::place::Offset;
use airmail_log_kafka::shell::{KafkaSettings, LibrdkafkaBrokers};
use airmail_model::Now;
use airmail_testkit::lasting::lasting_address;
use airmail_testkit::waiting;
use bytes::Bytes;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

/// Names of this process's threads.
fn threads() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir("/proc/self/task")
        .unwrap()
        .filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("comm")).ok())
        .collect();
    names.sort();
    names
}

/// Brokers of which every part has been used.
fn used() -> LibrdkafkaBrokers {
    let mut settings = KafkaSettings::new(&lasting_address());
    settings.flush = Duration::from_millis(50);
    let mut brokers = LibrdkafkaBrokers::open(settings, Arc::new(|| ())).unwrap();
    let partition = Partition::new(&Topic::new("nowhere"), 0);
    for slot in 0..3 {
        let consumer = ConsumerId(slot.into());
        brokers.consume(consumer, Slot(slot), &partition, Offset(0));
    }
    let record = NewRecord {
        key: None,
        value: Some(Bytes::from_static(b"x")),
        sent_ms: 0,
    };
    brokers.produce(Token(1), &partition, record).unwrap();
    brokers.ask(Token(2), &partition, Question::Watermarks);
    let topic = partition.topic;
    brokers.order(
        Token(3),
        airmail_log_kafka::brokers::Order::Describe { topic },
    );
    brokers
}

#[test]
fn no_thread_is_left_after_closing_or_dropping() {
    // The watch over waits is a thread of the test's.
    waiting::until("the watch has begun", Duration::from_millis(5), || {
        let names = threads();
        let is_there = names.iter().any(|name| name == "watchdog\n");
        is_there.then_some(()).ok_or(format!("{names:?}"))
    });
    let before = threads();

    let mut brokers = used();
    assert!(threads().len() > before.len());
    brokers.close(Now::default());
    let mut told = Vec::new();
    waiting::until("it is closed", Duration::from_millis(5), || {
        brokers.poll(Now::default(), &mut told);
        let is_closed = brokers.is_closed();
        is_closed.then_some(()).ok_or("it is open".to_owned())
    });
    brokers.poll(Now::default(), &mut told);
    assert_eq!(threads(), before);
    assert_eq!(told.len(), 3, "{told:?}");

    drop(used());
    assert_eq!(threads(), before);
}
