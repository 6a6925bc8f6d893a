//! `airmail history`: prints the stored messages of a topic, or of a selection of topics, and ends.

use super::ending::until_ended;
use super::filter::filter;
use super::instant::Instant;
use super::lines::{Lines, Shape, printed};
use super::target::Target;
use super::wanted::{Wanted, WantedArgs};
use crate::cli::{ClientOptions, UsageError};
use airmail_client::History;
use airmail_model::filter::Filter;
use std::process::ExitCode;
use tokio::task::coop::consume_budget;

/// Arguments of `airmail history`.
#[derive(clap::Args, Debug)]
pub struct HistoryArgs {
    /// The topics
    #[command(flatten)]
    pub wanted: WantedArgs,
    /// The namespace [default: the context's, or `default`]
    #[arg(long, value_name = "NS")]
    pub namespace: Option<String>,
    /// Where to begin, as in `airmail sub --from` [default: earliest]
    #[arg(long, value_name = "PLACE")]
    pub since: Option<Instant>,
    /// Where to end, that place not included: a sequence number, an RFC 3339 time, or a length of
    /// time such as 1h [default: latest]
    #[arg(long, value_name = "PLACE")]
    pub until: Option<Instant>,
    /// Most messages to print, the oldest [default: all]
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
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

/// Runs it.
///
/// # Errors
/// No node answers, or it refuses.
pub async fn run(args: HistoryArgs, options: &ClientOptions) -> anyhow::Result<ExitCode> {
    let target = Target::resolve(options, args.namespace.as_deref())?;
    let until = args.until.map(Instant::until).transpose();
    let until = until.map_err(UsageError)?;
    let client = target.client().roles(args.roles).connect().await?;
    let request = match args.wanted.wanted() {
        Wanted::Topic(topic) => client.history(topic),
        Wanted::Prefix(prefix) => client.history_prefix(prefix),
        Wanted::Pattern(pattern) => client.history_pattern(&pattern),
        Wanted::Everything => client.history_everything(),
    };
    let mut request = request
        .tell_expired(args.tell_expired)
        .headers_only(args.headers_only);
    if let Some(since) = args.since {
        request = request.since(since.start());
    }
    if let Some(until) = until {
        request = request.until(until);
    }
    if let Some(limit) = args.limit {
        request = request.limit(limit);
    }
    if let Some(filter) = args.filter {
        request = request.filter(filter.to_string());
    }
    let mut history = request.open()?;
    let mut lines = Lines::new(Shape::of(args.json, args.headers_only));
    if args.wanted.is_selection() {
        lines = lines.of_any_topic();
    }
    let (done, ended) = until_ended(print(&mut history, &mut lines)).await;
    printed(done.and_then(|()| Ok(lines.flush()?)))?;
    client.close().await?;
    Ok(ended.map_or(ExitCode::SUCCESS, |ended| ended.by.code()))
}

async fn print(history: &mut History, lines: &mut Lines) -> anyhow::Result<()> {
    loop {
        consume_budget().await;
        if !history.ready() {
            lines.flush()?;
        }
        match history.next().await {
            Ok(Some(item)) => lines.item(&item)?,
            Ok(None) => return Ok(()),
            Err(error) => {
                lines.flush()?;
                return Err(error.into());
            }
        }
    }
}
