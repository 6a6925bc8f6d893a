//! Settings with their defaults and bounds, among them the values that the papers leave open.

mod validate;

use std::fmt;
use std::str::FromStr;

pub use validate::SettingsError;

/// Kinds of limiter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LimiterKind {
    /// One bound for ever.
    Fixed,
    /// The Last Three Points Algorithm: RocketSpeed report, section 4.2.1.
    LastThreePoints,
    /// The Adaptive Algorithm: RocketSpeed report, section 4.2.2.
    Adaptive,
    /// Ours: climbs to the bound with the most power, and stays there.
    #[default]
    Gradient,
    /// Ours: the least bound with nearly all of the throughput, within a latency budget.
    Ladder,
    /// Ours, for publishers that share a node: keeps the latency at a target.
    LatencyTarget,
}

impl LimiterKind {
    /// All of them, in the order of the tables.
    pub const ALL: [LimiterKind; 6] = [
        LimiterKind::Fixed,
        LimiterKind::LastThreePoints,
        LimiterKind::Adaptive,
        LimiterKind::Gradient,
        LimiterKind::Ladder,
        LimiterKind::LatencyTarget,
    ];

    /// Its name in settings, metrics and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            LimiterKind::Fixed => "fixed",
            LimiterKind::LastThreePoints => "last-three-points",
            LimiterKind::Adaptive => "adaptive",
            LimiterKind::Gradient => "gradient",
            LimiterKind::Ladder => "ladder",
            LimiterKind::LatencyTarget => "latency-target",
        }
    }
}

impl fmt::Display for LimiterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// There is no limiter of this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownLimiter(pub String);

impl fmt::Display for UnknownLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = LimiterKind::ALL.map(LimiterKind::name).join(", ");
        write!(f, "`{}` is not a limiter: {names}", self.0)
    }
}

impl std::error::Error for UnknownLimiter {}

impl FromStr for LimiterKind {
    type Err = UnknownLimiter;

    fn from_str(name: &str) -> Result<LimiterKind, UnknownLimiter> {
        let mut all = LimiterKind::ALL.into_iter();
        all.find(|kind| kind.name() == name)
            .ok_or_else(|| UnknownLimiter(name.to_owned()))
    }
}

/// Settings of a limiter: how a bound is found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LimiterSettings {
    /// The kind of limiter. Default: `gradient`.
    pub kind: LimiterKind,
    /// The bound to begin with, in messages. Default: 200, the paper's.
    pub bound_initial: u64,
    /// The bound never goes below this; at least 1. `ladder` stops at two batches of the mean size that it
    /// measures, and `latency-target` at one, if that is more. Default: 1.
    pub bound_min: u64,
    /// The bound never goes above this. Default: 1,000,000.
    pub bound_max: u64,
    /// The paper's *delta*: the smallest change that its two limiters make. Default: 20, the
    /// paper's.
    pub delta: u64,
    /// Below this share of the bound L changes nothing. Default: 0.8, the paper's 80 %.
    pub busy_share: f64,
    /// Parameters of `last-three-points`.
    pub last_three_points: LastThreePointsSettings,
    /// Parameters of `adaptive`.
    pub adaptive: AdaptiveSettings,
    /// Parameters of `gradient`.
    pub gradient: GradientSettings,
    /// Parameters of `ladder`.
    pub ladder: LadderSettings,
    /// Parameters of `latency-target`.
    pub latency_target: LatencyTargetSettings,
}

impl LimiterSettings {
    /// All defaults.
    pub const DEFAULT: LimiterSettings = LimiterSettings {
        kind: LimiterKind::Gradient,
        bound_initial: 200,
        bound_min: 1,
        bound_max: 1_000_000,
        delta: 20,
        busy_share: 0.8,
        last_three_points: LastThreePointsSettings::DEFAULT,
        adaptive: AdaptiveSettings::DEFAULT,
        gradient: GradientSettings::DEFAULT,
        ladder: LadderSettings::DEFAULT,
        latency_target: LatencyTargetSettings::DEFAULT,
    };
}

impl Default for LimiterSettings {
    fn default() -> LimiterSettings {
        LimiterSettings::DEFAULT
    }
}

/// A change of the bound, in deltas; negative lowers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change(pub i8);

/// Where a slope belongs that is equal to a threshold, which the paper does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tie {
    /// Takes the calmer of the two rules.
    Calm,
    /// Takes the steeper of the two rules.
    Steep,
}

/// Parameters that section 4.2.1 leaves open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LastThreePointsSettings {
    /// a, b and c are collinear if b is no farther from the middle of a and c than this share of
    /// the mean of the three. Rules 1(b) and 1(d) can't fire without a tolerance: points on one
    /// exact line have neither peak nor valley. Default: 0.01. 0 or more.
    pub collinear_tolerance: f64,
    /// Number of measurements for which the bound is raised by delta before the rules apply; at
    /// least 2. Default: 3, the paper's "for the first three measurements".
    pub warm_up_windows: u32,
    /// Change of the bound if a = b > c and they are not collinear, for which the paper has no
    /// rule. Default: +2, like rule 2(a): a sudden decrease in latency.
    pub level_then_falling: Change,
}

impl LastThreePointsSettings {
    /// All defaults.
    pub const DEFAULT: LastThreePointsSettings = LastThreePointsSettings {
        collinear_tolerance: 0.01,
        warm_up_windows: 3,
        level_then_falling: Change(2),
    };
}

impl Default for LastThreePointsSettings {
    fn default() -> LastThreePointsSettings {
        LastThreePointsSettings::DEFAULT
    }
}

/// Parameters that section 4.2.2 leaves open. Slopes are per window and relative to the mean of the
/// five points: 0.02 is 2 % a window. The paper gives neither units nor values; relative ones mean
/// the same for any system.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaptiveSettings {
    /// `S_high`. Default: 0.04. More than `slope_medium`.
    pub slope_high: f64,
    /// `S_medium`. Default: 0.02. More than 0.
    pub slope_medium: f64,
    /// Where `S_latency` = `S_high` belongs while throughput rises: to 1(d), or to 1(e). Default:
    /// calm, because 1(d) is for an increase "not bigger than the upper threshold".
    pub latency_tie: Tie,
    /// Rule for `S_throughput` = ±`S_high`: rule 3, or rules 1 and 2. Default: calm, because 1 is
    /// for a slope above the threshold.
    pub throughput_tie: Tie,
}

impl AdaptiveSettings {
    /// All defaults.
    pub const DEFAULT: AdaptiveSettings = AdaptiveSettings {
        slope_high: 0.04,
        slope_medium: 0.02,
        latency_tie: Tie::Calm,
        throughput_tie: Tie::Calm,
    };
}

impl Default for AdaptiveSettings {
    fn default() -> AdaptiveSettings {
        AdaptiveSettings::DEFAULT
    }
}

/// Parameters of `gradient`'s climb.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GradientSettings {
    /// r in the power λ^r / W that is climbed. 1 is the knee; more gives throughput more weight:
    /// where a commit has a fixed cost, the bound found has r / (r + 1) of the largest throughput.
    /// Default: 1. More than 0.
    pub throughput_weight: f64,
    /// The smallest step, as a share of the bound; a step is at least one message. Default:
    /// 0.05. More than 0.
    pub step_min: f64,
    /// The largest step: 1 doubles and halves. Default: 1. At least `step_min`.
    pub step_max: f64,
    /// The step with which the search begins, at first and when the system has changed. Default:
    /// 0.5.
    pub step_initial: f64,
    /// Number of windows that it rests at a bound with more power than its neighbours, before it
    /// tries one of them again: this many for a try that doubles the bound, a tenth of it for one
    /// that adds a tenth. Default: 30. At least 1.
    pub rest_windows: u32,
    /// A window holds at least this many times the bound, so that it lasts several times as long as
    /// a message. Default: 4.
    pub window_round_trips: u64,
    /// Share by which the power at one bound must differ from before for the system to count as
    /// changed. Default: 0.25. More than 0.
    pub changed_share: f64,
    /// Latency below this is not worth any throughput: the bound is never below the messages in
    /// flight at this latency, λ times it. Where each commit has a fixed cost, the knee alone would
    /// give half of the throughput away. Default: 0.
    pub latency_floor_ms: u64,
}

impl GradientSettings {
    /// All defaults.
    pub const DEFAULT: GradientSettings = GradientSettings {
        throughput_weight: 1.0,
        step_min: 0.05,
        step_max: 1.0,
        step_initial: 0.5,
        rest_windows: 30,
        window_round_trips: 4,
        changed_share: 0.25,
        latency_floor_ms: 0,
    };
}

impl Default for GradientSettings {
    fn default() -> GradientSettings {
        GradientSettings::DEFAULT
    }
}

/// Parameters of `ladder`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LadderSettings {
    /// Share of the largest throughput for which it takes the least bound. Where a group costs
    /// c + m·n, a share s is reached at s/(1-s) times c/m. Default: 0.94, so that it is more than nine tenths
    /// with noise and with the looks at lower bounds. From 0.5 to below 1.
    pub throughput_share: f64,
    /// Latency W that throughput may cost; three times the latency at the lowest bound, where that is more.
    /// Default: 10.
    pub budget_ms: u64,
    /// Latency W below which none is worth any throughput: no bound is sought that is less than what is in
    /// flight at it, within the budget. Default: 1,000.
    pub floor_us: u64,
    /// Number of windows that it rests before it looks at another bound for one. Default: 8. At
    /// least 2.
    pub rest_windows: u32,
    /// Time that a window lasts at least: the longer, the less noise is in its throughput. Default: 100.
    pub window_ms: u64,
}

impl LadderSettings {
    /// All defaults.
    pub const DEFAULT: LadderSettings = LadderSettings {
        throughput_share: 0.94,
        budget_ms: 10,
        floor_us: 1_000,
        rest_windows: 8,
        window_ms: 100,
    };
}

impl Default for LadderSettings {
    fn default() -> LadderSettings {
        LadderSettings::DEFAULT
    }
}

/// Parameters of `latency-target`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyTargetSettings {
    /// Latency W that is kept, in microseconds. Default: 5,000. At least 1.
    pub target_us: u64,
    /// Strength with which those who share a node are drawn to the same bound: the aim of who has
    /// this many messages in flight is e times that of who has very many, and 1.1 times the target
    /// at most. Default: 450. 0: they are not.
    pub pull_messages: u64,
    /// Share of the difference to the aim that one window makes good. Default: 0.25. Above 0, at
    /// most 1.
    pub gain: f64,
    /// Time that a window lasts at least. Default: 30.
    pub window_ms: u64,
}

impl LatencyTargetSettings {
    /// All defaults.
    pub const DEFAULT: LatencyTargetSettings = LatencyTargetSettings {
        target_us: 5_000,
        pull_messages: 450,
        gain: 0.25,
        window_ms: 30,
    };
}

impl Default for LatencyTargetSettings {
    fn default() -> LatencyTargetSettings {
        LatencyTargetSettings::DEFAULT
    }
}

/// Settings of a gate: its measuring, its limiter and its queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GateSettings {
    /// N: a sample is made of this many acknowledged messages; at least 1. Default: 25,000, the
    /// paper's for its memory storage.
    pub window_messages: u64,
    /// Most messages that wait to be admitted; 0 refuses at once. Default: 100,000.
    pub waiting_messages_max: u64,
    /// A line that has stood for so long is overload, and no burst; the time comes back while it is
    /// empty. Default: 500.
    pub burst_ms: u64,
    /// Length of the queue in overload, as a time: no more messages may wait than may be in flight,
    /// or than are done in it, whichever is more. Default: 10.
    pub standing_ms: u64,
    /// Nobody waits longer than this. Default: 1,000.
    pub wait_ms_max: u64,
    /// The shortest delay that a refusal asks for. Default: 10.
    pub retry_ms_min: u64,
    /// The longest delay that a refusal asks for. Default: 5,000. At least `retry_ms_min`.
    pub retry_ms_max: u64,
    /// The limiter that finds the bound.
    pub limiter: LimiterSettings,
}

impl GateSettings {
    /// All defaults.
    pub const DEFAULT: GateSettings = GateSettings {
        window_messages: 25_000,
        waiting_messages_max: 100_000,
        burst_ms: 500,
        standing_ms: 10,
        wait_ms_max: 1_000,
        retry_ms_min: 10,
        retry_ms_max: 5_000,
        limiter: LimiterSettings::DEFAULT,
    };
}

impl Default for GateSettings {
    fn default() -> GateSettings {
        GateSettings::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limiter_is_known_by_its_name_and_by_no_other() {
        for kind in LimiterKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
        }
        let error = "vegas".parse::<LimiterKind>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`vegas` is not a limiter: fixed, last-three-points, adaptive, gradient, ladder, \
             latency-target"
        );
    }
}
