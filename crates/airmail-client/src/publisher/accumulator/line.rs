//! A lane's way into the accumulator: the submission that is stalled, and the senders that wait behind it.
//!
//! A submission with messages of both lanes is stalled in both lines, each with its own messages: order holds
//! within a lane, and what one lane has no room for does not hold up the other.

use super::waiters::Waiters;
use super::{ClientContext, MessageRef, PublishError, State, TURN_MESSAGES, Ticket};
use airmail_model::{Error, Lane, Message, Mono};
use std::collections::VecDeque;
use std::sync::Arc;

/// Messages of one lane, in order, each with its ticket.
#[derive(Debug, Default)]
pub(super) struct Ticketed {
    tickets: VecDeque<Ticket>,
    messages: VecDeque<Message>,
}

impl Ticketed {
    /// Divides a submission by lane. One that stands in one line alone is moved as a whole.
    pub(super) fn by_lane(
        first: Ticket,
        messages: VecDeque<Message>,
        stands_in: [bool; Lane::ALL.len()],
    ) -> [Ticketed; Lane::ALL.len()] {
        let tickets = (first.0..).take(messages.len()).map(Ticket);
        let mut of_lanes: [Ticketed; Lane::ALL.len()] = Default::default();
        if let [is_normal, is_high] = stands_in
            && is_normal != is_high
        {
            let tickets = tickets.collect();
            of_lanes[usize::from(is_high)] = Ticketed { tickets, messages };
            return of_lanes;
        }
        for (ticket, message) in tickets.zip(messages) {
            let of_lane = &mut of_lanes[message.lane as usize];
            of_lane.tickets.push_back(ticket);
            of_lane.messages.push_back(message);
        }
        of_lanes
    }

    fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    fn first(&self) -> Option<(Ticket, &Message)> {
        self.tickets.front().copied().zip(self.messages.front())
    }

    fn drop_first(&mut self) {
        self.tickets.pop_front();
        self.messages.pop_front();
    }
}

/// Messages of a submission that the accumulator holds, and that the producer cannot take yet.
#[derive(Debug)]
pub(super) struct Stalled {
    pub(super) namespace: Arc<str>,
    pub(super) messages: Ticketed,
    pub(super) since: Mono,
}

/// Line of one lane.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) stalled: Option<Stalled>,
    pub(super) waiters: Waiters,
    /// Namespace that the node was asked for, which what is stalled waits for.
    pub(super) resolving: Option<Arc<str>>,
}

impl Line {
    /// Tells whether a message may be appended at once: nothing is stalled, and nobody waits.
    pub(super) fn is_free(&self) -> bool {
        self.stalled.is_none() && self.waiters.is_empty()
    }

    /// Tells whether it is the turn of the sender with this number, or of one that has none yet.
    pub(super) fn is_turn_of(&self, sender: Option<u64>) -> bool {
        self.stalled.is_none() && self.waiters.is_turn_of(sender)
    }
}

impl State {
    pub(super) fn line(&mut self, lane: Lane) -> &mut Line {
        &mut self.lines[lane as usize]
    }

    /// Tells whether a line holds a submission.
    pub(super) fn is_stalled(&self) -> bool {
        self.lines.iter().any(|line| line.stalled.is_some())
    }

    /// Gives stalled messages to the producer, as many as it takes, those of lane high first; returns whether it
    /// would take more at once.
    pub(super) fn append_stalled(&mut self, shared: &ClientContext) -> bool {
        let high = self.append_stalled_of(Lane::High, shared);
        let normal = self.append_stalled_of(Lane::Normal, shared);
        high || normal
    }

    fn append_stalled_of(&mut self, lane: Lane, shared: &ClientContext) -> bool {
        let Some(mut stalled) = self.line(lane).stalled.take() else {
            return false;
        };
        if let Some(id) = self.resolved(&stalled.namespace) {
            for _ in 0..TURN_MESSAGES {
                let Some((ticket, message)) = stalled.messages.first() else {
                    break;
                };
                match self.append(shared, id, MessageRef::Message(message), ticket) {
                    Ok(_) => {}
                    Err(PublishError::Refused(error)) => self.completions.fail(&[ticket], &error),
                    Err(PublishError::Full | PublishError::Unresolved) => {
                        self.line(lane).stalled = Some(stalled);
                        return false;
                    }
                }
                stalled.messages.drop_first();
            }
        } else if !stalled.messages.is_empty() {
            self.line(lane).stalled = Some(stalled);
            return false;
        }
        if stalled.messages.is_empty() {
            self.wake_first(lane);
            return false;
        }
        self.line(lane).stalled = Some(stalled);
        true
    }

    /// Fails what is stalled in a line, and lets the next sender come.
    pub(super) fn fail_stalled(&mut self, lane: Lane, error: &Error) {
        if let Some(mut stalled) = self.line(lane).stalled.take() {
            let tickets = stalled.messages.tickets.make_contiguous();
            self.completions.fail(tickets, error);
            self.wake_first(lane);
        }
    }

    /// Wakes the first sender that waits in a line.
    pub(super) fn wake_first(&mut self, lane: Lane) {
        self.lines[lane as usize]
            .waiters
            .wake_first(&mut self.wakes);
    }
}
