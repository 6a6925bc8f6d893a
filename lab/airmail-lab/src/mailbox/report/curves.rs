//! Throughput and response time over a factor, as the paper draws them.

use super::groups::{self, Group};
use crate::mailbox::case::{Case, Factor};
use crate::mailbox::plan::Plan;
use crate::mailbox::results::RunResult;
use airmail_bench::Spread;
use airmail_experiments::results::Plotted as _;
use airmail_experiments::results::Section;
use airmail_plot::{Axis, Figure, Mark, Panel, Series};

/// The figures of an experiment whose cases vary.
pub(super) fn section(plan: &Plan, groups: &[Group<'_>]) -> Option<Section> {
    let figures = plan.curves.iter().map(|(factor, name)| {
        // Where an experiment goes over several factors, a case belongs to one of them.
        let of_factor =
            |group: &&Group<'_>| group.case.varied.is_none_or(|varied| varied == *factor);
        let groups: Vec<&Group<'_>> = groups.iter().filter(of_factor).collect();
        ((*name).to_owned(), figure(*factor, &groups))
    });
    let figures: Vec<(String, Figure)> = figures.collect();
    (!figures.is_empty()).then(|| Section {
        title: "Curves".to_owned(),
        text: vec!["Error bars: the least and the greatest of the rounds.".to_owned()],
        figures,
        ..Section::default()
    })
}

fn figure(factor: Factor, groups: &[&Group<'_>]) -> Figure {
    let (rate, what): (fn(&RunResult) -> f64, &str) = match factor {
        Factor::Batch => (|result| result.messages_per_s, "messages/s"),
        _ => (|result| result.per_s, "requests/s"),
    };
    Figure {
        title: format!("Throughput and response time by {}", factor.name()),
        panels: vec![
            panel(factor, groups, what, rate),
            panel(factor, groups, "mean response time, ms", |result| {
                result.mean_ms
            }),
            panel(factor, groups, "p99, ms", |result| {
                result.times_us.p99 as f64 / 1e3
            }),
        ],
    }
}

fn panel(factor: Factor, groups: &[&Group<'_>], y: &str, value: fn(&RunResult) -> f64) -> Panel {
    let axis = if factor.is_geometric() {
        Axis::log
    } else {
        Axis::linear
    };
    let cases: Vec<&Case> = groups.iter().map(|group| group.case).collect();
    let mut series: Vec<Series> = Vec::new();
    for group in groups {
        let Some(x) = factor.value(group.case) else {
            continue;
        };
        let name = groups::label(group.case, &cases, Some(factor));
        let Some(point) = group.spread(value).map(|spread: Spread| spread.at(x)) else {
            continue;
        };
        match series.iter_mut().find(|series| series.name == name) {
            Some(series) => series.points.push(point),
            None => series.push(Series {
                colour: series.len(),
                name,
                points: vec![point],
                mark: Mark::LineAndDots,
            }),
        }
    }
    // What does not have the factor is a line to compare with.
    let ends: Vec<f64> = groups
        .iter()
        .filter_map(|group| factor.value(group.case))
        .collect();
    let compared = groups
        .iter()
        .filter(|group| factor.value(group.case).is_none());
    for group in compared {
        let ends = ends
            .iter()
            .copied()
            .fold(None, |ends: Option<(f64, f64)>, x| {
                let (low, high) = ends.unwrap_or((x, x));
                Some((low.min(x), high.max(x)))
            });
        let Some(((low, high), spread)) = ends.zip(group.spread(value)) else {
            continue;
        };
        series.push(Series {
            name: group.case.subject.name().to_owned(),
            points: vec![spread.at(low), spread.at(high)],
            mark: Mark::Dashes,
            colour: series.len(),
        });
    }
    Panel {
        x: axis(factor.name().to_owned()),
        y: Axis::linear(y),
        series,
        ..Panel::default()
    }
}
