//! `airmail mailbox account` and `airmail mailbox queue`.

use super::typed::Typed;
use crate::commands::lines::time_text;
use airmail_client::mailbox::{
    Account, AccountId, LIST_MAX, Mailbox, Queue, QueueId, QueueSettings, Recipients, Selection,
};
use airmail_client::{Error, ErrorCode};
use airmail_model::AppendTime;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::num::NonZeroU32;

/// Actions on accounts.
#[derive(clap::Subcommand, Debug)]
pub enum AccountAction {
    /// Create an account
    Create {
        /// Its name: 1 to 255 characters
        name: String,
    },
    /// Delete an account
    Delete {
        /// Its name
        name: String,
        /// Delete all messages to and from it too
        #[arg(long)]
        force: bool,
    },
    /// Look up one account by its name
    Show {
        /// Its name
        name: String,
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
    /// List all accounts
    List {
        /// Print a line of JSON for each
        #[arg(long)]
        json: bool,
    },
}

/// Actions on queues.
#[derive(clap::Subcommand, Debug)]
pub enum QueueAction {
    /// Create a queue
    Create {
        /// Its name: 1 to 255 characters
        name: String,
        /// The queue for messages that expire, or that are handed out too often
        #[arg(long, value_name = "QUEUE")]
        dead_letters: Option<String>,
        /// Number of leases without an acknowledgement after which a message is a dead letter
        #[arg(long, value_name = "N", requires = "dead_letters")]
        deliveries: Option<NonZeroU32>,
    },
    /// Delete a queue
    Delete {
        /// Its name
        name: String,
        /// Delete its messages too
        #[arg(long)]
        force: bool,
    },
    /// Look up one queue by its name
    Show {
        /// Its name
        name: String,
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
    /// List all queues
    List {
        /// Print a line of JSON for each
        #[arg(long)]
        json: bool,
    },
    /// Count the messages of a queue
    Count {
        /// Its name
        name: String,
        /// Print them as JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove all messages of a queue; prints how many
    Purge {
        /// Its name
        name: String,
    },
}

/// An account as JSON.
#[derive(Debug, Serialize)]
struct AccountLine<'a> {
    name: &'a str,
    id: i32,
    created_at: String,
}

/// A queue as JSON.
#[derive(Debug, Serialize)]
struct QueueLine<'a> {
    name: &'a str,
    id: i32,
    created_at: String,
    dead_letters: Option<&'a str>,
    deliveries: Option<NonZeroU32>,
}

/// Numbers of a queue's messages, as JSON.
#[derive(Debug, Serialize)]
struct CountLine {
    ready: u64,
    delayed: u64,
    leased: u64,
}

/// Runs `airmail mailbox account`.
pub(super) async fn accounts(action: AccountAction, mailbox: &Mailbox) -> anyhow::Result<()> {
    match action {
        AccountAction::Create { name } => Ok(mailbox.create_account(&name).await.map(drop)?),
        AccountAction::Delete { name, force } => {
            let typed = Typed::default();
            let account = typed.account(mailbox, &name).await?;
            let deleted = mailbox.delete_account(account, force).await;
            Ok(deleted.map_err(|error| typed.name(error))?)
        }
        AccountAction::Show { name, json } => {
            let id = mailbox.find_account(&name).await?;
            let found = mailbox.accounts(Selection::These(vec![id])).await?;
            match found.first() {
                Some(account) if json => write_account(&mut std::io::stdout(), account, true),
                Some(account) => {
                    let at = time_text(AppendTime(account.created_at.0));
                    Ok(writeln!(std::io::stdout(), "id {id}\tcreated {at}")?)
                }
                None => Err(gone(ErrorCode::AccountNotFound, "account", &name).into()),
            }
        }
        AccountAction::List { json } => {
            let mut out = BufWriter::new(std::io::stdout());
            let mut id = AccountId(0);
            loop {
                let page = mailbox.accounts(after(id)).await?;
                for account in &page {
                    id = account.id;
                    write_account(&mut out, account, json)?;
                }
                if page.len() < LIST_MAX {
                    return Ok(out.flush()?);
                }
            }
        }
    }
}

fn write_account(out: &mut impl Write, account: &Account, json: bool) -> anyhow::Result<()> {
    let name = account.name.as_str();
    if json {
        let line = AccountLine {
            name,
            id: account.id.0,
            created_at: time_text(AppendTime(account.created_at.0)),
        };
        writeln!(out, "{}", serde_json::to_string(&line)?)?;
    } else {
        writeln!(out, "{name}")?;
    }
    Ok(())
}

/// Runs `airmail mailbox queue`.
pub(super) async fn queues(action: QueueAction, mailbox: &Mailbox) -> anyhow::Result<()> {
    match action {
        QueueAction::Create {
            name,
            dead_letters,
            deliveries,
        } => {
            let typed = Typed::default();
            let dead_letter = match dead_letters {
                Some(queue) => Some(typed.queue(mailbox, &queue).await?),
                None => None,
            };
            let settings = QueueSettings {
                dead_letter,
                deliveries_max: deliveries,
            };
            let created = mailbox.create_queue(&name, settings).await;
            Ok(created.map(drop).map_err(|error| typed.name(error))?)
        }
        QueueAction::Delete { name, force } => {
            let typed = Typed::default();
            let queue = typed.queue(mailbox, &name).await?;
            let deleted = mailbox.delete_queue(queue, force).await;
            Ok(deleted.map_err(|error| typed.name(error))?)
        }
        QueueAction::Show { name, json } => show_queue(&name, json, mailbox).await,
        QueueAction::List { json } => list_queues(json, mailbox).await,
        QueueAction::Count { name, json } => {
            let typed = Typed::default();
            let queue = typed.queue(mailbox, &name).await?;
            let counts = mailbox.counts(queue).await;
            let counts = counts.map_err(|error| typed.name(error))?;
            let line = CountLine {
                ready: counts.ready,
                delayed: counts.delayed,
                leased: counts.leased,
            };
            let text = if json {
                serde_json::to_string(&line)?
            } else {
                let CountLine {
                    ready,
                    delayed,
                    leased,
                } = line;
                format!("ready {ready}\tdelayed {delayed}\tleased {leased}")
            };
            Ok(writeln!(std::io::stdout(), "{text}")?)
        }
        QueueAction::Purge { name } => {
            let typed = Typed::default();
            let queue = typed.queue(mailbox, &name).await?;
            let removed = mailbox.purge(queue).await;
            let removed = removed.map_err(|error| typed.name(error))?;
            Ok(writeln!(std::io::stdout(), "{removed}")?)
        }
    }
}

async fn show_queue(name: &str, json: bool, mailbox: &Mailbox) -> anyhow::Result<()> {
    let id = mailbox.find_queue(name).await?;
    let found = mailbox.queues(Selection::These(vec![id])).await?;
    let Some(queue) = found.first() else {
        return Err(gone(ErrorCode::QueueNotFound, "queue", name).into());
    };
    let elsewhere = queue.settings.dead_letter;
    let dead_letters = names(elsewhere.into_iter().collect(), mailbox).await?;
    let mut out = std::io::stdout();
    if json {
        return write_queue(&mut out, queue, true, &dead_letters);
    }
    let at = time_text(AppendTime(queue.created_at.0));
    write!(out, "id {id}\tcreated {at}")?;
    if let Some(elsewhere) = elsewhere.and_then(|id| dead_letters.get(&id)) {
        write!(out, "\tdead letters {elsewhere}")?;
    }
    if let Some(deliveries) = queue.settings.deliveries_max {
        write!(out, "\tdeliveries {deliveries}")?;
    }
    Ok(writeln!(out)?)
}

/// It was there a moment ago.
fn gone(code: ErrorCode, field: &str, name: &str) -> Error {
    Error::new(code).field(field).value(name)
}

async fn list_queues(json: bool, mailbox: &Mailbox) -> anyhow::Result<()> {
    let mut out = BufWriter::new(std::io::stdout());
    let mut id = QueueId(0);
    loop {
        let page = mailbox.queues(after(id)).await?;
        let elsewhere = page.iter().filter_map(|queue| queue.settings.dead_letter);
        let dead_letters = if json {
            names(elsewhere.collect(), mailbox).await?
        } else {
            BTreeMap::new()
        };
        for queue in &page {
            id = queue.id;
            write_queue(&mut out, queue, json, &dead_letters)?;
        }
        if page.len() < LIST_MAX {
            return Ok(out.flush()?);
        }
    }
}

fn write_queue(
    out: &mut impl Write,
    queue: &Queue,
    json: bool,
    dead_letters: &BTreeMap<QueueId, String>,
) -> anyhow::Result<()> {
    let name = queue.name.as_str();
    if json {
        let dead_letter = queue.settings.dead_letter;
        let line = QueueLine {
            name,
            id: queue.id.0,
            created_at: time_text(AppendTime(queue.created_at.0)),
            dead_letters: dead_letter.and_then(|id| dead_letters.get(&id).map(String::as_str)),
            deliveries: queue.settings.deliveries_max,
        };
        writeln!(out, "{}", serde_json::to_string(&line)?)?;
    } else {
        writeln!(out, "{name}")?;
    }
    Ok(())
}

/// Runs `airmail mailbox queues`.
pub(super) async fn list_holding(recipients: Recipients, mailbox: &Mailbox) -> anyhow::Result<()> {
    let ids = mailbox.queues_for(recipients).await?;
    let names = names(ids, mailbox).await?;
    let mut out = BufWriter::new(std::io::stdout());
    for name in names.into_values() {
        writeln!(out, "{name}")?;
    }
    Ok(out.flush()?)
}

/// The names of queues; those that have gone meanwhile have none.
pub(super) async fn names(
    mut ids: Vec<QueueId>,
    mailbox: &Mailbox,
) -> Result<BTreeMap<QueueId, String>, Error> {
    ids.sort_unstable();
    ids.dedup();
    let mut names = BTreeMap::new();
    for some in ids.chunks(LIST_MAX) {
        for queue in mailbox.queues(Selection::These(some.to_vec())).await? {
            names.insert(queue.id, queue.name.to_string());
        }
    }
    Ok(names)
}

fn after<Id>(id: Id) -> Selection<Id> {
    let limit = LIST_MAX;
    Selection::After { id, limit }
}
