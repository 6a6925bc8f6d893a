//! Sets of subscriptions with filters, as users of the SDK see them.

use crate::node::{Node, Wire};
use airmail_client::{
    AttributeValue, Client, ErrorCode, MemberKey, SetItem, SetItems, SetMember, Start,
    SubscriptionSet,
};
use airmail_testkit::waiting::waiting;
use std::collections::BTreeMap;

/// Publishes a message with a price; its number.
async fn publish(client: &Client, topic: &str, price: i64) -> u64 {
    let published = client.publish(topic, price.to_string());
    let published = published.attribute("price", AttributeValue::Integer(price));
    published.await.unwrap().sequence.0
}

/// Waits until a node has all of these members.
async fn ready(set: &mut SubscriptionSet, members: &[MemberKey]) {
    for _ in members {
        match set.next().await.unwrap() {
            Some(SetItem::Ready(member)) => assert!(members.contains(&member)),
            other => panic!("{other:?}"),
        }
    }
}

/// Adds members, and waits until a node has them.
async fn add<const N: usize>(set: &mut SubscriptionSet, members: [SetMember; N]) -> [MemberKey; N] {
    let members = members.map(|member| set.add(member).unwrap());
    ready(set, &members).await;
    members
}

async fn next_message(set: &mut SubscriptionSet) -> (Vec<MemberKey>, String) {
    match set.next().await.unwrap() {
        Some(SetItem::Message(members, message)) => {
            let payload = String::from_utf8(message.payload.to_vec()).unwrap();
            (members, format!("{} {payload}", message.topic()))
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_message_comes_once_with_all_members_that_it_is_for() {
    let _waiting = waiting("messages of a set");
    let node = Node::in_memory().await;
    let client = node.client().await;
    publish(&client, "q/a", 1).await;
    let mut set = client.subscription_set().open().await.unwrap();
    let [one, cheap, all, other] = add(
        &mut set,
        [
            SetMember::topic("q/a", "price = 3"),
            SetMember::prefix("q/", "price < 5"),
            SetMember::everything("price >= 0"),
            SetMember::pattern("*", "price >= 0"),
        ],
    )
    .await;
    for (topic, price) in [("q/a", 3), ("q/b", 3), ("q/a", 9), ("r", 3)] {
        publish(&client, topic, price).await;
    }
    let expected = [
        (vec![one, cheap, all], "q/a 3"),
        (vec![cheap, all], "q/b 3"),
        (vec![all], "q/a 9"),
        (vec![all, other], "r 3"),
    ];
    for (members, text) in expected {
        assert_eq!(next_message(&mut set).await, (members, text.to_owned()));
    }
    // One that comes later, and begins before.
    let late = SetMember::prefix("q/", "price < 5").from(Start::Earliest);
    let late = set.add(late).unwrap();
    ready(&mut set, &[late]).await;
    for text in ["q/a 1", "q/a 3", "q/b 3"] {
        let expected = (vec![late], text.to_owned());
        assert_eq!(next_message(&mut set).await, expected);
    }
    let position = set.position(late).unwrap();
    set.remove(cheap);
    publish(&client, "q/a", 4).await;
    let mut got = Vec::new();
    while got.len() < 2 {
        match set.next_batch().await.unwrap() {
            Some(SetItems::Messages(messages)) => {
                got.extend(messages.iter().flat_map(|(members, ..)| members));
            }
            other => panic!("{other:?}"),
        }
    }
    got.sort_unstable();
    assert_eq!(got, [all, late]);
    // A member's position is one like any other, behind what its filter leaves out.
    let rest = client.subscribe("q/a").from(Start::Position(position));
    let mut rest = rest.open().await.unwrap();
    match rest.next().await.unwrap() {
        Some(airmail_client::Item::Message(message)) => assert_eq!(message.payload, "4"),
        other => panic!("{other:?}"),
    }
    client.close().await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn what_is_no_member_is_refused_at_once_and_one_that_fails_leaves_the_others() {
    let _waiting = waiting("members of a set");
    let node = Node::in_memory().await;
    let client = node.client().await;
    let mut set = client.subscription_set().open().await.unwrap();
    let wrong = [
        SetMember::topic("", "price = 3"),
        SetMember::pattern("a\\", "price = 3"),
        SetMember::topic("a", "price ="),
        SetMember::topic("a", ""),
    ];
    let codes = wrong.map(|member| set.add(member).unwrap_err().code());
    let (topic, subscription) = (ErrorCode::TopicInvalid, ErrorCode::SubscriptionInvalid);
    let filter = ErrorCode::FilterInvalid;
    assert_eq!(codes, [topic, subscription, filter, filter]);
    assert!(set.is_empty());
    let [good] = add(&mut set, [SetMember::topic("a", "price = 3")]).await;
    let too_long = "x".repeat(usize::from(u16::MAX));
    let failing = SetMember::prefix(&too_long, "price = 3");
    let failing = set.add(failing).unwrap();
    match set.next().await.unwrap() {
        Some(SetItem::Failed(member, error)) => {
            assert_eq!((member, error.field_name()), (failing, "prefix"));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(set.len(), 1);
    assert_eq!(set.change(good, "price").unwrap_err().code(), filter);
    publish(&client, "a", 3).await;
    let expected = (vec![good], "a 3".to_owned());
    assert_eq!(next_message(&mut set).await, expected);
    let gone = client.admin().delete("default", None).await;
    gone.unwrap();
    match set.next().await {
        Ok(Some(SetItem::Failed(member, error))) => {
            let code = ErrorCode::NamespaceNotFound;
            assert_eq!((member, error.code()), (good, code));
        }
        other => panic!("{other:?}"),
    }
    client.close().await.unwrap();
    node.stop().await;
}

/// A filter, and the prices that it matches.
type Filter = (&'static str, fn(i64) -> bool);

/// Whether topics are wanted.
type Topics = fn(&str) -> bool;

const FILTERS: [Filter; 4] = [
    ("price < 4", |price| price < 4),
    ("price in (2, 5, 11)", |price| [2, 5, 11].contains(&price)),
    ("price >= 0", |_| true),
    ("price > 8", |price| price > 8),
];

/// Messages that a member has been given, and from which number on by which filter.
#[derive(Debug)]
struct Given {
    topics: Topics,
    /// Filters by place in [`FILTERS`]: the first, and then those that were asked for.
    asked: Vec<usize>,
    /// From which number on each is in force.
    in_force: Vec<u64>,
    numbers: Vec<u64>,
}

impl Given {
    fn expected(&self, published: &BTreeMap<u64, (&str, i64)>) -> Vec<u64> {
        let matches = |(number, (topic, price)): (&u64, &(&str, i64))| {
            let before = self.in_force.iter().filter(|from| *from <= number).count();
            let filter = FILTERS[self.asked[before.checked_sub(1)?]].1;
            ((self.topics)(topic) && filter(*price)).then_some(*number)
        };
        published.iter().filter_map(matches).collect()
    }
}

/// Takes what has come, until there is this message for somebody who gets all.
async fn take_until(
    (set, given): (&mut SubscriptionSet, &mut BTreeMap<MemberKey, Given>),
    (last, of): (u64, MemberKey),
) {
    while given[&of].numbers.last() != Some(&last) {
        match set.next().await.unwrap() {
            Some(SetItem::Message(members, message)) => {
                for member in members {
                    let given = given.get_mut(&member).unwrap();
                    given.numbers.push(message.sequence.0);
                }
            }
            Some(SetItem::Changed(member, from)) => {
                let from = from.logs[0].next.0;
                given.get_mut(&member).unwrap().in_force.push(from);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn each_message_is_held_against_the_filter_in_force_at_its_number_over_lost_connections() {
    let _waiting = waiting("a set whose filters change");
    let node = Node::in_memory().await;
    let wire = Wire::to(node.address).await;
    let cutter = wire.cutter();
    let publisher = node.client().await;
    let through = Client::builder().url(format!("airmail://{}", wire.address));
    let client = through.connect().await.unwrap();
    let mut set = client.subscription_set().open().await.unwrap();
    let wishes: [(SetMember, Topics); 3] = [
        (SetMember::topic("a", FILTERS[0].0), |topic| topic == "a"),
        (SetMember::prefix("b", FILTERS[0].0), |topic| topic == "b"),
        (SetMember::everything(FILTERS[0].0), |_| true),
    ];
    let mut given = BTreeMap::new();
    for (member, topics) in wishes {
        let [member] = add(&mut set, [member]).await;
        let given_to_it = Given {
            topics,
            asked: vec![0],
            in_force: vec![1],
            numbers: Vec::new(),
        };
        given.insert(member, given_to_it);
    }
    let [all] = add(&mut set, [SetMember::everything("has price")]).await;
    given.insert(
        all,
        Given {
            topics: |_| true,
            asked: vec![2],
            in_force: vec![1],
            numbers: Vec::new(),
        },
    );
    let mut published = BTreeMap::new();
    for round in 0..40_usize {
        for n in 0..5_usize {
            let topic = ["a", "b"][(round + n) % 2];
            let price = ((round * 5 + n) * 7 % 12) as i64;
            let number = publish(&publisher, topic, price).await;
            published.insert(number, (topic, price));
            let changing = given.keys().nth((round + n) % 5).copied();
            if let Some(member) = changing.filter(|member| *member != all) {
                let filter = (round + n) % FILTERS.len();
                set.change(member, FILTERS[filter].0).unwrap();
                given.get_mut(&member).unwrap().asked.push(filter);
            }
        }
        if round % 4 == 1 {
            cutter.cut();
        }
        if round % 3 == 0 {
            let last = *published.keys().last().unwrap();
            take_until((&mut set, &mut given), (last, all)).await;
        }
    }
    let last = publish(&publisher, "c", 0).await;
    published.insert(last, ("c", 0));
    take_until((&mut set, &mut given), (last, all)).await;
    for given in given.values() {
        assert_eq!(given.numbers, given.expected(&published), "{given:?}");
        assert!(given.in_force.is_sorted());
        // Changes that come behind the last message are not waited for.
        assert!(given.in_force.len() + 5 > given.asked.len(), "{given:?}");
    }
    client.close().await.unwrap();
    publisher.close().await.unwrap();
    node.stop().await;
}
