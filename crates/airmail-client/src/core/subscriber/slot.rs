//! One subscription's state on the client's side.

use super::Wanted;
use airmail_model::frame::{Start, Until};
use airmail_model::position::LogPosition;
use airmail_model::{
    AppendTime, Incarnation, LogId, MapEpoch, Mono, NamespaceId, Position, Sequence, TopicHash,
};

/// How a subscription stands with the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    /// The number is not in use.
    #[default]
    Free,
    /// To be asked for.
    Unsent,
    /// Asked for, no status yet.
    Asked,
    /// On the log's live range.
    Live,
    /// On a range of its own.
    Detached,
    /// Refused for now: to be asked for at this time.
    Waiting(Mono),
}

/// A subscription.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// Counts the subscriptions that had this number.
    pub(super) life: u32,
    /// Counts the times that this number was asked for.
    pub(super) generation: u32,
    pub(super) mode: Mode,
    pub(super) namespace: NamespaceId,
    pub(super) topic: TopicHash,
    pub(super) until: Option<Until>,
    /// The user's, until `place` is known; a number beyond the log's end until the log gets there.
    pub(super) start: Option<Box<Start>>,
    /// Where it goes on; for a live one, the later of this and the live range's.
    pub(super) place: Option<LogPosition>,
    /// Messages appended earlier were not asked for.
    pub(super) not_before: Option<AppendTime>,
}

impl Slot {
    pub(super) fn begin(&mut self, wanted: Wanted) {
        self.mode = Mode::Unsent;
        self.namespace = wanted.namespace;
        self.topic = wanted.topic;
        self.until = wanted.until;
        self.not_before = match wanted.start {
            Start::Time(time) => Some(time),
            _ => None,
        };
        self.start = Some(Box::new(wanted.start));
        self.place = None;
    }

    pub(super) fn end(&mut self) {
        self.mode = Mode::Free;
        self.life = self.life.wrapping_add(1);
        self.start = None;
        self.place = None;
    }

    /// Whether the node knows of it, or will when it reads what has been sent.
    pub(super) fn is_asked(&self) -> bool {
        matches!(self.mode, Mode::Asked | Mode::Live | Mode::Detached)
    }

    /// The node says that it stands at `told`; by its own account it stands at `own`. A number asked
    /// for that the log has not got to stays a wish: as a position it would say that the log had got
    /// there once.
    pub(super) fn settle(&mut self, told: LogPosition, own: Sequence) {
        let ahead =
            |start: &Start| matches!(start, Start::Sequence(at) if *at == own && *at > told.next);
        self.start = self.start.take().filter(|start| ahead(start));
        self.place = Some(LogPosition { next: own, ..told });
    }

    /// All before `next` has been told. A number that was wished for has come by then.
    pub(super) fn advance(&mut self, next: Sequence) {
        if let Some(place) = &mut self.place
            && place.next < next
        {
            place.next = next;
            self.start = None;
        }
    }

    /// The first number that it still wants of a log's life; `None`: what the node says.
    pub(super) fn expected(&self, log: LogId, incarnation: Incarnation) -> Option<Sequence> {
        let same = |place: &&LogPosition| place.log == log && place.incarnation == incarnation;
        match (self.start.as_deref(), &self.place) {
            (Some(Start::Sequence(sequence)), _) => Some((*sequence).max(Sequence::FIRST)),
            (_, Some(place)) => Some(place).filter(same).map(|place| place.next),
            (Some(Start::Position(position)), None) => {
                position.logs.iter().find(same).map(|place| place.next)
            }
            _ => None,
        }
    }

    /// Where it stood in another life of the log than this one. A number that the log had not got to
    /// is of no life: it has had nothing, and loses nothing.
    pub(super) fn earlier_life(&self, log: LogId, incarnation: Incarnation) -> Option<LogPosition> {
        let other = |place: &LogPosition| place.log == log && place.incarnation != incarnation;
        let asked = match self.start.as_deref() {
            Some(Start::Sequence(_)) => return None,
            Some(Start::Position(position)) => position.logs.iter().find(|place| place.log == log),
            _ => None,
        };
        self.place.or(asked.copied()).filter(other)
    }

    /// The first number not yet accounted for, the live range aside.
    pub(super) fn next(&self) -> Sequence {
        self.place.map_or(Sequence(0), |place| place.next)
    }

    pub(super) fn start(&self, epoch: MapEpoch) -> Start {
        match (self.position(epoch, self.next()), self.start.as_deref()) {
            (Some(position), _) => Start::Position(position),
            (None, Some(start)) => start.clone(),
            (None, None) => Start::Latest,
        }
    }

    /// The position of one that stands at `next`, by its own account or a live range's.
    pub(super) fn position(&self, epoch: MapEpoch, next: Sequence) -> Option<Position> {
        match (self.place, self.start.as_deref()) {
            // It waits for the log to get there.
            (_, Some(Start::Sequence(wish))) if next <= *wish => None,
            (Some(place), _) => Some(Position {
                namespace: self.namespace,
                epoch,
                logs: vec![LogPosition { next, ..place }],
            }),
            (None, Some(Start::Position(position))) => Some(position.clone()),
            (None, _) => None,
        }
    }
}
