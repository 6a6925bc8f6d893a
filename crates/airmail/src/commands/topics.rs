//! `airmail topics`: the topics that hold messages.

use super::ending::until_ended;
use super::lines::printed;
use super::target::Target;
use crate::cli::ClientOptions;
use airmail_client::Topics;
use serde::Serialize;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use tokio::task::coop::consume_budget;

/// Arguments of `airmail topics`.
#[derive(clap::Args, Debug)]
pub struct TopicsArgs {
    /// Only names that begin so
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    pub prefix: String,
    /// The namespace [default: the context's, or `default`]
    #[arg(long, value_name = "NS")]
    pub namespace: Option<String>,
    /// Most topics to list [default: all]
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// Print a line of JSON for each topic
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Serialize)]
struct Line<'a> {
    namespace: &'a str,
    topic: &'a str,
    last_sequence: u64,
}

/// Runs it.
///
/// # Errors
/// No node answers, or it refuses.
pub async fn run(args: TopicsArgs, options: &ClientOptions) -> anyhow::Result<ExitCode> {
    let target = Target::resolve(options, args.namespace.as_deref())?;
    let client = target.client().connect().await?;
    let topics = client.topics().prefix(&args.prefix);
    let mut out = BufWriter::new(io::stdout());
    let (done, ended) = until_ended(print(topics, &args, &target.namespace, &mut out)).await;
    printed(done.and_then(|()| Ok(out.flush()?)))?;
    client.close().await?;
    Ok(ended.map_or(ExitCode::SUCCESS, |ended| ended.by.code()))
}

async fn print(
    mut topics: Topics,
    args: &TopicsArgs,
    namespace: &str,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let mut left = args.limit;
    while left != Some(0) {
        consume_budget().await;
        let Some(topic) = topics.next().await? else {
            break;
        };
        left = left.map(|left| left - 1);
        if args.json {
            let line = Line {
                namespace,
                topic: &topic.name,
                last_sequence: topic.last.0,
            };
            serde_json::to_writer(&mut *out, &line).map_err(io::Error::from)?;
            writeln!(out)?;
        } else {
            writeln!(out, "{}", topic.name)?;
        }
    }
    Ok(())
}
