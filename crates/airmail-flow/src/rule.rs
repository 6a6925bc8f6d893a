//! Rules of the limiters: the reasons of their decisions, each with a name that stays.
//!
//! The names are those of metrics, of `airmail flow` and of the API; the papers' rules have the papers'
//! numbers.

/// The rule behind a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// `fixed` never changes its bound.
    Fixed,
    /// L was below 80 % of the bound: the system is not held back by it, so it says nothing about
    /// it.
    UnderUsed,
    /// A published limiter has not measured enough points yet, and raises its bound meanwhile.
    WarmingUp,
    /// A rule of `last-three-points`.
    LastThreePoints(LastThreePointsRule),
    /// A rule of `adaptive`.
    Adaptive(AdaptiveRule),
    /// A rule of `gradient`.
    Gradient(GradientRule),
    /// A rule of `ladder`.
    Ladder(LadderRule),
    /// A rule of `latency-target`.
    LatencyTarget(LatencyTargetRule),
}

/// The rules of section 4.2.1, by their number there; a, b, c are the last three latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LastThreePointsRule {
    /// 1(a): collinear, a < b < c.
    CollinearRising,
    /// 1(b): collinear, a < b ≥ c.
    CollinearPeak,
    /// 1(c): collinear, a ≥ b ≥ c.
    CollinearFalling,
    /// 1(d): collinear, a ≥ b < c.
    CollinearValley,
    /// 2(a): not collinear, a > b ≥ c.
    Falling,
    /// 2(b): not collinear, a > b < c.
    Valley,
    /// 2(c): not collinear, a ≤ b < c.
    Rising,
    /// 2(d): not collinear, a < b ≥ c.
    Peak,
    /// A case that is not in the paper: not collinear, a = b > c.
    LevelThenFalling,
}

/// The rules of section 4.2.2, by their number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AdaptiveRule {
    /// 1(a): throughput rises steeply, latency falls steeply.
    RisingLatencyPlunges,
    /// 1(b): throughput rises steeply, latency falls.
    RisingLatencyFalls,
    /// 1(c): throughput rises steeply, latency rises a little.
    RisingLatencyCreeps,
    /// 1(d): throughput rises steeply, latency rises.
    RisingLatencyRises,
    /// 1(e): throughput rises steeply, latency does too.
    RisingLatencySoars,
    /// 2: throughput falls steeply.
    Falling,
    /// 3(a): throughput is level, latency falls steeply.
    LevelLatencyPlunges,
    /// 3(b): throughput is level, latency rises steeply.
    LevelLatencySoars,
    /// 3(c): throughput is level, latency nearly so.
    Level,
}

/// Actions of the limiter `gradient`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GradientRule {
    /// Stays at the best bound known.
    Rest,
    /// Tries a higher bound for a window.
    TryUp,
    /// Tries a lower bound for a window.
    TryDown,
    /// The higher bound had more power: stays, and tries one higher still.
    KeepUp,
    /// The lower bound had more power: stays, and tries one lower still.
    KeepDown,
    /// The bound tried had no more power: back.
    TurnBack,
    /// The same bound has another power than before: the system has changed; tries at once.
    Changed,
}

/// Actions of the limiter `ladder`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LadderRule {
    /// Goes up by two rungs: no more is known to be gained by less.
    ScanUp,
    /// Looks at the rungs that the way up has left out, from the highest down.
    ScanBetween,
    /// Goes down by two rungs: the lowest rung known still has enough throughput.
    ScanDown,
    /// The scan has ended: goes to the least rung with enough throughput.
    Settle,
    /// Stays at the best rung known.
    Rest,
    /// Looks at a higher rung for a window.
    ProbeUp,
    /// Looks at a lower rung for a window.
    ProbeDown,
    /// Looks once more: the look was unlike what was known, or the scan's end depends on it.
    LookAgain,
    /// A look has ended, and changes nothing: back.
    TurnBack,
    /// The rung has less throughput than it should: goes to a higher one.
    MoveUp,
    /// A lower rung has enough throughput: goes there.
    MoveDown,
    /// Messages take longer than the budget allows: goes to a lower rung.
    OverBudget,
    /// The same rung has another throughput than before: the system has changed; scans at once.
    Changed,
    /// The bound that was tried was not used up: back to the best rung known.
    BreakOff,
}

/// Actions of the limiter `latency-target`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LatencyTargetRule {
    /// Messages take less time than they may: a higher bound.
    Up,
    /// Messages take more time than they may: a lower bound.
    Down,
    /// The difference is too small to be worth a message.
    Rest,
    /// The last two windows contradict each other: waits.
    Doubt,
    /// One batch alone takes more time than it may: the least bound.
    Least,
}

impl Rule {
    /// Every rule, for a metric with one series each.
    pub const ALL: [Rule; 47] = {
        use AdaptiveRule as A;
        use GradientRule as G;
        use LadderRule as R;
        use LastThreePointsRule as L;
        use LatencyTargetRule as T;
        [
            Rule::Fixed,
            Rule::UnderUsed,
            Rule::WarmingUp,
            Rule::LastThreePoints(L::CollinearRising),
            Rule::LastThreePoints(L::CollinearPeak),
            Rule::LastThreePoints(L::CollinearFalling),
            Rule::LastThreePoints(L::CollinearValley),
            Rule::LastThreePoints(L::Falling),
            Rule::LastThreePoints(L::Valley),
            Rule::LastThreePoints(L::Rising),
            Rule::LastThreePoints(L::Peak),
            Rule::LastThreePoints(L::LevelThenFalling),
            Rule::Adaptive(A::RisingLatencyPlunges),
            Rule::Adaptive(A::RisingLatencyFalls),
            Rule::Adaptive(A::RisingLatencyCreeps),
            Rule::Adaptive(A::RisingLatencyRises),
            Rule::Adaptive(A::RisingLatencySoars),
            Rule::Adaptive(A::Falling),
            Rule::Adaptive(A::LevelLatencyPlunges),
            Rule::Adaptive(A::LevelLatencySoars),
            Rule::Adaptive(A::Level),
            Rule::Gradient(G::Rest),
            Rule::Gradient(G::TryUp),
            Rule::Gradient(G::TryDown),
            Rule::Gradient(G::KeepUp),
            Rule::Gradient(G::KeepDown),
            Rule::Gradient(G::TurnBack),
            Rule::Gradient(G::Changed),
            Rule::Ladder(R::ScanUp),
            Rule::Ladder(R::ScanBetween),
            Rule::Ladder(R::ScanDown),
            Rule::Ladder(R::Settle),
            Rule::Ladder(R::Rest),
            Rule::Ladder(R::ProbeUp),
            Rule::Ladder(R::ProbeDown),
            Rule::Ladder(R::LookAgain),
            Rule::Ladder(R::TurnBack),
            Rule::Ladder(R::MoveUp),
            Rule::Ladder(R::MoveDown),
            Rule::Ladder(R::OverBudget),
            Rule::Ladder(R::Changed),
            Rule::Ladder(R::BreakOff),
            Rule::LatencyTarget(T::Up),
            Rule::LatencyTarget(T::Down),
            Rule::LatencyTarget(T::Rest),
            Rule::LatencyTarget(T::Doubt),
            Rule::LatencyTarget(T::Least),
        ]
    };

    /// A short name that stays: the paper's number where it has one.
    #[must_use]
    pub fn name(self) -> &'static str {
        use AdaptiveRule as A;
        use GradientRule as G;
        use LastThreePointsRule as L;
        match self {
            Rule::Fixed => "fixed",
            Rule::UnderUsed => "under-used",
            Rule::WarmingUp => "warming-up",
            Rule::LastThreePoints(L::CollinearRising) => "last-three-points-1a",
            Rule::LastThreePoints(L::CollinearPeak) => "last-three-points-1b",
            Rule::LastThreePoints(L::CollinearFalling) => "last-three-points-1c",
            Rule::LastThreePoints(L::CollinearValley) => "last-three-points-1d",
            Rule::LastThreePoints(L::Falling) => "last-three-points-2a",
            Rule::LastThreePoints(L::Valley) => "last-three-points-2b",
            Rule::LastThreePoints(L::Rising) => "last-three-points-2c",
            Rule::LastThreePoints(L::Peak) => "last-three-points-2d",
            Rule::LastThreePoints(L::LevelThenFalling) => "last-three-points-level-then-falling",
            Rule::Adaptive(A::RisingLatencyPlunges) => "adaptive-1a",
            Rule::Adaptive(A::RisingLatencyFalls) => "adaptive-1b",
            Rule::Adaptive(A::RisingLatencyCreeps) => "adaptive-1c",
            Rule::Adaptive(A::RisingLatencyRises) => "adaptive-1d",
            Rule::Adaptive(A::RisingLatencySoars) => "adaptive-1e",
            Rule::Adaptive(A::Falling) => "adaptive-2",
            Rule::Adaptive(A::LevelLatencyPlunges) => "adaptive-3a",
            Rule::Adaptive(A::LevelLatencySoars) => "adaptive-3b",
            Rule::Adaptive(A::Level) => "adaptive-3c",
            Rule::Gradient(G::Rest) => "gradient-rest",
            Rule::Gradient(G::TryUp) => "gradient-try-up",
            Rule::Gradient(G::TryDown) => "gradient-try-down",
            Rule::Gradient(G::KeepUp) => "gradient-keep-up",
            Rule::Gradient(G::KeepDown) => "gradient-keep-down",
            Rule::Gradient(G::TurnBack) => "gradient-turn-back",
            Rule::Gradient(G::Changed) => "gradient-changed",
            Rule::Ladder(rule) => rule.name(),
            Rule::LatencyTarget(rule) => rule.name(),
        }
    }
}

impl LadderRule {
    fn name(self) -> &'static str {
        match self {
            LadderRule::ScanUp => "ladder-scan-up",
            LadderRule::ScanBetween => "ladder-scan-between",
            LadderRule::ScanDown => "ladder-scan-down",
            LadderRule::Settle => "ladder-settle",
            LadderRule::Rest => "ladder-rest",
            LadderRule::ProbeUp => "ladder-probe-up",
            LadderRule::ProbeDown => "ladder-probe-down",
            LadderRule::LookAgain => "ladder-look-again",
            LadderRule::TurnBack => "ladder-turn-back",
            LadderRule::MoveUp => "ladder-move-up",
            LadderRule::MoveDown => "ladder-move-down",
            LadderRule::OverBudget => "ladder-over-budget",
            LadderRule::Changed => "ladder-changed",
            LadderRule::BreakOff => "ladder-break-off",
        }
    }
}

impl LatencyTargetRule {
    fn name(self) -> &'static str {
        match self {
            LatencyTargetRule::Up => "latency-target-up",
            LatencyTargetRule::Down => "latency-target-down",
            LatencyTargetRule::Rest => "latency-target-rest",
            LatencyTargetRule::Doubt => "latency-target-doubt",
            LatencyTargetRule::Least => "latency-target-least",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_rules_have_one_name() {
        let names: BTreeSet<&str> = Rule::ALL.iter().map(|rule| rule.name()).collect();
        assert_eq!(names.len(), Rule::ALL.len());
    }
}
