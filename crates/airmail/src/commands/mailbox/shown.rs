//! Messages on standard output: as their contents, or as lines of JSON; with names for numbers.

use super::directory;
use crate::commands::lines::time_text;
use airmail_client::Error;
use airmail_client::mailbox::{
    AccountId, LIST_MAX, Mailbox, Message, QueueId, Receipt, Recipients, Selection,
};
use airmail_model::AppendTime;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Stdout, Write};

/// The names of accounts and queues, asked for once each: they never change.
#[derive(Debug)]
pub(super) struct Names<'a> {
    mailbox: &'a Mailbox,
    accounts: BTreeMap<AccountId, String>,
    queues: BTreeMap<QueueId, String>,
}

impl<'a> Names<'a> {
    pub(super) fn new(mailbox: &'a Mailbox) -> Names<'a> {
        Names {
            mailbox,
            accounts: BTreeMap::new(),
            queues: BTreeMap::new(),
        }
    }

    /// Learns the names that messages speak of.
    async fn learn(&mut self, messages: &[Message]) -> Result<(), Error> {
        let unknown = |id: &QueueId| !self.queues.contains_key(id);
        let queues: Vec<QueueId> = messages.iter().map(|message| message.queue).collect();
        let queues: Vec<QueueId> = queues.into_iter().filter(unknown).collect();
        let queues = directory::names(queues, self.mailbox).await?;
        self.queues.extend(queues);
        let receivers = messages
            .iter()
            .filter_map(|message| match message.recipients {
                Recipients::Direct(account) => Some(account),
                Recipients::Broadcast => None,
            });
        let accounts = receivers.chain(messages.iter().map(|message| message.sender));
        let mut accounts: Vec<AccountId> = accounts
            .filter(|id| !self.accounts.contains_key(id))
            .collect();
        accounts.sort_unstable();
        accounts.dedup();
        for some in accounts.chunks(LIST_MAX) {
            for account in self
                .mailbox
                .accounts(Selection::These(some.to_vec()))
                .await?
            {
                self.accounts.insert(account.id, account.name.to_string());
            }
        }
        Ok(())
    }
}

/// A message as a line of JSON; the first fields are in this order, for ever.
#[derive(Debug, Serialize)]
struct Line<'a> {
    id: i64,
    /// Null where the queue or account has been deleted meanwhile.
    queue: Option<&'a str>,
    from: Option<&'a str>,
    /// Null for a broadcast.
    to: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_base64: Option<String>,
    created_at: String,
    #[serde(flatten)]
    leased: Option<Leased>,
}

/// Further fields of a message under a lease.
#[derive(Debug, Serialize)]
struct Leased {
    receipt: String,
    deliveries: u32,
}

/// A lease as text: what `ack`, `extend` and `release` take.
pub(super) fn receipt_text(receipt: Receipt) -> String {
    format!("{}:{}", receipt.message, receipt.lease)
}

/// Prints messages.
#[derive(Debug)]
pub(super) struct Printer {
    out: BufWriter<Stdout>,
    json: bool,
}

impl Printer {
    pub(super) fn new(json: bool) -> Printer {
        Printer {
            out: BufWriter::new(io::stdout()),
            json,
        }
    }

    /// Prints messages; what the database does not tell of their names is left out.
    pub(super) async fn print(
        &mut self,
        messages: &[Message],
        names: &mut Names<'_>,
    ) -> io::Result<()> {
        if self.json
            && let Err(error) = names.learn(messages).await
        {
            // They have left their queue: they are shown whatever happens.
            tracing::warn!(%error, "names are not known");
        }
        for message in messages {
            if self.json {
                serde_json::to_writer(&mut self.out, &line(message, names))?;
            } else {
                if let Some(receipt) = message.receipt() {
                    write!(self.out, "{}\t", receipt_text(receipt))?;
                }
                self.out.write_all(&message.content)?;
            }
            self.out.write_all(b"\n")?;
        }
        self.out.flush()
    }

    /// Prints any other line.
    pub(super) fn line(&mut self, text: &[u8]) -> io::Result<()> {
        self.out.write_all(text)?;
        self.out.write_all(b"\n")?;
        self.out.flush()
    }
}

fn line<'a>(message: &'a Message, names: &'a Names<'_>) -> Line<'a> {
    let account = |id| names.accounts.get(&id).map(String::as_str);
    let text = std::str::from_utf8(&message.content).ok();
    Line {
        id: message.id.0,
        queue: names.queues.get(&message.queue).map(String::as_str),
        from: account(message.sender),
        to: match message.recipients {
            Recipients::Direct(receiver) => account(receiver),
            Recipients::Broadcast => None,
        },
        content: text,
        content_base64: text.is_none().then(|| STANDARD.encode(&message.content)),
        created_at: time_text(AppendTime(message.created_at.0)),
        leased: message.receipt().map(|receipt| Leased {
            receipt: receipt_text(receipt),
            deliveries: message.deliveries,
        }),
    }
}
