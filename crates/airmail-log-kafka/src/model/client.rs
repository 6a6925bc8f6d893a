//! A client of the model: its side of the trait.

use super::cluster::{ClientId, Cluster};
use crate::brokers::{
    Brokers, ConsumerId, NewRecord, NotTaken, Order, Partition, Question, Slot, Taken, Token, Told,
};
use crate::place::Offset;
use airmail_model::{Mono, Now};
use parking_lot::Mutex;
use std::sync::Arc;

/// A client of a [`ModelCluster`](super::ModelCluster). What it has handed over is under way after it is dropped, too.
#[derive(Debug)]
pub struct ModelBrokers {
    cluster: Arc<Mutex<Cluster>>,
    id: ClientId,
    is_closing: bool,
}

impl ModelBrokers {
    pub(super) fn new(cluster: Arc<Mutex<Cluster>>, id: ClientId) -> ModelBrokers {
        ModelBrokers {
            cluster,
            id,
            is_closing: false,
        }
    }

    /// Whether nothing is under way, for any client.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.cluster.lock().is_idle()
    }

    /// When something happens next, for any client; a time that is over if something is to be told already. There is no
    /// [`Waker`](airmail_log::Waker): whoever shares the cluster asks again after whatever the others have done.
    #[must_use]
    pub fn next(&self) -> Option<Mono> {
        self.cluster.lock().next(self.id)
    }
}

impl Drop for ModelBrokers {
    fn drop(&mut self) {
        self.cluster.lock().remove_client(self.id);
    }
}

impl Brokers for ModelBrokers {
    fn produce(
        &mut self,
        token: Token,
        partition: &Partition,
        record: NewRecord,
    ) -> Result<(), NotTaken> {
        let mut cluster = self.cluster.lock();
        if self.is_closing {
            return Err(NotTaken::Failed("it is closing".into()));
        }
        if cluster.failing.contains_key(&self.id) {
            return Err(NotTaken::Failed("a record was lost".into()));
        }
        let share = cluster.faults.full;
        if cluster.happens(share) {
            return Err(NotTaken::Full);
        }
        cluster.produce(self.id, token, partition.clone(), record);
        Ok(())
    }

    fn consume(&mut self, consumer: ConsumerId, _: Slot, partition: &Partition, from: Offset) {
        let mut cluster = self.cluster.lock();
        cluster.consume(self.id, consumer, partition.clone(), from);
    }

    fn stop(&mut self, consumer: ConsumerId) {
        let mut cluster = self.cluster.lock();
        let client = cluster.client(self.id);
        client.consumers.remove(&consumer);
        client.told.retain(|told| match told {
            Told::Readable { consumer: of }
            | Told::OutOfRange { consumer: of }
            | Told::Truncated { consumer: of, .. }
            | Told::Ended { consumer: of, .. } => *of != consumer,
            Told::Produced { .. } | Told::Answered { .. } => true,
        });
    }

    fn take(&mut self, consumer: ConsumerId, bytes_max: u64, taken: &mut Vec<Taken>) -> bool {
        let mut cluster = self.cluster.lock();
        cluster.take(self.id, consumer, bytes_max, taken)
    }

    fn ask(&mut self, token: Token, partition: &Partition, question: Question) {
        let mut cluster = self.cluster.lock();
        cluster.ask(self.id, token, partition.clone(), question);
    }

    fn order(&mut self, token: Token, order: Order) {
        self.cluster.lock().order(self.id, token, order);
    }

    fn poll(&mut self, now: Now, told: &mut Vec<Told>) -> Option<Mono> {
        let mut cluster = self.cluster.lock();
        let next = cluster.advance(now);
        told.append(&mut cluster.client(self.id).told);
        next
    }

    fn close(&mut self, _: Now) {
        self.is_closing = true;
        self.cluster.lock().client(self.id).consumers.clear();
    }

    fn is_closed(&self) -> bool {
        self.is_closing && self.cluster.lock().client(self.id).produced == 0
    }

    fn trouble(&self) -> Option<String> {
        None
    }
}
