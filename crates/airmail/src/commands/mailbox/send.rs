//! `airmail mailbox send`: one message, or one for each line of standard input.

use super::recipients;
use super::shown::Printer;
use super::typed::Typed;
use crate::commands::input::{self, Input};
use airmail_client::Error;
use airmail_client::mailbox::{Mailbox, MessageId, Outgoing, Recipients};
use airmail_model::quantity::Span;
use anyhow::Context as _;
use bytes::Bytes;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

/// Arguments of `airmail mailbox send`.
#[derive(clap::Args, Debug)]
#[command(group = clap::ArgGroup::new("recipients").required(true))]
pub struct SendArgs {
    /// The queue
    pub queue: String,
    /// The message [default: all of standard input]
    #[arg(value_name = "TEXT", conflicts_with = "lines")]
    pub text: Option<OsString>,
    /// The account that sends
    #[arg(long, value_name = "ACCOUNT")]
    pub from: String,
    /// The account that it is for
    #[arg(long, value_name = "ACCOUNT", group = "recipients")]
    pub to: Option<String>,
    /// It is for whoever reads it first
    #[arg(long, group = "recipients")]
    pub broadcast: bool,
    /// Send each line of standard input as a message
    #[arg(long)]
    pub lines: bool,
    /// 0 to 9; higher goes first
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub priority: u8,
    /// Messages of one key are handed out in order, each when the one before is done with
    #[arg(long, value_name = "TEXT")]
    pub key: Option<String>,
    /// Keep it back for so long
    #[arg(long, value_name = "TIME")]
    pub delay: Option<Span>,
    /// It expires if nobody has read it for so long
    #[arg(long, value_name = "TIME")]
    pub lifetime: Option<Span>,
    /// Print a line of JSON with each message's number
    #[arg(long)]
    pub json: bool,
}

/// Runs it.
pub(super) async fn run(args: SendArgs, mailbox: &Mailbox) -> anyhow::Result<()> {
    let text = args.text.clone();
    let typed = Typed::default();
    let like = first(&args, &typed, mailbox).await?;
    let mut printer = args.json.then(|| Printer::new(true));
    if !args.lines {
        let content = match text {
            Some(text) => text.into_vec().into(),
            None => input::whole()?.into(),
        };
        let sent = mailbox.send(Outgoing { content, ..like }).await;
        return told(sent.map_err(|error| typed.name(error)), printer.as_mut());
    }
    let mut input = Input::of_stdin()?;
    while let Some(chunk) = input.next().await? {
        let messages = chunk.lines.into_iter().map(|content| Outgoing {
            content,
            ..like.clone()
        });
        let sent = mailbox.send_all(messages.collect()).await;
        for (sent, line) in sent.into_iter().zip(chunk.first..) {
            let sent = sent.map_err(|error| typed.name(error));
            told(sent, printer.as_mut()).with_context(|| format!("line {line}"))?;
        }
    }
    Ok(())
}

/// A message without content yet.
async fn first(args: &SendArgs, typed: &Typed, mailbox: &Mailbox) -> Result<Outgoing, Error> {
    let to = async {
        match &args.to {
            Some(to) => typed.account(mailbox, to).await.map(Some),
            None => Ok(None),
        }
    };
    let (queue, from) = (
        typed.queue(mailbox, &args.queue),
        typed.account(mailbox, &args.from),
    );
    let (queue, from, to) = futures::future::try_join3(queue, from, to).await?;
    let recipients = to.map_or(Recipients::Broadcast, |to| recipients(to, false));
    let millis = |span: Span| u64::try_from(span.0.as_millis()).unwrap_or(u64::MAX);
    Ok(Outgoing {
        priority: args.priority,
        key: args.key.clone(),
        delay_ms: args.delay.map_or(0, millis),
        lifetime_ms: args.lifetime.map(millis),
        ..Outgoing::new(queue, from, recipients, Bytes::new())
    })
}

fn told(sent: Result<MessageId, Error>, printer: Option<&mut Printer>) -> anyhow::Result<()> {
    let id = sent?;
    match printer {
        Some(printer) => Ok(printer.line(format!("{{\"id\":{id}}}").as_bytes())?),
        None => Ok(()),
    }
}
