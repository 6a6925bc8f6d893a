//! The collector's thread.

use super::acks::Acks;
use super::clients::{self, Batches, Sender};
use super::error::CollectError;
use super::feed::{self, Feed};
use super::group::{Group, Member, topics_of};
use super::layout;
use super::metrics::Metrics;
use super::settings::{Origin, Settings};
use super::work::{Taken, Work, target_topics};
use airmail_partition::Cluster;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::Consumer as _;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Message as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tokio::runtime::Builder;

/// Time to wait for a record before acks and the time are looked at again.
const WAIT: Duration = Duration::from_millis(5);
/// The same where messages come past the member's queue.
const WAIT_BESIDE: Duration = Duration::from_millis(1);
/// Records that are taken between two looks at the acks.
const AT_ONCE: usize = 256;
/// Pause between a failure and the next beginning.
const BREATH: Duration = Duration::from_secs(1);
/// Answers that must agree that a topic is not there.
const ANSWERS: usize = 3;
/// Longest time for a cluster to answer at the beginning.
const PATIENCE: Duration = Duration::from_secs(10);
/// Interval at which the records under way are shown.
const SHOW_EVERY: Duration = Duration::from_secs(1);

/// Collects until `stop` is set: then gives its sources up in order. After a failure it begins anew.
///
/// # Errors
/// A failure that beginning anew cannot mend: see [`CollectError::is_final`].
pub fn run(
    settings: Settings,
    metrics: &Arc<Metrics>,
    stop: &Arc<AtomicBool>,
) -> Result<(), CollectError> {
    let settings = Arc::new(settings);
    let mut batches = Batches::Filled;
    while !stop.load(Ordering::Relaxed) {
        match collect(&settings, metrics, stop, batches) {
            Ok(()) => break,
            Err(error) if error.is_too_large() && batches == Batches::Filled => {
                tracing::warn!(%error, "begins anew, with each record in a batch of its own from here on");
                batches = Batches::Single;
            }
            Err(error) if error.is_final() => return Err(error),
            Err(error) => tracing::warn!(%error, "begins anew from what was committed"),
        }
        metrics.beginnings.inc();
        thread::sleep(BREATH);
    }
    Ok(())
}

fn collect(
    settings: &Arc<Settings>,
    metrics: &Arc<Metrics>,
    stop: &AtomicBool,
    batches: Batches,
) -> Result<(), CollectError> {
    let acks = Arc::new(Acks::default());
    let sender = Arc::new(clients::sender(settings, Arc::clone(&acks), batches)?);
    let known = ask_first(&sender, &target_topics(settings))?;
    let work = Work::new(
        Arc::clone(settings),
        Arc::clone(metrics),
        sender,
        acks,
        known,
    )?;
    let member = join(settings, work)?;
    let group = Arc::clone(member.context());
    let done = turns(&member, &group, metrics, stop);
    if done.is_err() {
        group.abandon();
    }
    // Leaving the group calls back for every source that is ours.
    drop(member);
    metrics.standing(Default::default(), 0);
    metrics.lags([]);
    done
}

/// Asks the main cluster for its layout. A topic is missing only if several answers say so: a
/// broker that has just come back may not know yet.
fn ask_first(sender: &Sender, topics: &[String]) -> Result<Cluster, CollectError> {
    for _ in 1..ANSWERS {
        match layout::ask(sender, topics) {
            Err(CollectError::TopicMissing { topic }) => {
                tracing::warn!(topic, "is not in the main cluster; asks again");
                thread::sleep(BREATH);
            }
            told => return told,
        }
    }
    layout::ask(sender, topics)
}

fn join(settings: &Settings, work: Work) -> Result<Member, CollectError> {
    let connection = clients::connection(settings)?;
    let from: Vec<&str> = settings.routes.iter().map(|route| &*route.from).collect();
    let topics = topics_of(&settings.origin, &settings.group, &from);
    let names: Vec<String> = topics.keys().cloned().collect();
    let (name, feed) = match &settings.origin {
        Origin::Kafka { .. } => (cluster_id(&connection)?, None),
        Origin::Airmail { url, namespace } => {
            for topic in &names {
                make_topic(&connection, topic, from.len())?;
            }
            (
                format!("airmail.{namespace}"),
                Some(Feed::connect(url, namespace)?),
            )
        }
    };
    let name = settings.name.clone().unwrap_or(name);
    let group = Group::new(work, name, topics, feed);
    let created = clients::member(settings)?.create_with_context(group);
    let member: Member = created.map_err(|error| CollectError::Client {
        which: "group's",
        error,
    })?;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    member.subscribe(&names)?;
    Ok(member)
}

/// Cluster id of the origin.
fn cluster_id(config: &rdkafka::ClientConfig) -> Result<String, CollectError> {
    let admin: AdminClient<DefaultClientContext> = config.create()?;
    let id = admin.inner().fetch_cluster_id(PATIENCE);
    let no_answer = KafkaError::MetadataFetch(RDKafkaErrorCode::BrokerTransportFailure);
    id.ok_or_else(|| no_answer.into())
}

/// The topic that stands for topics of Airmail in the group; nothing is ever written to it.
fn make_topic(
    config: &rdkafka::ClientConfig,
    name: &str,
    partitions: usize,
) -> Result<(), CollectError> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let admin: AdminClient<DefaultClientContext> = config.create()?;
    let partitions = i32::try_from(partitions).unwrap_or(i32::MAX);
    let topic = NewTopic::new(name, partitions, TopicReplication::Fixed(-1));
    let options = AdminOptions::new().operation_timeout(Some(PATIENCE));
    let made = runtime.block_on(admin.create_topics([&topic], &options))?;
    for topic in made {
        match topic {
            Ok(_) | Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
            Err((_, code)) => return Err(KafkaError::AdminOp(code).into()),
        }
    }
    Ok(())
}

fn turns(
    member: &Member,
    group: &Group,
    metrics: &Metrics,
    stop: &AtomicBool,
) -> Result<(), CollectError> {
    let mut show_at = Duration::ZERO;
    while !stop.load(Ordering::Relaxed) {
        match group.feed() {
            None => take_records(member, group)?,
            Some(feed) => take_messages(member, group, feed)?,
        }
        let mut work = group.work();
        work.settle()?;
        let now = work.now();
        let show = now >= show_at;
        if show {
            show_at = now + SHOW_EVERY;
            work.show();
        }
        drop(work);
        if show {
            metrics.lags(group.lags());
        }
        group.perform(member)?;
    }
    Ok(())
}

/// Takes records from the member's queue, up to a bound; waits for the first.
fn take_records(member: &Member, group: &Group) -> Result<(), CollectError> {
    let mut wait = WAIT;
    for _ in 0..AT_ONCE {
        match member.poll(wait) {
            None => break,
            Some(Ok(message)) => take_record(member, group, &message)?,
            Some(Err(error)) => heed(error)?,
        }
        wait = Duration::ZERO;
    }
    Ok(())
}

/// Handles an error of the client, which mends most by itself and says so; the others are reported.
fn heed(error: KafkaError) -> Result<(), CollectError> {
    match error {
        KafkaError::MessageConsumptionFatal(_) => Err(error.into()),
        error => {
            tracing::warn!(%error, "the group's cluster");
            Ok(())
        }
    }
}

fn take_record(
    member: &Member,
    group: &Group,
    message: &BorrowedMessage<'_>,
) -> Result<(), CollectError> {
    let (topic, partition) = (message.topic(), message.partition());
    let number = u64::try_from(message.offset()).unwrap_or(0);
    let Some(source) = group.source(topic, partition) else {
        return Ok(());
    };
    let jumped = group.work().jumped_from(source, number);
    if let Some(expected) = jumped {
        if number < expected {
            let (topic, group) = (topic.to_owned(), group.work().settings.group.clone());
            return Err(CollectError::WentBack {
                topic,
                partition,
                group,
                expected,
                number,
            });
        }
        // Compacted away, or a transaction's marker; or gone before it was collected.
        let (oldest, _) = member.fetch_watermarks(topic, partition, PATIENCE)?;
        let lost = u64::try_from(oldest).unwrap_or(0).saturating_sub(expected);
        if lost > 0 {
            tracing::error!(
                topic,
                partition,
                expected,
                oldest,
                "gone before it was collected"
            );
            group.work().metrics.lost.inc_by(lost);
        }
    }
    group.work().take(Taken {
        source,
        number,
        key: message.key(),
        value: message.payload(),
        headers: message.headers().map(|headers| headers.detach()),
        time_ms: message.timestamp().to_millis(),
    })
}

/// Takes what subscriptions have; the member's queue has nothing but news of the group.
fn take_messages(member: &Member, group: &Group, feed: &Feed) -> Result<(), CollectError> {
    if let Some(Err(error)) = member.poll(WAIT_BESIDE) {
        heed(error)?;
    }
    for _ in 0..AT_ONCE {
        let mut work = group.work();
        let Some((source, number, message)) = feed.next(|source| !work.is_paused(source))? else {
            break;
        };
        work.note_position(source, number, message.position());
        work.take(Taken {
            source,
            number,
            key: None,
            value: Some(&message.payload[..]),
            headers: Some(feed::headers(&message)),
            time_ms: Some(message.appended.0 / 1_000),
        })?;
    }
    Ok(())
}
