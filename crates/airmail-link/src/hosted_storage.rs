//! The far end of links: a log storage that its own shard uses, and others too, each through a port.
//!
//! What a guest asks goes to the storage under numbers of this end; answers go back to whoever asked, answers
//! before deliveries, so that nobody is given a batch before the answer to its append is on the way. Whatever a
//! guest does, or leaves undone, the others get theirs: nothing here waits.
//!
//! A new life of a log that one of them begins is told to all others, unasked, as is everything that the
//! storage itself tells unasked; but for what it has lost, which is its owner's to know.
//!
//! A clean stop refuses the owner's appends from its beginning. The storage closes when every guest has said
//! that no append of its follows, or has no connection, so what others were promised is stored.
//!
//! Invariants: those of its parts, `guest.rs` and `slots.rs`; a call is answered to whoever made it, once, unless
//! the connection was cut meanwhile.

mod guest;
mod slots;
mod wants;

use crate::limits::LinkLimits;
use airmail_log::{
    Call, Capabilities, ClockState, Completion, LogStorage, ReaderId, Refusal, ScopeFilter, Tag,
    Trouble, WantEdit,
};
use airmail_model::{LogId, Mono, Now, bug};
pub use guest::HostPort;
use guest::{Ask, Guest, Start};
use slots::{GuestPlace, Marks, Slots};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;
use wants::{Wanting, Wants};

/// Time after which what was refused as busy is worth trying again.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Ports that may wait for the next poll.
const ARRIVING_MAX: usize = 64;

/// State of a clean stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closing {
    No,
    /// The guests have not all said that no append of theirs follows.
    Waiting,
    /// The storage closes, or is closed.
    Passed,
}

/// A log storage that others use too. See the module's documentation.
pub struct HostedStorage<S> {
    storage: S,
    limits: LinkLimits,
    guests: Vec<Guest>,
    /// Ports of further guests, and whoever brings them.
    arriving: (SyncSender<HostPort>, Receiver<HostPort>),
    slots: Slots,
    wants: Wants,
    /// Calls under way that begin a new life of a log.
    renewals: BTreeMap<Tag, LogId>,
    completions: Vec<Completion>,
    /// Number of appends of the owner that the storage has not answered.
    own_appends: u64,
    /// Appends of the owner that came after its close, to be refused behind those before.
    late: VecDeque<Tag>,
    closing: Closing,
}

impl<S> fmt::Debug for HostedStorage<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostedStorage")
            .field("guests", &self.guests.len())
            .field("closing", &self.closing)
            .finish_non_exhaustive()
    }
}

impl<S: LogStorage> HostedStorage<S> {
    /// A storage without guests.
    pub fn new(storage: S, limits: LinkLimits) -> HostedStorage<S> {
        HostedStorage::with(storage, limits, Marks::INNER)
    }

    /// A storage without guests, around one that is hosted itself, as the logs of all shards are around a shard's own.
    pub fn around(storage: S, limits: LinkLimits) -> HostedStorage<S> {
        HostedStorage::with(storage, limits, Marks::OUTER)
    }

    fn with(storage: S, limits: LinkLimits, marks: Marks) -> HostedStorage<S> {
        HostedStorage {
            storage,
            limits,
            guests: Vec::new(),
            arriving: sync_channel(ARRIVING_MAX),
            slots: Slots::new(marks),
            wants: Wants::default(),
            renewals: BTreeMap::new(),
            completions: Vec::new(),
            own_appends: 0,
            late: VecDeque::new(),
            closing: Closing::No,
        }
    }

    /// Lets whoever is at the other end of `port` use the storage.
    pub fn add_port(&mut self, port: HostPort) {
        let place = GuestPlace(self.guests.len());
        self.guests.push(Guest::new(place, port));
    }

    /// Takes ports from whoever is elsewhere: the storage is used through each from its next poll on, and as long
    /// as it is there. A port whose connection has ended is there for another. There is room for 64 between two
    /// polls.
    #[must_use]
    pub fn arrivals(&self) -> SyncSender<HostPort> {
        self.arriving.0.clone()
    }

    /// The storage itself, to look at.
    pub fn storage(&self) -> &S {
        &self.storage
    }

    /// The storage itself, for methods that are no call.
    pub fn storage_mut(&mut self) -> &mut S {
        &mut self.storage
    }

    /// Ends all links, and gives the storage back.
    #[must_use]
    pub fn into_storage(self) -> S {
        self.storage
    }

    /// Takes what the ports have to tell, up to the bound of a turn for each; whether there may be more.
    fn receive(&mut self) -> bool {
        while let Ok(port) = self.arriving.1.try_recv() {
            self.add_port(port);
        }
        let mut ended = Vec::new();
        let mut more = false;
        for place in 0..self.guests.len() {
            let mut left = self.limits.turn_messages;
            while let Some(call) = self.guests[place].receive(&mut ended) {
                match call {
                    Some(Ask::Call(call)) => self.call(place, call),
                    Some(Ask::Resume { of, call }) => self.resume(place, of, call),
                    // A connection has begun or ended, with all that was wanted over it.
                    None => self.end_lists(place),
                }
                left -= 1;
                if left == 0 {
                    more = true;
                    break;
                }
            }
        }
        for r in ended {
            self.storage.submit(Call::Stop { r });
        }
        more
    }

    /// Passes a guest's call on to the storage.
    fn call(&mut self, place: usize, mut call: Call) {
        let guest = &mut self.guests[place];
        if let Some(t) = call.tag() {
            let Some(asked) = guest.asked(t.0) else {
                bug!("guest {place} asks and has no connection");
                return;
            };
            let hosted = Tag(self.slots.take(asked));
            if let Call::Renew { log, .. } = call {
                self.renewals.insert(hosted, log);
            }
            call.set_tag(hosted);
            return self.storage.submit(call);
        }
        let call = match Start::of(call) {
            Ok(start) => return self.read(place, start),
            Err(other) => other,
        };
        match call {
            Call::Want { r, edit, topics } => self.want(place, r, edit, *topics),
            Call::Credit { r, bytes } => guest.credit(r, bytes),
            Call::Stop { r } => {
                if let Some(r) = guest.stop(r) {
                    self.storage.submit(Call::Stop { r });
                }
            }
            other => bug!("{other:?} has neither tag nor reader"),
        }
    }

    /// Starts a reader of a guest. One of what is wanted begins when it is known what that is.
    fn read(&mut self, place: usize, start: Start) {
        if start.scope.filter != ScopeFilter::Wanted {
            return self.start(place, &start, None);
        }
        match self.wants.begin(start.log, self.limits.wants) {
            Some(wanting) => self.start(place, &start, Some(wanting)),
            None => {
                let why = Some(Refusal::Busy {
                    retry_after: RETRY_AFTER,
                });
                self.guests[place].tell_of_reader(Completion::Ended { r: start.run, why });
            }
        }
    }

    fn start(&mut self, place: usize, start: &Start, wanting: Option<Box<Wanting>>) {
        if let Some(granted) = self.guests[place].start(start, wanting, &self.limits) {
            self.begin(place, start.clone(), granted);
        }
    }

    /// Has the storage read for a guest's reader.
    fn begin(&mut self, place: usize, start: Start, credit: u32) {
        let Start {
            run,
            log,
            from,
            mut scope,
            ..
        } = start;
        let guest = &mut self.guests[place];
        let Some(asked) = guest.asked(run.0) else {
            bug!("guest {place} reads and has no connection");
            return;
        };
        let r = slots::reader(self.slots.take(asked));
        guest.begun(run, r);
        if guest.wanting(run).is_some() {
            scope.filter = ScopeFilter::All;
        }
        self.storage.submit(Call::Read {
            r,
            log,
            from,
            scope,
            credit,
        });
    }

    /// A reader goes on as another, with what is wanted of it.
    fn resume(&mut self, place: usize, of: ReaderId, call: Call) {
        let (wanting, hosted) = self.guests[place].resume(of);
        if let Some(r) = hosted {
            self.storage.submit(Call::Stop { r });
        }
        match (Start::of(call), wanting) {
            (Ok(start), Some(wanting)) => self.start(place, &start, Some(wanting)),
            // Input: a reader that gives everything, which has nothing to keep.
            (Ok(start), None) => self.read(place, start),
            (Err(call), _) => bug!("{call:?} resumes no reader"),
        }
    }

    /// Changes what is wanted of a guest's reader.
    fn want(&mut self, place: usize, run: ReaderId, edit: u32, topics: WantEdit) {
        let (wants, max) = (&mut self.wants, self.limits.wants);
        let guest = &mut self.guests[place];
        let begins = guest.want(run, edit, |wanting| wants.take(wanting, topics, max));
        if let Some(start) = begins {
            let credit = guest.granted(run);
            self.begin(place, start, credit);
        }
    }

    /// Ends the lists of a guest's readers that have ended.
    fn end_lists(&mut self, place: usize) {
        for wanting in self.guests[place].take_ended() {
            self.wants.end(&wanting);
        }
    }

    /// Gives each completion of the storage to whoever it is for: answers first.
    fn give(&mut self, out: &mut Vec<Completion>) {
        let mut completions = std::mem::take(&mut self.completions);
        let (mut delivered, marks) = (Vec::new(), self.slots.marks());
        for completion in completions.drain(..) {
            if let Some(t) = completion.tag() {
                self.answer(t, completion, out);
            } else if let Some(r) = completion.reader().filter(|r| marks.is_guests(r.0)) {
                delivered.push((r, completion));
            } else {
                let is_owners = matches!(completion, Completion::Suspended { .. });
                if completion.reader().is_none() && !is_owners {
                    self.tell_guests(&completion, None);
                }
                out.push(completion);
            }
        }
        for (r, completion) in delivered {
            self.deliver(r, completion);
        }
        self.completions = completions;
    }

    fn answer(&mut self, t: Tag, mut answer: Completion, out: &mut Vec<Completion>) {
        let renewed = self.renewed(t, &answer);
        let marks = self.slots.marks();
        if !marks.is_guests(t.0) {
            let (t, is_append) = marks.owners(t);
            self.own_appends -= u64::from(is_append);
            answer.set_tag(t);
            out.push(answer);
            if let Some(gained) = renewed {
                self.tell_guests(&gained, None);
            }
            return;
        }
        let Some(asked) = self.slots.answered(t.0) else {
            bug!("{answer:?} answers nothing that was asked");
            return;
        };
        let guest = &mut self.guests[asked.guest.0];
        if guest.is_present(&asked) {
            answer.set_tag(Tag(asked.number));
            guest.tell(answer);
        }
        if let Some(gained) = renewed {
            self.tell_guests(&gained, Some(asked.guest));
            out.push(gained);
        }
    }

    /// The event for everybody else, if an answer says that a log has begun a new life.
    fn renewed(&mut self, t: Tag, answer: &Completion) -> Option<Completion> {
        if self.renewals.is_empty() {
            return None;
        }
        let log = self.renewals.remove(&t)?;
        match answer {
            Completion::Opened { bounds, .. } => Some(Completion::Gained {
                log,
                bounds: *bounds,
            }),
            _ => None,
        }
    }

    fn tell_guests(&mut self, completion: &Completion, but: Option<GuestPlace>) {
        for (place, guest) in self.guests.iter_mut().enumerate() {
            if but != Some(GuestPlace(place)) {
                guest.tell(completion.clone());
            }
        }
    }

    fn deliver(&mut self, r: ReaderId, completion: Completion) {
        let asked = if matches!(completion, Completion::Ended { .. }) {
            self.slots.answered(r.0)
        } else {
            self.slots.get(r.0)
        };
        let Some(asked) = asked else {
            bug!("{completion:?} is of no reader");
            return;
        };
        let guest = &mut self.guests[asked.guest.0];
        if !guest.is_present(&asked) {
            return;
        }
        let run = slots::reader(asked.number);
        let (completion, left_out) = match guest.wanting(run) {
            Some(wanting) => self.wants.cut(wanting, completion),
            None => (completion, 0),
        };
        if let Some(r) = guest.deliver(run, completion, left_out, &self.limits) {
            self.storage.submit(Call::Stop { r });
        }
    }

    /// Refuses the owner's appends that came too late, once those before are answered.
    fn refuse_late(&mut self, out: &mut Vec<Completion>) {
        if self.own_appends == 0 {
            let why = Refusal::Busy {
                retry_after: RETRY_AFTER,
            };
            let refused = |t| Completion::Refused {
                t,
                why: why.clone(),
            };
            out.extend(self.late.drain(..).map(refused));
        }
    }

    /// Grants credit, and sends what waits; whether there may be more to do.
    fn serve(&mut self) -> bool {
        let mut more = false;
        for guest in &mut self.guests {
            more |= guest.send(&self.limits);
            guest.grant(&self.limits, |call| {
                more = true;
                self.storage.submit(call);
            });
            guest.flush();
            if bug::is_checking() {
                guest.check();
            }
        }
        (0..self.guests.len()).for_each(|place| self.end_lists(place));
        more |= self.wants.sweep();
        if bug::is_checking() {
            self.wants.check();
        }
        more
    }
}

impl<S: LogStorage> LogStorage for HostedStorage<S> {
    fn capabilities(&self) -> Capabilities {
        self.storage.capabilities()
    }

    fn submit(&mut self, mut call: Call) {
        let marks = self.slots.marks();
        marks.check_owners(call.tag().map_or(0, |t| t.0));
        marks.check_owners(call.reader().map_or(0, |r| r.0));
        match call {
            Call::Append { t, .. } if self.closing != Closing::No => {
                self.late.push_back(t);
                return;
            }
            Call::Append { t, .. } => {
                self.own_appends += 1;
                call.set_tag(marks.of_append(t));
            }
            Call::Renew { t, log } => {
                self.renewals.insert(t, log);
            }
            _ => {}
        }
        self.storage.submit(call);
    }

    fn poll(&mut self, now: Now, out: &mut Vec<Completion>) -> Option<Mono> {
        let mut more = self.receive();
        let deadline = self.storage.poll(now, &mut self.completions);
        // The storage has looked at everything that came before: it accepts that.
        if self.closing == Closing::Waiting && self.guests.iter().all(Guest::is_silent) {
            self.closing = Closing::Passed;
            self.storage.close(now);
            more = true;
        }
        self.give(out);
        self.refuse_late(out);
        more |= self.serve();
        if more { Some(now.mono) } else { deadline }
    }

    fn opened(&mut self) {
        self.storage.opened();
    }

    fn close(&mut self, now: Now) {
        if self.closing != Closing::No {
            return;
        }
        self.closing = Closing::Waiting;
        if self.guests.is_empty() {
            self.closing = Closing::Passed;
            self.storage.close(now);
        }
    }

    fn is_closed(&self) -> bool {
        self.closing == Closing::Passed
            && self.late.is_empty()
            && self.storage.is_closed()
            && self.guests.iter().all(Guest::is_served)
    }

    fn trouble(&self) -> Option<Trouble> {
        self.storage.trouble()
    }

    fn damage(&self) -> u64 {
        self.storage.damage()
    }

    fn read_bytes(&self) -> u64 {
        self.storage.read_bytes()
    }

    fn clock(&self) -> ClockState {
        self.storage.clock()
    }

    fn accept_clock(&mut self, now: Now) {
        self.storage.accept_clock(now);
    }
}
