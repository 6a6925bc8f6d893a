//! Claims of `docs/flow-control.md` about the limiters, with few seeds; `airmail-lab limiters` has
//! many.

use airmail_flow::LimiterKind;
use airmail_queueing::limiters::{Plan, Report, Row, measure, runs};
use airmail_queueing::system::SYSTEMS;
use std::cell::Cell;

fn row(report: &Report, limiter: LimiterKind) -> &Row {
    let mut rows = report.rows.iter();
    match rows.find(|row| row.limiter == limiter) {
        Some(row) => row,
        None => panic!("{limiter} is not in the table"),
    }
}

#[test]
fn gradient_holds_the_knee_on_every_system_and_finds_it_again() {
    let plan = Plan {
        seeds: 2,
        ..Plan::default()
    };
    for system in SYSTEMS {
        let done = Cell::new(0);
        let report = measure(system, &plan, &|| done.set(done.get() + 1));
        assert_eq!(done.get(), runs(&plan));
        let gradient = row(&report, LimiterKind::Gradient);
        assert!(gradient.power_ratio >= 0.9, "{gradient:#?}");
        assert!(gradient.power_ratio_halved >= 0.9, "{gradient:#?}");
        assert!(gradient.power_ratio_doubled >= 0.9, "{gradient:#?}");
        assert!(gradient.recovered_share == 1.0, "{gradient:#?}");
        assert!(gradient.recovery_windows <= 20.0, "{gradient:#?}");
        for other in [LimiterKind::LastThreePoints, LimiterKind::Adaptive] {
            let worst = |row: &Row| {
                let halved = row.power_ratio.min(row.power_ratio_halved);
                halved.min(row.power_ratio_doubled)
            };
            let other = row(&report, other);
            assert!(worst(gradient) > worst(other), "{gradient:#?} {other:#?}");
        }
        for trace in &report.traces {
            assert_eq!((trace.bounds.len(), trace.power_ratios.len()), (200, 200));
        }
    }
}
