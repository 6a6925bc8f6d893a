//! The state of one subscription on the client's side. Slots are numbered, and used again.

use super::SubscriptionSpec;
use airmail_model::frame::{Start, Until};
use airmail_model::position::LogPosition;
use airmail_model::{
    AppendTime, Incarnation, LogId, MapEpoch, Mono, NamespaceId, Position, Sequence, TopicHash,
};

/// State of a subscription at the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    /// The slot is not in use.
    #[default]
    Free,
    /// Not requested yet.
    Unsent,
    /// Requested, and no status has come yet.
    Requested,
    /// Live: on the log's live range.
    Live,
    /// Detached: on a range of its own.
    Detached,
    /// Refused for now: to be requested again at this time.
    RetryAt(Mono),
}

/// A subscription, or a slot for one.
#[derive(Debug, Default)]
pub(super) struct SubscriptionSlot {
    /// Number of subscriptions that had this slot before.
    pub(super) life: u32,
    /// Number of times that a subscription was requested for this slot.
    pub(super) generation: u32,
    pub(super) mode: Mode,
    pub(super) namespace: NamespaceId,
    pub(super) topic: TopicHash,
    pub(super) until: Option<Until>,
    /// Start that the user gave, until `log_position` is known; a number beyond the log's end until
    /// the log gets there.
    pub(super) start: Option<Box<Start>>,
    /// Position from which it goes on; for a live subscription, unless the live range is further.
    pub(super) log_position: Option<LogPosition>,
    /// Time before which the user wants no messages.
    pub(super) not_before: Option<AppendTime>,
}

impl SubscriptionSlot {
    /// Begins a subscription in a free slot.
    pub(super) fn begin(&mut self, spec: SubscriptionSpec) {
        self.mode = Mode::Unsent;
        self.namespace = spec.namespace;
        self.topic = spec.topic;
        self.until = spec.until;
        self.not_before = match spec.start {
            Start::Time(time) => Some(time),
            _ => None,
        };
        self.start = Some(Box::new(spec.start));
        self.log_position = None;
    }

    /// Ends the subscription, and frees the slot.
    pub(super) fn end(&mut self) {
        self.mode = Mode::Free;
        self.life = self.life.wrapping_add(1);
        self.start = None;
        self.log_position = None;
    }

    /// Tells whether the node knows of it, or will when it reads what has been sent.
    pub(super) fn is_requested(&self) -> bool {
        matches!(self.mode, Mode::Requested | Mode::Live | Mode::Detached)
    }

    /// Sets where it stands: at `own` by its own account, while the node says `at_node`. A start at
    /// a number that the log has not reached stays a start: as a position it would claim that the
    /// log had been there.
    pub(super) fn set_position(&mut self, at_node: LogPosition, own: Sequence) {
        let reached = at_node.next;
        let ahead =
            |start: &Start| matches!(start, Start::Sequence(at) if *at == own && *at > reached);
        self.start = self.start.take().filter(|start| ahead(start));
        self.log_position = Some(LogPosition {
            next: own,
            ..at_node
        });
    }

    /// Moves its position up to `next`, if it is behind. The log has then reached a number that it
    /// waited for.
    pub(super) fn advance(&mut self, next: Sequence) {
        if let Some(at) = &mut self.log_position
            && at.next < next
        {
            at.next = next;
            self.start = None;
        }
    }

    /// Gives the first number that it still wants of a log's life; `None` if the node decides that, as where it has
    /// been given all of a log that has ended, and goes on in another.
    pub(super) fn expected(&self, log: LogId, incarnation: Incarnation) -> Option<Sequence> {
        let same = |at: &&LogPosition| at.log == log && at.incarnation == incarnation;
        if self.log_position.is_some_and(|at| at.log != log) {
            return None;
        }
        match (self.start.as_deref(), &self.log_position) {
            (Some(Start::Sequence(sequence)), _) => Some((*sequence).max(Sequence::FIRST)),
            (_, Some(at)) => Some(at).filter(same).map(|at| at.next),
            (Some(Start::Position(position)), None) => {
                position.logs.iter().find(same).map(|at| at.next)
            }
            _ => None,
        }
    }

    /// Gives where it stood in another life of the log than this one; `None` if it waited for a
    /// number that the log had not reached, since it has had nothing then and loses nothing.
    pub(super) fn earlier_life(&self, log: LogId, incarnation: Incarnation) -> Option<LogPosition> {
        let other = |at: &LogPosition| at.log == log && at.incarnation != incarnation;
        let asked = match self.start.as_deref() {
            Some(Start::Sequence(_)) => return None,
            Some(Start::Position(position)) => position.logs.iter().find(|at| at.log == log),
            _ => None,
        };
        self.log_position.or(asked.copied()).filter(other)
    }

    /// Gives the first number not yet accounted for, the live range aside.
    pub(super) fn next(&self) -> Sequence {
        self.log_position.map_or(Sequence(0), |at| at.next)
    }

    /// Gives the start with which it is requested: its position, once that is known.
    pub(super) fn start(&self, epoch: MapEpoch) -> Start {
        match (self.position(epoch, self.next()), self.start.as_deref()) {
            (Some(position), _) => Start::Position(position),
            (None, Some(start)) => start.clone(),
            (None, None) => Start::Latest,
        }
    }

    /// Gives the position of a subscription that stands at `next`, by its own account or a live
    /// range's.
    pub(super) fn position(&self, epoch: MapEpoch, next: Sequence) -> Option<Position> {
        match (self.log_position, self.start.as_deref()) {
            // It waits for the log to get there.
            (_, Some(Start::Sequence(wanted))) if next <= *wanted => None,
            (Some(at), _) => Some(Position {
                namespace: self.namespace,
                epoch,
                logs: vec![LogPosition { next, ..at }],
            }),
            (None, Some(Start::Position(position))) => Some(position.clone()),
            (None, _) => None,
        }
    }
}
