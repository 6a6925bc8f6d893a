//! Every order in which a reconnection can fall among subscribing, the node's answer, a delivery,
//! and unsubscribing, with an answer of the connection before arriving late or not: in none is a
//! message lost, doubled, or told to a subscription that is over.

use super::*;

/// Node of one connection: the subscription that it has, and its log.
struct Node {
    /// Number and generation in force, and where it stands.
    subscription: Option<(Subscribe, u64)>,
    /// The last number appended to the log, all of topic `a`.
    end: u64,
}

impl Node {
    fn apply_requests(&mut self, driver: &mut Driver) {
        driver.poll();
        for request in std::mem::take(&mut driver.sent) {
            match request {
                Request::Add(add) => {
                    let next = starts_at(&add).unwrap_or(self.end + 1);
                    self.subscription = Some((add, next));
                }
                Request::Remove { .. } => self.subscription = None,
                _ => {}
            }
        }
    }

    fn answer(&mut self) -> Option<Reply> {
        let (add, next) = self.subscription.as_ref()?;
        Some(Reply::Status {
            subscription: add.subscription,
            generation: add.generation,
            state: detached_at(*next),
        })
    }

    fn deliver(&mut self) -> Option<Reply> {
        let (add, next) = self.subscription.as_mut()?;
        if *next > self.end {
            return None;
        }
        let topics = vec!["a"; (self.end + 1 - *next) as usize];
        let reply = delivery(channel_of(add), *next - 1, self.end, *next, &topics);
        *next = self.end + 1;
        Some(reply)
    }
}

/// One run: `cut` says before which steps the connection is lost, `late` whether the old
/// connection's status comes in after that.
fn run(cut: [bool; 3], late: bool) -> Vec<u64> {
    let mut driver = Driver::connected();
    let mut node = Node {
        subscription: None,
        end: 10,
    };
    let key = driver.add("a", Start::Latest);
    let reconnect = |driver: &mut Driver, node: &mut Node, cut: bool| {
        if cut {
            let old = node.answer();
            driver.subscriber.connected();
            node.subscription = None;
            node.apply_requests(driver);
            if let (true, Some(old)) = (late, old) {
                driver.reply(old);
            }
            if let Some(reply) = node.answer() {
                driver.reply(reply);
            }
        }
    };
    node.apply_requests(&mut driver);
    reconnect(&mut driver, &mut node, cut[0]);
    if let Some(reply) = node.answer() {
        driver.reply(reply);
    }
    node.end = 13;
    reconnect(&mut driver, &mut node, cut[1]);
    if let Some(reply) = node.deliver() {
        driver.reply(reply);
    }
    node.end = 15;
    reconnect(&mut driver, &mut node, cut[2]);
    if let Some(reply) = node.deliver() {
        driver.reply(reply);
    }
    let numbers = driver.numbers(key);
    driver.events.clear();
    // Unsubscribed, and subscribed anew at once: the old one's messages are not the new one's.
    driver.subscriber.remove(key);
    let second = driver.add("a", Start::Latest);
    node.end = 17;
    if let Some(reply) = node.deliver() {
        driver.reply(reply);
    }
    if let (true, Some(old)) = (late, node.answer()) {
        driver.reply(old);
    }
    assert!(driver.events.is_empty());
    node.apply_requests(&mut driver);
    if let Some(reply) = node.answer() {
        driver.reply(reply);
    }
    node.end = 18;
    if let Some(reply) = node.deliver() {
        driver.reply(reply);
    }
    assert_eq!(driver.numbers(second), [18]);
    assert!(driver.numbers(key).is_empty());
    numbers
}

#[test]
fn in_all_sixteen_permutations_each_message_is_told_exactly_once() {
    for bits in 0..16u8 {
        let cut = [bits & 1 != 0, bits & 2 != 0, bits & 4 != 0];
        let late = bits & 8 != 0;
        assert_eq!(run(cut, late), [11, 12, 13, 14, 15], "{cut:?} late: {late}");
    }
}
