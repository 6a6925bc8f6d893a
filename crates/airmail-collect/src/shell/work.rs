//! The core with the things that it works on: takes records, sends them, and counts their outcomes.
//!
//! Effects for the member of the group (pauses, commits) are kept until the member is at hand.

use super::acks::{Acks, Departed, Ended};
use super::clients::Sender;
use super::error::CollectError;
use super::layout::Watch;
use super::metrics::Metrics;
use super::settings::Settings;
use crate::collector::{Collector, Effect, Event, Ticket};
use crate::placement::Placement;
use crate::source::Source;
use crate::stamp::{RANGE_HEADER, Range, SOURCE_HEADER};
use airmail_client::{Clock as _, Position, SystemClock};
use airmail_partition::{Outcome, Partitioner, record_bytes};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::BaseRecord;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Pause while librdkafka's queue is full, which our bound should not let happen.
const PAUSE: Duration = Duration::from_millis(1);

/// A record of a source.
#[derive(Debug)]
pub(super) struct Taken<'a> {
    pub(super) source: Source,
    pub(super) number: u64,
    pub(super) key: Option<&'a [u8]>,
    pub(super) value: Option<&'a [u8]>,
    pub(super) headers: Option<OwnedHeaders>,
    /// Milliseconds since 1970.
    pub(super) time_ms: Option<i64>,
}

/// Facts about a source that is ours, beside its account.
#[derive(Debug, Default)]
struct Standing {
    /// Name of the source in its stamps.
    name: String,
    /// Where reading began; until the first record has come.
    begun_at: Option<u64>,
    /// Positions to go on from after each message that is not committed, for a topic of Airmail.
    positions: VecDeque<(u64, Position)>,
}

/// All that the collector's thread works with.
pub(super) struct Work {
    pub(super) settings: Arc<Settings>,
    pub(super) metrics: Arc<Metrics>,
    clock: SystemClock,
    collector: Collector,
    placement: Placement,
    sender: Arc<Sender>,
    acks: Arc<Acks>,
    watch: Watch,
    standings: BTreeMap<Source, Standing>,
    effects: Vec<Effect>,
    for_member: Vec<Effect>,
    ends: Vec<Ended>,
    failure: Option<CollectError>,
}

impl Work {
    /// Begins with connected clients; the main cluster is known to `placement`.
    pub(super) fn new(
        settings: Arc<Settings>,
        metrics: Arc<Metrics>,
        sender: Arc<Sender>,
        acks: Arc<Acks>,
        known: airmail_partition::Cluster,
    ) -> Result<Work, CollectError> {
        let partitioner = Partitioner::new(settings.partitioning.clone());
        let targets = settings.routes.iter().map(|route| &*route.to);
        let mut placement = Placement::new(settings.order, partitioner, targets);
        placement.arrange(&known);
        let topics = target_topics(&settings);
        let watch = Watch::start(Arc::clone(&sender), topics, known)?;
        Ok(Work {
            collector: Collector::new(settings.bounds, settings.commit_every),
            clock: SystemClock::default(),
            settings,
            metrics,
            placement,
            sender,
            acks,
            watch,
            standings: BTreeMap::new(),
            effects: Vec::new(),
            for_member: Vec::new(),
            ends: Vec::new(),
            failure: None,
        })
    }

    pub(super) fn now(&self) -> Duration {
        Duration::from_nanos(self.clock.mono().0)
    }

    /// A source is ours, is called `name` in stamps, and is read from `begun_at` on.
    pub(super) fn assign(
        &mut self,
        source: Source,
        name: String,
        committed: Option<u64>,
        begun_at: Option<u64>,
    ) {
        let standing = Standing {
            name,
            begun_at,
            positions: VecDeque::new(),
        };
        self.standings.insert(source, standing);
        self.step(Event::Assigned { source, committed });
    }

    /// A source is not ours any more.
    pub(super) fn revoke(&mut self, source: Source) {
        self.step(Event::Revoked(source));
    }

    /// Takes the answer to a commit.
    pub(super) fn commit_answered(&mut self, source: Source, next: u64, done: bool) {
        let event = if done {
            Event::Committed { source, next }
        } else {
            self.metrics.commit_failures.inc();
            Event::CommitFailed { source, next }
        };
        self.step(event);
    }

    pub(super) fn is_settled(&self, source: Source) -> bool {
        self.collector.is_settled(source)
    }

    pub(super) fn is_paused(&self, source: Source) -> bool {
        self.collector.is_paused(source)
    }

    /// Where reading began, if this is the source's first record since, and another than was expected.
    pub(super) fn jumped_from(&mut self, source: Source, number: u64) -> Option<u64> {
        let begun_at = self.standings.get_mut(&source)?.begun_at.take()?;
        (number != begun_at).then_some(begun_at)
    }

    /// Each source that is ours, with the first number that is not collected.
    pub(super) fn sources(&self) -> Vec<(Source, u64)> {
        let begun = |source| self.standings.get(&source).and_then(|known| known.begun_at);
        let sources = self.collector.sources();
        sources
            .map(|(source, next)| (source, next.max(begun(source).unwrap_or(0))))
            .collect()
    }

    /// Where to go on after this message of a topic of Airmail; before it is taken.
    pub(super) fn note_position(&mut self, source: Source, number: u64, position: Position) {
        if let Some(standing) = self.standings.get_mut(&source) {
            standing.positions.push_back((number, position));
        }
    }

    /// The position that belongs to a commit, if there is one.
    pub(super) fn position_before(&mut self, source: Source, next: u64) -> Option<&Position> {
        let positions = &mut self.standings.get_mut(&source)?.positions;
        while positions.get(1).is_some_and(|(number, _)| *number < next) {
            positions.pop_front();
        }
        let (number, position) = positions.front()?;
        (number + 1 == next).then_some(position)
    }

    /// Takes a record, and sends it unless it was had before.
    ///
    /// # Errors
    /// It cannot be sent.
    pub(super) fn take(&mut self, taken: Taken<'_>) -> Result<(), CollectError> {
        self.metrics.taken.inc();
        let (source, number) = (taken.source, taken.number);
        let bytes = record_bytes(taken.key.map(<[u8]>::len), taken.value.map(<[u8]>::len));
        let took = Event::Took {
            source,
            number,
            bytes,
        };
        match self.step(took) {
            Some((ticket, range)) => self.send(taken, bytes, ticket, range),
            None => Ok(()),
        }
    }

    fn send(
        &mut self,
        taken: Taken<'_>,
        bytes: u32,
        ticket: Ticket,
        range: Range,
    ) -> Result<(), CollectError> {
        let now = self.now();
        let (source, number) = (taken.source, taken.number);
        let place = self.placement.place(source, taken.key, bytes, now)?;
        let name = self
            .standings
            .get(&source)
            .map_or("", |standing| &standing.name);
        let headers = taken
            .headers
            .unwrap_or_else(|| OwnedHeaders::new_with_capacity(2));
        let headers = headers.insert(Header {
            key: SOURCE_HEADER,
            value: Some(name),
        });
        let headers = headers.insert(Header {
            key: RANGE_HEADER,
            value: Some(&range.to_string()),
        });
        let departed = Box::new(Departed {
            ticket,
            number,
            partition: place.partition,
            leader: place.leader,
            bytes,
            at: now,
        });
        let topic = &self.settings.routes[source.topic].to;
        let mut record = BaseRecord::<[u8], [u8], _>::with_opaque_to(topic, departed)
            .partition(place.partition.0)
            .headers(headers);
        record.key = taken.key;
        record.payload = taken.value;
        record.timestamp = taken.time_ms;
        loop {
            match self.sender.send(record) {
                Ok(()) => return Ok(()),
                Err((error, back)) if is(&error, RDKafkaErrorCode::QueueFull) => {
                    record = back;
                    thread::sleep(PAUSE);
                }
                Err((error, _)) => return Err(self.refused(source, number, error)),
            }
        }
    }

    /// Takes the answers that have come, and looks at the time.
    ///
    /// # Errors
    /// A record was refused, or a client has failed.
    pub(super) fn settle(&mut self) -> Result<(), CollectError> {
        let now = self.now();
        let mut ends = std::mem::take(&mut self.ends);
        self.acks.take(&mut ends);
        for ended in ends.drain(..) {
            self.end(ended, now);
        }
        self.ends = ends;
        if let Some(cluster) = self.watch.changed() {
            self.placement.arrange(&cluster);
        }
        self.step(Event::Tick);
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }

    fn end(&mut self, ended: Ended, now: Duration) {
        let Departed {
            ticket,
            number,
            partition,
            leader,
            bytes,
            at,
        } = ended.departed;
        let source = ticket.source();
        let outcome = match &ended.error {
            None => Outcome::Acknowledged,
            Some(error) if is_refusal(error) => Outcome::Refused,
            Some(_) => Outcome::NodeFailed,
        };
        self.placement
            .arrived(source, partition, bytes, outcome, now);
        match ended.error {
            None => {
                let node = leader.map(|node| node.0);
                self.metrics
                    .acknowledged(node, bytes, now.saturating_sub(at));
                self.step(Event::Acknowledged(ticket));
            }
            Some(error) => {
                let failure = self.refused(source, number, error);
                self.failure.get_or_insert(failure);
            }
        }
    }

    /// Notes a failure that happened elsewhere; [`settle`](Work::settle) returns it.
    pub(super) fn fail(&mut self, failure: CollectError) {
        self.failure.get_or_insert(failure);
    }

    /// Takes the effects for the member of the group, in order.
    pub(super) fn for_member(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.for_member)
    }

    /// Keeps for later what could not be told yet.
    pub(super) fn put_back(&mut self, effects: Vec<Effect>) {
        self.for_member.splice(0..0, effects);
    }

    /// Shows the records under way.
    pub(super) fn show(&self) {
        let sources = self.collector.sources().count();
        self.metrics.standing(self.collector.outstanding(), sources);
    }

    /// Steps the core; gives the record to send, if that is one of its effects.
    fn step(&mut self, event: Event) -> Option<(Ticket, Range)> {
        let mut effects = std::mem::take(&mut self.effects);
        self.collector.step(self.now(), event, &mut effects);
        let mut send = None;
        for effect in effects.drain(..) {
            match effect {
                Effect::Send(ticket, range) => send = Some((ticket, range)),
                other => self.for_member.push(other),
            }
        }
        self.effects = effects;
        send
    }

    fn refused(&self, source: Source, number: u64, error: KafkaError) -> CollectError {
        if !is_refusal(&error) {
            return error.into();
        }
        let source_name = self
            .standings
            .get(&source)
            .map(|standing| standing.name.clone());
        CollectError::Refused {
            source_name: source_name.unwrap_or_default(),
            number,
            error,
        }
    }
}

/// The main cluster's topics, each once.
pub(super) fn target_topics(settings: &Settings) -> Vec<String> {
    let mut topics: Vec<String> = settings
        .routes
        .iter()
        .map(|route| route.to.clone())
        .collect();
    topics.sort();
    topics.dedup();
    topics
}

fn is(error: &KafkaError, code: RDKafkaErrorCode) -> bool {
    error.rdkafka_error_code() == Some(code)
}

/// Whether it is the record's own fault, or for want of a permission: to send it again cannot help.
fn is_refusal(error: &KafkaError) -> bool {
    use RDKafkaErrorCode as Code;
    matches!(
        error.rdkafka_error_code(),
        Some(
            Code::MessageSizeTooLarge
                | Code::InvalidMessageSize
                | Code::MessageBatchTooLarge
                | Code::InvalidRecord
                | Code::InvalidTimestamp
                | Code::PolicyViolation
                | Code::TopicAuthorizationFailed
                | Code::ClusterAuthorizationFailed
        )
    )
}
