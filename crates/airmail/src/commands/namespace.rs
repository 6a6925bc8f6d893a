//! `airmail namespace`: creates, lists, shows, changes and deletes namespaces.

use super::lines::printed;
use super::target::Target;
use crate::cli::{ClientOptions, UsageError};
use airmail_client::Client;
use airmail_model::quantity::{ByteSize, Span};
use airmail_model::{Durability, EarlierLogs, Error, Namespace, Retention, StorageName};
use serde::Serialize;
use std::io::Write as _;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

/// Arguments of `airmail namespace`.
#[derive(clap::Args, Debug)]
pub struct NamespaceArgs {
    /// The action.
    #[command(subcommand)]
    pub action: Action,
}

/// Actions on namespaces.
#[derive(clap::Subcommand, Debug)]
pub enum Action {
    /// Create a namespace
    Create {
        /// Its name: letters, digits, . _ -
        name: String,
        /// Settings of the new namespace.
        #[command(flatten)]
        settings: Settings,
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
    /// List all namespaces
    List {
        /// Print a line of JSON for each
        #[arg(long)]
        json: bool,
    },
    /// Show one namespace
    Show {
        /// Its name
        name: String,
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
    /// Change a namespace while it is used
    Update {
        /// Its name
        name: String,
        /// Settings to change.
        #[command(flatten)]
        settings: Settings,
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
    /// Move a namespace to another storage while it is used. What was published before stays where it is for as long as
    /// retention keeps it
    Move {
        /// Its name
        name: String,
        /// Storage of the node that is to have the logs, by its name [default: the node's first]
        #[arg(long, value_name = "NAME")]
        storage: Option<StorageName>,
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
    /// Make a namespace anew where it is, since its storage has lost all of its logs, as `cluster status` says: its
    /// subscribers are told what is lost, and go on with what is published from now on
    Recreate {
        /// Its name
        name: String,
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
    /// Delete a namespace, with everything in it
    Delete {
        /// Its name
        name: String,
    },
}

/// Settings of a namespace.
#[derive(clap::Args, Clone, Debug)]
pub struct Settings {
    /// Keep messages this long, such as 7d, or `forever`
    #[arg(long, value_name = "TIME")]
    pub retention: Option<Bound<Span>>,
    /// Keep this much in each log, such as 1GiB, or `unbounded`
    #[arg(long, value_name = "SIZE")]
    pub retention_bytes: Option<Bound<ByteSize>>,
    /// Durability that an ack promises: fsync, os or memory. Reserved: copies, as in fsync:3
    #[arg(long, value_name = "LEVEL")]
    pub durability: Option<Durability>,
    /// Number of logs that the topics are spread over
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub logs: Option<u16>,
    /// Storage of the node that is to have the logs, by its name [default: the node's first]. Changed by
    /// `namespace move`
    #[arg(long, value_name = "NAME")]
    pub storage: Option<StorageName>,
}

/// A bound, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound<T>(pub Option<T>);

impl<T: FromStr> FromStr for Bound<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Bound<T>, T::Err> {
        match text {
            "forever" | "unbounded" | "none" => Ok(Bound(None)),
            text => text.parse().map(|bound| Bound(Some(bound))),
        }
    }
}

impl Settings {
    fn is_empty(&self) -> bool {
        self.retention.is_none()
            && self.retention_bytes.is_none()
            && self.durability.is_none()
            && self.logs.is_none()
            && self.storage.is_none()
    }

    /// The retention asked for, on the ground of what there is; `None`: nothing about it was.
    fn retention(&self, present: Retention) -> Option<Retention> {
        if self.retention.is_none() && self.retention_bytes.is_none() {
            return None;
        }
        let millis = |span: Span| u64::try_from(span.0.as_millis()).unwrap_or(u64::MAX);
        Some(Retention {
            time_ms: match self.retention {
                Some(Bound(time)) => time.map(millis),
                None => present.time_ms,
            },
            bytes: match self.retention_bytes {
                Some(Bound(bytes)) => bytes.map(|size| size.0),
                None => present.bytes,
            },
        })
    }
}

/// A namespace as JSON.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    name: &'a str,
    id: u32,
    logs: u16,
    retention_ms: Option<u64>,
    retention_bytes: Option<u64>,
    durability: String,
    storage: &'a str,
    version: u64,
    map_epoch: u32,
    /// Logs that are still kept where it was before.
    earlier: Vec<Earlier<'a>>,
}

/// Logs of an earlier map as JSON.
#[derive(Debug, Serialize)]
struct Earlier<'a> {
    storage: &'a str,
    logs: u16,
    map_epoch: u32,
}

fn earlier(earlier: &EarlierLogs) -> Earlier<'_> {
    Earlier {
        storage: earlier.storage.as_str(),
        logs: earlier.logs,
        map_epoch: earlier.epoch.0,
    }
}

/// A storage as it is told: the first has no name.
fn shown(storage: StorageName) -> String {
    if storage.is_first() {
        "the first storage".to_owned()
    } else {
        storage.to_string()
    }
}

fn show(namespace: &Namespace, json: bool) -> anyhow::Result<()> {
    let spec = &namespace.spec;
    let mut out = std::io::stdout().lock();
    if json {
        let shown = Shown {
            name: &namespace.name,
            id: namespace.id.0,
            logs: spec.logs,
            retention_ms: spec.retention.time_ms,
            retention_bytes: spec.retention.bytes,
            durability: spec.durability.to_string(),
            storage: spec.storage.as_str(),
            version: namespace.version,
            map_epoch: namespace.epoch.0,
            earlier: namespace.earlier.iter().map(earlier).collect(),
        };
        writeln!(out, "{}", serde_json::to_string(&shown)?)?;
        return Ok(());
    }
    let time = spec.retention.time_ms.map(Duration::from_millis);
    let time = time.map_or("forever".to_owned(), |time| Span(time).to_string());
    let bytes = spec.retention.bytes.map(ByteSize);
    let bytes = bytes.map_or("unbounded".to_owned(), |bytes| bytes.to_string());
    let mut storage = if spec.storage.is_first() {
        String::new()
    } else {
        format!("\tstorage {}", spec.storage)
    };
    for earlier in &namespace.earlier {
        let kept = format!(
            "\tkept in {}: logs {}",
            shown(earlier.storage),
            earlier.logs
        );
        storage.push_str(&kept);
    }
    writeln!(
        out,
        "{}\tid {}\tlogs {}\tretention {time}\tretention-bytes {bytes}\tdurability {}\tversion {}{storage}",
        namespace.name, namespace.id, spec.logs, spec.durability, namespace.version,
    )?;
    Ok(())
}

/// Runs it.
///
/// # Errors
/// No node answers, or it refuses.
pub async fn run(args: NamespaceArgs, options: &ClientOptions) -> anyhow::Result<ExitCode> {
    let target = Target::resolve(options, None)?;
    if let Action::Update { settings, .. } = &args.action
        && settings.is_empty()
    {
        let flags = "--retention, --retention-bytes, --durability, --logs";
        return Err(UsageError(format!("namespace update: nothing to change: {flags}")).into());
    }
    let client = target.client().connect().await?;
    printed(act(args.action, &client).await)?;
    client.close().await?;
    Ok(ExitCode::SUCCESS)
}

async fn act(action: Action, client: &Client) -> anyhow::Result<()> {
    let admin = client.admin();
    match action {
        Action::Create {
            name,
            settings,
            json,
        } => {
            let retention = settings.retention(Retention::default());
            let storage = settings.storage.unwrap_or_default();
            let (logs, durability) = (settings.logs, settings.durability);
            let made = admin.create_in(storage, &name, logs, retention, durability);
            show(&made.await?, json)
        }
        Action::List { json } => {
            for namespace in admin.list().await? {
                show(&namespace, json)?;
            }
            Ok(())
        }
        Action::Show { name, json } => show(&admin.get(&name).await?, json),
        Action::Update {
            name,
            settings,
            json,
        } => {
            // A retention is replaced whole: what is not named stays as it is now, and if it is
            // changed meanwhile, the node says so.
            let present = admin.get(&name).await?;
            let held = present.spec.storage;
            if let Some(storage) = settings.storage.filter(|storage| *storage != held) {
                let error = Error::unimplemented("namespace.storage").value(storage);
                let limit = format!("{}; namespace move moves it", shown(held));
                return Err(error.limit(limit).into());
            }
            let retention = settings.retention(present.spec.retention);
            let (logs, durability) = (settings.logs, settings.durability);
            let based_on = Some(present.version);
            let changed = admin.update(&name, logs, retention, durability, based_on);
            show(&changed.await?, json)
        }
        Action::Move {
            name,
            storage,
            json,
        } => {
            let storage = storage.unwrap_or_default();
            show(&admin.move_to(storage, &name, None).await?, json)
        }
        Action::Recreate { name, json } => show(&admin.recreate(&name, None).await?, json),
        Action::Delete { name } => Ok(admin.delete(&name, None).await?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retention_not_named_stays() {
        let present = Retention {
            time_ms: Some(5),
            bytes: Some(6),
        };
        let mut settings = Settings {
            retention: None,
            retention_bytes: None,
            durability: None,
            logs: None,
            storage: None,
        };
        assert_eq!(settings.retention(present), None);
        settings.retention = Some("7d".parse().unwrap());
        let week = settings.retention(present).unwrap();
        assert_eq!((week.time_ms, week.bytes), (Some(604_800_000), Some(6)));
        settings.retention = Some("forever".parse().unwrap());
        settings.retention_bytes = Some("1GiB".parse().unwrap());
        let bytes = settings.retention(present).unwrap();
        assert_eq!((bytes.time_ms, bytes.bytes), (None, Some(1 << 30)));
    }
}
