//! Several storages as one: each log is in the one that its `Open` has named.
//!
//! A call goes by its log, and what is said to a reader goes by the reader: names are looked at only where a log
//! is opened or deleted. So whoever appends or reads need not know where a log is, and a storage is handed a
//! spec without a name, as if it were the only one.
//!
//! A log of a name that no part has is known to be elsewhere: everything that is asked of it is
//! [`Refusal::Elsewhere`], and no part hears of it. A log that was never opened is the first part's to refuse.
//!
//! - A log stays in its part: one that is opened under another name is refused.
//! - Where one part provisions, all can be asked to: one that makes nothing answers with none at once.
//! - Each part is polled at each poll, and its answers are passed on in its order.
//! - What is said of all is the least that holds for each (capabilities), their sum (damage), or the first's,
//!   which has log 0 (clock, durability by default).

use crate::contract::{
    AppendClock, Call, Capabilities, ClockState, Completion, Dedup, LogStorage, Numbering,
    ReaderId, Refusal, Trouble,
};
use airmail_model::{Holder, LogId, Mono, Now, StorageName, bug};
use std::collections::BTreeMap;

/// Several storages. See the module's documentation.
#[derive(Debug)]
pub struct Routed<S> {
    /// The first has no name.
    parts: Vec<Part<S>>,
    /// Where each log is that was asked to be opened.
    logs: BTreeMap<LogId, Place>,
    /// Places of the readers under way.
    readers: BTreeMap<ReaderId, usize>,
    /// Answers to what no part is asked.
    answers: Vec<Completion>,
}

#[derive(Debug)]
struct Part<S> {
    name: StorageName,
    storage: S,
}

/// Where a log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In this part.
    In(usize),
    /// In a storage that is none of the parts.
    Elsewhere,
}

/// A part makes nothing beforehand, though another one does.
#[derive(Clone, Copy, Debug)]
struct NothingToMake;

impl<S: LogStorage> Routed<S> {
    /// The first storage, and further ones by distinct names.
    pub fn new(first: S, further: impl IntoIterator<Item = (StorageName, S)>) -> Routed<S> {
        let first = Part {
            name: StorageName::FIRST,
            storage: first,
        };
        let further = further
            .into_iter()
            .map(|(name, storage)| Part { name, storage });
        Routed {
            parts: std::iter::once(first).chain(further).collect(),
            logs: BTreeMap::new(),
            readers: BTreeMap::new(),
            answers: Vec::new(),
        }
    }

    /// The storage of a name, to look at.
    #[must_use]
    pub fn part(&self, name: StorageName) -> Option<&S> {
        let part = self.parts.iter().find(|part| part.name == name)?;
        Some(&part.storage)
    }

    /// The storages, the first before the others.
    #[must_use]
    pub fn into_parts(self) -> Vec<S> {
        let parts = self.parts.into_iter();
        parts.map(|part| part.storage).collect()
    }

    /// Where a log is that is opened or deleted under a name.
    fn named(&self, log: LogId, name: StorageName) -> Place {
        if let Some(Place::In(part)) = self.logs.get(&log) {
            return Place::In(*part);
        }
        let part = self.parts.iter().position(|part| part.name == name);
        part.map_or(Place::Elsewhere, Place::In)
    }

    /// The part of this name, to be asked for what a namespace needs beforehand. That goes by the name alone: another
    /// namespace of the same number may have been made elsewhere meanwhile.
    fn making(&self, name: StorageName) -> Result<Place, NothingToMake> {
        let Some(part) = self.parts.iter().position(|part| part.name == name) else {
            // Input: an owner to whom another log 0 has said where its logs are.
            return Ok(Place::Elsewhere);
        };
        let provisions = |part: &Part<S>| part.storage.capabilities().provisions;
        if !provisions(&self.parts[part]) && self.parts.iter().any(provisions) {
            return Err(NothingToMake);
        }
        Ok(Place::In(part))
    }

    /// Where a log is. The first part says of one that was never opened that it is not there.
    fn place(&self, log: LogId) -> Place {
        self.logs.get(&log).copied().unwrap_or(Place::In(0))
    }

    /// Refuses what is asked of a log that no part has.
    fn refuse(&mut self, call: &Call, why: Refusal) {
        let answer = match (call, call.tag()) {
            (Call::Read { r, .. }, _) => Completion::Ended {
                r: *r,
                why: Some(why),
            },
            (_, Some(t)) => Completion::Refused { t, why },
            (_, None) => {
                bug!("{call:?} is of a reader, and goes by its log");
                return;
            }
        };
        self.answers.push(answer);
    }

    fn each(&mut self) -> impl Iterator<Item = &mut S> {
        self.parts.iter_mut().map(|part| &mut part.storage)
    }
}

impl<S: LogStorage> LogStorage for Routed<S> {
    /// The least that holds for each part. What an owner goes by log by log is the first's; what each of the others has
    /// of it is its own ([`StorageTraits`](crate::contract::StorageTraits)).
    fn capabilities(&self) -> Capabilities {
        let first = self.parts[0].storage.capabilities();
        let further = self.parts[1..].iter();
        let further = further.map(|part| part.storage.capabilities());
        further.fold(first, |all, part| Capabilities {
            dedup: later(all.dedup, part.dedup),
            numbering: match (all.numbering, part.numbering) {
                (Numbering::Dense, Numbering::Dense) => Numbering::Dense,
                _ => Numbering::Sparse,
            },
            clock: looser(all.clock, part.clock),
            strongest: all.strongest,
            topic_index: all.topic_index,
            past_end: all.past_end && part.past_end,
            seal: all.seal,
            heal: all.heal && part.heal,
            many_writers: all.many_writers || part.many_writers,
            provisions: all.provisions || part.provisions,
            appends_apart: all.appends_apart && part.appends_apart,
        })
    }

    fn submit(&mut self, mut call: Call) {
        let place = match &mut call {
            Call::Provision { t, spec, .. } => {
                let (t, name) = (*t, std::mem::take(&mut spec.storage));
                match self.making(name) {
                    Ok(place) => place,
                    Err(NothingToMake) => {
                        let provisions = Box::default();
                        let answer = Completion::Provisioned { t, provisions };
                        return self.answers.push(answer);
                    }
                }
            }
            Call::Withdraw { t, origin, .. } => {
                let (t, name) = (*t, std::mem::take(&mut origin.storage));
                match self.making(name) {
                    Ok(place) => place,
                    Err(NothingToMake) => return self.answers.push(Completion::Done { t }),
                }
            }
            Call::Keep { t, kept } => {
                // The part still needs the name, to tell its own maps from others'.
                let (t, name) = (*t, kept.storage);
                match self.making(name) {
                    Ok(place) => place,
                    Err(NothingToMake) => return self.answers.push(Completion::Done { t }),
                }
            }
            Call::Open { log, spec, .. } => {
                let (log, name) = (*log, std::mem::take(&mut spec.storage));
                let place = self.named(log, name);
                if matches!(place, Place::In(part) if self.parts[part].name != name) {
                    // Input: an owner to whom another log 0 has said where the log is.
                    let why =
                        Refusal::Unsupported("namespace.storage of a log that has another".into());
                    return self.refuse(&call, why);
                }
                self.logs.insert(log, place);
                place
            }
            Call::Delete { log, origin, .. } => {
                self.named(*log, std::mem::take(&mut origin.storage))
            }
            Call::Read { r, log, .. } => {
                let place = self.place(*log);
                if let Place::In(part) = place {
                    self.readers.insert(*r, part);
                }
                place
            }
            Call::Credit { r, .. } | Call::Want { r, .. } | Call::Stop { r } => {
                let Some(part) = self.readers.get(r) else {
                    // Input: an owner who does not know yet that the reader has ended.
                    return;
                };
                Place::In(*part)
            }
            call => call.log().map_or(Place::In(0), |log| self.place(log)),
        };
        match place {
            Place::In(part) => self.parts[part].storage.submit(call),
            Place::Elsewhere => self.refuse(&call, Refusal::Elsewhere(Holder::default())),
        }
    }

    fn poll(&mut self, now: Now, out: &mut Vec<Completion>) -> Option<Mono> {
        let given = out.len();
        out.append(&mut self.answers);
        let mut deadline: Option<Mono> = None;
        for storage in self.each() {
            let at = storage.poll(now, out);
            deadline = match (deadline, at) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
        }
        for completion in &out[given..] {
            if let Completion::Ended { r, .. } = completion {
                self.readers.remove(r);
            }
        }
        deadline
    }

    fn opened(&mut self) {
        self.each().for_each(LogStorage::opened);
    }

    fn close(&mut self, now: Now) {
        self.each().for_each(|storage| storage.close(now));
    }

    fn is_closed(&self) -> bool {
        self.parts.iter().all(|part| part.storage.is_closed())
    }

    /// The first part's trouble, or that of another one, which is named.
    fn trouble(&self) -> Option<Trouble> {
        self.parts.iter().find_map(|part| {
            let trouble = part.storage.trouble()?;
            if part.name.is_first() {
                return Some(trouble);
            }
            let error = format!("storage {}: {}", part.name, trouble.error);
            Some(Trouble { error, ..trouble })
        })
    }

    fn damage(&self) -> u64 {
        self.parts.iter().map(|part| part.storage.damage()).sum()
    }

    fn read_bytes(&self) -> u64 {
        self.parts
            .iter()
            .map(|part| part.storage.read_bytes())
            .sum()
    }

    fn clock(&self) -> ClockState {
        self.parts[0].storage.clock()
    }

    fn accept_clock(&mut self, now: Now) {
        self.each().for_each(|storage| storage.accept_clock(now));
    }
}

/// The one of two that recognises a retry later.
fn later(one: Dedup, other: Dedup) -> Dedup {
    match (one, other) {
        (Dedup::AtRead, _) | (_, Dedup::AtRead) => Dedup::AtRead,
        (Dedup::AtApply, _) | (_, Dedup::AtApply) => Dedup::AtApply,
        (Dedup::AtAppend, Dedup::AtAppend) => Dedup::AtAppend,
    }
}

/// The order of times that holds for both.
fn looser(one: AppendClock, other: AppendClock) -> AppendClock {
    match (one, other) {
        (AppendClock::Monotone, clock) | (clock, AppendClock::Monotone) => clock,
        (AppendClock::Within(one), AppendClock::Within(other)) => {
            AppendClock::Within(one.max(other))
        }
    }
}
