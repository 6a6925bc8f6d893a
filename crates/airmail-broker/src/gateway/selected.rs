//! Selections and batches: which live ones a batch is for, and the part of it that is for one that is behind.
//!
//! At the tail each distinct topic of a batch is looked up once, whatever the number of selections; who has the same selector
//! is found at once. The tower reads everything for a selection that is behind, so there its topics are picked out.

use super::Gateway;
use super::fanout::Topics;
use super::scope::Selection;
use crate::keys::{LogKey, SelectorKey, SubKey};
use airmail_model::Batch;
use airmail_model::frame::Delivered;
use std::collections::BTreeMap;

/// Live selections with the same selector that a batch is for.
pub(super) struct Selecting {
    /// Places of the selected topics in the batch, ascending.
    pub(super) topics: Topics,
    pub(super) subs: Vec<SubKey>,
}

impl Gateway {
    /// Finds the selections at a log's tail that a batch is for.
    pub(super) fn selecting(&self, log: LogKey, batch: &Batch) -> Vec<Selecting> {
        let lane = self.logs.lane(log);
        if lane.tail.is_without_selections() {
            return Vec::new();
        }
        let namespace = self.logs[log].id.namespace;
        let mut selected: BTreeMap<SelectorKey, Topics> = BTreeMap::new();
        for (place, topic) in (0u16..).zip(batch.topics()) {
            for selector in self.subs.selectors.selecting(namespace, topic.name) {
                selected.entry(selector).or_default().push(place);
            }
        }
        let of = |(selector, topics): (SelectorKey, Topics)| Selecting {
            topics,
            subs: lane.selecting(&self.subs, selector).collect(),
        };
        #[cfg(feature = "sabotage")]
        if self.config.bug == Some(crate::sabotage::Bug::SelectionOfAll) {
            let topics = u16::try_from(batch.topics().len()).unwrap_or(u16::MAX);
            let all: Topics = (0..topics).collect();
            selected.values_mut().for_each(|of| *of = all.clone());
        }
        let found = selected.into_iter().map(of);
        found.filter(|found| !found.subs.is_empty()).collect()
    }

    /// Gives the part of a batch whose topics are selected; `None`: it has none.
    pub(super) fn select(&self, body: Delivered, selection: Selection) -> Option<Delivered> {
        #[cfg(feature = "sabotage")]
        if self.config.bug == Some(crate::sabotage::Bug::LateUnselected) {
            return Some(body);
        }
        let batch = match &body {
            Delivered::Whole(batch) => batch.clone(),
            Delivered::Slice(slice) => slice.to_batch(),
        };
        let selectors = &self.subs.selectors;
        let topics = batch.topics();
        let is_selected: Vec<bool> = topics
            .map(|topic| selectors.selects(selection.selector, topic.name))
            .collect();
        if is_selected.iter().all(|is| *is) {
            return Some(body);
        }
        let selected = batch.slice(|_, topic| is_selected[usize::from(topic)]);
        selected.map(Delivered::Slice)
    }
}
