//! The runs of one case, in all rounds.

use crate::mailbox::case::{Case, Factor};
use crate::mailbox::plan::Plan;
use crate::mailbox::results::RunResult;
use airmail_bench::Spread;
use airmail_experiments::results::Interval;

/// A case with its runs, by round.
#[derive(Debug)]
pub(super) struct Group<'a> {
    pub(super) case: &'a Case,
    pub(super) results: Vec<&'a RunResult>,
    /// Words that distinguish it from the others of its experiment.
    label: String,
}

impl Group<'_> {
    pub(super) fn label(&self) -> String {
        self.label.clone()
    }

    pub(super) fn spread(&self, value: fn(&RunResult) -> f64) -> Option<Spread> {
        Spread::of(self.results.iter().map(|result| value(result)))
    }

    pub(super) fn cell(&self, value: fn(&RunResult) -> f64, digits: usize) -> String {
        cell(self.results.iter().map(|result| value(result)), digits)
    }

    /// The widest interval of the rounds, in percent of the mean, as `±3.1 %`.
    pub(super) fn interval(&self, value: fn(&RunResult) -> Option<Interval>) -> String {
        let all = self.results.iter().filter_map(|result| value(result));
        let widest = all.max_by(|a, b| a.relative().total_cmp(&b.relative()));
        widest.map_or(String::new(), |widest| {
            format!("±{:.1} %", 100.0 * widest.relative())
        })
    }

    /// The half width of the widest interval, of rate or time, as a share of the mean.
    pub(super) fn unsureness(&self) -> Option<f64> {
        let all = self
            .results
            .iter()
            .flat_map(|result| [result.rate_interval, result.time_interval]);
        all.map(|one| one.map(|one| one.relative()))
            .try_fold(0.0, |widest: f64, one| Some(widest.max(one?)))
    }
}

/// Median and ends of what was measured, for a table.
pub(super) fn cell(values: impl Iterator<Item = f64>, digits: usize) -> String {
    let values: Vec<f64> = values.collect();
    match (&values[..], Spread::of(values.iter().copied())) {
        ([value], _) => format!("{value:.digits$}"),
        (_, Some(spread)) => format!("{spread:.digits$}"),
        (_, None) => String::new(),
    }
}

/// The cases of an experiment that were run, in the order of its table.
pub(super) fn of<'a>(plan: &Plan, quick: bool, results: &'a [RunResult]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for result in results {
        match groups
            .iter_mut()
            .find(|group| *group.case == result.run.case)
        {
            Some(group) => group.results.push(result),
            None => groups.push(Group {
                case: &result.run.case,
                results: vec![result],
                label: String::new(),
            }),
        }
    }
    let order = plan.all(quick);
    groups.sort_by_key(|group| order.iter().position(|case| case == group.case));
    let cases: Vec<&Case> = groups.iter().map(|group| group.case).collect();
    let labels: Vec<String> = cases.iter().map(|case| label(case, &cases, None)).collect();
    for (group, label) in groups.iter_mut().zip(labels) {
        group.label = label;
    }
    groups
}

/// Words that distinguish a case from others, a factor left out perhaps.
pub(super) fn label(case: &Case, others: &[&Case], without: Option<Factor>) -> String {
    let mut words = Vec::new();
    if others.iter().any(|other| other.subject != case.subject) {
        words.push(case.subject.name().to_owned());
    }
    for factor in Factor::ALL
        .into_iter()
        .filter(|factor| Some(*factor) != without)
    {
        let Some(value) = factor.value(case) else {
            continue;
        };
        let same = |other: &&Case| factor.value(other).is_none_or(|other| other == value);
        if !others.iter().all(same) {
            words.push(match factor {
                Factor::Nodes if value == 1.0 => "1 node".to_owned(),
                _ => format!("{value} {}", factor.name()),
            });
        }
    }
    if others.iter().any(|other| other.held != case.held) && case.held {
        words.push("a transaction held open".to_owned());
    }
    if words.is_empty() {
        words.push(case.subject.name().to_owned());
    }
    words.join(", ")
}
