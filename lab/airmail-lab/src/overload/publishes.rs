//! Findings of the loads, case by case and over the rounds.

use super::case::Found;
use crate::flow_control::FlowControl;
use airmail_bench::Spread;
use std::fmt;

/// Bytes of a mebibyte.
pub(super) const MIB: f64 = 1_048_576.0;

/// One load on one node.
#[derive(Clone, Debug)]
pub(super) struct Case {
    /// Offered, as a share of the capacity.
    pub(super) ratio: f64,
    /// Flow control on, off, or as the node has it.
    pub(super) flow: FlowControl,
    /// Number of the round, from 1.
    pub(super) round: u32,
    /// Findings of the case.
    pub(super) found: Found,
}

impl Case {
    /// Half of what was admitted took at most this, in microseconds.
    pub(super) fn p50(&self) -> f64 {
        self.found.sums.admitted.percentiles().p50 as f64
    }

    /// 99 of 100.
    pub(super) fn p99(&self) -> f64 {
        self.found.sums.admitted.percentiles().p99 as f64
    }

    /// 99 of 100 refusals came within this, in microseconds.
    pub(super) fn refusal_p99(&self) -> f64 {
        self.found.sums.refused.percentiles().p99 as f64
    }

    /// Messages acknowledged a second.
    pub(super) fn goodput(&self) -> f64 {
        self.found.sums.goodput_per_s
    }

    /// Messages refused a second.
    pub(super) fn refused(&self) -> f64 {
        self.found.sums.refused_per_s
    }

    /// The node's memory.
    pub(super) fn rss_mib(&self) -> f64 {
        self.found.rss_bytes as f64 / MIB
    }

    /// Number of errors, beside messages that were lost, doubled or out of order.
    pub(super) fn errors(&self) -> u64 {
        let Found { sums, wrong, .. } = &self.found;
        wrong.strange + sums.strange.values().sum::<u64>() + sums.errors.len() as u64
    }
}

/// Shows a case to a user who waits for the end.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Found { sums, wrong, .. } = &self.found;
        let p99 = sums.admitted.percentiles().p99;
        let (ratio, flow, round) = (self.ratio, self.flow, self.round);
        let (goodput, refused) = (sums.goodput_per_s, sums.refused_per_s);
        write!(
            f,
            "round {round}, {ratio} of the capacity, flow control {flow}: {goodput:.0} messages/s, \
             refused {refused:.0}, p99 {p99} us"
        )?;
        if !self.found.is_sound() {
            write!(f, "; {wrong:?} {:?} {:?}", sums.strange, sums.errors)?;
        }
        Ok(())
    }
}

/// All cases.
#[derive(Debug, Default)]
pub(super) struct Publishes {
    /// Messages a second, in a closed loop; 0: not measured.
    pub(super) capacity_per_s: f64,
    /// Cases in order.
    pub(super) cases: Vec<Case>,
}

impl Publishes {
    pub(super) fn is_sound(&self) -> bool {
        self.cases.iter().all(|case| case.found.is_sound())
    }

    /// Offered loads, as shares of the capacity, in order.
    pub(super) fn ratios(&self) -> Vec<f64> {
        let mut ratios: Vec<f64> = self.cases.iter().map(|case| case.ratio).collect();
        ratios.sort_by(f64::total_cmp);
        ratios.dedup();
        ratios
    }

    /// All rounds of one of them.
    pub(super) fn of(&self, ratio: f64, flow: FlowControl) -> Vec<&Case> {
        let cases = self.cases.iter();
        cases
            .filter(|case| case.ratio == ratio && case.flow == flow)
            .collect()
    }

    /// A value over the rounds.
    pub(super) fn spread(
        &self,
        ratio: f64,
        flow: FlowControl,
        value: fn(&Case) -> f64,
    ) -> Option<Spread> {
        Spread::of(self.of(ratio, flow).into_iter().map(value))
    }

    /// Each load with and without flow control, or as it is, that was measured at all.
    pub(super) fn pairs(&self) -> Vec<(f64, FlowControl)> {
        let ratios = self.ratios();
        let all = FlowControl::ALL.into_iter();
        let pairs = all.flat_map(|flow| ratios.iter().map(move |ratio| (*ratio, flow)));
        pairs
            .filter(|(ratio, flow)| !self.of(*ratio, *flow).is_empty())
            .collect()
    }
}
