//! The core of a stream's subscriptions, connected with a stream to a node: it is given what the node says, and what it asks for
//! is sent.
//!
//! There is no task: it runs when the user of the subscriptions asks for more. Replies that have already arrived are applied
//! together, so a burst of small deliveries costs one turn.

use super::arrived::Arrived;
use super::subscribe_stream::{SubscribeEvent, SubscribeStream};
use crate::context::ClientContext;
use crate::core::{
    Attempts, Backoff, Event, Patience, Subscriber, SubscriberOutput, SubscriptionKey,
};
use crate::named_topic::NamedTopic;
use crate::received::BatchCursor;
use airmail_model::frame::{Reply, Welcome};
use airmail_model::{Error, ErrorCode, LogMap, MapEpoch, Mono, NamespaceId};
use std::sync::Arc;

/// Outcome of a step.
#[derive(Debug)]
pub(super) enum Step {
    /// A stream is open to a node, whose map of the namespace this is.
    Opened(LogMap),
    /// The stream has ended. Another one is opened when its time comes.
    Disconnected,
    /// Anything else: there may be events.
    Applied,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct ConnectedCore {
    pub(super) shared: Arc<ClientContext>,
    pub(super) namespace: Arc<str>,
    pub(super) core: Subscriber,
    /// Number of the namespace, once a node has said it.
    pub(super) id: Option<NamespaceId>,
    pub(super) epoch: MapEpoch,
    /// Protocol version that the node speaks.
    pub(super) protocol: u32,
    pub(super) events: Arrived,
    /// True once nothing comes any more but what has arrived.
    pub(super) ended: bool,
    /// Error that ended it, to be told behind what has arrived.
    failed: Option<Error>,
    stream: SubscribeStream,
    attempts: Attempts,
    /// Error that ended the last stream, until another has given a reply.
    lost: Option<Error>,
    /// Output of the core. Empty between steps, and kept for its memory.
    out: SubscriberOutput,
}

impl ConnectedCore {
    /// Makes one for subscriptions of one namespace, with what the core is to be besides.
    pub(super) fn new(
        shared: Arc<ClientContext>,
        namespace: Arc<str>,
        kind: impl FnOnce(Subscriber) -> Subscriber,
    ) -> ConnectedCore {
        let mut config = shared.subscriber;
        config.seed = shared.seed();
        ConnectedCore {
            namespace,
            core: kind(Subscriber::new(config)),
            id: None,
            epoch: MapEpoch(0),
            protocol: 0,
            events: Arrived::default(),
            ended: false,
            failed: None,
            stream: SubscribeStream::Closed(Mono(0)),
            attempts: Attempts::new(Patience::ENDLESS, Backoff::new(config.backoff, config.seed)),
            lost: None,
            out: SubscriberOutput::default(),
            shared,
        }
    }

    /// Lets what is done within `opening` take the client's `call_timeout` at most. Afterwards there is no end to patience.
    pub(super) fn begin_opening(&mut self) -> Mono {
        let (node, all) = (self.shared.connect_timeout, self.shared.call_timeout);
        let begun = self.shared.mono();
        self.attempts.set_patience(Patience { node, all });
        self.attempts = self.attempts.clone().from(begun);
        begun
    }

    /// Has no end of patience any more. Where opening took too long, gives the error that tells why.
    pub(super) fn end_opening<T>(
        &mut self,
        begun: Mono,
        opened: Result<Result<T, Error>, tokio::time::error::Elapsed>,
    ) -> Result<T, Error> {
        self.attempts.set_patience(Patience::ENDLESS);
        opened.unwrap_or_else(|_| {
            let said = self.lost.take().or_else(|| self.core.refused().cloned());
            let silent = || Error::new(ErrorCode::Disconnected).field("subscription");
            let waited = self.shared.mono().since(begun);
            Err(said.unwrap_or_else(silent).waited(waited))
        })
    }

    /// Counts what the user has read as consumed: the rest of the batch that was being read, and those that were given as a
    /// whole, of this cost.
    pub(super) fn consumed(&mut self, reading: &mut Option<BatchCursor>, given: &mut u32) {
        let read = reading.take().map_or(0, |read| read.cost());
        let cost = read + std::mem::take(given);
        if cost > 0 {
            self.core.consumed(cost);
        }
    }

    /// Tells whether it is worth a look at what arrives before [`ConnectedCore::next_arrived`]: it may overtake what goes next.
    pub(super) fn wants_look(&self) -> bool {
        let credit = self.shared.subscriber.credit_bytes as usize;
        !self.ended && self.events.may_be_overtaken(credit)
    }

    /// Takes what is handed over next, after that look. An error that was found by it is told when all has been handed over
    /// ([`ConnectedCore::has_ended`]).
    pub(super) fn next_arrived(
        &mut self,
        looked: Option<Result<(), Error>>,
    ) -> Option<(SubscriptionKey, Event)> {
        if let Some(Err(error)) = looked {
            self.ended = true;
            self.failed = Some(error);
        }
        self.events.pop()
    }

    /// Tells whether there is nothing more, now or later, where nothing is left of what has arrived; or the error that ended
    /// it, once.
    pub(super) fn has_ended(&mut self) -> Result<bool, Error> {
        self.failed.take().map_or(Ok(self.ended), Err)
    }

    /// Waits for one event of the stream, and applies it together with those that have come by
    /// then. `named` knows the topics of the subscriptions. An error ends them all.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped before it is done.
    pub(super) async fn advance<'n>(
        &mut self,
        named: impl Fn(u32) -> Option<&'n NamedTopic>,
    ) -> Result<Step, Error> {
        let mut wake = None;
        if self.core.is_due() {
            wake = self.core.poll(self.shared.mono(), &mut self.out);
            self.stream.send(&mut self.out.requests, named);
            self.events.extend(self.out.events.drain(..));
        }
        let credit = self.shared.subscriber.credit_bytes;
        let next = self.stream.next(&self.shared, &self.namespace, credit);
        let event = match wake {
            None => next.await,
            Some(wake) => tokio::select! {
                event = next => event,
                () = self.shared.sleep_until(wake) => return Ok(Step::Applied),
            },
        };
        let step = match event {
            SubscribeEvent::Opened(welcome) => self.opened(welcome).map(Step::Opened),
            SubscribeEvent::Reply(reply) => self.replied(reply),
            SubscribeEvent::Moved => {
                self.core.disconnected();
                Ok(Step::Disconnected)
            }
            SubscribeEvent::Lost(error) => self.lost(error),
        };
        step.inspect_err(|_| self.ended = true)
    }

    /// Applies a reply, and those that have arrived behind it.
    fn replied(&mut self, first: Reply) -> Result<Step, Error> {
        let now = self.shared.mono();
        self.attempts.succeeded();
        self.lost = None;
        let mut next = Some(SubscribeEvent::Reply(first));
        while let Some(event) = next.take() {
            match event {
                SubscribeEvent::Reply(reply) => {
                    self.core.reply(now, reply, &mut self.out);
                    self.events.extend(self.out.events.drain(..));
                    if self.events.has_room() {
                        next = self.stream.ready(&self.shared);
                    }
                }
                SubscribeEvent::Opened(_) | SubscribeEvent::Moved => {}
                SubscribeEvent::Lost(error) => return self.lost(error),
            }
        }
        Ok(Step::Applied)
    }

    fn opened(&mut self, welcome: Welcome) -> Result<LogMap, Error> {
        let name = &*self.namespace;
        let not_found = || {
            let error = Error::new(ErrorCode::NamespaceNotFound);
            error.field("namespace").value(name)
        };
        let mut maps = welcome.namespaces.into_iter();
        let map = maps.find(|named| named.name == name);
        let map: LogMap = map.ok_or_else(not_found)?.map;
        if self.id.is_some_and(|id| id != map.namespace) {
            // The namespace was deleted, and another one created under its name.
            return Err(not_found());
        }
        self.id = Some(map.namespace);
        self.epoch = map.epoch;
        self.protocol = welcome.protocol;
        self.core.set_map(&map);
        self.core.connected();
        Ok(map)
    }

    fn lost(&mut self, error: Error) -> Result<Step, Error> {
        tracing::debug!(%error, namespace = %self.namespace, "subscribe stream lost");
        self.core.disconnected();
        self.lost = Some(error.clone());
        let retry = self.attempts.failed(self.shared.mono(), error);
        self.stream = SubscribeStream::Closed(retry?);
        Ok(Step::Disconnected)
    }
}
