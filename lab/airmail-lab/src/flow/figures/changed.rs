//! The limiters while the capacity is halved and doubled, beside the knee of each capacity.

use super::super::changes::Phase;
use super::super::runs::Measured;
use super::compared::{OVER_TIME, beside_one_another, of_knee, periods, reference};
use super::{Figures, Quantity, Setup};
use airmail_experiments::flow::Period;
use airmail_flow::LimiterKind;
use airmail_plot::{Axis, Figure, Point, Series};

impl Figures<'_> {
    /// Bound, messages in flight, latency and throughput of each limiter over time.
    pub(crate) fn changed(&self, setup: &Setup) -> Option<Figure> {
        let changes = self.measured.changes.iter();
        let of_setup = changes.filter(|change| change.case.setup == *setup);
        let runs: Vec<(LimiterKind, Vec<Vec<Period>>)> = of_setup
            .map(|change| (change.case.limiter, periods(setup.place, &change.rounds)))
            .collect();
        if runs.is_empty() {
            return None;
        }
        let panel = |(place, (name, unit, of)): (usize, &Quantity<Period>)| {
            let axis = if place == 3 { Axis::linear } else { Axis::log };
            let mut panel = beside_one_another(&runs, name, axis((*unit).to_owned()), of);
            let knee = knees(self.measured, setup, self.plan.change_ms, place);
            panel.series.extend(knee);
            panel
        };
        Some(Figure {
            title: format!("Capacity halved and doubled: {setup}"),
            panels: OVER_TIME.iter().enumerate().map(panel).collect(),
        })
    }
}

/// A quantity of the knee, which is another in each phase.
fn knees(measured: &Measured, setup: &Setup, change_ms: u64, quantity: usize) -> Option<Series> {
    let mut points = Vec::new();
    for phase in Phase::ALL {
        let knee = measured.knee(&phase.swept(setup))?;
        let at = of_knee(&knee, setup.limiters(), quantity);
        let (from_s, to_s) = phase.span_s(change_ms, None);
        points.extend([from_s, to_s].map(|seconds| Point::new(seconds, at)));
    }
    Some(reference("knee", points))
}

#[cfg(test)]
mod tests {
    use super::super::super::changes::ChangeRuns;
    use super::super::super::plan::tests::plan;
    use super::super::tests::{measured, names};
    use super::*;

    #[test]
    fn each_capacity_has_its_own_knee_in_the_picture() {
        let plan = plan("--side pilot --publishers 2 --limiters gradient --change 1s");
        let mut measured = measured(&plan);
        let setup = plan.changing_setups()[0];
        let rounds = measured.cases.remove(0).rounds;
        let case = plan.cases_of(setup)[1];
        measured.changes.push(ChangeRuns { case, rounds });
        let figures = Figures {
            plan: &plan,
            measured: &measured,
        };
        let figure = figures.changed(&setup).unwrap();
        assert_eq!(names(&figure.panels[0]), ["gradient", "knee"]);
        let ends = figure.panels[0].series[1].points.iter();
        let ends: Vec<f64> = ends.map(|point| point.x).collect();
        assert_eq!(ends, [0.0, 1.0, 1.0, 2.0, 2.0, 3.0]);
    }
}
