//! Parts of a subscription in both lanes. The catalog of these tests has no lane high, so that each test begins the part in it
//! when it will.

use super::super::GatewayEffects;
use super::super::behind::{Begin, BehindState};
use super::transcripts::Driver;
use crate::gateway::scope::Scope;
use crate::gateway::tail_subscriptions::ListKey;
use crate::keys::{BehindKey, LogKey, SubKey};
use crate::link::{Answer, FromTower};
use crate::transcript::{LOG, NAMESPACE, NEXT, read_stored};
use airmail_model::frame::{Reply, State, Until};
use airmail_model::position::LogPosition;
use airmail_model::{Incarnation, Lane, LogId, Sequence, TopicName};

const HIGH: LogId = LogId {
    lane: Lane::High,
    ..LOG
};

/// Client 1 with subscription 0 of topic a, which has a log in each lane.
struct Lanes(Driver);

impl Lanes {
    /// It is live in the normal lane, from 5 on.
    fn normal(credit: u32) -> Lanes {
        let mut lanes = Lanes(Driver::new());
        lanes.step("catalog: there is namespace 1");
        lanes.step("tower: the log is open, in life 7");
        lanes.step(&format!("client 1 opens with {credit} bytes of credit"));
        lanes.step("client 1 adds subscription 0 of topic a, from latest");
        lanes.step("tower: for member 1.0#1, the log ends before 5");
        lanes
    }

    /// It is live in the high lane as well, from 8 on.
    fn live(credit: u32) -> Lanes {
        let mut lanes = Lanes::normal(credit);
        lanes.open(HIGH);
        let part = lanes.begin(HIGH);
        assert_eq!(lanes.located(part, 8), ["live in high from 8"]);
        lanes
    }

    /// It is detached in these lanes, in the normal one from 6 on, and in the high one from 8 on.
    fn detached(late: &[LogId]) -> Lanes {
        let mut lanes = Lanes::live(1);
        assert_eq!(lanes.batch(LOG, "5 a"), ["delivery in normal (4, 5]"]);
        for log in late {
            let (records, told) = match log.lane {
                Lane::Normal => ("6 a", "detached in normal from 6"),
                Lane::High => ("8 a", "detached in high from 8"),
            };
            assert_eq!(lanes.batch(*log, records), [told]);
        }
        lanes
    }

    fn step(&mut self, line: &str) -> Vec<String> {
        self.0.step(line).unwrap_or_else(|| panic!("{line:?}"))
    }

    fn told(&mut self, message: FromTower) -> Vec<String> {
        brief(&self.0.told([message]))
    }

    fn open(&mut self, log: LogId) {
        let incarnation = Incarnation(9);
        self.told(FromTower::Opened { log, incarnation });
    }

    fn sub(&self) -> SubKey {
        let first = self.0.gateway.subs.iter().next();
        first.expect("it is there").0
    }

    fn log(&self, log: LogId) -> LogKey {
        self.0.gateway.logs.find(log).expect("open")
    }

    fn begin(&mut self, log: LogId) -> BehindKey {
        let (sub, log) = (self.sub(), self.log(log));
        let gateway = &mut self.0.gateway;
        gateway.begin_part(sub, log, Begin::Latest, None)
    }

    fn located(&mut self, part: BehindKey, end: u64) -> Vec<String> {
        let answer = self.answer(part, end);
        self.told(answer)
    }

    fn answer(&self, part: BehindKey, end: u64) -> FromTower {
        FromTower::Answer {
            member: self.0.gateway.behind.member(part),
            end: Sequence(end),
            answer: Answer::End,
        }
    }

    fn batch(&mut self, log: LogId, records: &str) -> Vec<String> {
        let stored = read_stored(records).expect("records");
        let key = self.log(log);
        let generation = self.0.gateway.logs[key].tail.generation;
        self.told(FromTower::Live {
            log,
            generation,
            previous: stored.extent.first.before(),
            stored,
        })
    }

    /// The tower has read for the part on a log up to `end`, where that log ends.
    fn reached(&mut self, log: LogId, end: u64) -> Vec<String> {
        let (sub, key) = (self.sub(), self.log(log));
        let gateway = &self.0.gateway;
        let mut parts = gateway.late_parts(sub).into_iter();
        let part = parts.find(|part| gateway.behind[*part].log == key);
        let part = part.expect("it is behind there");
        let member = gateway.behind.member(part);
        let mut told = self.told(FromTower::Reached {
            member,
            next: Sequence(end),
            end: Sequence(end),
        });
        let state = self.0.gateway.behind.iter().find(|(key, _)| *key == part);
        if state.is_some_and(|(_, of)| matches!(of.state, BehindState::Locating(_))) {
            told.extend(self.located(part, end));
        }
        told
    }

    /// Whether it is live in the normal lane, and in the high one; and the number of records of it.
    fn stands(&self) -> (bool, bool, usize) {
        let (gateway, key) = (&self.0.gateway, self.sub());
        let sub = &gateway.subs[key];
        let behind = gateway.late_parts(key).len();
        (
            sub.is_live_in(Lane::Normal),
            sub.is_live_in(Lane::High),
            behind,
        )
    }

    fn is_nothing_left(&self) -> bool {
        let gateway = &self.0.gateway;
        let keys = gateway.logs.keys();
        let mut tails = keys.map(|log| &gateway.logs[log].tail);
        let stats = gateway.stats();
        let counted = stats.live_subscriptions + stats.detached_subscriptions + stats.tails;
        let is_anyone = gateway.subs.len() + gateway.behind.len() > 0;
        !is_anyone && counted == 0 && tails.all(|tail| tail.is_idle() && !tail.is_attached)
    }
}

/// Places, each as `normal from 5`.
fn show(places: &[LogPosition], word: &str) -> String {
    let one = |place: &LogPosition| format!("{} {word} {}", place.log.lane, place.next);
    places.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn brief(out: &GatewayEffects) -> Vec<String> {
    let replies = out.replies.iter().map(|(_, reply)| match reply {
        Reply::Delivery(delivery) => {
            let (lane, previous, last) = (delivery.log.lane, delivery.previous, delivery.last);
            format!("delivery in {lane} ({previous}, {last}]")
        }
        Reply::Status { state, .. } => match state {
            State::Live { places } => format!("live in {}", show(places, "from")),
            State::Complete { places } => format!("complete in {}", show(places, "before")),
            State::Detached {
                log,
                next,
                beside: Some(beside),
                ..
            } => format!(
                "detached in {} from {next}, in {} from {}",
                log.lane, beside.log.lane, beside.next
            ),
            State::Detached { log, next, .. } => format!("detached in {} from {next}", log.lane),
            State::Failed(error) => format!("failed: {:?}", error.code()),
            other => format!("{other:?}"),
        },
        other => format!("{other:?}"),
    });
    replies.collect()
}

#[test]
fn one_place_in_its_topics_list_serves_both_lanes_each_with_a_range_of_its_own() {
    let mut lanes = Lanes::live(1_000_000);
    assert_eq!(lanes.stands(), (true, true, 0));
    let gateway = &lanes.0.gateway;
    let tail = &gateway.logs.tails[gateway.subs[lanes.sub()].tail()];
    let topic = TopicName::hash_of(NAMESPACE, "a");
    let (scope, filter) = (Scope::Topic(topic), None);
    let list = ListKey { scope, filter };
    assert_eq!(tail.listed(&gateway.subs, list).count(), 1);
    assert_eq!(lanes.batch(HIGH, "8 a"), ["delivery in high (7, 8]"]);
    assert_eq!(lanes.batch(LOG, "5 a"), ["delivery in normal (4, 5]"]);
    assert_eq!(lanes.batch(HIGH, "9 b"), [""; 0]);
    assert_eq!(lanes.batch(HIGH, "10 a"), ["delivery in high (8, 10]"]);
}

#[test]
fn without_credit_it_is_detached_in_the_lane_concerned_alone() {
    let lanes = Lanes::detached(&[HIGH]);
    assert_eq!(lanes.stands(), (true, false, 1));
    let stats = lanes.0.gateway.stats();
    let counted = (stats.live_subscriptions, stats.detached_subscriptions);
    assert_eq!(counted, (0, 1), "one that is behind in a lane is behind");
    let lanes = Lanes::detached(&[LOG]);
    assert_eq!(lanes.stands(), (false, true, 1));
}

#[test]
fn each_part_goes_live_again_when_it_has_been_read_for_whatever_the_other_does() {
    for late in [[LOG, HIGH], [HIGH, LOG]] {
        for back in [[LOG, HIGH], [HIGH, LOG]] {
            let mut lanes = Lanes::detached(&late);
            assert_eq!(lanes.stands(), (false, false, 2));
            let stats = lanes.0.gateway.stats();
            assert_eq!(stats.detached_subscriptions, 1, "it is one subscription");
            lanes.step("client 1 gives 1000000 bytes of credit");
            for (n, log) in back.into_iter().enumerate() {
                let (end, told) = match log.lane {
                    Lane::Normal => (7, "live in normal from 7"),
                    Lane::High => (9, "live in high from 9"),
                };
                let lines = lanes.reached(log, end);
                assert_eq!(lines.last().map(String::as_str), Some(told));
                assert_eq!(lanes.stands().2, 1 - n);
            }
            assert_eq!(lanes.stands(), (true, true, 0));
            assert_eq!(lanes.batch(LOG, "7 a"), ["delivery in normal (5, 7]"]);
            assert_eq!(lanes.batch(HIGH, "9 a"), ["delivery in high (7, 9]"]);
        }
    }
}

#[test]
fn one_that_ends_leaves_nothing_in_whichever_states_its_parts_are() {
    let states: [&[LogId]; 5] = [&[], &[LOG], &[HIGH], &[LOG, HIGH], &[HIGH, LOG]];
    for late in states {
        for line in ["client 1 removes subscription 0", "client 1 closes"] {
            let mut lanes = Lanes::detached(late);
            lanes.step(line);
            assert!(lanes.is_nothing_left(), "{line}, with {late:?} behind");
        }
        for log in [LOG, HIGH] {
            let mut lanes = Lanes::detached(late);
            let told = lanes.told(FromTower::Closed { log });
            assert_eq!(told, ["failed: NamespaceNotFound"]);
            assert!(lanes.is_nothing_left(), "{log} closed, {late:?} behind");
        }
    }
}

#[test]
fn one_whose_parts_would_be_live_at_two_tails_is_sent_away_for_a_moment() {
    let mut lanes = Lanes::normal(1);
    lanes.open(NEXT);
    let part = lanes.begin(NEXT);
    assert_eq!(lanes.located(part, 1), ["failed: Overloaded"]);
    assert!(lanes.is_nothing_left());
}

#[test]
fn one_status_tells_of_both_lanes_where_it_goes_live_in_them_in_the_same_step() {
    let mut lanes = Lanes(Driver::new());
    lanes.step("catalog: there is namespace 1");
    lanes.step("tower: the log is open, in life 7");
    lanes.step("client 1 opens with 1000 bytes of credit");
    lanes.step("client 1 adds subscription 0 of topic a, from latest");
    let normal = lanes.0.gateway.late_parts(lanes.sub())[0];
    lanes.open(HIGH);
    let high = lanes.begin(HIGH);
    let answers = [lanes.answer(high, 8), lanes.answer(normal, 5)];
    let told = brief(&lanes.0.told(answers));
    assert_eq!(told, ["live in normal from 5, high from 8"]);
}

#[test]
fn a_part_in_lane_high_waits_until_one_that_began_before_it_is_told() {
    let mut lanes = Lanes(Driver::new());
    lanes.step("the tower gives what is wanted");
    lanes.step("catalog: there is namespace 1");
    lanes.step("tower: the log is open, in life 7");
    lanes.step("client 1 opens with 1000 bytes of credit");
    lanes.step("client 1 adds subscription 0 of topic a, from latest");
    let normal = lanes.0.gateway.late_parts(lanes.sub())[0];
    assert_eq!(lanes.located(normal, 5), [""; 0]);
    let state = lanes.0.gateway.behind[normal].state;
    assert_eq!(state, BehindState::AwaitingWant);
    lanes.open(HIGH);
    let high = lanes.begin(HIGH);
    assert_eq!(lanes.located(high, 1), [""; 0], "the other is not told");
    let told = |lanes: &mut Lanes, log, at| {
        lanes.told(FromTower::Effective {
            log,
            generation: 1,
            edit: 1,
            at: Some(Sequence(at)),
        })
    };
    assert_eq!(told(&mut lanes, HIGH, 1), [""; 0], "nor is this one");
    assert_eq!(told(&mut lanes, LOG, 5), ["live in normal from 5"]);
    assert_eq!(told(&mut lanes, HIGH, 1), ["live in high from 1"]);
}

#[test]
fn one_with_an_end_is_complete_when_both_parts_are_also_where_a_log_is_gone_by_then() {
    for is_gone in [false, true] {
        let mut lanes = Lanes(Driver::new());
        lanes.step("catalog: there is namespace 1");
        lanes.step("tower: the log is open, in life 7");
        lanes.step("client 1 opens with 1000 bytes of credit");
        lanes.step("client 1 adds subscription 0 of topic a, from number 1 until now");
        let normal = lanes.0.gateway.late_parts(lanes.sub())[0];
        lanes.open(HIGH);
        let (sub, log) = (lanes.sub(), lanes.log(HIGH));
        let begin = Begin::At(Sequence::FIRST);
        let gateway = &mut lanes.0.gateway;
        let high = gateway.begin_part(sub, log, begin, Some(Until::Now));
        gateway.ask_until(high, begin, &mut GatewayEffects::default());
        assert_eq!(lanes.located(normal, 3), [""; 0], "the other is sought");
        assert_eq!(
            lanes.located(high, 2),
            ["detached in normal from 1, in high from 1"]
        );
        let ended = |lanes: &mut Lanes, part, next| {
            let member = lanes.0.gateway.behind.member(part);
            let next = Sequence(next);
            lanes.told(FromTower::Ended { member, next })
        };
        let told = ended(&mut lanes, normal, 3);
        assert!(!told.iter().any(|line| line.starts_with("complete")));
        if is_gone {
            lanes.told(FromTower::Closed { log: LOG });
            lanes.told(FromTower::Gone { log: LOG });
        }
        let told = ended(&mut lanes, high, 2);
        let last = told.last().map(String::as_str);
        assert_eq!(last, Some("complete in normal before 3, high before 2"));
        assert!(lanes.is_nothing_left());
    }
}
