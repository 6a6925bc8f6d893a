//! Wants: the topics that readers of guests want, by log.
//!
//! A far end that serves many gateways knows millions of topics, so each costs little: its hash, and the number
//! of the *set* of lists that it is on. Topics that the same readers want share a set, so that a further reader
//! costs next to nothing where it wants what others do. No names are kept.
//!
//! A list ends at once, whatever it holds: topics that it leaves behind are swept up a few at a time, so that the
//! end of a large one holds up nobody.
//!
//! Invariants: `total` is the number of topics on lists that are open; a set counts the topics that have it, and
//! there is one for each combination; a list's number is free again only when no set has it.

use airmail_log::{Completion, GapWhy, WantEdit};
use airmail_model::{LogId, TopicHash, bug};
use smallvec::SmallVec;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

/// Topics that are looked at in one turn of sweeping.
const SWEEP_MAX: usize = 4096;

/// Number of a list among those of its log.
type ListNumber = u16;
/// Number of a set among those of its log.
type SetNumber = u32;

/// Names the list of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ListKey {
    log: LogId,
    number: ListNumber,
}

impl Wanting {
    fn of(list: Option<ListKey>) -> Box<Wanting> {
        Box::new(Wanting {
            list,
            parts: Vec::new(),
            waiting: 0,
            is_refused: false,
            has_begun: false,
        })
    }
}

/// Lists of one log.
#[derive(Debug, Default)]
struct LogWants {
    topics: BTreeMap<TopicHash, SetNumber>,
    sets: Sets,
    /// Number of topics on each list that is open.
    lists: BTreeMap<ListNumber, usize>,
    /// Lists that have ended and may still be in sets.
    ended: Vec<ListNumber>,
}

/// Combinations of lists, each once.
#[derive(Debug, Default)]
struct Sets {
    numbers: BTreeMap<Arc<[ListNumber]>, SetNumber>,
    sets: Vec<Option<Set>>,
    free: Vec<SetNumber>,
}

#[derive(Debug)]
struct Set {
    lists: Arc<[ListNumber]>,
    /// Number of topics that have it.
    topics: usize,
}

/// All lists. See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Wants {
    logs: BTreeMap<LogId, LogWants>,
    total: usize,
    /// Number of topics in parts of edits that are not whole yet.
    waiting: usize,
    /// Lists that have ended, and the last topic of their log that was looked at.
    sweeping: VecDeque<(ListKey, Option<TopicHash>)>,
}

/// A reader's list, and what is known of an edit that is not whole.
#[derive(Debug)]
pub(super) struct Wanting {
    /// `None`: there is no room for lists, and everything is given.
    list: Option<ListKey>,
    parts: Vec<WantEdit>,
    /// Number of topics that the parts add.
    waiting: usize,
    /// There was no room for a part.
    is_refused: bool,
    /// An edit has taken effect: the reader may begin.
    pub(super) has_begun: bool,
}

impl Wants {
    /// A reader's list, of nothing, where no more than `max` topics may be wanted. `None`: as many are open, or being swept up, as there can be.
    pub(super) fn begin(&mut self, log: LogId, max: usize) -> Option<Box<Wanting>> {
        if max == 0 {
            return Some(Wanting::of(None));
        }
        let of_log = self.logs.entry(log).or_default();
        let number = (0..=ListNumber::MAX)
            .find(|number| !of_log.lists.contains_key(number) && !of_log.ended.contains(number))?;
        of_log.lists.insert(number, 0);
        Some(Wanting::of(Some(ListKey { log, number })))
    }

    /// Takes an edit, or a part of one, where no more than `max` topics may be wanted. When it is whole: whether it
    /// has taken effect.
    pub(super) fn take(
        &mut self,
        wanting: &mut Wanting,
        edit: WantEdit,
        max: usize,
    ) -> Option<bool> {
        let more = edit.more;
        let Some(list) = wanting.list else {
            // Input: a reader that is given everything, as soon as anything is wanted of it.
            wanting.has_begun |= !more;
            return (!more).then_some(true);
        };
        let known = self.total + self.waiting;
        wanting.is_refused |= known + edit.add.len() > max;
        if !wanting.is_refused {
            self.waiting += edit.add.len();
            wanting.waiting += edit.add.len();
            wanting.parts.push(edit);
        }
        if more {
            return None;
        }
        self.waiting -= std::mem::take(&mut wanting.waiting);
        let parts = std::mem::take(&mut wanting.parts);
        if std::mem::take(&mut wanting.is_refused) {
            return Some(false);
        }
        for part in &parts {
            self.edit(list, part);
        }
        wanting.has_begun = true;
        Some(true)
    }

    /// Changes a list: what is dropped first, then what is added.
    fn edit(&mut self, key: ListKey, edit: &WantEdit) {
        let Some(of_log) = self.logs.get_mut(&key.log) else {
            bug!("{key:?} has ended");
            return;
        };
        let mut change = 0;
        for topic in &edit.drop {
            change -= isize::from(of_log.change(*topic, key.number, false));
        }
        for topic in &edit.add {
            change += isize::from(of_log.change(*topic, key.number, true));
        }
        if let Some(count) = of_log.lists.get_mut(&key.number) {
            *count = count.saturating_add_signed(change);
        }
        self.total = self.total.saturating_add_signed(change);
    }

    /// Whether a topic is on a list.
    fn wants(&self, key: ListKey, topic: TopicHash) -> bool {
        let of_log = self.logs.get(&key.log);
        of_log.is_some_and(|of_log| {
            let set = of_log.topics.get(&topic);
            set.is_some_and(|set| of_log.sets.lists(*set).contains(&key.number))
        })
    }

    /// Cuts a batch to what is on a list; with it the bytes that were left out.
    pub(super) fn cut(&self, wanting: &Wanting, completion: Completion) -> (Completion, u64) {
        let (key, r, mut stored) = match (wanting.list, completion) {
            (Some(key), Completion::Batch { r, stored }) => (key, r, stored),
            (_, other) => return (other, 0),
        };
        let topics = stored.batch.topic_hashes();
        let wanted: SmallVec<[bool; 16]> = topics.map(|topic| self.wants(key, topic)).collect();
        if wanted.iter().all(|wanted| *wanted) {
            return (Completion::Batch { r, stored }, 0);
        }
        let bytes = stored.batch.bytes().len() as u64;
        let cut = stored.batch.slice(|_, topic| wanted[usize::from(topic)]);
        let Some(cut) = cut else {
            // Input: a batch of which nothing is wanted.
            let (extent, why) = (stored.extent, GapWhy::Unused);
            return (Completion::Gap { r, extent, why }, bytes);
        };
        stored.batch = cut.to_batch();
        let left_out = bytes.saturating_sub(stored.batch.bytes().len() as u64);
        (Completion::Batch { r, stored }, left_out)
    }

    /// Ends a reader's list.
    pub(super) fn end(&mut self, wanting: &Wanting) {
        self.waiting -= wanting.waiting;
        let Some(key) = wanting.list else {
            // Input: a reader that was given everything.
            return;
        };
        let Some(of_log) = self.logs.get_mut(&key.log) else {
            bug!("{key:?} has ended");
            return;
        };
        self.total -= of_log.lists.remove(&key.number).unwrap_or(0);
        of_log.ended.push(key.number);
        self.sweeping.push_back((key, None));
    }

    /// Sweeps up some of what ended lists have left; whether there is more.
    pub(super) fn sweep(&mut self) -> bool {
        let Some((key, after)) = self.sweeping.front_mut() else {
            // Input: lists that are all open.
            return false;
        };
        let ListKey { log, number } = *key;
        let Some(of_log) = self.logs.get_mut(&log) else {
            bug!("{log} is swept, and has no lists");
            self.sweeping.pop_front();
            return true;
        };
        match of_log.sweep(*after, number) {
            Some(topic) => *after = Some(topic),
            None => {
                of_log.ended.retain(|one| *one != number);
                if of_log.lists.is_empty() && of_log.ended.is_empty() {
                    self.logs.remove(&log);
                }
                self.sweeping.pop_front();
            }
        }
        !self.sweeping.is_empty()
    }

    /// Asserts the invariants of the module's documentation.
    pub(super) fn check(&self) {
        let mut total = 0;
        for (log, of_log) in &self.logs {
            let open: usize = of_log.lists.values().sum();
            total += open;
            let sets = of_log.sets.sets.iter().flatten();
            let counted: usize = sets.map(|set| set.topics).sum();
            assert_eq!(counted, of_log.topics.len(), "topics of sets of {log}");
            let names = of_log.sets.numbers.len();
            let sets = of_log.sets.sets.iter().flatten().count();
            assert_eq!(names, sets, "sets of {log}");
        }
        assert_eq!(self.total, total, "topics on open lists");
    }
}

impl LogWants {
    /// Puts a topic on a list, or takes it off; whether that changes anything.
    fn change(&mut self, topic: TopicHash, number: ListNumber, is_wanted: bool) -> bool {
        let before = self.topics.get(&topic).copied();
        let lists = before.map_or(&[][..], |set| self.sets.lists(set));
        if lists.contains(&number) == is_wanted {
            return false;
        }
        let mut lists: Vec<ListNumber> = lists.to_vec();
        if is_wanted {
            lists.push(number);
            lists.sort_unstable();
        } else {
            lists.retain(|one| *one != number);
        }
        self.put(topic, before, &lists);
        true
    }

    fn put(&mut self, topic: TopicHash, before: Option<SetNumber>, lists: &[ListNumber]) {
        if lists.is_empty() {
            self.topics.remove(&topic);
        } else {
            let set = self.sets.take(lists);
            self.topics.insert(topic, set);
        }
        if let Some(before) = before {
            self.sets.give_back(before);
        }
    }

    /// Takes some topics off a list that has ended; the last topic that was looked at, unless that was all.
    fn sweep(&mut self, after: Option<TopicHash>, ended: ListNumber) -> Option<TopicHash> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.topics.range((from, Bound::Unbounded)).take(SWEEP_MAX);
        let some: Vec<(TopicHash, SetNumber)> = next.map(|(topic, set)| (*topic, *set)).collect();
        for (topic, set) in &some {
            let lists = self.sets.lists(*set);
            if lists.contains(&ended) {
                let left = lists.iter().filter(|number| **number != ended);
                let left: Vec<ListNumber> = left.copied().collect();
                self.put(*topic, Some(*set), &left);
            }
        }
        some.last().map(|(topic, _)| *topic)
    }
}

impl Sets {
    fn lists(&self, number: SetNumber) -> &[ListNumber] {
        let set = self.sets.get(number as usize).and_then(Option::as_ref);
        set.map_or(&[][..], |set| &set.lists)
    }

    /// One more topic has the set of these lists.
    fn take(&mut self, lists: &[ListNumber]) -> SetNumber {
        let number = self.numbers.get(lists).copied();
        let number = number.unwrap_or_else(|| self.make(lists.into()));
        if let Some(set) = &mut self.sets[number as usize] {
            set.topics += 1;
        }
        number
    }

    fn make(&mut self, lists: Arc<[ListNumber]>) -> SetNumber {
        let number = self.free.pop().unwrap_or_else(|| {
            self.sets.push(None);
            u32::try_from(self.sets.len() - 1).unwrap_or(SetNumber::MAX)
        });
        self.numbers.insert(Arc::clone(&lists), number);
        self.sets[number as usize] = Some(Set { lists, topics: 0 });
        number
    }

    /// One topic less has a set.
    fn give_back(&mut self, number: SetNumber) {
        let Some(set) = &mut self.sets[number as usize] else {
            bug!("set {number} is nobody's");
            return;
        };
        set.topics -= 1;
        if set.topics == 0 {
            self.numbers.remove(&set.lists);
            self.sets[number as usize] = None;
            self.free.push(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_model::{Lane, LogIndex, NamespaceId};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const LOG: LogId = LogId {
        namespace: NamespaceId(1),
        lane: Lane::Normal,
        index: LogIndex(0),
    };
    const TOPICS: u8 = 12;

    #[derive(Clone, Debug)]
    enum Step {
        Begin,
        End(usize),
        Edit(usize, Vec<u8>, Vec<u8>),
        Sweep,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let topics = || prop::collection::vec(0..TOPICS, 0..6);
        let step = prop_oneof![
            Just(Step::Begin),
            any::<usize>().prop_map(Step::End),
            (any::<usize>(), topics(), topics())
                .prop_map(|(of, add, drop)| Step::Edit(of, add, drop)),
            (any::<usize>(), topics(), topics())
                .prop_map(|(of, add, drop)| Step::Edit(of, add, drop)),
            Just(Step::Sweep),
        ];
        prop::collection::vec(step, 1..60)
    }

    fn hashes(topics: &[u8]) -> Vec<TopicHash> {
        topics
            .iter()
            .map(|topic| TopicHash((*topic).into()))
            .collect()
    }

    proptest! {
        #[test]
        fn each_list_has_what_a_set_of_its_own_would_have(steps in steps()) {
            let mut wants = Wants::default();
            let mut model: Vec<(Box<Wanting>, BTreeSet<TopicHash>)> = Vec::new();
            for step in steps {
                match step {
                    Step::Begin => model.push((wants.begin(LOG, 1).expect("free"), BTreeSet::new())),
                    Step::Sweep => _ = wants.sweep(),
                    Step::End(of) if !model.is_empty() => {
                        let (wanting, _) = model.swap_remove(of % model.len());
                        wants.end(&wanting);
                    }
                    Step::Edit(of, add, drop) if !model.is_empty() => {
                        let of = of % model.len();
                        let (add, drop) = (hashes(&add), hashes(&drop));
                        let (wanting, set) = &mut model[of];
                        set.retain(|topic| !drop.contains(topic));
                        set.extend(&add);
                        let more = false;
                        let edit = WantEdit { add, drop, more };
                        prop_assert_eq!(wants.take(wanting, edit, usize::MAX), Some(true));
                    }
                    Step::End(_) | Step::Edit(..) => {}
                }
                wants.check();
                for (wanting, set) in &model {
                    for topic in hashes(&(0..TOPICS).collect::<Vec<_>>()) {
                        prop_assert_eq!(wants.wants(wanting.list.expect("a list"), topic), set.contains(&topic));
                    }
                }
            }
            for (wanting, _) in model {
                wants.end(&wanting);
            }
            while wants.sweep() {}
            prop_assert!(wants.logs.is_empty() && wants.total == 0 && wants.waiting == 0);
        }
    }
}
