//! A client's subscriptions: the SDK's subscriber, and the deliveries to each subscription.

use super::Space;
use super::link::Link;
use super::watch::Watch;
use crate::census::Kind;
use crate::entropy::Entropy;
use crate::evidence::Evidence;
use crate::files::Machine;
use crate::invariants::audience::Audiences;
use crate::invariants::filters::Filters;
use crate::invariants::selections::Subject;
use crate::invariants::{Checked, Violation, complete, durable_first};
use crate::ledger::{Harm, Ledger};
use crate::message::identify;
use crate::plant::Plant;
use airmail_client::core::{
    Event, ReceivedBatch, Subscriber, SubscriberConfig, SubscriberOutput, SubscriptionKey,
};
use airmail_model::frame::{GapReason, Reply, Request, State};
use airmail_model::{Incarnation, Lane, LogId, Position, RoleId, Sequence};
use std::collections::{BTreeMap, BTreeSet};

const SUBSCRIPTIONS_MAX: usize = 12;

/// A position that someone wrote down: of a subscription to topics of a space, in the line of a log.
#[derive(Debug)]
pub(super) struct Saved {
    pub(super) space: usize,
    pub(super) subject: Subject,
    pub(super) log: LogId,
    pub(super) position: Position,
}

/// One client.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) number: u32,
    pub(super) link: Link,
    pub(super) core: Subscriber,
    pub(super) credit: u32,
    /// Roles that it has.
    pub(super) roles: Vec<RoleId>,
    pub(super) watches: BTreeMap<SubscriptionKey, Watch>,
    /// The same in lane high.
    pub(super) high: BTreeMap<SubscriptionKey, Watch>,
    /// Positions that someone wrote down, to begin from again.
    pub(super) saved: Vec<Saved>,
    /// Delivered, not yet dealt with.
    unconsumed: u32,
    /// Deals with nothing.
    pub(super) stuck: bool,
    /// Subscriptions that it has, at most.
    pub(super) most: usize,
    /// Rate of turns at which it consumes deliveries, in parts of a million.
    pace: u32,
    /// Subscriptions that it may still ask for without having met a hole.
    pub(super) asks: u64,
    /// Whether its subscriptions overlap, and its draws about them: aside, so that no other depends on them.
    pub(super) overlap: Option<Entropy>,
}

impl Client {
    pub(super) fn new(
        number: u32,
        plant: Option<Plant>,
        (audiences, filters): (&Audiences, &Filters),
        chance: &mut Entropy,
    ) -> Client {
        let credit = 1 << chance.between(10, 16);
        let config = SubscriberConfig {
            credit_bytes: credit,
            seed: chance.next(),
            bug: plant.and_then(Plant::in_client),
            ..SubscriberConfig::default()
        };
        let core = Subscriber::new(config);
        let overlap = filters.overlap_of(number);
        Client {
            number,
            link: Link::default(),
            overlap: overlap.then(|| Entropy::new(u64::from(number) ^ 0x0fe2_1a95)),
            core: if overlap { core.matching() } else { core },
            credit,
            roles: audiences.of_client(number),
            watches: BTreeMap::new(),
            high: BTreeMap::new(),
            saved: Vec::new(),
            unconsumed: 0,
            stuck: false,
            most: chance.index(SUBSCRIPTIONS_MAX) + 1,
            pace: if chance.chance(200_000) {
                10_000
            } else {
                1_000_000
            },
            asks: 0,
        }
    }

    /// Watches of its subscriptions in a lane.
    pub(super) fn watches_in(&mut self, lane: Lane) -> &mut BTreeMap<SubscriptionKey, Watch> {
        match lane {
            Lane::Normal => &mut self.watches,
            Lane::High => &mut self.high,
        }
    }

    /// A stream to the node is open.
    pub(super) fn connected(&mut self) {
        self.asks = self.watches.len() as u64;
        self.core.connected();
    }

    /// The client asks for a subscription.
    ///
    /// # Errors
    /// It has no reason to but a hole in what the node has sent, on a stream that loses nothing.
    pub(super) fn asks(&mut self, request: &Request) -> Checked {
        let Request::Add(subscribe) = request else {
            return Ok(());
        };
        self.asks = self.asks.checked_sub(1).ok_or_else(|| {
            let detail = format!("client {} asks again: {subscribe:?}", self.number);
            Violation::new("G2 a whole stream has no holes", detail)
        })?;
        Ok(())
    }

    /// The node has said something that may make the client ask again.
    pub(super) fn answered(&mut self, reply: &Reply) {
        if let Reply::Status {
            state: State::Failed(error),
            ..
        } = reply
            && error.code().retriable()
        {
            self.asks += 1;
        }
    }

    /// The node's files were set back to an older copy. `quietly`: positions that were written down
    /// are not used any more, since nobody would recognise them.
    pub(super) fn files_set_back(&mut self, quietly: bool) {
        if quietly {
            self.saved.clear();
        }
        let all = self.watches.values_mut().chain(self.high.values_mut());
        all.for_each(Watch::files_set_back);
    }

    /// Whether the node has said of every subscription where it stands, since it was set back.
    pub(super) fn is_back(&self) -> bool {
        self.watches.values().all(|watch| !watch.away)
    }

    pub(super) fn note_positions(&mut self) {
        for (key, watch) in &mut self.watches {
            if let Some(position) = self.core.position(*key) {
                watch.position = Some(position);
            }
        }
    }

    /// Deals with everything, from here on.
    pub(super) fn catch_up(&mut self) {
        self.stuck = false;
        self.core.consumed(std::mem::take(&mut self.unconsumed));
    }

    /// Consumes deliveries.
    pub(super) fn consume(&mut self, chance: &mut Entropy) {
        if !self.stuck && chance.chance(self.pace) {
            self.core.consumed(std::mem::take(&mut self.unconsumed));
        }
    }

    /// Takes the subscriptions' reports.
    pub(super) fn told(
        &mut self,
        out: &mut SubscriberOutput,
        evidence: &mut Evidence,
        machine: &Machine,
        spaces: &[Space],
    ) -> Checked {
        let events = out.events.drain(..).collect::<Vec<_>>();
        for (key, event) in events {
            if let Event::Messages(arrived) = &event {
                self.unconsumed += arrived.cost;
                for owner in owners(arrived) {
                    self.told_messages((owner, arrived), evidence, machine)?;
                }
                continue;
            }
            let Evidence { ledger, census, .. } = &mut *evidence;
            let who = format!("subscription {key:?} of client {}", self.number);
            let lane = lane_of(&event);
            let watches = match lane {
                Lane::Normal => &mut self.watches,
                Lane::High => &mut self.high,
            };
            let Some(watch) = watches.get_mut(&key) else {
                let detail = format!("{who} is told of {event:?} after its end");
                return Err(Violation::new("G2 nothing comes after the end", detail));
            };
            let is_harmed = |lane| ledger.harm_of(LogId { lane, ..watch.log }).is_some();
            let is_skipped = match &event {
                // A status about one lane harmed says nothing of the other one; but that ends with it.
                Event::Status(State::Complete { .. } | State::Failed(_)) => {
                    Lane::ALL.into_iter().any(is_harmed)
                }
                Event::Status(_) => false,
                _ => is_harmed(watch.log.lane),
            };
            if is_skipped {
                self.told_of_harmed(key, &event);
                continue;
            }
            match event {
                Event::Messages(_) => {}
                Event::Expired(expired) => {
                    self.unconsumed += expired.cost;
                    let count = expired.numbers.len() as u64;
                    census.add(Kind::ExpiredAtNode, count);
                    watch.expired(&expired, ledger, &who)?;
                }
                Event::Gap(gap) => {
                    census.count(match gap.why {
                        GapReason::Unused => Kind::GapUnused,
                        GapReason::Retention => Kind::GapRetention,
                        GapReason::Loss => Kind::GapLoss,
                    });
                    let told = watch.gap(&gap, ledger, spaces, &who)?;
                    census.add(Kind::RestoreTold, u64::from(told));
                }
                Event::Status(state) => {
                    let is_done = matches!(state, State::Complete { .. });
                    census.add(Kind::HistoryDone, u64::from(is_done));
                    self.status(key, &state, (ledger, census), spaces)?;
                }
            }
        }
        Ok(())
    }

    /// One of its subscriptions is given messages.
    fn told_messages(
        &mut self,
        (key, arrived): (SubscriptionKey, &ReceivedBatch),
        evidence: &mut Evidence,
        machine: &Machine,
    ) -> Checked {
        let Evidence { ledger, census, .. } = evidence;
        let who = format!("subscription {key:?} of client {}", self.number);
        let Some(watch) = self.watches_in(arrived.log.lane).get_mut(&key) else {
            let detail = format!("{who} is given messages after its end");
            return Err(Violation::new("G2 nothing comes after the end", detail));
        };
        if let Some(harm) = ledger.harm_of(watch.log) {
            // What has come in the places of what was cut off has its numbers, and no number may be another message's.
            for (number, record) in arrived.iter_of(key).filter(|_| harm == Harm::Gone) {
                let id = identify(record.payload).map(|(id, _)| id);
                let place = (arrived.log, Incarnation(0), number);
                ledger
                    .numbers
                    .see(place, id.unwrap_or_default(), "delivered")?;
            }
            return Ok(());
        }
        let gone = watch.messages(
            (arrived, key),
            ledger,
            |ledger, id, number| {
                durable_first::check(machine, id, ledger.on_disk(id), "delivered")?;
                let line = ledger.lines.of(arrived.log);
                let place = (line, Incarnation(0), number);
                ledger.numbers.see(place, id, "delivered")
            },
            &who,
        )?;
        census.add(Kind::ExpiredAtClient, gone);
        Ok(())
    }

    /// Something is told of a log that was harmed, which says nothing.
    fn told_of_harmed(&mut self, key: SubscriptionKey, event: &Event) {
        match event {
            Event::Status(State::Complete { .. } | State::Failed(_)) => self.forget(key),
            Event::Expired(expired) => self.unconsumed += expired.cost,
            Event::Messages(_) | Event::Status(_) | Event::Gap(_) => {}
        }
    }

    /// Everything before its position has been told to the subscription.
    pub(super) fn check_complete(&self, key: SubscriptionKey, ledger: &Ledger) -> Checked {
        let Some(position) = self.core.position(key) else {
            return Ok(());
        };
        for lane in Lane::ALL {
            if let Some(next) = place_of(&position, lane, ledger) {
                self.check_range((key, lane), next, ledger)?;
            }
        }
        Ok(())
    }

    /// Checks each subscription like [`Client::check_complete`].
    pub(super) fn check_all(&self, ledger: &Ledger) -> Checked {
        let mut keys = self.watches.keys();
        keys.try_for_each(|key| self.check_complete(*key, ledger))
    }

    pub(super) fn check_range(
        &self,
        (key, lane): (SubscriptionKey, Lane),
        to: Sequence,
        ledger: &Ledger,
    ) -> Checked {
        let watches = match lane {
            Lane::Normal => &self.watches,
            Lane::High => &self.high,
        };
        // Of one that has not come back nobody can say what it has missed.
        let Some(watch) = watches.get(&key).filter(|watch| !watch.away) else {
            return Ok(());
        };
        let Some(from) = watch.first(ledger) else {
            return Ok(());
        };
        let who = format!("subscription {key:?} of client {}", self.number);
        if let Some(end) = &watch.end {
            end.check(ledger, &who)?;
        }
        let range = (from, to);
        complete::check(ledger, watch.log, watch.subject, range, &watch.given, &who)
    }

    /// Whether every subscription to some logs has been told of all that is acknowledged, but for what
    /// lies beyond what can be known here.
    pub(super) fn has_everything(&self, ledger: &Ledger, of: impl Fn(LogId) -> bool) -> bool {
        let all = self.watches.iter().chain(&self.high);
        let watches = all.filter(|(_, watch)| of(watch.log));
        let mut watches = watches.filter(|(_, watch)| ledger.harm_of(watch.log).is_none());
        watches.all(|(key, watch)| self.has_all_of(*key, watch, ledger))
    }

    fn has_all_of(&self, key: SubscriptionKey, watch: &Watch, ledger: &Ledger) -> bool {
        let lane = watch.log.lane;
        let twin = LogId {
            lane: lane.other(),
            ..watch.log
        };
        if ledger.harm_of(twin).is_some() {
            // Nobody has a subscription to one lane alone.
            return true;
        }
        if lane == Lane::High && ledger.last_acked(watch.log) == Sequence(0) {
            // Nothing was published there.
            return true;
        }
        let position = self.core.position(key);
        let is_waiting = position.is_none() && lane == Lane::High;
        let next = position.and_then(|position| place_of(&position, lane, ledger));
        let done = match next {
            Some(next) => watch.is_done(next, ledger),
            None => is_waiting || watch.is_ahead(ledger),
        };
        done && !watch.away
    }

    /// The subscriptions that have not been told of everything, to be shown.
    pub(super) fn behind(&self, ledger: &Ledger) -> Vec<String> {
        let mut behind = Vec::new();
        for (key, watch) in self.watches.iter().chain(&self.high) {
            let position = self.core.position(*key);
            let next = position.and_then(|position| place_of(&position, watch.log.lane, ledger));
            if !self.has_all_of(*key, watch, ledger) {
                let (number, log, from) = (self.number, watch.log, &watch.from);
                let away = if watch.away { ", sent away" } else { "" };
                behind.push(format!(
                    "{key:?} of client {number}: {log} from {from:?} at {next:?}{away}"
                ));
            }
        }
        behind
    }
}

/// The lane that an event is about; normal, if it is about both.
fn lane_of(event: &Event) -> Lane {
    match event {
        Event::Expired(expired) => expired.log.lane,
        Event::Gap(gap) => gap.log.lane,
        Event::Messages(arrived) => arrived.log.lane,
        Event::Status(_) => Lane::Normal,
    }
}

/// The place in its line of a position in a lane.
fn place_of(position: &Position, lane: Lane, ledger: &Ledger) -> Option<Sequence> {
    let at = position.logs.iter().find(|at| at.log.lane == lane)?;
    Some(ledger.lines.place(at.log, at.next))
}

/// Those who are given messages of a batch.
fn owners(arrived: &ReceivedBatch) -> BTreeSet<SubscriptionKey> {
    let places = std::iter::successors(arrived.seek(0), |place| arrived.seek(place + 1));
    places.flat_map(|place| arrived.owners(place)).collect()
}
