//! The history of one topic, or of what a selection has in one log: read over lost connections, each time from where it was.

use super::connection::HistoryConnection;
use crate::context::ClientContext;
use crate::core::Attempts;
use crate::history::merge::Turn;
use crate::named_topic::{NamedTopic, TopicNames};
use crate::nodes::Node;
use crate::received::{Expired, Gap, Item, LogInForce, Received};
use airmail_model::batch::Record;
use airmail_model::filter::Filter;
use airmail_model::frame::{Delivery, Reply, Start, Until, Wanted};
use airmail_model::position::LogPosition;
use airmail_model::selector::Selector;
use airmail_model::verdict::{ClockBound, ClockReading};
use airmail_model::{
    AppendTime, Error, ErrorCode, Incarnation, Lane, LogId, MapEpoch, Mono, Sequence,
};
use airmail_proto::error::error_from_status;
use airmail_proto::message::{lane_to_proto, log_from_proto};
use airmail_proto::subscribe::{
    delivery_from_proto, expired_from_proto, filter_to_proto, gap_from_proto, selection_to_proto,
    start_to_proto, until_to_proto,
};
use airmail_proto::v1;
use std::collections::VecDeque;
use std::sync::Arc;
use tonic::Streaming;

/// Wishes of a user for the history of each log.
#[derive(Debug)]
pub(super) struct Query {
    /// Its topic; of a selection, the empty name.
    pub(super) named: Arc<NamedTopic>,
    pub(super) selector: Option<Arc<Selector>>,
    pub(super) since: Start,
    pub(super) until: Until,
    pub(super) tell_expired: bool,
    pub(super) filter: Option<Filter>,
    pub(super) headers_only: bool,
}

/// An item, with the clock by which it expires, if it does.
pub(super) type Arrived = (Item, Option<ClockReading>);

/// Names of the messages' topics.
#[derive(Debug)]
enum Names {
    /// Name of the only topic.
    One(Arc<NamedTopic>),
    /// Those that come.
    Any(TopicNames),
}

/// Stored messages of one topic, or of a selection in one log.
#[derive(Debug)]
pub(super) struct LogHistory {
    shared: Arc<ClientContext>,
    query: Arc<Query>,
    connection: Arc<HistoryConnection>,
    /// Place of the log, of a selection.
    place: Option<u16>,
    lane: Lane,
    /// Whether there is a log of lane high beside it: known with where it begins.
    has_high: bool,
    names: Names,
    /// Where it goes on.
    since: Start,
    log: Option<LogInForce>,
    /// Up to where everything has arrived, and was taken.
    covered: Option<LogPosition>,
    taken: Option<LogPosition>,
    stream: Option<(Node, Streaming<v1::HistoryResponse>)>,
    /// Whether the node has said something over the stream.
    has_heard: bool,
    /// When the stream was asked for.
    asked: Mono,
    /// The clock of the stream's node, in microseconds.
    node_clock: ClockBound,
    attempts: Attempts,
    /// Items that have arrived.
    ready: VecDeque<Arrived>,
    done: bool,
}

impl LogHistory {
    pub(super) fn new(
        shared: Arc<ClientContext>,
        query: Arc<Query>,
        connection: Arc<HistoryConnection>,
        (place, lane): (Option<u16>, Lane),
    ) -> LogHistory {
        LogHistory {
            attempts: shared.attempts(shared.call_timeout),
            shared,
            connection,
            place,
            lane,
            has_high: false,
            names: match &query.selector {
                None => Names::One(Arc::clone(&query.named)),
                Some(_) => Names::Any(TopicNames::new(Arc::clone(&query.named.namespace))),
            },
            since: query.since.clone(),
            query,
            log: None,
            covered: None,
            taken: None,
            stream: None,
            has_heard: false,
            asked: Mono(0),
            node_clock: ClockBound::default(),
            ready: VecDeque::new(),
            done: false,
        }
    }

    /// Gives the place of its log among those of the namespace's map, of a selection.
    pub(super) fn log_place(&self) -> Option<u16> {
        self.place
    }

    /// Tells whether the node has said that there is a log of lane high beside its own.
    pub(super) fn has_high(&self) -> bool {
        self.has_high
    }

    /// Gives the turn of the next item; `Some(None)` if there is no more, and `None` if that is not known yet.
    pub(super) fn next_turn(&self) -> Option<Option<Turn>> {
        let Some((item, _)) = self.ready.front() else {
            return self.done.then_some(None);
        };
        let (appended, log, first) = match item {
            Item::Message(message) => (Some(message.appended), message.log(), message.sequence),
            Item::Gap(gap) => (None, gap.log, gap.first),
            Item::Expired(gone) => (None, gone.log, gone.sequence),
        };
        Some(Some(Turn {
            appended,
            log,
            first,
        }))
    }

    /// Takes the next item, if one has arrived.
    pub(super) fn take(&mut self) -> Option<Arrived> {
        let arrived = self.ready.pop_front()?;
        if self.ready.is_empty() {
            self.taken = self.covered;
        } else if let (Item::Message(message), _) = &arrived {
            self.taken = Some(message.place_after());
        }
        Some(arrived)
    }

    /// Gives the place from which to go on after what was taken. `None` if the node has not said where it begins.
    pub(super) fn place(&self) -> Option<LogPosition> {
        self.taken
    }

    /// Tells whether it is known what is next: an item, or the end.
    pub(super) fn is_known(&self) -> bool {
        self.done || !self.ready.is_empty()
    }

    /// Waits until it is known what is next; no more messages than `limit` are wanted.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped before it is done.
    pub(super) async fn fill(&mut self, limit: Option<u64>) -> Result<(), Error> {
        while !self.is_known() {
            if let Err(error) = self.advance(limit).await {
                self.stream = None;
                let retry = self.attempts.failed(self.shared.mono(), error);
                self.shared.sleep_until(retry?).await;
            }
        }
        Ok(())
    }

    async fn advance(&mut self, limit: Option<u64>) -> Result<(), Error> {
        let Some((node, stream)) = &mut self.stream else {
            return self.request(limit).await;
        };
        match self.shared.answer_in_time(stream.message()).await {
            Ok(Some(response)) => {
                self.attempts.succeeded();
                self.apply(response)
            }
            Ok(None) => {
                let node = node.clone();
                self.stream_ended()
                    .inspect_err(|error| self.shared.nodes.failed(&node, error))
            }
            Err(status) => {
                let error = error_from_status(&status);
                let error = self.shared.explain(error, node, &status);
                self.shared.nodes.failed(node, &error);
                Err(error)
            }
        }
    }

    /// Takes the end of a stream for that of the history. A node says where each history begins, so one of lane high of which
    /// nothing was said is none: that node has not heard of the lane yet, of which another has told.
    fn stream_ended(&mut self) -> Result<(), Error> {
        if self.lane == Lane::High && !self.has_heard {
            return Err(Error::new(ErrorCode::Unavailable)
                .field("lane")
                .value(Lane::High)
                .limit("a lane that the node knows of"));
        }
        self.done = true;
        self.stream = None;
        Ok(())
    }

    async fn request(&mut self, limit: Option<u64>) -> Result<(), Error> {
        let node = self.connection.node(&self.shared)?;
        let query = &self.query;
        let selected = query.selector.as_ref().map(|selector| Wanted::Selected {
            log: self.place,
            selector: Arc::clone(selector),
        });
        let (selector, log) = selected.as_ref().map_or((None, None), selection_to_proto);
        let request = v1::HistoryRequest {
            namespace: query.named.namespace.to_string(),
            topic: query.named.topic.to_string(),
            since: Some(start_to_proto(&self.since)),
            until: until_to_proto(query.until),
            limit: limit.unwrap_or(0),
            batches: true,
            tell_expired: query.tell_expired,
            headers_only: query.headers_only,
            filter: filter_to_proto(query.filter.as_ref()),
            roles: self.shared.roles.clone(),
            selector: selector.map(Into::into),
            log,
            lane: Some(lane_to_proto(self.lane).into()),
        };
        self.has_heard = false;
        self.asked = self.shared.mono();
        self.node_clock = ClockBound::default();
        let answer = node.clone().history(request);
        match self.shared.first_answer(answer).await {
            Ok(answer) => {
                self.stream = Some((node, answer.into_inner()));
                Ok(())
            }
            Err(status) => {
                let error = error_from_status(&status);
                let error = self.shared.explain(error, &node, &status);
                self.shared.nodes.failed(&node, &error);
                Err(error)
            }
        }
    }

    fn apply(&mut self, response: v1::HistoryResponse) -> Result<(), Error> {
        use v1::history_response::Kind;
        self.has_heard = true;
        match response.kind {
            Some(Kind::Begin(at)) => {
                let log = log_of(&at)?;
                self.has_high |= at.has_high;
                self.log = Some(log);
                self.covered = Some(log.place(Sequence(at.next)));
                self.taken = self.taken.or(self.covered);
                let node_us = i64::try_from(at.node_ns / 1_000).unwrap_or(i64::MAX);
                let node = AppendTime(node_us);
                self.node_clock.heard(self.asked, self.shared.mono(), node);
                Ok(())
            }
            Some(Kind::Delivery(delivery)) => {
                let delivery = delivery_from_proto(delivery, self.query.headers_only)?;
                self.delivered(delivery)
            }
            Some(Kind::Gap(gap)) => {
                if let Reply::Gap {
                    log,
                    previous,
                    last,
                    why,
                    ..
                } = gap_from_proto(&gap)?
                {
                    self.resume_from(log, last.plus(1));
                    let gap = Gap {
                        log,
                        first: previous.plus(1),
                        last,
                        reason: why,
                    };
                    self.ready.push_back((Item::Gap(gap), None));
                }
                Ok(())
            }
            Some(Kind::Expired(expired)) => {
                let expired = expired_from_proto(&expired)?;
                let log = expired.log;
                let gone = expired.numbers.into_iter().map(|sequence| {
                    let gone = Expired { log, sequence };
                    (Item::Expired(gone), None)
                });
                self.ready.extend(gone);
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn delivered(&mut self, delivery: Delivery) -> Result<(), Error> {
        let Delivery {
            previous,
            last,
            base,
            appended,
            clock,
            ..
        } = delivery;
        let now = self.shared.mono();
        let clock = clock.map(|of_log| {
            let node_us = self.node_clock.at(now).map_or(0, |node| node.0.max(0));
            let node = Mono(node_us.unsigned_abs().saturating_mul(1_000));
            let clock = of_log.reaches(node);
            ClockReading { clock, at: now }
        });
        let batch = delivery.body.into_batch();
        let log = self.log.ok_or_else(|| {
            Error::new(ErrorCode::Internal)
                .field("history")
                .value("without a beginning")
        })?;
        let filter = self.query.filter.as_ref();
        for record in batch.iter() {
            let sequence = base.plus(record.index.into());
            if sequence <= previous || sequence > last {
                continue;
            }
            let Some(named) = self.names.of(&record) else {
                continue;
            };
            if filter.is_some_and(|filter| !filter.matches(&record)) {
                // A node of before reads no filter in a request for history, and gives everything.
                return Err(
                    Error::unimplemented("filter").value("a message that it does not match")
                );
            }
            let payload = batch.share(record.payload);
            let received = Received::new(named, &record, payload, sequence, appended, log);
            self.ready.push_back((Item::Message(received), clock));
        }
        self.resume_from(log.id, last.plus(1));
        Ok(())
    }

    /// Sets where to go on in a log if the connection is lost.
    fn resume_from(&mut self, log: LogId, next: Sequence) {
        let Some(log) = self.log.filter(|begun| begun.id == log) else {
            // Input: a gap in a log that it has not begun in, whose life is not known. It is told once more if the connection is lost
            // now; a number alone would be one of lane normal, and of the latest log.
            return;
        };
        self.covered = Some(log.place(next));
        self.since = Start::Position(log.position(next));
    }
}

impl Names {
    /// Gives the name of a message's topic; `None` if nobody wants that.
    fn of(&mut self, record: &Record<'_>) -> Option<Arc<NamedTopic>> {
        match self {
            Names::One(named) => (*named.topic == *record.topic_name).then(|| Arc::clone(named)),
            Names::Any(names) => Some(names.of(record)),
        }
    }
}

fn log_of(at: &v1::At) -> Result<LogInForce, Error> {
    Ok(LogInForce {
        id: log_from_proto(at.log.as_ref())?,
        incarnation: Incarnation(at.incarnation),
        epoch: MapEpoch(at.epoch),
    })
}

#[cfg(test)]
mod tests;
