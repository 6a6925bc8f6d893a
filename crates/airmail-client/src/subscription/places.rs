//! Where subscriptions go on after what their user was given. The core counts what has arrived; what of it was not given is
//! still to come.

use super::arrived::Arrived;
use crate::core::{Event, Subscriber, SubscriptionKey};
use crate::received::{BatchCursor, in_order};
use airmail_model::Lane;
use airmail_model::position::LogPosition;
use std::sync::Arc;

/// Number of places of a subscription: one in each lane.
const LANES: usize = Lane::ALL.len();

/// Places of all subscriptions of a stream, by subscription and lane.
#[derive(Debug)]
pub(super) struct Places(Vec<Option<LogPosition>>);

impl Places {
    /// Sets where a subscription goes on in the lane of this place.
    pub(super) fn set(&mut self, key: SubscriptionKey, at: LogPosition) {
        if let Some(place) = self.0.get_mut(cell(key, at.log.lane)) {
            *place = Some(at);
        }
    }

    /// Tells whether each subscription has a place.
    pub(super) fn are_known(&self) -> bool {
        let mut subscriptions = self.0.chunks(LANES);
        subscriptions.all(|lanes| lanes.iter().any(Option::is_some))
    }

    /// Lists them all, in order of log, each log once: where the least of it was given.
    pub(super) fn all(self) -> Vec<LogPosition> {
        let mut all: Vec<LogPosition> = self.0.into_iter().flatten().collect();
        in_order(&mut all);
        all
    }

    /// Gives those that a message bears which a subscription gets in a lane: all but this one's.
    pub(super) fn beside(mut self, key: SubscriptionKey, lane: Lane) -> Arc<[Option<LogPosition>]> {
        if let Some(place) = self.0.get_mut(cell(key, lane)) {
            *place = None;
        }
        self.0.into()
    }
}

fn cell(key: SubscriptionKey, lane: Lane) -> usize {
    key.index() as usize * LANES + lane as usize
}

/// Finds the places of all subscriptions of a stream: by the core's account, or before the first of these events that concerns
/// them there. It is one look at each event, however many logs there are.
pub(super) fn places(core: &Subscriber, keys: &[SubscriptionKey], events: &Arrived) -> Places {
    let mut places = Places(vec![None; keys.len() * LANES]);
    for key in keys {
        for at in core.places(*key) {
            places.set(*key, at);
        }
    }
    for (key, event) in events.by_lane().rev() {
        if let Some(at) = place_before(event, *key) {
            places.set(*key, at);
        }
    }
    places
}

/// Gives a subscription's place in a lane before the first of these events that concerns it there.
pub(super) fn first_place(
    events: &Arrived,
    key: SubscriptionKey,
    lane: Lane,
) -> Option<LogPosition> {
    let mut places = events
        .of_lane(lane)
        .filter_map(|(owner, event)| match event {
            // Of a batch that is given once for all, anybody's key may be the event's.
            Event::Messages(_) => place_before(event, key),
            _ if *owner == key => place_before(event, key),
            _ => None,
        });
    places.next()
}

/// Finds where a subscription goes on in each lane, after what its user was given: where its next message is, in the batch that
/// is read or in an event, or else by the core's account. `None` before that is known.
pub(super) fn places_of(
    core: &Subscriber,
    key: SubscriptionKey,
    reading: Option<&BatchCursor>,
    events: &Arrived,
) -> Option<Vec<LogPosition>> {
    let known = core.position(key).map(|position| position.logs);
    let reading = reading.and_then(|reading| reading.place_of(key));
    let arrived = Lane::ALL.map(|lane| {
        let reading = reading.filter(|at| at.log.lane == lane);
        reading.or_else(|| first_place(events, key, lane))
    });
    if arrived.iter().all(Option::is_none) {
        return known;
    }
    let known = known.unwrap_or_default();
    let in_lane = |lane| known.iter().find(|at| at.log.lane == lane).copied();
    let places = Lane::ALL.into_iter().zip(arrived);
    let places = places.filter_map(|(lane, arrived)| arrived.or_else(|| in_lane(lane)));
    Some(places.collect())
}

/// Gives the place of a subscription before what an event gives it.
fn place_before(event: &Event, key: SubscriptionKey) -> Option<LogPosition> {
    match event {
        Event::Messages(received) => received.place_before(key, 0),
        Event::Gap(gap) => Some(LogPosition {
            log: gap.log,
            incarnation: gap.incarnation,
            next: gap.extent.first,
        }),
        Event::Expired(_) | Event::Status(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{GapSeen, SubscriberConfig, SubscriberOutput, SubscriptionSpec};
    use airmail_model::frame::{GapReason, Reply, Request, Start, State, Wanted};
    use airmail_model::selector::Selector;
    use airmail_model::{
        Extent, Incarnation, LogId, LogIndex, Mono, NamespaceId, Sequence, TopicHash,
    };

    const LIFE: Incarnation = Incarnation(7);

    fn spec(wanted: Wanted, start: Start) -> SubscriptionSpec {
        SubscriptionSpec {
            namespace: NamespaceId(1),
            wanted,
            start,
            until: None,
            tell_expired: false,
            filter: None,
            headers_only: false,
        }
    }

    fn log(lane: Lane, index: u16) -> LogId {
        LogId {
            namespace: NamespaceId(1),
            lane,
            index: LogIndex(index),
        }
    }

    fn gap(log: LogId, first: u64) -> Event {
        Event::Gap(GapSeen {
            log,
            incarnation: LIFE,
            extent: Extent {
                first: Sequence(first),
                last: Sequence(first),
            },
            why: GapReason::Retention,
        })
    }

    /// A selection of two logs, which a node has made live in both, each at its number.
    fn selection(start: &Start, nexts: [u64; 2]) -> (Subscriber, [SubscriptionKey; 2]) {
        let mut core = Subscriber::new(SubscriberConfig::default());
        let keys = [0, 1].map(|place| {
            let selected = Wanted::Selected {
                log: Some(place),
                selector: Arc::new(Selector::All),
            };
            core.add(spec(selected, start.clone()))
        });
        core.connected();
        let mut out = SubscriberOutput::default();
        core.poll(Mono(0), &mut out);
        let adds: Vec<Request> = out.requests.drain(..).collect();
        for ((place, next), add) in (0u16..).zip(nexts).zip(adds) {
            let Request::Add(add) = add else {
                panic!("{add:?}");
            };
            let status = Reply::Status {
                subscription: add.subscription,
                generation: add.generation,
                state: State::live(LogPosition {
                    log: log(Lane::Normal, place),
                    incarnation: LIFE,
                    next: Sequence(next),
                }),
            };
            core.reply(Mono(0), status, &mut out);
        }
        (core, keys)
    }

    fn arrived<const N: usize>(events: [(SubscriptionKey, Event); N]) -> Arrived {
        let mut arrived = Arrived::default();
        arrived.extend(events);
        arrived
    }

    fn numbers(places: &[LogPosition]) -> Vec<(u16, u64)> {
        let places = places.iter();
        places.map(|at| (at.log.index.0, at.next.0)).collect()
    }

    #[test]
    fn what_has_arrived_in_a_lane_and_was_not_given_is_still_to_come() {
        let mut core = Subscriber::new(SubscriberConfig::default());
        let [one, other] = [1, 2].map(|hash| {
            let topic = Wanted::Topic(TopicHash(hash));
            core.add(spec(topic, Start::Latest))
        });
        let events = [(Lane::High, 7), (Lane::Normal, 3), (Lane::High, 12)];
        let events = events.map(|(lane, first)| (one, gap(log(lane, 0), first)));
        let events = arrived(events);
        let next = |key, lane| first_place(&events, key, lane).map(|at| at.next.0);
        assert_eq!(next(one, Lane::High), Some(7));
        assert_eq!(next(one, Lane::Normal), Some(3));
        assert_eq!(next(other, Lane::High), None);
    }

    #[test]
    fn a_selection_goes_on_in_each_log_before_what_was_not_given_of_it() {
        let (core, keys) = selection(&Start::Latest, [10, 70]);
        let none = Arrived::default();
        let all = places(&core, &keys, &none).all();
        assert_eq!(numbers(&all), [(0, 10), (1, 70)]);
        let events = [(0, 8), (0, 9), (1, 60)];
        let events = events.map(|(place, first)| {
            let in_log = gap(log(Lane::Normal, place), first);
            (keys[usize::from(place)], in_log)
        });
        let events = arrived(events);
        let all = places(&core, &keys, &events).all();
        assert_eq!(numbers(&all), [(0, 8), (1, 60)]);
        let others = places(&core, &keys, &events).beside(keys[0], Lane::Normal);
        let others: Vec<LogPosition> = others.iter().flatten().copied().collect();
        assert_eq!(numbers(&others), [(1, 60)]);
    }

    #[test]
    fn a_log_that_has_not_got_to_the_number_of_its_start_has_no_place() {
        let (core, keys) = selection(&Start::Sequence(Sequence(50)), [10, 50]);
        let none = Arrived::default();
        let known = places(&core, &keys, &none);
        assert!(!known.are_known());
        assert_eq!(numbers(&known.all()), [(1, 50)]);
    }

    #[test]
    fn a_log_is_named_once_by_the_least_that_was_given_of_it() {
        let (_, keys) = selection(&Start::Latest, [10, 70]);
        let mut places = Places(vec![None; 2 * LANES]);
        for (key, next) in keys.into_iter().zip([9, 5]) {
            let at = LogPosition {
                log: log(Lane::Normal, 0),
                incarnation: LIFE,
                next: Sequence(next),
            };
            places.set(key, at);
        }
        assert_eq!(numbers(&places.all()), [(0, 5)]);
    }
}
