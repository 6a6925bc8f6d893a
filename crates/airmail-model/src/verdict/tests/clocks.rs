//! Bounds of clocks, in a world whose time is known: machines that count it a little fast or slow, and questions
//! that take their time.

use super::*;
use crate::Mono;

/// A machine in a world whose time is in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Machine {
    /// Its time is fast by so many parts in a million.
    fast_ppm: i128,
    /// The time on its wall clock when the world begins, in nanoseconds.
    wall_ns: i128,
}

impl Machine {
    fn passed_ns(self, world_ns: i128) -> i128 {
        world_ns + (world_ns * self.fast_ppm).div_euclid(1_000_000)
    }

    fn mono(self, world_ns: i128) -> Mono {
        Mono(u64::try_from(self.passed_ns(world_ns)).unwrap())
    }

    fn clock(self, world_ns: i128) -> AppendTime {
        let wall_us = (self.wall_ns + self.passed_ns(world_ns)).div_euclid(1000);
        AppendTime(i64::try_from(wall_us).unwrap())
    }
}

fn machine() -> impl Strategy<Value = Machine> {
    // Any two are within 100 ppm of each other.
    (-49_i128..=49, 0_i128..1 << 60).prop_map(|(fast_ppm, wall_ns)| Machine { fast_ppm, wall_ns })
}

/// A question: how long after the one before it is sent, its way, and the way of its answer, in nanoseconds.
type Question = (i128, i128, i128);

fn questions() -> impl Strategy<Value = Vec<Question>> {
    let way = || prop_oneof![0_i128..3_000_000, 0_i128..4_000_000_000];
    vec((0_i128..60_000_000_000, way(), way()), 1..12)
}

/// One hop: asks the questions one after the other, and gives when each answer came, in the world's time.
fn ask(
    questions: &[Question],
    own: Machine,
    mut told_at: impl FnMut(i128) -> Option<AppendTime>,
    mut seen: impl FnMut(&ClockBound, i128),
) {
    let mut bound = ClockBound::default();
    let mut world_ns = 0;
    for (pause, there, back) in questions {
        let asked = world_ns + pause;
        seen(&bound, asked);
        let read = asked + there;
        world_ns = read + back;
        if let Some(clock) = told_at(read) {
            bound.heard(own.mono(asked), own.mono(world_ns), clock);
        }
        seen(&bound, world_ns);
    }
    seen(&bound, world_ns + 600_000_000_000);
}

proptest! {
    #[test]
    fn a_bound_is_never_below_the_clock_and_above_it_by_a_question_s_way_at_most(
        tower in machine(),
        own in machine(),
        questions in questions(),
    ) {
        let mut ways: Vec<i128> = Vec::new();
        let (_, there, back) = questions[questions.len() - 1];
        let last = there + back;
        ask(&questions, own, |at| Some(tower.clock(at)), |bound, now| {
            let Some(highest) = bound.at(own.mono(now)) else { return };
            let clock = tower.clock(now);
            assert!(highest >= clock, "{highest} of {clock}");
            ways.push(i128::from(highest.0 - clock.0) * 1000);
        });
        // The last look is ten minutes after the last answer, which drifts by 120 ms at most; the one before
        // it right behind the answer.
        let drift = (last + 2_000) / 5_000 + 5_000;
        prop_assert!(ways[ways.len() - 2] <= last + drift, "{:?} of {last}", ways);
        prop_assert!(ways[ways.len() - 1] <= last + drift + 120_000_000);
    }

    #[test]
    fn a_bound_that_is_told_on_is_a_bound(
        machines in (machine(), machine(), machine()),
        first in questions(),
        second in questions(),
    ) {
        let (tower, gateway, client) = machines;
        // The gateway's bound as it is at any time, by its answers so far.
        let mut heard: Vec<(i128, ClockBound)> = Vec::new();
        ask(&first, gateway, |at| Some(tower.clock(at)), |bound, now| heard.push((now, *bound)));
        let told_at = |at: i128| {
            let known = heard.iter().rev().find(|(since, _)| *since <= at)?;
            known.1.at(gateway.mono(at))
        };
        ask(&second, client, told_at, |bound, now| {
            if let Some(highest) = bound.at(client.mono(now)) {
                assert!(highest >= tower.clock(now), "{highest} of {}", tower.clock(now));
            }
        });
    }

    #[test]
    fn of_answers_in_any_order_the_lowest_bound_counts(
        ways in vec(0_u64..4_000_000_000, 1..=4),
    ) {
        // All asked at once of a clock that runs as one's own; the answers come later and later.
        let mut bound = ClockBound::default();
        let now = Mono(10_000_000_000);
        for way in &ways {
            let asked = Mono(now.0 - way);
            bound.heard(asked, now, AppendTime(1_000_000_000));
        }
        let least = ways.iter().min().unwrap();
        let alone = {
            let mut alone = ClockBound::default();
            alone.heard(Mono(now.0 - least), now, AppendTime(1_000_000_000));
            alone.at(now)
        };
        prop_assert_eq!(bound.at(now), alone);
    }

    #[test]
    fn a_clock_set_forward_is_found_by_what_shows_it_and_at_the_latest_after_four_answers(
        forward_us in 1_i64..8_000_000_000,
        way_ns in 0_u64..4_000_000_000,
        showing: bool,
    ) {
        let second = 1_000_000_000;
        let clock = |mono: u64, set: i64| AppendTime(i64::try_from(mono / 1000).unwrap() + set);
        let mut bound = ClockBound::default();
        for n in 1..6 {
            bound.heard(Mono(n * second), Mono(n * second), clock(n * second, 0));
        }
        if showing {
            // A record's append time, made right now.
            let now = 6 * second;
            bound.shown(Mono(now), clock(now, forward_us));
            let highest = bound.at(Mono(now));
            prop_assert!(highest.is_none_or(|highest| highest >= clock(now, forward_us)));
        }
        for n in 1..=4 {
            // Read at the last moment before it was heard, or at the first.
            let asked = 6 * second + n * 10 * second;
            let read = if n % 2 == 0 { asked } else { asked + way_ns };
            let now = asked + way_ns;
            bound.heard(Mono(asked), Mono(now), clock(read, forward_us));
            let highest = bound.at(Mono(now)).expect("an answer is known");
            let gone = i128::from(forward_us) * 1000 > i128::from(way_ns) + 2_000_000_000;
            if n == 4 || (gone && read == now) {
                prop_assert!(highest >= clock(now, forward_us));
            }
        }
    }
}

#[test]
fn a_clock_set_back_lowers_the_bound_and_not_the_time_of_what_was_judged() {
    let (mut bound, mut time) = (ClockBound::default(), LogTime::default());
    bound.heard(Mono(0), Mono(0), AppendTime(5_000_000));
    let (old, new) = (Sequence(1), Sequence(2));
    let before = time.judge(bound.at(Mono(1000)).unwrap(), old, old);
    bound.heard(Mono(2000), Mono(2000), AppendTime(1_000_000));
    let lower = bound.at(Mono(2000)).unwrap();
    assert!(lower < AppendTime(1_000_010));
    assert_eq!(time.judge(lower, new, new), lower);
    assert_eq!(time.judge(lower, old, new), before);
}

#[test]
fn the_end_of_time_is_not_passed() {
    let mut bound = ClockBound::default();
    bound.heard(Mono(0), Mono(0), AppendTime(i64::MAX - 5));
    assert_eq!(bound.at(Mono::NEVER), Some(AppendTime(i64::MAX)));
}
