//! Changes of filters that the node has not answered for.
//!
//! The filter before stays in force until the node says from which numbers on the new one is. If the connection is lost first,
//! or the subscription is requested anew for another reason, it goes on with the new filter from where it stands, and its user
//! is told so: what has come was held against the filter before.

use super::subscription_slot::Mode;
use super::{Event, PendingRequest, Subscriber, SubscriberOutput, SubscriptionKey};
use airmail_model::filter::Filter;
use airmail_model::frame::{Change, Generation, Places, State, SubscriptionId};
use airmail_model::{Error, ErrorCode};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Changes of one subscription.
#[derive(Debug, Default)]
struct OfSubscription {
    /// Those that were asked for, by the generation that each is to begin.
    asked: BTreeMap<Generation, Arc<Filter>>,
    /// Number of those before the subscription was requested, which its user has not been told of.
    overtaken: usize,
}

/// Changes of a stream's subscriptions, by number.
#[derive(Debug, Default)]
pub(super) struct Changes(BTreeMap<u32, OfSubscription>);

impl Changes {
    /// Forgets those of a subscription that has ended.
    pub(super) fn end(&mut self, index: u32) {
        self.0.remove(&index);
    }

    /// Takes the last filter that was asked for, as the subscription is requested anew.
    pub(super) fn overtake(&mut self, index: u32) -> Option<Arc<Filter>> {
        let of = self.0.get_mut(&index)?;
        of.overtaken += of.asked.len();
        let (_, last) = std::mem::take(&mut of.asked).pop_last()?;
        Some(last)
    }

    /// Gives how many are in force as the subscription is requested, once.
    pub(super) fn take_overtaken(&mut self, index: u32) -> usize {
        let of = self.0.remove(&index);
        of.map_or(0, |of| of.overtaken)
    }

    /// Makes the request of a change; `None` if it has been overtaken.
    pub(super) fn request(&self, index: u32, generation: Generation) -> Option<Change> {
        let filter = self.0.get(&index)?.asked.get(&generation)?;
        Some(Change {
            subscription: SubscriptionId(index),
            generation,
            filter: Arc::clone(filter),
        })
    }

    /// Takes the filter that was asked for with this generation.
    fn take(&mut self, index: u32, generation: Generation) -> Option<Arc<Filter>> {
        let of = self.0.get_mut(&index)?;
        let filter = of.asked.remove(&generation);
        if of.asked.is_empty() && of.overtaken == 0 {
            self.0.remove(&index);
        }
        filter
    }

    /// Lists the generations that were asked for, by subscription.
    pub(super) fn asked(&self) -> impl Iterator<Item = (u32, Generation)> {
        let all = self.0.iter();
        all.flat_map(|(index, of)| of.asked.keys().map(|generation| (*index, *generation)))
    }
}

impl Subscriber {
    /// Gives a subscription another filter. Each change is answered once, in order, by a status of the subscription:
    /// [`State::Changed`] or [`State::Unchanged`].
    pub fn change(&mut self, key: SubscriptionKey, filter: Arc<Filter>) {
        let nothing = SubscriberOutput::default();
        let check = self.begin_check(&nothing);
        if self.slot(key).is_none() {
            // Input: a key whose subscription has ended by itself.
            return;
        }
        let index = key.index();
        let slot = &mut self.slots[index as usize];
        let of = self.changes.0.entry(index).or_default();
        if slot.mode == Mode::Requested {
            let generation = Generation(slot.next_generation());
            of.asked.insert(generation, filter);
            self.pending
                .push_back(PendingRequest::Change(index, generation));
        } else {
            of.overtaken += 1;
            slot.filter = Some(filter);
        }
        self.end_check(check, 0, &nothing);
    }

    /// Takes the node's answer to a change.
    pub(super) fn change_answered(
        &mut self,
        (id, generation): (SubscriptionId, Generation),
        answer: Result<Places, Error>,
        out: &mut SubscriberOutput,
    ) {
        let index = id.0;
        let Some(filter) = self.changes.take(index, generation) else {
            // Input: the answer to a change that has been overtaken.
            return;
        };
        let slot = &mut self.slots[index as usize];
        let state = match answer {
            Ok(_) if generation.0 <= slot.generation => {
                let overtaken = Error::new(ErrorCode::SubscriptionInvalid).field("generation");
                State::Unchanged(overtaken.value(generation.0).limit(slot.generation))
            }
            Ok(places) => {
                slot.generation = generation.0;
                slot.filter = Some(filter);
                for place in &places {
                    let stands = slot.place(place.log.lane);
                    let is_there = stands.is_some_and(|at| {
                        (at.log, at.incarnation) == (place.log, place.incarnation)
                    });
                    if is_there {
                        slot.advance(place.log.lane, place.next);
                    }
                }
                // It may have got further than its node knows.
                let places = self.places(self.key(index)).collect();
                State::Changed { places }
            }
            Err(error) => State::Unchanged(error),
        };
        out.events.push((self.key(index), Event::Status(state)));
    }
}
