//! A run through a system that loses, doubles or reorders a message, or fails to store one: it is
//! no result. The tests show that the instrument finds these faults.

#![allow(clippy::unwrap_used, reason = "a test panics where something is wrong")]

use airmail_bench::chunk::Chunk;
use airmail_bench::run::{Account, Alone, Job, run};
use airmail_bench::system::{Failure, Outcome, Publisher, Subscription, System};
use airmail_bench::{Progress, Report, Settings};
use bytes::Bytes;
use parking_lot::Mutex;
use std::future::{Ready, ready};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Faults, of which one happens in the middle of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    Lose,
    Double,
    Swap,
    Foreign,
    Refuse,
}

/// One topic through memory, with a fault.
#[derive(Clone, Debug)]
struct Faulty {
    fault: Fault,
    subscribers: Arc<Mutex<Vec<mpsc::Sender<Vec<Bytes>>>>>,
}

impl System for Faulty {
    type Client = ();
    type Publisher = FaultyPublisher;
    type Subscription = Received;

    async fn prepare(&self, _prefix: &str) -> Result<(), Failure> {
        Ok(())
    }

    async fn clear(&self, _prefix: &str) -> Result<(), Failure> {
        Ok(())
    }

    async fn connect(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn publisher(&self, (): &(), _topics: &[String]) -> Result<FaultyPublisher, Failure> {
        Ok(FaultyPublisher {
            fault: self.fault,
            subscribers: self.subscribers.lock().clone(),
        })
    }

    async fn subscribe(
        &self,
        (): &(),
        _topics: &[String],
        _from_earliest: bool,
    ) -> Result<Received, Failure> {
        let (messages, received) = mpsc::channel(1000);
        self.subscribers.lock().push(messages);
        Ok(Received(received))
    }

    async fn close(&self, (): ()) -> Result<(), Failure> {
        Ok(())
    }
}

struct FaultyPublisher {
    fault: Fault,
    subscribers: Vec<mpsc::Sender<Vec<Bytes>>>,
}

impl Publisher for FaultyPublisher {
    type Acks = Ready<Outcome>;

    async fn send(&mut self, chunk: &Chunk) -> Result<Ready<Outcome>, Failure> {
        let mut outcome = Outcome::all(chunk.count());
        let mut messages: Vec<Bytes> = chunk.shared().map(|(_, payload)| payload).collect();
        if messages.len() > 2 {
            match std::mem::replace(&mut self.fault, Fault::None) {
                Fault::None => {}
                Fault::Lose => drop(messages.remove(1)),
                Fault::Double => messages.insert(1, messages[0].clone()),
                Fault::Swap => messages.swap(0, 1),
                Fault::Foreign => messages.push(Bytes::from_static(b"not of this run")),
                Fault::Refuse => {
                    messages.remove(1);
                    outcome.acknowledged -= 1;
                    outcome.failed += 1;
                }
            }
        }
        for subscriber in &self.subscribers {
            subscriber.send(messages.clone()).await.unwrap();
        }
        Ok(ready(outcome))
    }

    async fn flush(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

struct Received(mpsc::Receiver<Vec<Bytes>>);

impl Subscription for Received {
    async fn next(&mut self, account: &mut Account) -> Result<bool, Failure> {
        let Some(messages) = self.0.recv().await else {
            return Ok(false);
        };
        account.begin();
        messages.iter().for_each(|payload| account.take(payload));
        account.end();
        Ok(true)
    }
}

async fn report(fault: Fault) -> Report {
    let settings = Settings {
        messages: Some(1000),
        subscribers: 2,
        ..Settings::default()
    };
    let job = Job {
        settings: settings.clone(),
        id: 7,
        ..Job::default()
    };
    let system = Faulty {
        fault,
        subscribers: Arc::default(),
    };
    let part = run(system, job, &mut Alone, Arc::new(Progress::default())).await;
    Report::new("faulty", settings, part.unwrap(), None)
}

#[tokio::test]
async fn without_a_fault_a_run_is_sound() {
    let report = report(Fault::None).await;
    assert!(report.is_sound(), "{report}");
    assert_eq!((report.acknowledged, report.delivered), (1000, 2000));
    assert!(report.latency_us.max > 0);
}

#[tokio::test]
async fn a_message_that_is_lost_makes_a_run_fail() {
    let report = report(Fault::Lose).await;
    assert_eq!(report.missing, 2);
    assert!(!report.is_sound());
}

#[tokio::test]
async fn a_message_that_comes_twice_makes_a_run_fail() {
    let report = report(Fault::Double).await;
    assert_eq!((report.missing, report.duplicates), (0, 2));
    assert!(!report.is_sound());
}

#[tokio::test]
async fn a_message_out_of_order_makes_a_run_fail() {
    let report = report(Fault::Swap).await;
    assert_eq!((report.missing, report.reordered), (0, 2));
    assert!(!report.is_sound());
}

#[tokio::test]
async fn a_message_of_somebody_else_makes_a_run_fail() {
    let report = report(Fault::Foreign).await;
    assert_eq!((report.missing, report.strange), (0, 2));
    assert!(!report.is_sound());
}

#[tokio::test]
async fn a_message_that_is_refused_makes_a_run_fail() {
    let report = report(Fault::Refuse).await;
    assert_eq!((report.failed, report.missing), (1, 0));
    assert!(!report.is_sound());
}
