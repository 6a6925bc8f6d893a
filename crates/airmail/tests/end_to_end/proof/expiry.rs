//! Messages that live for 200 ms, and as many of a twin topic that live for ever: for a subscriber that is live, for one
//! that stands still now and then, and for those that come late.
//!
//! At one node, and at gateways whose clocks are two seconds behind and ahead of the tower's, nothing may be handed over
//! at its time to live or later. What its subscriber does not get it is told of, and what is left is of no use: the live
//! one has to get nearly all that its twin gets early. That is told always, and judged with `AIRMAIL_PROVE_JUDGE`.
//!
//! A time is read before each attempt to take a message: the one that succeeds hands it over later than that. So what is
//! found too old was handed over too old, however busy the machine is.

use super::Plan;
use crate::cluster::{gateway, tower};
use airmail_bench::clock::now_us;
use airmail_client::{
    Client, Error, Item, Message, Publisher, Received, Start, Subscription, SubscriptionRequest,
};
use airmail_model::{AppendTime, Limits, TopicName};
use airmail_testkit::node::Node;
use airmail_testkit::scale;
use airmail_testkit::waiting::alive;
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::task::JoinSet;
use tokio::time::sleep;

const TTL: Duration = Duration::from_millis(200);
/// Age until which a message of the twin topic would have been of use.
const EARLY: Duration = Duration::from_millis(150);
/// Bound: messages that the live subscriber gets, over those that its twin gets early.
const SHARE_MIN: f64 = 0.99;
const SHORT: &str = "short";
const TWIN: &str = "twin";
/// Payload of the last message of a topic, which lives for ever.
const END: &[u8] = b"end";
/// Time for which the one that stands still does, and how far back those that come late begin.
const STANDSTILL: Duration = Duration::from_millis(300);
const BACK: Duration = Duration::from_secs(1);

/// Messages of each of the two topics, in all and in a second.
#[derive(Clone, Copy)]
struct Amounts {
    messages: u64,
    rate: u64,
}

/// Messages that a subscriber was given, and told of.
#[derive(Debug, Default)]
struct Taken {
    given: u64,
    /// Those that were given before [`EARLY`].
    early: u64,
    expired: u64,
    too_old: Vec<(u64, i64)>,
    out_of_order: u64,
    last: Option<u64>,
}

impl Taken {
    /// Takes note of a message that was handed over after `before`; `false` if it was the last.
    fn note(&mut self, before: AppendTime, message: &Received) -> bool {
        if *message.payload == *END {
            return false;
        }
        let number = message.payload.first_chunk().copied();
        let number = number.map(u64::from_le_bytes).unwrap();
        let age_us = before.0 - message.appended.0;
        self.given += 1;
        self.early += u64::from(age_us < micros(EARLY));
        self.out_of_order += u64::from(self.last >= Some(number));
        self.last = Some(number);
        if message.ttl_ms.is_some() && age_us >= micros(TTL) {
            self.too_old.push((number, age_us));
        }
        true
    }

    fn assert_right(&self, who: &str) {
        assert_eq!(self.too_old, [], "{who} got what was too old: {self:?}");
        assert_eq!(self.out_of_order, 0, "{who}: {self:?}");
    }

    /// Asserts that it was given or told of each message.
    fn assert_whole(&self, who: &str, messages: u64) {
        // It may be told again of some after a lost connection.
        let known = self.given + self.expired;
        assert!(known >= messages, "{who}: {known} of {messages}: {self:?}");
    }
}

#[test]
fn nothing_is_handed_over_at_its_time_to_live_or_later_whoever_takes_it_and_whatever_clocks_show() {
    let plan = Plan::new("expiry", 1);
    let amounts = match scale::prove("ROUNDS") {
        None => Amounts {
            messages: 2_000,
            rate: 1_000,
        },
        Some(_) => Amounts {
            messages: 10_000_000,
            rate: 100_000,
        },
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for round in plan.rounds() {
        let directory = tempfile::tempdir().unwrap();
        let _watch = plan.watch(round, directory.path());
        let node = Node::start(&directory.path().join("alone"));
        let mut tell = |what: String| plan.tell(round, &what);
        runtime.block_on(act("one node", &node, amounts, &mut tell));
        assert!(node.stop().success());
        for offset in ["-2s", "+2s"] {
            let tower = tower(&directory.path().join(offset), &[]);
            let front = gateway("front", &tower, &["--clock-offset", offset]);
            runtime.block_on(act(offset, &front, amounts, &mut tell));
        }
    }
}

/// Publishes everything at a node, whose clients take it, and judges what they got.
async fn act(name: &str, node: &Node, amounts: Amounts, tell: &mut impl FnMut(String)) {
    let _alive = alive("a run of messages that expire");
    let builder = Client::builder().url(format!("airmail://{}", node.grpc));
    let client = Arc::new(builder.connect().await.unwrap());
    let open = async |topic, from| request(&client, topic, from).open().await.unwrap();
    let mut takers = JoinSet::new();
    let a_part = amounts.rate;
    for (who, topic, a_part) in [
        ("live", SHORT, u64::MAX),
        ("twin", TWIN, u64::MAX),
        ("slow", SHORT, a_part),
    ] {
        let subscription = open(topic, Start::Latest).await;
        takers.spawn(async move { (who, take_all(subscription, a_part).await) });
    }
    let comes = Arc::clone(&client);
    takers.spawn(async move { ("late", come_late(&comes).await) });
    let looks = Arc::clone(&client);
    takers.spawn(async move { ("history", look_back(&looks).await) });
    publish(client.publisher(), amounts).await;
    let taken: BTreeMap<&str, Taken> = takers.join_all().await.into_iter().collect();
    // Now everything has expired, but for the last.
    sleep(TTL).await;
    let rest = take_all(open(SHORT, Start::Earliest).await, u64::MAX).await;
    let twin = &taken["twin"];
    let share = taken["live"].given as f64 / twin.early.max(1) as f64;
    let given = taken.iter().map(|(who, taken)| (who, taken.given));
    let given: Vec<_> = given.collect();
    tell(format!(
        "{name}: the live one got {share:.4} of the {} that its twin had early; {given:?}",
        twin.early
    ));
    for (who, taken) in &taken {
        taken.assert_right(who);
    }
    for (who, taken) in [
        ("live", &taken["live"]),
        ("slow", &taken["slow"]),
        ("rest", &rest),
    ] {
        taken.assert_whole(who, amounts.messages);
    }
    assert_eq!(rest.given, 0, "{rest:?}");
    assert_eq!(twin.given, amounts.messages, "{twin:?}");
    assert!(
        share >= SHARE_MIN || scale::prove("JUDGE").is_none(),
        "{name}: {share}"
    );
}

/// Publishes the messages of both topics in turn, by a timetable.
async fn publish(publisher: Publisher, amounts: Amounts) {
    let names = [SHORT, TWIN].map(|name| TopicName::new(name, &Limits::DEFAULT).unwrap());
    let [short, twin] = &names;
    let begun = now_us();
    for number in 0..amounts.messages {
        let due = begun + number * 1_000_000 / amounts.rate;
        let ahead = due.saturating_sub(now_us());
        // The timer's steps are of a millisecond.
        if ahead >= 1_000 {
            sleep(Duration::from_micros(ahead)).await;
        }
        let payload = number.to_le_bytes();
        let mut message = Message::new(short.clone(), payload.to_vec());
        message.ttl_ms = Some(u32::try_from(TTL.as_millis()).unwrap());
        // Flushing tells what fails.
        drop(publisher.send(message).await.unwrap());
        drop(publisher.send_ref(twin, &payload).await.unwrap());
    }
    for name in &names {
        drop(publisher.send_ref(name, END).await.unwrap());
    }
    publisher.flush().await.unwrap();
}

fn request(client: &Client, topic: &str, from: Start) -> SubscriptionRequest {
    client.subscribe(topic).from(from).tell_expired(true)
}

/// Takes all messages up to the last, and stands still after each `a_part` of them.
async fn take_all(mut subscription: Subscription, a_part: u64) -> Taken {
    let mut taken = Taken::default();
    loop {
        let (before, item) = timed(subscription.next()).await;
        if !note(&mut taken, before, item) {
            return taken;
        }
        if (taken.given + taken.expired).is_multiple_of(a_part) {
            sleep(STANDSTILL).await;
        }
    }
}

/// Begins a second back, reads until it is live, and begins again, up to the last message.
async fn come_late(client: &Client) -> Taken {
    let mut taken = Taken::default();
    loop {
        let begun = wall();
        let from = AppendTime(begun.0 - micros(BACK));
        let mut subscription = request(client, SHORT, Start::Time(from))
            .open()
            .await
            .unwrap();
        taken.last = None;
        loop {
            let (before, item) = timed(subscription.next()).await;
            let is_caught_up =
                matches!(&item, Ok(Some(Item::Message(message))) if message.appended >= begun);
            if !note(&mut taken, before, item) {
                return taken;
            }
            if is_caught_up {
                break;
            }
        }
    }
}

/// Reads the last second's history again and again, up to the last message.
async fn look_back(client: &Client) -> Taken {
    let mut taken = Taken::default();
    loop {
        let from = AppendTime(wall().0 - micros(BACK));
        let history = client.history(SHORT).since(Start::Time(from));
        let mut history = history.tell_expired(true).open().unwrap();
        taken.last = None;
        loop {
            let (before, item) = timed(history.next()).await;
            if let Ok(None) = item {
                break;
            }
            if !note(&mut taken, before, item) {
                return taken;
            }
        }
        sleep(EARLY).await;
    }
}

/// Takes note of an item; `false` if it was the last message.
fn note(taken: &mut Taken, before: AppendTime, item: Result<Option<Item>, Error>) -> bool {
    match item.unwrap() {
        Some(Item::Message(message)) => taken.note(before, &message),
        Some(Item::Expired(_)) => {
            taken.expired += 1;
            true
        }
        other => panic!("{other:?}"),
    }
}

/// Awaits something, and gives the time before the attempt that succeeded.
async fn timed<T>(taking: impl Future<Output = T>) -> (AppendTime, T) {
    let mut taking = pin!(taking);
    poll_fn(|context| {
        let before = wall();
        taking.as_mut().poll(context).map(|item| (before, item))
    })
    .await
}

/// Time by the clock of the node that has the logs.
fn wall() -> AppendTime {
    #[expect(
        clippy::disallowed_methods,
        reason = "a message's age is by the machine's clock"
    )]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    AppendTime(micros(now))
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap()
}
