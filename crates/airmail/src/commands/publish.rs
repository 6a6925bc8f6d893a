//! `airmail pub`: publishes an argument, standard input, or each line of standard input.
//!
//! With `--lines` the lines go out as they come, many at once where many are there; when the node
//! is slow, reading waits. A lost connection is waited for (`--timeout`), and nothing is lost or
//! published twice over it. Ended by a signal, it stores the messages that it has read, and says
//! how many they were.

mod attribute;
mod lines;

use super::input;
use super::target::{Target, timeout};
use crate::cli::ClientOptions;
use airmail_client::{AttributeValue, Client, Error, Lane, Message};
use airmail_model::{Limits, RoleId, TopicName};
use attribute::attribute;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::process::ExitCode;
use std::time::Duration;

/// Default time in which a message must be stored: a node may be away for a while.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(300);

/// Arguments of `airmail pub`.
#[derive(clap::Args, Debug)]
pub struct PublishArgs {
    /// The topic; with --lines, {} in it stands for the line's first word
    pub topic: String,
    /// The message [default: standard input, all of it]
    pub payload: Option<OsString>,
    /// The namespace [default: the context's, or `default`]
    #[arg(long, value_name = "NS")]
    pub namespace: Option<String>,
    /// An attribute of each message. K=V is text; K:=V is a number, true or false. Repeatable
    #[arg(long = "attr", value_name = "K=V", value_parser = attribute)]
    pub attributes: Vec<(String, AttributeValue)>,
    /// The lane, normal or high: messages of lane high overtake those of lane normal wherever they wait [default: normal]
    #[arg(long, value_name = "LANE", default_value_t = Lane::Normal, hide_default_value = true)]
    pub lane: Lane,
    /// Time to live: this long after it was stored, a message is given to nobody any more, as 5s [default: for ever]
    #[arg(long, value_name = "TIME", value_parser = ttl_ms)]
    pub ttl: Option<u32>,
    /// Have each message given only to who has this role, or another one that is named. Repeatable
    #[arg(long = "to-role", value_name = "NAME")]
    pub to_roles: Vec<String>,
    /// Publish each line of standard input as a message
    #[arg(long, conflicts_with = "payload")]
    pub lines: bool,
    /// Longest time for a message to be stored, and a node to be found, lost connections included
    /// [default: 5m, and 5s for a node to be there at first]
    #[arg(long, value_name = "TIME", value_parser = timeout)]
    pub timeout: Option<Duration>,
}

/// Runs it.
///
/// # Errors
/// No node answers at first, or a message is not stored.
pub async fn run(args: PublishArgs, options: &ClientOptions) -> anyhow::Result<ExitCode> {
    let mut target = Target::resolve(options, args.namespace.as_deref())?;
    target.timeout = args.timeout;
    if !args.lines {
        // Before anything is read or connected to.
        topic_name(&args.topic)?;
    }
    let patience = args.timeout.unwrap_or(DELIVERY_TIMEOUT);
    let builder = target.client().delivery_timeout(patience);
    let client = builder.connect().await?;
    let audience = audience(&args.to_roles, &client).await?;
    if args.lines {
        return lines::publish(&args, audience, client).await;
    }
    let published = publish_one(args, audience, &client).await;
    let closed = client.close().await;
    published?;
    closed?;
    Ok(ExitCode::SUCCESS)
}

/// The numbers of roles.
async fn audience(roles: &[String], client: &Client) -> anyhow::Result<Vec<RoleId>> {
    let admin = client.admin();
    let mut found = Vec::with_capacity(roles.len());
    for role in roles {
        found.push(admin.role(role).await?.id);
    }
    Ok(found)
}

async fn publish_one(
    args: PublishArgs,
    audience: Vec<RoleId>,
    client: &Client,
) -> anyhow::Result<()> {
    let payload = match args.payload {
        Some(payload) => payload.into_vec(),
        None => input::whole()?,
    };
    let mut message = Message::new(topic_name(&args.topic)?, payload);
    message.lane = args.lane;
    message.attributes = args.attributes;
    message.ttl_ms = args.ttl;
    message.audience = audience;
    client.publisher().send(message).await?.await?;
    Ok(())
}

/// A time to live as it is typed, in milliseconds.
fn ttl_ms(text: &str) -> Result<u32, String> {
    let parsed = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    match u32::try_from(parsed.as_millis()) {
        Ok(ms) if ms > 0 => Ok(ms),
        _ => Err(format!("expected 1ms to {} ms, some 49 days", u32::MAX)),
    }
}

/// A topic's name; the node's limits are checked when it is encoded.
fn topic_name(name: &str) -> Result<TopicName, Error> {
    TopicName::new(name, &Limits::DEFAULT)
}
