//! `airmail sub`: prints a topic's messages as they come.

use super::ending::{Ending, until_ended};
use super::filter::filter;
use super::instant::Instant;
use super::lines::{Lines, Shape, printed, tell_expired, tell_gap};
use super::target::Target;
use crate::cli::ClientOptions;
use airmail_client::{Client, Item, Start, Subscription};
use airmail_model::filter::Filter;
use std::process::ExitCode;
use tokio::task::coop::consume_budget;

/// Arguments of `airmail sub`.
#[derive(clap::Args, Debug)]
pub struct SubscribeArgs {
    /// The topic
    pub topic: String,
    /// The namespace [default: the context's, or `default`]
    #[arg(long, value_name = "NS")]
    pub namespace: Option<String>,
    /// Where to begin: earliest, latest, a sequence number, an RFC 3339 time, a length of time
    /// such as 1h, or a position [default: latest]
    #[arg(long, value_name = "PLACE")]
    pub from: Option<Instant>,
    /// End after this many messages
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,
    /// Say on standard error which messages are not printed because they have expired
    #[arg(long)]
    pub tell_expired: bool,
    /// Leave payloads out, and print each message's number and attributes
    #[arg(long)]
    pub headers_only: bool,
    /// Only messages whose attributes match this, such as "price > 20 and region in ('eu', 'us')"
    #[arg(long, value_name = "FILTER", value_parser = filter)]
    pub filter: Option<Filter>,
    /// Have this role: what is addressed to it is printed, too. Believed by a node with security.trust_roles. Repeatable
    #[arg(long = "role", value_name = "NAME")]
    pub roles: Vec<String>,
    /// Print a line of JSON for each message
    #[arg(long)]
    pub json: bool,
}

/// Runs until it is ended, or `--count` is reached. Lost connections are looked for again for ever.
/// Ctrl-C is how it ends by right, with 0; other signals give their codes.
///
/// # Errors
/// No node answers at first, or what ended the subscription.
pub async fn run(args: SubscribeArgs, options: &ClientOptions) -> anyhow::Result<ExitCode> {
    let target = Target::resolve(options, args.namespace.as_deref())?;
    let client: Client = target.client().roles(args.roles).connect().await?;
    let start = args.from.map_or(Start::Latest, Instant::start);
    let request = client.subscribe(&args.topic).from(start);
    let request = request
        .tell_expired(args.tell_expired)
        .headers_only(args.headers_only);
    let request = match args.filter {
        Some(filter) => request.filter(filter.to_string()),
        None => request,
    };
    let mut subscription = request.open().await?;
    let mut lines = Lines::new(Shape::of(args.json, args.headers_only));
    let (done, ended) = until_ended(print(&mut subscription, &mut lines, args.count)).await;
    printed(done.and_then(|()| Ok(lines.flush()?)))?;
    client.close().await?;
    Ok(match ended {
        None => ExitCode::SUCCESS,
        Some(ended) if ended.by == Ending::Interrupted => ExitCode::SUCCESS,
        Some(ended) => ended.by.code(),
    })
}

async fn print(
    subscription: &mut Subscription,
    lines: &mut Lines,
    count: Option<u64>,
) -> anyhow::Result<()> {
    let mut left = count;
    while left != Some(0) {
        consume_budget().await;
        if !subscription.ready() {
            lines.flush()?;
        }
        match subscription.next().await {
            Ok(Some(Item::Message(message))) => {
                lines.message(&message)?;
                left = left.map(|left| left - 1);
            }
            Ok(Some(Item::Gap(gap))) => {
                lines.flush()?;
                tell_gap(&gap);
            }
            Ok(Some(Item::Expired(gone))) => {
                lines.flush()?;
                tell_expired(&gone);
            }
            Ok(None) => break,
            Err(error) => {
                lines.flush()?;
                return Err(error.into());
            }
        }
    }
    Ok(())
}
