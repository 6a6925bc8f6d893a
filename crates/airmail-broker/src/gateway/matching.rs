//! Batches and filters: which records of a batch whose turn it is match whose filters, in bounded work.
//!
//! Records are held against the filters at their topics, and at the selections of the log; a record that very many match is gone
//! on with in the next turn. What was found is kept by filter, and then by who is to be given it.

use super::Gateway;
use super::matched::{MatchedAt, Recipient};
use super::matching_turns::BatchTurn;
use super::scope::{FilteredPlace, Scope};
use super::tail_subscriptions::ListKey;
use crate::keys::{LogKey, SelectorKey, SubKey};
use airmail_log::Stored;
use airmail_model::TopicHash;
use airmail_model::batch::Record;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Units of work that it takes to keep what was found for a filter, or for a subscription, about.
const FOUND_UNITS: u32 = 4;

/// Units of work that it takes to find out who has filters at a topic of a batch, about.
const TOPIC_UNITS: u32 = 4;

/// Those of a log who have filters, as far as a batch may concern them.
struct Filtered {
    /// By place of a topic in the batch.
    topics: Vec<FilteredTopic>,
    /// Selectors of selections with filters, and the places of the topics that each selects.
    selecting: BTreeMap<SelectorKey, Vec<bool>>,
}

/// Those who have filters at a topic of a batch.
#[derive(Clone, Copy, Default)]
struct FilteredTopic {
    hash: TopicHash,
    /// Number of subscriptions to it.
    subscribed: usize,
    /// Number of selections that select it.
    selected: usize,
}

impl Filtered {
    /// Work that it takes to find this out anew. It is taken off behind what was done with it, so that each turn gets on.
    fn units(&self) -> u32 {
        u32::try_from(self.topics.len()).map_or(u32::MAX, |topics| topics * TOPIC_UNITS)
    }
}

impl Gateway {
    /// Those of a log who have filters, as far as a batch may concern them.
    fn filtered(&self, key: LogKey, stored: &Stored) -> Filtered {
        let tail = self.logs.lane(key).tail;
        let namespace = self.logs[key].id.namespace;
        let topics = stored.batch.topic_hashes().map(|hash| FilteredTopic {
            hash,
            subscribed: tail.filtered_of(Scope::Topic(hash)),
            selected: 0,
        });
        let mut topics: Vec<FilteredTopic> = topics.collect();
        let mut selecting: BTreeMap<SelectorKey, Vec<bool>> = BTreeMap::new();
        if tail.filtered_logs().is_some() {
            let count = topics.len();
            for (place, topic) in stored.batch.topics().enumerate() {
                for selector in self.subs.selectors.selecting(namespace, topic.name) {
                    let selections = tail.filtered_selecting(selector);
                    if selections > 0 {
                        topics[place].selected += selections;
                        let of = selecting.entry(selector);
                        of.or_insert_with(|| vec![false; count])[place] = true;
                    }
                }
            }
        }
        Filtered { topics, selecting }
    }

    /// Whether what was found of a batch is to be handed over: all was, or much; of a record all or nothing.
    pub(super) fn is_sought(&self, key: LogKey, batch: &BatchTurn) -> bool {
        let is_within = batch.is_at_selections || self.logs[key].tail.turns.looked.is_begun();
        let is_much = batch.found.entries() >= self.config.matching_found;
        batch.is_found() || is_much && !is_within
    }

    /// Holds records against the filters, until all are, much was found, or no work is left.
    pub(super) fn seek(&mut self, key: LogKey, batch: &mut BatchTurn) {
        let filtered = self.filtered(key, &batch.stored);
        let records = batch.stored.batch.clone();
        while !self.is_sought(key, batch) && self.live.work.units > 0 {
            let record = records.record(batch.record);
            let topic = filtered.topics[usize::from(record.topic)];
            let (matched_at, held_at) = if batch.is_at_selections {
                let logs = self.logs.lane(key).tail.filtered_logs();
                let logs = logs.filter(|_| topic.selected > 0);
                (MatchedAt::Selections, logs.map(FilteredPlace::Logs))
            } else {
                let of = (topic.subscribed > 0).then_some(topic.hash);
                let at = MatchedAt::Topic(record.topic);
                (at, of.map(FilteredPlace::Topic))
            };
            let is_over = held_at
                .is_none_or(|held_at| self.seek_record(key, batch, &record, (matched_at, held_at)));
            if is_over {
                if !batch.is_at_selections {
                    batch.asked += (topic.subscribed + topic.selected) as u64;
                }
                self.live.work.spend(1);
                self.logs[key].tail.turns.looked.end();
                batch.record += u16::from(batch.is_at_selections);
                batch.is_at_selections = !batch.is_at_selections;
            }
        }
        self.live.work.spend(filtered.units());
    }

    /// Holds a record against the filters at a place, as far as there is work left; whether that is done.
    fn seek_record(
        &mut self,
        key: LogKey,
        batch: &mut BatchTurn,
        record: &Record<'_>,
        (matched_at, held_at): (MatchedAt, FilteredPlace),
    ) -> bool {
        let (looked, units) = (
            &mut self.logs[key].tail.turns.looked,
            &mut self.live.work.units,
        );
        if !looked.is_done() {
            let is_done = self.subs.filters.look(
                held_at,
                record,
                (looked, units),
                #[cfg(feature = "sabotage")]
                self.config.bug,
            );
            if !is_done {
                return false;
            }
        }
        let most = usize::try_from(*units / FOUND_UNITS + 1).unwrap_or(usize::MAX);
        let taken = looked.take(most);
        for filter in taken {
            batch.found.put((matched_at, *filter), batch.record);
        }
        let used = u32::try_from(taken.len()).unwrap_or(u32::MAX);
        *units = units.saturating_sub(used.saturating_mul(FOUND_UNITS));
        taken.len() < most
    }

    /// Finds who is to be given what was found, as far as there is work left.
    pub(super) fn find_recipients(&mut self, key: LogKey, batch: &mut BatchTurn) {
        let filtered = self.filtered(key, &batch.stored);
        let records = &batch.stored.batch;
        let lane = self.logs.lane(key);
        let recipients = &mut batch.recipients;
        let selected_of = |places: &[u16], topics: &[bool]| {
            let is_selected = |place: &u16| topics[usize::from(records.head(*place).1)];
            let places = places.iter().copied().filter(is_selected);
            places.collect::<Arc<[u16]>>()
        };
        let mut add = |sub: SubKey, filter, places: &Arc<[u16]>| {
            let of = &self.subs[sub];
            batch.given += places.len() as u64;
            let recipient = Recipient {
                sub,
                id: of.id,
                generation: of.generation,
                filter,
                places: Arc::clone(places),
                given: 0,
            };
            recipients.put(of.session, recipient);
        };
        while self.live.work.units > 0 {
            let Some((matched_at, filter, places)) = batch.found.pop() else {
                // Input: nothing is left of what was found.
                break;
            };
            let mut count = 1;
            match matched_at {
                MatchedAt::Topic(place) => {
                    let list = ListKey {
                        scope: Scope::Topic(filtered.topics[usize::from(place)].hash),
                        filter: Some(filter),
                    };
                    for sub in lane.subscribers(&self.subs, list) {
                        add(sub, filter, &places);
                        count += 1;
                    }
                }
                MatchedAt::Selections => {
                    for (selector, selected) in &filtered.selecting {
                        count += 1;
                        let those = lane.selecting_filtered(&self.subs, *selector, filter);
                        let mut mine = None;
                        for sub in those {
                            let mine = mine.get_or_insert_with(|| selected_of(&places, selected));
                            if !mine.is_empty() {
                                add(sub, filter, mine);
                                count += 1;
                            }
                        }
                    }
                }
            }
            self.live.work.spend(count * FOUND_UNITS);
        }
        self.live.work.spend(filtered.units());
    }
}
