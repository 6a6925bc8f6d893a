//! A caller that comes only when the producer names a time, or says that something is due, misses
//! nothing.

use super::*;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::VecDeque;

/// Time so long that only a message that was forgotten reaches its end.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// Refuses the first of what was sent.
fn refuse_first(driver: &mut Driver, code: ErrorCode, map: Option<LogMap>) {
    let Request::Publish { request, .. } = driver.sent.remove(0) else {
        panic!("not a publish");
    };
    let error = Error::new(code);
    let result = Err(Refused { error, map });
    driver.reply(Reply::Acked { request, result });
}

/// Publishes a message whose first attempt is lost with its connection, and sends it again.
fn sent_again(driver: &mut Driver, ticket: u64) {
    driver.publish("a", ticket);
    assert_eq!(driver.poll(), 1);
    driver.sent.clear();
    driver.producer.connected();
    assert_eq!(driver.poll(), 1);
}

#[test]
fn what_is_taken_after_an_unknown_outcome_goes_when_the_pause_is_over() {
    for code in [ErrorCode::OutOfOrder, ErrorCode::UnknownProducer] {
        let mut driver = Driver::connected(1);
        sent_again(&mut driver, 0);
        refuse_first(&mut driver, code, None);
        assert_eq!(driver.outcomes(), [(0, Some(ErrorCode::OutcomeUnknown))]);
        // Nothing is held now. Nobody polls for the next message: it must not be needed.
        assert_eq!(driver.poll(), 0);
        let wake = driver.wake.expect("the end of the pause");
        let accepted = driver.accept("a", 1);
        assert!(accepted.due || wake < driver.now().mono.plus(Duration::from_secs(5)));
        driver.now = wake.0 / 1_000_000 + 1;
        assert_eq!(driver.poll(), 1, "{code:?}");
        driver.run(&mut Node::new(map(1, 1)));
        assert_eq!(driver.outcomes()[1..], all_stored(1..2));
    }
}

#[test]
fn a_pause_that_ends_with_nothing_to_send_is_over_for_what_comes_later() {
    let mut driver = Driver::connected(1);
    sent_again(&mut driver, 0);
    refuse_first(&mut driver, ErrorCode::OutOfOrder, None);
    driver.poll();
    driver.now = driver.wake.unwrap().0 / 1_000_000 + 1;
    assert_eq!(driver.poll(), 0);
    assert_eq!(driver.wake, None);
    assert!(driver.accept("a", 1).due);
}

#[test]
fn what_is_taken_between_a_refusal_and_the_next_turn_is_due_then() {
    let mut driver = Driver::connected(1);
    driver.publish("a", 0);
    driver.poll();
    refuse_first(&mut driver, ErrorCode::PermissionDenied, None);
    assert!(!driver.accept("a", 1).due);
    driver.advance();
    assert!(driver.producer.is_due());
    assert_eq!(driver.poll(), 1);
    assert!(!driver.producer.is_due());
}

#[test]
fn what_waits_behind_something_that_expires_is_due_then() {
    let mut driver = Driver::connected(1);
    for ticket in 0..2 {
        driver.publish("a", ticket);
        driver.poll();
    }
    driver.now += 10_000;
    driver.publish("a", 2);
    assert_eq!(driver.poll(), 0);
    driver.now += 20_000;
    driver.advance();
    let unknown = Some(ErrorCode::OutcomeUnknown);
    assert_eq!(driver.outcomes(), [(0, unknown), (1, unknown)]);
    assert!(driver.producer.is_due());
    assert_eq!(driver.poll(), 1);
}

#[test]
fn what_paused_under_an_earlier_map_is_due_under_the_next() {
    let mut driver = Driver::connected(1);
    driver.publish("a", 0);
    driver.poll();
    refuse_first(&mut driver, ErrorCode::StorageFull, None);
    driver.poll();
    driver.producer.set_map(map(2, 4));
    driver.advance();
    assert!(driver.producer.is_due());
    assert_eq!(driver.poll(), 1);
}

#[test]
fn what_was_lost_behind_a_refused_batch_does_not_hold_up_a_new_map() {
    let mut driver = Driver::new(1, |config| config.limits.batch_records = 1);
    driver.producer.connected();
    (0..3).for_each(|ticket| driver.publish("a", ticket));
    assert_eq!(driver.poll(), 3);
    // The first is refused for good reasons; what became of the other two nobody says.
    refuse_first(&mut driver, ErrorCode::MapStale, Some(map(2, 4)));
    driver.sent.clear();
    driver.producer.connected();
    let begun = driver.now;
    let mut node = Node::new(map(2, 4));
    driver.run(&mut node);
    assert!(driver.now - begun < 10_000, "not before its time is over");
    let unknown = Some(ErrorCode::OutcomeUnknown);
    assert_eq!(driver.outcomes(), [(0, None), (1, unknown), (2, unknown)]);
    assert_eq!(node.payloads(), ["0"]);
}

/// Does what the SDK does, and only when it is due: a task that keeps the time, and a stream
/// that sends.
struct Shell {
    driver: Driver,
    node: Node,
    /// Requests on the way to the node.
    sent: VecDeque<Request>,
    timer: Mono,
    task_due: bool,
    stream_due: bool,
}

impl Shell {
    fn new(seed: u64) -> Shell {
        let mut driver = Driver::new(3, |config| {
            config.seed = seed;
            config.limits.batch_records = 3;
            config.limits.unacked_bytes = 600;
            config.delivery_timeout = PATIENCE;
        });
        driver.producer.connected();
        Shell {
            driver,
            node: Node::new(map(1, 3)),
            sent: VecDeque::new(),
            timer: Mono::NEVER,
            task_due: true,
            stream_due: true,
        }
    }

    fn offer(&mut self, topic: u64, ticket: u64) {
        let accepted = self.driver.accept(&format!("t{topic}"), ticket);
        self.stream_due |= accepted.due;
        // Nobody has a timer.
        self.task_due |= self.timer == Mono::NEVER;
    }

    fn arm(&mut self) {
        let wake = self.driver.wake.unwrap_or(Mono::NEVER);
        assert!(wake > self.driver.now().mono, "later than now");
        self.timer = self.timer.min(wake);
    }

    fn task(&mut self) {
        if std::mem::take(&mut self.task_due) {
            self.driver.advance();
            self.stream_due |= self.driver.producer.is_due();
            self.arm();
        }
    }

    fn stream(&mut self) {
        if std::mem::take(&mut self.stream_due) {
            self.driver.poll();
            self.sent.extend(self.driver.sent.drain(..));
            self.arm();
        }
    }

    fn answer(&mut self) {
        if let Some(request) = self.sent.pop_front() {
            let reply = self.node.answer(&request);
            self.driver.reply(reply);
            self.task_due = true;
        }
    }

    fn cut(&mut self) {
        self.sent.clear();
        self.driver.producer.connected();
        (self.task_due, self.stream_due) = (true, true);
    }

    fn later(&mut self, ms: u64) {
        self.driver.now += ms;
        if self.timer <= self.driver.now().mono {
            self.timer = Mono::NEVER;
            self.task_due = true;
        }
    }

    /// Lets everything go on that goes on by itself, until nothing does.
    fn end(&mut self) {
        loop {
            self.task();
            self.stream();
            self.answer();
            if self.task_due || self.stream_due || !self.sent.is_empty() {
                continue;
            }
            if self.driver.producer.is_idle() {
                return;
            }
            assert!(self.timer < Mono::NEVER, "nobody sees to what is held");
            let until = self.timer.0 / 1_000_000 + 1;
            self.later(until - self.driver.now);
        }
    }
}

#[test]
fn a_shell_that_comes_only_when_told_to_leaves_nothing_until_its_time_is_over() {
    let refusals = [
        ErrorCode::StorageFull,
        ErrorCode::Overloaded,
        ErrorCode::OutcomeUnknown,
        ErrorCode::PermissionDenied,
        ErrorCode::OutOfOrder,
        ErrorCode::UnknownProducer,
    ];
    for seed in 0..400 {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut shell = Shell::new(seed);
        let (mut epoch, mut ticket) = (1, 0);
        for _ in 0..300 {
            match random.random_range(0..16) {
                0..3 => {
                    shell.offer(random.random_range(0..6), ticket);
                    ticket += 1;
                }
                3 => shell.later(random.random_range(0..400)),
                4 if random.random_bool(0.5) => shell.cut(),
                5 if random.random_bool(0.2) => {
                    epoch += 1;
                    let newer = map(epoch, 1 + epoch as u16 % 4);
                    shell.node.set_map(newer.clone());
                    if random.random_bool(0.5) {
                        shell.driver.producer.set_map(newer);
                        shell.task_due = true;
                    }
                }
                6 if random.random_bool(0.3) => shell.node.forget(),
                7 => {
                    let code = refusals[random.random_range(0..refusals.len())];
                    shell.node.script.push_back(Some(Error::new(code)));
                }
                8..11 => shell.task(),
                11..14 => shell.stream(),
                _ => shell.answer(),
            }
            // Now and then all is quiet, and the next message meets a queue that holds nothing.
            if random.random_bool(0.02) {
                shell.end();
            }
        }
        shell.end();
        assert_eq!(shell.driver.outcomes().len() as u64, ticket, "seed {seed}");
        let begun = Duration::from_millis(shell.driver.now);
        assert!(begun < PATIENCE, "seed {seed}: something was left lying");
    }
}

#[test]
fn what_a_new_map_brings_to_the_front_too_late_fails_at_the_time_that_is_named() {
    let mut driver = Driver::new(2, |config| config.limits.batch_records = 1);
    let two = map(1, 2);
    let on = |log: u16| {
        let log_of = |name: &String| two.log(TopicName::hash_of(NAMESPACE, name), Lane::Normal);
        let mut names = (0..).map(|n: u32| n.to_string());
        names
            .find(|name| log_of(name).index == LogIndex(log))
            .unwrap()
    };
    driver.publish(&on(1), 0);
    driver.now += 10_000;
    driver.publish(&on(0), 1);
    // The older one comes to stand behind the younger one, and alone again when its time is over.
    driver.producer.set_map(map(2, 1));
    driver.advance();
    driver.now += 21_000;
    driver.producer.set_map(map(3, 2));
    driver.advance();
    assert!(driver.settled.is_empty());
    assert!(driver.wake.unwrap() > driver.now().mono);
    driver.now += 1;
    driver.advance();
    assert_eq!(driver.outcomes(), [(0, Some(ErrorCode::Disconnected))]);
}
