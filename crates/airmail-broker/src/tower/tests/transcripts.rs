//! Transcripts of the tower: its inputs and effects as text, in `tests/transcripts/tower`.
//!
//! A member is written `m1`. A call of the storage is written by its tag, `#1`, and a reader of the storage by
//! its number. The log is the only one of namespace 1. An attachment to its tail is written by its generation,
//! `(1)`.

use super::super::{Tower, TowerEffects, TowerInput};
use crate::catalog::{CatalogInput, Order, SystemAppend};
use crate::config::ShardConfig;
use crate::keys::BehindKey;
use crate::link::{Answer, Follow, FromTower, MemberId, Question, ToTower};
use crate::transcript::{self, LOG, NAMESPACE, extent, number};
use airmail_log::{
    Call, Capabilities, Completion, Dedup, GapWhy, LogSpec, ReaderId, Refusal, ScopeFilter, Tag,
};
use airmail_model::{AppendTime, Durability, Extent, LogId, Mono, Now, TopicName, Wall};
use std::time::Duration;

macro_rules! transcripts {
    ($($claim:ident: $name:literal,)*) => {
        $(
            #[test]
            fn $claim() {
                let mut driver = Driver::new();
                transcript::hold("tower", $name, |line| driver.step(line));
            }
        )*
    };
}

transcripts! {
    opening_and_appending_are_as_written: "appending",
    the_tail_is_given_as_written: "tail",
    what_is_asked_is_answered_as_written: "asking",
    a_member_catches_up_as_written: "catching_up",
    members_share_a_reader_as_written: "sharing",
    readers_take_turns_as_written: "turns",
    a_reader_that_fails_is_started_again_as_written: "failed_readers",
    a_log_that_cannot_be_opened_is_tried_again_as_written: "failed_open",
    a_deletion_ends_all_as_written: "deletion",
    log_0_is_served_for_the_catalog_as_written: "log_0",
}

/// A tower, and its clock.
pub(super) struct Driver {
    pub(super) tower: Tower,
    now: Now,
}

impl Driver {
    /// One catch-up reader, which gives 1,000 bytes at a time and has its turn after as many.
    pub(super) fn new() -> Driver {
        let config = ShardConfig {
            catch_up_readers: 1,
            catch_up_step_bytes: 1_000,
            catch_up_quantum_bytes: 1_000,
            catch_up_span: 2,
            tail_window_bytes: 4,
            ..ShardConfig::default()
        };
        let capabilities = Capabilities {
            strongest: Durability::Fsync,
            dedup: Dedup::AtAppend,
            many_writers: false,
            topic_index: true,
            past_end: false,
            seal: false,
            heal: false,
        };
        Driver {
            tower: Tower::new(config, capabilities),
            now: Now {
                mono: Mono(1),
                wall: Wall(100),
            },
        }
    }

    pub(super) fn step(&mut self, line: &str) -> Option<Vec<String>> {
        let input = self.read(line)?;
        let mut out = TowerEffects::default();
        self.tower.apply(self.now, input, &mut out);
        self.tower.finish_step(self.now, &mut out);
        self.tower.check();
        let mut lines: Vec<String> = Vec::new();
        lines.extend(out.storage.iter().map(show_call));
        let told = out.to_gateway.iter().map(show_message);
        lines.extend(told.map(|text| format!("to the gateway: {text}")));
        let told = out.to_catalog.iter().map(show_catalog);
        lines.extend(told.map(|text| format!("to the catalog: {text}")));
        Some(lines)
    }

    /// The input that a line means.
    fn read(&mut self, line: &str) -> Option<TowerInput> {
        let words: Vec<&str> = line.split(' ').collect();
        Some(match words[..] {
            ["catalog:", ref rest @ ..] => read_catalog(rest)?,
            ["gateway:", ref rest @ ..] => TowerInput::FromGateway(read_gateway(rest)?),
            ["storage:", ref rest @ ..] => TowerInput::Storage(read_storage(rest)?),
            [ms, "ms", "pass"] => {
                let time = Duration::from_millis(ms.parse().ok()?);
                self.now.mono = self.now.mono.plus(time);
                TowerInput::Timer
            }
            _ => return None,
        })
    }
}

fn read_catalog(words: &[&str]) -> Option<TowerInput> {
    let spec = LogSpec::default();
    Some(match *words {
        ["open", "the", "log"] => TowerInput::Order(Order::Open { log: LOG, spec }),
        ["delete", "namespace", "1"] => TowerInput::Order(Order::Delete {
            namespace: NAMESPACE,
            logs: 1,
        }),
        ["open", "log", "0"] => TowerInput::OpenSystem(spec),
        ["read", "log", "0", "from", from] => TowerInput::ReadSystem {
            from: number(from)?,
            credit_bytes: 1_000,
        },
        ["append", "to", "log", "0:", ref topics @ ..] => TowerInput::AppendSystem {
            of: SystemAppend::Command,
            batch: transcript::batch(topics),
        },
        ["try", "again", "later"] => TowerInput::RetrySystem,
        _ => return None,
    })
}

fn read_gateway(words: &[&str]) -> Option<ToTower> {
    let log = LOG;
    let generation = |word: &str| word.trim_matches(['(', ')']).parse().ok();
    Some(match *words {
        ["attach", tag, "from", from] => ToTower::Attach {
            log,
            generation: generation(tag)?,
            from: number(from)?,
        },
        ["detach", tag] => ToTower::Detach {
            log,
            generation: generation(tag)?,
        },
        ["read", topic, "for", member, "from", from, ref rest @ ..] => {
            let (until, not_before) = match *rest {
                [] => (None, None),
                ["until", until] => (Some(number(until)?), None),
                ["not", "before", "time", time] => (None, Some(AppendTime(time.parse().ok()?))),
                _ => return None,
            };
            ToTower::Follow(Follow {
                member: read_member(member)?,
                log,
                topic: TopicName::hash_of(NAMESPACE, topic),
                from: number(from)?,
                until,
                not_before,
                not_after: None,
            })
        }
        [member, "leaves"] => ToTower::Leave {
            member: read_member(member)?,
        },
        ["where", "does", "the", "log", "end,", "for", member] => ToTower::Ask {
            member: read_member(member)?,
            log,
            question: Question::End,
        },
        ["what", "does", "the", "log", "hold,", "for", member] => ToTower::Ask {
            member: read_member(member)?,
            log,
            question: Question::Bounds,
        },
        ["where", "does", "time", time, "begin,", "for", member] => ToTower::Ask {
            member: read_member(member)?,
            log,
            question: Question::Time(AppendTime(time.parse().ok()?)),
        },
        ["append", "publish", n, ref topics @ ..] => ToTower::Append {
            log,
            number: n.trim_end_matches(':').parse().ok()?,
            batch: transcript::batch(topics),
        },
        ["begin", "a", "new", "life"] => ToTower::Renew { log },
        _ => return None,
    })
}

fn read_storage(words: &[&str]) -> Option<Completion> {
    let tag = |word: &str| word.strip_prefix('#')?.parse().ok().map(Tag);
    let reader = |word: &str| word.parse().ok().map(ReaderId);
    let bounds = |first: &str, last: &str, life: &str| {
        let next = last.parse::<u64>().ok()? + 1;
        let (first, life) = (first.parse().ok()?, life.parse().ok()?);
        Some(transcript::bounds(first, next, life))
    };
    Some(match *words {
        [
            t,
            "is",
            "open",
            "with",
            first,
            "to",
            last,
            "in",
            "life",
            life,
        ] => Completion::Opened {
            t: tag(t)?,
            bounds: bounds(first, last, life)?,
        },
        [t, "holds", first, "to", last] => Completion::Bounds {
            t: tag(t)?,
            bounds: bounds(first, last, "7")?,
        },
        [t, "begins", "at", at] => Completion::Found {
            t: tag(t)?,
            at: number(at)?,
        },
        [t, "is", "appended", "at", at] => Completion::Appended {
            t: tag(t)?,
            extent: Extent::starting_at(number(at)?, 1),
            at: AppendTime(100),
            held: Durability::Fsync,
            duplicate: false,
            exact: true,
        },
        [t, "is", "refused"] => Completion::Refused {
            t: tag(t)?,
            why: Refusal::Io("broken".to_owned()),
        },
        [t, "is", "done"] => Completion::Done { t: tag(t)? },
        ["reader", r, "gives", first, ref topics @ ..] => Completion::Batch {
            r: reader(r)?,
            stored: transcript::stored(first.trim_end_matches(':').parse().ok()?, topics),
        },
        ["reader", r, "has", "lost", first, "to", last] => Completion::Gap {
            r: reader(r)?,
            extent: extent(first, last)?,
            why: GapWhy::Loss,
        },
        ["reader", r, "has", "nothing", "before", next] => Completion::Tail {
            r: reader(r)?,
            next: number(next)?,
        },
        ["reader", r, "fails"] => Completion::Ended {
            r: reader(r)?,
            why: Some(Refusal::Io("broken".to_owned())),
        },
        _ => return None,
    })
}

fn read_member(word: &str) -> Option<MemberId> {
    let n: u64 = word.strip_prefix('m')?.parse().ok()?;
    Some(MemberId {
        behind: BehindKey::new(usize::try_from(n).ok()?),
        ticket: n,
    })
}

fn show_member(member: MemberId) -> String {
    format!("m{}", member.ticket)
}

fn show_log(log: LogId) -> &'static str {
    if log == LogId::SYSTEM {
        "log 0"
    } else {
        "the log"
    }
}

fn show_call(call: &Call) -> String {
    match call {
        Call::Open { t, log, .. } => format!("#{}: open {}", t.0, show_log(*log)),
        Call::Append { t, log, batch, .. } => {
            let topics: Vec<&str> = batch.iter().map(|record| record.topic_name).collect();
            format!(
                "#{}: append to {}: {}",
                t.0,
                show_log(*log),
                topics.join(" ")
            )
        }
        Call::Read {
            r,
            log,
            from,
            scope,
            ..
        } => {
            let topics = match scope.filter {
                ScopeFilter::All => "all of",
                ScopeFilter::Topic(topic) if topic == TopicName::hash_of(NAMESPACE, "a") => "a of",
                ScopeFilter::Topic(_) => "one topic of",
            };
            let log = show_log(*log);
            format!("reader {}: read {topics} {log}, from {from} on", r.0)
        }
        Call::Credit { r, .. } => format!("reader {}: read on", r.0),
        Call::Stop { r } => format!("reader {}: stop", r.0),
        Call::FindTime { t, at, .. } => format!("#{}: where does time {} begin?", t.0, at.0),
        Call::Bounds { t, .. } => format!("#{}: what does the log hold?", t.0),
        Call::Renew { t, .. } => format!("#{}: begin a new life of the log", t.0),
        Call::Delete { t, .. } => format!("#{}: delete the log", t.0),
        other => format!("{other:?}"),
    }
}

fn show_message(message: &FromTower) -> String {
    match message {
        FromTower::Opened { incarnation, .. } => {
            format!("the log is open, in life {}", incarnation.0)
        }
        FromTower::Closed { .. } => "the log is closed".to_owned(),
        FromTower::Gone { .. } => "the log is gone".to_owned(),
        FromTower::Live {
            generation,
            previous,
            stored,
            ..
        } => {
            let records = transcript::records(&stored.batch, stored.base);
            format!("live ({generation}) after {previous}: {records}")
        }
        FromTower::LiveGap {
            generation, extent, ..
        } => format!(
            "live ({generation}) {} to {} are lost",
            extent.first, extent.last
        ),
        FromTower::Part { member, part } => format!(
            "for {}, before {}: {}",
            show_member(*member),
            part.end,
            transcript::delivered(&part.body, part.base)
        ),
        FromTower::PartGap { member, extent, .. } => format!(
            "for {}, {} to {} are lost",
            show_member(*member),
            extent.first,
            extent.last
        ),
        FromTower::Progress { member, next } => {
            format!("for {}, nothing before {next}", show_member(*member))
        }
        FromTower::Reached { member, next, end } => {
            let member = show_member(*member);
            format!("{member} has reached the tail at {next}, and the end is {end}")
        }
        FromTower::Ended { member, next } => {
            format!("{} has had all before {next}", show_member(*member))
        }
        FromTower::Answer {
            member,
            end,
            answer,
        } => format!(
            "for {}, {}the end is {end}",
            show_member(*member),
            show_answer(answer)
        ),
        FromTower::Appended { number, result, .. } => match result {
            Ok(ack) => format!("publish {number} is {}", ack.extent.first),
            Err(why) => format!("publish {number} is refused: {why}"),
        },
        FromTower::Renewed { result, .. } => match result {
            Ok(incarnation) => format!("the log begins life {}", incarnation.0),
            Err(why) => format!("the log begins no life: {why}"),
        },
        FromTower::Topics { .. } => "topics".to_owned(),
    }
}

fn show_answer(answer: &Answer) -> String {
    match answer {
        Answer::End => String::new(),
        Answer::Bounds(bounds) => {
            let (first, last) = (bounds.first, bounds.next.before());
            format!("the log holds {first} to {last}, ")
        }
        Answer::Time(at) => format!("the time begins at {at}, "),
        Answer::Refused(why) => format!("{why}, "),
    }
}

fn show_catalog(input: &CatalogInput) -> String {
    match input {
        CatalogInput::Opened(_) => "log 0 is open".to_owned(),
        CatalogInput::OpenRefused(why) => format!("log 0 is not open: {why}"),
        CatalogInput::Batch { stored, .. } => format!(
            "log 0 has {}",
            transcript::records(&stored.batch, stored.base)
        ),
        CatalogInput::Gap { extent, .. } => {
            format!("log 0 has lost {} to {}", extent.first, extent.last)
        }
        CatalogInput::Tail => "log 0 has no more".to_owned(),
        CatalogInput::ReaderEnded => "the reader of log 0 has failed".to_owned(),
        CatalogInput::Appended { extent, .. } => {
            format!("the command is log 0's {}", extent.first)
        }
        CatalogInput::AppendRefused { why, .. } => format!("the command is refused: {why}"),
        CatalogInput::LogSettled { namespace, result } => match result {
            Ok(()) => format!("a log of {namespace} is done"),
            Err(error) => format!("a log of {namespace} is not done: {error}"),
        },
        CatalogInput::Retry => "try again".to_owned(),
        CatalogInput::Start | CatalogInput::Command { .. } => format!("{input:?}"),
    }
}
