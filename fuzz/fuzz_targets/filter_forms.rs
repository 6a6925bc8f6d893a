//! Filters made of the language's own words: parsed, shown and parsed again; and the normal form is true where the
//! filter is.

#![no_main]

use airmail_fuzz::filters::{batch, texts};
use airmail_fuzz::fuzz_target;
use airmail_model::filter::{Check, Expression, Facts, Filter, Literal};

/// Whether a literal is fulfilled, by a filter of its test alone.
fn is_fulfilled(literal: &Literal<'_>, facts: &Facts<'_>) -> bool {
    let alone = Expression::Test(literal.test.clone());
    let filter = Filter::parse(&alone.to_string()).expect("a part of a filter");
    filter.matches_facts(facts) != literal.negated
}

fuzz_target!(|data: &[u8]| {
    let (head, rest) = data.split_at(data.len().min(16));
    let batch = batch(head);
    let record = batch.record(0);
    let facts = Facts::read(record.attributes);
    for text in texts(rest) {
        let Ok(filter) = Filter::parse(&text) else {
            continue;
        };
        let shown = filter.to_string();
        assert_eq!(Filter::parse(&shown).as_ref(), Ok(&filter), "{text}");
        let matches = filter.matches(&record);
        assert_eq!(filter.matches_facts(&facts), matches, "{shown}");
        let expression = filter.expression();
        let conjunctions = expression.conjunctions().expect("they were counted");
        let is_one = conjunctions.iter().any(|conjunction| {
            let mut literals = conjunction.literals.iter();
            literals.all(|literal| is_fulfilled(literal, &facts))
        });
        assert_eq!(is_one, matches, "{shown}");
        let tests = conjunctions.iter().flat_map(|all| &all.literals);
        for literal in tests {
            if literal.test.check == Check::Has {
                let is_there = facts.iter().any(|(name, _)| name == literal.test.name);
                assert_eq!(is_fulfilled(literal, &facts) != literal.negated, is_there);
            }
        }
    }
});
