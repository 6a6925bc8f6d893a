//! One user of many topics gets one event for each batch, and each message still reaches its
//! subscription.

use super::*;

impl Driver {
    fn gathering() -> Driver {
        let mut driver = Driver::new();
        driver.subscriber = Subscriber::new(SubscriberConfig::default()).gathering();
        driver.subscriber.connected();
        driver
    }

    /// Lists the messages that came since the last call, by event: owner and number of each.
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
    let mut driver = Driver::gathering();
    let [a, b, c] = ["a", "b", "c"].map(|name| driver.live(name, 1));
    driver.deliver(Channel::Live, 0, &["b", "a", "x", "c", "a"]);
    assert_eq!(driver.told(), [[(b, 1), (a, 2), (c, 4), (a, 5)]]);
    assert_eq!([a, b, c].map(|key| driver.next(key)), [Some(6); 3]);
}

#[test]
fn each_gets_only_what_is_new_to_it() {
    let mut driver = Driver::gathering();
    let a = driver.live("a", 1);
    let late = driver.live("late", 4);
    let topics = ["late", "a", "late", "late", "a"];
    driver.deliver(Channel::Live, 0, &topics);
    assert_eq!(driver.told(), [[(a, 2), (late, 4), (a, 5)]]);
    // The same again is a duplicate for all.
    driver.deliver(Channel::Live, 0, &topics);
    assert!(driver.told().is_empty());
}

#[test]
fn what_concerns_one_alone_or_none_is_told_so() {
    let mut driver = Driver::gathering();
    let a = driver.live("a", 1);
    driver.live("b", 1);
    driver.deliver(Channel::Live, 0, &["a", "a"]);
    assert_eq!(driver.told(), [[(a, 1), (a, 2)]]);
    driver.deliver(Channel::Live, 2, &["x"]);
    assert!(driver.told().is_empty());
    let (behind, add) = driver.detached("c", 1);
    driver.deliver(channel_of(&add), 0, &["c", "a"]);
    assert_eq!(driver.told(), [[(behind, 1)]]);
}

#[test]
fn a_batch_costs_its_credit_once() {
    let mut driver = Driver::gathering();
    for name in ["a", "b", "c"] {
        driver.live(name, 1);
    }
    driver.deliver(Channel::Live, 0, &["a", "b", "c"]);
    let (_, event) = driver.events.pop().unwrap();
    let Event::Messages(arrived) = event else {
        panic!("{event:?}");
    };
    let bytes = batch(&["a", "b", "c"]).bytes().len() as u32;
    assert_eq!(arrived.cost, bytes + DELIVERY_OVERHEAD_BYTES);
    assert!(driver.events.is_empty());
}
