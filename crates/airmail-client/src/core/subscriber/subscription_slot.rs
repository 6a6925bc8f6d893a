//! The state of one subscription on the client's side. Slots are numbered, and used again.
//!
//! A subscription has a part for each lane that the node has named a log of, with a place of its own, and is live or
//! detached in each by itself. A start at a number is one of the normal lane's log.

use super::SubscriptionSpec;
use airmail_model::filter::Filter;
use airmail_model::frame::{Lanes, Start, Until, Wanted};
use airmail_model::position::LogPosition;
use airmail_model::{
    AppendTime, Incarnation, Lane, LogId, MapEpoch, Mono, NamespaceId, Position, Sequence,
    TopicHash,
};
use std::sync::Arc;

/// State of a subscription at the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    /// The slot is not in use.
    #[default]
    Free,
    /// Not requested yet.
    Unsent,
    /// Requested: its parts say what the node has told of it since.
    Requested,
    /// Refused for now: to be requested again at this time.
    RetryAt(Mono),
}

/// State of a part at the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartMode {
    /// Not told since the subscription was requested.
    Untold,
    /// Live: on the log's live range.
    Live,
    /// Detached: on a range of its own.
    Detached,
}

/// Part of a subscription: what it is in one log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) mode: PartMode,
    /// Position from which it goes on; for a live part, unless the live range is further.
    pub(super) at: LogPosition,
}

/// A subscription, or a slot for one.
#[derive(Debug)]
pub(super) struct SubscriptionSlot {
    /// Number of subscriptions that had this slot before.
    pub(super) life: u32,
    /// Generation in force: of the request, or of a change of its filter.
    pub(super) generation: u32,
    /// Last generation that was given out.
    issued: u32,
    pub(super) mode: Mode,
    pub(super) namespace: NamespaceId,
    pub(super) wanted: Wanted,
    pub(super) until: Option<Until>,
    pub(super) tell_expired: bool,
    pub(super) filter: Option<Arc<Filter>>,
    pub(super) headers_only: bool,
    /// Start that the user gave, until the normal lane's part is known; a number beyond its log's end until
    /// the log gets there.
    pub(super) start: Option<Box<Start>>,
    /// Parts, by lane.
    pub(super) parts: [Option<Part>; Lane::ALL.len()],
    /// Time before which the user wants no messages.
    pub(super) not_before: Option<AppendTime>,
}

/// A slot that was never used.
impl Default for SubscriptionSlot {
    fn default() -> SubscriptionSlot {
        SubscriptionSlot {
            life: 0,
            generation: 0,
            issued: 0,
            mode: Mode::Free,
            namespace: NamespaceId(0),
            wanted: Wanted::Topic(TopicHash(0)),
            until: None,
            tell_expired: false,
            filter: None,
            headers_only: false,
            start: None,
            parts: Default::default(),
            not_before: None,
        }
    }
}

impl SubscriptionSlot {
    /// Begins a subscription in a free slot.
    pub(super) fn begin(&mut self, spec: SubscriptionSpec) {
        self.mode = Mode::Unsent;
        self.namespace = spec.namespace;
        self.wanted = spec.wanted;
        self.until = spec.until;
        self.tell_expired = spec.tell_expired;
        self.filter = spec.filter;
        self.headers_only = spec.headers_only;
        self.not_before = match spec.start {
            Start::Time(time) => Some(time),
            _ => None,
        };
        self.start = Some(Box::new(spec.start));
        self.parts = Default::default();
    }

    /// Gives out another generation.
    pub(super) fn next_generation(&mut self) -> u32 {
        self.issued = self.issued.wrapping_add(1);
        self.issued
    }

    /// Ends the subscription, and frees the slot.
    pub(super) fn end(&mut self) {
        self.mode = Mode::Free;
        self.life = self.life.wrapping_add(1);
        self.start = None;
        self.parts = Default::default();
    }

    /// Waits to be requested, or is requested again; its positions stay.
    pub(super) fn set_untold(&mut self, mode: Mode) {
        self.mode = mode;
        for part in self.parts.iter_mut().flatten() {
            part.mode = PartMode::Untold;
        }
    }

    /// Tells whether the node knows of it, or will when it reads what has been sent.
    pub(super) fn is_requested(&self) -> bool {
        self.mode == Mode::Requested
    }

    /// Its part in a lane.
    pub(super) fn part(&self, lane: Lane) -> Option<&Part> {
        self.parts[lane as usize].as_ref()
    }

    fn part_mut(&mut self, lane: Lane) -> Option<&mut Part> {
        self.parts[lane as usize].as_mut()
    }

    /// Gives where it stands in a lane, the live range aside.
    pub(super) fn place(&self, lane: Lane) -> Option<LogPosition> {
        self.part(lane).map(|part| part.at)
    }

    /// Tells whether it is live, or detached, in a lane.
    pub(super) fn is(&self, lane: Lane, mode: PartMode) -> bool {
        self.part(lane).is_some_and(|part| part.mode == mode)
    }

    /// Sets what the node has told of a part whose place is known.
    pub(super) fn set_mode(&mut self, lane: Lane, mode: PartMode) {
        if let Some(part) = self.part_mut(lane) {
            part.mode = mode;
        }
    }

    /// Sets where it stands: at `own` by its own account, while the node says `at_node`. A start at
    /// a number that the log has not reached stays a start: as a position it would claim that the
    /// log had been there.
    pub(super) fn set_position(&mut self, at_node: LogPosition, own: Sequence) {
        let lane = at_node.log.lane;
        if lane == Lane::Normal {
            let reached = at_node.next;
            let ahead =
                |start: &Start| matches!(start, Start::Sequence(at) if *at == own && *at > reached);
            self.keep_aside(at_node.log);
            self.start = self.start.take().filter(|start| ahead(start));
        }
        let mode = self.part(lane).map_or(PartMode::Untold, |part| part.mode);
        let at = LogPosition {
            next: own,
            ..at_node
        };
        self.parts[lane as usize] = Some(Part { mode, at });
    }

    /// Keeps what its start says of the other lane, whose log the node has not told of yet, beside this one.
    fn keep_aside(&mut self, log: LogId) {
        let lane = log.lane.other();
        let Some(Start::Position(position)) = self.start.as_deref() else {
            // Input: a start that is no position, or one that is not needed any more.
            return;
        };
        let aside = LogId { lane, ..log };
        let at = position.logs.iter().find(|at| at.log == aside).copied();
        if self.parts[lane as usize].is_none() {
            let mode = PartMode::Untold;
            self.parts[lane as usize] = at.map(|at| Part { mode, at });
        }
    }

    /// Sets where it stands in a lane back to a place of another life of the log.
    pub(super) fn set_place(&mut self, place: LogPosition) {
        let mode = self.part(place.log.lane).map(|part| part.mode);
        self.parts[place.log.lane as usize] = Some(Part {
            mode: mode.unwrap_or(PartMode::Untold),
            at: place,
        });
    }

    /// Moves its position in a lane up to `next`, if it is behind. The log has then reached a number that it
    /// waited for.
    pub(super) fn advance(&mut self, lane: Lane, next: Sequence) {
        if let Some(part) = self.part_mut(lane)
            && part.at.next < next
        {
            part.at.next = next;
            if lane == Lane::Normal {
                self.start = None;
            }
        }
    }

    /// Gives the start that the user gave, as far as it says something about a lane.
    fn start_in(&self, lane: Lane) -> Option<&Start> {
        let start = self.start.as_deref();
        start.filter(|start| lane == Lane::Normal || !matches!(start, Start::Sequence(_)))
    }

    /// Gives the first number that it still wants of a log's life; `None` if the node decides that, as where it has
    /// been given all of a log that has ended, and goes on in another.
    pub(super) fn expected(&self, log: LogId, incarnation: Incarnation) -> Option<Sequence> {
        let same = |at: &&LogPosition| at.log == log && at.incarnation == incarnation;
        let place = self.place(log.lane);
        if place.is_some_and(|at| at.log != log) {
            return None;
        }
        match (self.start_in(log.lane), &place) {
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
        let asked = match self.start_in(log.lane) {
            Some(Start::Sequence(_)) => return None,
            Some(Start::Position(position)) => position.logs.iter().find(|at| at.log == log),
            _ => None,
        };
        self.place(log.lane).or(asked.copied()).filter(other)
    }

    /// Gives the first number of a lane that is not yet accounted for, the live range aside.
    pub(super) fn next(&self, lane: Lane) -> Sequence {
        self.place(lane).map_or(Sequence(0), |at| at.next)
    }

    /// Gives the start with which it is requested: its position, once that is known.
    pub(super) fn start(&self, epoch: MapEpoch) -> Start {
        let position = self.position(epoch, |part| part.at.next);
        match (position, self.start.as_deref()) {
            (Some(position), _) => Start::Position(position),
            (None, Some(start)) => start.clone(),
            (None, None) => Start::Latest,
        }
    }

    /// Gives the lanes in which it is requested: with its place in lane high, where its start says nothing of that.
    pub(super) fn lanes(&self) -> Lanes {
        match (self.start.as_deref(), self.place(Lane::High)) {
            (Some(Start::Sequence(_)), Some(place)) => Lanes::HighFrom(place),
            _ => Lanes::Each,
        }
    }

    /// Gives its position, where `next_of` says where each part stands, by its own account or a live range's.
    pub(super) fn position(
        &self,
        epoch: MapEpoch,
        next_of: impl Fn(&Part) -> Sequence,
    ) -> Option<Position> {
        if self.waits_for_its_number(&next_of) {
            return None;
        }
        match (self.part(Lane::Normal), self.start.as_deref()) {
            (Some(_), _) => Some(Position {
                namespace: self.namespace,
                epoch,
                logs: self.places(next_of).collect(),
            }),
            (None, Some(Start::Position(position))) => Some(position.clone()),
            (None, _) => None,
        }
    }

    /// Tells whether it begins at a number that its log has not got to, as far as is known.
    pub(super) fn waits_for_its_number(&self, next_of: impl Fn(&Part) -> Sequence) -> bool {
        let Some(Start::Sequence(wanted)) = self.start.as_deref() else {
            // Input: any other start, or a number that has been reached.
            return false;
        };
        let next = self.part(Lane::Normal).map(next_of);
        next.is_none_or(|next| next <= *wanted)
    }

    /// Gives where it stands in each lane, in order, where `next_of` says how far.
    pub(super) fn places(
        &self,
        next_of: impl Fn(&Part) -> Sequence,
    ) -> impl Iterator<Item = LogPosition> {
        self.parts.iter().flatten().map(move |part| LogPosition {
            next: next_of(part),
            ..part.at
        })
    }
}
