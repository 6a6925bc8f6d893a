//! `airmail sub`: prints the messages of a topic, or of a selection of topics, as they come.

use super::ending::{Ending, until_ended};
use super::filter::filter;
use super::instant::Instant;
use super::lines::{Lines, Shape, printed};
use super::target::Target;
use super::wanted::{Wanted, WantedArgs};
use crate::cli::ClientOptions;
use airmail_client::{Client, Error, Item, Start, Subscription};
use airmail_model::filter::Filter;
use std::process::ExitCode;
use tokio::task::coop::consume_budget;

/// Arguments of `airmail sub`.
#[derive(clap::Args, Debug)]
pub struct SubscribeArgs {
    /// The topics
    #[command(flatten)]
    pub wanted: WantedArgs,
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
    let client: Client = target.client().roles(args.roles.clone()).connect().await?;
    let mut messages = open(&client, &args).await?;
    let mut lines = Lines::new(Shape::of(args.json, args.headers_only));
    if args.wanted.is_selection() {
        lines = lines.of_any_topic();
    }
    let (done, ended) = until_ended(print(&mut messages, &mut lines, args.count)).await;
    printed(done.and_then(|()| Ok(lines.flush()?)))?;
    client.close().await?;
    Ok(match ended {
        None => ExitCode::SUCCESS,
        Some(ended) if ended.by == Ending::Interrupted => ExitCode::SUCCESS,
        Some(ended) => ended.by.code(),
    })
}

async fn open(client: &Client, args: &SubscribeArgs) -> Result<Subscription, Error> {
    let request = match args.wanted.wanted() {
        Wanted::Topic(topic) => client.subscribe(topic),
        Wanted::Prefix(prefix) => client.subscribe_prefix(prefix),
        Wanted::Pattern(pattern) => client.subscribe_pattern(&pattern),
        Wanted::Everything => client.subscribe_everything(),
    };
    let request = request
        .from(args.start())
        .tell_expired(args.tell_expired)
        .headers_only(args.headers_only);
    let request = match &args.filter {
        Some(filter) => request.filter(filter.to_string()),
        None => request,
    };
    request.open().await
}

impl SubscribeArgs {
    fn start(&self) -> Start {
        let from = self.from.clone();
        from.map_or(Start::Latest, Instant::start)
    }
}

async fn print(
    messages: &mut Subscription,
    lines: &mut Lines,
    count: Option<u64>,
) -> anyhow::Result<()> {
    let mut left = count;
    while left != Some(0) {
        consume_budget().await;
        if !messages.ready() {
            lines.flush()?;
        }
        match messages.next().await {
            Ok(Some(item)) => {
                lines.item(&item)?;
                let is_message = matches!(item, Item::Message(_));
                left = left.map(|left| left - u64::from(is_message));
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
