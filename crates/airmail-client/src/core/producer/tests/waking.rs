//! Whoever calls only when told to misses nothing: what was taken goes on by itself.

use super::*;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::VecDeque;

/// Long enough that nobody ends up there but who was forgotten.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// Refuses the first of what was sent.
fn refuse_first(desk: &mut Desk, code: ErrorCode, map: Option<LogMap>) {
    let Request::Publish { request, .. } = desk.sent.remove(0) else {
        panic!("not a publish");
    };
    let error = Error::new(code);
    let result = Err(Refused { error, map });
    desk.reply(Reply::Acked { request, result });
}

/// Something is sent and lost with its connection, and sent again.
fn sent_again(desk: &mut Desk, ticket: u64) {
    desk.publish("a", ticket);
    assert_eq!(desk.poll(), 1);
    desk.sent.clear();
    desk.producer.connected();
    assert_eq!(desk.poll(), 1);
}

#[test]
fn what_is_taken_after_an_unknown_outcome_goes_when_the_pause_is_over() {
    for code in [ErrorCode::OutOfOrder, ErrorCode::UnknownProducer] {
        let mut desk = Desk::connected(1);
        sent_again(&mut desk, 0);
        refuse_first(&mut desk, code, None);
        assert_eq!(desk.outcomes(), [(0, Some(ErrorCode::OutcomeUnknown))]);
        // Nothing is held now. Nobody polls for the next message: it must not be needed.
        assert_eq!(desk.poll(), 0);
        let wake = desk.wake.expect("the end of the pause");
        let taken = desk.offer("a", 1);
        assert!(taken.due || wake < desk.now().mono.plus(Duration::from_secs(5)));
        desk.now = wake.0 / 1_000_000 + 1;
        assert_eq!(desk.poll(), 1, "{code:?}");
        desk.run(&mut Node::new(map(1, 1)));
        assert_eq!(desk.outcomes()[1..], all_stored(1..2));
    }
}

#[test]
fn a_pause_that_ends_with_nothing_to_send_is_over_for_what_comes_later() {
    let mut desk = Desk::connected(1);
    sent_again(&mut desk, 0);
    refuse_first(&mut desk, ErrorCode::OutOfOrder, None);
    desk.poll();
    desk.now = desk.wake.unwrap().0 / 1_000_000 + 1;
    assert_eq!(desk.poll(), 0);
    assert_eq!(desk.wake, None);
    assert!(desk.offer("a", 1).due);
}

#[test]
fn what_is_taken_between_a_refusal_and_the_next_turn_is_due_then() {
    let mut desk = Desk::connected(1);
    desk.publish("a", 0);
    desk.poll();
    refuse_first(&mut desk, ErrorCode::PermissionDenied, None);
    assert!(!desk.offer("a", 1).due);
    desk.tend();
    assert!(desk.producer.is_due());
    assert_eq!(desk.poll(), 1);
    assert!(!desk.producer.is_due());
}

#[test]
fn what_waits_behind_something_that_expires_is_due_then() {
    let mut desk = Desk::connected(1);
    for ticket in 0..2 {
        desk.publish("a", ticket);
        desk.poll();
    }
    desk.now += 10_000;
    desk.publish("a", 2);
    assert_eq!(desk.poll(), 0);
    desk.now += 20_000;
    desk.tend();
    let unknown = Some(ErrorCode::OutcomeUnknown);
    assert_eq!(desk.outcomes(), [(0, unknown), (1, unknown)]);
    assert!(desk.producer.is_due());
    assert_eq!(desk.poll(), 1);
}

#[test]
fn what_paused_under_an_earlier_map_is_due_under_the_next() {
    let mut desk = Desk::connected(1);
    desk.publish("a", 0);
    desk.poll();
    refuse_first(&mut desk, ErrorCode::StorageFull, None);
    desk.poll();
    desk.producer.set_map(map(2, 4));
    desk.tend();
    assert!(desk.producer.is_due());
    assert_eq!(desk.poll(), 1);
}

#[test]
fn what_was_lost_behind_a_refused_batch_does_not_hold_up_a_new_map() {
    let mut desk = Desk::new(1, |config| config.limits.batch_records = 1);
    desk.producer.connected();
    (0..3).for_each(|ticket| desk.publish("a", ticket));
    assert_eq!(desk.poll(), 3);
    // The first is refused for good reasons; what became of the other two nobody says.
    refuse_first(&mut desk, ErrorCode::MapStale, Some(map(2, 4)));
    desk.sent.clear();
    desk.producer.connected();
    let begun = desk.now;
    let mut node = Node::new(map(2, 4));
    desk.run(&mut node);
    assert!(desk.now - begun < 10_000, "not before its time is over");
    let unknown = Some(ErrorCode::OutcomeUnknown);
    assert_eq!(desk.outcomes(), [(0, None), (1, unknown), (2, unknown)]);
    assert_eq!(node.payloads(), ["0"]);
}

/// Does what a shell does, and only when it is told to: a task that keeps the time, and a stream
/// that sends.
struct Shell {
    desk: Desk,
    node: Node,
    /// On the way to the node.
    sent: VecDeque<Request>,
    timer: Mono,
    task_due: bool,
    stream_due: bool,
}

impl Shell {
    fn new(seed: u64) -> Shell {
        let mut desk = Desk::new(3, |config| {
            config.seed = seed;
            config.limits.batch_records = 3;
            config.limits.unacked_bytes = 600;
            config.delivery_timeout = PATIENCE;
        });
        desk.producer.connected();
        Shell {
            desk,
            node: Node::new(map(1, 3)),
            sent: VecDeque::new(),
            timer: Mono::NEVER,
            task_due: true,
            stream_due: true,
        }
    }

    fn offer(&mut self, topic: u64, ticket: u64) {
        let taken = self.desk.offer(&format!("t{topic}"), ticket);
        self.stream_due |= taken.due;
        // Nobody has a timer.
        self.task_due |= self.timer == Mono::NEVER;
    }

    fn arm(&mut self) {
        let wake = self.desk.wake.unwrap_or(Mono::NEVER);
        assert!(wake > self.desk.now().mono, "later than now");
        self.timer = self.timer.min(wake);
    }

    fn task(&mut self) {
        if std::mem::take(&mut self.task_due) {
            self.desk.tend();
            self.stream_due |= self.desk.producer.is_due();
            self.arm();
        }
    }

    fn stream(&mut self) {
        if std::mem::take(&mut self.stream_due) {
            self.desk.poll();
            self.sent.extend(self.desk.sent.drain(..));
            self.arm();
        }
    }

    fn answer(&mut self) {
        if let Some(request) = self.sent.pop_front() {
            let reply = self.node.answer(&request);
            self.desk.reply(reply);
            self.task_due = true;
        }
    }

    fn cut(&mut self) {
        self.sent.clear();
        self.desk.producer.connected();
        (self.task_due, self.stream_due) = (true, true);
    }

    fn later(&mut self, ms: u64) {
        self.desk.now += ms;
        if self.timer <= self.desk.now().mono {
            self.timer = Mono::NEVER;
            self.task_due = true;
        }
    }

    /// All that goes on by itself, until nothing does.
    fn end(&mut self) {
        loop {
            self.task();
            self.stream();
            self.answer();
            if self.task_due || self.stream_due || !self.sent.is_empty() {
                continue;
            }
            if self.desk.producer.is_idle() {
                return;
            }
            assert!(self.timer < Mono::NEVER, "nobody sees to what is held");
            let until = self.timer.0 / 1_000_000 + 1;
            self.later(until - self.desk.now);
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
                        shell.desk.producer.set_map(newer);
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
        assert_eq!(shell.desk.outcomes().len() as u64, ticket, "seed {seed}");
        let begun = Duration::from_millis(shell.desk.now);
        assert!(begun < PATIENCE, "seed {seed}: something was left lying");
    }
}

#[test]
fn what_a_new_map_brings_to_the_front_too_late_fails_at_the_time_that_is_named() {
    let mut desk = Desk::new(2, |config| config.limits.batch_records = 1);
    let two = map(1, 2);
    let on = |log: u16| {
        let log_of = |name: &String| two.log(TopicName::hash_of(NAMESPACE, name), Lane::Normal);
        let mut names = (0..).map(|n: u32| n.to_string());
        names
            .find(|name| log_of(name).index == LogIndex(log))
            .unwrap()
    };
    desk.publish(&on(1), 0);
    desk.now += 10_000;
    desk.publish(&on(0), 1);
    // The older one comes to stand behind the younger one, and alone again when its time is over.
    desk.producer.set_map(map(2, 1));
    desk.tend();
    desk.now += 21_000;
    desk.producer.set_map(map(3, 2));
    desk.tend();
    assert!(desk.settled.is_empty());
    assert!(desk.wake.unwrap() > desk.now().mono);
    desk.now += 1;
    desk.tend();
    assert_eq!(desk.outcomes(), [(0, Some(ErrorCode::Disconnected))]);
}
