//! Effects and answers of the catalog as text.

use super::*;

pub(super) fn show(effect: &CatalogEffect, core: &CatalogCore) -> String {
    match effect {
        CatalogEffect::Open(spec) => format!("to the tower: open log 0, {}", show_spec(spec)),
        CatalogEffect::Read { from, credit_bytes } => {
            format!("to the tower: read log 0 from {from} on, {credit_bytes} bytes ahead")
        }
        CatalogEffect::Credit { .. } => "to the tower: read log 0 on".to_owned(),
        CatalogEffect::Append { batch, .. } => {
            let changes = changes_of(batch);
            let changes: Vec<String> = changes.iter().flatten().map(show_change).collect();
            format!("to the tower: append to log 0: {}", changes.join(", "))
        }
        CatalogEffect::Provision { log, logs, spec } => {
            let (id, logs) = (log.namespace, show_logs(*logs));
            format!(
                "to the tower: provision for namespace {id} with its {logs}, {}",
                show_spec(spec)
            )
        }
        CatalogEffect::Withdraw { log, logs, origin } => {
            let (id, logs) = (log.namespace, show_logs(*logs));
            let provisions = show_provisions(&origin.provisions);
            format!("to the tower: withdraw {provisions} from namespace {id} with its {logs}")
        }
        CatalogEffect::Keep(kept) => {
            let (storage, maps) = (kept.storage, kept.maps.len());
            format!("to the tower: have storage {storage} keep {maps} maps")
        }
        CatalogEffect::Order(Order::Open { log, spec, seal }) => {
            let seal = seal.map(|next| format!(", and seal it for map {next}"));
            let (spec, seal) = (show_spec(spec), seal.unwrap_or_default());
            format!("to the tower: open log {log}, {spec}{seal}")
        }
        CatalogEffect::Order(Order::Delete {
            namespace,
            first,
            logs,
            origin,
            ..
        }) => {
            let of = show_of(&origin.provisions);
            let from = match first.0 {
                0 => String::new(),
                first => format!(" from {first} on"),
            };
            if core.snapshot().get(*namespace).is_some() {
                let logs = show_logs(*logs);
                return format!("to the tower: delete {logs}{from} of namespace {namespace}{of}");
            }
            let logs = show_logs(*logs);
            format!("to the tower: delete namespace {namespace} with its {logs}{from}{of}")
        }
        CatalogEffect::Answer { id, result } => {
            format!("to client {}: {}", id.0, show_result(result))
        }
        CatalogEffect::Changed => {
            let each = core.snapshot().iter().map(|entry| {
                let namespace = &entry.namespace;
                format!("{} ({})", namespace.name, namespace.id)
            });
            let each: Vec<String> = each.collect();
            match each[..] {
                [] => "to the gateway: there is no namespace".to_owned(),
                _ => format!("to the gateway: the namespaces are {}", each.join(", ")),
            }
        }
        CatalogEffect::RetryLater => "to the tower: try again later".to_owned(),
    }
}

fn show_spec(spec: &airmail_log::LogSpec) -> String {
    let kept = show_retention(&spec.retention);
    let of = show_of(&spec.provisions);
    let Soundness {
        cuts,
        cut_at,
        is_suspended,
    } = spec.soundness;
    let cut = match cuts {
        0 => String::new(),
        cuts => format!(", cut {cuts} times, the last time at {cut_at}"),
    };
    let stopped = if is_suspended { ", stopped" } else { "" };
    format!("{}, {kept}{of}{cut}{stopped}", spec.durability)
}

fn show_of(provisions: &Provisions) -> String {
    if provisions.is_none() {
        return String::new();
    }
    format!(", of provisions {}", show_provisions(provisions))
}

fn show_retention(retention: &Retention) -> String {
    match retention.time_ms {
        Some(time_ms) => format!("kept for {time_ms} ms"),
        None => "kept for ever".to_owned(),
    }
}

fn show_logs(count: u16) -> String {
    let noun = if count == 1 { "log" } else { "logs" };
    format!("{count} {noun}")
}

fn show_change(change: &Change) -> String {
    match change {
        Change::Create {
            id,
            name,
            spec,
            provisions,
        } => {
            let (logs, of) = (show_logs(spec.logs), show_of(provisions));
            format!("create {name} as namespace {id} with {logs}{of}")
        }
        Change::Update {
            id,
            based_on,
            retention,
            ..
        } => {
            let kept = match retention.time_ms {
                Some(time_ms) => format!("for {time_ms} ms"),
                None => "for ever".to_owned(),
            };
            format!("keep messages of namespace {id} {kept}, as of version {based_on}")
        }
        Change::Delete { id, based_on } => {
            format!("delete namespace {id}, as of version {based_on}")
        }
        Change::Purged { id, epoch: None } => format!("nothing is left of namespace {id}"),
        Change::Purged {
            id,
            epoch: Some(epoch),
        } => format!("nothing is left of map {epoch} of namespace {id}"),
        Change::Move {
            id,
            based_on,
            storage,
            provisions,
        } => {
            let of = show_of(provisions);
            format!("move namespace {id} to {storage}, as of version {based_on}{of}")
        }
        Change::Retired {
            id, epoch, ends, ..
        } => {
            let ends: Vec<String> = ends.iter().map(|end| format!("before {end}")).collect();
            format!(
                "map {epoch} of namespace {id} is retired: {}",
                ends.join(", ")
            )
        }
        Change::AddHigh { id } => format!("namespace {id} has lane high"),
        Change::Raise { version } => format!("commands up to version {version} count"),
        Change::Suspend { log, loss } => {
            format!("log {log} stops: it has lost {}", show_loss(loss))
        }
        Change::Truncate { log, cuts, at } => {
            format!("log {log} goes on at {at}, cut {cuts} times")
        }
        Change::CreateRole { id, name } => format!("create role {id}, {name}"),
        Change::DeleteRole { id } => format!("delete role {id}"),
        Change::Recreate {
            id,
            based_on,
            provisions,
        } => {
            let of = show_of(provisions);
            format!("make namespace {id} anew, as of version {based_on}{of}")
        }
    }
}

fn show_result(result: &Result<Outcome, CommandRefusal>) -> String {
    match result {
        Ok(Outcome::Namespace(namespace)) => {
            let Namespace {
                id, name, version, ..
            } = namespace;
            format!("{name} is namespace {id}, in version {version}")
        }
        Ok(Outcome::Role(role)) => format!("{} is role {}", role.name, role.id),
        Ok(Outcome::Deleted) => "deleted".to_owned(),
        Ok(Outcome::Topics { .. }) => "topics".to_owned(),
        Err(CommandRefusal::NotReady) => "refused: the catalog is not ready".to_owned(),
        Err(CommandRefusal::QueueFull { commands_max }) => {
            format!("refused: {commands_max} commands wait already")
        }
        Err(CommandRefusal::Failed(error)) => format!("refused: {error}"),
    }
}

fn show_loss(loss: &LogLoss) -> String {
    let LogLoss {
        life,
        next_life,
        at,
        end,
    } = loss;
    match at {
        Some(first) => {
            let (first, last) = (*first, end.before());
            let lost = show_extent(Extent { first, last });
            format!("{lost} of life {life}, which {next_life} would follow")
        }
        None => format!("all of life {life}, which ended before {end}"),
    }
}
