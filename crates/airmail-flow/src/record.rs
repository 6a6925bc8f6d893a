//! Record of decisions and refusals, for metrics and for people who watch a run.

use crate::decision::Decision;
use crate::gate::RefusalReason;
use crate::rule::Rule;
use crate::settings::LimiterKind;
use std::collections::VecDeque;

/// Decisions that are kept for people who watch.
pub const RECENT_MAX: usize = 128;

/// Counts and the last decisions of one gate.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    decisions: u64,
    by_rule: [u64; Rule::ALL.len()],
    recent: VecDeque<Decision>,
    waited: u64,
    refused: [u64; RefusalReason::ALL.len()],
}

impl Default for Record {
    fn default() -> Record {
        Record {
            decisions: 0,
            by_rule: [0; Rule::ALL.len()],
            recent: VecDeque::new(),
            waited: 0,
            refused: [0; RefusalReason::ALL.len()],
        }
    }
}

impl Record {
    pub(crate) fn decided(&mut self, decision: Decision) {
        self.decisions += 1;
        let place = Rule::ALL.iter().position(|rule| *rule == decision.rule);
        if let Some(count) = place.and_then(|place| self.by_rule.get_mut(place)) {
            *count += 1;
        }
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(decision);
    }

    pub(crate) fn waited(&mut self) {
        self.waited += 1;
    }

    pub(crate) fn refused(&mut self, reason: RefusalReason) {
        self.refused[reason as usize] += 1;
    }

    pub(crate) fn read(&self, limiter: LimiterKind) -> Reading {
        Reading {
            limiter,
            bound: 0,
            in_flight: 0,
            waiting: 0,
            waited: self.waited,
            refused: self.refused,
            decisions: self.decisions,
            by_rule: self.by_rule,
            recent: self.recent.iter().copied().collect(),
        }
    }
}

/// A gate's state, and its counters since it began. In messages, or in whatever unit the gate
/// counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The kind of limiter that decides.
    pub limiter: LimiterKind,
    /// Messages that may be in flight.
    pub bound: u64,
    /// Messages in flight.
    pub in_flight: u64,
    /// Messages that wait.
    pub waiting: u64,
    /// Number of requests that had to wait.
    pub waited: u64,
    /// Number of refusals, in the order of [`RefusalReason::ALL`].
    pub refused: [u64; RefusalReason::ALL.len()],
    /// Decisions taken.
    pub decisions: u64,
    /// Decisions by each rule, in the order of [`Rule::ALL`].
    pub by_rule: [u64; Rule::ALL.len()],
    /// The last [`RECENT_MAX`] of them, oldest first.
    pub recent: Vec<Decision>,
}

impl Reading {
    /// The last decision.
    #[must_use]
    pub fn last(&self) -> Option<&Decision> {
        self.recent.last()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_model::Mono;

    #[test]
    fn the_last_decisions_are_kept_and_all_are_counted_by_rule() {
        let mut record = Record::default();
        for bound in 0..300 {
            record.decided(Decision {
                at: Mono(bound),
                bound,
                bound_before: bound,
                in_flight: 1.0,
                latency_s: 1.0,
                rate_per_s: 1.0,
                rule: if bound < 100 {
                    Rule::UnderUsed
                } else {
                    Rule::Fixed
                },
            });
        }
        let reading = record.read(LimiterKind::Fixed);
        assert_eq!(reading.decisions, 300);
        assert_eq!(reading.by_rule[0..2], [200, 100]);
        assert_eq!(reading.recent.len(), RECENT_MAX);
        assert_eq!(reading.last().map(|last| last.bound), Some(299));
    }
}
