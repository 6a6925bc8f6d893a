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

fn of(session: usize) -> (SessionKey, SlotLogs) {
    let (namespace, slot) = (NAMESPACE, 0);
    (SessionKey::new(session), SlotLogs { namespace, slot })
}

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
        selectors.may_add(of(n), &selector).unwrap();
        selections.push((of(n).0, selectors.add(of(n), selector)));
    }
    assert_eq!((selectors.kept.len(), selectors.users()), (1, 100));
    for (session, selection) in selections {
        assert_eq!(selectors.selecting(NAMESPACE, "a/b").len(), 1);
        selectors.remove(session, selection);
    }
    assert_eq!(selectors.selecting(NAMESPACE, "a/b").len(), 0);
    assert_eq!((selectors.bytes, selectors.users()), (0, 0));
    assert!(selectors.by_selector.is_empty() && selectors.namespaces.is_empty());
}

#[test]
fn a_stream_has_one_selection_of_a_log_and_a_namespace_so_many_patterns() {
    let mut selectors = Selectors::default();
    for n in 0..PATTERNS_MAX {
        let selector = pattern(&format!("{n}/*"));
        selectors.may_add(of(n), &selector).unwrap();
        selectors.add(of(n), selector);
    }
    let taken = selectors.may_add(of(0), &prefix("a"));
    assert_eq!(code(taken), ErrorCode::SubscriptionInvalid);
    let further = selectors.may_add(of(1000), &pattern("x*"));
    assert_eq!(code(further), ErrorCode::FilterTooComplex);
    // One that somebody has costs nothing further, and a prefix no look at it.
    selectors.may_add(of(1000), &pattern("1/*")).unwrap();
    selectors.may_add(of(1000), &prefix("x")).unwrap();
    let long = prefix(&"x".repeat(BYTES_MAX));
    let too_long = selectors.may_add(of(1000), &long);
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
        for (n, (text, is_prefix)) in texts.iter().enumerate() {
            let selector = match Glob::parse(text) {
                Ok(glob) if !is_prefix => Arc::new(Selector::Pattern(glob)),
                _ => prefix(text),
            };
            let selection = selectors.add(of(n), Arc::clone(&selector));
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
