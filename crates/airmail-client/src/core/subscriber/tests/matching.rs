//! A stream whose node says for which subscriptions each message is, and changes of their filters.

use super::*;
use airmail_model::frame::{Change, Matches};

fn filter(text: &str) -> Arc<Filter> {
    Arc::new(Filter::parse(text).unwrap())
}

impl Driver {
    fn matching() -> Driver {
        let mut driver = Driver::new();
        driver.subscriber = Subscriber::new(SubscriberConfig::default()).matching();
        driver.subscriber.connected();
        driver
    }

    fn add_filtered(&mut self, start: Start) -> SubscriptionKey {
        self.subscriber.add(SubscriptionSpec {
            namespace: NAMESPACE,
            wanted: Wanted::Topic(topic("a")),
            start,
            until: None,
            tell_expired: false,
            filter: Some(filter("x = 1")),
            headers_only: false,
        })
    }

    /// A subscription that the node has made live at `next`.
    fn matching_at(&mut self, next: u64) -> (SubscriptionKey, Subscribe) {
        let key = self.add_filtered(Start::Latest);
        let add = self.asked();
        assert!(add.matches);
        self.status(&add, live_at(next));
        self.events.clear();
        (key, add)
    }

    /// A live delivery of messages with numbers from behind `previous` on, each of which is for these.
    fn name(&mut self, previous: u64, subscriptions: &[&[SubscriptionKey]]) {
        let counts: Vec<u32> = subscriptions.iter().map(|of| of.len() as u32).collect();
        let ids = subscriptions.iter().copied().flatten();
        let ids = ids.map(|key| SubscriptionId(key.index())).collect();
        let topics = vec!["a"; subscriptions.len()];
        let last = previous + topics.len() as u64;
        let Reply::Delivery(delivery) =
            delivery(Channel::Live, previous, last, previous + 1, &topics)
        else {
            panic!("a delivery");
        };
        let matches = Matches::new(&counts, ids).map(Arc::new);
        self.reply(Reply::Delivery(Delivery {
            matches,
            ..delivery
        }));
    }

    /// Each message that came since the last call, with its owners.
    fn owned(&mut self) -> Vec<(u64, Vec<SubscriptionKey>)> {
        let mut all = Vec::new();
        for (_, event) in self.events.drain(..) {
            let Event::Messages(received) = event else {
                panic!("{event:?}");
            };
            let mut place = received.seek(0);
            while let Some(at) = place {
                let (number, _) = received.message(at);
                all.push((number.0, received.owners(at).collect()));
                place = received.seek(at + 1);
            }
        }
        all
    }

    /// The changes that have been requested by now.
    fn changes(&mut self) -> Vec<Change> {
        self.poll();
        let changes = self.sent.drain(..).filter_map(|request| match request {
            Request::Change(change) => Some(change),
            _ => None,
        });
        changes.collect()
    }

    fn answer(&mut self, change: &Change, state: State) {
        self.reply(Reply::Status {
            subscription: change.subscription,
            generation: change.generation,
            state,
        });
    }

    /// The answers to changes that users got since the last call: from which number on, or the refusal.
    fn answers(&mut self) -> Vec<(SubscriptionKey, Result<Option<u64>, ErrorCode>)> {
        let answers = self.events.drain(..).map(|(key, event)| match event {
            Event::Status(State::Changed { places }) => {
                (key, Ok(places.first().map(|place| place.next.0)))
            }
            Event::Status(State::Unchanged(error)) => (key, Err(error.code())),
            other => panic!("{other:?}"),
        });
        answers.collect()
    }
}

fn changed_at(next: u64) -> State {
    State::Changed {
        places: [place_at(next)].into_iter().collect(),
    }
}

#[test]
fn each_message_is_for_those_whom_the_node_names_and_who_have_not_had_it() {
    let mut driver = Driver::matching();
    let (one, _) = driver.matching_at(1);
    let (late, _) = driver.matching_at(3);
    driver.name(0, &[&[one], &[one, late], &[late], &[one, late]]);
    let expected = [
        (1, vec![one]),
        (2, vec![one]),
        (3, vec![late]),
        (4, vec![one, late]),
    ];
    assert_eq!(driver.owned(), expected);
    // A duplicate, and then what goes on behind it.
    driver.name(2, &[&[late], &[one]]);
    driver.name(4, &[&[one]]);
    assert_eq!(driver.owned(), [(5, vec![one])]);
    driver.subscriber.remove(one);
    driver.name(5, &[&[one], &[one, late]]);
    assert_eq!(driver.owned(), [(7, vec![late])]);
    // Nobody is there who wants it: its credit comes back.
    driver.name(7, &[&[one]]);
    assert!(driver.owned().is_empty());
}

#[test]
fn a_hole_has_all_of_the_range_requested_again() {
    let mut driver = Driver::matching();
    let (one, _) = driver.matching_at(1);
    driver.name(4, &[&[one]]);
    assert!(driver.owned().is_empty());
    assert_eq!(starts_at(&driver.asked()), Some(1));
}

#[test]
fn the_generation_before_stays_in_force_until_the_node_has_changed_the_filter() {
    let mut driver = Driver::matching();
    let key = driver.add_filtered(Start::Earliest);
    let add = driver.asked();
    driver.status(&add, detached_at(1));
    driver.events.clear();
    driver.subscriber.change(key, filter("x = 2"));
    driver.subscriber.change(key, filter("x = 3"));
    let changes = driver.changes();
    assert_eq!(changes.len(), 2);
    driver.deliver(channel_of(&add), 0, &["a"]);
    assert_eq!(driver.numbers(key), [1]);
    driver.answer(&changes[0], changed_at(4));
    assert_eq!(driver.answers(), [(key, Ok(Some(4)))]);
    // What is before is accounted for.
    assert_eq!(driver.next(key), Some(4));
    let channel = Channel::Detached(changes[0].subscription, changes[0].generation);
    driver.deliver(channel_of(&add), 3, &["a"]);
    assert!(driver.numbers(key).is_empty());
    driver.deliver(channel, 3, &["a"]);
    assert_eq!(driver.numbers(key), [4]);
    driver.answer(
        &changes[1],
        State::Unchanged(Error::new(ErrorCode::FilterTooComplex)),
    );
    assert_eq!(driver.answers(), [(key, Err(ErrorCode::FilterTooComplex))]);
    driver.deliver(channel, 4, &["a"]);
    assert_eq!(driver.numbers(key), [5]);
    driver.subscriber.disconnected();
    driver.subscriber.connected();
    let again = driver.asked();
    assert_eq!(again.filter, Some(filter("x = 2")));
    assert_eq!(starts_at(&again), Some(6));
}

#[test]
fn a_change_that_a_lost_connection_overtakes_is_in_force_from_where_its_subscription_goes_on() {
    let mut driver = Driver::matching();
    let (key, _) = driver.matching_at(5);
    driver.name(4, &[&[key]]);
    driver.events.clear();
    driver.subscriber.change(key, filter("x = 2"));
    driver.subscriber.change(key, filter("x = 3"));
    let changes = driver.changes();
    driver.subscriber.disconnected();
    driver.subscriber.change(key, filter("x = 4"));
    driver.subscriber.connected();
    let mut out = SubscriberOutput::default();
    driver.subscriber.poll(Mono(0), &mut out);
    driver.events.append(&mut out.events);
    assert_eq!(driver.answers(), [(key, Ok(Some(6))); 3]);
    let Some(Request::Add(add)) = out.requests.pop() else {
        panic!("{:?}", out.requests);
    };
    assert_eq!(
        (add.filter.clone(), starts_at(&add)),
        (Some(filter("x = 4")), Some(6))
    );
    assert!(
        changes
            .iter()
            .all(|change| change.generation < add.generation)
    );
    // An answer that was under way says nothing any more.
    driver.answer(&changes[1], changed_at(99));
    assert!(driver.answers().is_empty());
    assert_eq!(driver.next(key), Some(6));
}

#[test]
fn a_change_before_the_node_knows_of_the_subscription_goes_with_it() {
    let mut driver = Driver::matching();
    let key = driver.add_filtered(Start::Latest);
    driver.subscriber.change(key, filter("x = 2"));
    let mut out = SubscriberOutput::default();
    driver.subscriber.poll(Mono(0), &mut out);
    driver.events.append(&mut out.events);
    assert_eq!(driver.answers(), [(key, Ok(None))]);
    assert!(
        matches!(&out.requests[..], [Request::Add(add)] if add.filter == Some(filter("x = 2")))
    );
    driver.subscriber.remove(key);
    driver.subscriber.change(key, filter("x = 3"));
    assert!(driver.changes().is_empty());
}
