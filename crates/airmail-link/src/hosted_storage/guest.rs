//! A guest: the far end's side of one port.
//!
//! What its readers get waits here until the port takes it. While too much waits, they are granted no more
//! credit; a reader for which there is no room at all is cut off, and the near end resumes it. So a guest that
//! takes nothing costs a bounded amount of memory, and holds up nobody else.
//!
//! Invariants: `bytes` and `marks` are what waits, in bytes and in messages of readers; a reader that is cut
//! off has nothing behind the message that says so.

use super::slots::{Asked, GuestPlace};
use crate::limits::LinkLimits;
use crate::message::{FromHost, ToHost};
use crate::port::{Event, Port};
use airmail_log::{Call, Completion, ReaderId};
use airmail_model::Sequence;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A port of the far end of a link.
pub type HostPort = Box<dyn Port<Out = FromHost, In = ToHost>>;

/// A reader of a guest.
#[derive(Debug)]
struct GuestReader {
    /// Its id at the storage.
    hosted: ReaderId,
    /// The last number that it was told of, or the one before the first that it wants.
    previous: Sequence,
    /// Credit that the near end has given and the storage was not, in bytes.
    held_back: u64,
    /// Credit that the storage was given and no batch has used.
    granted: i64,
}

/// The far end's side of a port. See the module's documentation.
pub(super) struct Guest {
    place: GuestPlace,
    port: HostPort,
    /// Generation of the connection, once it has begun.
    generation: Option<u64>,
    /// Readers by their number on the link.
    readers: BTreeMap<ReaderId, GuestReader>,
    /// Readers that could be granted more.
    thirsty: BTreeSet<ReaderId>,
    /// Readers that were cut off, and have to be told.
    behind: VecDeque<ReaderId>,
    outgoing: VecDeque<FromHost>,
    bytes: u64,
    marks: usize,
    /// It has said that no append of its follows.
    has_closed: bool,
}

impl Guest {
    pub(super) fn new(place: GuestPlace, port: HostPort) -> Guest {
        Guest {
            place,
            port,
            generation: None,
            readers: BTreeMap::new(),
            thirsty: BTreeSet::new(),
            behind: VecDeque::new(),
            outgoing: VecDeque::new(),
            bytes: 0,
            marks: 0,
            has_closed: false,
        }
    }

    /// The next message of the present generation; readers that a cut has ended are added to `ended`.
    /// `None`: the port has nothing more to tell.
    pub(super) fn receive(&mut self, ended: &mut Vec<ReaderId>) -> Option<Option<Call>> {
        Some(match self.port.receive()? {
            Event::Up | Event::Cut => {
                self.cut(ended);
                None
            }
            Event::Message(ToHost::Begin { generation }) => {
                if self.generation.is_none_or(|before| before < generation) {
                    self.cut(ended);
                    self.generation = Some(generation);
                }
                None
            }
            Event::Message(ToHost::Call { generation, call }) => {
                (self.generation == Some(generation)).then_some(call)
            }
            Event::Message(ToHost::Closing { generation }) => {
                self.has_closed |= self.generation == Some(generation);
                None
            }
        })
    }

    fn cut(&mut self, ended: &mut Vec<ReaderId>) {
        self.generation = None;
        ended.extend(self.readers.values().map(|reader| reader.hosted));
        self.readers.clear();
        self.thirsty.clear();
        self.behind.clear();
        self.outgoing.clear();
        (self.bytes, self.marks) = (0, 0);
        self.has_closed = false;
    }

    /// Something of the present generation that is asked of the storage, by its number on the link.
    pub(super) fn asked(&self, number: u64) -> Option<Asked> {
        Some(Asked {
            guest: self.place,
            generation: self.generation?,
            number,
        })
    }

    /// A new reader, under its id at the storage; the credit that it begins with.
    pub(super) fn start(
        &mut self,
        run: ReaderId,
        hosted: ReaderId,
        from: Sequence,
        credit: u32,
        limits: &LinkLimits,
    ) -> u32 {
        let granted = credit.min(limits.reader_bytes);
        let reader = GuestReader {
            hosted,
            previous: from.before(),
            held_back: (credit - granted).into(),
            granted: granted.into(),
        };
        if self.readers.insert(run, reader).is_some() {
            // Input: a near end that uses a reader twice.
            return granted;
        }
        granted
    }

    /// The near end gives a reader more credit.
    pub(super) fn credit(&mut self, run: ReaderId, bytes: u32) {
        if let Some(reader) = self.readers.get_mut(&run) {
            reader.held_back = reader.held_back.saturating_add(bytes.into());
            self.thirsty.insert(run);
        }
    }

    /// The reader's id at the storage, to be stopped there.
    pub(super) fn stop(&self, run: ReaderId) -> Option<ReaderId> {
        Some(self.readers.get(&run)?.hosted)
    }

    /// Passes credit on to the storage, as long as there is a window for what comes of it.
    pub(super) fn grant(&mut self, limits: &LinkLimits, mut submit: impl FnMut(Call)) {
        while self.bytes < limits.window_bytes {
            let Some(run) = self.thirsty.pop_first() else {
                // Input: readers that all have as much as they may.
                return;
            };
            let Some(reader) = self.readers.get_mut(&run) else {
                // Input: a reader that has ended meanwhile.
                continue;
            };
            let room = i64::from(limits.reader_bytes).saturating_sub(reader.granted);
            let room = u32::try_from(room).unwrap_or(if room < 0 { 0 } else { u32::MAX });
            let bytes = u32::try_from(reader.held_back)
                .unwrap_or(u32::MAX)
                .min(room);
            if bytes > 0 {
                reader.held_back -= u64::from(bytes);
                reader.granted += i64::from(bytes);
                let r = reader.hosted;
                submit(Call::Credit { r, bytes });
            }
            // One that is far overdrawn needs more than one grant can be.
            if room == u32::MAX && reader.held_back > 0 {
                self.thirsty.insert(run);
            }
        }
    }

    /// An answer, or an event of a log, for the near end.
    pub(super) fn tell(&mut self, completion: Completion) {
        if let Some(generation) = self.generation {
            self.outgoing.push_back(FromHost::Told {
                generation,
                completion,
            });
        }
    }

    /// Whether something that was asked is of the present generation.
    pub(super) fn is_present(&self, asked: &Asked) -> bool {
        self.generation == Some(asked.generation)
    }

    /// Something of a reader. If there is no room for it, the reader is cut off: its id at the storage, to be
    /// stopped there.
    pub(super) fn deliver(
        &mut self,
        run: ReaderId,
        mut completion: Completion,
        limits: &LinkLimits,
    ) -> Option<ReaderId> {
        let generation = self.generation?;
        let has_room =
            self.bytes < limits.window_bytes.saturating_mul(2) && self.marks < limits.marks;
        let ends = matches!(completion, Completion::Ended { .. });
        let reader = self.readers.get_mut(&run)?;
        if !has_room && !ends {
            let hosted = reader.hosted;
            self.readers.remove(&run);
            self.behind.push_back(run);
            return Some(hosted);
        }
        completion.set_reader(run);
        let previous = reader.previous;
        let bytes = match &completion {
            Completion::Batch { stored, .. } => {
                reader.previous = stored.extent.last;
                stored.batch.bytes().len() as u64
            }
            Completion::Gap { extent, .. } => {
                reader.previous = extent.last;
                0
            }
            _ => {
                if ends {
                    self.readers.remove(&run);
                }
                self.marks += 1;
                self.outgoing.push_back(FromHost::Told {
                    generation,
                    completion,
                });
                return None;
            }
        };
        reader.granted = reader.granted.saturating_sub_unsigned(bytes);
        if reader.held_back > 0 && reader.granted <= i64::from(limits.reader_bytes / 2) {
            self.thirsty.insert(run);
        }
        self.bytes += bytes;
        self.marks += 1;
        self.outgoing.push_back(FromHost::Range {
            generation,
            previous,
            completion,
        });
        None
    }

    /// Sends what waits, until the port has no room or a turn is over; whether there may be more.
    pub(super) fn send(&mut self, limits: &LinkLimits) -> bool {
        for _ in 0..limits.turn_messages {
            self.tell_those_behind(limits);
            let Some(message) = self.outgoing.pop_front() else {
                // Input: a guest that has been given everything.
                return false;
            };
            let bytes = message.bytes();
            let is_of_reader = match &message {
                FromHost::Told { completion, .. } => completion.reader().is_some(),
                FromHost::Range { .. } => true,
                FromHost::Behind { .. } => false,
            };
            if let Err(message) = self.port.send(message) {
                self.outgoing.push_front(message);
                return false;
            }
            self.bytes -= bytes;
            self.marks -= usize::from(is_of_reader);
        }
        true
    }

    /// Tells those that were cut off, when there is room for them again.
    fn tell_those_behind(&mut self, limits: &LinkLimits) {
        if self.bytes >= limits.window_bytes || self.marks * 2 > limits.marks {
            return;
        }
        if let Some(generation) = self.generation {
            let behind = self.behind.drain(..);
            let messages = behind.map(|r| FromHost::Behind { generation, r });
            self.outgoing.extend(messages);
        }
    }

    /// Wakes the near end, if it has to be.
    pub(super) fn flush(&mut self) {
        self.port.flush();
    }

    /// Whether no append of it follows: it has said so, or it has no connection.
    pub(super) fn is_silent(&self) -> bool {
        self.has_closed || self.generation.is_none()
    }

    /// Whether it has been given everything, or cannot be.
    pub(super) fn is_served(&self) -> bool {
        self.outgoing.is_empty() || self.generation.is_none()
    }

    /// Asserts the invariants of the module's documentation.
    pub(super) fn check(&self) {
        let bytes: u64 = self.outgoing.iter().map(FromHost::bytes).sum();
        assert_eq!(self.bytes, bytes, "bytes that wait");
        for run in &self.behind {
            assert!(!self.readers.contains_key(run), "{run:?} is cut off");
        }
    }
}
