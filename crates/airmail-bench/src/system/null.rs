//! No system at all: chunks go from publisher to subscribers within the process. What a run through
//! it costs and shows, its rates and times, is the instrument's own.

use std::collections::BTreeMap;
use std::future::{Future, Ready, ready};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::mpsc;

use super::{Failure, Outcome, System};
use crate::chunk::Chunk;
use crate::run::Account;

/// Chunks' worth of messages that wait for a subscriber at most; a publisher waits for room.
const PARCELS_MAX: usize = 64;

/// What one chunk has for one topic.
type Parcel = Vec<Bytes>;

/// The way from publishers to subscribers, through memory.
#[derive(Clone, Debug, Default)]
pub struct Null {
    topics: Arc<Mutex<BTreeMap<String, Vec<mpsc::Sender<Parcel>>>>>,
}

impl System for Null {
    type Client = ();
    type Publisher = NullPublisher;
    type Subscription = NullSubscription;

    async fn prepare(&self, _prefix: &str) -> Result<(), Failure> {
        Ok(())
    }

    async fn clear(&self, _prefix: &str) -> Result<(), Failure> {
        Ok(())
    }

    async fn connect(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn publisher(&self, (): &(), topics: &[String]) -> Result<NullPublisher, Failure> {
        let known = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |topic: &String| known.get(topic).cloned().unwrap_or_default();
        Ok(NullPublisher {
            topics: topics.iter().map(of).collect(),
        })
    }

    fn subscribe(
        &self,
        (): &(),
        topic: &str,
        _from_earliest: bool,
    ) -> impl Future<Output = Result<NullSubscription, Failure>> + Send {
        let (parcels, arrived) = mpsc::channel(PARCELS_MAX);
        let mut known = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(topic.to_owned()).or_default().push(parcels);
        ready(Ok(NullSubscription(arrived)))
    }

    async fn close(&self, (): ()) -> Result<(), Failure> {
        Ok(())
    }
}

/// Publishes to some topics.
#[derive(Debug)]
pub struct NullPublisher {
    topics: Vec<Vec<mpsc::Sender<Parcel>>>,
}

impl super::Publisher for NullPublisher {
    type Acks = Ready<Outcome>;

    async fn send(&mut self, chunk: &Chunk) -> Result<Ready<Outcome>, Failure> {
        let mut parcels: BTreeMap<usize, Parcel> = BTreeMap::new();
        for (topic, payload) in chunk.shared() {
            parcels.entry(topic).or_default().push(payload);
        }
        for (topic, parcel) in parcels {
            for subscriber in &self.topics[topic] {
                // One that has ended wants nothing.
                let _ = subscriber.send(parcel.clone()).await;
            }
        }
        Ok(ready(Outcome::all(chunk.count())))
    }

    async fn flush(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// Receives one topic.
#[derive(Debug)]
pub struct NullSubscription(mpsc::Receiver<Parcel>);

impl super::Subscription for NullSubscription {
    async fn next(&mut self, account: &mut Account) -> Result<bool, Failure> {
        let Some(parcel) = self.0.recv().await else {
            return Ok(false);
        };
        account.begin();
        parcel.iter().for_each(|payload| account.take(payload));
        account.end();
        Ok(true)
    }
}
