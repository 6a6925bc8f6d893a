//! Acks, chunk by chunk in the order of sending.

use crate::clock::now_us;
use crate::latency::Latencies;
use crate::pace::Pace;
use crate::part::Published;
use crate::progress::Progress;
use crate::system::Outcome;
use parking_lot::{Mutex, MutexGuard};
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{Semaphore, mpsc};

/// A chunk that was sent.
#[derive(Debug)]
pub(super) struct Sent<A> {
    pub(super) acks: A,
    pub(super) first: u64,
    pub(super) count: u64,
    /// When it was sent; absent: each message when it was due.
    pub(super) sent_us: Option<u64>,
}

/// One publisher's sent messages, and the bound on those that wait for acks.
#[derive(Debug)]
pub(super) struct Sheet {
    sent: AtomicU64,
    room: Option<Semaphore>,
    lateness: Mutex<Latencies>,
}

impl Sheet {
    pub(super) fn new(window: Option<u32>) -> Sheet {
        Sheet {
            sent: AtomicU64::new(0),
            room: window.map(|window| Semaphore::new(window as usize)),
            lateness: Mutex::default(),
        }
    }

    /// Waits until `count` more may wait for their acks.
    pub(super) async fn room(&self, count: u64) {
        if let Some(room) = &self.room
            && let Ok(permit) = room
                .acquire_many(u32::try_from(count).unwrap_or(u32::MAX))
                .await
        {
            permit.forget();
        }
    }

    pub(super) fn enter(&self, count: u64) {
        self.sent.fetch_add(count, Ordering::Relaxed);
    }

    /// Notes the delay with which `count` messages are handed over, from when the first was due.
    pub(super) fn note_late(&self, late_us: u64, count: u64) {
        self.lateness().record_many(late_us, count);
    }

    pub(super) fn lateness(&self) -> MutexGuard<'_, Latencies> {
        self.lateness.lock()
    }

    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    fn give_back(&self, count: u64) {
        if let Some(room) = &self.room {
            room.add_permits(count as usize);
        }
    }
}

/// Awaits the acks of all that is sent.
pub(super) async fn take_acks<A: Future<Output = Outcome>>(
    progress: &Progress,
    sheet: &Sheet,
    pace: Pace,
    mut sent: mpsc::Receiver<Sent<A>>,
) -> Published {
    let mut share = Published::default();
    while let Some(chunk) = sent.recv().await {
        let outcome = chunk.acks.await;
        let now_us = now_us();
        sheet.give_back(chunk.count);
        if outcome.acknowledged > 0 {
            share.last_us = now_us;
            progress.acknowledge(outcome.acknowledged);
        }
        if let Some(sent_us) = chunk.sent_us {
            let latency_us = now_us.saturating_sub(sent_us);
            share
                .latencies
                .record_many(latency_us, outcome.acknowledged);
        } else {
            let numbers = chunk.first..chunk.first + outcome.acknowledged;
            for due_us in numbers.filter_map(|number| pace.due_us(number)) {
                share.latencies.record(now_us.saturating_sub(due_us));
            }
        }
        share.acknowledged += outcome.acknowledged;
        share.failed += outcome.failed;
        if let Some(error) = outcome.error {
            share.first_error.get_or_insert(error.to_string());
        }
    }
    share
}
