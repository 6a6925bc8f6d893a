//! The SDK's subscriber: whatever a node says, in whatever order, it does not panic, its invariants
//! hold after each step ([`Subscriber::check`]), it gives its user no number twice or out of order,
//! reports nothing of a subscription that was removed, and gives back no more credit than was used.

#![no_main]

use airmail_client::core::{
    Event, Subscriber, SubscriberConfig, SubscriberOutput, SubscriptionKey, SubscriptionSpec,
};
use airmail_fuzz::fuzz_target;
use airmail_fuzz::number::number;
use airmail_fuzz::wish;
use airmail_model::batch::BatchTarget;
use airmail_model::frame::{
    Channel, Delivered, Delivery, Expired, GapReason, Generation, Matches, Reply, Start, State,
    SubscriptionId, Until, Wanted,
};
use airmail_model::position::LogPosition;
use airmail_model::selector::Selector;
use airmail_model::verdict::ClockReading;
use airmail_model::{
    AppendTime, Batch, BatchEncoder, Checked, Error, ErrorCode, Incarnation, Lane, Limits, LogId,
    LogIndex, LogMap, MapEpoch, Message, Mono, NamespaceId, Sequence, TopicName,
};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

const NAMESPACE: NamespaceId = NamespaceId(1);

/// A batch of several topics, and one of a single topic, in each lane.
static BATCHES: LazyLock<[[Checked<Batch>; 2]; 2]> = LazyLock::new(|| {
    [LOG, HIGH].map(|log| [batch(log, &["a", "b", "a", "c"]), batch(log, &["a"])])
});

#[derive(Arbitrary, Debug)]
enum Step {
    Add {
        topic: u8,
        start: u8,
        at: u8,
        until: Option<u8>,
    },
    Remove {
        which: u8,
    },
    Change {
        which: u8,
        filter: u8,
    },
    Connect,
    Disconnect,
    Poll {
        later: u16,
    },
    Consume {
        bytes: u16,
    },
    Map {
        epoch: u8,
    },
    Delivery {
        channel: (u8, u8),
        previous: u8,
        more: u8,
        base: u8,
        one: bool,
        clock: Option<u8>,
        /// For whom the messages are, on a stream that is told.
        named: u8,
        high: bool,
    },
    Clock {
        asked: u16,
        node: u8,
    },
    Expired {
        which: (u8, u8),
        first: u8,
        more: u8,
        high: bool,
    },
    Gap {
        channel: (u8, u8),
        previous: u8,
        more: u8,
        why: u8,
        high: bool,
    },
    Mark {
        previous: u8,
        next: u8,
        high: bool,
    },
    Status {
        which: (u8, u8),
        life: u8,
        next: u8,
        state: u8,
        high: bool,
    },
}

fn topic(name: &str) -> TopicName {
    TopicName::new(name, &Limits::DEFAULT).expect("a name")
}

/// Every topic's log of lane normal: one, because a topic is in one log of a lane, and a node that tells of it on two is
/// not what this is about.
const LOG: LogId = LogId {
    namespace: NAMESPACE,
    lane: Lane::Normal,
    index: LogIndex(0),
};
/// The log of lane high beside it.
const HIGH: LogId = LogId {
    lane: Lane::High,
    ..LOG
};

fn log(is_high: bool) -> LogId {
    if is_high { HIGH } else { LOG }
}

fn batch(log: LogId, topics: &[&str]) -> Checked<Batch> {
    let mut encoder = BatchEncoder::new(NAMESPACE);
    for name in topics {
        let pushed = encoder.push(&Message::new(topic(name), "x"), 0, &Limits::DEFAULT);
        pushed.expect("it fits");
    }
    encoder.finish(&BatchTarget {
        log,
        epoch: MapEpoch(1),
        producer: None,
        producer_time: 0,
    })
}

/// Messages that a subscription is for: of a topic, or of a selection.
fn wanted(selects: bool, name: u8) -> Wanted {
    if selects {
        let (log, selector) = (Some(0), Arc::new(Selector::All));
        return Wanted::Selected { log, selector };
    }
    Wanted::Topic(topic(["a", "b", "d"][usize::from(name % 3)]).hash(NAMESPACE))
}

fn channel((which, generation): (u8, u8)) -> Channel {
    match which % 5 {
        0 => Channel::Live,
        n => Channel::Detached(
            SubscriptionId(u32::from(n) - 1),
            Generation(u32::from(generation % 4)),
        ),
    }
}

fn why(number: u8) -> GapReason {
    [GapReason::Unused, GapReason::Retention, GapReason::Loss][usize::from(number % 3)]
}

/// The subscriber under test, and what its user has been told.
struct World {
    subscriber: Subscriber,
    /// Whether its subscriptions are selections, as the first one decides.
    selects: Option<bool>,
    /// Whether the node says of each message for which subscriptions it is.
    matches: bool,
    /// Changes of filters that were asked for and not answered.
    changes: BTreeMap<SubscriptionKey, usize>,
    out: SubscriberOutput,
    keys: Vec<SubscriptionKey>,
    removed: BTreeSet<SubscriptionKey>,
    /// Life of the log, and the last number told, for each subscription and log.
    told: BTreeMap<(SubscriptionKey, LogId), (Incarnation, Sequence)>,
    owed: u64,
    now: Mono,
}

impl World {
    fn step(&mut self, step: Step) {
        match step {
            Step::Add {
                topic: name,
                start,
                at,
                until,
            } => self.add(name, start, at, until),
            Step::Remove { which } => {
                if let Some(&key) = self.keys.get(usize::from(which)) {
                    self.subscriber.remove(key);
                    self.removed.insert(key);
                }
            }
            Step::Change { which, filter } => {
                let key = self.keys.get(usize::from(which)).copied();
                let key = key.filter(|key| self.matches && !self.removed.contains(key));
                if let (Some(key), Some(filter)) = (key, wish::filter(filter)) {
                    self.subscriber.change(key, filter);
                    *self.changes.entry(key).or_default() += 1;
                }
            }
            Step::Connect => {
                self.subscriber.connected();
                self.owed = 0;
            }
            Step::Disconnect => self.subscriber.disconnected(),
            Step::Poll { later } => {
                self.now = Mono(self.now.0 + u64::from(later) * 1_000_000);
                self.subscriber.poll(self.now, &mut self.out);
            }
            Step::Consume { bytes } => self.subscriber.consumed(bytes.into()),
            Step::Map { epoch } => {
                let epoch = MapEpoch(epoch.into());
                self.subscriber
                    .set_map(&LogMap::even(NAMESPACE, epoch, LogIndex(0), 3));
            }
            other => self.reply(reply(other, self.matches)),
        }
        self.look();
    }

    fn add(&mut self, name: u8, start: u8, at: u8, until: Option<u8>) {
        let start = match start % 4 {
            0 => Start::Latest,
            1 => Start::Earliest,
            2 => Start::Sequence(Sequence(number(at))),
            _ => Start::Time(AppendTime(at.into())),
        };
        let selects = *self.selects.get_or_insert(name >= 128);
        if selects && !self.keys.is_empty() && !self.matches {
            // A stream has one selection of a log.
            return;
        }
        let wanted = SubscriptionSpec {
            namespace: NAMESPACE,
            wanted: wanted(selects, name),
            start,
            until: until.map(|until| Until::Sequence(Sequence(number(until)))),
            tell_expired: at % 2 == 0,
            filter: wish::filter(name).filter(|_| self.matches),
            headers_only: false,
        };
        self.keys.push(self.subscriber.add(wanted));
    }

    fn reply(&mut self, reply: Reply) {
        self.owed += u64::from(match &reply {
            Reply::Delivery(delivery) => delivery.cost(),
            Reply::Expired(expired) => expired.cost(),
            _ => 0,
        });
        self.subscriber.reply(self.now, reply, &mut self.out);
    }

    fn look(&mut self) {
        for request in self.out.requests.drain(..) {
            if let airmail_model::frame::Request::Credit { bytes } = request {
                assert!(u64::from(bytes) <= self.owed, "more credit than was used");
                self.owed -= u64::from(bytes);
            }
        }
        for (key, event) in std::mem::take(&mut self.out.events) {
            match event {
                Event::Messages(arrived) => {
                    let mut place = arrived.seek(0);
                    while let Some(at) = place {
                        let (sequence, _) = arrived.message(at);
                        let owners: Vec<_> = arrived.owners(at).collect();
                        assert!(!owners.is_empty());
                        for owner in owners {
                            assert!(self.matches || owner == key);
                            let life = (arrived.log, arrived.incarnation);
                            self.tell(owner, life, sequence, sequence);
                        }
                        place = arrived.seek(at + 1);
                    }
                }
                Event::Gap(gap) => {
                    let life = (gap.log, gap.incarnation);
                    self.tell(key, life, gap.extent.first, gap.extent.last);
                    assert!(gap.why != GapReason::Unused);
                }
                Event::Expired(_) => {
                    assert!(!self.removed.contains(&key), "told of after it was removed");
                }
                Event::Status(state) => self.stands(key, &state),
            }
        }
        for &key in &self.keys {
            let _ = self.subscriber.position(key);
        }
    }

    /// A node that says that the log has gone back to an earlier life counts anew in that.
    fn stands(&mut self, key: SubscriptionKey, state: &State) {
        assert!(*state != State::Removed);
        if matches!(state, State::Changed { .. } | State::Unchanged(_)) {
            let asked = self.changes.get_mut(&key);
            let asked = asked.filter(|asked| **asked > 0);
            *asked.expect("a change that was asked for") -= 1;
            return;
        }
        let is_last = matches!(state, State::Complete { .. });
        for place in state.places().iter().filter(|_| !is_last) {
            let at = (key, place.log);
            let told = self.told.get(&at);
            if told.is_some_and(|(life, _)| *life != place.incarnation) {
                self.told.remove(&at);
            }
        }
    }

    fn tell(
        &mut self,
        key: SubscriptionKey,
        (log, life): (LogId, Incarnation),
        first: Sequence,
        last: Sequence,
    ) {
        assert!(first <= last);
        assert!(!self.removed.contains(&key), "told of after it was removed");
        let before = self.told.insert((key, log), (life, last));
        if let Some((_, before)) = before.filter(|(known, _)| *known == life) {
            assert!(first > before, "{first} after {before}");
        }
    }
}

/// The subscriptions of each of so many messages: some of four, at least one.
fn named(which: u8, messages: u16) -> Option<Arc<Matches>> {
    let of =
        |place: u16| (0..4).filter(move |n| *n == 0 || (u16::from(which) + place) & (1 << n) != 0);
    let counts: Vec<u32> = (0..messages)
        .map(|place| of(place).count() as u32)
        .collect();
    let ids = (0..messages).flat_map(of).map(SubscriptionId);
    Matches::new(&counts, ids.collect()).map(Arc::new)
}

fn reply(step: Step, matches: bool) -> Reply {
    let after = |previous: u8, more: u8| {
        let previous = number(previous);
        let last = previous.saturating_add(u64::from(more % 16));
        (Sequence(previous), Sequence(last))
    };
    match step {
        Step::Delivery {
            channel: to,
            previous,
            more,
            base,
            one,
            clock,
            named: which,
            high,
        } => {
            let body = BATCHES[usize::from(high)][usize::from(one)].clone();
            let (previous, last) = after(previous, more);
            let base = number(base);
            Reply::Delivery(Delivery {
                channel: channel(to),
                log: log(high),
                previous,
                last,
                base: Sequence(base),
                appended: AppendTime(0),
                clock: clock.map(|clock| ClockReading {
                    clock: AppendTime(clock.into()),
                    at: Mono(clock.into()),
                }),
                matches: named(which, body.records())
                    .filter(|_| matches && channel(to) == Channel::Live),
                body: Delivered::Whole(body),
            })
        }
        Step::Gap {
            channel: to,
            previous,
            more,
            why: reason,
            high,
        } => {
            let (previous, last) = after(previous, more);
            Reply::Gap {
                channel: channel(to),
                log: log(high),
                previous,
                last,
                why: why(reason),
            }
        }
        Step::Clock { asked, node } => Reply::Clock {
            asked: Mono(u64::from(asked) * 1_000_000),
            node: Mono(node.into()),
        },
        Step::Expired {
            which: (which, generation),
            first,
            more,
            high,
        } => {
            let first = number(first);
            let last = first.saturating_add(u64::from(more % 4));
            Reply::Expired(Expired {
                subscription: SubscriptionId(which.into()),
                generation: Generation(generation.into()),
                log: log(high),
                numbers: (first..=last).map(Sequence).collect(),
            })
        }
        Step::Mark {
            previous,
            next,
            high,
        } => Reply::Mark {
            log: log(high),
            previous: Sequence(number(previous)),
            next: Sequence(number(next)),
        },
        Step::Status {
            which: (which, generation),
            life,
            next,
            state,
            high,
        } => {
            let [log, other] = [high, !high].map(log);
            let (incarnation, next) = (Incarnation(u64::from(life % 3)), Sequence(number(next)));
            let [place, other] = [log, other].map(|log| LogPosition {
                log,
                incarnation,
                next,
            });
            let state = match state % 8 {
                0 | 1 => State::live(place),
                2 => State::Detached {
                    log,
                    incarnation,
                    next,
                    resumed: life % 2 == 1,
                    lost_before: (life % 5 == 4)
                        .then(|| Sequence(next.0.saturating_add(u64::from(life)))),
                    beside: (life % 7 == 6).then_some(other),
                },
                3 => State::complete(place),
                4 => State::Removed,
                5 => State::Changed {
                    places: [place].into_iter().collect(),
                },
                6 => State::Unchanged(Error::new(ErrorCode::FilterTooComplex)),
                _ if next.0 % 2 == 0 => State::Failed(Error::new(ErrorCode::Overloaded)),
                _ => State::Failed(Error::new(ErrorCode::NamespaceNotFound)),
            };
            Reply::Status {
                subscription: SubscriptionId(u32::from(which % 4)),
                generation: Generation(u32::from(generation % 4)),
                state,
            }
        }
        _ => unreachable!("the other steps are no replies"),
    }
}

fuzz_target!(|input: (bool, Vec<Step>)| {
    let (matches, steps) = input;
    let config = SubscriberConfig {
        credit_bytes: 600,
        ..SubscriberConfig::default()
    };
    let mut world = World {
        selects: None,
        matches,
        changes: BTreeMap::new(),
        subscriber: if matches {
            Subscriber::new(config).matching()
        } else {
            Subscriber::new(config)
        },
        out: SubscriberOutput::default(),
        keys: Vec::new(),
        removed: BTreeSet::new(),
        told: BTreeMap::new(),
        owed: 0,
        now: Mono(1),
    };
    // Begun, so that short inputs get somewhere.
    world.subscriber.connected();
    world.step(Step::Add {
        topic: 0,
        start: 1,
        at: 0,
        until: None,
    });
    world.step(Step::Poll { later: 0 });
    for step in steps {
        world.step(step);
    }
});
