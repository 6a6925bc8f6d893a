//! `airmail mailbox receive`: the oldest messages of a queue.

use super::shown::{Names, Printer};
use super::typed::Typed;
use airmail_client::ErrorCode;
use airmail_client::mailbox::{BATCH_MAX, Mailbox, Receive, Take, WAIT_MS_MAX};
use airmail_model::quantity::Span;
use std::time::Duration;
use tokio::time::Instant;

/// Arguments of `airmail mailbox receive`.
#[derive(clap::Args, Debug)]
pub struct ReceiveArgs {
    /// The queue
    pub queue: String,
    /// The account that asks
    #[arg(long = "as", value_name = "ACCOUNT")]
    pub reader: String,
    /// Take broadcasts, in place of messages for the account
    #[arg(long)]
    pub broadcast: bool,
    /// Show them, and leave them where they are
    #[arg(long, conflicts_with = "lease")]
    pub peek: bool,
    /// Keep them from others for so long, until they are acknowledged; prints a receipt before each
    #[arg(long, value_name = "TIME")]
    pub lease: Option<Span>,
    /// Wait so long for all that are asked for
    #[arg(long, value_name = "TIME")]
    pub wait: Option<Span>,
    /// Most messages to take [default: 1]
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        hide_default_value = true,
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    pub count: u64,
    /// Print a line of JSON for each message
    #[arg(long)]
    pub json: bool,
}

impl ReceiveArgs {
    fn take(&self) -> Take {
        match self.lease {
            _ if self.peek => Take::Peek,
            Some(Span(lease)) => Take::Lease {
                lease_ms: u64::try_from(lease.as_millis()).unwrap_or(u64::MAX),
            },
            None => Take::Remove,
        }
    }
}

/// Runs it. It fails if there was nothing.
pub(super) async fn run(args: ReceiveArgs, mailbox: &Mailbox) -> anyhow::Result<()> {
    let typed = Typed::default();
    let found = (
        typed.queue(mailbox, &args.queue),
        typed.account(mailbox, &args.reader),
    );
    let (queue, reader) = futures::future::try_join(found.0, found.1).await?;
    let (mut printer, mut names) = (Printer::new(args.json), Names::new(mailbox));
    let take = args.take();
    let wait = args.wait.map_or(Duration::ZERO, |wait| wait.0);
    let deadline = Instant::now().checked_add(wait);
    let mut left = args.count;
    while left > 0 {
        let count = usize::try_from(left).unwrap_or(BATCH_MAX).min(BATCH_MAX);
        let request = Receive {
            broadcast: args.broadcast,
            take,
            count,
            ..Receive::new(queue, reader)
        };
        let rest = deadline.map_or(wait, |until| {
            until.saturating_duration_since(Instant::now())
        });
        let piece = rest.min(Duration::from_millis(WAIT_MS_MAX));
        match mailbox.receive(request, piece).await {
            Ok(messages) => {
                left = left.saturating_sub(messages.len() as u64);
                printer.print(&messages, &mut names).await?;
            }
            // What is there has been taken; or the longest wait is over and another begins.
            Err(error) if error.code() == ErrorCode::QueueIsEmpty => {
                if piece < rest {
                    continue;
                }
                if left < args.count {
                    return Ok(());
                }
                return Err(typed.name(error).into());
            }
            Err(error) => return Err(typed.name(error).into()),
        }
        // They would be shown again.
        if take == Take::Peek {
            return Ok(());
        }
    }
    Ok(())
}
