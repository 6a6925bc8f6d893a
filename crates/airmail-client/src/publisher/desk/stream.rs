//! The desk as the outgoing stream and the publishing task see it.
//!
//! The stream asks for what is to be sent when the transport has room, so batches are sealed as
//! late as can be. The task takes in what the node says, and keeps the time: it need not be woken
//! for a message, because its timer stands at some earlier message's end already.

use super::{Desk, State, named};
use crate::core::ProducerOutput;
use crate::publisher::frames;
use airmail_model::frame::Reply;
use airmail_model::{Error, ErrorCode, Mono};
use airmail_proto::framing::framed;
use airmail_proto::hello::{NamedMap, Welcome};
use airmail_proto::publish::{ack_from_proto, maps_from_proto};
use airmail_proto::v1::{self, publish_request, publish_response};
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Waker};

/// The outgoing stream of the moment.
#[derive(Debug)]
pub(super) struct StreamState {
    /// Counts the streams: an earlier one gets nothing more.
    number: u64,
    /// Hello is done.
    open: bool,
    /// To be sent before batches.
    control: VecDeque<Bytes>,
    /// Has nothing to send.
    pub(super) waiting: Option<Waker>,
    /// The node's bound for one message.
    frame_bytes: usize,
    /// Why there is none, since the last one was open.
    lost: Option<Error>,
    /// The namespace asked for.
    resolving: Option<Arc<str>>,
    /// When the task will come by itself.
    armed: Mono,
    /// The task has something to do.
    pub(super) wake_task: bool,
}

impl StreamState {
    pub(super) fn new(frame_bytes: usize) -> StreamState {
        StreamState {
            number: 0,
            open: false,
            control: VecDeque::new(),
            waiting: None,
            frame_bytes,
            lost: None,
            resolving: None,
            armed: Mono::NEVER,
            wake_task: false,
        }
    }

    /// Whether nobody would see to a message that has just been taken.
    pub(super) fn wants_task(&self) -> bool {
        !self.open || self.armed == Mono::NEVER
    }
}

/// What a stream gets when it asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::publisher) enum Pieces {
    /// There is something to be sent.
    More,
    /// It is woken when there is.
    None,
    /// It is not the stream of the moment any more.
    Ended,
}

/// How things stand for the task.
#[derive(Debug)]
pub(in crate::publisher) struct Standing {
    /// Closed, and all is settled.
    pub(in crate::publisher) ended: bool,
    /// There is something to publish.
    pub(in crate::publisher) wanted: bool,
    /// When to come back.
    pub(in crate::publisher) wake: Mono,
}

impl Desk {
    /// A new stream is the stream of the moment: its number.
    pub(in crate::publisher) fn begin_stream(&self) -> u64 {
        self.with(|state| {
            state.end_stream();
            state.stream.number
        })
    }

    /// What stream `number` is to send next.
    pub(in crate::publisher) fn pieces(
        &self,
        number: u64,
        context: &Context<'_>,
        out: &mut VecDeque<Bytes>,
    ) -> Pieces {
        self.with(|state| {
            if state.stream.number != number {
                return Pieces::Ended;
            }
            out.append(&mut state.stream.control);
            if state.stream.open {
                let now = state.read_clock(&self.shared);
                let mut produced = ProducerOutput::default();
                let wake = state.producer.poll(now, &mut produced);
                state.settle(&produced);
                if wake.is_some_and(|wake| wake < state.stream.armed) {
                    state.stream.wake_task = true;
                }
                frames::batches(produced.requests, state.stream.frame_bytes, out);
                state.make_room_known(!produced.settled.is_empty());
            }
            if out.is_empty() {
                state.stream.waiting = Some(context.waker().clone());
                return Pieces::None;
            }
            Pieces::More
        })
    }

    /// Moves on what does not need the stream.
    pub(in crate::publisher) fn tend(&self, armed: Mono) -> Standing {
        while self.with(|state| state.go_on(&self.shared)) {}
        self.with(|state| {
            let now = state.read_clock(&self.shared);
            let mut out = ProducerOutput::default();
            let wake = state.producer.tend(now, &mut out);
            state.settle(&out);
            let mut wake = wake.unwrap_or(Mono::NEVER);
            if state.producer.is_due() {
                // A pause is over, or something made room or got other numbers: the stream goes on.
                state.wake_stream();
            }
            let patience = self.shared.producer.delivery_timeout;
            wake = wake.min(state.resolve(now.mono, patience));
            if !out.settled.is_empty() && state.stalled.is_some() {
                wake = now.mono;
            }
            state.stream.armed = wake.min(armed);
            Standing {
                ended: state.closed && state.stalled.is_none() && state.producer.is_idle(),
                wanted: state.stalled.is_some() || !state.producer.is_idle(),
                wake,
            }
        })
    }

    /// The namespaces to be resolved by Hello.
    pub(in crate::publisher) fn names(&self) -> Vec<String> {
        self.with(|state| {
            let mut names: Vec<String> = state.namespaces.keys().cloned().collect();
            if let Some(stalled) = &state.stalled
                && !state.namespaces.contains_key(named(&stalled.namespace))
            {
                names.push(named(&stalled.namespace).to_owned());
            }
            names
        })
    }

    /// Hello is done.
    pub(in crate::publisher) fn opened(&self, welcome: Welcome) {
        tracing::debug!(node = %welcome.node, "publish stream open");
        self.with(|state| {
            state.stream.frame_bytes = welcome.limits.frame_bytes as usize;
            state.producer.set_limits(welcome.limits);
            state.learn(welcome.namespaces);
            state.backoff.reset();
            state.producer.connected();
            state.stream.open = true;
            state.stream.lost = None;
            state.wake_stream();
        });
    }

    /// Takes in what the node says. An error means that the stream is of no more use.
    pub(in crate::publisher) fn answered(&self, kind: publish_response::Kind) -> Result<(), Error> {
        self.with(|state| match kind {
            publish_response::Kind::Hello(_) => Ok(()),
            publish_response::Kind::Acks(acks) => {
                state.read_clock(&self.shared);
                state.acknowledged(&acks)
            }
            publish_response::Kind::Maps(maps) => {
                state.stream.resolving = None;
                let (found, missing) = maps_from_proto(&maps)?;
                state.learn(found);
                missing.iter().for_each(|error| state.unknown(error));
                Ok(())
            }
        })
    }

    /// The stream is lost, or was refused. What may pass is tried again at the time that this
    /// gives; what may not fails all that waits.
    pub(in crate::publisher) fn lost(&self, error: &Error) -> Mono {
        tracing::debug!(%error, "publish stream lost");
        self.with(|state| {
            state.end_stream();
            let until = state.backoff.delay_for(error);
            state.stream.lost = Some(error.clone());
            if error.code() == ErrorCode::NamespaceNotFound {
                state.unknown(error);
            } else if !error.code().waited_for() {
                state.fail_stalled(error);
                let mut out = ProducerOutput::default();
                state.producer.abandon(error, &mut out);
                state.settle(&out);
            }
            self.shared.mono().plus(until)
        })
    }

    /// Until there is something for the task to do.
    pub(in crate::publisher) async fn task_wanted(&self) {
        self.task.notified().await;
    }
}

impl State {
    /// No stream gets anything before another is begun and opened.
    pub(super) fn end_stream(&mut self) {
        self.producer.disconnected();
        self.stream.number += 1;
        self.stream.open = false;
        self.stream.resolving = None;
        self.stream.control.clear();
        self.wake_stream();
    }

    fn wake_stream(&mut self) {
        self.wakes.extend(self.stream.waiting.take());
    }

    /// What is stalled, or waits in line, may find room now: the task sees to it.
    fn make_room_known(&mut self, room: bool) {
        self.stream.wake_task |= room && self.stalled.is_some();
    }

    fn acknowledged(&mut self, acks: &v1::Acks) -> Result<(), Error> {
        let mut out = ProducerOutput::default();
        let mut result = Ok(());
        for ack in &acks.acks {
            match ack_from_proto(ack) {
                Ok((request, result)) => {
                    let reply = Reply::Acked { request, result };
                    self.producer.reply(self.now, reply, &mut out);
                }
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        self.settle(&out);
        if self.producer.has_unsent() {
            self.wake_stream();
        }
        result
    }

    fn learn(&mut self, maps: Vec<NamedMap>) {
        for named in maps {
            self.namespaces.insert(named.name, named.map.namespace);
            self.producer.set_map(named.map);
        }
        self.last_namespace = None;
    }

    /// A namespace is not there: whoever waits for it is told. Errors shorten long values, so a
    /// beginning of its name will do.
    fn unknown(&mut self, error: &Error) {
        let found = error.found();
        self.namespaces.retain(|name, _| name != found);
        self.last_namespace = None;
        let stalled = self.stalled.as_ref();
        let meant = stalled.is_some_and(|stalled| named(&stalled.namespace).starts_with(found));
        if meant && !found.is_empty() {
            self.fail_stalled(error);
        }
    }

    /// Asks for the namespace that stalled work waits for, or gives up waiting; when to come back.
    fn resolve(&mut self, now: Mono, patience: std::time::Duration) -> Mono {
        let Some(stalled) = &self.stalled else {
            return Mono::NEVER;
        };
        let name = named(&stalled.namespace);
        if self.namespaces.contains_key(name) {
            return Mono::NEVER;
        }
        let limit = stalled.since.plus(patience);
        if limit <= now {
            let unresolved = || {
                Error::new(ErrorCode::Disconnected)
                    .field("delivery_timeout")
                    .value(format!("namespace {name} not resolved"))
            };
            let error = self.stream.lost.clone().unwrap_or_else(unresolved);
            let waited = now.since(stalled.since);
            self.fail_stalled(&error.waited(waited));
            return Mono::NEVER;
        }
        if self.stream.open && self.stream.resolving.as_deref() != Some(name) {
            self.stream.resolving = Some(name.into());
            let namespaces = vec![name.to_owned()];
            let kind = publish_request::Kind::Resolve(v1::Resolve { namespaces });
            let request = v1::PublishRequest { kind: Some(kind) };
            self.stream.control.push_back(framed(&request));
            self.wake_stream();
        }
        limit
    }
}
