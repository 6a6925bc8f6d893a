//! The member of the group: the sources that are ours, and their commits.
//!
//! Sources come and go in callbacks, on the collector's own thread, while it polls. When one goes,
//! its records under way are waited for, for a while; then the acknowledged ones are committed and
//! the rest is left to the next owner. An instance that was thought dead commits nothing: it is no
//! member any more.

use super::clients::log;
use super::error::CollectError;
use super::feed::Feed;
use super::parting::Parting;
use super::settings::{Begin, Origin};
use super::work::Work;
use crate::collector::Effect;
use crate::source::Source;
use parking_lot::{Mutex, MutexGuard};
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{
    BaseConsumer, CommitMode, Consumer as _, ConsumerContext, RebalanceProtocol,
};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::statistics::Statistics;
use rdkafka::topic_partition_list::TopicPartitionListElem;
use rdkafka::types::RDKafkaRespErr;
use rdkafka::{Offset, TopicPartitionList};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Longest time for the group to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pause between two looks whether a source that goes has settled.
const PAUSE: Duration = Duration::from_millis(2);
/// Attempts at a last commit, which nothing would make up for, and the wait between.
const LAST_ATTEMPTS: u32 = 3;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(200);
/// The metadata of a commit that says where to begin: nothing was collected yet.
const BEGINNING: &str = "beginning";

/// The member, as librdkafka calls it back.
pub(super) struct Group {
    work: Mutex<Work>,
    /// Name of the origin in stamps.
    name: String,
    /// The group's topics, by name, each with its place in the list; for topics of Airmail the one topic that
    /// stands for them.
    topics: BTreeMap<String, usize>,
    /// Where messages of Airmail come from.
    feed: Option<Feed>,
    /// Where each partition of the origin ends.
    ends: Mutex<BTreeMap<(String, i32), u64>>,
    /// Records under way are not waited for any more.
    abandoned: AtomicBool,
}

/// A consumer that is a member.
pub(super) type Member = BaseConsumer<Group>;

/// Where a source goes on.
struct Going {
    committed: Option<u64>,
    begun_at: Option<u64>,
    offset: Offset,
}

impl Group {
    /// Makes the context of a member that subscribes to `topics`.
    pub(super) fn new(
        work: Work,
        name: String,
        topics: BTreeMap<String, usize>,
        feed: Option<Feed>,
    ) -> Group {
        Group {
            work: Mutex::new(work),
            name,
            topics,
            feed,
            ends: Mutex::new(BTreeMap::new()),
            abandoned: AtomicBool::new(false),
        }
    }

    /// The work. Not held while the member is asked anything that calls back.
    pub(super) fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock()
    }

    pub(super) fn feed(&self) -> Option<&Feed> {
        self.feed.as_ref()
    }

    /// Gives up waiting: the records under way will not be acknowledged.
    pub(super) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }

    /// The source that a partition of the group's topics is; none for one that stands for nothing.
    pub(super) fn source(&self, topic: &str, partition: i32) -> Option<Source> {
        let place = *self.topics.get(topic)?;
        if self.feed.is_none() {
            return Some(Source {
                topic: place,
                partition,
            });
        }
        let topic = usize::try_from(partition).ok()?;
        let known = topic < self.work().settings.routes.len();
        known.then_some(Source { topic, partition })
    }

    /// The partition of the group's topics that a source is.
    fn partition(&self, source: Source) -> Option<(&str, i32)> {
        let place = if self.feed.is_some() { 0 } else { source.topic };
        let mut topics = self.topics.iter();
        let (topic, _) = topics.find(|(_, at)| **at == place)?;
        Some((topic, source.partition))
    }

    /// Carries out the core's effects for the member.
    ///
    /// # Errors
    /// The client refuses.
    pub(super) fn perform(&self, member: &Member) -> Result<(), CollectError> {
        let effects = self.work().for_member();
        if effects.is_empty() {
            return Ok(());
        }
        let mut commits = TopicPartitionList::new();
        for effect in effects {
            match effect {
                Effect::Pause(source) => self.hold(member, source, true)?,
                Effect::Resume(source) => self.hold(member, source, false)?,
                Effect::Commit { source, next } => self.add_commit(&mut commits, source, next)?,
                Effect::Send(..) => {}
            }
        }
        if commits.count() > 0
            && let Err(error) = member.commit(&commits, CommitMode::Async)
        {
            tracing::warn!(%error, "not committed; it is tried again");
            self.answered(&commits, false);
        }
        Ok(())
    }

    /// Tells the core the results of these commits: if the request went well, each may still have
    /// an error of its own.
    fn answered(&self, commits: &TopicPartitionList, well: bool) {
        for element in commits.elements() {
            let source = self.source(element.topic(), element.partition());
            let Offset::Offset(next) = element.offset() else {
                continue;
            };
            let done = element.error();
            if let Err(error) = &done {
                let (topic, partition) = (element.topic(), element.partition());
                tracing::warn!(%error, topic, partition, "not committed; it is tried again");
            }
            if let (Some(source), Ok(next)) = (source, u64::try_from(next)) {
                let done = well && done.is_ok();
                self.work().commit_answered(source, next, done);
            }
        }
    }

    fn hold(&self, member: &Member, source: Source, pause: bool) -> Result<(), CollectError> {
        // A topic of Airmail is just not read.
        if self.feed.is_some() {
            return Ok(());
        }
        let mut list = TopicPartitionList::new();
        if let Some((topic, partition)) = self.partition(source) {
            list.add_partition(topic, partition);
            let held = if pause {
                member.pause(&list)
            } else {
                member.resume(&list)
            };
            held?;
        }
        Ok(())
    }

    fn add_commit(
        &self,
        list: &mut TopicPartitionList,
        source: Source,
        next: u64,
    ) -> Result<(), CollectError> {
        let Some((topic, partition)) = self.partition(source) else {
            return Ok(());
        };
        let mut work = self.work();
        let metadata = match self.feed {
            None => String::new(),
            Some(_) => {
                let topic = work.settings.routes[source.topic].from.clone();
                let Some(position) = work.position_before(source, next) else {
                    return Ok(());
                };
                format!("{position} {topic}")
            }
        };
        let mut element = list.add_partition(topic, partition);
        element.set_offset(Offset::Offset(i64::try_from(next).unwrap_or(i64::MAX)))?;
        element.set_metadata(metadata);
        Ok(())
    }

    /// Numbers of records that are stored and not collected, for each source that is ours, where
    /// that is known.
    pub(super) fn lags(&self) -> Vec<(String, i32, u64)> {
        let sources = self.work().sources();
        let ends = self.ends.lock();
        let lag = |(source, next): (Source, u64)| {
            let (topic, partition) = self.partition(source)?;
            let end = ends.get(&(topic.to_owned(), partition))?;
            Some((topic.to_owned(), partition, end.saturating_sub(next)))
        };
        sources.into_iter().filter_map(lag).collect()
    }

    fn assign(&self, member: &Member, given: &TopicPartitionList) -> Result<(), CollectError> {
        let known = member.committed_offsets(given.clone(), PATIENCE)?;
        let mut assigned = TopicPartitionList::new();
        for element in known.elements() {
            element.error()?;
            let (topic, partition) = (element.topic(), element.partition());
            let Some(source) = self.source(topic, partition) else {
                assigned.add_partition_offset(topic, partition, Offset::End)?;
                continue;
            };
            let going = self.going(member, source, &element)?;
            assigned.add_partition_offset(topic, partition, going.offset)?;
            let mut work = self.work();
            let from = &work.settings.routes[source.topic].from;
            let name = format!("{}/{from}/{partition}", self.name);
            tracing::info!(source = name, from = going.begun_at, "a source is ours");
            work.assign(source, name, going.committed, going.begun_at);
        }
        give(member, &assigned)?;
        // Whatever it was when it was ours before.
        Ok(member.resume(&assigned)?)
    }

    /// Place from which a source goes on, by its commits.
    fn going(
        &self,
        member: &Member,
        source: Source,
        element: &TopicPartitionListElem<'_>,
    ) -> Result<Going, CollectError> {
        let committed = match element.offset() {
            Offset::Offset(at) => u64::try_from(at).ok(),
            _ => None,
        };
        if let Some(feed) = &self.feed {
            let work = self.work();
            feed.start(&work.settings, source, committed, element.metadata())?;
            return Ok(Going {
                committed,
                begun_at: committed,
                offset: Offset::End,
            });
        }
        let begin = self.work().settings.begin;
        let going = match (committed, begin) {
            (Some(at), _) if element.metadata() == BEGINNING => (None, Some(at)),
            (Some(at), _) => (Some(at), Some(at)),
            (None, Begin::Earliest) => (None, None),
            (None, Begin::Latest) => (None, Some(begin_at_end(member, element)?)),
        };
        let (committed, begun_at) = going;
        let offset = begun_at.and_then(|at| i64::try_from(at).ok());
        Ok(Going {
            committed,
            begun_at,
            offset: offset.map_or(Offset::Beginning, Offset::Offset),
        })
    }

    /// Waits for the records under way, and commits.
    fn revoke(&self, member: &Member, given: &TopicPartitionList) -> Result<(), CollectError> {
        let lost = member.assignment_lost();
        let elements = given.elements();
        let source = |element: &TopicPartitionListElem<'_>| {
            self.source(element.topic(), element.partition())
        };
        let going: Vec<Source> = elements.iter().filter_map(source).collect();
        if !lost {
            self.wait_for(&going);
        }
        for source in &going {
            tracing::info!(?source, lost, "a source is not ours any more");
            if let Some(feed) = &self.feed {
                feed.stop(*source);
            }
            self.work().revoke(*source);
        }
        let effects = self.work().for_member();
        let parting = Parting::of(effects, &going);
        self.work().put_back(parting.left);
        if lost {
            return Ok(());
        }
        self.commit_for_the_last_time(member, parting.last)
    }

    /// Tried more than once where that may help: nobody tries after this.
    fn commit_for_the_last_time(
        &self,
        member: &Member,
        commits: BTreeMap<Source, u64>,
    ) -> Result<(), CollectError> {
        let mut list = TopicPartitionList::new();
        for (source, next) in commits {
            self.add_commit(&mut list, source, next)?;
        }
        if list.count() == 0 {
            return Ok(());
        }
        for attempt in 1..=LAST_ATTEMPTS {
            let Err(error) = member.commit(&list, CommitMode::Sync) else {
                return Ok(());
            };
            self.work().metrics.commit_failures.inc();
            if attempt == LAST_ATTEMPTS || is_for_good(&error) {
                tracing::warn!(%error, "not committed: what was collected since will come again");
                break;
            }
            tracing::warn!(%error, "not committed; it is tried again");
            thread::sleep(BETWEEN_ATTEMPTS);
        }
        Ok(())
    }

    fn wait_for(&self, sources: &[Source]) {
        let started = self.work().now();
        loop {
            let mut work = self.work();
            if let Err(error) = work.settle() {
                work.fail(error);
                return;
            }
            let settled = sources.iter().all(|source| work.is_settled(*source));
            let waited = work.now().saturating_sub(started);
            if settled || waited >= work.settings.hand_over {
                return;
            }
            drop(work);
            if self.abandoned.load(Ordering::Relaxed) {
                return;
            }
            thread::sleep(PAUSE);
        }
    }
}

/// Whether it is no member any more, so that its commits are refused.
fn is_for_good(error: &KafkaError) -> bool {
    use RDKafkaErrorCode as Code;
    matches!(
        error.rdkafka_error_code(),
        Some(Code::IllegalGeneration | Code::UnknownMemberId | Code::FencedInstanceId)
    )
}

fn give(member: &Member, list: &TopicPartitionList) -> Result<(), CollectError> {
    let given = match member.rebalance_protocol() {
        RebalanceProtocol::Cooperative => member.incremental_assign(list),
        _ => member.assign(list),
    };
    Ok(given?)
}

fn let_go(member: &Member, list: &TopicPartitionList) -> Result<(), CollectError> {
    let gone = match member.rebalance_protocol() {
        RebalanceProtocol::Cooperative => member.incremental_unassign(list),
        _ => member.unassign(),
    };
    Ok(gone?)
}

/// Commits the end of a partition at once: the next owner must not miss records that come before a
/// first commit.
fn begin_at_end(
    member: &Member,
    element: &TopicPartitionListElem<'_>,
) -> Result<u64, CollectError> {
    let (topic, partition) = (element.topic(), element.partition());
    let (_, end) = member.fetch_watermarks(topic, partition, PATIENCE)?;
    let mut list = TopicPartitionList::new();
    let mut begin = list.add_partition(topic, partition);
    begin.set_offset(Offset::Offset(end))?;
    begin.set_metadata(BEGINNING);
    member.commit(&list, CommitMode::Sync)?;
    Ok(u64::try_from(end).unwrap_or(0))
}

impl ClientContext for Group {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        log("group", level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::warn!(cluster = "group", %error, reason, "the client reports an error");
    }

    fn stats(&self, statistics: Statistics) {
        let mut ends = self.ends.lock();
        for (name, topic) in statistics.topics {
            for (number, partition) in topic.partitions {
                // Negative: not known yet.
                if let Ok(end) = u64::try_from(partition.hi_offset) {
                    ends.insert((name.clone(), number), end);
                }
            }
        }
    }
}

impl ConsumerContext for Group {
    fn rebalance(&self, member: &Member, code: RDKafkaRespErr, given: &mut TopicPartitionList) {
        self.work().metrics.rebalances.inc();
        let assigned = code == RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
        let done = if assigned {
            let done = self.assign(member, given);
            // The group waits for an answer in any case; then this member leaves it.
            done.or_else(|error| give(member, &TopicPartitionList::new()).and(Err(error)))
        } else {
            let done = self.revoke(member, given);
            let_go(member, given).and(done)
        };
        if let Err(error) = done {
            self.work().fail(error);
        }
    }

    fn commit_callback(&self, result: KafkaResult<()>, offsets: &TopicPartitionList) {
        if let Err(error) = &result {
            if error.rdkafka_error_code() == Some(RDKafkaErrorCode::NoOffset) {
                return;
            }
            tracing::warn!(%error, "not committed; it is tried again");
        }
        self.answered(offsets, result.is_ok());
    }
}

/// Topics that the member of a group subscribes to.
pub(super) fn topics_of(origin: &Origin, group: &str, from: &[&str]) -> BTreeMap<String, usize> {
    match origin {
        Origin::Kafka { .. } => {
            let topics = from.iter().enumerate();
            topics.map(|(at, name)| ((*name).to_owned(), at)).collect()
        }
        Origin::Airmail { .. } => BTreeMap::from([(format!("airmail.collect.{group}"), 0)]),
    }
}
