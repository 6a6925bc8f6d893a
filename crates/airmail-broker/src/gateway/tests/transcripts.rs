//! Transcripts of the gateway: its inputs and effects as text, in `tests/transcripts/gateway`.
//!
//! A member is written `1.0#3`: subscription 0 of client 1, in the attempt with ticket 3. The log is the only
//! one of namespace 1. An attachment to its tail is written by its generation, `(1)`.

use super::super::{Gateway, GatewayEffects, GatewayInput};
use crate::access::{AllowAll, Principal};
use crate::catalog::{Catalog, CommandRefusal};
use crate::config::ShardConfig;
use crate::input::{ClientInput, Command, CommandId, SessionId};
use crate::keys::BehindKey;
use crate::link::{Answer, Follow, FromTower, MemberId, Part, Question, ToTower};
use crate::transcript::{self, LOG, NAMESPACE, extent, number};
use airmail_log::{GapWhy, Refusal};
use airmail_model::frame::{
    Ack, Channel, Delivered, Generation, Reply, Request, RequestId, Start, State, Subscribe,
    SubscriptionId, Until,
};
use airmail_model::position::LogPosition;
use airmail_model::{
    AppendTime, Durability, Extent, Incarnation, MapEpoch, Mono, Namespace, NamespaceSpec, Now,
    Position, Retention, Sequence, TopicName, Wall,
};
use std::sync::Arc;
use std::time::Duration;

macro_rules! transcripts {
    ($($claim:ident: $name:literal,)*) => {
        $(
            #[test]
            fn $claim() {
                let mut driver = Driver::new();
                transcript::hold("gateway", $name, |line| driver.step(line));
            }
        )*
    };
}

transcripts! {
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
}

/// A gateway, and its clock.
pub(super) struct Driver {
    pub(super) gateway: Gateway,
    now: Now,
    requests: u64,
    generations: u32,
}

impl Driver {
    pub(super) fn new() -> Driver {
        let config = ShardConfig {
            retry_delay: Duration::ZERO,
            ..ShardConfig::default()
        };
        let allow = || Box::new(AllowAll);
        Driver {
            gateway: Gateway::new(config, allow(), allow()),
            now: Now {
                mono: Mono(1),
                wall: Wall(100),
            },
            requests: 0,
            generations: 0,
        }
    }

    pub(super) fn step(&mut self, line: &str) -> Option<Vec<String>> {
        let input = self.read(line)?;
        let mut out = GatewayEffects::default();
        self.gateway.apply(self.now, input, &mut out);
        self.gateway.finish_step(self.now, &mut out);
        self.gateway.check();
        let mut lines: Vec<String> = Vec::new();
        for (session, reply) in &out.replies {
            lines.push(format!("client {}: {}", session.0, show_reply(reply)));
        }
        for (id, result) in &out.outcomes {
            let result = match result {
                Ok(outcome) => format!("{outcome:?}"),
                Err(error) => error.to_string(),
            };
            lines.push(format!("call {}: {result}", id.0));
        }
        for message in &out.to_tower {
            lines.push(format!("to the tower: {}", self.show_message(message)));
        }
        for (id, command) in &out.commands {
            let command = match command {
                Command::CreateNamespace { name, .. } => format!("create {name}"),
                other => format!("{other:?}"),
            };
            lines.push(format!("to the catalog: call {}, {command}", id.0));
        }
        Some(lines)
    }

    /// The input that a line means.
    fn read(&mut self, line: &str) -> Option<GatewayInput> {
        let words: Vec<&str> = line.split(' ').collect();
        Some(match words[..] {
            ["catalog:", ref rest @ ..] => read_catalog(rest)?,
            ["tower:", ref rest @ ..] => GatewayInput::FromTower(self.read_tower(rest)?),
            ["call", id, "to", "create", name] => GatewayInput::Client(ClientInput::Command {
                id: CommandId(id.parse().ok()?),
                principal: Principal::default(),
                command: Command::CreateNamespace {
                    name: name.to_owned(),
                    logs: 1,
                    retention: Retention::default(),
                    durability: None,
                },
            }),
            [ms, "ms", "pass"] => {
                let time = Duration::from_millis(ms.parse().ok()?);
                self.now.mono = self.now.mono.plus(time);
                GatewayInput::Timer
            }
            ["client", id, ref rest @ ..] => {
                let session = SessionId(id.parse().ok()?);
                GatewayInput::Client(self.read_client(session, rest)?)
            }
            _ => return None,
        })
    }

    fn read_client(&mut self, session: SessionId, words: &[&str]) -> Option<ClientInput> {
        let request = match *words {
            ["opens", "with", credit, "bytes", "of", "credit"] => {
                return Some(ClientInput::Opened {
                    session,
                    principal: Principal::default(),
                    credit: credit.parse().ok()?,
                });
            }
            ["closes"] => return Some(ClientInput::Closed { session }),
            ["publishes", ref topics @ ..] => {
                self.requests += 1;
                Request::Publish {
                    request: RequestId(self.requests),
                    batch: transcript::batch(topics),
                }
            }
            ["gives", bytes, "bytes", "of", "credit"] => Request::Credit {
                bytes: bytes.parse().ok()?,
            },
            ["removes", id] => Request::Remove {
                subscription: SubscriptionId(id.parse().ok()?),
            },
            ["adds", id, "on", topic, "from", ref rest @ ..] => {
                self.generations += 1;
                let (start, rest) = read_start(rest)?;
                Request::Add(Subscribe {
                    subscription: SubscriptionId(id.parse().ok()?),
                    generation: Generation(self.generations),
                    namespace: NAMESPACE,
                    topic: TopicName::hash_of(NAMESPACE, topic),
                    start,
                    until: read_until(rest)?,
                })
            }
            _ => return None,
        };
        Some(ClientInput::Request { session, request })
    }

    fn read_tower(&self, words: &[&str]) -> Option<FromTower> {
        let log = LOG;
        let generation = |word: &str| word.trim_matches(['(', ')', ':']).parse().ok();
        Some(match *words {
            ["the", "log", "is", "open,", "in", "life", life] => FromTower::Opened {
                log,
                incarnation: Incarnation(life.parse().ok()?),
            },
            ["the", "log", "is", "closed"] => FromTower::Closed { log },
            ["the", "log", "is", "gone"] => FromTower::Gone { log },
            ["the", "log", "begins", "life", life] => FromTower::Renewed {
                log,
                result: Ok(Incarnation(life.parse().ok()?)),
            },
            ["publish", n, "is", at] => FromTower::Appended {
                log,
                number: n.parse().ok()?,
                result: Ok(ack(at.parse().ok()?)),
            },
            ["publish", n, "is", "refused", "for", "now"] => FromTower::Appended {
                log,
                number: n.parse().ok()?,
                result: Err(Refusal::Io("no room".to_owned())),
            },
            ["live", tag, "after", previous, "at", first, ref topics @ ..] => FromTower::Live {
                log,
                generation: generation(tag)?,
                previous: number(previous)?,
                stored: transcript::stored(first.trim_end_matches(':').parse().ok()?, topics),
            },
            ["live", tag, first, "to", last, "are", "lost"] => FromTower::LiveGap {
                log,
                generation: generation(tag)?,
                extent: extent(first, last)?,
                why: GapWhy::Loss,
            },
            ["for", member, ref rest @ ..] => {
                let member = self.read_member(member.trim_end_matches(':'))?;
                read_for(member, rest)?
            }
            _ => return None,
        })
    }

    /// The member that `1.0#3` means, also if it has left.
    fn read_member(&self, word: &str) -> Option<MemberId> {
        let (name, ticket) = word.split_once('#')?;
        let mut all = self.gateway.behind.iter();
        let found = all.find(|(key, _)| self.name(*key) == name);
        Some(MemberId {
            behind: found.map_or(BehindKey::new(0), |(key, _)| key),
            ticket: ticket.parse().ok()?,
        })
    }

    fn name(&self, key: BehindKey) -> String {
        let sub = &self.gateway.subs[self.gateway.behind[key].sub];
        let session = self.gateway.sessions[sub.session].id;
        format!("{}.{}", session.0, sub.id.0)
    }

    fn show_member(&self, member: MemberId) -> String {
        match self.gateway.behind.find(member) {
            Some(key) => format!("{}#{}", self.name(key), member.ticket),
            None => format!("attempt {}", member.ticket),
        }
    }

    fn show_message(&self, message: &ToTower) -> String {
        match message {
            ToTower::Attach {
                generation, from, ..
            } => format!("attach to the log's tail, from {from} on ({generation})"),
            ToTower::Detach { generation, .. } => {
                format!("detach from the log's tail ({generation})")
            }
            ToTower::Follow(follow) => self.show_follow(follow),
            ToTower::Leave { member } => format!("{} leaves", self.show_member(*member)),
            ToTower::Ask {
                member, question, ..
            } => {
                let member = self.show_member(*member);
                match question {
                    Question::End => format!("where does the log end, for {member}?"),
                    Question::Bounds => format!("what does the log hold, for {member}?"),
                    Question::Time(time) => {
                        format!("where does time {} begin, for {member}?", time.0)
                    }
                }
            }
            ToTower::Append { number, batch, .. } => {
                let topics: Vec<&str> = batch.iter().map(|record| record.topic_name).collect();
                format!("append publish {number}: {}", topics.join(" "))
            }
            ToTower::Renew { .. } => "begin a new life of the log".to_owned(),
            ToTower::Topics { .. } => "list topics of the log".to_owned(),
            ToTower::Moved { bytes } => format!("live traffic has moved {bytes} bytes"),
        }
    }

    fn show_follow(&self, follow: &Follow) -> String {
        let mut text = format!(
            "read for {}, from {} on",
            self.show_member(follow.member),
            follow.from
        );
        if let Some(until) = follow.until {
            text += &format!(", before {until}");
        }
        if let Some(time) = follow.not_before {
            text += &format!(", not before time {}", time.0);
        }
        text
    }
}

fn ack(at: u64) -> Ack {
    Ack {
        extent: Extent::starting_at(Sequence(at), 1),
        appended: AppendTime(100),
        held: Durability::Fsync,
        copies: 1,
        duplicate: false,
        exact: true,
    }
}

fn read_catalog(words: &[&str]) -> Option<GatewayInput> {
    Some(match *words {
        ["nothing", "is", "known"] => GatewayInput::Namespaces {
            catalog: Arc::default(),
            is_ready: false,
        },
        ["there", "is", "no", "namespace"] => GatewayInput::Namespaces {
            catalog: Arc::default(),
            is_ready: true,
        },
        ["there", "is", "namespace", "1"] => {
            let mut catalog = Catalog::default();
            catalog.put(Namespace {
                id: NAMESPACE,
                name: "default".to_owned(),
                spec: NamespaceSpec {
                    logs: 1,
                    retention: Retention::default(),
                    durability: Durability::Fsync,
                },
                version: 1,
                epoch: MapEpoch(1),
            });
            GatewayInput::Namespaces {
                catalog: Arc::new(catalog),
                is_ready: true,
            }
        }
        ["call", id, "is", "one", "too", "many"] => GatewayInput::Answered {
            id: CommandId(id.parse().ok()?),
            result: Err(CommandRefusal::QueueFull { commands_max: 2 }),
        },
        _ => return None,
    })
}

fn read_for(member: MemberId, words: &[&str]) -> Option<FromTower> {
    let answer = |end: &str, answer| {
        let end = number(end)?;
        Some(FromTower::Answer {
            member,
            end,
            answer,
        })
    };
    match *words {
        ["the", "end", "is", end] => answer(end, Answer::End),
        [
            "the",
            "log",
            "holds",
            first,
            "to",
            last,
            "and",
            "ends",
            "at",
            end,
        ] => {
            let bounds = transcript::bounds(first.parse().ok()?, last.parse::<u64>().ok()? + 1, 7);
            answer(end, Answer::Bounds(bounds))
        }
        [
            "the",
            "storage",
            "has",
            "failed,",
            "and",
            "the",
            "end",
            "is",
            end,
        ] => {
            let why = Refusal::Io("broken".to_owned());
            answer(end, Answer::Refused(why))
        }
        ["a", "part", "at", at, topic] => {
            let stored = transcript::stored(at.trim_end_matches(':').parse().ok()?, &[topic]);
            let part = Part {
                first: stored.extent.first,
                end: stored.extent.next(),
                base: stored.base,
                appended: stored.appended,
                body: Delivered::Whole(stored.batch),
            };
            Some(FromTower::Part { member, part })
        }
        [first, "to", last, "are", "lost"] => Some(FromTower::PartGap {
            member,
            extent: extent(first, last)?,
            why: GapWhy::Loss,
        }),
        ["nothing", "before", next] => Some(FromTower::Progress {
            member,
            next: number(next)?,
        }),
        ["the", "tail", "is", "reached", "at", next] => Some(FromTower::Reached {
            member,
            next: number(next)?,
            end: number(next)?,
        }),
        ["all", "is", "given", "before", next] => Some(FromTower::Ended {
            member,
            next: number(next)?,
        }),
        _ => None,
    }
}

fn read_start<'a>(words: &'a [&'a str]) -> Option<(Start, &'a [&'a str])> {
    Some(match words {
        ["latest", rest @ ..] => (Start::Latest, rest),
        ["earliest", rest @ ..] => (Start::Earliest, rest),
        ["number", at, rest @ ..] => (Start::Sequence(number(at)?), rest),
        ["time", at, rest @ ..] => (Start::Time(AppendTime(at.parse().ok()?)), rest),
        ["position", next, "of", "life", life, rest @ ..] => {
            let position = Position {
                namespace: NAMESPACE,
                epoch: MapEpoch(1),
                logs: vec![LogPosition {
                    log: LOG,
                    incarnation: Incarnation(life.parse().ok()?),
                    next: number(next)?,
                }],
            };
            (Start::Position(position), rest)
        }
        _ => return None,
    })
}

fn read_until(words: &[&str]) -> Option<Option<Until>> {
    Some(match *words {
        [] => None,
        ["until", "now"] => Some(Until::Now),
        ["until", "number", before] => Some(Until::Sequence(number(before)?)),
        _ => return None,
    })
}

fn show_reply(reply: &Reply) -> String {
    match reply {
        Reply::Acked { request, result } => match result {
            Ok(ack) => format!("publish {} is number {}", request.0, ack.extent.first),
            Err(refused) => format!("publish {} is refused: {}", request.0, refused.error),
        },
        Reply::Delivery(delivery) => format!(
            "{}after {} to {}: {}",
            show_channel(delivery.channel),
            delivery.previous,
            delivery.last,
            transcript::delivered(&delivery.body, delivery.base)
        ),
        Reply::Gap {
            channel,
            previous,
            last,
            why,
            ..
        } => format!(
            "{}after {previous} to {last}: nothing ({})",
            show_channel(*channel),
            format!("{why:?}").to_lowercase()
        ),
        Reply::Mark { previous, next, .. } => {
            format!("after {previous} to before {next}: nothing so far")
        }
        Reply::Status {
            subscription,
            state,
            ..
        } => format!("{} is {}", subscription.0, show_state(state)),
    }
}

fn show_channel(channel: Channel) -> String {
    match channel {
        Channel::Live => String::new(),
        Channel::Detached(id, _) => format!("for {}, ", id.0),
    }
}

fn show_state(state: &State) -> String {
    match state {
        State::Live {
            incarnation, next, ..
        } => format!("live from {next} on, in life {}", incarnation.0),
        State::Detached {
            incarnation,
            next,
            resumed,
            ..
        } => {
            let resumed = if *resumed { ", and goes on" } else { "" };
            format!("detached at {next}, in life {}{resumed}", incarnation.0)
        }
        State::Complete { next } => format!("complete before {next}"),
        State::Removed => "removed".to_owned(),
        State::Failed(error) => format!("ended: {error}"),
    }
}
