//! History: every stored message of a topic, or of a selection of topics, in a range, oldest first, and then the end.
//!
//! After a lost connection it goes on where it was, so that nothing in the range is missing. That of a selection is read from
//! each log of the namespace at once, as that of a topic is from its log of each lane ([`log_history`]), and put in order by the
//! time of each message ([`merge`]).

mod connection;
mod log_history;
mod merge;
mod request;

pub use request::HistoryRequest;

use crate::context::ClientContext;
use crate::nodes::Node;
use crate::received::{Aside, Expired, Item};
use airmail_model::frame::{Start, Until};
use airmail_model::position::LogPosition;
use airmail_model::verdict::expired;
use airmail_model::{Error, Lane};
use airmail_proto::namespace::namespace_from_proto;
use airmail_proto::v1;
use connection::HistoryConnection;
use futures::future::try_join_all;
use log_history::{Arrived, LogHistory, Query};
use merge::Merge;
use std::sync::Arc;

/// Stored messages, oldest first. Those of a selection, and of both lanes, come by the time at which they were appended; those of
/// one topic and lane in order, whatever the times.
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
    query: Arc<Query>,
    /// The topic's, or that of each log for a selection: none before it is known how many there are.
    logs: Vec<LogHistory>,
    merge: Merge,
    /// Places, where there are several logs: where each goes on after what was given, but for the one that gave last. Copied only where a
    /// message that was given is kept.
    places: Arc<[Option<LogPosition>]>,
    /// The log that gave last.
    last: usize,
    /// Whether the logs of lane high are read, too.
    has_high: bool,
    /// True once something was taken from a log, so that none may begin anew.
    has_given: bool,
    /// Number of messages that are still wanted; `None` if there is no limit.
    left: Option<u64>,
    done: bool,
}

impl History {
    fn new(shared: Arc<ClientContext>, query: Query, limit: Option<u64>) -> History {
        let is_of_topic = query.selector.is_none();
        let mut history = History {
            shared,
            query: Arc::new(query),
            logs: Vec::new(),
            merge: Merge::new(0),
            places: Arc::default(),
            last: 0,
            has_high: false,
            has_given: false,
            left: limit,
            done: false,
        };
        if is_of_topic {
            history.begin([(None, Lane::Normal)]);
        }
        history
    }

    /// Waits for the next message or gap; `None` at the end.
    ///
    /// # Errors
    /// `NAMESPACE_NOT_FOUND` and the like; `SUBSCRIPTION_INVALID` for a selection by a prefix that is too long;
    /// `DISCONNECTED` if no node answers for the client's `connect_timeout`, or one that has answered is silent for its
    /// `call_timeout`.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped before it is done.
    pub async fn next(&mut self) -> Result<Option<Item>, Error> {
        loop {
            if self.left == Some(0) {
                self.done = true;
            }
            if self.done {
                self.logs.clear();
                return Ok(None);
            }
            self.settle();
            if let Some(log) = self.merge.take() {
                let Some(item) = self.give(log) else {
                    // Input: a message that has expired since it arrived, and of which nobody is to be told.
                    continue;
                };
                if let (Item::Message(_), Some(left)) = (&item, &mut self.left) {
                    *left -= 1;
                }
                return Ok(Some(item));
            }
            let has_ended = !self.logs.is_empty() && self.merge.asked().is_empty();
            if has_ended {
                self.done = true;
                continue;
            }
            let filled = self.fill().await;
            self.done = filled.is_err();
            filled?;
        }
    }

    /// Tells the merge what is known to be next.
    fn settle(&mut self) {
        self.begin_high();
        let History { logs, merge, .. } = self;
        merge.ask(|log| logs.get(log).map_or(Some(None), LogHistory::next_turn));
    }

    /// Waits until it is known of each log what is next.
    async fn fill(&mut self) -> Result<(), Error> {
        if self.logs.is_empty() {
            let logs = self.count_logs().await?;
            let places: Vec<_> = (0..logs).map(|log| (Some(log), Lane::Normal)).collect();
            self.begin(places);
        }
        if let [log] = &mut self.logs[..] {
            // Without the memory that waiting for several takes.
            return log.fill(self.left).await;
        }
        let unknown = self.logs.iter_mut().filter(|log| !log.is_known());
        let filled = try_join_all(unknown.map(|log| log.fill(self.left)));
        filled.await.map(drop)
    }

    /// Asks how many logs the namespace has.
    async fn count_logs(&self) -> Result<u16, Error> {
        let name = self.query.named.namespace.to_string();
        let request = v1::GetNamespaceRequest { name };
        let answer = self.shared.call(true, Node::get_namespace, request);
        Ok(namespace_from_proto(answer.await?)?.spec.logs)
    }

    /// Begins anew with the logs of both lanes, where the namespace turns out to have lane high before anything was given. What a
    /// node says later, over another stream, came to be after the history began, and is none of it. A range of numbers is one of
    /// lane normal alone.
    fn begin_high(&mut self) {
        let has_numbers = matches!(self.query.since, Start::Sequence(_))
            || matches!(self.query.until, Until::Sequence(_));
        let is_needed = !self.has_high && self.logs.iter().any(LogHistory::has_high);
        if has_numbers || self.has_given || !is_needed {
            return;
        }
        self.has_high = true;
        let places = self.logs.iter().map(LogHistory::log_place);
        let both = |place| Lane::ALL.map(|lane| (place, lane));
        let places: Vec<_> = places.flat_map(both).collect();
        self.begin(places);
    }

    /// Begins to read logs, each by its place in a namespace's map and its lane.
    fn begin(
        &mut self,
        places: impl IntoIterator<Item = (Option<u16>, Lane), IntoIter: ExactSizeIterator>,
    ) {
        let places = places.into_iter();
        let connection = Arc::new(HistoryConnection::new(places.len()));
        let log = |place| {
            let (shared, query) = (Arc::clone(&self.shared), Arc::clone(&self.query));
            LogHistory::new(shared, query, Arc::clone(&connection), place)
        };
        self.logs = places.map(log).collect();
        self.merge = Merge::new(self.logs.len());
    }

    /// Gives the next item of a log, unless it is a message that has expired since it arrived and nobody is to be told.
    fn give(&mut self, log: usize) -> Option<Item> {
        let are_several = self.logs.len() > 1 || self.query.selector.is_some();
        if are_several {
            self.note_places(log);
        }
        self.has_given = true;
        let arrived = self.logs.get_mut(log)?.take()?;
        match self.unexpired(arrived)? {
            Item::Message(message) if are_several => {
                let places = Arc::clone(&self.places);
                Some(Item::Message(message.aside(Aside::Others(places))))
            }
            item => Some(item),
        }
    }

    /// Notes where the other logs go on after what was given, before something is given of this one.
    fn note_places(&mut self, log: usize) {
        if self.places.is_empty() {
            // Where each begins was told before anything could be given.
            self.places = self.logs.iter().map(LogHistory::place).collect();
        } else if self.last == log {
            return;
        }
        let places = Arc::make_mut(&mut self.places);
        for (at, place) in [(self.last, self.logs[self.last].place()), (log, None)] {
            if let Some(noted) = places.get_mut(at) {
                *noted = place;
            }
        }
        self.last = log;
    }

    fn unexpired(&self, (item, clock): Arrived) -> Option<Item> {
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
        self.query.tell_expired.then_some(Item::Expired(gone))
    }

    /// Tells whether [`History::next`] would give an item without waiting. A caller that buffers
    /// its output flushes it where this is false, before it waits.
    #[must_use]
    pub fn ready(&self) -> bool {
        let next = |log: &usize| self.logs.get(*log).and_then(LogHistory::next_turn);
        let mut asked = self.merge.asked().iter().map(next);
        let mut has_head = self.merge.has_head();
        let are_known = asked.all(|turn| {
            has_head |= turn.flatten().is_some();
            turn.is_some()
        });
        self.left != Some(0) && are_known && has_head
    }
}
