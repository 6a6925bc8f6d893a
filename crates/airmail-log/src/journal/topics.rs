//! Listing of a log's topics: a reader of its own goes through the kept records, and keeps the
//! page.
//!
//! Memory is bounded by the page: names beyond its last one are dropped as soon as it is full.

use crate::contract::{Completion, Refusal, Tag, TopicPage, TopicSeen};
use airmail_model::{Batch, Extent, Sequence};
use std::collections::BTreeMap;

/// Names in one page, at most.
const PAGE_MAX: usize = 10_000;

/// A page of topics on its way.
#[derive(Debug)]
pub(super) struct TopicsJob {
    t: Tag,
    page: TopicPage,
    limit: usize,
    seen: BTreeMap<String, Sequence>,
}

impl TopicsJob {
    /// A job without names yet.
    pub(super) fn new(t: Tag, page: TopicPage) -> TopicsJob {
        let limit = (page.limit as usize).clamp(1, PAGE_MAX);
        TopicsJob {
            t,
            page,
            limit,
            seen: BTreeMap::new(),
        }
    }

    /// Takes up the names of a batch.
    pub(super) fn take(&mut self, base: Sequence, batch: &Batch) {
        let last = Extent::starting_at(base, batch.numbers()).last;
        for entry in batch.topics() {
            let name = entry.name;
            if !name.starts_with(&self.page.prefix) || name <= self.page.after.as_str() {
                continue;
            }
            if let Some(seen) = self.seen.get_mut(name) {
                *seen = last.max(*seen);
                continue;
            }
            let full = self.seen.len() >= self.limit;
            if full
                && self
                    .seen
                    .last_key_value()
                    .is_some_and(|(last, _)| name > last.as_str())
            {
                continue;
            }
            self.seen.insert(name.to_owned(), last);
            if full {
                self.seen.pop_last();
            }
        }
    }

    /// The answer.
    pub(super) fn finish(self, why: Option<Refusal>) -> Completion {
        let t = self.t;
        match why {
            Some(why) => Completion::Refused { t, why },
            None => {
                let page = self.seen.into_iter();
                let page = page.map(|(name, last)| TopicSeen { name, last });
                Completion::Topics {
                    t,
                    page: page.collect(),
                }
            }
        }
    }
}
