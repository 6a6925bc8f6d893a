//! One user of many topics: each batch is told once, and each message still reaches its own.

use super::*;

impl Desk {
    fn gathering() -> Desk {
        let mut desk = Desk::new();
        desk.subscriber = Subscriber::new(SubscriberConfig::default()).gathering();
        desk.subscriber.connected();
        desk
    }

    /// What was told since the last call: owner and number of each message, by arrival.
    fn told(&mut self) -> Vec<Vec<(SubscriptionKey, u64)>> {
        let arrivals = self.events.drain(..).map(|(_, event)| match event {
            Event::Messages(arrived) => {
                let told = arrived.iter();
                let told =
                    told.map(|(number, record)| (arrived.owner(record.topic).unwrap(), number.0));
                told.collect()
            }
            other => panic!("{other:?}"),
        });
        arrivals.collect()
    }
}

#[test]
fn a_batch_for_many_is_told_once_and_in_order() {
    let mut desk = Desk::gathering();
    let [a, b, c] = ["a", "b", "c"].map(|name| desk.live(name, 1));
    desk.deliver(Channel::Live, 0, &["b", "a", "x", "c", "a"]);
    assert_eq!(desk.told(), [[(b, 1), (a, 2), (c, 4), (a, 5)]]);
    assert_eq!([a, b, c].map(|key| desk.next(key)), [Some(6); 3]);
}

#[test]
fn each_gets_only_what_is_new_to_it() {
    let mut desk = Desk::gathering();
    let a = desk.live("a", 1);
    let late = desk.live("late", 4);
    let topics = ["late", "a", "late", "late", "a"];
    desk.deliver(Channel::Live, 0, &topics);
    assert_eq!(desk.told(), [[(a, 2), (late, 4), (a, 5)]]);
    // The same again is a duplicate for all.
    desk.deliver(Channel::Live, 0, &topics);
    assert!(desk.told().is_empty());
}

#[test]
fn what_concerns_one_alone_or_none_is_told_so() {
    let mut desk = Desk::gathering();
    let a = desk.live("a", 1);
    desk.live("b", 1);
    desk.deliver(Channel::Live, 0, &["a", "a"]);
    assert_eq!(desk.told(), [[(a, 1), (a, 2)]]);
    desk.deliver(Channel::Live, 2, &["x"]);
    assert!(desk.told().is_empty());
    let (behind, add) = desk.detached("c", 1);
    desk.deliver(channel_of(&add), 0, &["c", "a"]);
    assert_eq!(desk.told(), [[(behind, 1)]]);
}

#[test]
fn a_batch_costs_its_credit_once() {
    let mut desk = Desk::gathering();
    for name in ["a", "b", "c"] {
        desk.live(name, 1);
    }
    desk.deliver(Channel::Live, 0, &["a", "b", "c"]);
    let (_, event) = desk.events.pop().unwrap();
    let Event::Messages(arrived) = event else {
        panic!("{event:?}");
    };
    let bytes = batch(&["a", "b", "c"]).bytes().len() as u32;
    assert_eq!(arrived.cost, bytes + DELIVERY_OVERHEAD_BYTES);
    assert!(desk.events.is_empty());
}
