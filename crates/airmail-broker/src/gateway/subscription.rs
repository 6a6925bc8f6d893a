//! Subscriptions: what is kept of each while it is live.
//!
//! 40 bytes and two table places (its session's and its topic's), whatever its state and however many lanes
//! it is live in; a part that is behind has a [`super::behind::Behind`] besides. The live subscriptions of a
//! topic form a list through this table, whose head is in the [`super::tail_subscriptions::Tail`]; one that is
//! live in no lane is in none, and keeps the key of a record in the links' place. Where it has another record
//! that one is known to [`super::parts`].

use super::filters::Filters;
use super::scope::{FilteredPlace, Scope, Selection, SlotLogs};
use super::selectors::Selectors;
use super::tail_subscriptions::ListKey;
use crate::keys::{BehindKey, LiveAt, SelectorKey, SessionKey, SubKey, TailKey};
use airmail_model::frame::{Generation, SubscriptionId};
use airmail_model::{Lane, NamespaceId, TopicHash};
use hashbrown::HashSet;
use slab::Slab;

const _: () = assert!(size_of::<Subscription>() == 40);
/// A place of a slab, which finds room for its own mark in the keys.
const _: () = assert!(size_of::<Result<Subscription, usize>>() == 40);

/// One subscription. What it is for is kept in words of four bytes for its alignment's sake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subscription {
    /// Its topic; or its namespace, slot and selector.
    scope: [u32; 4],
    /// Its number on its stream.
    pub(crate) id: SubscriptionId,
    /// The use of the number.
    pub(crate) generation: Generation,
    /// The session that has it.
    pub(crate) session: SessionKey,
    /// The tail where its topic lives, and the lanes in which it is live there.
    live_at: LiveAt,
    /// Neighbours in its topic's list while it is live in some lane; else a record, and [`SubKey::BEHIND`].
    pub(crate) before: SubKey,
    pub(crate) after: SubKey,
}

impl Subscription {
    /// A subscription that is not live, and has no record yet.
    pub(crate) fn new(
        scope: Scope,
        id: SubscriptionId,
        generation: Generation,
        session: SessionKey,
        tail: TailKey,
    ) -> Subscription {
        let words = match scope {
            Scope::Topic(topic) => [0, 1, 2, 3].map(|n: u32| (topic.0 >> (32 * n)) as u32),
            Scope::Selected(Selection { logs, selector }) => {
                let selector = u32::try_from(selector.place()).unwrap_or(u32::MAX);
                [logs.namespace.0, logs.slot.into(), selector, 0]
            }
        };
        Subscription {
            scope: words,
            id,
            generation,
            session,
            live_at: LiveAt::not_live(tail, scope.selection().is_some()),
            before: SubKey::NONE,
            after: SubKey::NONE,
        }
    }

    /// The tail where its topic lives: the one at which it is live, or was to become live last.
    pub(crate) fn tail(&self) -> TailKey {
        self.live_at.tail()
    }

    /// Goes to another tail; it is live in no lane.
    pub(crate) fn set_tail(&mut self, tail: TailKey) {
        self.live_at = LiveAt::not_live(tail, self.live_at.selects());
    }

    /// Whether it is live in any lane.
    pub(crate) fn is_live(&self) -> bool {
        self.live_at.is_in_any()
    }

    /// Whether it is live in a lane.
    pub(crate) fn is_live_in(&self, lane: Lane) -> bool {
        self.live_at.is_in(lane)
    }

    /// Becomes live in a lane, or is that no longer.
    pub(crate) fn set_live_in(&mut self, lane: Lane, is_live: bool) {
        self.live_at = if is_live {
            self.live_at.with(lane)
        } else {
            self.live_at.without(lane)
        };
    }

    /// The record of a part while no part of it is live.
    pub(crate) fn behind(&self) -> Option<BehindKey> {
        (self.after == SubKey::BEHIND).then(|| self.before.to_behind())
    }

    /// Gets a record, or loses it; it is in no list.
    pub(crate) fn set_behind(&mut self, behind: Option<BehindKey>) {
        (self.before, self.after) = match behind {
            Some(behind) => (behind.to_neighbour(), SubKey::BEHIND),
            None => (SubKey::NONE, SubKey::NONE),
        };
    }

    /// The messages that it is for.
    pub(crate) fn scope(&self) -> Scope {
        if self.live_at.selects() {
            let [namespace, slot, selector, _] = self.scope;
            return Scope::Selected(Selection {
                logs: SlotLogs {
                    namespace: NamespaceId(namespace),
                    slot: u16::try_from(slot).unwrap_or(u16::MAX),
                },
                selector: SelectorKey::new(selector as usize),
            });
        }
        let words = self.scope.iter().rev();
        let topic = words.fold(0, |hash, word| hash << 32 | u128::from(*word));
        Scope::Topic(TopicHash(topic))
    }

    /// Whether it is for `scope`.
    pub(crate) fn is_of(&self, scope: Scope) -> bool {
        self.scope() == scope
    }
}

/// Every subscription of the gateway.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    slab: Slab<Subscription>,
    /// Those that are to be told of what has expired: only looked up, never walked.
    told_of_expiry: HashSet<SubKey>,
    /// Filters of those that have one.
    pub(super) filters: Filters,
    /// Selectors of those that are selections.
    pub(super) selectors: Selectors,
    /// Places that a stream has for one of its subscriptions alone: only looked up, never walked.
    alone: HashSet<(SessionKey, FilteredPlace)>,
}

impl Subscriptions {
    /// None yet. So many filters of a place are few.
    pub(super) fn new(filters_few: usize) -> Subscriptions {
        Subscriptions {
            filters: Filters::new(filters_few),
            ..Subscriptions::default()
        }
    }

    /// Puts one in.
    pub(crate) fn insert(&mut self, subscription: Subscription) -> SubKey {
        SubKey::new(self.slab.insert(subscription))
    }

    /// Takes one out; it is in no list any more.
    pub(crate) fn remove(&mut self, key: SubKey) -> Subscription {
        self.told_of_expiry.remove(&key);
        let sub = self.slab.remove(key.place());
        let scope = sub.scope();
        self.filters.remove(key, scope.filtered_place());
        self.alone.remove(&(sub.session, scope.filtered_place()));
        if let Some(selection) = scope.selection() {
            self.selectors.remove(selection);
        }
        sub
    }

    /// Keeps a place of a stream for this subscription, which has a filter, or is a selection, and is not told of whom
    /// messages are for.
    pub(super) fn keep_alone(&mut self, key: SubKey) {
        let sub = &self[key];
        let place = (sub.session, sub.scope().filtered_place());
        self.alone.insert(place);
    }

    /// Whether a stream has this place for one of its subscriptions alone.
    pub(super) fn is_alone(&self, session: SessionKey, place: FilteredPlace) -> bool {
        self.alone.contains(&(session, place))
    }

    /// Every one, in order of key.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SubKey, &Subscription)> {
        self.slab
            .iter()
            .map(|(place, sub)| (SubKey::new(place), sub))
    }

    /// The list of a tail in which it is while it is live.
    pub(super) fn list_of(&self, key: SubKey) -> ListKey {
        ListKey {
            scope: self[key].scope(),
            filter: self.filters.of(key),
        }
    }

    /// A subscription, if it is there.
    pub(super) fn get(&self, key: SubKey) -> Option<&Subscription> {
        self.slab.get(key.place())
    }

    /// Number of subscriptions.
    pub(crate) fn len(&self) -> usize {
        self.slab.len()
    }

    /// Has one told of what has expired.
    pub(crate) fn tell_of_expiry(&mut self, key: SubKey) {
        self.told_of_expiry.insert(key);
    }

    /// Whether one is to be told of what has expired.
    pub(crate) fn is_told_of_expiry(&self, key: SubKey) -> bool {
        self.told_of_expiry.contains(&key)
    }
}

impl std::ops::Index<SubKey> for Subscriptions {
    type Output = Subscription;

    fn index(&self, key: SubKey) -> &Subscription {
        &self.slab[key.place()]
    }
}

impl std::ops::IndexMut<SubKey> for Subscriptions {
    fn index_mut(&mut self, key: SubKey) -> &mut Subscription {
        &mut self.slab[key.place()]
    }
}
