//! A cluster of three brokers, of which some are killed or stand still.

use crate::owner::{Owner, record, values};
use crate::topics::described;
use crate::{claims, try_all};
use airmail_log_kafka::brokers::{
    Answer, Brokers as _, Failure, Partition, Question, Taken, Topic,
};
use airmail_log_kafka::place::Offset;
use airmail_testkit::kafka::KafkaCluster;
use airmail_testkit::waiting;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use std::time::Duration;

/// 16 bytes in base64.
const ID: &str = "dGhyZWUtYnJva2Vycy0wMQ";
/// Time between looks at a cluster.
const LOOK: Duration = Duration::from_millis(100);

#[test]
fn several_brokers_fail_each_for_itself() {
    let directory = tempfile::tempdir().unwrap();
    let Some(mut cluster) = KafkaCluster::start(directory.path(), ID, 3) else {
        return;
    };
    let claims = claims![
        a_topic_has_the_replicas_that_it_was_made_with,
        who_stands_still_holds_up_its_own_partitions_alone,
        when_a_broker_is_killed_its_records_are_stored_when_it_is_back_and_others_meanwhile,
        a_consumer_goes_on_over_a_change_of_leaders,
        after_an_unclean_election_records_are_stored_again,
        it_is_told_when_nothing_can_be_stored_and_when_it_can_again,
    ];
    try_all(&mut cluster, &claims);
}

/// The places of the nodes that lead the partitions of a topic.
fn leaders(cluster: &KafkaCluster, topic: &Topic) -> Vec<usize> {
    let consumer: BaseConsumer = cluster.client().create().unwrap();
    let mut leaders = Vec::new();
    waiting::until("leaders are told", LOOK, || {
        let metadata = consumer.fetch_metadata(Some(topic.as_str()), Duration::from_secs(10));
        let metadata = metadata.map_err(|error| error.to_string())?;
        let topic = metadata.topics().first().ok_or("no topic")?;
        let mut found: Vec<_> = topic.partitions().iter().collect();
        found.sort_by_key(|partition| partition.id());
        let places = found
            .iter()
            .map(|one| usize::try_from(one.leader() - 1).ok());
        leaders = places.collect::<Option<Vec<_>>>().ok_or("no leader")?;
        (!leaders.is_empty())
            .then_some(())
            .ok_or("no partition".to_owned())
    });
    leaders
}

/// The places of the node that leads the first partition of a topic, and of those that are in sync.
fn state(cluster: &KafkaCluster, topic: &Topic) -> Result<(usize, Vec<usize>), String> {
    let consumer: BaseConsumer = cluster.client().create().unwrap();
    let metadata = consumer.fetch_metadata(Some(topic.as_str()), Duration::from_secs(10));
    let metadata = metadata.map_err(|error| error.to_string())?;
    let found = metadata
        .topics()
        .first()
        .and_then(|topic| topic.partitions().first());
    let found = found.ok_or("no partition")?;
    let place = |id: i32| usize::try_from(id - 1).map_err(|_| "no leader".to_owned());
    let in_sync: Result<_, _> = found.isr().iter().map(|id| place(*id)).collect();
    Ok((place(found.leader())?, in_sync?))
}

/// The places of the leader and of the other replica of a partition, once both are in sync.
fn replicas(cluster: &KafkaCluster, topic: &Topic) -> (usize, usize) {
    let mut found = (0, 0);
    waiting::until("two replicas are in sync", LOOK, || {
        let (leader, in_sync) = state(cluster, topic)?;
        let other = in_sync.into_iter().find(|one| *one != leader);
        found = (leader, other.ok_or("one")?);
        Ok(())
    });
    found
}

/// A topic whose partitions have one replica each, a partition that this node leads, and one that it does not.
fn apart(owner: &mut Owner, cluster: &KafkaCluster, name: &str, node: usize) -> [Partition; 2] {
    let topic = owner.make(name, 6, 1);
    let leaders = leaders(cluster, &topic);
    let number = |found: Option<usize>| u16::try_from(found.unwrap()).unwrap();
    let own = number(leaders.iter().position(|one| *one == node));
    let other = number(leaders.iter().position(|one| *one != node));
    [Partition::new(&topic, own), Partition::new(&topic, other)]
}

fn whole(cluster: &KafkaCluster) {
    waiting::until("all brokers are back", LOOK, || {
        cluster.is_whole().then_some(()).ok_or(String::new())
    });
}

/// Stores a record, as soon as that works.
fn store_patiently(owner: &mut Owner, partition: &Partition, value: &str) -> Offset {
    let mut offset = Offset(0);
    waiting::until("a record is stored", LOOK, || {
        // A producer that has failed is made anew as somebody polls.
        owner.poll();
        let token = owner.token();
        let taken = owner.brokers.produce(token, partition, record(value));
        taken.map_err(|why| format!("{why:?}"))?;
        offset = owner.produced(token).map_err(|why| why.0)?.offset;
        Ok(())
    });
    offset
}

fn a_topic_has_the_replicas_that_it_was_made_with(cluster: &mut KafkaCluster) {
    let mut owner = Owner::of(cluster);
    for replicas in 1..=3 {
        let topic = owner.make(&format!("copies-{replicas}"), 3, replicas);
        let described = described(&mut owner, &topic);
        assert_eq!((described.partitions, described.replicas), (3, replicas));
    }
}

fn who_stands_still_holds_up_its_own_partitions_alone(cluster: &mut KafkaCluster) {
    const NODE: usize = 0;
    let mut owner = Owner::of(cluster);
    let [own, other] = apart(&mut owner, cluster, "still", NODE);
    for partition in [&own, &other] {
        owner.store(partition, "before");
        owner.ask_patiently(partition, Question::Watermarks);
    }
    let readers = [
        owner.consume(0, &own, Offset(0)),
        owner.consume(0, &other, Offset(0)),
    ];
    for reader in readers {
        owner.take_until(reader, Offset(1));
    }
    cluster.hold(NODE, true);
    // Its connections are open, so that nothing tells but time.
    let token = owner.produce(&own, "held");
    let timed_out = Answer::Failed(Failure::TimedOut);
    assert_eq!(owner.ask(&own, Question::Watermarks), timed_out);
    for at in 1..20 {
        let stored = store_patiently(&mut owner, &other, "during");
        assert!(stored >= Offset(at));
        owner.ask_patiently(&other, Question::Watermarks);
    }
    let taken = owner.take_until(readers[1], Offset(20));
    assert!(taken.len() >= 20, "{taken:?}");
    cluster.hold(NODE, false);
    let held = owner.produced(token);
    assert!(held.is_ok(), "{held:?}");
    let answer = owner.ask_patiently(&own, Question::Watermarks);
    let (low, high) = (Offset(0), Offset(2));
    assert_eq!(answer, Answer::Watermarks { low, high });
    let taken = owner.take_until(readers[0], Offset(2));
    assert_eq!(values(&taken), [(Offset(1), "held".to_owned())]);
}

fn when_a_broker_is_killed_its_records_are_stored_when_it_is_back_and_others_meanwhile(
    cluster: &mut KafkaCluster,
) {
    const NODE: usize = 1;
    let mut owner = Owner::of(cluster);
    let [own, other] = apart(&mut owner, cluster, "killed", NODE);
    owner.store(&own, "before");
    owner.store(&other, "before");
    cluster.kill(NODE);
    let tokens = ["late", "behind it"].map(|value| owner.produce(&own, value));
    let asked = owner.ask(&own, Question::Watermarks);
    assert!(matches!(asked, Answer::Failed(_)), "{asked:?}");
    store_patiently(&mut owner, &other, "during");
    owner.ask_patiently(&other, Question::Watermarks);
    cluster.revive(NODE);
    whole(cluster);
    let stored = tokens.map(|token| owner.produced(token).unwrap().offset);
    assert_eq!(stored[1], stored[0].plus(1));
    owner.ask_patiently(&own, Question::Watermarks);
}

fn a_consumer_goes_on_over_a_change_of_leaders(cluster: &mut KafkaCluster) {
    let mut owner = Owner::of(cluster);
    let topic = owner.make("moved", 1, 3);
    let partition = Partition::new(&topic, 0);
    let consumer = owner.consume(0, &partition, Offset(0));
    let mut stored = Vec::new();
    let leader = leaders(cluster, &topic)[0];
    for at in 0..60 {
        if at == 30 {
            cluster.kill(leader);
        }
        let value = at.to_string();
        stored.push((store_patiently(&mut owner, &partition, &value), value));
    }
    let (end, _) = stored[59].clone();
    let taken = owner.take_until(consumer, end.plus(1));
    let found = values(&taken);
    // Each that was acknowledged is there, at its offset; what was not known may be.
    assert!(stored.iter().all(|one| found.contains(one)), "{found:?}");
    let offsets: Vec<_> = found.iter().map(|(offset, _)| offset.0).collect();
    assert!(offsets.is_sorted_by(|one, next| one < next), "{offsets:?}");
    assert_eq!(taken.last(), Some(&Taken::End { next: end.plus(1) }));
    cluster.revive(leader);
    whole(cluster);
    assert_eq!(owner.rest(), []);
}

/// The broker that leads then has never heard of what the producer had stored.
fn after_an_unclean_election_records_are_stored_again(cluster: &mut KafkaCluster) {
    let mut owner = Owner::of(cluster);
    let unclean = [("unclean.leader.election.enable", "true")];
    let topic = owner.make_with("unclean", (1, 2), &unclean);
    let other = Partition::new(&owner.make("beside", 1, 3), 0);
    let partition = Partition::new(&topic, 0);
    let first = store_patiently(&mut owner, &partition, "before");
    store_patiently(&mut owner, &other, "before");
    let (leader, follower) = replicas(cluster, &topic);
    cluster.hold(follower, true);
    waiting::until("the leader is alone in sync", LOOK, || {
        let (_, in_sync) = state(cluster, &topic)?;
        (in_sync == [leader])
            .then_some(())
            .ok_or(format!("{in_sync:?}"))
    });
    for _ in 0..10 {
        store_patiently(&mut owner, &partition, "lost");
    }
    cluster.kill(leader);
    cluster.hold(follower, false);
    let again = store_patiently(&mut owner, &partition, "again");
    assert!(again > first);
    store_patiently(&mut owner, &other, "after");
    cluster.revive(leader);
    whole(cluster);
}

fn it_is_told_when_nothing_can_be_stored_and_when_it_can_again(cluster: &mut KafkaCluster) {
    let mut owner = Owner::of(cluster);
    owner.make("trouble", 1, 3);
    assert_eq!(owner.brokers.trouble(), None);
    for node in 0..3 {
        cluster.kill(node);
    }
    waiting::until("the trouble is told", LOOK, || {
        owner.poll();
        owner.brokers.trouble().map(|_| ()).ok_or(String::new())
    });
    for node in 0..3 {
        cluster.revive(node);
    }
    // Without a record that is stored, or a question.
    waiting::until("the trouble is over", LOOK, || {
        owner.poll();
        owner.brokers.trouble().map_or(Ok(()), Err)
    });
}
