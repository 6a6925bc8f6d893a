//! One producer of one log: the batches that it has appended, those that wait for an answer, and
//! those that it sends again.

use super::{Asked, StorageRun};
use crate::batching::{Part, batch, topic_name};
use crate::invariants::{Checked, Violation};
use crate::ledger::Acked;
use airmail_log::{Call, LogStorage, Refusal, Tag};
use airmail_model::batch::ProducerStamp;
use airmail_model::{
    AppendTime, Extent, MapEpoch, ProducerEpoch, ProducerId, ProducerSequence, Synced,
};
use std::collections::VecDeque;

const WINDOW: usize = 4;
const WAITING_MAX: usize = 20;
const TOPICS: u64 = 6;

/// A batch that is not yet acknowledged.
#[derive(Clone, Debug)]
struct Piece {
    sequence: u64,
    parts: Vec<Part>,
    tag: Option<Tag>,
    /// It was sent to a process that ended before it answered, or that did not know what became of it.
    maybe_stored: bool,
}

/// One producer of one log.
#[derive(Clone, Debug)]
pub(super) struct Line {
    number: u32,
    pub(super) log: usize,
    epoch: u32,
    next: u64,
    pieces: VecDeque<Piece>,
    /// Something was refused: nothing new goes out until everything sent has been answered.
    held: bool,
    /// The log no longer knows where this producer stood.
    unknown: bool,
    /// A batch of the epoch before is still to come, and is to be refused.
    haunted: bool,
}

impl Line {
    pub(super) fn new(number: u64, log: usize) -> Line {
        Line {
            number: u32::try_from(number).unwrap_or(0),
            log,
            epoch: 1,
            next: 0,
            pieces: VecDeque::new(),
            held: false,
            unknown: false,
            haunted: false,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.pieces.is_empty()
    }

    fn stamp(&self, sequence: u64) -> ProducerStamp {
        ProducerStamp {
            id: ProducerId(u64::from(self.number) + 100),
            epoch: ProducerEpoch(self.epoch),
            sequence: ProducerSequence(sequence),
        }
    }

    /// The process is gone, and with it every answer.
    pub(super) fn forget_answers(&mut self) {
        for piece in &mut self.pieces {
            piece.maybe_stored |= piece.tag.take().is_some();
        }
        self.held = false;
        self.unknown = false;
    }

    /// Begins the producer anew: it no longer knows the batches that it has sent. Gives the calls whose answers
    /// mean nothing any more.
    pub(super) fn restart(&mut self) -> Vec<Tag> {
        self.epoch += 1;
        self.next = 0;
        (self.held, self.unknown, self.haunted) = (false, false, true);
        self.pieces
            .drain(..)
            .filter_map(|piece| piece.tag)
            .collect()
    }

    /// Takes the stamp that the line's former self would send now, if it has not sent it.
    pub(super) fn ghost(&mut self) -> Option<ProducerStamp> {
        let haunted = std::mem::take(&mut self.haunted);
        haunted.then(|| ProducerStamp {
            epoch: ProducerEpoch(self.epoch - 1),
            ..self.stamp(0)
        })
    }

    /// Begins again at 0, with the unacknowledged batches.
    fn new_epoch(&mut self) {
        self.epoch += 1;
        self.next = 0;
        for piece in &mut self.pieces {
            piece.sequence = self.next;
            (piece.tag, piece.maybe_stored) = (None, false);
            self.next += piece.parts.len() as u64;
        }
    }
}

impl StorageRun {
    /// Makes a batch and queues it.
    pub(super) fn publish(&mut self) {
        let index = self.chance.index(self.lines.len());
        let line = &mut self.lines[index];
        if line.pieces.len() >= WAITING_MAX {
            return;
        }
        let state = &self.logs[line.log];
        let count = if self.chance.chance(100_000) { 40 } else { 5 };
        let parts: Vec<Part> = (0..self.chance.between(1, count))
            .map(|_| {
                let topic = topic_name(self.chance.below(TOPICS));
                let durability = state.spec.durability.synced;
                Part {
                    lane: state.log.lane,
                    id: self
                        .evidence
                        .ledger
                        .create(line.number, state.log, &topic, durability),
                    topic,
                    filler: u32::try_from(self.chance.below(300)).unwrap_or(0),
                    ttl_ms: None,
                    audience: Vec::new(),
                    number: None,
                }
            })
            .collect();
        let sequence = line.next;
        line.next += parts.len() as u64;
        line.pieces.push_back(Piece {
            sequence,
            parts,
            tag: None,
            maybe_stored: false,
        });
    }

    /// Sends the batches that may be sent.
    pub(super) fn send(&mut self) {
        for index in 0..self.lines.len() {
            let log = self.lines[index].log;
            if !self.logs[log].opened {
                continue;
            }
            loop {
                let line = &self.lines[index];
                let sent = line
                    .pieces
                    .iter()
                    .filter(|piece| piece.tag.is_some())
                    .count();
                let unsent = line.pieces.iter().position(|piece| piece.tag.is_none());
                let Some(at) = unsent.filter(|_| !line.held && sent < WINDOW) else {
                    break;
                };
                let piece = &line.pieces[at];
                let id = self.logs[log].log;
                let (batch, _) = batch(id, line.stamp(piece.sequence), &piece.parts);
                let tag = self.tag(Asked::Append { line: index });
                self.lines[index].pieces[at].tag = Some(tag);
                self.evidence.note(format_args!(
                    "append {} to {id}: {} messages, {:?}",
                    tag.0,
                    batch.records(),
                    batch.producer()
                ));
                if let Some(storage) = &mut self.storage {
                    storage.submit(Call::Append {
                        t: tag,
                        log: id,
                        map: MapEpoch(1),
                        batch,
                        sole: false,
                    });
                }
            }
        }
    }

    /// An append was done.
    pub(super) fn appended(
        &mut self,
        index: usize,
        tag: Tag,
        extent: Extent,
        at: AppendTime,
        held: Synced,
    ) -> Checked {
        let line = &mut self.lines[index];
        let who = format!("producer {}", line.number);
        let place = line.pieces.iter().position(|piece| piece.tag == Some(tag));
        // Where one may be stored already, the next ones need not wait until it has been answered.
        let place =
            place.filter(|place| line.pieces.range(..place).all(|piece| piece.maybe_stored));
        let Some(piece) = place.and_then(|place| line.pieces.remove(place)) else {
            return Err(Violation::new(
                "G3 exactly the next is stored",
                format!(
                    "{who}: numbers {} to {} answer a batch out of its turn",
                    extent.first, extent.last
                ),
            ));
        };
        let state = &mut self.logs[line.log];
        state.told = state.told.max(extent.next());
        let asked = piece
            .parts
            .iter()
            .filter_map(|part| self.evidence.ledger.get(part.id));
        let asked = asked.map(|entry| entry.durability).min();
        if extent.numbers() != piece.parts.len() as u64 || asked.is_some_and(|asked| held < asked) {
            return Err(Violation::new(
                "G1 an ack says what holds",
                format!(
                    "{who}: {extent:?} held {held} for {} messages",
                    piece.parts.len()
                ),
            ));
        }
        for (offset, part) in piece.parts.iter().enumerate() {
            let acked = Acked {
                sequence: extent.first.plus(offset as u64),
                incarnation: state.incarnation,
                appended: at,
                held,
            };
            let machine = &self.weather.machine;
            crate::invariants::durable_first::check(machine, part.id, held, "acknowledged")?;
            self.evidence.ledger.ack(part.id, acked)?;
        }
        self.release(index);
        self.haunt(index);
        Ok(())
    }

    /// An append was refused.
    pub(super) fn append_refused(&mut self, index: usize, tag: Tag, why: &Refusal) -> Checked {
        self.count_refusal(why);
        let line = &mut self.lines[index];
        let place = line.pieces.iter().position(|piece| piece.tag == Some(tag));
        let Some(place) = place else { return Ok(()) };
        line.pieces[place].tag = None;
        let first = place == 0;
        line.held = true;
        let log = self.logs[line.log].log;
        let lost =
            !self.evidence.ledger.damaged.is_empty() || self.evidence.ledger.bereft.contains(&log);
        let may_be_sealed = self.logs[line.log].seal.is_some();
        match why {
            Refusal::Full { .. } | Refusal::Busy { .. } | Refusal::Io(_) => {}
            Refusal::OutcomeUnknown => line.pieces[place].maybe_stored = true,
            Refusal::OutOfOrder { .. } | Refusal::UnknownProducer if !first => {}
            Refusal::OutOfOrder { .. } | Refusal::UnknownProducer if lost => line.unknown = true,
            // What came before it was refused for the seal: of this producer the log has nothing, as of one it has
            // forgotten, so it does not say that this was never stored.
            Refusal::UnknownProducer if may_be_sealed => line.unknown = true,
            Refusal::Sealed { .. } if may_be_sealed => {
                self.logs[line.log].be_sealed(tag);
                let piece = line.pieces.remove(place);
                let parts = piece.into_iter().flat_map(|piece| piece.parts);
                for part in parts.filter(|_| !lost) {
                    self.evidence.ledger.refuse(part.id);
                }
            }
            other => {
                return Err(Violation::new(
                    "G3 exactly the next is stored",
                    format!("producer {} was refused: {other}", line.number),
                ));
            }
        }
        self.release(index);
        Ok(())
    }

    fn release(&mut self, index: usize) {
        let line = &mut self.lines[index];
        if line.pieces.iter().all(|piece| piece.tag.is_none()) {
            line.held = false;
            if std::mem::take(&mut line.unknown) {
                line.new_epoch();
            }
        }
    }
}
