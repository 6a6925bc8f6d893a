//! Ranges of streams: whatever a node says on one, it leaves no hole.

use airmail_model::frame::{Channel, Generation, Reply, State, SubscriptionId};
use airmail_model::{LogId, Sequence};
use std::collections::BTreeMap;

/// A range of a stream on a log, or of a detached subscription there.
type Range = (u64, Option<(SubscriptionId, Generation)>, LogId);

/// Ranges, and the first number of each that has not been told.
#[derive(Debug, Default)]
pub struct Ranges {
    next: BTreeMap<Range, Sequence>,
}

impl Ranges {
    /// Takes a reply on a stream that has to do with ranges.
    ///
    /// # Panics
    /// If it leaves a hole, or is wrong by itself.
    pub fn told(&mut self, stream: u64, reply: &Reply) {
        match reply {
            Reply::Acked { .. } => {}
            Reply::Delivery(delivery) => {
                if let Some(matches) = &delivery.matches {
                    let records = delivery.body.to_batch().records();
                    assert_eq!(matches.messages(), usize::from(records));
                    assert_eq!(delivery.channel, Channel::Live);
                }
                let range = (stream, detached(delivery.channel), delivery.log);
                self.cover(range, delivery.previous, delivery.last.plus(1));
            }
            Reply::Expired(expired) => {
                assert!(!expired.numbers.is_empty() && expired.numbers.is_sorted());
            }
            // Nobody asks for it.
            Reply::Clock { .. } => panic!("a clock that was not asked for"),
            Reply::Gap {
                channel,
                log,
                previous,
                last,
                ..
            } => {
                self.cover((stream, detached(*channel), *log), *previous, last.plus(1));
            }
            Reply::Mark {
                log,
                previous,
                next,
            } => {
                self.cover((stream, None, *log), *previous, *next);
            }
            Reply::Status {
                subscription,
                generation,
                state,
            } => {
                match state {
                    State::Detached { log, next, .. } => {
                        let range = (stream, Some((*subscription, *generation)), *log);
                        self.next.insert(range, *next);
                    }
                    // The range may begin before; nothing it has told is taken back.
                    State::Live { places } => {
                        for place in places {
                            let range = (stream, None, place.log);
                            self.next.entry(range).or_insert(place.next);
                        }
                    }
                    State::Changed { places } => {
                        for place in places {
                            let of = |range: &&Range| {
                                let owner = range.1.map(|(id, _)| id);
                                (range.0, owner, range.2)
                                    == (stream, Some(*subscription), place.log)
                            };
                            if let Some(before) = self.next.keys().find(of).copied() {
                                let next = self.next.remove(&before);
                                let range = (stream, Some((*subscription, *generation)), place.log);
                                let next = next.map_or(place.next, |next| next.max(place.next));
                                self.next.insert(range, next);
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    fn cover(&mut self, range: Range, previous: Sequence, next: Sequence) {
        let known = self.next.get(&range).copied();
        if let Some(known) = known {
            assert!(
                previous < known,
                "a hole: after {previous}, where {known} is next"
            );
        }
        let next = known.map_or(next, |known| known.max(next));
        self.next.insert(range, next);
    }
}

fn detached(channel: Channel) -> Option<(SubscriptionId, Generation)> {
    match channel {
        Channel::Live => None,
        Channel::Detached(subscription, generation) => Some((subscription, generation)),
    }
}
