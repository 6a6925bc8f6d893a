//! The normal form of a filter: an `or` of conjunctions, each an `and` of tests and of negated tests.
//!
//! An index is made of it: a record that the filter wants fulfils one of the conjunctions. `not` goes down
//! to the tests (De Morgan). An `and` of `or`s multiplies: twelve `and`s of two `or`s are 4,096
//! conjunctions. So they are counted before they are made, and no more than [`CONJUNCTIONS_MAX`] are:
//! neither step ever makes fewer of them, so what exceeds the bound on the way does so at the end.

use super::CONJUNCTIONS_MAX;
use super::error::{Bound, FilterError};
use super::expression::{Expression, Test};

/// A test, or its opposite. The opposite of a test is true of a record that lacks the attribute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Literal<'a> {
    /// The test.
    pub test: &'a Test,
    /// Whether it has to be false.
    pub negated: bool,
}

/// Literals that are fulfilled all together.
#[derive(Clone, Debug, PartialEq)]
pub struct Conjunction<'a> {
    /// The literals, one at least, in the order of the filter's text.
    pub literals: Vec<Literal<'a>>,
}

impl Expression {
    /// The conjunctions of which one is fulfilled where this is true: 1 to [`CONJUNCTIONS_MAX`].
    ///
    /// # Errors
    /// There are more.
    pub fn conjunctions(&self) -> Result<Vec<Conjunction<'_>>, FilterError> {
        normal(self, false)
    }
}

fn normal(expression: &Expression, negated: bool) -> Result<Vec<Conjunction<'_>>, FilterError> {
    match (expression, negated) {
        (Expression::Test(test), _) => {
            let literals = vec![Literal { test, negated }];
            Ok(vec![Conjunction { literals }])
        }
        (Expression::Not(part), _) => normal(part, !negated),
        (Expression::Or(parts), false) | (Expression::And(parts), true) => sum(parts, negated),
        (Expression::And(parts), false) | (Expression::Or(parts), true) => product(parts, negated),
    }
}

fn sum(parts: &[Expression], negated: bool) -> Result<Vec<Conjunction<'_>>, FilterError> {
    let mut all = Vec::new();
    for part in parts {
        let more = normal(part, negated)?;
        counted(all.len() + more.len())?;
        all.extend(more);
    }
    Ok(all)
}

fn product(parts: &[Expression], negated: bool) -> Result<Vec<Conjunction<'_>>, FilterError> {
    let literals = Vec::new();
    let mut all = vec![Conjunction { literals }];
    for part in parts {
        let more = normal(part, negated)?;
        counted(all.len() * more.len())?;
        let mut longer = Vec::with_capacity(all.len() * more.len());
        for before in &all {
            for behind in &more {
                let literals = [&before.literals[..], &behind.literals[..]].concat();
                longer.push(Conjunction { literals });
            }
        }
        all = longer;
    }
    Ok(all)
}

fn counted(conjunctions: usize) -> Result<(), FilterError> {
    if conjunctions > CONJUNCTIONS_MAX {
        return Err(Bound::Conjunctions.exceeded_by(conjunctions));
    }
    Ok(())
}
