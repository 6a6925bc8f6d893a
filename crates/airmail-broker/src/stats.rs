//! Counters of a shard. Plain numbers: the node reads and exports them.

use airmail_model::frame::{Delivered, GapReason};
use airmail_model::{ErrorCode, Lane};

/// Places in [`Stats::refused`].
const CODES: usize = 64;

/// Counters since the shard began, and gauges as they stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Batches that were acknowledged, retries included.
    pub published_batches: u64,
    /// Messages in them.
    pub published_messages: u64,
    /// Bytes in them.
    pub published_bytes: u64,
    /// Acknowledged batches that had been stored before.
    pub duplicates: u64,
    /// Deliveries sent.
    pub deliveries: u64,
    /// Messages in them.
    pub delivered_messages: u64,
    /// Bytes in them.
    pub delivered_bytes: u64,
    /// Deliveries that were made for one subscriber rather than shared.
    pub slices: u64,
    /// Progress marks sent.
    pub marks: u64,
    /// Gaps told because of retention.
    pub gaps_retention: u64,
    /// Gaps told because of loss.
    pub gaps_loss: u64,
    /// Messages that a subscription was not given because they had expired, each for each subscription.
    pub expired: u64,
    /// Messages that a subscription was not given because they are for other roles, each for each subscription.
    pub forbidden: u64,
    /// Messages that a subscription was not given because its filter does not match them, each for each subscription.
    pub filtered: u64,
    /// Times that there was no room for what was to be held against the filters of a log.
    pub matching_overruns: u64,
    /// Logs that began a new life because a position lay beyond their end.
    pub renewed: u64,
    /// Times that a live subscription was detached for want of credit.
    pub detached: u64,
    /// Times that a detached subscription went live.
    pub rejoined: u64,
    /// Times that a reader for late subscribers was started.
    pub catch_up_readers_started: u64,
    /// Times that a reader began to sweep a log for many late subscribers.
    pub catch_up_sweeps: u64,
    /// Bytes read for late subscribers.
    pub catch_up_bytes: u64,
    /// Publishes that waited for admission.
    pub parked: u64,
    refused: [u64; CODES],
    /// Gauge: streams open.
    pub sessions: u64,
    /// Gauge: subscriptions at the tail.
    pub live_subscriptions: u64,
    /// Gauge: subscriptions behind.
    pub detached_subscriptions: u64,
    /// Gauge: readers for late subscribers.
    pub catch_up_readers: u64,
    /// Gauge: logs with subscribers at their tail.
    pub tails: u64,
    /// Gauge: publishes that the storage has not yet answered.
    pub appends_in_flight: u64,
    /// Gauge: bytes of them.
    pub appends_in_flight_bytes: u64,
    /// Counters of lane high alone, whose messages are among all those.
    pub high: HighLaneStats,
}

/// Counters of lane high alone, within a shard's [`Stats`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HighLaneStats {
    /// Messages in batches that were acknowledged, retries included.
    pub published_messages: u64,
    /// Bytes of those batches.
    pub published_bytes: u64,
    /// Messages in deliveries.
    pub delivered_messages: u64,
    /// Bytes of deliveries.
    pub delivered_bytes: u64,
    /// Gauge: bytes of publishes that the storage has not yet answered.
    pub appends_in_flight_bytes: u64,
}

impl HighLaneStats {
    fn add(&mut self, other: &HighLaneStats) {
        // Every field, so that a new one is not forgotten.
        let HighLaneStats {
            published_messages,
            published_bytes,
            delivered_messages,
            delivered_bytes,
            appends_in_flight_bytes,
        } = other;
        self.published_messages += published_messages;
        self.published_bytes += published_bytes;
        self.delivered_messages += delivered_messages;
        self.delivered_bytes += delivered_bytes;
        self.appends_in_flight_bytes += appends_in_flight_bytes;
    }
}

impl Default for Stats {
    fn default() -> Stats {
        Stats {
            published_batches: 0,
            published_messages: 0,
            published_bytes: 0,
            duplicates: 0,
            deliveries: 0,
            delivered_messages: 0,
            delivered_bytes: 0,
            slices: 0,
            marks: 0,
            gaps_retention: 0,
            gaps_loss: 0,
            expired: 0,
            forbidden: 0,
            filtered: 0,
            matching_overruns: 0,
            renewed: 0,
            detached: 0,
            rejoined: 0,
            catch_up_readers_started: 0,
            catch_up_sweeps: 0,
            catch_up_bytes: 0,
            parked: 0,
            refused: [0; CODES],
            sessions: 0,
            live_subscriptions: 0,
            detached_subscriptions: 0,
            catch_up_readers: 0,
            tails: 0,
            appends_in_flight: 0,
            appends_in_flight_bytes: 0,
            high: HighLaneStats::default(),
        }
    }
}

impl Stats {
    /// Number of refusals with `code`.
    #[must_use]
    pub fn refused(&self, code: ErrorCode) -> u64 {
        self.refused.get(code as usize).copied().unwrap_or(0)
    }

    /// Adds those of another shard.
    pub fn add(&mut self, other: &Stats) {
        // Every field, so that a new one is not forgotten.
        let Stats {
            published_batches,
            published_messages,
            published_bytes,
            duplicates,
            deliveries,
            delivered_messages,
            delivered_bytes,
            slices,
            marks,
            gaps_retention,
            gaps_loss,
            expired,
            forbidden,
            filtered,
            matching_overruns,
            renewed,
            detached,
            rejoined,
            catch_up_readers_started,
            catch_up_sweeps,
            catch_up_bytes,
            parked,
            sessions,
            live_subscriptions,
            detached_subscriptions,
            catch_up_readers,
            tails,
            appends_in_flight,
            appends_in_flight_bytes,
            high,
            refused,
        } = other;
        self.high.add(high);
        let pairs = [
            (&mut self.published_batches, published_batches),
            (&mut self.published_messages, published_messages),
            (&mut self.published_bytes, published_bytes),
            (&mut self.duplicates, duplicates),
            (&mut self.deliveries, deliveries),
            (&mut self.delivered_messages, delivered_messages),
            (&mut self.delivered_bytes, delivered_bytes),
            (&mut self.slices, slices),
            (&mut self.marks, marks),
            (&mut self.gaps_retention, gaps_retention),
            (&mut self.gaps_loss, gaps_loss),
            (&mut self.expired, expired),
            (&mut self.forbidden, forbidden),
            (&mut self.filtered, filtered),
            (&mut self.matching_overruns, matching_overruns),
            (&mut self.renewed, renewed),
            (&mut self.detached, detached),
            (&mut self.rejoined, rejoined),
            (&mut self.catch_up_readers_started, catch_up_readers_started),
            (&mut self.catch_up_sweeps, catch_up_sweeps),
            (&mut self.catch_up_bytes, catch_up_bytes),
            (&mut self.parked, parked),
            (&mut self.sessions, sessions),
            (&mut self.live_subscriptions, live_subscriptions),
            (&mut self.detached_subscriptions, detached_subscriptions),
            (&mut self.catch_up_readers, catch_up_readers),
            (&mut self.tails, tails),
            (&mut self.appends_in_flight, appends_in_flight),
            (&mut self.appends_in_flight_bytes, appends_in_flight_bytes),
        ];
        let refused = self.refused.iter_mut().zip(refused);
        for (sum, other) in pairs.into_iter().chain(refused) {
            *sum += other;
        }
    }

    /// Counts a refusal.
    pub(crate) fn refuse(&mut self, code: ErrorCode) {
        if let Some(count) = self.refused.get_mut(code as usize) {
            *count += 1;
        }
    }

    /// Counts a delivery.
    pub(crate) fn delivered(&mut self, lane: Lane, body: &Delivered) {
        let messages = match body {
            Delivered::Whole(batch) => batch.records(),
            Delivered::Slice(slice) => {
                self.slices += 1;
                slice.records()
            }
        };
        self.deliveries += 1;
        self.delivered_messages += u64::from(messages);
        self.delivered_bytes += body.len() as u64;
        if lane == Lane::High {
            self.high.delivered_messages += u64::from(messages);
            self.high.delivered_bytes += body.len() as u64;
        }
    }

    /// Counts a batch that has been acknowledged.
    pub(crate) fn published(&mut self, lane: Lane, messages: u16, bytes: usize) {
        let (messages, bytes) = (u64::from(messages), bytes as u64);
        self.published_batches += 1;
        self.published_messages += messages;
        self.published_bytes += bytes;
        if lane == Lane::High {
            self.high.published_messages += messages;
            self.high.published_bytes += bytes;
        }
    }

    /// Counts a batch that the storage is to answer.
    pub(crate) fn begin_append(&mut self, lane: Lane, bytes: usize) {
        self.appends_in_flight += 1;
        self.appends_in_flight_bytes += bytes as u64;
        if lane == Lane::High {
            self.high.appends_in_flight_bytes += bytes as u64;
        }
    }

    /// Counts a batch that the storage has answered.
    pub(crate) fn end_append(&mut self, lane: Lane, bytes: usize) {
        self.appends_in_flight -= 1;
        self.appends_in_flight_bytes -= bytes as u64;
        if lane == Lane::High {
            self.high.appends_in_flight_bytes -= bytes as u64;
        }
    }

    /// Counts a gap that was told.
    pub(crate) fn gap(&mut self, why: GapReason) {
        match why {
            GapReason::Retention => self.gaps_retention += 1,
            GapReason::Loss => self.gaps_loss += 1,
            GapReason::Unused => {}
        }
    }
}
