//! Transcripts of the catalog: its inputs and effects as text, in `tests/transcripts/catalog`.

use super::*;

macro_rules! transcripts {
    ($($claim:ident: $name:literal,)*) => {
        $(
            #[test]
            fn $claim() {
                let mut driver = Driver::new();
                crate::transcript::hold("catalog", $name, |line| tell(&mut driver, line));
            }
        )*
    };
}

transcripts! {
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
}

/// Takes an input, and tells what came of it.
fn tell(driver: &mut Driver, line: &str) -> Option<Vec<String>> {
    let before = (driver.core.phase, driver.core.failure.clone());
    driver.step(read(line)?);
    let core = &driver.core;
    let effects = driver.effects.iter();
    let mut lines: Vec<String> = effects.map(|effect| show(effect, core)).collect();
    if core.phase != before.0 {
        lines.push(format!(
            "it is {}",
            format!("{:?}", core.phase).to_lowercase()
        ));
    }
    match core.failure() {
        same if same == before.1.as_ref() => {}
        Some(error) => lines.push(format!("it says: {error}")),
        None => lines.push("it says nothing more".to_owned()),
    }
    Some(lines)
}

/// The input that a line means.
fn read(line: &str) -> Option<CatalogInput> {
    let words: Vec<&str> = line.split(' ').collect();
    let io = |why: &str| Refusal::Io(why.to_owned());
    Some(match words[..] {
        ["start"] => CatalogInput::Start,
        ["retry"] => CatalogInput::Retry,
        ["log", "0", "holds", "nothing"] => CatalogInput::Opened(bounds(1, 1)),
        ["log", "0", "holds", first, "to", last] => {
            CatalogInput::Opened(bounds(first.parse().ok()?, last.parse::<u64>().ok()? + 1))
        }
        ["log", "0", "cannot", "be", "opened"] => CatalogInput::OpenRefused(io("no such file")),
        ["log", "0", "gives", at, ..] => given(at.parse().ok()?, read_batch(&words[4..])?),
        ["log", "0", "lost", at] => CatalogInput::Gap {
            extent: number(at.parse().ok()?),
            why: GapWhy::Loss,
        },
        ["log", "0", "has", "no", "more"] => CatalogInput::Tail,
        ["the", "reader", "of", "log", "0", "ends"] => CatalogInput::ReaderEnded,
        ["the", of, "is", "log", "0's", at] => CatalogInput::Appended {
            of: read_append(of)?,
            extent: number(at.parse().ok()?),
        },
        ["the", of, "is", "refused"] => CatalogInput::AppendRefused {
            of: read_append(of)?,
            why: io("no room"),
        },
        ["client", id, "asks", "to", ..] => CatalogInput::Command {
            id: CommandId(id.parse().ok()?),
            command: read_command(&words[4..])?,
        },
        ["a", "log", "of", id, "is", "done"] => CatalogInput::LogSettled {
            namespace: NamespaceId(id.parse().ok()?),
            result: Ok(()),
        },
        ["a", "log", "of", id, "fails"] => CatalogInput::LogSettled {
            namespace: NamespaceId(id.parse().ok()?),
            result: Err(Error::new(ErrorCode::StorageFailed).field("storage")),
        },
        _ => return None,
    })
}

fn read_append(word: &str) -> Option<SystemAppend> {
    match word {
        "command" => Some(SystemAppend::Command),
        "purge" => Some(SystemAppend::Purge),
        _ => None,
    }
}

fn read_command(words: &[&str]) -> Option<Command> {
    match *words {
        ["create", name] => Some(create_command(name)),
        ["delete", name] => Some(delete_command(name)),
        ["keep", name, "for", time_ms, "ms"] => Some(update_command(name, time_ms.parse().ok()?)),
        _ => None,
    }
}

fn read_batch(words: &[&str]) -> Option<Checked<Batch>> {
    let change = match *words {
        ["create", id, name, "with", logs, "logs"] => {
            create(id.parse().ok()?, name, logs.parse().ok()?)
        }
        ["delete", id, "at", "version", version] => delete(id.parse().ok()?, version.parse().ok()?),
        ["keep", id, "at", "version", version, "for", time_ms, "ms"] => {
            let (id, version) = (id.parse().ok()?, version.parse().ok()?);
            update(id, version, time_ms.parse().ok()?)
        }
        ["purged", id] => Change::Purged {
            id: NamespaceId(id.parse().ok()?),
        },
        ["what", "cannot", "be", "read"] => return Some(payload(&[9])),
        _ => return None,
    };
    change.to_batch(Wall(1)).ok()
}

fn show(effect: &CatalogEffect, core: &CatalogCore) -> String {
    match effect {
        CatalogEffect::Open(spec) => format!("open log 0, {}", show_spec(spec)),
        CatalogEffect::Read { from, credit_bytes } => {
            format!("read log 0 from {from} on, {credit_bytes} bytes ahead")
        }
        CatalogEffect::Credit { .. } => "let the reader read on".to_owned(),
        CatalogEffect::Append { batch, .. } => {
            let changes = changes_of(batch);
            let changes: Vec<String> = changes.iter().flatten().map(show_change).collect();
            format!("append to log 0: {}", changes.join(", "))
        }
        CatalogEffect::Order(Order::Open { log, spec }) => {
            format!("order: open log {log}, {}", show_spec(spec))
        }
        CatalogEffect::Order(Order::Delete { namespace, logs }) => {
            format!("order: delete the {logs} logs of {namespace}")
        }
        CatalogEffect::Answer { id, result } => {
            format!("answer client {}: {}", id.0, show_result(result))
        }
        CatalogEffect::Changed => {
            let each = core.snapshot().iter().map(|entry| {
                let namespace = &entry.namespace;
                format!("{} {}", namespace.id, namespace.name)
            });
            let each: Vec<String> = each.collect();
            match each[..] {
                [] => "serve nothing".to_owned(),
                _ => format!("serve: {}", each.join(", ")),
            }
        }
        CatalogEffect::RetryLater => "retry later".to_owned(),
    }
}

fn show_spec(spec: &airmail_log::LogSpec) -> String {
    format!("{}, {}", spec.durability, show_retention(&spec.retention))
}

fn show_retention(retention: &Retention) -> String {
    match retention.time_ms {
        Some(time_ms) => format!("kept for {time_ms} ms"),
        None => "kept for ever".to_owned(),
    }
}

fn show_change(change: &Change) -> String {
    match change {
        Change::Create { id, name, spec } => {
            format!("create {id} {name} with {} logs", spec.logs)
        }
        Change::Update {
            id,
            based_on,
            retention,
            ..
        } => format!(
            "{id} at version {based_on} is {}",
            show_retention(retention)
        ),
        Change::Delete { id, based_on } => format!("delete {id} at version {based_on}"),
        Change::Purged { id } => format!("purged {id}"),
    }
}

fn show_result(result: &Result<Outcome, CommandRefusal>) -> String {
    match result {
        Ok(Outcome::Namespace(namespace)) => {
            let Namespace {
                id, name, version, ..
            } = namespace;
            format!("{id} {name}, version {version}")
        }
        Ok(Outcome::Deleted) => "deleted".to_owned(),
        Ok(Outcome::Topics { .. }) => "topics".to_owned(),
        Err(CommandRefusal::NotReady) => "not ready".to_owned(),
        Err(CommandRefusal::QueueFull { commands_max }) => {
            format!("{commands_max} commands wait already")
        }
        Err(CommandRefusal::Failed(error)) => error.to_string(),
    }
}
