//! Findings of one process of a run. Parts of several processes add up; one passes them to the
//! other as JSON.

use crate::latency::Latencies;
use crate::ledger::Tally;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Findings of one process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Part {
    /// When publishing began.
    pub start_us: u64,
    /// Findings of its publishers.
    pub published: Published,
    /// Findings of its subscribers.
    pub received: Received,
    /// Its course over time.
    pub course: Course,
    /// Processor time of the process, user and system, from the first message to the last.
    pub cpu_us: u64,
    /// Memory of the process at the end.
    pub rss_bytes: u64,
}

/// Findings of publishers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Published {
    /// Messages handed over, or that should have been.
    pub sent: u64,
    /// Messages acknowledged.
    pub acknowledged: u64,
    /// Messages refused, or whose outcome is not known.
    pub failed: u64,
    /// Times from when a message was sent, or due, to its ack.
    pub latencies: Latencies,
    /// Delays between the times at which messages were due and were handed over.
    pub lateness: Latencies,
    /// When the last ack came.
    pub last_us: u64,
    /// The first error.
    pub first_error: Option<String>,
}

/// Findings of subscribers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Received {
    /// Tally of all accounts.
    pub tally: Tally,
    /// Messages that did not come though a later one of their publisher did.
    pub holes: u64,
    /// The order of each topic, as the first account had it.
    pub orders: BTreeMap<u32, u64>,
    /// Accounts that had another one.
    pub disagreements: u64,
    /// Gaps that were told.
    pub gaps: u64,
    /// When the last message came.
    pub last_us: u64,
    /// The first error.
    pub first_error: Option<String>,
}

/// Course of a run over time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Course {
    /// Counters at the end of the warm-up.
    pub warm: Counts,
    /// Times from publish to delivery, without the warm-up.
    pub latencies: Latencies,
    /// One for each interval, in order.
    pub samples: Vec<Sample>,
}

/// Counts at a moment.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Counts {
    /// The moment.
    pub at_us: u64,
    /// Messages acknowledged until then.
    pub acknowledged: u64,
    /// Messages delivered until then.
    pub delivered: u64,
}

/// One interval.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Sample {
    /// When it ended, in seconds since the start.
    pub seconds: f64,
    /// Acknowledged messages a second.
    pub acknowledged_per_s: f64,
    /// Delivered messages a second.
    pub delivered_per_s: f64,
    /// Half of the messages delivered in it took at most this, in microseconds.
    pub p50_us: u64,
    /// 99 of 100.
    pub p99_us: u64,
    /// All of them.
    pub max_us: u64,
}

impl Part {
    /// Adds another process's.
    pub fn add(&mut self, other: &Part) {
        self.published.add(&other.published);
        self.received.add(&other.received);
        self.course.add(&other.course);
        self.cpu_us += other.cpu_us;
        self.rss_bytes += other.rss_bytes;
    }
}

impl Published {
    /// Adds another publisher's.
    pub fn add(&mut self, other: &Published) {
        self.sent += other.sent;
        self.acknowledged += other.acknowledged;
        self.failed += other.failed;
        self.latencies.add(&other.latencies);
        self.lateness.add(&other.lateness);
        self.last_us = self.last_us.max(other.last_us);
        self.first_error = self
            .first_error
            .take()
            .or_else(|| other.first_error.clone());
    }
}

impl Received {
    /// Adds other subscribers'.
    pub fn add(&mut self, other: &Received) {
        self.tally.add(&other.tally);
        self.holes += other.holes;
        self.disagreements += other.disagreements;
        for (topic, order) in &other.orders {
            self.enter_order(*topic, *order);
        }
        self.gaps += other.gaps;
        self.last_us = self.last_us.max(other.last_us);
        self.first_error = self
            .first_error
            .take()
            .or_else(|| other.first_error.clone());
    }

    /// Enters the order in which an account had a topic.
    pub fn enter_order(&mut self, topic: u32, order: u64) {
        let first = *self.orders.entry(topic).or_insert(order);
        self.disagreements += u64::from(first != order);
    }
}

impl Course {
    /// Adds another process's, interval by interval: rates add up, of times the worse one counts.
    pub fn add(&mut self, other: &Course) {
        self.warm.at_us = self.warm.at_us.max(other.warm.at_us);
        self.warm.acknowledged += other.warm.acknowledged;
        self.warm.delivered += other.warm.delivered;
        self.latencies.add(&other.latencies);
        let common = self.samples.len().min(other.samples.len());
        for (sample, other) in self.samples.iter_mut().zip(&other.samples) {
            sample.acknowledged_per_s += other.acknowledged_per_s;
            sample.delivered_per_s += other.delivered_per_s;
            sample.p50_us = sample.p50_us.max(other.p50_us);
            sample.p99_us = sample.p99_us.max(other.p99_us);
            sample.max_us = sample.max_us.max(other.max_us);
        }
        self.samples.extend_from_slice(&other.samples[common..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subscribers_of_two_processes_that_saw_two_orders_disagree() {
        let part = |order| {
            let mut part = Part::default();
            part.received.enter_order(3, order);
            part
        };
        let mut sum = part(7);
        sum.add(&part(7));
        assert_eq!(sum.received.disagreements, 0);
        sum.add(&part(8));
        assert_eq!(sum.received.disagreements, 1);
    }

    #[test]
    fn a_part_comes_back_from_its_json() {
        let mut part = Part::default();
        part.published.acknowledged = 5;
        part.course.latencies.record(77);
        let text = serde_json::to_string(&part).unwrap();
        let read: Part = serde_json::from_str(&text).unwrap();
        assert_eq!(read.published.acknowledged, 5);
        assert_eq!(
            read.course.latencies.percentiles(),
            part.course.latencies.percentiles()
        );
    }
}
