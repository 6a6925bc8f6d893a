//! History: every stored message of a topic in a range, oldest first, and then the end.
//!
//! After a lost connection it goes on where it was, so that nothing in the range is missing.

use crate::context::ClientContext;
use crate::core::{Attempts, Purpose};
use crate::named_topic::{NamedTopic, topic_name};
use crate::nodes::Node;
use crate::received::{Expired, Gap, Item, LogInForce, Received};
use airmail_model::filter::Filter;
use airmail_model::frame::{Delivery, Reply, Start, Until};
use airmail_model::verdict::{ClockBound, ClockReading, expired};
use airmail_model::{AppendTime, Error, ErrorCode, Incarnation, MapEpoch, Mono, Sequence};
use airmail_proto::error::error_from_status;
use airmail_proto::message::log_from_proto;
use airmail_proto::subscribe::{
    delivery_from_proto, expired_from_proto, filter_to_proto, gap_from_proto, start_to_proto,
    until_to_proto,
};
use airmail_proto::v1;
use std::collections::VecDeque;
use std::sync::Arc;
use tonic::Streaming;

/// A request for history, to be opened.
#[derive(Debug)]
#[must_use = "nothing is read before it is opened"]
pub struct HistoryRequest {
    shared: Arc<ClientContext>,
    namespace: Arc<str>,
    topic: Arc<str>,
    since: Start,
    until: Until,
    limit: Option<u64>,
    tell_expired: bool,
    filter: Option<String>,
    headers_only: bool,
}

impl HistoryRequest {
    pub(crate) fn new(shared: Arc<ClientContext>, topic: &str) -> HistoryRequest {
        HistoryRequest {
            namespace: Arc::clone(&shared.namespace),
            shared,
            topic: topic.into(),
            since: Start::Earliest,
            until: Until::Now,
            limit: None,
            tell_expired: false,
            filter: None,
            headers_only: false,
        }
    }

    /// Reads a topic of another namespace than the client's.
    pub fn namespace(mut self, namespace: &str) -> HistoryRequest {
        self.namespace = namespace.into();
        self
    }

    /// Sets where it begins. Default: with the oldest message kept.
    pub fn since(mut self, since: Start) -> HistoryRequest {
        self.since = since;
        self
    }

    /// Sets where it ends. Default: with the newest message there is now.
    pub fn until(mut self, until: Until) -> HistoryRequest {
        self.until = until;
        self
    }

    /// Limits the number of messages, to the oldest ones. Default: no limit.
    pub fn limit(mut self, limit: u64) -> HistoryRequest {
        self.limit = Some(limit);
        self
    }

    /// Has it give [`Item::Expired`] for each message that it leaves out because that has expired. Default: nothing is said
    /// of those.
    pub fn tell_expired(mut self, tell: bool) -> HistoryRequest {
        self.tell_expired = tell;
        self
    }

    /// Gives only messages that this filter matches, as `price > 20 and region in ('eu', 'us')`: of their attributes, in the
    /// language of `docs/filters.md`. Default: all.
    pub fn filter(mut self, filter: impl Into<String>) -> HistoryRequest {
        self.filter = Some(filter.into());
        self
    }

    /// Leaves payloads out: each message comes with its attributes and all else, and an empty payload, which the node
    /// does not send. Default: with payloads.
    pub fn headers_only(mut self, without: bool) -> HistoryRequest {
        self.headers_only = without;
        self
    }

    /// Opens it. No node is asked before [`History::next`].
    ///
    /// # Errors
    /// `TOPIC_INVALID`, `FILTER_INVALID`, `FILTER_TOO_COMPLEX`.
    pub fn open(self) -> Result<History, Error> {
        topic_name(&self.topic)?;
        let filter = self.filter.as_deref().map(Filter::parse).transpose()?;
        Ok(History {
            attempts: self.shared.attempts(self.shared.call_timeout),
            shared: self.shared,
            named: Arc::new(NamedTopic {
                namespace: self.namespace,
                topic: self.topic,
            }),
            since: self.since,
            until: self.until,
            left: self.limit,
            tell_expired: self.tell_expired,
            filter,
            headers_only: self.headers_only,
            log: None,
            stream: None,
            asked: Mono(0),
            node_clock: ClockBound::default(),
            ready: VecDeque::new(),
            done: false,
        })
    }
}

/// Stored messages, oldest first.
///
/// ```no_run
/// # async fn example(client: airmail_client::Client) -> Result<(), airmail_model::Error> {
/// use airmail_client::Item;
///
/// let mut history = client.history("orders").limit(10).open()?;
/// while let Some(item) = history.next().await? {
///     if let Item::Message(message) = item {
///         println!("{} {}", message.sequence, message.position());
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct History {
    shared: Arc<ClientContext>,
    named: Arc<NamedTopic>,
    since: Start,
    until: Until,
    /// Number of messages that are still wanted; `None` if there is no limit.
    left: Option<u64>,
    tell_expired: bool,
    filter: Option<Filter>,
    headers_only: bool,
    log: Option<LogInForce>,
    stream: Option<(Node, Streaming<v1::HistoryResponse>)>,
    /// When the stream was asked for.
    asked: Mono,
    /// The clock of the stream's node, in microseconds.
    node_clock: ClockBound,
    attempts: Attempts,
    /// Items that have arrived, each with the clock by which it expires, if it does.
    ready: VecDeque<(Item, Option<ClockReading>)>,
    done: bool,
}

impl History {
    /// Waits for the next message or gap; `None` at the end.
    ///
    /// # Errors
    /// `NAMESPACE_NOT_FOUND` and the like; `DISCONNECTED` if no node answers for the client's
    /// `connect_timeout`, or one that has answered is silent for its `call_timeout`.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped before it is done.
    pub async fn next(&mut self) -> Result<Option<Item>, Error> {
        loop {
            if self.left == Some(0) {
                self.done = true;
                self.ready.clear();
            }
            if let Some((item, clock)) = self.ready.pop_front() {
                let Some(item) = self.unexpired(item, clock) else {
                    continue;
                };
                if let (Item::Message(_), Some(left)) = (&item, &mut self.left) {
                    *left -= 1;
                }
                return Ok(Some(item));
            }
            if self.done {
                self.stream = None;
                return Ok(None);
            }
            if let Err(error) = self.advance().await {
                self.stream = None;
                let retry = self.attempts.failed(self.shared.mono(), error);
                self.done = retry.is_err();
                self.shared.sleep_until(retry?).await;
            }
        }
    }

    /// Gives an item that has arrived, unless it is a message that has expired since and nobody is to be told.
    fn unexpired(&self, item: Item, clock: Option<ClockReading>) -> Option<Item> {
        let (Item::Message(message), Some(clock)) = (&item, clock) else {
            return Some(item);
        };
        let time = clock.reaches(self.shared.mono());
        let is_expired = |ttl_ms| expired(time, message.appended, ttl_ms);
        if !message.ttl_ms.is_some_and(is_expired) {
            return Some(item);
        }
        let gone = Expired {
            log: message.log(),
            sequence: message.sequence,
        };
        self.tell_expired.then_some(Item::Expired(gone))
    }

    /// Tells whether [`History::next`] would give an item without waiting. A caller that buffers
    /// its output flushes it where this is false, before it waits.
    #[must_use]
    pub fn ready(&self) -> bool {
        self.left != Some(0) && !self.ready.is_empty()
    }

    async fn advance(&mut self) -> Result<(), Error> {
        let Some((node, stream)) = &mut self.stream else {
            return self.request().await;
        };
        match self.shared.answer_in_time(stream.message()).await {
            Ok(Some(response)) => {
                self.attempts.succeeded();
                self.apply(response)
            }
            Ok(None) => {
                self.done = true;
                Ok(())
            }
            Err(status) => {
                let error = error_from_status(&status);
                let error = self.shared.explain(error, node, &status);
                self.shared.nodes.failed(node, &error);
                Err(error)
            }
        }
    }

    async fn request(&mut self) -> Result<(), Error> {
        let node = self.shared.nodes.node(Purpose::Subscribe)?;
        let request = v1::HistoryRequest {
            namespace: self.named.namespace.to_string(),
            topic: self.named.topic.to_string(),
            since: Some(start_to_proto(&self.since)),
            until: until_to_proto(self.until),
            limit: self.left.unwrap_or(0),
            batches: true,
            tell_expired: self.tell_expired,
            headers_only: self.headers_only,
            filter: filter_to_proto(self.filter.as_ref()),
            roles: self.shared.roles.clone(),
        };
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
        match response.kind {
            Some(Kind::Begin(at)) => {
                self.log = Some(log_of(&at)?);
                let node_us = i64::try_from(at.node_ns / 1_000).unwrap_or(i64::MAX);
                let node = AppendTime(node_us);
                self.node_clock.heard(self.asked, self.shared.mono(), node);
                Ok(())
            }
            Some(Kind::Delivery(delivery)) => {
                let delivery = delivery_from_proto(delivery, self.headers_only)?;
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
                    self.resume_from(last.plus(1));
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
        for record in batch.iter() {
            let sequence = base.plus(record.index.into());
            if record.topic_name != &*self.named.topic || sequence <= previous || sequence > last {
                continue;
            }
            if self
                .filter
                .as_ref()
                .is_some_and(|filter| !filter.matches(&record))
            {
                // A node of before reads no filter in a request for history, and gives everything.
                return Err(
                    Error::unimplemented("filter").value("a message that it does not match")
                );
            }
            let received = Received::new(
                &self.named,
                &record,
                batch.share(record.payload),
                sequence,
                appended,
                log,
            );
            self.ready.push_back((Item::Message(received), clock));
        }
        self.resume_from(last.plus(1));
        Ok(())
    }

    /// Sets where to go on if the connection is lost.
    fn resume_from(&mut self, next: Sequence) {
        self.since = match self.log {
            Some(log) => Start::Position(log.position(next)),
            None => Start::Sequence(next),
        };
    }
}

fn log_of(at: &v1::At) -> Result<LogInForce, Error> {
    Ok(LogInForce {
        id: log_from_proto(at.log.as_ref())?,
        incarnation: Incarnation(at.incarnation),
        epoch: MapEpoch(at.epoch),
    })
}
