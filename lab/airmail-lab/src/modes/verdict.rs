//! Judgement of a mode beside a single node. It is asked for a mean round that is no longer at
//! the most clients of the series *clients*, and at the most clients of the series *reach* that a single node
//! serves without time-outs; and no time-outs of its own.

use super::mode::Mode;
use super::{Case, Found, ModesArgs, Series};
use crate::narration::say;
use airmail_bench::Spread;

/// Something that is asked for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Criterion {
    /// Demand, in words.
    pub(super) asked: String,
    /// Findings, in words.
    pub(super) found: String,
    pub(super) is_met: bool,
}

/// Mean rounds of a mode as multiples of the single node's in the same repetitions.
pub(super) fn ratios(found: &Found, series: Series, mode: Mode, step: u32) -> Option<Spread> {
    let singles = found.cases(series, Mode::Single, step);
    let ratio = |case: &Case| {
        let mut singles = singles.clone();
        let beside = singles.find(|single| single.repeat == case.repeat)?;
        Some(case.outcome.all().mean_ms() / beside.outcome.all().mean_ms())
    };
    Spread::of(found.cases(series, mode, step).filter_map(ratio))
}

/// Everything that is asked of the modes that were measured.
pub(super) fn criteria(args: &ModesArgs, found: &Found) -> Vec<Criterion> {
    let others = args.mode.iter().filter(|mode| **mode != Mode::Single);
    let each = others.flat_map(|mode| {
        let asked = [
            args.series
                .contains(&Series::Clients)
                .then(|| beside(found, *mode)),
            args.series
                .contains(&Series::Reach)
                .then(|| reach(args, found, *mode)),
        ];
        asked.into_iter().flatten()
    });
    each.collect()
}

/// Rounds with as many clients as the single node has.
fn beside(found: &Found, mode: Mode) -> Criterion {
    let (name, most) = (mode.name(), mode.ratio_max());
    let step = found.steps(Series::Clients).into_iter().next_back();
    let clients = step.map_or("the most".to_owned(), |step| step.to_string());
    let asked = format!(
        "{name}: with {clients} clients a mean round at most {most} x the single node's, and no time-outs"
    );
    compared(asked, found, (Series::Clients, mode, step))
}

/// Rounds with several times as many clients as the most that the single node serves without time-outs.
fn reach(args: &ModesArgs, found: &Found, mode: Mode) -> Criterion {
    let (name, times, most) = (mode.name(), args.rounds.times, mode.ratio_max());
    let serves = |step: &u32| found.timeouts(Series::Reach, Mode::Single, *step) == Some(0);
    let step = found.steps(Series::Reach).into_iter().rfind(serves);
    let clients = step.map_or(String::new(), |step| {
        format!(", {} beside {step}", step * times)
    });
    let asked = format!(
        "{name}: {times} x the clients that a single node serves without time-outs{clients}, with a mean round \
         at most {most} x its, and no time-outs"
    );
    compared(asked, found, (Series::Reach, mode, step))
}

fn compared(
    asked: String,
    found: &Found,
    (series, mode, step): (Series, Mode, Option<u32>),
) -> Criterion {
    let ratio = step.and_then(|step| ratios(found, series, mode, step));
    let timeouts = step.and_then(|step| found.timeouts(series, mode, step));
    let (Some(ratio), Some(timeouts)) = (ratio, timeouts) else {
        // Input: cases that were not asked for, or that it was stopped before.
        return Criterion {
            asked,
            found: "not measured".to_owned(),
            is_met: false,
        };
    };
    Criterion {
        asked,
        found: format!("{ratio:.2} x, {timeouts} time-outs"),
        is_met: ratio.median <= mode.ratio_max() && timeouts == 0,
    }
}

/// Whether all that is asked for was found; says it of each.
pub(super) fn judge(args: &ModesArgs, found: &Found) -> bool {
    let criteria = criteria(args, found);
    if criteria.is_empty() {
        say("nothing was measured by which to judge");
        return false;
    }
    for criterion in &criteria {
        let is = if criterion.is_met { "met" } else { "NOT met" };
        say(&format!("{is}: {}: {}", criterion.asked, criterion.found));
    }
    criteria.iter().all(|criterion| criterion.is_met)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rounds::{Outcome, Round};
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: ModesArgs,
    }

    fn args() -> ModesArgs {
        Line::parse_from(["modes"]).args
    }

    /// A repetition of a step, whose one client had a round of so long, and so many time-outs.
    fn case(series: Series, mode: Mode, (repeat, step): (u32, u32), ms: u64, late: u64) -> Case {
        let mut round = Round {
            sum_us: ms * 1000,
            late,
            ..Round::default()
        };
        round.took.record(ms * 1000);
        let mut outcome = Outcome::default();
        outcome.got.rounds.push(round);
        Case {
            series,
            mode,
            repeat,
            step,
            outcome,
        }
    }

    /// Repetitions of a step, with the rounds of a single node and of a tree.
    fn cases(series: Series, step: u32, rounds_ms: &[[u64; 2]], late: [u64; 2]) -> Vec<Case> {
        let each = rounds_ms.iter().zip(1..).flat_map(|(ms, repeat)| {
            let case = |mode, of: usize| case(series, mode, (repeat, step), ms[of], late[of]);
            [case(Mode::Single, 0), case(Mode::Tree, 1)]
        });
        each.collect()
    }

    fn met(cases: Vec<Case>) -> Vec<bool> {
        let found = Found {
            cases,
            ..Found::default()
        };
        let criteria = criteria(&args(), &found);
        criteria.iter().map(|criterion| criterion.is_met).collect()
    }

    #[test]
    fn a_mode_is_compared_within_repetitions_at_the_most_clients() {
        // Slower in the machine's slow repetition than a single node in its fast one.
        let even = cases(
            Series::Clients,
            2000,
            &[[10, 9], [100, 90], [50, 60]],
            [0, 0],
        );
        let worse = cases(Series::Clients, 100, &[[10, 90]], [0, 7]);
        assert!(met([even, worse].concat())[0]);
        let slower = cases(
            Series::Clients,
            2000,
            &[[10, 11], [100, 110], [50, 40]],
            [0, 0],
        );
        assert!(!met(slower)[0]);
        let late = cases(Series::Clients, 2000, &[[10, 5]], [0, 1]);
        assert!(!met(late)[0]);
    }

    #[test]
    fn reach_is_judged_at_the_most_clients_that_a_single_node_serves() {
        let well = cases(Series::Reach, 2000, &[[100, 90]], [0, 0]);
        let single_late = cases(Series::Reach, 3000, &[[100, 400]], [1, 1]);
        assert!(met([well.clone(), single_late].concat())[1]);
        let tree_late = cases(Series::Reach, 3000, &[[100, 90]], [0, 1]);
        assert!(!met([well, tree_late].concat())[1]);
        let all_late = cases(Series::Reach, 2000, &[[100, 90]], [1, 0]);
        assert!(!met(all_late)[1]);
    }

    #[test]
    fn what_was_not_measured_is_not_met() {
        assert_eq!(met(Vec::new()), [false, false]);
    }
}
