//! A guest: the far end's side of one port.
//!
//! What its readers get waits here until the port takes it. While too much waits, they are granted no more
//! credit; a reader for which there is no room at all is cut off, and the near end resumes it. So a guest that
//! takes nothing costs a bounded amount of memory, and holds up nobody else.
//!
//! Invariants: `bytes` and `marks` are what waits, in bytes and in messages of readers; a reader that is cut
//! off has nothing behind the message that says so.

use super::slots::{Asked, GuestPlace};
use super::wants::Wanting;
use crate::limits::LinkLimits;
use crate::message::{FromHost, ToHost};
use crate::port::{Event, Port};
use airmail_log::{Call, Completion, GapWhy, ReaderId, Scope};
use airmail_model::{LogId, Sequence};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A port of the far end of a link.
pub type HostPort = Box<dyn Port<Out = FromHost, In = ToHost>>;

/// A reader of a guest.
#[derive(Debug)]
struct GuestReader {
    /// Its id at the storage. `None`: it is not known yet what is wanted of it.
    hosted: Option<ReaderId>,
    /// List of what is wanted of it, if not everything is.
    wanting: Option<Box<Wanting>>,
    /// The last number that it was told of, or the one before the first that it wants.
    previous: Sequence,
    /// Credit that the near end has given and the storage was not, in bytes.
    held_back: u64,
    /// Credit that the storage was given and no batch has used.
    granted: i64,
}

/// Start of a reader.
#[derive(Clone, Debug)]
pub(super) struct Start {
    pub(super) run: ReaderId,
    pub(super) log: LogId,
    pub(super) from: Sequence,
    pub(super) scope: Box<Scope>,
    pub(super) credit: u32,
}

impl Start {
    /// The start that a call asks for; any other call comes back.
    pub(super) fn of(call: Call) -> Result<Start, Call> {
        match call {
            Call::Read {
                r: run,
                log,
                from,
                scope,
                credit,
            } => Ok(Start {
                run,
                log,
                from,
                scope,
                credit,
            }),
            other => Err(other),
        }
    }
}

/// Something asked by a guest.
#[derive(Debug)]
pub(super) enum Ask {
    /// A call of the storage contract.
    Call(Call),
    /// A reader of what is wanted goes on as another.
    Resume { of: ReaderId, call: Call },
}

/// The far end's side of a port. See the module's documentation.
pub(super) struct Guest {
    place: GuestPlace,
    port: HostPort,
    /// Generation of the connection as the near end counts, once it has begun.
    generation: Option<u64>,
    /// Count of the connections that have begun, of whichever near end: two of them may count alike.
    connection: u64,
    /// Readers by their number on the link.
    readers: BTreeMap<ReaderId, GuestReader>,
    /// Readers that could be granted more.
    thirsty: BTreeSet<ReaderId>,
    /// Readers that were cut off, and have to be told.
    behind: VecDeque<ReaderId>,
    /// Lists of readers that were cut off, until they are resumed.
    kept: BTreeMap<ReaderId, Box<Wanting>>,
    /// Readers that wait for the first word of what is wanted of them.
    unwanted: BTreeMap<ReaderId, Start>,
    /// Lists of readers that have ended.
    #[expect(clippy::vec_box, reason = "as readers have them")]
    ended: Vec<Box<Wanting>>,
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
            connection: 0,
            readers: BTreeMap::new(),
            thirsty: BTreeSet::new(),
            behind: VecDeque::new(),
            kept: BTreeMap::new(),
            unwanted: BTreeMap::new(),
            ended: Vec::new(),
            outgoing: VecDeque::new(),
            bytes: 0,
            marks: 0,
            has_closed: false,
        }
    }

    /// The next message of the present generation; readers that a cut has ended are added to `ended`.
    /// `None`: the port has nothing more to tell.
    pub(super) fn receive(&mut self, ended: &mut Vec<ReaderId>) -> Option<Option<Ask>> {
        Some(match self.port.receive()? {
            Event::Up | Event::Cut => {
                self.cut(ended);
                None
            }
            Event::Message(ToHost::Begin { generation }) => {
                if self.generation.is_none_or(|before| before < generation) {
                    self.cut(ended);
                    self.generation = Some(generation);
                    self.connection += 1;
                }
                None
            }
            Event::Message(ToHost::Call { generation, call }) => {
                (self.generation == Some(generation)).then_some(Ask::Call(call))
            }
            Event::Message(ToHost::Resume {
                generation,
                of,
                call,
            }) => (self.generation == Some(generation)).then_some(Ask::Resume { of, call }),
            Event::Message(ToHost::Closing { generation }) => {
                self.has_closed |= self.generation == Some(generation);
                None
            }
            // For the node, which has taken it on its way.
            Event::Message(ToHost::Below { .. }) => None,
        })
    }

    fn cut(&mut self, ended: &mut Vec<ReaderId>) {
        self.generation = None;
        for (_, reader) in std::mem::take(&mut self.readers) {
            ended.extend(reader.hosted);
            self.ended.extend(reader.wanting);
        }
        self.ended
            .extend(std::mem::take(&mut self.kept).into_values());
        self.unwanted.clear();
        self.thirsty.clear();
        self.behind.clear();
        self.outgoing.clear();
        (self.bytes, self.marks) = (0, 0);
        self.has_closed = false;
    }

    /// Something of the present connection that is asked of the storage, by its number on the link.
    pub(super) fn asked(&self, number: u64) -> Option<Asked> {
        self.generation?;
        Some(Asked {
            guest: self.place,
            connection: self.connection,
            number,
        })
    }

    /// A new reader. The credit that it begins with, if it may begin: it waits where it is not known yet what
    /// is wanted of it.
    pub(super) fn start(
        &mut self,
        start: &Start,
        wanting: Option<Box<Wanting>>,
        limits: &LinkLimits,
    ) -> Option<u32> {
        let Start { run, credit, .. } = *start;
        let waits = wanting.as_ref().is_some_and(|wanting| !wanting.has_begun);
        let granted = credit.min(limits.reader_bytes);
        let reader = GuestReader {
            hosted: None,
            wanting,
            previous: start.from.before(),
            held_back: (credit - granted).into(),
            granted: granted.into(),
        };
        if let Some(earlier) = self.readers.insert(run, reader) {
            // Input: a near end that uses a reader twice.
            self.ended.extend(earlier.wanting);
        }
        if waits {
            self.unwanted.insert(run, start.clone());
        }
        (!waits).then_some(granted)
    }

    /// A reader has begun, under this id at the storage.
    pub(super) fn begun(&mut self, run: ReaderId, hosted: ReaderId) {
        if let Some(reader) = self.readers.get_mut(&run) {
            reader.hosted = Some(hosted);
            self.thirsty.insert(run);
        }
    }

    /// Takes what is wanted of a reader that goes on as another. The reader's id at the storage, to be stopped
    /// there, if it was not cut off.
    pub(super) fn resume(&mut self, of: ReaderId) -> (Option<Box<Wanting>>, Option<ReaderId>) {
        self.unwanted.remove(&of);
        match self.readers.remove(&of) {
            Some(reader) => (reader.wanting, reader.hosted),
            None => (self.kept.remove(&of), None),
        }
    }

    /// The list of a reader, if it does not simply give everything.
    pub(super) fn wanting(&self, run: ReaderId) -> Option<&Wanting> {
        self.readers.get(&run)?.wanting.as_deref()
    }

    /// Credit of a reader that begins.
    pub(super) fn granted(&self, run: ReaderId) -> u32 {
        let granted = self.readers.get(&run).map_or(0, |reader| reader.granted);
        u32::try_from(granted).unwrap_or(0)
    }

    /// Changes what is wanted of a reader by `take`, which says when an edit is whole and whether it has taken
    /// effect, and answers. The start of the reader, if it begins with it.
    pub(super) fn want(
        &mut self,
        run: ReaderId,
        edit: u32,
        take: impl FnOnce(&mut Wanting) -> Option<bool>,
    ) -> Option<Start> {
        let reader = self.readers.get_mut(&run)?;
        let is_effective = take(reader.wanting.as_mut()?)?;
        let at = is_effective.then_some(reader.previous.plus(1));
        self.tell_of_reader(Completion::Effective { r: run, edit, at });
        is_effective.then(|| self.unwanted.remove(&run))?
    }

    /// Lists of readers that have ended since the last call.
    #[expect(clippy::vec_box, reason = "as readers have them")]
    pub(super) fn take_ended(&mut self) -> Vec<Box<Wanting>> {
        std::mem::take(&mut self.ended)
    }

    /// The near end gives a reader more credit.
    pub(super) fn credit(&mut self, run: ReaderId, bytes: u32) {
        if let Some(reader) = self.readers.get_mut(&run) {
            reader.held_back = reader.held_back.saturating_add(bytes.into());
            self.thirsty.insert(run);
        }
    }

    /// The id of a reader at the storage, to be stopped there. One that has not begun ends here.
    pub(super) fn stop(&mut self, run: ReaderId) -> Option<ReaderId> {
        self.ended.extend(self.kept.remove(&run));
        if self.unwanted.remove(&run).is_some() {
            let reader = self.readers.remove(&run)?;
            self.ended.extend(reader.wanting);
            self.tell_of_reader(Completion::Ended { r: run, why: None });
            return None;
        }
        self.readers.get(&run)?.hosted
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
            let Some(r) = reader.hosted else {
                // Input: a reader that begins later, with what it has then.
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

    /// A mark of a reader, for which there is room whatever waits: there are as many as the near end has asked for.
    pub(super) fn tell_of_reader(&mut self, mark: Completion) {
        self.marks += usize::from(self.generation.is_some());
        self.tell(mark);
    }

    /// Whether something that was asked is of the present connection.
    pub(super) fn is_present(&self, asked: &Asked) -> bool {
        self.generation.is_some() && self.connection == asked.connection
    }

    /// Something of a reader, of which so many bytes were left out. If there is no room for it, the reader is cut
    /// off: its id at the storage, to be stopped there.
    pub(super) fn deliver(
        &mut self,
        run: ReaderId,
        mut completion: Completion,
        left_out: u64,
        limits: &LinkLimits,
    ) -> Option<ReaderId> {
        let generation = self.generation?;
        let has_room =
            self.bytes < limits.window_bytes.saturating_mul(2) && self.marks < limits.marks;
        let ends = matches!(completion, Completion::Ended { .. });
        if !self.readers.contains_key(&run) {
            // Input: a reader that was cut off, and that the storage has not stopped yet.
            return None;
        }
        let goes_on = self.lengthen_gap(run, &completion);
        let reader = self.readers.get_mut(&run)?;
        if !has_room && !ends && !goes_on {
            let reader = self.readers.remove(&run)?;
            self.kept.extend(reader.wanting.map(|list| (run, list)));
            self.behind.push_back(run);
            return reader.hosted;
        }
        // What was left out cost the near end no credit.
        reader.granted = reader.granted.saturating_sub_unsigned(left_out);
        reader.held_back = reader.held_back.saturating_add(left_out);
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
                    let reader = self.readers.remove(&run)?;
                    self.ended.extend(reader.wanting);
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
        if goes_on {
            return None;
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

    /// Lets a gap of unused numbers go on in the one before, if that waits last: whether it does.
    fn lengthen_gap(&mut self, run: ReaderId, completion: &Completion) -> bool {
        let unused = |completion: &Completion| match completion {
            Completion::Gap {
                extent,
                why: GapWhy::Unused,
                ..
            } => Some(*extent),
            _ => None,
        };
        let (Some(more), Some(FromHost::Range { completion, .. })) =
            (unused(completion), self.outgoing.back_mut())
        else {
            // Input: something that is told by itself.
            return false;
        };
        let is_next = completion.reader() == Some(run)
            && unused(completion).is_some_and(|before| before.next() == more.first);
        if let (Completion::Gap { extent, .. }, true) = (completion, is_next) {
            extent.last = more.last;
        }
        is_next
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
                FromHost::Behind { .. } | FromHost::Heartbeat { .. } => false,
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
