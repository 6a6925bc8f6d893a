//! The storage: one group at a time, of all that is there when it begins.
//!
//! A group gathers for a moment ([`Storing::gather_us`](super::Storing)) before it begins: from the end of the
//! one before, or from the first arrival if there was nothing to do. It is the time in which threads hand
//! over and are woken, and part of what a group costs. What clients send again within it is in one group with
//! all the rest; what takes longer is in the group after.

use super::client::Batch;
use super::noise::Speed;
use super::{NodeModel, Storing};

const NANOS_PER_US: f64 = 1_000.0;

/// The storage with the batches in it.
#[derive(Debug)]
pub(super) struct Storage {
    storing: Storing,
    speed: Speed,
    /// 1: as described; 0.5: half of it.
    capacity: f64,
    arrived: Vec<Batch>,
    group: Vec<Batch>,
    /// Whether it gathers a group or commits one.
    busy: bool,
}

impl Storage {
    pub(super) fn new(model: &NodeModel, seed: u64) -> Storage {
        Storage {
            storing: model.storage,
            speed: Speed::new(model.noise, seed),
            capacity: 1.0,
            arrived: Vec::new(),
            group: Vec::new(),
            busy: false,
        }
    }

    /// Changes the capacity; a group that has begun ends as planned.
    pub(super) fn set_capacity(&mut self, capacity: f64) {
        self.capacity = capacity;
    }

    /// Takes a batch in. Gives the time at which a group begins, if it was idle.
    pub(super) fn arrive(&mut self, now_ns: u64, batch: Batch) -> Option<u64> {
        self.arrived.push(batch);
        if self.busy {
            return None;
        }
        self.busy = true;
        Some(self.gathered(now_ns))
    }

    /// Takes batches in that the end of a group has let in.
    pub(super) fn let_in(&mut self, batches: impl Iterator<Item = Batch>) {
        self.arrived.extend(batches);
    }

    /// Begins a group with all that has arrived, and gives the time of its end; idle if nothing has.
    pub(super) fn begin(&mut self, now_ns: u64) -> Option<u64> {
        if self.arrived.is_empty() {
            self.busy = false;
            return None;
        }
        self.group = std::mem::take(&mut self.arrived);
        let messages: u64 = self.group.iter().map(|batch| batch.messages).sum();
        let storing = self.storing;
        let work_ns = (storing.group_us - storing.gather_us) * NANOS_PER_US
            + storing.batch_us * NANOS_PER_US * self.group.len() as f64
            + storing.message_ns * messages as f64;
        Some(self.speed.finish(now_ns, work_ns / self.capacity))
    }

    /// The group that is being stored.
    pub(super) fn group_mut(&mut self) -> &mut [Batch] {
        &mut self.group
    }

    /// Ends the group, and gives the time at which the next one begins.
    pub(super) fn end(&mut self, now_ns: u64) -> (Vec<Batch>, u64) {
        let group = std::mem::take(&mut self.group);
        (group, self.gathered(now_ns))
    }

    fn gathered(&self, now_ns: u64) -> u64 {
        now_ns + (self.storing.gather_us * NANOS_PER_US / self.capacity) as u64
    }
}
