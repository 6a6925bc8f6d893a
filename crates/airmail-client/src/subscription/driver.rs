//! The driver of a subscription, to one topic or to many: connects the core, which decides, with a
//! stream and with the user.
//!
//! There is no task: the core runs when the user asks for more ([`super::connected_core`]).

use super::connected_core::{ConnectedCore, Step};
use super::places::{first_place, places, places_of};
use super::standing::Standing;
use super::subject::Subject;
use crate::context::ClientContext;
use crate::core::{Event, Subscriber, SubscriptionKey};
use crate::received::{Aside, BatchCursor, Expired, Gap, MessageBatch, Received};
use airmail_model::batch::Record;
use airmail_model::filter::Filter;
use airmail_model::frame::State;
use airmail_model::{Error, Lane, Position};
use futures::FutureExt as _;
use std::collections::VecDeque;
use std::sync::Arc;

/// Outcome of waiting for the driver.
#[derive(Debug)]
pub(super) enum Available {
    /// Messages, to be taken by [`SubscriptionDriver::message`] or [`SubscriptionDriver::batch`].
    Messages,
    /// A gap in the topic with this number.
    Gap(usize, Gap),
    /// A message of the topic with this number that has expired.
    Expired(usize, Expired),
    /// The end: there is nothing more, now or later.
    Ended,
}

/// Choices of a user that hold for all topics of a subscription.
#[derive(Clone, Debug, Default)]
pub(super) struct Choices {
    /// Messages that are wanted; `None`: all.
    pub(super) filter: Option<Arc<Filter>>,
    /// Whether the user is told of messages that have expired.
    pub(super) tell_expired: bool,
    /// Whether messages come without payloads.
    pub(super) headers_only: bool,
}

impl Choices {
    /// The same with a filter, if there is a text of one.
    pub(super) fn with_filter(self, text: Option<&str>) -> Result<Choices, Error> {
        let filter = text.map(Filter::parse).transpose()?;
        let filter = filter.map(Arc::new);
        Ok(Choices { filter, ..self })
    }
}

/// Driver of one stream's subscriptions, which one user reads: one for each topic, in the order in
/// which the user gave them, or one for each log of a selection.
#[derive(Debug)]
pub(super) struct SubscriptionDriver {
    connected: ConnectedCore,
    subject: Subject,
    /// State of each subscription. For a selection there is one until its logs are known.
    standings: Vec<Standing>,
    /// Number of subscriptions that are [`Standing::Connecting`].
    connecting: usize,
    /// Keys of the subscriptions, once the namespace has a number.
    keys: Vec<SubscriptionKey>,
    choices: Choices,
    /// Those that are still to be told, by subscription.
    expired: VecDeque<(usize, Expired)>,
    /// Batch that the user reads. Its cost is given back when all of it has been taken.
    reading: Option<BatchCursor>,
    /// Cost of the batches that were given as a whole. They count as consumed when the user asks
    /// for more.
    given: u32,
}

impl SubscriptionDriver {
    /// Makes a driver for topics of one namespace.
    pub(super) fn new(
        shared: Arc<ClientContext>,
        namespace: Arc<str>,
        subject: Subject,
        choices: Choices,
    ) -> SubscriptionDriver {
        SubscriptionDriver {
            connected: ConnectedCore::new(shared, namespace, Subscriber::gathering),
            standings: vec![Standing::Connecting; subject.topics().len().max(1)],
            connecting: subject.topics().len().max(1),
            subject,
            keys: Vec::new(),
            choices,
            expired: VecDeque::new(),
            reading: None,
            given: 0,
        }
    }

    /// Waits until a node has all subscriptions, for the client's `call_timeout` at most.
    pub(super) async fn open(&mut self) -> Result<(), Error> {
        let begun = self.connected.begin_opening();
        let all = self.connected.shared.call_timeout;
        let opened = tokio::time::timeout(all, self.wait_for_all()).await;
        self.connected.ended |= opened.is_err();
        self.connected.end_opening(begun, opened)
    }

    async fn wait_for_all(&mut self) -> Result<(), Error> {
        while self.connecting > 0 && !self.connected.ended {
            self.advance().await?;
            self.apply_statuses()?;
        }
        Ok(())
    }

    pub(super) fn subject(&self) -> &Subject {
        &self.subject
    }

    pub(super) fn standings(&self) -> &[Standing] {
        &self.standings
    }

    /// Takes the next message, if one has arrived, and all that has expired before it was told.
    pub(super) fn message(&mut self) -> Option<Received> {
        let SubscriptionDriver {
            connected,
            choices,
            expired,
            reading,
            subject,
            keys,
            ..
        } = self;
        let ConnectedCore {
            shared,
            epoch,
            core,
            events,
            ..
        } = connected;
        // What has arrived there and was not given is still to come.
        let place = |owner, lane: Lane| {
            let at = core.place(owner, lane)?;
            first_place(events, owner, lane).or(Some(at))
        };
        let is_selection = subject.is_selection();
        let aside = |owner, lane: Lane| {
            if is_selection {
                return Aside::Others(places(core, keys, events).beside(owner, lane));
            }
            Aside::Lane(place(owner, lane.other()))
        };
        let named = |owner: SubscriptionKey, record: &Record<'_>| {
            subject.name_of(owner.index() as usize, record)
        };
        let reading = reading.as_mut()?;
        let tell = |owner, gone| note_expired(choices.tell_expired, expired, owner, gone);
        reading.skip_expired(|| shared.mono(), tell);
        if !expired.is_empty() {
            // Input: what was before the next message is told first.
            return None;
        }
        reading.next(*epoch, named, aside)
    }

    /// Takes all messages of the next one's batch, if one has arrived.
    pub(super) fn batch(&mut self) -> Option<MessageBatch> {
        let reading = self.reading.take_if(|reading| reading.has_more())?;
        self.given += reading.cost();
        let (is_told, expired) = (self.choices.tell_expired, &mut self.expired);
        let tell = |owner, gone| note_expired(is_told, expired, owner, gone);
        reading.rest(|| self.connected.shared.mono(), tell)
    }

    /// Tells whether a message or a gap has arrived.
    pub(super) fn ready(&self) -> bool {
        let now = || self.connected.shared.mono();
        let mut reading = self.reading.iter();
        if !self.expired.is_empty() || reading.any(|reading| reading.has_unexpired(now)) {
            return true;
        }
        for (_, event) in self.connected.events.in_order() {
            match event {
                // A batch has a message for somebody, or there is no event; but it may have expired since.
                Event::Messages(received) => {
                    let time = received.clock.and_then(|_| received.time(now()));
                    if received.has_unexpired(0, time) {
                        return true;
                    }
                }
                Event::Gap(_) | Event::Expired(_) => return true,
                Event::Status(State::Live { .. } | State::Detached { .. }) => {}
                // The end: events behind it are never given.
                Event::Status(_) => return false,
            }
        }
        false
    }

    /// Waits until there are messages, or a gap, or the end. What was given before counts as
    /// consumed.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped before it is done.
    pub(super) async fn wait(&mut self) -> Result<Available, Error> {
        if let Some((topic, expired)) = self.expired.pop_front() {
            return Ok(Available::Expired(topic, expired));
        }
        self.connected.consumed(&mut self.reading, &mut self.given);
        loop {
            while let Some((key, event)) = self.next_arrived() {
                match event {
                    Event::Messages(received) => {
                        self.reading = Some(BatchCursor::new(received));
                        return Ok(Available::Messages);
                    }
                    Event::Gap(gap) => return Ok(Available::Gap(key.index() as usize, gap.into())),
                    Event::Expired(seen) => {
                        self.connected.core.consumed(seen.cost);
                        let (topic, log) = (key.index() as usize, seen.log);
                        let numbers = seen.numbers.into_iter();
                        let expired = numbers.map(|sequence| (topic, Expired { log, sequence }));
                        self.expired.extend(expired);
                        if let Some((topic, expired)) = self.expired.pop_front() {
                            return Ok(Available::Expired(topic, expired));
                        }
                    }
                    Event::Status(state) => self.apply_status(key, state)?,
                }
            }
            if self.connected.has_ended()? {
                return Ok(Available::Ended);
            }
            self.advance().await?;
        }
    }

    /// Takes what is handed over next, after a look at what has arrived meanwhile, by which it may be overtaken.
    fn next_arrived(&mut self) -> Option<(SubscriptionKey, Event)> {
        let wants_look = self.connected.wants_look();
        let looked = wants_look.then(|| self.advance().now_or_never());
        self.connected.next_arrived(looked.flatten())
    }

    /// Gives the position from which a topic goes on after its last message that was given. `None`
    /// before a node has answered, if it did not start at a position.
    pub(super) fn position(&self, topic: usize) -> Option<Position> {
        let key = *self.keys.get(topic)?;
        let ConnectedCore { core, events, .. } = &self.connected;
        let logs = places_of(core, key, self.reading.as_ref(), events)?;
        Some(Position {
            namespace: self.connected.id?,
            epoch: self.connected.epoch,
            logs,
        })
    }

    /// Gives the position from which a selection goes on after its last message that was given: all its logs'. `None` before
    /// each of them has one.
    pub(super) fn whole_position(&self) -> Option<Position> {
        let mut places = places(&self.connected.core, &self.keys, &self.connected.events);
        for key in &self.keys {
            let reading = self.reading.as_ref();
            if let Some(at) = reading.and_then(|reading| reading.place_of(*key)) {
                places.set(*key, at);
            }
        }
        let is_known = !self.keys.is_empty() && places.are_known();
        let namespace = self.connected.id.filter(|_| is_known)?;
        Some(Position {
            namespace,
            epoch: self.connected.epoch,
            logs: places.all(),
        })
    }

    /// Applies the statuses that have come, and leaves the other events for the user: a gap may
    /// come before the first status, if a position is from another life of its log.
    fn apply_statuses(&mut self) -> Result<(), Error> {
        let mut arrived = std::mem::take(&mut self.connected.events);
        while let Some((key, event)) = arrived.pop() {
            match event {
                Event::Status(state) => self.apply_status(key, state)?,
                other => self.connected.events.push((key, other)),
            }
        }
        Ok(())
    }

    fn apply_status(&mut self, key: SubscriptionKey, state: State) -> Result<(), Error> {
        match state {
            State::Live { .. } | State::Detached { .. } => match self.connected.core.is_live(key) {
                Some(true) => self.set_standing(key.index() as usize, Standing::Live),
                Some(false) => self.set_standing(key.index() as usize, Standing::Detached),
                // Not every log of it has been named; or a connection has been lost since.
                None => {}
            },
            // Nobody asks for changes of these.
            State::Changed { .. } | State::Unchanged(_) => {}
            State::Complete { .. } | State::Removed => self.connected.ended = true,
            State::Failed(error) => {
                self.connected.ended = true;
                return Err(error);
            }
        }
        Ok(())
    }

    fn set_standing(&mut self, topic: usize, standing: Standing) {
        if let Some(stood) = self.standings.get_mut(topic) {
            self.connecting -= usize::from(*stood == Standing::Connecting);
            *stood = standing;
        }
    }

    /// Waits for one event of the stream, and applies it together with those that have come by
    /// then.
    async fn advance(&mut self) -> Result<(), Error> {
        let subject = &self.subject;
        let named = |index: u32| subject.named(index as usize);
        let step = self.connected.advance(named).await;
        match step? {
            Step::Opened(map) if self.keys.is_empty() => {
                let specs = self.subject.specs(&map, &self.choices)?;
                let core = &mut self.connected.core;
                self.keys = specs.into_iter().map(|spec| core.add(spec)).collect();
                // A selection's logs are known only now.
                self.connecting = self.keys.len();
                self.standings = vec![Standing::Connecting; self.connecting];
            }
            Step::Disconnected => {
                self.standings.fill(Standing::Connecting);
                self.connecting = self.standings.len();
            }
            Step::Opened(_) | Step::Applied => {}
        }
        Ok(())
    }
}

/// Takes note of a message that has expired, where that is to be told.
fn note_expired(
    is_told: bool,
    expired: &mut VecDeque<(usize, Expired)>,
    owner: SubscriptionKey,
    gone: Expired,
) {
    if is_told {
        expired.push_back((owner.index() as usize, gone));
    }
}
