//! The shell on librdkafka, against real brokers: what the trait promises, claim by claim.
//!
//! A cluster takes seconds to start, so that one is used for many claims. They are tried one after the other, each with
//! topics and clients of its own, and all of them even if one fails.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test panics where something is wrong, and says which claim it tries"
)]

mod alone;
mod owner;
mod reading;
mod several;
mod starting;
mod storing;
mod suite;
mod topics;
mod unreachable;
mod watched;

use airmail_testkit::kafka::KafkaCluster;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Something that is to hold, and the function that tries it.
type Claim<T> = (&'static str, fn(&mut T));

/// Names the claims by their functions.
macro_rules! claims {
    ($($claim:path),+ $(,)?) => { [$((stringify!($claim), $claim as fn(&mut _))),+] };
}
use claims;

/// Tries all claims, and fails with the names of those that do not hold.
fn try_all(cluster: &mut KafkaCluster, claims: &[Claim<KafkaCluster>]) {
    let mut broken = Vec::new();
    for (name, claim) in claims {
        println!("{name} …");
        if catch_unwind(AssertUnwindSafe(|| claim(cluster))).is_err() {
            broken.push(*name);
        }
    }
    assert!(broken.is_empty(), "these do not hold: {broken:?}");
}
