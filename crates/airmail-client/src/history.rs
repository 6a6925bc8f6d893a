//! A topic's past: every stored message of a range, oldest first, and then the end.
//!
//! A lost connection is gone on from where it broke, so that what comes is whole.

use crate::context::ClientContext;
use crate::core::Attempts;
use crate::named_topic::{NamedTopic, topic_name};
use crate::nodes::Node;
use crate::received::{Gap, Item, Place, Received};
use airmail_model::frame::{Delivery, Reply, Start, Until};
use airmail_model::{Error, ErrorCode, Incarnation, MapEpoch, Sequence};
use airmail_proto::error::error_from_status;
use airmail_proto::message::log_from_proto;
use airmail_proto::subscribe::{
    delivery_from_proto, gap_from_proto, start_to_proto, until_to_proto,
};
use airmail_proto::v1;
use std::collections::VecDeque;
use std::sync::Arc;
use tonic::Streaming;

/// A look into the past, to be opened.
#[derive(Debug)]
#[must_use = "nothing is read before it is opened"]
pub struct HistoryRequest {
    shared: Arc<ClientContext>,
    namespace: Arc<str>,
    topic: Arc<str>,
    since: Start,
    until: Until,
    limit: Option<u64>,
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
        }
    }

    /// In another namespace than the client's.
    pub fn namespace(mut self, namespace: &str) -> HistoryRequest {
        self.namespace = namespace.into();
        self
    }

    /// Where it begins. Default: with the oldest message kept.
    pub fn since(mut self, since: Start) -> HistoryRequest {
        self.since = since;
        self
    }

    /// Where it ends. Default: with the newest message there is now.
    pub fn until(mut self, until: Until) -> HistoryRequest {
        self.until = until;
        self
    }

    /// At most this many messages, the oldest. Default: all.
    pub fn limit(mut self, limit: u64) -> HistoryRequest {
        self.limit = Some(limit);
        self
    }

    /// Begins. Nothing is asked of a node before [`History::next`].
    ///
    /// # Errors
    /// `TOPIC_INVALID`.
    pub fn open(self) -> Result<History, Error> {
        topic_name(&self.topic)?;
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
            place: None,
            stream: None,
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
    /// Messages still wanted.
    left: Option<u64>,
    place: Option<Place>,
    stream: Option<(Node, Streaming<v1::HistoryResponse>)>,
    attempts: Attempts,
    ready: VecDeque<Item>,
    done: bool,
}

impl History {
    /// The next message or gap; `None` at the end.
    ///
    /// # Errors
    /// `NAMESPACE_NOT_FOUND` and the like; `DISCONNECTED` if no node answers for as long as the
    /// client's `connect_timeout`, or one that answers says nothing for its `call_timeout`.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped before it is done.
    pub async fn next(&mut self) -> Result<Option<Item>, Error> {
        loop {
            if self.left == Some(0) {
                self.done = true;
                self.ready.clear();
            }
            if let Some(item) = self.ready.pop_front() {
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

    /// Whether [`History::next`] would give an item without waiting: who collects what it writes writes it
    /// out before it waits, and waits only where this is `false`.
    #[must_use]
    pub fn ready(&self) -> bool {
        self.left != Some(0) && !self.ready.is_empty()
    }

    async fn advance(&mut self) -> Result<(), Error> {
        let Some((node, stream)) = &mut self.stream else {
            return self.ask().await;
        };
        match self.shared.answer_in_time(stream.message()).await {
            Ok(Some(response)) => {
                self.attempts.succeeded();
                self.take(response)
            }
            Ok(None) => {
                self.done = true;
                Ok(())
            }
            Err(status) => {
                let error = error_from_status(&status);
                let error = self.shared.explain(error, node, &status);
                self.shared.nodes.failed(node);
                Err(error)
            }
        }
    }

    async fn ask(&mut self) -> Result<(), Error> {
        let node = self.shared.nodes.node()?;
        let request = v1::HistoryRequest {
            namespace: self.named.namespace.to_string(),
            topic: self.named.topic.to_string(),
            since: Some(start_to_proto(&self.since)),
            until: until_to_proto(self.until),
            limit: self.left.unwrap_or(0),
            batches: true,
        };
        let mut airmail = node.airmail();
        match self.shared.first_answer(airmail.history(request)).await {
            Ok(answer) => {
                self.stream = Some((node, answer.into_inner()));
                Ok(())
            }
            Err(status) => {
                let error = error_from_status(&status);
                let error = self.shared.explain(error, &node, &status);
                self.shared.nodes.failed(&node);
                Err(error)
            }
        }
    }

    fn take(&mut self, response: v1::HistoryResponse) -> Result<(), Error> {
        use v1::history_response::Kind;
        match response.kind {
            Some(Kind::Begin(at)) => {
                self.place = Some(place_of(&at)?);
                Ok(())
            }
            Some(Kind::Delivery(delivery)) => {
                let delivery = delivery_from_proto(delivery)?;
                self.delivered(delivery)
            }
            Some(Kind::Gap(gap)) => {
                if let Reply::Gap {
                    previous,
                    last,
                    why,
                    ..
                } = gap_from_proto(&gap)?
                {
                    self.go_on_from(last.plus(1));
                    self.ready.push_back(Item::Gap(Gap {
                        first: previous.plus(1),
                        last,
                        reason: why,
                    }));
                }
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
            ..
        } = delivery;
        let batch = delivery.body.into_batch();
        let place = self.place.ok_or_else(|| {
            Error::new(ErrorCode::Internal)
                .field("history")
                .value("without a beginning")
        })?;
        for record in batch.iter() {
            let sequence = base.plus(record.index.into());
            if record.topic_name != &*self.named.topic || sequence <= previous || sequence > last {
                continue;
            }
            let received = Received::new(
                &self.named,
                &record,
                batch.share(record.payload),
                sequence,
                appended,
                place,
            );
            self.ready.push_back(Item::Message(received));
        }
        self.go_on_from(last.plus(1));
        Ok(())
    }

    /// Where to ask again if the connection is lost.
    fn go_on_from(&mut self, next: Sequence) {
        self.since = match self.place {
            Some(place) => Start::Position(place.position(next)),
            None => Start::Sequence(next),
        };
    }
}

fn place_of(at: &v1::At) -> Result<Place, Error> {
    Ok(Place {
        log: log_from_proto(at.log.as_ref())?,
        incarnation: Incarnation(at.incarnation),
        epoch: MapEpoch(at.epoch),
    })
}
