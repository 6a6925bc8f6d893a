//! A reader: leases a few messages at a time and acknowledges them, mostly.

use super::Place;
use airmail_client::mailbox::{Receipt, Receive, Settle, Take};
use rand::Rng;
use std::time::Duration;
use tokio::time::Instant;

const BATCH_MAX: usize = 30;
const LEASE_MS: std::ops::Range<u64> = 500..3_000;
/// Time that a read waits: short, so that the last reader soon sees the end.
const WAIT: Duration = Duration::from_millis(300);
/// Pause between two questions of which the first was answered with an error.
const PAUSE: Duration = Duration::from_millis(10);

pub(super) async fn run(mut place: Place) {
    while place.book.is_reading() {
        let lease_ms = place.random.random_range(LEASE_MS);
        let request = Receive::new(place.queue, place.reader)
            .count(place.random.random_range(1..=BATCH_MAX))
            .take(Take::Lease { lease_ms });
        let asked = Instant::now();
        // Without an answer nothing is known: what it may have leased comes back.
        let Ok(messages) = place.mailbox.receive(request, WAIT).await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        for message in &messages {
            let lease = Duration::from_millis(lease_ms);
            place.book.handed_out(message, asked, lease);
        }
        let receipts = messages.iter().filter_map(|message| message.receipt());
        let receipts: Vec<Receipt> = receipts.collect();
        match place.random.random_range(0..20) {
            // It dies with what it has.
            0 => {}
            1 => give_back(&place, &receipts).await,
            2 => {
                extend(&place, &receipts, lease_ms).await;
                acknowledge(&place, &receipts).await;
            }
            _ => acknowledge(&place, &receipts).await,
        }
    }
}

async fn acknowledge(place: &Place, receipts: &[Receipt]) {
    let settled = place.mailbox.settle(receipts, Settle::Acknowledge).await;
    for (receipt, settled) in receipts.iter().zip(settled.unwrap_or_default()) {
        if settled.is_ok() {
            place.book.done(*receipt);
        }
    }
}

async fn extend(place: &Place, receipts: &[Receipt], lease_ms: u64) {
    let asked = Instant::now();
    let extended = place.mailbox.settle(receipts, Settle::Extend { lease_ms });
    for (receipt, extended) in receipts.iter().zip(extended.await.unwrap_or_default()) {
        if extended.is_ok() {
            let lease = Duration::from_millis(lease_ms);
            place.book.extended(*receipt, asked, lease);
        }
    }
}

async fn give_back(place: &Place, receipts: &[Receipt]) {
    for receipt in receipts {
        place.book.give_back(*receipt);
    }
    // Whether it was heard: if not, the lease ends by itself.
    let settle = Settle::Release { delay_ms: 0 };
    let _ = place.mailbox.settle(receipts, settle).await;
}
