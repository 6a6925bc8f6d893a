//! Claims of `docs/flow-control.md` about the limiters, with few seeds; `airmail-lab limiters` has
//! many.

use airmail_flow::LimiterKind;
use airmail_queueing::limiters::{Contender, PHASES, Plan, Report, Row, measure, runs};
use airmail_queueing::subject::Subject;
use std::cell::Cell;

fn plan(limiters: &'static [LimiterKind]) -> Plan {
    Plan { seeds: 2, limiters }
}

fn subject(name: &str) -> Subject {
    match Subject::all()
        .into_iter()
        .find(|subject| subject.name() == name)
    {
        Some(subject) => subject,
        None => panic!("there is no system {name}"),
    }
}

fn report(subject: Subject, limiters: &'static [LimiterKind]) -> Report {
    match measure(subject, &plan(limiters), &|| {}) {
        Ok(report) => report,
        Err(error) => panic!("{}: {error}", subject.name()),
    }
}

fn row(report: &Report, limiter: LimiterKind) -> &Row {
    let wanted = Contender {
        kind: limiter,
        latency_floor_ms: 0,
    };
    match report.rows.iter().find(|row| row.contender == wanted) {
        Some(row) => row,
        None => panic!("{limiter} is not in the table"),
    }
}

#[test]
fn a_fixed_bound_at_the_knee_is_at_the_knee() {
    for name in ["mm4-far", "node-disk", "disk-two"] {
        let report = report(subject(name), &[LimiterKind::Fixed]);
        let fixed = row(&report, LimiterKind::Fixed);
        // It is compared with itself, by a finer record: the same seed gives the same run.
        assert!((fixed.rate_share[0].worst - 1.0).abs() < 0.01, "{fixed:#?}");
        assert!(
            (fixed.latency_ratio[0].worst - 1.0).abs() < 0.01,
            "{fixed:#?}"
        );
        assert_eq!(
            (fixed.bound_spread.worst, fixed.bound as u64),
            (0.0, fixed.knees[0].bound)
        );
        assert_eq!(
            (fixed.recovery[0].share, fixed.recovery[2].share),
            (1.0, 1.0)
        );
    }
}

#[test]
fn gradient_holds_the_knee_where_power_and_throughput_agree() {
    for name in [
        "mm1",
        "mm16",
        "mm1-far",
        "md1-far",
        "mm4-far",
        "heavy-tail",
        "payloads",
    ] {
        let report = report(subject(name), &[LimiterKind::Gradient]);
        let gradient = row(&report, LimiterKind::Gradient);
        for phase in 0..3 {
            assert!(gradient.rate_share[phase].median >= 0.8, "{gradient:#?}");
            assert!(gradient.latency_ratio[phase].median <= 1.5, "{gradient:#?}");
        }
    }
}

/// Power is greatest where half of the throughput is.
#[test]
fn gradient_gives_half_of_the_throughput_away_where_commits_have_a_fixed_cost() {
    let report = report(subject("node-disk"), &[LimiterKind::Gradient]);
    let gradient = row(&report, LimiterKind::Gradient);
    let share = gradient.rate_share[0].median;
    assert!((0.45..0.75).contains(&share), "{gradient:#?}");
    assert!(gradient.latency_ratio[0].median < 0.5, "{gradient:#?}");
    assert_eq!(gradient.recovery[0].median, None, "{gradient:#?}");
}

#[test]
fn a_report_has_a_line_and_a_trace_for_each_limiter() {
    for name in ["commits", "node-memory"] {
        let subject = subject(name);
        let (plan, done) = (plan(&LimiterKind::ALL), Cell::new(0));
        let report = match measure(subject, &plan, &|| done.set(done.get() + 1)) {
            Ok(report) => report,
            Err(error) => panic!("{error}"),
        };
        assert_eq!(done.get(), runs(&plan));
        let contenders = Contender::of(&plan);
        assert!(contenders.len() > LimiterKind::ALL.len());
        let windows: u64 = PHASES.iter().map(|(windows, _)| windows).sum();
        for ((contender, row), trace) in contenders.iter().zip(&report.rows).zip(&report.traces) {
            assert_eq!((contender, contender), (&row.contender, &trace.contender));
            assert_eq!(trace.bounds.len() as u64, windows);
            assert_eq!(trace.rate_shares.len() as u64, windows);
        }
        assert_eq!(report.rows.len(), report.traces.len());
    }
}

/// A storage that answers within the turn leaves nothing to bound.
#[test]
fn in_memory_every_bound_of_the_pilot_is_as_good_as_any() {
    let report = report(subject("node-memory"), &LimiterKind::ALL);
    for row in &report.rows {
        assert!((0.99..1.01).contains(&row.rate_share[0].median), "{row:#?}");
        assert_eq!(row.latency_s, 0.0);
    }
}

#[test]
fn one_plan_gives_one_report() {
    let once = || report(subject("disk-eight"), &[LimiterKind::Gradient]);
    assert_eq!(once(), once());
}
