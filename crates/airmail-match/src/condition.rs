//! Parts of a filter's conjunctions that the index can use: intervals, and values that are equalled.

use crate::key::{Interval, borrowed};
use crate::lists::ListKey;
use crate::name_table::{NameId, NameTable};
use airmail_model::bug;
use airmail_model::filter::{Check, Comparison, Conjunction, Filter};

/// A conjunction of a filter as far as the index uses it. A record that fulfils the conjunction is inside of all
/// bounds, and has one of the values of each equality.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    /// One for each name, in the order of the filter's text.
    pub(crate) bounds: Vec<(NameId, Interval)>,
    /// The lists of each `=` and `in`: a record that fulfils it looks into one of them.
    pub(crate) equalities: Vec<Vec<ListKey>>,
    /// Whether a record strictly inside of all bounds fulfils the conjunction.
    pub(crate) is_exact: bool,
}

impl Condition {
    /// Whether it is made of intervals alone, and so belongs into the grid.
    pub(crate) fn is_span(&self) -> bool {
        self.equalities.is_empty() && !self.bounds.is_empty()
    }

    /// Whether it says nothing that the index can use.
    pub(crate) fn is_residual(&self) -> bool {
        self.bounds.is_empty()
    }

    /// Lists that it stands in if it does not stand in the grid, at least.
    pub(crate) fn lists(&self) -> usize {
        let fewest = self.equalities.iter().map(Vec::len).min();
        fewest.unwrap_or(1)
    }

    /// The conditions of a filter; its names are asked for their numbers. `None` if one has no number. Conjunctions
    /// that nothing fulfils have no condition, and where one says nothing, it is all that there is: every
    /// record has to be held against the filter anyway.
    pub(crate) fn all_of(
        filter: &Filter,
        mut number: impl FnMut(&str) -> Option<NameId>,
    ) -> Option<Vec<Condition>> {
        let expression = filter.expression();
        let Ok(conjunctions) = expression.conjunctions() else {
            bug!("a filter that was parsed has too many conjunctions: {filter}");
            return Some(Vec::new());
        };
        let mut conditions = Vec::with_capacity(conjunctions.len());
        for conjunction in &conjunctions {
            let condition = Condition::of(conjunction, &mut number)?;
            if condition.is_residual() {
                return Some(vec![condition]);
            }
            if !condition.bounds.iter().any(|(_, bound)| bound.is_empty()) {
                conditions.push(condition);
            }
        }
        Some(conditions)
    }

    /// The conditions of a filter that is in an index, whose names have their numbers. A name without one is only in
    /// conjunctions that nothing fulfils: if several such names are taken for one, their bounds are no wider.
    pub(crate) fn known(filter: &Filter, names: &NameTable) -> Vec<Condition> {
        let number = |name: &str| Some(names.find(name).unwrap_or(NameId::NONE));
        Condition::all_of(filter, number).unwrap_or_default()
    }

    fn of(
        conjunction: &Conjunction<'_>,
        number: &mut impl FnMut(&str) -> Option<NameId>,
    ) -> Option<Condition> {
        let mut condition = Condition {
            bounds: Vec::with_capacity(conjunction.literals.len()),
            equalities: Vec::new(),
            is_exact: true,
        };
        for literal in &conjunction.literals {
            let check = &literal.test.check;
            let interval = Interval::of(check).filter(|_| !literal.negated);
            let Some(interval) = interval else {
                // Input: a test that says what a value is not.
                condition.is_exact = false;
                continue;
            };
            let name = number(&literal.test.name)?;
            condition.bind(name, interval);
            match check {
                Check::Compare(Comparison::Equal, value) => {
                    let list = ListKey::equal(name, borrowed(value));
                    condition.equalities.push(vec![list]);
                }
                Check::In(values) => {
                    let lists = values.iter().map(borrowed);
                    let mut lists: Vec<_> =
                        lists.map(|value| ListKey::equal(name, value)).collect();
                    lists.sort_unstable();
                    lists.dedup();
                    condition.equalities.push(lists);
                    // The interval is from the least to the greatest.
                    condition.is_exact = false;
                }
                _ => {}
            }
        }
        Some(condition)
    }

    fn bind(&mut self, name: NameId, interval: Interval) {
        let known = self.bounds.iter_mut().find(|(other, _)| *other == name);
        match known {
            Some((_, bound)) => *bound = bound.and(interval),
            None => self.bounds.push((name, interval)),
        }
    }
}
