//! The task that publishes: one for each client, around the core's [`Producer`].
//!
//! It takes what is in its queue in one go, gives it to the producer, and sends what that wants
//! sent; meanwhile more gathers. While a message waits for room or for its namespace, the queue is
//! not read, and whoever sends has to wait.

use super::groups::{Groups, Waiter};
use super::wire::{Happening, Wire};
use super::{Published, Summary};
use crate::builder::Shutdown;
use crate::client::Shared;
use crate::core::{Backoff, Producer, ProducerOutput, PublishError, Ticket};
use airmail_model::frame::{Reply, Request};
use airmail_model::{Error, ErrorCode, Message, Mono, NamespaceId, Now, ProducerEpoch, ProducerId};
use airmail_proto::hello::NamedMap;
use airmail_proto::namespace::DEFAULT_NAMESPACE;
use airmail_proto::publish::{ack_from_proto, batch_to_proto, maps_from_proto};
use airmail_proto::v1::{self, publish_request, publish_response};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Commands that wait for the task.
const QUEUE: usize = 1024;
/// Commands taken in one turn.
const TURN: usize = 1024;
/// A frame with this many bytes of batches is sent; one batch may make it larger.
const FRAME_BYTES: usize = 1 << 20;

/// Messages, and who waits for them.
#[derive(Debug)]
pub(super) enum Work {
    One(Message, oneshot::Sender<Result<Published, Error>>),
    Many(VecDeque<Message>, oneshot::Sender<Summary>),
}

/// What is asked of the task.
#[derive(Debug)]
pub(super) enum Command {
    Publish(Arc<str>, Work),
    Flush(oneshot::Sender<()>),
    Close,
}

/// The way to the task.
#[derive(Clone, Debug)]
pub(crate) struct Handle(mpsc::Sender<Command>);

/// The task's end of it.
#[derive(Debug)]
pub(crate) struct Mailbox(mpsc::Receiver<Command>);

pub(crate) fn channel() -> (Handle, Mailbox) {
    let (handle, mailbox) = mpsc::channel(QUEUE);
    (Handle(handle), Mailbox(mailbox))
}

/// The client takes nothing more.
pub(super) fn closed() -> Error {
    Error::new(ErrorCode::ShuttingDown)
        .field("client")
        .value("closed")
}

impl Handle {
    pub(super) async fn send(&self, command: Command) -> Result<(), Error> {
        self.0.send(command).await.map_err(|_| closed())
    }

    /// Asks the task to end when all is settled.
    pub(crate) async fn close(&self) {
        // If it is closed already, all the better.
        let _ = self.0.send(Command::Close).await;
    }
}

/// What could not be given to the producer yet.
#[derive(Debug)]
struct Stalled {
    namespace: Arc<str>,
    messages: VecDeque<Message>,
    ticket: Ticket,
    since: Mono,
}

struct Actor {
    shared: Arc<Shared>,
    producer: Producer,
    wire: Wire,
    groups: Groups,
    stalled: Option<Stalled>,
    namespaces: BTreeMap<String, NamespaceId>,
    /// The namespace asked for on the open stream.
    resolving: Option<Arc<str>>,
    backoff: Backoff,
    /// The queue has been read to its end.
    drained: bool,
}

/// Runs until closed and settled.
pub(crate) async fn run(shared: Arc<Shared>, mailbox: Mailbox, shutdown: Option<Shutdown>) {
    let Mailbox(mut queue) = mailbox;
    let mut shutdown = shutdown.unwrap_or_else(|| Box::pin(std::future::pending()));
    let mut actor = Actor::new(shared);
    loop {
        let wake = actor.turn();
        if actor.drained && actor.stalled.is_none() && actor.producer.is_idle() {
            return;
        }
        let takes = actor.stalled.is_none() && !actor.drained;
        let wanted = actor.stalled.is_some() || !actor.producer.is_idle();
        let names = if actor.wire.is_open() {
            Vec::new()
        } else {
            actor.names()
        };
        let shared = Arc::clone(&actor.shared);
        tokio::select! {
            () = &mut shutdown => {
                shutdown = Box::pin(std::future::pending());
                queue.close();
            }
            command = queue.recv(), if takes => actor.take(command, &mut queue),
            happening = actor.wire.next(wanted, &names) => actor.happened(happening),
            () = shared.sleep_until(wake.unwrap_or(Mono::NEVER)), if wake.is_some() => {}
        }
    }
}

impl Actor {
    fn new(shared: Arc<Shared>) -> Actor {
        let mut config = shared.producer.clone();
        config.seed = shared.seed();
        // 0 stands for none.
        let id = ProducerId(shared.seed().max(1));
        Actor {
            producer: Producer::new(config, id, ProducerEpoch(0)),
            wire: Wire::new(Arc::clone(&shared)),
            groups: Groups::default(),
            stalled: None,
            namespaces: BTreeMap::new(),
            resolving: None,
            backoff: shared.backoff(),
            drained: false,
            shared,
        }
    }

    fn now(&self) -> Now {
        self.shared.nodes.clock.now()
    }

    /// The namespaces to be resolved by Hello.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.namespaces.keys().cloned().collect();
        if let Some(stalled) = &self.stalled
            && !self.namespaces.contains_key(&*stalled.namespace)
        {
            names.push(stalled.namespace.to_string());
        }
        names
    }

    /// Takes a command and all that wait behind it, up to a bound, until one has to wait.
    fn take(&mut self, first: Option<Command>, queue: &mut mpsc::Receiver<Command>) {
        let Some(first) = first else {
            self.drained = true;
            return;
        };
        let mut next = Some(first);
        for _ in 0..TURN {
            match next.take() {
                Some(Command::Publish(namespace, work)) => self.publish(namespace, work),
                Some(Command::Flush(done)) => self.groups.flush(done),
                Some(Command::Close) => queue.close(),
                None => return,
            }
            if self.stalled.is_some() {
                return;
            }
            next = queue.try_recv().ok();
        }
        // The bound is reached with one command in hand.
        if let Some(Command::Publish(namespace, work)) = next {
            self.publish(namespace, work);
        } else if let Some(Command::Flush(done)) = next {
            self.groups.flush(done);
        } else if next.is_some() {
            queue.close();
        }
    }

    fn publish(&mut self, namespace: Arc<str>, work: Work) {
        // Without a name it is the default one, which the node's answer calls by its name.
        let namespace = match &*namespace {
            "" => Arc::from(DEFAULT_NAMESPACE),
            _ => namespace,
        };
        let (messages, waiter) = match work {
            Work::One(message, done) => (VecDeque::from([message]), Waiter::One(done)),
            Work::Many(messages, done) => (messages, Waiter::Many(done)),
        };
        let ticket = self.groups.begin(waiter, messages.len());
        self.stalled = Some(Stalled {
            namespace,
            messages,
            ticket,
            since: self.now().mono,
        });
        self.go_on();
    }

    /// Gives what is stalled to the producer, as far as it takes it.
    fn go_on(&mut self) {
        let Some(mut stalled) = self.stalled.take() else {
            return;
        };
        let now = self.now();
        let Some(namespace) = self.namespaces.get(&*stalled.namespace).copied() else {
            self.resolve(stalled, now.mono);
            return;
        };
        while let Some(message) = stalled.messages.front() {
            match self
                .producer
                .publish(now, namespace, message, stalled.ticket)
            {
                Ok(()) => {}
                Err(PublishError::Refused(error)) => self.groups.failed(stalled.ticket, 1, &error),
                Err(PublishError::Full | PublishError::Unresolved) => {
                    self.stalled = Some(stalled);
                    return;
                }
            }
            stalled.messages.pop_front();
        }
    }

    /// Asks for a namespace's map, or gives up waiting for it.
    fn resolve(&mut self, stalled: Stalled, now: Mono) {
        if stalled.since.plus(self.shared.producer.delivery_timeout) <= now {
            let timeout = self.shared.producer.delivery_timeout;
            let error = Error::new(ErrorCode::Disconnected)
                .field("delivery_timeout")
                .value(format!("namespace {} not resolved", stalled.namespace))
                .limit(format!("{timeout:?}"));
            let count = stalled.messages.len();
            self.groups.failed(stalled.ticket, count, &error);
            return;
        }
        let asked = self.resolving.as_ref() == Some(&stalled.namespace);
        if self.wire.is_open() && !asked {
            let namespaces = vec![stalled.namespace.to_string()];
            self.resolving = Some(Arc::clone(&stalled.namespace));
            self.wire
                .send(publish_request::Kind::Resolve(v1::Resolve { namespaces }));
        }
        self.stalled = Some(stalled);
    }

    /// Moves everything on as far as it goes; gives the time to be woken.
    fn turn(&mut self) -> Option<Mono> {
        self.go_on();
        let now = self.now();
        let mut out = ProducerOutput::default();
        let mut wake = self.producer.poll(now, &mut out);
        self.settle(&out);
        self.send(out.requests);
        self.groups.answer_flushes();
        if self.stalled.is_some() && !out.settled.is_empty() {
            // There is room again: what waits goes at once.
            wake = Some(now.mono);
        } else if let Some(stalled) = &self.stalled {
            let limit = stalled.since.plus(self.shared.producer.delivery_timeout);
            let unresolved = !self.namespaces.contains_key(&*stalled.namespace);
            let limit = if unresolved { limit } else { Mono::NEVER };
            wake = Some(wake.unwrap_or(Mono::NEVER).min(limit));
        }
        wake
    }

    fn settle(&mut self, out: &ProducerOutput) {
        for settled in &out.settled {
            self.groups.settled(settled);
        }
    }

    fn send(&mut self, requests: Vec<Request>) {
        let mut frame = Vec::new();
        let mut bytes = 0;
        for request in requests {
            if let Request::Publish { request, batch } = request {
                bytes += batch.bytes().len();
                frame.push(batch_to_proto(request, &batch));
            }
            if bytes >= FRAME_BYTES {
                self.send_frame(std::mem::take(&mut frame));
                bytes = 0;
            }
        }
        self.send_frame(frame);
    }

    fn send_frame(&mut self, batches: Vec<v1::PublishBatch>) {
        if !batches.is_empty() {
            let batches = v1::PublishBatches { batches };
            self.wire.send(publish_request::Kind::Batches(batches));
        }
    }

    fn happened(&mut self, happening: Happening) {
        match happening {
            Happening::Opened(welcome) => {
                tracing::debug!(node = %welcome.node, "publish stream open");
                self.producer.set_limits(welcome.limits);
                self.learn(welcome.namespaces);
                self.backoff.reset();
                self.producer.connected();
            }
            Happening::Response(publish_response::Kind::Acks(acks)) => self.acknowledged(&acks),
            Happening::Response(publish_response::Kind::Maps(maps)) => {
                self.resolving = None;
                match maps_from_proto(&maps) {
                    Ok((found, missing)) => {
                        self.learn(found);
                        missing.iter().for_each(|error| self.unknown(error));
                    }
                    Err(error) => self.lost(&error),
                }
            }
            Happening::Response(publish_response::Kind::Hello(_)) => {}
            Happening::Lost(error) => self.lost(&error),
        }
    }

    fn learn(&mut self, maps: Vec<NamedMap>) {
        for named in maps {
            self.namespaces.insert(named.name, named.map.namespace);
            self.producer.set_map(named.map);
        }
    }

    fn acknowledged(&mut self, acks: &v1::Acks) {
        let now = self.now();
        let mut out = ProducerOutput::default();
        for ack in &acks.acks {
            match ack_from_proto(ack) {
                Ok((request, result)) => {
                    let reply = Reply::Acked { request, result };
                    self.producer.reply(now, reply, &mut out);
                }
                Err(error) => {
                    self.lost(&error);
                    break;
                }
            }
        }
        self.settle(&out);
    }

    /// A namespace is not there: whoever waits for it is told. Errors shorten long values, so a
    /// beginning of its name will do.
    fn unknown(&mut self, error: &Error) {
        let found = error.found();
        let meant = |name: &str| !found.is_empty() && name.starts_with(found);
        self.namespaces.retain(|name, _| name != found);
        if let Some(stalled) = self.stalled.take_if(|stalled| meant(&stalled.namespace)) {
            let count = stalled.messages.len();
            self.groups.failed(stalled.ticket, count, error);
        }
    }

    /// The stream is lost, or was refused. What may pass is tried again later; what may not fails
    /// all that waits.
    fn lost(&mut self, error: &Error) {
        tracing::debug!(%error, "publish stream lost");
        self.resolving = None;
        self.producer.disconnected();
        let until = match error.delay() {
            Some(least) => self.backoff.delay_after(least),
            None => self.backoff.delay(),
        };
        self.wire.hold_off(self.now().mono.plus(until));
        if error.code() == ErrorCode::NamespaceNotFound {
            self.unknown(error);
        } else if !error.code().retriable() {
            if let Some(stalled) = self.stalled.take() {
                let count = stalled.messages.len();
                self.groups.failed(stalled.ticket, count, error);
            }
            let mut out = ProducerOutput::default();
            self.producer.abandon(error, &mut out);
            self.settle(&out);
        }
    }
}
