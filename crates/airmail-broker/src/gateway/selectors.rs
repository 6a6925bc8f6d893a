//! Selectors: which selections of a namespace a topic is in.
//!
//! A selector that several subscriptions have, of whatever clients, is kept once. Each begins with a text, maybe an empty
//! one, which every name that it selects begins with: so those of a topic are found by the beginnings of its name, of as many
//! lengths as there are, and only patterns among them are looked at further.
//!
//! Invariants: a selector is kept as long as somebody has it.

use super::scope::{Selection, SlotLogs};
use crate::keys::SelectorKey;
use airmail_model::selector::Selector;
use airmail_model::{Error, ErrorCode, NamespaceId};
use slab::Slab;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Different patterns of a namespace, at most: a new topic may have to be held against all of them.
const PATTERNS_MAX: usize = 256;
/// Memory of all different selectors of a shard, at most.
const BYTES_MAX: usize = 64 << 20;
/// Memory that one takes besides what it holds, about: here, and its beginning once more.
const OVERHEAD_BYTES: usize = 300;

/// Selectors that select a topic.
pub(super) type Selecting = SmallVec<[SelectorKey; 4]>;

/// A selector, and how many subscriptions have it.
#[derive(Debug)]
struct Kept {
    namespace: NamespaceId,
    selector: Arc<Selector>,
    users: usize,
}

/// Selectors of a namespace.
#[derive(Debug, Default)]
struct OfNamespace {
    /// By the text with which all that they select begins.
    by_beginning: BTreeMap<Box<str>, SmallVec<[SelectorKey; 1]>>,
    /// Lengths of those texts, and how many there are of each.
    lengths: BTreeMap<usize, usize>,
    patterns: usize,
}

/// The selectors of a gateway. See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Selectors {
    kept: Slab<Kept>,
    by_selector: BTreeMap<(NamespaceId, Arc<Selector>), SelectorKey>,
    namespaces: BTreeMap<NamespaceId, OfNamespace>,
    /// Number of subscriptions that have one.
    users: usize,
    /// Memory of the selectors.
    bytes: usize,
}

fn bytes_of(selector: &Selector) -> usize {
    2 * selector.heap_bytes() + OVERHEAD_BYTES
}

fn is_pattern(selector: &Selector) -> bool {
    matches!(selector, Selector::Pattern(_))
}

impl Selectors {
    /// Whether there is room for a selection of a namespace's topics.
    pub(super) fn may_add(
        &self,
        namespace: NamespaceId,
        selector: &Arc<Selector>,
    ) -> Result<(), Error> {
        let known = (namespace, Arc::clone(selector));
        if self.by_selector.contains_key(&known) {
            return Ok(());
        }
        let too_complex = |value: usize, limit: String| {
            let error = Error::new(ErrorCode::FilterTooComplex).field("selector");
            Err(error.value(value).limit(limit))
        };
        let patterns = self.namespaces.get(&namespace);
        let patterns = patterns.map_or(0, |of| of.patterns);
        if is_pattern(selector) && patterns >= PATTERNS_MAX {
            let limit = format!("{PATTERNS_MAX} different patterns of a namespace");
            return too_complex(patterns + 1, limit);
        }
        let bytes = self.bytes + bytes_of(selector);
        if bytes > BYTES_MAX {
            let limit = format!("{BYTES_MAX} bytes of selectors in a shard");
            return too_complex(bytes, limit);
        }
        Ok(())
    }

    /// Takes note of a selection that a subscription has from now on.
    pub(super) fn add(&mut self, logs: SlotLogs, selector: Arc<Selector>) -> Selection {
        self.users += 1;
        let known = (logs.namespace, selector);
        let selector = match self.by_selector.get(&known) {
            Some(key) => *key,
            None => self.keep(known),
        };
        self.kept[selector.place()].users += 1;
        Selection { logs, selector }
    }

    fn keep(&mut self, (namespace, selector): (NamespaceId, Arc<Selector>)) -> SelectorKey {
        let of_namespace = self.namespaces.entry(namespace).or_default();
        let beginning = selector.literal_prefix();
        self.bytes += bytes_of(&selector);
        of_namespace.patterns += usize::from(is_pattern(&selector));
        let key = SelectorKey::new(self.kept.insert(Kept {
            namespace,
            selector: Arc::clone(&selector),
            users: 0,
        }));
        *of_namespace.lengths.entry(beginning.len()).or_default() += 1;
        let those = of_namespace.by_beginning.entry(beginning.into());
        those.or_default().push(key);
        self.by_selector.insert((namespace, selector), key);
        key
    }

    /// Forgets the selection of a subscription, which ends.
    pub(super) fn remove(&mut self, Selection { selector, .. }: Selection) {
        self.users -= 1;
        let kept = &mut self.kept[selector.place()];
        kept.users -= 1;
        if kept.users == 0 {
            self.forget(selector);
        }
    }

    fn forget(&mut self, key: SelectorKey) {
        let Kept {
            namespace,
            selector,
            ..
        } = self.kept.remove(key.place());
        self.bytes -= bytes_of(&selector);
        let Some(of_namespace) = self.namespaces.get_mut(&namespace) else {
            airmail_model::bug!("{selector} is of {namespace}, which has no selectors");
            return;
        };
        of_namespace.patterns -= usize::from(is_pattern(&selector));
        let beginning = selector.literal_prefix();
        if let Some(those) = of_namespace.by_beginning.get_mut(beginning) {
            those.retain(|other| *other != key);
            if those.is_empty() {
                of_namespace.by_beginning.remove(beginning);
            }
        }
        if let Some(count) = of_namespace.lengths.get_mut(&beginning.len()) {
            *count -= 1;
            if *count == 0 {
                of_namespace.lengths.remove(&beginning.len());
            }
        }
        if of_namespace.by_beginning.is_empty() {
            self.namespaces.remove(&namespace);
        }
        self.by_selector.remove(&(namespace, selector));
    }

    /// Gives the selectors of a namespace that select a topic, in order of their beginnings' lengths.
    pub(super) fn selecting(&self, namespace: NamespaceId, topic: &str) -> Selecting {
        let mut found = Selecting::new();
        let Some(of_namespace) = self.namespaces.get(&namespace) else {
            // Input: a namespace in which nobody has a selection.
            return found;
        };
        for length in of_namespace.lengths.keys() {
            let Some(beginning) = topic.get(..*length) else {
                // Input: a length that the name has not, or that is within one of its characters.
                continue;
            };
            let those = of_namespace.by_beginning.get(beginning);
            let selects = |key: &&SelectorKey| self.kept[key.place()].selector.selects(topic);
            found.extend(those.into_iter().flatten().filter(selects).copied());
        }
        found
    }

    /// Whether a selector selects a topic.
    pub(super) fn selects(&self, key: SelectorKey, topic: &str) -> bool {
        self.kept[key.place()].selector.selects(topic)
    }

    /// Number of subscriptions that have one.
    pub(super) fn users(&self) -> usize {
        self.users
    }
}

#[cfg(test)]
mod tests;
