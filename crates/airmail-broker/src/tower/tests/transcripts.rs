//! Transcripts of the tower: its inputs and effects as text, in `tests/transcripts/tower`.
//!
//! A member has a number here. A call of the storage is written by its tag, `#1`, and a reader of the storage by
//! its number. The log is the first one of namespace 1, the other log the second.

use super::super::{Tower, TowerEffects, TowerInput};
use crate::catalog::{CatalogInput, Order, SystemAppend};
use crate::config::{ShardConfig, SweepSettings};
use crate::keys::BehindKey;
use crate::link::{Follow, MemberId, ToTower};
use crate::transcript::{
    CAPABILITIES, LOG, NAMESPACE, link, number, read_batch, read_bounds, read_extent,
    read_provisions, read_stored, show_batch, show_extent, show_provisions, show_records,
    show_topic,
};
use airmail_log::{
    AppendClock, Bounds, Call, Completion, GapWhy, LogLoss, LogSpec, Origin, ReaderId, Refusal,
    ScopeFilter, Soundness, Tag,
};
use airmail_model::{
    AppendTime, Durability, Extent, Incarnation, LogId, LogIndex, MapEpoch, Mono, Now, Sequence,
    Wall,
};
use airmail_testkit::transcript::parts;
use airmail_testkit::transcripts;
use std::time::Duration;

transcripts! {
    "tower",
    play,
    opening_and_appending_are_as_written: "appending",
    a_loss_is_told_as_written: "loss",
    the_tail_is_given_as_written: "tail",
    what_is_wanted_of_a_tail_is_as_written: "wants",
    what_is_asked_is_answered_as_written: "asking",
    a_member_catches_up_as_written: "catching_up",
    members_share_a_reader_as_written: "sharing",
    readers_take_turns_as_written: "turns",
    many_of_one_log_are_served_on_one_way_as_written: "sweeps",
    a_sweep_is_called_back_for_those_behind_it_as_written: "sweeps_called_back",
    a_reader_that_fails_is_started_again_as_written: "failed_readers",
    a_reader_that_gives_nothing_keeps_nobody_waiting_as_written: "silent_readers",
    a_log_that_cannot_be_opened_is_tried_again_as_written: "failed_open",
    a_deletion_ends_all_as_written: "deletion",
    a_log_is_lost_and_gained_as_written: "lost",
    log_0_is_served_for_the_catalog_as_written: "log_0",
    times_that_go_back_are_as_written: "times",
    provisions_are_made_and_withdrawn_as_written: "provisions",
    an_earlier_log_is_sealed_as_written: "sealing",
}

const OTHER: LogId = LogId {
    index: LogIndex(1),
    ..LOG
};

fn play() -> impl FnMut(&str) -> Option<Vec<String>> {
    let mut driver = Driver::new();
    move |line| {
        if line == "the tower begins anew" {
            driver = Driver::new();
            return Some(Vec::new());
        }
        driver.step(line)
    }
}

/// A tower, and its clock.
pub(super) struct Driver {
    pub(super) tower: Tower,
    now: Now,
}

impl Driver {
    /// One catch-up reader, or as many as a line of `settings` says; each gives 1,000 bytes at a time and has its turn
    /// after as many.
    pub(super) fn new() -> Driver {
        let config = ShardConfig {
            catch_up_readers: 1,
            catch_up_step_bytes: 1_000,
            catch_up_quantum_bytes: 1_000,
            catch_up_span: 2,
            catch_up_sweeps: SweepSettings {
                members: 3,
                near: 5,
                ..SweepSettings::default()
            },
            tail_window_bytes: 4,
            ..ShardConfig::default()
        };
        Driver {
            tower: Tower::new(config, CAPABILITIES),
            now: Now {
                mono: Mono(1),
                wall: Wall(100),
            },
        }
    }

    pub(super) fn step(&mut self, line: &str) -> Option<Vec<String>> {
        if let Some([readers]) = parts("settings: {} readers", line) {
            self.tower.config.catch_up_readers = readers.parse().ok()?;
            return Some(Vec::new());
        }
        if line == "many write to the log" {
            self.tower.capabilities.many_writers = true;
            return Some(Vec::new());
        }
        if let Some([micros]) = parts("append times go back by up to {}", line) {
            let most = Duration::from_micros(micros.parse().ok()?);
            self.tower.capabilities.clock = AppendClock::Within(most);
            return Some(Vec::new());
        }
        let input = self.read(line)?;
        let mut out = TowerEffects::default();
        self.tower.apply(self.now, input, &mut out);
        self.tower.finish_step(self.now, &mut out);
        self.tower.check();
        let calls = out.storage.iter().map(show_call);
        let calls = calls.map(|text| format!("to the storage: {text}"));
        let mut lines: Vec<String> = calls.collect();
        let name = |member: MemberId| member.ticket.to_string();
        for message in &out.to_gateway {
            let message = link::show_from_tower(message, &name);
            lines.push(format!("to the gateway: {message}"));
        }
        let told = out.to_catalog.iter().map(show_catalog);
        lines.extend(told.map(|text| format!("to the catalog: {text}")));
        Some(lines)
    }

    /// Reads an input.
    fn read(&mut self, line: &str) -> Option<TowerInput> {
        if let Some([rest]) = parts("catalog: {}", line) {
            read_catalog(rest)
        } else if let Some([name, topic, from]) = parts(
            "gateway: for member {}, read {} of the other log from {} on",
            line,
        ) {
            let line = format!("for member {name}, read {topic} from {from} on");
            let message = link::read_to_tower(&line, &find_member)?;
            let ToTower::Follow(follow) = message else {
                return None;
            };
            let follow = Follow {
                log: OTHER,
                ..follow
            };
            Some(TowerInput::FromGateway(ToTower::Follow(follow)))
        } else if let Some([rest]) = parts("gateway: {}", line) {
            let message = link::read_to_tower(rest, &find_member)?;
            Some(TowerInput::FromGateway(message))
        } else if let Some([rest]) = parts("storage: {}", line) {
            read_storage(rest).map(TowerInput::Storage)
        } else {
            let [ms] = parts("{} ms pass", line)?;
            let time = Duration::from_millis(ms.parse().ok()?);
            self.now.mono = self.now.mono.plus(time);
            Some(TowerInput::Timer)
        }
    }
}

fn find_member(name: &str) -> Option<MemberId> {
    let n: u64 = name.parse().ok()?;
    Some(MemberId {
        behind: BehindKey::new(usize::try_from(n).ok()?),
        ticket: n,
    })
}

fn read_catalog(line: &str) -> Option<TowerInput> {
    let spec = LogSpec::default();
    if let Some([topics]) = parts("append to log 0: {}", line) {
        return Some(TowerInput::AppendSystem {
            of: SystemAppend::Command,
            batch: read_batch(topics),
        });
    }
    if let Some([from]) = parts("read log 0 from {} on", line) {
        return Some(TowerInput::ReadSystem {
            from: number(from)?,
            credit_bytes: 1_000,
        });
    }
    if let Some([soundness]) = parts("open the log, {}", line) {
        let soundness = read_soundness(soundness)?;
        return Some(TowerInput::Order(Order::Open {
            log: LOG,
            spec: LogSpec { soundness, ..spec },
            seal: None,
        }));
    }
    Some(match line {
        "open the log" => TowerInput::Order(Order::Open {
            log: LOG,
            spec,
            seal: None,
        }),
        "open the log and seal it for map 2" => TowerInput::Order(Order::Open {
            log: LOG,
            spec,
            seal: Some(MapEpoch(2)),
        }),
        "provision for namespace 1 with its 1 log" => TowerInput::Provision {
            log: LOG,
            logs: 1,
            spec,
        },
        "withdraw X from namespace 1 with its 1 log" => TowerInput::Withdraw {
            log: LOG,
            logs: 1,
            origin: Origin {
                provisions: read_provisions("X")?,
                ..Origin::default()
            },
        },
        "open the other log" => TowerInput::Order(Order::Open {
            log: OTHER,
            spec,
            seal: None,
        }),
        "delete namespace 1 with its 1 log" => TowerInput::Order(Order::Delete {
            namespace: NAMESPACE,
            first: LogIndex(0),
            logs: 1,
            has_high: false,
            as_of: Sequence(2),
            origin: Origin::default(),
        }),
        "open log 0" => TowerInput::OpenSystem(spec),
        "try again later" => TowerInput::RetrySystem,
        _ => return None,
    })
}

/// Reads what log 0 says of losses.
fn read_soundness(line: &str) -> Option<Soundness> {
    if line == "stopped" {
        return Some(Soundness {
            is_suspended: true,
            ..Soundness::default()
        });
    }
    let [at] = parts("cut at {}", line)?;
    Some(Soundness {
        cuts: 1,
        cut_at: number(at)?,
        is_suspended: false,
    })
}

fn read_storage(line: &str) -> Option<Completion> {
    if let Some([reader, edit, at]) = parts("reader {}, edit {} is in effect from {} on", line) {
        return Some(Completion::Effective {
            r: ReaderId(reader.parse().ok()?),
            edit: edit.parse().ok()?,
            at: Some(number(at)?),
        });
    }
    if let Some([reader, edit]) = parts("reader {}, there is no room for edit {}", line) {
        return Some(Completion::Effective {
            r: ReaderId(reader.parse().ok()?),
            edit: edit.parse().ok()?,
            at: None,
        });
    }
    if let Some([reader]) = parts("reader {}, what is wanted is lost", line) {
        let r = ReaderId(reader.parse().ok()?);
        return Some(Completion::WantsLost { r });
    }
    if let Some([reader, rest]) = parts("reader {} {}", line) {
        return read_reader(ReaderId(reader.parse().ok()?), rest);
    }
    if let Some(unasked) = read_unasked(line) {
        return Some(unasked);
    }
    let [tag, rest] = parts("#{}, {}", line)?;
    let t = Tag(tag.parse().ok()?);
    if let Some([bounds]) = parts("the log is open with {}", rest) {
        let bounds = read_bounds(bounds)?;
        Some(Completion::Opened { t, bounds })
    } else if let Some([held]) = parts("the log holds {}", rest) {
        let (held, is_sealed) = match held.strip_suffix(", for ever") {
            Some(held) => (held, true),
            None => (held, false),
        };
        let bounds = Bounds {
            sealed: is_sealed.then_some(MapEpoch(2)),
            ..read_bounds(&format!("{held}, in life 7"))?
        };
        Some(Completion::Bounds { t, bounds })
    } else if let Some([provisions]) = parts("provisions are {}", rest) {
        let provisions = Box::new(read_provisions(provisions)?);
        Some(Completion::Provisioned { t, provisions })
    } else if let Some([at]) = parts("the time begins at {}", rest) {
        let at = number(at)?;
        Some(Completion::Found { t, at })
    } else if let Some([numbers]) = parts("stored as {}", rest) {
        Some(Completion::Appended {
            t,
            extent: read_extent(numbers)?,
            at: AppendTime(100),
            held: Durability::FSYNC,
            duplicate: false,
            exact: true,
        })
    } else if let Some([why]) = parts("the log is suspended: {}", rest) {
        let why = Refusal::Suspended(why.to_owned());
        Some(Completion::Refused { t, why })
    } else if let Some([why]) = parts("storage failed: {}", rest) {
        let why = Refusal::Io(why.to_owned());
        Some(Completion::Refused { t, why })
    } else {
        (rest == "done").then_some(Completion::Done { t })
    }
}

/// Reads what the storage tells by itself.
fn read_unasked(line: &str) -> Option<Completion> {
    if line == "the log is lost" {
        return Some(Completion::Lost { log: LOG });
    }
    if let Some([bounds]) = parts("the log is gained with {}", line) {
        let bounds = read_bounds(bounds)?;
        return Some(Completion::Gained { log: LOG, bounds });
    }
    let [lost] = parts("the log has lost {} of life 7", line)?;
    let lost = read_extent(lost)?;
    let loss = LogLoss {
        life: Incarnation(7),
        next_life: Incarnation(8),
        at: Some(lost.first),
        end: lost.next(),
    };
    let loss = Box::new(loss);
    Some(Completion::Suspended { log: LOG, loss })
}

fn read_reader(r: ReaderId, line: &str) -> Option<Completion> {
    if let Some([records]) = parts("gives {}", line) {
        let stored = read_stored(records)?;
        Some(Completion::Batch { r, stored })
    } else if let Some([lost]) = parts("has lost {}", line) {
        Some(Completion::Gap {
            r,
            extent: read_extent(lost)?,
            why: GapWhy::Loss,
        })
    } else if let Some([last]) = parts("has given all up to {}, the last for ever", line) {
        Some(Completion::Sealed {
            r,
            last: number(last)?,
            next: MapEpoch(2),
        })
    } else if let Some([next]) = parts("has given all before {}, up to the tail", line) {
        let next = number(next)?;
        Some(Completion::Tail { r, next })
    } else if let Some([why]) = parts("has ended, the log is suspended: {}", line) {
        let why = Some(Refusal::Suspended(why.to_owned()));
        Some(Completion::Ended { r, why })
    } else {
        let [why] = parts("has ended, storage failed: {}", line)?;
        let why = Some(Refusal::Io(why.to_owned()));
        Some(Completion::Ended { r, why })
    }
}

fn show_log(log: LogId) -> &'static str {
    if log == LogId::SYSTEM {
        "log 0"
    } else if log == OTHER {
        "the other log"
    } else {
        "the log"
    }
}

fn show_call(call: &Call) -> String {
    match call {
        Call::Open { t, log, .. } => format!("#{}, open {}", t.0, show_log(*log)),
        Call::Append { t, log, batch, .. } => {
            let topics = show_batch(batch);
            format!("#{}, append to {}: {topics}", t.0, show_log(*log))
        }
        Call::Read {
            r,
            log,
            from,
            scope,
            ..
        } => {
            let topics = match scope.filter {
                ScopeFilter::All => "all",
                ScopeFilter::Topic(topic) => show_topic(topic),
                ScopeFilter::Wanted => "what is wanted",
            };
            let log = show_log(*log);
            format!("reader {}, read {topics} of {log} from {from} on", r.0)
        }
        Call::Credit { r, .. } => format!("reader {}, read on", r.0),
        Call::Want { r, edit, topics } => {
            let topics: Vec<&str> = topics.add.iter().map(|topic| show_topic(*topic)).collect();
            format!("reader {}, edit {edit}: add {}", r.0, topics.join(" "))
        }
        Call::Stop { r } => format!("reader {}, stop", r.0),
        Call::FindTime { t, at, .. } => format!("#{}, where does time {} begin?", t.0, at.0),
        Call::Bounds { t, .. } => format!("#{}, what does the log hold?", t.0),
        Call::Renew { t, .. } => format!("#{}, begin a new life of the log", t.0),
        Call::Delete { t, .. } => format!("#{}, delete the log", t.0),
        Call::Seal { t, next, .. } => format!("#{}, seal the log for map {next}", t.0),
        Call::Provision { t, .. } => format!("#{}, provision for the log", t.0),
        Call::Withdraw { t, origin, .. } => {
            let provisions = show_provisions(&origin.provisions);
            format!("#{}, withdraw {provisions}", t.0)
        }
        other => format!("{other:?}"),
    }
}

fn show_catalog(input: &CatalogInput) -> String {
    match input {
        CatalogInput::Opened(bounds) => {
            let (first, last) = (bounds.first, bounds.next.before());
            let held = show_extent(Extent { first, last });
            format!("log 0 is open with {held}")
        }
        CatalogInput::OpenRefused(why) => format!("log 0 cannot be opened: {why}"),
        CatalogInput::Batch { stored, .. } => {
            format!("log 0 gives {}", show_records(&stored.batch, stored.base))
        }
        CatalogInput::Gap { extent, .. } => format!("log 0 has lost {}", show_extent(*extent)),
        CatalogInput::Tail => "log 0 has no more".to_owned(),
        CatalogInput::ReaderEnded => "the reader of log 0 has ended".to_owned(),
        CatalogInput::Appended { extent, .. } => {
            format!("the command is stored as {}", show_extent(*extent))
        }
        CatalogInput::AppendRefused { why, .. } => format!("the command is refused: {why}"),
        CatalogInput::LogSettled { namespace, result } => match result {
            Ok(()) => format!("a log of namespace {namespace} is done"),
            Err(error) => format!("a log of namespace {namespace} is not done: {error}"),
        },
        CatalogInput::Suspended { loss, .. } => {
            format!("the log has lost {:?} to {}", loss.at, loss.end.before())
        }
        CatalogInput::HighWanted(namespace) => {
            format!("namespace {namespace} is to have lane high")
        }
        CatalogInput::Upkeep => "have storages keep what log 0 names".to_owned(),
        CatalogInput::Emptied { end, .. } => format!("the log is empty, and ends before {end}"),
        CatalogInput::Retry => "try again".to_owned(),
        CatalogInput::Provisioned(Ok(provisions)) => {
            format!("provisions are {}", show_provisions(provisions))
        }
        CatalogInput::Provisioned(Err(why)) => format!("provisions are refused: {why}"),
        CatalogInput::Start | CatalogInput::Command { .. } => format!("{input:?}"),
    }
}
