//! The accumulator as the request body of the publish stream and the publishing task use it.
//!
//! The request body drains what is due when the transport has room, so batches are sealed as late
//! as possible. The task applies what the node answers and keeps the time. It need not be woken for
//! a message: its timer is already set to the deadline of an earlier one.

use super::{Accumulator, State, or_default};
use crate::core::ProducerOutput;
use crate::publisher::publish_frames;
use airmail_model::frame::{NamedMap, Reply, Welcome};
use airmail_model::{Error, ErrorCode, Lane, Mono};
use airmail_proto::framing::framed;
use airmail_proto::publish::{ack_from_proto, maps_from_proto};
use airmail_proto::v1::{self, publish_request, publish_response};
use bytes::Bytes;
use std::collections::VecDeque;
use std::task::{Context, Waker};
use std::time::Duration;

/// The current publish stream, as far as the accumulator knows it.
#[derive(Debug)]
pub(super) struct CurrentStream {
    /// Number of streams begun so far: an earlier one gets nothing more.
    number: u64,
    /// True from the node's Hello on.
    open: bool,
    /// Messages that go before any batch.
    control: VecDeque<Bytes>,
    /// Waker of the request body, while it has nothing to send.
    pub(super) waiting: Option<Waker>,
    /// The node's limit for one message.
    frame_bytes: usize,
    /// Error that ended the last stream, until another is open.
    lost: Option<Error>,
    /// Time to which the task's timer is set.
    armed: Mono,
    /// True if the task has something to do.
    pub(super) wake_task: bool,
}

impl CurrentStream {
    pub(super) fn new(frame_bytes: usize) -> CurrentStream {
        CurrentStream {
            number: 0,
            open: false,
            control: VecDeque::new(),
            waiting: None,
            frame_bytes,
            lost: None,
            armed: Mono::NEVER,
            wake_task: false,
        }
    }

    /// Tells whether a message that was just appended would be left lying without the task.
    pub(super) fn needs_task(&self) -> bool {
        !self.open || self.armed == Mono::NEVER
    }
}

/// Answer to a request body that asks for bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::publisher) enum Drained {
    /// Bytes were appended, to be sent.
    Bytes,
    /// There is nothing to send; the body is woken when there is.
    Nothing,
    /// The body's stream is no longer the current one.
    StreamEnded,
}

/// Status that the publishing task gets after its turn.
#[derive(Debug)]
pub(in crate::publisher) struct AccumulatorStatus {
    /// True if the client is closed and everything is settled.
    pub(in crate::publisher) ended: bool,
    /// True if there is something to publish, so that a stream is needed.
    pub(in crate::publisher) stream_wanted: bool,
    /// Time at which the task is to come back.
    pub(in crate::publisher) wake: Mono,
}

impl Accumulator {
    /// Makes a new stream the current one, and gives its number.
    pub(in crate::publisher) fn begin_stream(&self) -> u64 {
        self.with(|state| {
            state.end_stream();
            state.stream.number
        })
    }

    /// Appends to `out` what stream `number` is to send next.
    pub(in crate::publisher) fn drain(
        &self,
        number: u64,
        context: &Context<'_>,
        out: &mut VecDeque<Bytes>,
    ) -> Drained {
        self.with(|state| {
            if state.stream.number != number {
                return Drained::StreamEnded;
            }
            out.append(&mut state.stream.control);
            if state.stream.open {
                let now = state.read_clock(&self.shared);
                let mut produced = ProducerOutput::default();
                let wake = state.producer.poll(now, &mut produced);
                state.complete(&produced);
                if wake.is_some_and(|wake| wake < state.stream.armed) {
                    state.stream.wake_task = true;
                }
                state.outgoing.extend(produced.requests);
                let turn = state.outgoing.take_turn();
                publish_frames::encode(turn, state.stream.frame_bytes, out);
                // What is stalled may be taken now: the task sees to it.
                let settled = !produced.settled.is_empty();
                state.stream.wake_task |= settled && state.is_stalled();
            }
            if out.is_empty() {
                state.stream.waiting = Some(context.waker().clone());
                return Drained::Nothing;
            }
            Drained::Bytes
        })
    }

    /// Does everything that needs no stream: stalled messages, expiry, namespaces to be resolved.
    /// `armed` is the time to which the task's timer is set.
    pub(in crate::publisher) fn advance(&self, armed: Mono) -> AccumulatorStatus {
        while self.with(|state| state.append_stalled(&self.shared)) {}
        self.with(|state| {
            let now = state.read_clock(&self.shared);
            let mut out = ProducerOutput::default();
            let wake = state.producer.advance(now, &mut out);
            state.complete(&out);
            let mut wake = wake.unwrap_or(Mono::NEVER);
            if state.producer.is_due() {
                // A pause is over, or something made room or got other numbers: the stream goes on.
                state.wake_stream();
            }
            let patience = self.shared.producer.delivery_timeout;
            for lane in Lane::ALL {
                wake = wake.min(state.resolve_stalled(lane, now.mono, patience));
            }
            if !out.settled.is_empty() && state.is_stalled() {
                wake = now.mono;
            }
            state.stream.armed = wake.min(armed);
            AccumulatorStatus {
                ended: state.closed && !state.is_stalled() && state.producer.is_idle(),
                stream_wanted: state.is_stalled() || !state.producer.is_idle(),
                wake,
            }
        })
    }

    /// Lists the namespaces that Hello is to resolve.
    pub(in crate::publisher) fn namespaces(&self) -> Vec<String> {
        self.with(|state| {
            let mut names: Vec<String> = state.namespaces.keys().cloned().collect();
            let stalled = state.lines.iter().filter_map(|line| line.stalled.as_ref());
            for name in stalled.map(|stalled| or_default(&stalled.namespace)) {
                if !names.iter().any(|known| known == name) {
                    names.push(name.to_owned());
                }
            }
            names
        })
    }

    /// Takes the node's Hello: the current stream is open.
    pub(in crate::publisher) fn stream_opened(&self, welcome: Welcome) {
        tracing::debug!(node = %welcome.node, "publish stream open");
        self.with(|state| {
            state.stream.frame_bytes = welcome.limits.frame_bytes as usize;
            state.producer.set_limits(welcome.limits);
            state.set_maps(welcome.namespaces);
            state.backoff.reset();
            state.producer.connected();
            state.stream.open = true;
            state.stream.lost = None;
            state.wake_stream();
        });
    }

    /// Applies a response of the node.
    ///
    /// # Errors
    /// A malformed response: the stream is of no more use.
    pub(in crate::publisher) fn apply_response(
        &self,
        kind: publish_response::Kind,
    ) -> Result<(), Error> {
        self.with(|state| match kind {
            publish_response::Kind::Hello(_)
            | publish_response::Kind::Alive(_)
            | publish_response::Kind::Nodes(_) => Ok(()),
            publish_response::Kind::Acks(acks) => {
                state.read_clock(&self.shared);
                state.apply_acks(&acks)
            }
            publish_response::Kind::Maps(maps) => {
                let (found, missing) = maps_from_proto(&maps)?;
                state.forget_resolving(|name| {
                    let is_missing = |error: &Error| name.starts_with(error.found());
                    found.iter().any(|named| named.name == name) || missing.iter().any(is_missing)
                });
                state.set_maps(found);
                for error in &missing {
                    state.namespace_not_found(error);
                }
                Ok(())
            }
        })
    }

    /// Takes note that the stream was lost, or refused. After an error that is waited for, gives
    /// the time of the next attempt; after any other, fails everything that waits.
    pub(in crate::publisher) fn stream_lost(&self, error: &Error) -> Mono {
        tracing::debug!(%error, "publish stream lost");
        self.with(|state| {
            state.end_stream();
            let until = state.backoff.delay_for(error);
            state.stream.lost = Some(error.clone());
            if error.code() == ErrorCode::NamespaceNotFound {
                state.namespace_not_found(error);
            } else if !error.code().waited_for() {
                for lane in Lane::ALL {
                    state.fail_stalled(lane, error);
                }
                let mut out = ProducerOutput::default();
                state.producer.abandon(error, &mut out);
                state.complete(&out);
            }
            self.shared.mono().plus(until)
        })
    }

    /// Takes note that the stream goes on at another node: what waits for an answer is sent again there.
    pub(in crate::publisher) fn stream_moved(&self) {
        self.with(State::end_stream);
    }

    /// Waits until there is something for the task to do.
    pub(in crate::publisher) async fn task_wanted(&self) {
        self.task.notified().await;
    }
}

impl State {
    /// Ends the current stream: none gets anything before another is begun and opened.
    pub(super) fn end_stream(&mut self) {
        self.producer.disconnected();
        self.stream.number += 1;
        self.stream.open = false;
        self.forget_resolving(|_| true);
        self.stream.control.clear();
        self.outgoing.clear();
        self.wake_stream();
    }

    /// Takes note that no question for these namespaces is under way any more.
    fn forget_resolving(&mut self, is_answered: impl Fn(&str) -> bool) {
        for line in &mut self.lines {
            line.resolving.take_if(|name| is_answered(name));
        }
    }

    fn wake_stream(&mut self) {
        self.wakes.extend(self.stream.waiting.take());
    }

    fn apply_acks(&mut self, acks: &v1::Acks) -> Result<(), Error> {
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
        self.complete(&out);
        if self.producer.has_unsent() {
            self.wake_stream();
        }
        result
    }

    fn set_maps(&mut self, maps: Vec<NamedMap>) {
        for named in maps {
            self.namespaces.insert(named.name, named.map.namespace);
            self.producer.set_map(named.map);
        }
        self.last_namespace = None;
    }

    /// Forgets a namespace that does not exist, and fails what is stalled for it.
    /// Errors shorten long values, so a prefix of its name is enough.
    fn namespace_not_found(&mut self, error: &Error) {
        let found = error.found();
        self.namespaces.retain(|name, _| name != found);
        self.last_namespace = None;
        if found.is_empty() {
            return;
        }
        for lane in Lane::ALL {
            let stalled = self.line(lane).stalled.as_ref();
            if stalled.is_some_and(|stalled| or_default(&stalled.namespace).starts_with(found)) {
                self.fail_stalled(lane, error);
            }
        }
    }

    /// Asks the node for the namespace that what is stalled in a line waits for, or fails it when
    /// `patience` is over; gives the time at which to come back.
    fn resolve_stalled(&mut self, lane: Lane, now: Mono, patience: Duration) -> Mono {
        let line = &mut self.lines[lane as usize];
        let Some(stalled) = &line.stalled else {
            return Mono::NEVER;
        };
        let name = or_default(&stalled.namespace);
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
            self.fail_stalled(lane, &error.waited(waited));
            return Mono::NEVER;
        }
        if self.stream.open && line.resolving.as_deref() != Some(name) {
            line.resolving = Some(name.into());
            let namespaces = vec![name.to_owned()];
            let kind = publish_request::Kind::Resolve(v1::Resolve { namespaces });
            let request = v1::PublishRequest { kind: Some(kind) };
            self.stream.control.push_back(framed(&request));
            self.wake_stream();
        }
        limit
    }
}
