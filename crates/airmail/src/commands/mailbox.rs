//! `airmail mailbox`: accounts, queues, and messages for one reader each.

mod directory;
mod receive;
mod send;
mod settle;
mod shown;
mod typed;

use super::lines::printed;
use super::target::Target;
use crate::cli::ClientOptions;
use airmail_client::mailbox::{AccountId, Mailbox, MessageId, Recipients};
use shown::{Names, Printer};
use std::process::ExitCode;
use typed::Typed;

/// The account of a caller without an account: messages for one account are not for it.
const NOBODY: AccountId = AccountId(0);

/// Arguments of `airmail mailbox`.
#[derive(clap::Args, Debug)]
pub struct MailboxArgs {
    /// The action.
    #[command(subcommand)]
    pub action: Action,
}

/// Actions on mailboxes.
#[derive(clap::Subcommand, Debug)]
pub enum Action {
    /// Create, delete, look up and list accounts
    Account {
        /// The action.
        #[command(subcommand)]
        action: directory::AccountAction,
    },
    /// Create, delete, look up, list, count and purge queues
    Queue {
        /// The action.
        #[command(subcommand)]
        action: directory::QueueAction,
    },
    /// Send messages to a queue
    Send(send::SendArgs),
    /// Take the oldest messages of a queue, which removes them
    Receive(receive::ReceiveArgs),
    /// Acknowledge leased messages: they are done with
    Ack(settle::AckArgs),
    /// Keep leased messages for longer
    Extend(settle::ExtendArgs),
    /// Give leased messages back, to be handed out again
    Release(settle::ReleaseArgs),
    /// Show one message by its number; it stays where it is
    #[command(visible_alias = "message")]
    Show {
        /// The message's number
        id: i64,
        /// The account that asks; nobody needs one for a broadcast
        #[arg(long = "as", value_name = "ACCOUNT")]
        reader: Option<String>,
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the oldest message from a sender, in any queue
    Find {
        /// The account that asks
        #[arg(long = "as", value_name = "ACCOUNT")]
        reader: String,
        /// The account that sent it
        #[arg(long, value_name = "ACCOUNT")]
        from: String,
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
    /// List the queues that hold something for an account, or a broadcast
    Queues {
        /// The account that asks; without one: those that hold a broadcast
        #[arg(long = "as", value_name = "ACCOUNT")]
        reader: Option<String>,
        /// Those that hold a broadcast, for any account
        #[arg(long)]
        broadcast: bool,
    },
    /// See whether a node answers; its database is not asked
    Ping {
        /// The text that comes back
        #[arg(default_value = "ping", hide_default_value = true)]
        text: String,
    },
}

/// Runs it.
///
/// # Errors
/// No node answers, or it refuses.
pub async fn run(args: MailboxArgs, options: &ClientOptions) -> anyhow::Result<ExitCode> {
    let target = Target::resolve(options, None)?;
    let client = target.client().connect().await?;
    let mailbox = client.mailbox();
    printed(act(args.action, &mailbox).await)?;
    client.close().await?;
    Ok(ExitCode::SUCCESS)
}

async fn act(action: Action, mailbox: &Mailbox) -> anyhow::Result<()> {
    match action {
        Action::Account { action } => directory::accounts(action, mailbox).await,
        Action::Queue { action } => directory::queues(action, mailbox).await,
        Action::Send(args) => send::run(args, mailbox).await,
        Action::Receive(args) => receive::run(args, mailbox).await,
        Action::Ack(args) => settle::acknowledge(&args, mailbox).await,
        Action::Extend(args) => settle::extend(&args, mailbox).await,
        Action::Release(args) => settle::release(&args, mailbox).await,
        Action::Show { id, reader, json } => {
            let typed = Typed::default();
            let reader = match reader {
                Some(reader) => typed.account(mailbox, &reader).await?,
                None => NOBODY,
            };
            let found = mailbox.look_up(MessageId(id), reader).await;
            let message = found.map_err(|error| typed.name(error))?;
            let mut names = Names::new(mailbox);
            Ok(Printer::new(json).print(&[message], &mut names).await?)
        }
        Action::Find { reader, from, json } => {
            let typed = Typed::default();
            let found = (
                typed.account(mailbox, &from),
                typed.account(mailbox, &reader),
            );
            let (sender, reader) = futures::future::try_join(found.0, found.1).await?;
            let found = mailbox.find_from(sender, reader).await;
            let message = found.map_err(|error| typed.name(error))?;
            let mut names = Names::new(mailbox);
            Ok(Printer::new(json).print(&[message], &mut names).await?)
        }
        Action::Queues { reader, broadcast } => {
            let recipients = match reader {
                Some(reader) => recipients(mailbox.find_account(&reader).await?, broadcast),
                None => Recipients::Broadcast,
            };
            directory::list_holding(recipients, mailbox).await
        }
        Action::Ping { text } => {
            let pong = mailbox.ping(text).await?;
            Ok(Printer::new(false).line(&pong)?)
        }
    }
}

fn recipients(account: AccountId, broadcast: bool) -> Recipients {
    if broadcast {
        Recipients::Broadcast
    } else {
        Recipients::Direct(account)
    }
}
