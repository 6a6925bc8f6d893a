//! One admission for several shards: what it counts, it counts for the node.

use airmail_broker::{Admission, Admit, Cost, Principal};
use airmail_model::Now;
use parking_lot::Mutex;
use std::sync::Arc;

/// A shard's way to the node's admission.
struct Shared(Arc<Mutex<Box<dyn Admission>>>);

impl Admission for Shared {
    fn admit(&mut self, now: Now, principal: &Principal, cost: Cost) -> Admit {
        self.0.lock().admit(now, principal, cost)
    }
}

/// An admission for each of so many shards. A single one has it to itself.
pub(crate) fn share(admission: Box<dyn Admission>, shards: usize) -> Vec<Box<dyn Admission>> {
    if shards == 1 {
        return vec![admission];
    }
    let one = Arc::new(Mutex::new(admission));
    let shared = (0..shards).map(|_| -> Box<dyn Admission> { Box::new(Shared(Arc::clone(&one))) });
    shared.collect()
}
