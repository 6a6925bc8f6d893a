//! Requests that name a namespace, or a map of one by itself or by a position in one of its logs, or a role, which is not
//! known here: another shard may just have made it. Those that ask for lane high by a place in it or by name, where a namespace
//! is not known to have it, likewise. And what is first published to lane high of a namespace, which has to get logs for it.
//!
//! Such a request waits, with all that its session asks behind it, until log 0 is folded up to the end that it has
//! when that is asked, and what it says there is done: then the namespace is known and its logs are open, or there
//! is none. All who wait before the question is sent
//! are served by its answer; later ones by the next. If log 0 cannot be asked, or does not come that far in time,
//! whoever waits is told to come again.
//!
//! Commands that name a namespace do not wait: they keep their order, and whoever has made one through another
//! shard is answered only when all shards know it.
//!
//! Invariants: a session is held exactly while a request of it waits; while anybody waits, a question is under
//! way or its answer is waited for; no more wait than [`HELD_MAX`], and than [`HELD_BYTES_MAX`] allow.

use super::Shard;
use crate::catalog::CatalogInput;
use crate::gateway::GatewayInput;
use crate::input::{ClientInput, Command, SessionId};
use crate::tower::TowerInput;
use airmail_model::batch::Audience;
use airmail_model::frame::{Lanes, Request, Start, Subscribe};
use airmail_model::{Batch, Lane, LogId, MapEpoch, Mono, NamespaceId, Now, Sequence};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Time that anybody waits, at most.
const PATIENCE: Duration = Duration::from_secs(1);
/// Requests that may wait; who comes beyond is told to come again.
const HELD_MAX: usize = 4096;
/// Bytes of batches that may wait, likewise; a single batch may be larger.
const HELD_BYTES_MAX: usize = 16 << 20;

/// A request that waits.
#[derive(Debug)]
struct Held {
    input: ClientInput,
    /// Number of the question that serves it.
    round: u64,
}

/// Requests that wait. See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Looking {
    held: VecDeque<Held>,
    /// Bytes of the batches among them.
    held_bytes: usize,
    /// Requests of each session among them.
    sessions: BTreeMap<SessionId, usize>,
    /// Number of the last question that was sent.
    round: u64,
    /// The last question is not answered, or what log 0 says up to there is not done.
    is_under_way: bool,
    /// The end of log 0, once it is told.
    end: Option<Sequence>,
    /// Namespaces that are to get lane high for one who waits.
    to_get_high: BTreeSet<NamespaceId>,
    deadline: Option<Mono>,
}

impl Looking {
    /// When to give up.
    pub(super) fn deadline(&self) -> Option<Mono> {
        self.deadline
    }

    fn has_room(&self, input: &ClientInput) -> bool {
        let bytes = self.held_bytes + batch_bytes(input);
        self.held.len() < HELD_MAX && (self.held_bytes == 0 || bytes <= HELD_BYTES_MAX)
    }

    fn hold(&mut self, input: ClientInput) {
        self.held_bytes += batch_bytes(&input);
        if let Some(session) = session_of(&input) {
            *self.sessions.entry(session).or_default() += 1;
        }
        let round = self.round + 1;
        self.held.push_back(Held { input, round });
    }

    /// The next of those whom the last question serves.
    fn served(&mut self) -> Option<ClientInput> {
        let is_served = |held: &Held| held.round <= self.round;
        if !self.held.front().is_some_and(is_served) {
            return None;
        }
        let input = self.held.pop_front()?.input;
        self.held_bytes -= batch_bytes(&input);
        if let Some(session) = session_of(&input)
            && let Some(left) = self.sessions.get_mut(&session)
        {
            *left -= 1;
            if *left == 0 {
                self.sessions.remove(&session);
            }
        }
        Some(input)
    }
}

/// The session that a request is of.
fn session_of(input: &ClientInput) -> Option<SessionId> {
    match input {
        ClientInput::Request { session, .. } => Some(*session),
        _ => None,
    }
}

/// Bytes of the batch in a request; 0 where there is none.
fn batch_bytes(input: &ClientInput) -> usize {
    match input {
        ClientInput::Request {
            request: Request::Publish { batch, .. },
            ..
        } => batch.bytes().len(),
        _ => 0,
    }
}

impl Shard {
    /// Has a request wait that names what is not known, or that comes behind one; else gives it back.
    pub(super) fn hold_unknown(&mut self, now: Now, input: ClientInput) -> Option<ClientInput> {
        let is_behind = !self.looking.sessions.is_empty()
            && session_of(&input).is_some_and(|of| self.looking.sessions.contains_key(&of));
        let is_ready = self.catalog.is_ready();
        let is_first_of_high = self.wants_high(&input).filter(|_| is_ready);
        if let Some(namespace) = is_first_of_high {
            self.step_catalog(now, CatalogInput::HighWanted(namespace));
            self.looking.to_get_high.insert(namespace);
        }
        let is_unknown = is_ready && self.is_unknown(&input);
        #[cfg(feature = "sabotage")]
        let is_unknown = is_unknown && self.bug != Some(crate::sabotage::Bug::UnknownRefused);
        let waits = is_behind || is_first_of_high.is_some() || is_unknown;
        if !waits {
            return Some(input);
        }
        if self.looking.has_room(&input) {
            self.looking.hold(input);
            self.look(now);
        } else {
            self.let_go(now, [input], false);
        }
        None
    }

    /// Whether something names a namespace that is not known, or was made with a map that is newer than the known one: to
    /// refuse that as stale would send its client in circles.
    fn is_unknown(&self, input: &ClientInput) -> bool {
        let known = self.catalog.snapshot();
        let is_before = |id: NamespaceId, epoch: MapEpoch| {
            let known = known.get(id).map(|entry| entry.map.epoch);
            known.is_none_or(|known| known < epoch) && id != LogId::SYSTEM.namespace
        };
        let is_unknown = |id| is_before(id, MapEpoch(0));
        match input {
            ClientInput::Request { request, .. } => match request {
                Request::Publish { batch, .. } => {
                    is_before(batch.namespace(), batch.map_epoch()) || self.is_for_later_role(batch)
                }
                Request::Add(wanted) => {
                    is_unknown(wanted.namespace)
                        || self.is_of_later_map(&wanted.start)
                        || self.is_of_later_lane(wanted)
                }
                _ => false,
            },
            ClientInput::Command {
                command: Command::ListTopics { namespace, .. },
                ..
            } => is_unknown(*namespace),
            _ => false,
        }
    }

    /// The namespace to whose lane high something is published, if it has no logs for that.
    fn wants_high(&self, input: &ClientInput) -> Option<NamespaceId> {
        let ClientInput::Request {
            request: Request::Publish { batch, .. },
            ..
        } = input
        else {
            // Input: anything but a publish.
            return None;
        };
        let entry = self.catalog.snapshot().get(batch.namespace())?;
        (batch.log().lane == Lane::High && !entry.has_high).then_some(batch.namespace())
    }

    /// Whether a batch is for a role that was made after the last known one.
    fn is_for_later_role(&self, batch: &Batch) -> bool {
        let last = self.catalog.snapshot().roles().last();
        let is_later = |mut audience: Audience<'_>| audience.any(|role| role > last);
        batch.is_restricted() && batch.iter().any(|record| is_later(record.audience))
    }

    /// Whether a position names a log that only a later map than the known one can have.
    fn is_of_later_map(&self, start: &Start) -> bool {
        let Start::Position(position) = start else {
            return false;
        };
        let Some(entry) = self.catalog.snapshot().get(position.namespace) else {
            // Input: a position of another namespace, which is refused.
            return false;
        };
        let last = entry.map.logs(Lane::Normal).next_back();
        let mut logs = position.logs.iter();
        logs.any(|place| last.is_some_and(|last| place.log.index > last.index))
    }

    /// Whether one asks for lane high by a place in it or by name, where a namespace is not known to have it. Who asks for each
    /// lane goes on: one who stays is given all of that lane when it is heard of.
    fn is_of_later_lane(&self, wanted: &Subscribe) -> bool {
        let entry = self.catalog.snapshot().get(wanted.namespace);
        if entry.is_none_or(|entry| entry.has_high) {
            return false;
        }
        let is_named = matches!(wanted.lanes, Lanes::HighFrom(_) | Lanes::Only(Lane::High));
        let has_place = match &wanted.start {
            Start::Position(position) => {
                let mut logs = position.logs.iter();
                logs.any(|place| place.log.lane == Lane::High)
            }
            _ => false,
        };
        is_named || has_place
    }

    /// Asks where log 0 ends, for all who wait, unless that is under way.
    fn look(&mut self, now: Now) {
        let looking = &mut self.looking;
        if looking.is_under_way || looking.held.is_empty() {
            return;
        }
        looking.is_under_way = true;
        looking.round += 1;
        looking.deadline = Some(now.mono.plus(PATIENCE));
        self.step_tower(now, TowerInput::AskSystemEnd);
    }

    /// Takes where log 0 ends, or that it cannot be said.
    pub(super) fn system_end(&mut self, now: Now, end: Option<Sequence>) {
        if !self.looking.is_under_way || self.looking.end.is_some() {
            // Input: an answer that comes after its time.
            return;
        }
        match end {
            Some(end) => self.looking.end = Some(end),
            None => self.looked(now, false),
        }
    }

    /// Lets those go on who wait, if log 0 is folded so far, and the logs are open that it speaks of.
    pub(super) fn go_on_looking(&mut self, now: Now) {
        if !self.looking.is_under_way {
            return;
        }
        let catalog = self.catalog.snapshot();
        let is_without = |id: &NamespaceId| catalog.get(*id).is_some_and(|entry| !entry.has_high);
        let progress = self.catalog.progress();
        if !self.looking.to_get_high.is_empty() {
            self.looking.to_get_high.retain(is_without);
            // Their logs are to be open.
            self.looking.end = self.looking.end.max(Some(progress.folded));
        }
        let has_come = self.looking.end.is_some_and(|end| end <= progress.settled);
        if has_come && self.looking.to_get_high.is_empty() {
            self.looked(now, true);
        }
    }

    /// Gives up, if it is time.
    pub(super) fn stop_looking(&mut self, now: Now) {
        if self.looking.deadline.is_some_and(|at| at <= now.mono) {
            self.looked(now, false);
        }
    }

    /// Lets those go on whom the last question serves.
    fn looked(&mut self, now: Now, is_sure: bool) {
        self.looking.is_under_way = false;
        (self.looking.end, self.looking.deadline) = (None, None);
        self.looking.to_get_high.clear();
        let served: Vec<ClientInput> = std::iter::from_fn(|| self.looking.served()).collect();
        self.let_go(now, served, is_sure);
        self.look(now);
    }

    /// Lets requests go on. Where log 0 was not asked for them, the gateway is told meanwhile that the namespaces
    /// are not known, and so tells them to come again.
    fn let_go(&mut self, now: Now, inputs: impl IntoIterator<Item = ClientInput>, is_sure: bool) {
        self.tell_namespaces(now, is_sure);
        for input in inputs {
            self.step_gateway(now, GatewayInput::Client(input));
        }
        self.tell_namespaces(now, true);
    }
}
