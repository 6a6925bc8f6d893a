//! Transcripts: what happens to a catalog and what it wants done, as text that can be read without the
//! code. They are in `tests/transcripts/catalog`; with `AIRMAIL_REWRITE=1` they are written anew.
//!
//! A line that begins with `>` is an input. The indented lines below it are what comes of it. All other
//! lines are remarks.

use super::*;
use std::fmt::Write;
use std::path::Path;

#[test]
fn a_first_start_is_as_written() {
    hold("first_start");
}

#[test]
fn a_restart_is_as_written() {
    hold("restart");
}

#[test]
fn commands_in_line_are_as_written() {
    hold("commands_in_line");
}

#[test]
fn a_void_command_is_as_written() {
    hold("void_command");
}

#[test]
fn a_torn_log_0_is_as_written() {
    hold("torn");
}

/// Compares a transcript with what comes of its inputs, or writes it.
#[track_caller]
#[expect(
    clippy::disallowed_methods,
    reason = "a test: whether it compares or writes is said by the environment"
)]
fn hold(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/transcripts/catalog")
        .join(format!("{name}.txt"));
    let old = std::fs::read_to_string(&path).expect("a transcript");
    let new = play(&old);
    if std::env::var_os("AIRMAIL_REWRITE").is_some() {
        std::fs::write(&path, new).expect("it can be written");
    } else {
        let command = "AIRMAIL_REWRITE=1 cargo test -p airmail-broker transcripts";
        assert!(new == old, "{name}.txt is stale: {command}\n\n{new}");
    }
}

/// The transcript of a script's inputs, with its remarks.
fn play(script: &str) -> String {
    let mut driver = Driver::new();
    let mut transcript = String::new();
    for line in script.lines().filter(|line| !line.starts_with("  ")) {
        let _ = writeln!(transcript, "{line}");
        if let Some(input) = line.strip_prefix("> ") {
            let before = (driver.core.phase, driver.core.failure.clone());
            driver.step(read(input).unwrap_or_else(|| panic!("{input:?} is no input")));
            for effect in &driver.effects {
                let _ = writeln!(transcript, "  {}", show(effect, &driver.core));
            }
            if driver.core.phase != before.0 {
                let phase = format!("{:?}", driver.core.phase).to_lowercase();
                let _ = writeln!(transcript, "  it is {phase}");
            }
            match driver.core.failure() {
                same if same == before.1.as_ref() => {}
                Some(error) => _ = writeln!(transcript, "  it says: {error}"),
                None => _ = writeln!(transcript, "  it says nothing more"),
            }
        }
    }
    transcript
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
