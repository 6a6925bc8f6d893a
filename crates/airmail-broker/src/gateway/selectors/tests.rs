//! Claims about the table of selectors.

use super::*;
use airmail_model::selector::Glob;
use proptest::prelude::*;

const NAMESPACE: NamespaceId = NamespaceId(7);

fn prefix(text: &str) -> Arc<Selector> {
    Arc::new(Selector::Prefix(text.into()))
}

fn pattern(text: &str) -> Arc<Selector> {
    Arc::new(Selector::Pattern(Glob::parse(text).unwrap()))
}

const LOGS: SlotLogs = SlotLogs {
    namespace: NAMESPACE,
    slot: 0,
};

fn code(result: Result<(), Error>) -> ErrorCode {
    result.unwrap_err().code()
}

#[test]
fn a_selector_that_many_have_is_kept_once_and_as_long_as_somebody_has_it() {
    let mut selectors = Selectors::default();
    let mut selections = Vec::new();
    for n in 0..100 {
        // The same, however it is written.
        let selector = [pattern("a/**"), pattern("a/***")][n % 2].clone();
        selectors.may_add(NAMESPACE, &selector).unwrap();
        selections.push(selectors.add(LOGS, selector));
    }
    assert_eq!((selectors.kept.len(), selectors.users()), (1, 100));
    for selection in selections {
        assert_eq!(selectors.selecting(NAMESPACE, "a/b").len(), 1);
        selectors.remove(selection);
    }
    assert_eq!(selectors.selecting(NAMESPACE, "a/b").len(), 0);
    assert_eq!((selectors.bytes, selectors.users()), (0, 0));
    assert!(selectors.by_selector.is_empty() && selectors.namespaces.is_empty());
}

#[test]
fn a_namespace_has_so_many_patterns() {
    let mut selectors = Selectors::default();
    for n in 0..PATTERNS_MAX {
        let selector = pattern(&format!("{n}/*"));
        selectors.may_add(NAMESPACE, &selector).unwrap();
        selectors.add(LOGS, selector);
    }
    let further = selectors.may_add(NAMESPACE, &pattern("x*"));
    assert_eq!(code(further), ErrorCode::FilterTooComplex);
    // One that somebody has costs nothing further, and a prefix no look at it.
    selectors.may_add(NAMESPACE, &pattern("1/*")).unwrap();
    selectors.may_add(NAMESPACE, &prefix("x")).unwrap();
    let long = prefix(&"x".repeat(BYTES_MAX));
    let too_long = selectors.may_add(NAMESPACE, &long);
    assert_eq!(code(too_long), ErrorCode::FilterTooComplex);
}

proptest! {
    #[test]
    fn a_topic_is_found_in_exactly_the_selections_that_select_it(
        texts in proptest::collection::vec(("[ab\u{e9}/*]{0,4}", any::<bool>()), 1..12),
        topic in "[ab\u{e9}/]{1,5}",
    ) {
        let mut selectors = Selectors::default();
        let mut known = BTreeMap::new();
        for (text, is_prefix) in &texts {
            let selector = match Glob::parse(text) {
                Ok(glob) if !is_prefix => Arc::new(Selector::Pattern(glob)),
                _ => prefix(text),
            };
            let selection = selectors.add(LOGS, Arc::clone(&selector));
            known.insert(selection.selector, selector);
        }
        let mut found = selectors.selecting(NAMESPACE, &topic);
        found.sort_unstable();
        let selects = |(key, selector): (&SelectorKey, &Arc<Selector>)| selector.selects(&topic).then_some(*key);
        let expected: Vec<SelectorKey> = known.iter().filter_map(selects).collect();
        prop_assert_eq!(found.to_vec(), expected);
        prop_assert!(selectors.selecting(NamespaceId(8), &topic).is_empty());
    }
}
