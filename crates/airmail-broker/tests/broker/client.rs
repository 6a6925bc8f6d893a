//! A client as strict as the protocol allows: it checks every range, every delivery's topics and
//! the credit, and keeps what each subscription got.

use airmail_model::batch::{Record, TopicEntry};
use airmail_model::frame::{
    Ack, Channel, DELIVERY_OVERHEAD_BYTES, Delivered, Delivery, GapReason, Generation, Matches,
    Refused, Reply, Start, State, SubscriptionId, Wanted,
};
use airmail_model::position::LogPosition;
use airmail_model::{Batch, Checked, ErrorCode, Extent, Incarnation, Lane, LogId, Mono, Sequence};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Mode {
    Asked,
    Live(LogId),
    Detached,
    Complete,
    Ended(State),
}

#[derive(Clone, Debug)]
pub(crate) struct Sub {
    pub(crate) generation: Generation,
    pub(crate) wanted: Wanted,
    pub(crate) mode: Mode,
    /// The first number not accounted for; `None` until a status says.
    pub(crate) next: Option<Sequence>,
    /// Where the node said that it begins.
    pub(crate) first: Option<Sequence>,
    pub(crate) incarnation: Incarnation,
    pub(crate) got: Vec<(Sequence, String)>,
    pub(crate) gaps: Vec<(Extent, GapReason)>,
    /// Numbers that were told to have expired.
    pub(crate) expired: Vec<Sequence>,
    pub(crate) history: Vec<&'static str>,
    /// Changes of its filter, and from which number on each is in force.
    pub(crate) changes: Vec<(Generation, Option<Sequence>)>,
    pub(crate) refusals: Vec<(Generation, ErrorCode)>,
}

impl Sub {
    fn wants(&self, topic: TopicEntry<'_>) -> bool {
        match &self.wanted {
            Wanted::Topic(wanted) => topic.hash == *wanted,
            Wanted::Selected { selector, .. } => selector.selects(topic.name),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) subs: BTreeMap<SubscriptionId, Sub>,
    pub(crate) ranges: BTreeMap<LogId, Sequence>,
    pub(crate) acks: Vec<(u64, Result<Ack, Refused>)>,
    pub(crate) credit: i64,
    /// Bytes of deliveries not yet given back.
    pub(crate) owed: u32,
    pub(crate) deliveries: usize,
    pub(crate) marks: usize,
    pub(crate) wholes: usize,
    /// Whether its deliveries have no payloads, as its first subscription asked.
    pub(crate) headers_only: Option<bool>,
    /// Whether its live deliveries say for whom each message is, as its first subscription asked.
    pub(crate) matches: Option<bool>,
    /// Subscriptions that a delivery has named, at most.
    pub(crate) named_max: usize,
    /// Readings of the node's clock.
    pub(crate) clocks: Vec<Mono>,
    /// Where its subscriptions stand in lane high, and what they got there, once the node has named a log of it.
    pub(crate) high: Option<Box<Client>>,
}

/// The lane that a reply is about, if it is about one alone.
fn lane_of(reply: &Reply) -> Option<Lane> {
    match reply {
        Reply::Delivery(delivery) => Some(delivery.log.lane),
        Reply::Gap { log, .. } | Reply::Mark { log, .. } => Some(log.lane),
        Reply::Status { state, .. } => state.places().first().map(|place| place.log.lane),
        _ => None,
    }
}

/// Splits a status that tells of both lanes.
fn split(state: State) -> (State, Option<State>) {
    match state {
        State::Live { places } if places.len() > 1 => {
            (State::live(places[0]), Some(State::live(places[1])))
        }
        State::Complete { places } if places.len() > 1 => {
            (State::complete(places[0]), Some(State::complete(places[1])))
        }
        State::Detached {
            log,
            incarnation,
            next,
            resumed,
            lost_before,
            beside: Some(beside),
        } => {
            let of = |at: LogPosition| State::Detached {
                log: at.log,
                incarnation: at.incarnation,
                next: at.next,
                resumed,
                lost_before,
                beside: None,
            };
            let first = LogPosition {
                log,
                incarnation,
                next,
            };
            (of(first), Some(of(beside)))
        }
        state => (state, None),
    }
}

impl Client {
    pub(crate) fn new(credit: u32) -> Client {
        Client {
            subs: BTreeMap::new(),
            ranges: BTreeMap::new(),
            acks: Vec::new(),
            credit: credit.into(),
            owed: 0,
            deliveries: 0,
            marks: 0,
            wholes: 0,
            headers_only: None,
            matches: None,
            named_max: 0,
            clocks: Vec::new(),
            high: None,
        }
    }

    /// Its account of lane high.
    fn high(&mut self) -> &mut Client {
        let subs = &self.subs;
        self.high.get_or_insert_with(|| {
            let mut high = Client::new(u32::MAX);
            for (id, sub) in subs {
                high.expect(id.0, &sub.wanted, &Start::Latest);
            }
            Box::new(high)
        })
    }

    /// Takes note of a subscription that is about to be asked for; gives its generation.
    pub(crate) fn expect(&mut self, n: u32, wanted: &Wanted, start: &Start) -> Generation {
        let before = self.subs.get(&SubscriptionId(n));
        let generation = Generation(before.map_or(1, |sub| sub.generation.0 + 1));
        let next = match start {
            Start::Sequence(sequence) => Some(*sequence),
            _ => None,
        };
        let sub = Sub {
            generation,
            wanted: wanted.clone(),
            mode: Mode::Asked,
            next,
            first: None,
            incarnation: Incarnation::default(),
            got: Vec::new(),
            gaps: Vec::new(),
            expired: Vec::new(),
            history: Vec::new(),
            changes: Vec::new(),
            refusals: Vec::new(),
        };
        self.subs.insert(SubscriptionId(n), sub);
        if let Some(high) = &mut self.high {
            high.expect(n, wanted, &Start::Latest);
        }
        generation
    }

    pub(crate) fn sub(&self, n: u32) -> &Sub {
        &self.subs[&SubscriptionId(n)]
    }

    pub(crate) fn payloads(&self, n: u32) -> Vec<&str> {
        self.sub(n)
            .got
            .iter()
            .map(|(_, text)| text.as_str())
            .collect()
    }

    /// The error with which a publish was refused, if it was.
    pub(crate) fn refused(&self, request: u64) -> Option<ErrorCode> {
        let mut acks = self.acks.iter();
        let (_, result) = acks.find(|(of, _)| *of == request).expect("answered");
        result.as_ref().err().map(|refused| refused.error.code())
    }

    /// The first number of a subscription that is not accounted for.
    pub(crate) fn position(&self, n: u32) -> Sequence {
        let sub = self.sub(n);
        let next = sub.next.expect("told");
        match sub.mode {
            Mode::Live(log) => next.max(self.ranges[&log]),
            _ => next,
        }
    }

    pub(crate) fn take(&mut self, mut reply: Reply) {
        if let Reply::Status {
            subscription,
            generation,
            state,
        } = reply
        {
            let (first, second) = split(state);
            if let Some(state) = second {
                self.high().status(subscription, generation, state);
            }
            reply = Reply::Status {
                subscription,
                generation,
                state: first,
            };
        }
        if lane_of(&reply) == Some(Lane::High) {
            if let Reply::Delivery(delivery) = &reply {
                assert!(self.credit > 0, "a delivery without credit");
                self.credit -= i64::from(delivery.cost());
                self.owed += delivery.cost();
            }
            return self.high().apply(reply);
        }
        self.apply(reply);
    }

    /// Takes a reply that is about its lane, or about none.
    fn apply(&mut self, reply: Reply) {
        match reply {
            Reply::Acked { request, result } => self.acks.push((request.0, result)),
            Reply::Status {
                subscription,
                generation,
                state,
            } => self.status(subscription, generation, state),
            Reply::Mark {
                log,
                previous,
                next,
            } => {
                self.marks += 1;
                // A range may have begun with a subscription that this client had given up before
                // it was told: then the node knows less of it.
                if next > self.ranges[&log] {
                    self.live(log, previous, next.before());
                }
            }
            Reply::Gap {
                channel: Channel::Live,
                log,
                previous,
                last,
                why,
            } => {
                let from = self.live(log, previous, last);
                if why != GapReason::Unused {
                    for sub in self.subs.values_mut().filter(|s| s.mode == Mode::Live(log)) {
                        let first = from.max(sub.next.expect("live"));
                        sub.gaps.push((Extent { first, last }, why));
                    }
                }
            }
            Reply::Gap {
                channel: Channel::Detached(id, generation),
                previous,
                last,
                why,
                ..
            } => {
                // The node may know less of a subscription's place than its client, never more.
                let next = self.subs[&id].next.expect("placed");
                if why == GapReason::Unused && last < next {
                    return;
                }
                let sub = self.detached(id, generation, previous, last);
                if why != GapReason::Unused {
                    let first = previous.plus(1);
                    sub.gaps.push((Extent { first, last }, why));
                }
            }
            Reply::Delivery(delivery) => self.delivery(delivery),
            Reply::Expired(expired) => {
                self.owed += expired.cost();
                self.credit -= i64::from(expired.cost());
                let sub = self.subs.get_mut(&expired.subscription);
                let sub = sub.expect("asked for");
                assert_eq!(sub.generation, expired.generation);
                sub.expired.extend(expired.numbers);
            }
            Reply::Clock { node, .. } => self.clocks.push(node),
        }
    }

    fn delivery(&mut self, delivery: Delivery) {
        let Delivery {
            channel,
            log,
            previous,
            last,
            base,
            body,
            matches,
            ..
        } = delivery;
        assert!(self.credit > 0, "a delivery without credit");
        let named = matches.as_deref().map_or(0, Matches::cost);
        let cost = u32::try_from(body.len()).expect("small") + DELIVERY_OVERHEAD_BYTES + named;
        let is_live = channel == Channel::Live;
        assert_eq!(matches.is_some(), self.matches == Some(true) && is_live);
        self.credit -= i64::from(cost);
        self.owed += cost;
        self.deliveries += 1;
        self.wholes += usize::from(matches!(body, Delivered::Whole(_)));
        let bytes = body.to_bytes();
        let batch = if self.headers_only == Some(true) {
            Batch::check_headers(bytes).expect("without payloads")
        } else {
            Batch::check_stored(bytes).expect("good").0
        };
        match channel {
            Channel::Live => {
                let from = self.live(log, previous, last);
                if let Some(matches) = matches {
                    return self.named(&batch, base, (log, from), &matches);
                }
                let is_wanted = |topic| {
                    let mut live = self.subs.values();
                    live.any(|sub| sub.mode == Mode::Live(log) && sub.wants(topic))
                };
                let wanted = batch.topics().all(is_wanted);
                assert!(wanted, "a topic that nobody here wants live");
                for sub in self
                    .subs
                    .values_mut()
                    .filter(|sub| sub.mode == Mode::Live(log))
                {
                    let from = from.max(sub.next.expect("live"));
                    collect(sub, &batch, base, from);
                }
            }
            Channel::Detached(id, generation) => {
                let from = self.subs[&id].next.expect("placed");
                if self.matches == Some(true) && last < from {
                    // One that went live within a batch that was being handed over to others of its stream, of whose place
                    // alone the node knows.
                    return;
                }
                let sub = self.detached(id, generation, previous, last);
                assert!(batch.topics().all(|topic| sub.wants(topic)));
                collect(sub, &batch, base, from);
            }
        }
    }

    /// A live delivery that says for whom each message is: those to whom it is, and who want its topic.
    fn named(
        &mut self,
        batch: &Checked<Batch>,
        base: Sequence,
        (log, from): (LogId, Sequence),
        matches: &Matches,
    ) {
        assert_eq!(matches.messages(), usize::from(batch.records()));
        self.named_max = self.named_max.max(matches.subscriptions().len());
        for (place, record) in batch.iter().enumerate() {
            let topic = TopicEntry {
                hash: record.topic_hash,
                name: record.topic_name,
            };
            let ids = matches.of(place);
            assert!(!ids.is_empty() && ids.is_sorted_by(|one, other| one < other));
            let sequence = base.plus(record.index.into());
            for id in ids {
                let sub = self.subs.get_mut(id).expect("asked for");
                assert!(sub.wants(topic), "{id:?} wants no {}", record.topic_name);
                let is_new = sequence >= from.max(sub.next.expect("placed"));
                if sub.mode == Mode::Live(log) && is_new {
                    sub.got.push((sequence, text_of(&record)));
                }
            }
        }
    }

    /// Moves a live range; gives where it stood.
    fn live(&mut self, log: LogId, previous: Sequence, last: Sequence) -> Sequence {
        let next = self
            .ranges
            .get_mut(&log)
            .expect("a range for each live log");
        assert!(previous < *next, "a hole: {previous} after {next}");
        assert!(last >= *next, "said twice");
        std::mem::replace(next, last.plus(1))
    }

    fn detached(
        &mut self,
        id: SubscriptionId,
        generation: Generation,
        previous: Sequence,
        last: Sequence,
    ) -> &mut Sub {
        let sub = self.subs.get_mut(&id).expect("asked for");
        assert_eq!(sub.generation, generation, "of an old generation");
        assert_eq!(sub.mode, Mode::Detached);
        let next = sub.next.as_mut().expect("placed");
        assert!(previous < *next, "a hole: {previous} after {next}");
        assert!(last >= *next, "said twice: {last} before {next}");
        *next = last.plus(1);
        sub
    }

    fn status(&mut self, id: SubscriptionId, generation: Generation, state: State) {
        let Some(sub) = self.subs.get_mut(&id) else {
            return;
        };
        if let State::Changed { places } = &state {
            sub.generation = generation;
            // What is before is accounted for.
            sub.next = sub.next.max(places.first().map(|place| place.next));
            sub.changes.push((generation, sub.next));
            return;
        }
        if let State::Unchanged(error) = state {
            sub.refusals.push((generation, error.code()));
            return;
        }
        if generation != sub.generation {
            return;
        }
        let is_end = matches!(state, State::Complete { .. });
        if let Some(place) = state.places().first().filter(|_| !is_end) {
            sub.first.get_or_insert(place.next);
        }
        match state {
            State::Live { places } => {
                assert_eq!(places.len(), 1, "a lane that nobody opens");
                let LogPosition {
                    log,
                    incarnation,
                    next,
                } = places[0];
                sub.history.push("live");
                assert_ne!(sub.mode, Mode::Live(log), "live twice");
                if let Some(own) = sub.next {
                    assert_eq!(own.max(next), own, "live beyond what was accounted for");
                }
                sub.next = Some(sub.next.unwrap_or(next));
                sub.mode = Mode::Live(log);
                sub.incarnation = incarnation;
                self.ranges.entry(log).or_insert(next);
            }
            State::Detached {
                incarnation, next, ..
            } => {
                sub.history.push("detached");
                if let Mode::Live(log) = sub.mode {
                    let own = sub.next.expect("live").max(self.ranges[&log]);
                    assert!(next <= own, "detached beyond what was accounted for");
                    sub.next = Some(own);
                }
                sub.next = Some(sub.next.unwrap_or(next));
                sub.incarnation = incarnation;
                sub.mode = Mode::Detached;
            }
            State::Complete { places } => {
                sub.history.push("complete");
                let next = places.first().map(|place| place.next);
                assert_eq!(sub.next, next, "complete, but not all accounted for");
                sub.mode = Mode::Complete;
            }
            State::Changed { .. } | State::Unchanged(_) => {}
            State::Removed | State::Failed(_) => {
                sub.history.push("ended");
                sub.mode = Mode::Ended(state);
            }
        }
    }
}

fn text_of(record: &Record<'_>) -> String {
    String::from_utf8(record.payload.to_vec()).expect("text")
}

fn collect(sub: &mut Sub, batch: &Checked<Batch>, base: Sequence, from: Sequence) {
    for record in batch.iter() {
        let sequence = base.plus(record.index.into());
        let topic = TopicEntry {
            hash: record.topic_hash,
            name: record.topic_name,
        };
        if sub.wants(topic) && sequence >= from {
            let text = text_of(&record);
            assert!(sub.got.last().is_none_or(|(before, _)| *before < sequence));
            sub.got.push((sequence, text));
        }
    }
}
