//! Transcripts of the catalog: its inputs and effects as text, in `tests/transcripts/catalog`.
//!
//! The tower has log 0 and the logs of namespaces, and the gateway serves what namespaces there are. In log 0 a
//! namespace is known by its id.

mod shown;

use super::provisioned::create_of;
use super::versions::payload;
use super::*;
use crate::transcript::{read_extent, read_provisions, show_extent, show_provisions};
use airmail_log::{LogLoss, Soundness};
use airmail_model::{Extent, Incarnation, LogId};
use airmail_testkit::transcript::parts;
use airmail_testkit::transcripts;
use shown::show;
use std::time::Duration;

transcripts! {
    "catalog",
    play,
    a_first_start_is_as_written: "first_start",
    a_restart_is_as_written: "restart",
    commands_in_line_are_as_written: "commands_in_line",
    a_void_command_is_as_written: "void_command",
    a_torn_log_0_is_as_written: "torn",
    a_command_that_is_lost_is_answered_as_written: "lost_command",
    a_reader_that_fails_is_started_again_as_written: "failed_reader",
    a_log_that_cannot_be_opened_is_told_as_written: "unopened_log",
    a_first_start_that_cannot_write_is_as_written: "failed_first_start",
    checks_before_writing_are_as_written: "refused_commands",
    a_namespace_that_is_provisioned_for_is_as_written: "provisions",
    provisions_that_are_withdrawn_are_as_written: "withdrawn_provisions",
    a_first_start_that_is_provisioned_for_is_as_written: "provisioned_first_start",
    a_start_after_provisions_is_as_written: "provisioned_restart",
    a_move_is_as_written: "move",
    a_loss_that_is_accepted_is_as_written: "accepted_loss",
    a_namespace_that_is_made_anew_is_as_written: "recreated",
}

fn play() -> impl FnMut(&str) -> Option<Vec<String>> {
    let mut driver = Driver::new();
    move |line| {
        if line == "the storage provisions" {
            driver.core.config.provisions = true;
            return Some(Vec::new());
        }
        if let Some([name]) = parts("there is a storage {}", line) {
            let name = StorageName::new(name)?;
            driver.core.config.storages.insert(name, in_memory_of_all());
            return Some(Vec::new());
        }
        if line == "the node starts again" {
            let provisions = driver.core.config.provisions;
            driver = Driver::new();
            driver.core.config.provisions = provisions;
            return Some(Vec::new());
        }
        tell(&mut driver, line)
    }
}

/// Takes an input, and tells what came of it.
fn tell(driver: &mut Driver, line: &str) -> Option<Vec<String>> {
    let before = (driver.core.phase, driver.core.failure.clone());
    driver.step(read(line)?);
    let core = &driver.core;
    let effects = driver.effects.iter();
    let mut lines: Vec<String> = effects.map(|effect| show(effect, core)).collect();
    if core.phase != before.0 {
        let phase = format!("{:?}", core.phase).to_lowercase();
        lines.push(format!("the catalog is {phase}"));
    }
    match core.failure() {
        same if same == before.1.as_ref() => {}
        Some(error) => lines.push(format!("the catalog reports {error}")),
        None => lines.push("the catalog reports no failure any more".to_owned()),
    }
    Some(lines)
}

/// Reads an input.
fn read(line: &str) -> Option<CatalogInput> {
    if line == "start" {
        Some(CatalogInput::Start)
    } else if let Some([id, command]) = parts("client {} asks to {}", line) {
        Some(CatalogInput::Command {
            id: CommandId(id.parse().ok()?),
            command: read_command(command)?,
        })
    } else {
        let [rest] = parts("tower: {}", line)?;
        read_tower(rest)
    }
}

fn read_tower(line: &str) -> Option<CatalogInput> {
    let io = |why: &str| Refusal::Io(why.to_owned());
    if let Some([at, change]) = parts("log 0 gives {}: {}", line) {
        Some(given(at.parse().ok()?, read_batch(change)?))
    } else if let Some([held]) = parts("log 0 is open with {}", line) {
        let held = read_extent(held)?;
        Some(CatalogInput::Opened(bounds(held.first.0, held.next().0)))
    } else if let Some([why]) = parts("log 0 cannot be opened: storage failed: {}", line) {
        Some(CatalogInput::OpenRefused(io(why)))
    } else if let Some([lost]) = parts("log 0 has lost {}", line) {
        Some(CatalogInput::Gap {
            extent: read_extent(lost)?,
            why: GapWhy::Loss,
        })
    } else if let Some([provisions]) = parts("provisions are {}", line) {
        Some(CatalogInput::Provisioned(match provisions {
            "refused: busy" => Err(Refusal::Busy {
                retry_after: Duration::from_millis(200),
            }),
            provisions => Ok(read_provisions(provisions)?),
        }))
    } else if let Some([log, end]) = parts("log {} is empty, and ends before {}", line) {
        Some(CatalogInput::Emptied {
            log: log_of(log.strip_prefix("1/normal/")?)?,
            end: Sequence(end.parse().ok()?),
        })
    } else if let Some([index, loss]) = parts("log 1/normal/{} has lost {}", line) {
        Some(CatalogInput::Suspended {
            log: log_of(index)?,
            loss: read_loss(loss)?,
        })
    } else if line == "it is not known whether the command is stored" {
        Some(CatalogInput::AppendRefused {
            of: SystemAppend::Command,
            why: Refusal::OutcomeUnknown,
        })
    } else if let Some([of, numbers]) = parts("the {} is stored as {}", line) {
        Some(CatalogInput::Appended {
            of: read_append(of)?,
            extent: read_extent(numbers)?,
        })
    } else if let Some([of, why]) = parts("the {} is refused: storage failed: {}", line) {
        Some(CatalogInput::AppendRefused {
            of: read_append(of)?,
            why: io(why),
        })
    } else if let Some([id, done]) = parts("a log of namespace {} is {}", line) {
        let failed = Error::new(ErrorCode::StorageFailed).field("storage");
        Some(CatalogInput::LogSettled {
            namespace: NamespaceId(id.parse().ok()?),
            result: match done {
                "done" => Ok(()),
                "not done" => Err(failed),
                _ => return None,
            },
        })
    } else {
        Some(match line {
            "log 0 is open and empty" => CatalogInput::Opened(bounds(1, 1)),
            "log 0 has no more" => CatalogInput::Tail,
            "the reader of log 0 has ended" => CatalogInput::ReaderEnded,
            "try again" => CatalogInput::Retry,
            _ => return None,
        })
    }
}

/// A log of namespace 1.
fn log_of(index: &str) -> Option<LogId> {
    Some(LogId {
        namespace: NamespaceId(1),
        index: LogIndex(index.parse().ok()?),
        ..LogId::SYSTEM
    })
}

/// Reads a loss: `5 to 8 of life 7, which 9 would follow`, or `all of life 7, which ended before 9`.
fn read_loss(loss: &str) -> Option<LogLoss> {
    if let Some([life, end]) = parts("all of life {}, which ended before {}", loss) {
        let life = Incarnation(life.parse().ok()?);
        return Some(LogLoss {
            life,
            next_life: life,
            at: None,
            end: Sequence(end.parse().ok()?),
        });
    }
    let [lost, life, next] = parts("{} of life {}, which {} would follow", loss)?;
    let lost = read_extent(lost)?;
    Some(LogLoss {
        life: Incarnation(life.parse().ok()?),
        next_life: Incarnation(next.parse().ok()?),
        at: Some(lost.first),
        end: lost.next(),
    })
}

/// A further storage that can be asked for everything that the first one can.
fn in_memory_of_all() -> StorageTraits {
    StorageTraits {
        strongest: Durability::FSYNC,
        ..in_memory()
    }
}

fn read_append(word: &str) -> Option<SystemAppend> {
    match word {
        "command" => Some(SystemAppend::Command),
        "purge" | "note" => Some(SystemAppend::Note),
        _ => None,
    }
}

fn read_command(line: &str) -> Option<Command> {
    if let Some([name]) = parts("create {}", line) {
        Some(create_command(name))
    } else if let Some([name]) = parts("delete {}", line) {
        Some(delete_command(name))
    } else if let Some([index]) = parts("accept the loss of 1/normal/{}", line) {
        let log = log_of(index)?;
        Some(Command::AcceptLoss { log })
    } else if let Some([name]) = parts("make {} anew", line) {
        Some(Command::RecreateNamespace {
            name: name.into(),
            based_on: None,
        })
    } else if let Some([name, storage]) = parts("move {} to {}", line) {
        Some(Command::MoveNamespace {
            name: name.into(),
            storage: StorageName::new(storage)?,
            based_on: None,
        })
    } else {
        let [name, time_ms] = parts("keep messages of {} for {} ms", line)?;
        Some(update_command(name, time_ms.parse().ok()?))
    }
}

fn read_batch(line: &str) -> Option<Checked<Batch>> {
    if line == "something that cannot be read" {
        return Some(payload(&[9]));
    }
    let change = if let Some(change) = read_move(line) {
        change
    } else if let Some([change, provisions]) = parts("{}, of provisions {}", line) {
        let [name, id, logs] = parts("create {} as namespace {} with {}", change)?;
        create_of(
            id.parse().ok()?,
            name,
            read_logs(logs)?,
            read_provisions(provisions)?,
        )
    } else if let Some([name, id, logs]) = parts("create {} as namespace {} with {}", line) {
        create(id.parse().ok()?, name, read_logs(logs)?)
    } else if let Some([version]) = parts("commands up to version {} count", line) {
        let version = version.parse().ok()?;
        Change::Raise { version }
    } else if let Some([id, version]) = parts("delete namespace {}, as of version {}", line) {
        delete(id.parse().ok()?, version.parse().ok()?)
    } else if let Some([id, time_ms, version]) = parts(
        "keep messages of namespace {} for {} ms, as of version {}",
        line,
    ) {
        let (id, version) = (id.parse().ok()?, version.parse().ok()?);
        update(id, version, time_ms.parse().ok()?)
    } else {
        let [id] = parts("nothing is left of namespace {}", line)?;
        let id = NamespaceId(id.parse().ok()?);
        Change::Purged { id, epoch: None }
    };
    change.to_batch(Wall(1), u8::MAX).ok()
}

/// A move, and what becomes of the logs before it.
fn read_move(line: &str) -> Option<Change> {
    let (line, provisions) = match parts("{}, of provisions {}", line) {
        Some([line, provisions]) => (line, read_provisions(provisions)?),
        None => (line, Provisions::NONE),
    };
    if let Some([id, storage, version]) = parts("move namespace {} to {}, as of version {}", line) {
        return Some(Change::Move {
            id: NamespaceId(id.parse().ok()?),
            based_on: version.parse().ok()?,
            storage: StorageName::new(storage)?,
            provisions,
        });
    }
    if let Some([id, version]) = parts("make namespace {} anew, as of version {}", line) {
        return Some(Change::Recreate {
            id: NamespaceId(id.parse().ok()?),
            based_on: version.parse().ok()?,
            provisions,
        });
    }
    if let Some([index, loss]) = parts("log 1/normal/{} stops: it has lost {}", line) {
        return Some(Change::Suspend {
            log: log_of(index)?,
            loss: read_loss(loss)?,
        });
    }
    if let Some([index, at, cuts]) = parts("log 1/normal/{} goes on at {}, cut {} times", line) {
        return Some(Change::Truncate {
            log: log_of(index)?,
            at: Sequence(at.parse().ok()?),
            cuts: cuts.parse().ok()?,
        });
    }
    if let Some([epoch, id, ends]) = parts("map {} of namespace {} is retired: {}", line) {
        let end = |end: &str| end.strip_prefix("before ")?.parse().ok().map(Sequence);
        return Some(Change::Retired {
            id: NamespaceId(id.parse().ok()?),
            epoch: MapEpoch(epoch.parse().ok()?),
            ends: ends.split(", ").map(end).collect::<Option<_>>()?,
            high_ends: Vec::new(),
        });
    }
    let [epoch, id] = parts("nothing is left of map {} of namespace {}", line)?;
    Some(Change::Purged {
        id: NamespaceId(id.parse().ok()?),
        epoch: Some(MapEpoch(epoch.parse().ok()?)),
    })
}

fn read_logs(logs: &str) -> Option<u16> {
    let logs = logs.strip_suffix(" log").or(logs.strip_suffix(" logs"))?;
    logs.parse().ok()
}
