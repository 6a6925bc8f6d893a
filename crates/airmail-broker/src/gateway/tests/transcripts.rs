//! Transcripts of the gateway: its inputs and effects as text, in `tests/transcripts/gateway`.
//!
//! A member is written `1.0#3`: subscription 0 of client 1, in the attempt with ticket 3. The log is the only
//! one of namespace 1. What tower and catalog say is written as in their transcripts.

mod shown;
mod told_by_catalog;

use super::super::{Gateway, GatewayEffects, GatewayInput};
use crate::access::{AllowAll, Principal};
use crate::config::{Interest, ShardConfig};
use crate::input::{ClientInput, Command, CommandId, SessionId};
use crate::link::{FromTower, MemberId};
use crate::transcript::{
    CAPABILITIES, LOG, NAMESPACE, NEXT, link, number, read_batch, read_batch_of,
};
use airmail_log::{AppendClock, Capabilities, Dedup, Numbering};
use airmail_model::frame::{
    Generation, Request, RequestId, Start, Subscribe, SubscriptionId, Until, Wanted,
};
use airmail_model::position::LogPosition;
use airmail_model::selector::Selector;
use airmail_model::{
    AppendTime, Incarnation, MapEpoch, Mono, Now, Position, Retention, StorageName, TopicName, Wall,
};
use airmail_testkit::transcript::parts;
use airmail_testkit::transcripts;
use shown::show_reply;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use told_by_catalog::read_catalog;

transcripts! {
    "gateway",
    play,
    publishes_are_answered_as_written: "publishing",
    live_deliveries_are_as_written: "live",
    a_client_without_credit_is_detached_as_written: "without_credit",
    a_start_at_the_earliest_is_as_written: "earliest",
    history_is_as_written: "history",
    a_number_beyond_the_end_is_awaited_as_written: "beyond_the_end",
    what_comes_late_is_dropped_as_written: "late_messages",
    a_hole_at_the_tail_is_asked_for_as_written: "hole",
    a_deleted_namespace_is_told_as_written: "deleted",
    a_new_life_is_begun_as_written: "new_life",
    topics_are_wanted_and_given_up_as_written: "wants",
    wants_that_are_lost_or_refused_are_as_written: "wants_lost",
    times_that_go_back_are_as_written: "times",
    stamps_of_the_gateway_are_as_written: "own_stamps",
    a_moved_namespace_is_followed_as_written: "moved",
    publishes_to_a_log_that_a_move_has_left_behind_are_as_written: "moved_publishes",
    history_over_a_move_is_as_written: "moved_history",
    history_over_two_moves_is_as_written: "moved_twice",
    history_that_ends_in_a_log_that_is_no_more_is_as_written: "moved_twice_end_gone",
    an_end_that_is_known_before_an_earlier_one_is_as_written: "moved_twice_end_known_first",
    a_time_in_a_later_log_is_found_as_written: "moved_times",
    a_log_that_is_cut_is_gone_on_with_as_written: "cut",
    a_namespace_that_is_made_anew_is_followed_as_written: "recreated",
}

fn play() -> impl FnMut(&str) -> Option<Vec<String>> {
    let mut driver = Driver::new();
    move |line| driver.step(line)
}

/// A gateway, and its clock.
pub(super) struct Driver {
    pub(super) gateway: Gateway,
    now: Now,
    generations: u32,
    /// Members by their tickets, each with its name, also those that have left: the tower may speak of them.
    members: BTreeMap<u64, (MemberId, String)>,
}

impl Driver {
    pub(super) fn new() -> Driver {
        Driver::of(Interest::All, CAPABILITIES)
    }

    fn of(interest: Interest, capabilities: Capabilities) -> Driver {
        let config = ShardConfig {
            interest,
            retry_delay: Duration::ZERO,
            ..ShardConfig::default()
        };
        let allow = || Box::new(AllowAll);
        Driver {
            gateway: Gateway::new(config, &capabilities, allow(), allow()),
            now: Now {
                mono: Mono(1),
                wall: Wall(100),
            },
            generations: 0,
            members: BTreeMap::new(),
        }
    }

    pub(super) fn step(&mut self, line: &str) -> Option<Vec<String>> {
        if line == "the tower gives what is wanted" {
            *self = Driver::of(Interest::Wanted, CAPABILITIES);
            return Some(Vec::new());
        }
        if let Some([micros]) = parts("append times go back by up to {}", line) {
            let most = Duration::from_micros(micros.parse().ok()?);
            let capabilities = Capabilities {
                clock: AppendClock::Within(most),
                ..CAPABILITIES
            };
            *self = Driver::of(Interest::All, capabilities);
            return Some(Vec::new());
        }
        if line == "many write to the log, and retries are recognised when they are read" {
            let capabilities = Capabilities {
                dedup: Dedup::AtRead,
                numbering: Numbering::Sparse,
                many_writers: true,
                ..CAPABILITIES
            };
            *self = Driver::of(Interest::All, capabilities);
            return Some(Vec::new());
        }
        let input = self.read(line)?;
        let mut out = GatewayEffects::default();
        self.gateway.apply(self.now, input, &mut out);
        self.gateway.finish_step(self.now, &mut out);
        self.gateway.check();
        self.remember_members();
        let mut lines: Vec<String> = Vec::new();
        for (session, reply) in &out.replies {
            lines.push(format!("client {}: {}", session.0, show_reply(reply)));
        }
        for (id, result) in &out.outcomes {
            let result = match result {
                Ok(outcome) => format!("{outcome:?}"),
                Err(error) => error.to_string(),
            };
            lines.push(format!("client {}: {result}", id.0));
        }
        let name = |member: MemberId| {
            let (_, name) = &self.members[&member.ticket];
            name.clone()
        };
        for message in &out.to_tower {
            let message = link::show_to_tower(message, &name);
            lines.push(format!("to the tower: {message}"));
        }
        for (id, command) in &out.commands {
            let command = match command {
                Command::CreateNamespace { name, .. } => format!("create {name}"),
                other => format!("{other:?}"),
            };
            lines.push(format!("to the catalog: client {} asks to {command}", id.0));
        }
        Some(lines)
    }

    /// Lets the tower tell something in one step; what comes of it.
    pub(super) fn told(&mut self, messages: impl IntoIterator<Item = FromTower>) -> GatewayEffects {
        let mut out = GatewayEffects::default();
        for message in messages {
            let input = GatewayInput::FromTower(message);
            self.gateway.apply(self.now, input, &mut out);
        }
        self.gateway.finish_step(self.now, &mut out);
        self.gateway.check();
        out
    }

    fn remember_members(&mut self) {
        let Gateway {
            behind,
            subs,
            sessions,
            ..
        } = &self.gateway;
        for (key, record) in behind.iter() {
            let member = behind.member(key);
            let (client, sub) = (sessions[record.session].id.0, subs[record.sub].id.0);
            let name = format!("{client}.{sub}#{}", member.ticket);
            self.members.insert(member.ticket, (member, name));
        }
    }

    /// Finds the member that `1.0#3` means.
    fn member(&self, name: &str) -> Option<MemberId> {
        let mut members = self.members.values();
        let found = members.find(|(_, known)| known == name);
        found.map(|(member, _)| *member)
    }

    /// Reads an input.
    fn read(&mut self, line: &str) -> Option<GatewayInput> {
        if let Some([rest]) = parts("catalog: {}", line) {
            read_catalog(rest)
        } else if let Some([rest]) = parts("tower: {}", line) {
            let message = link::read_from_tower(rest, &|name| self.member(name))?;
            Some(GatewayInput::FromTower(message))
        } else if let Some([id, name]) = parts("client {} asks to create {}", line) {
            Some(GatewayInput::Client(ClientInput::Command {
                id: CommandId(id.parse().ok()?),
                principal: Principal::default(),
                command: Command::CreateNamespace {
                    name: name.to_owned(),
                    logs: 1,
                    retention: Retention::default(),
                    durability: None,
                    storage: StorageName::FIRST,
                },
            }))
        } else if let Some([ms]) = parts("{} ms pass", line) {
            let time = Duration::from_millis(ms.parse().ok()?);
            self.now.mono = self.now.mono.plus(time);
            Some(GatewayInput::Timer)
        } else {
            let [id, rest] = parts("client {} {}", line)?;
            let input = self.read_client(SessionId(id.parse().ok()?), rest)?;
            Some(GatewayInput::Client(input))
        }
    }

    fn read_client(&mut self, session: SessionId, line: &str) -> Option<ClientInput> {
        if line == "closes" {
            return Some(ClientInput::Closed { session });
        }
        if let Some([credit]) = parts("opens with {} bytes of credit", line) {
            return Some(ClientInput::Opened {
                session,
                principal: Principal::default(),
                credit: credit.parse().ok()?,
            });
        }
        let request =
            if let Some([request, topics]) = parts("publishes #{} with the new map: {}", line) {
                Request::Publish {
                    request: RequestId(request.parse().ok()?),
                    batch: read_batch_of(NEXT, MapEpoch(2), topics),
                    begins_epoch: false,
                }
            } else if let Some([request, topics]) = parts("publishes #{}: {}", line) {
                Request::Publish {
                    request: RequestId(request.parse().ok()?),
                    batch: read_batch(topics),
                    begins_epoch: false,
                }
            } else if let Some([bytes]) = parts("gives {} bytes of credit", line) {
                let bytes = bytes.parse().ok()?;
                Request::Credit { bytes }
            } else if let Some([id]) = parts("removes subscription {}", line) {
                let subscription = SubscriptionId(id.parse().ok()?);
                Request::Remove { subscription }
            } else {
                let [id, topic, range] = parts("adds subscription {} of topic {}, from {}", line)?;
                let (start, until) = read_range(range)?;
                self.generations += 1;
                Request::Add(Subscribe {
                    subscription: SubscriptionId(id.parse().ok()?),
                    generation: Generation(self.generations),
                    namespace: NAMESPACE,
                    wanted: wanted(topic),
                    start,
                    until,
                    tell_expired: false,
                    filter: None,
                    headers_only: false,
                    matches: false,
                    lanes: airmail_model::frame::Lanes::Each,
                })
            };
        Some(ClientInput::Request { session, request })
    }
}

/// Reads where a subscription begins and, behind `until`, where it ends.
fn read_range(words: &str) -> Option<(Start, Option<Until>)> {
    let (start, until) = match parts("{} until {}", words) {
        Some([start, until]) => (start, Some(read_until(until)?)),
        None => (words, None),
    };
    let start = if let Some([at]) = parts("number {}", start) {
        Start::Sequence(number(at)?)
    } else if let Some([next, life]) = parts("position {} of life {}", start) {
        Start::Position(Position {
            namespace: NAMESPACE,
            epoch: MapEpoch(1),
            logs: vec![LogPosition {
                log: LOG,
                incarnation: Incarnation(life.parse().ok()?),
                next: number(next)?,
            }],
        })
    } else if let Some([time]) = parts("time {}", start) {
        Start::Time(AppendTime(time.parse().ok()?))
    } else {
        match start {
            "latest" => Start::Latest,
            "earliest" => Start::Earliest,
            _ => return None,
        }
    };
    Some((start, until))
}

fn read_until(words: &str) -> Option<Until> {
    if words == "now" {
        return Some(Until::Now);
    }
    let [before] = parts("number {}", words)?;
    number(before).map(Until::Sequence)
}

/// Messages that a subscription of a transcript is for: of a topic, or of everything.
fn wanted(topic: &str) -> Wanted {
    if topic == "everything" {
        let selector = Arc::new(Selector::All);
        return Wanted::Selected {
            log: None,
            selector,
        };
    }
    Wanted::Topic(TopicName::hash_of(NAMESPACE, topic))
}
