//! No system at all: chunks go from publisher to subscribers within the process. The cost and the
//! times of a run through it are the instrument's own.

use super::{Failure, Outcome, System};
use crate::chunk::Chunk;
use crate::run::Account;
use parking_lot::Mutex;
use std::future::{Future, Ready, ready};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Chunks that wait for a subscriber at most; a publisher waits for room.
const CHUNKS_MAX: usize = 64;

/// The way from publishers to subscribers, each of whom wants every topic, through memory.
#[derive(Clone, Debug, Default)]
pub struct Null {
    subscribers: Arc<Mutex<Vec<mpsc::Sender<Chunk>>>>,
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

    fn publisher(&self, (): &(), _topics: &[String]) -> Result<NullPublisher, Failure> {
        Ok(NullPublisher {
            subscribers: self.subscribers.lock().clone(),
        })
    }

    fn subscribe(
        &self,
        (): &(),
        _topics: &[String],
        _from_earliest: bool,
    ) -> impl Future<Output = Result<NullSubscription, Failure>> + Send {
        let (chunks, arrived) = mpsc::channel(CHUNKS_MAX);
        self.subscribers.lock().push(chunks);
        ready(Ok(NullSubscription(arrived)))
    }

    async fn close(&self, (): ()) -> Result<(), Failure> {
        Ok(())
    }
}

/// Publishes to all subscribers.
#[derive(Debug)]
pub struct NullPublisher {
    subscribers: Vec<mpsc::Sender<Chunk>>,
}

impl super::Publisher for NullPublisher {
    type Acks = Ready<Outcome>;

    async fn send(&mut self, chunk: &Chunk) -> Result<Ready<Outcome>, Failure> {
        for subscriber in &self.subscribers {
            // One that has ended wants nothing.
            let _ = subscriber.send(chunk.clone()).await;
        }
        Ok(ready(Outcome::all(chunk.count())))
    }

    async fn flush(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// Receives what is published.
#[derive(Debug)]
pub struct NullSubscription(mpsc::Receiver<Chunk>);

impl super::Subscription for NullSubscription {
    async fn next(&mut self, account: &mut Account) -> Result<bool, Failure> {
        let Some(chunk) = self.0.recv().await else {
            return Ok(false);
        };
        account.begin();
        for (topic, payload) in chunk.messages() {
            account.take_of(topic, payload);
        }
        account.end();
        Ok(true)
    }
}
