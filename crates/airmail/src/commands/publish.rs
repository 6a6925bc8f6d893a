//! `airmail pub`: publishes an argument, standard input, or each line of standard input.
//!
//! With `--lines` the lines go out as they come, many at once where many are there; when the node
//! is slow, reading waits. A lost connection is waited for (`--timeout`), and nothing is lost or
//! published twice over it.

use super::input::{Chunk, Input, MESSAGE_BYTES_MAX, too_long};
use super::target::Target;
use crate::cli::ClientOptions;
use airmail_client::{AttributeValue, Client, Error, Message, Publisher, SummaryReceipt};
use airmail_model::{Limits, TopicName};
use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{IsTerminal as _, Read as _};
use std::os::unix::ffi::OsStringExt as _;
use std::process::ExitCode;
use std::time::Duration;

/// Chunks of lines that wait for their acks.
const CHUNKS_OUT: usize = 64;

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
    /// Publish each line of standard input as a message
    #[arg(long, conflicts_with = "payload")]
    pub lines: bool,
    /// How long a message may take to be stored, lost connections included
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = timeout)]
    pub timeout: Duration,
}

fn timeout(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(Duration::ZERO) => Err("expected more than 0, such as 30s".into()),
        parsed => parsed.map_err(|error| error.to_string()),
    }
}

fn attribute(text: &str) -> Result<(String, AttributeValue), String> {
    let (name, value) = text.split_once('=').ok_or("expected K=V or K:=V")?;
    let Some(name) = name.strip_suffix(':') else {
        return Ok((name.to_owned(), value.into()));
    };
    let typed = if let Ok(number) = value.parse::<i64>() {
        number.into()
    } else if let Ok(number) = value.parse::<f64>() {
        number.into()
    } else if let Ok(flag) = value.parse::<bool>() {
        flag.into()
    } else {
        return Err("expected a number, true or false after :=".into());
    };
    Ok((name.to_owned(), typed))
}

/// Runs it.
///
/// # Errors
/// No node answers at first, or a message is not stored.
pub async fn run(args: PublishArgs, options: &ClientOptions) -> anyhow::Result<ExitCode> {
    let target = Target::resolve(options, args.namespace.as_deref())?;
    if !args.lines {
        // Before anything is read or connected to.
        topic_name(&args.topic)?;
    }
    let builder = target.client().delivery_timeout(args.timeout);
    let client = builder.connect().await?;
    let published = if args.lines {
        publish_lines(&args, &client).await
    } else {
        publish_one(args, &client).await
    };
    let closed = client.close().await;
    published?;
    closed?;
    Ok(ExitCode::SUCCESS)
}

async fn publish_one(args: PublishArgs, client: &Client) -> anyhow::Result<()> {
    let payload = match args.payload {
        Some(payload) => payload.into_vec(),
        None => {
            let mut all = Vec::new();
            let mut input = std::io::stdin().lock().take(MESSAGE_BYTES_MAX + 1);
            let read = input
                .read_to_end(&mut all)
                .context("reading standard input")?;
            if read as u64 > MESSAGE_BYTES_MAX {
                return Err(too_long().into());
            }
            all
        }
    };
    let mut message = Message::new(topic_name(&args.topic)?, payload);
    message.attributes = args.attributes;
    client.publisher().send(message).await?.await?;
    Ok(())
}

/// A topic's name; the node's limits are checked when it is encoded.
fn topic_name(name: &str) -> Result<TopicName, Error> {
    TopicName::new(name, &Limits::DEFAULT)
}

/// What has been handed over and is not acknowledged.
struct Pending {
    receipts: VecDeque<SummaryReceipt>,
    stored: u64,
    progress: ProgressBar,
}

impl Pending {
    /// Waits until no more than `most` chunks are not acknowledged.
    async fn settle(&mut self, most: usize) -> anyhow::Result<()> {
        while self.receipts.len() > most {
            let Some(receipt) = self.receipts.pop_front() else {
                return Ok(());
            };
            let summary = receipt.await?;
            self.stored += summary.stored;
            self.progress.set_position(self.stored);
            if let Some(error) = summary.error {
                let stored = self.stored;
                return Err(error).with_context(|| format!("after {stored} messages stored"));
            }
        }
        Ok(())
    }
}

async fn publish_lines(args: &PublishArgs, client: &Client) -> anyhow::Result<()> {
    let publisher = client.publisher();
    let mut input = Input::of_stdin()?;
    let mut topics = Topics::new(&args.topic);
    let mut pending = Pending {
        receipts: VecDeque::new(),
        stored: 0,
        progress: progress(),
    };
    loop {
        // While input is slow, what was handed over before is looked after.
        let chunk = tokio::select! {
            biased;
            chunk = input.next() => chunk?,
            interrupted = tokio::signal::ctrl_c() => {
                interrupted?;
                break;
            }
        };
        let Some(chunk) = chunk else { break };
        send(chunk, &mut topics, args, &publisher, &mut pending).await?;
        pending.settle(CHUNKS_OUT).await?;
    }
    tokio::select! {
        settled = pending.settle(0) => settled?,
        // A second interruption does not wait.
        interrupted = tokio::signal::ctrl_c() => {
            interrupted?;
            anyhow::bail!("interrupted after {} messages stored", pending.stored);
        }
    }
    pending.progress.finish();
    Ok(())
}

async fn send(
    chunk: Chunk,
    topics: &mut Topics,
    args: &PublishArgs,
    publisher: &Publisher,
    pending: &mut Pending,
) -> anyhow::Result<()> {
    let mut messages = Vec::with_capacity(chunk.lines.len());
    let mut refused = None;
    for (line, number) in chunk.lines.into_iter().zip(chunk.first..) {
        match topics.of(&line) {
            Ok(topic) => {
                let mut message = Message::new(topic, line);
                message.attributes.clone_from(&args.attributes);
                messages.push(message);
            }
            Err(error) => {
                refused = Some((error, number));
                break;
            }
        }
    }
    pending
        .receipts
        .push_back(publisher.send_all(messages).await?);
    match refused {
        None => Ok(()),
        Some((error, number)) => {
            pending.settle(0).await?;
            Err(error).with_context(|| format!("line {number}"))
        }
    }
}

/// The topics of lines: one for all, or by each line's first word.
struct Topics {
    pattern: String,
    /// The last one: logs repeat themselves.
    last: Option<(String, TopicName)>,
}

impl Topics {
    fn new(pattern: &str) -> Topics {
        Topics {
            pattern: pattern.to_owned(),
            last: None,
        }
    }

    fn of(&mut self, line: &[u8]) -> Result<TopicName, Error> {
        let word = if self.pattern.contains("{}") {
            let mut words = line
                .split(u8::is_ascii_whitespace)
                .filter(|word| !word.is_empty());
            String::from_utf8_lossy(words.next().unwrap_or_default()).into_owned()
        } else {
            String::new()
        };
        if let Some((last, topic)) = &self.last
            && *last == word
        {
            return Ok(topic.clone());
        }
        let topic = topic_name(&self.pattern.replace("{}", &word))?;
        self.last = Some((word, topic.clone()));
        Ok(topic)
    }
}

/// Shown while it takes long, where somebody watches.
fn progress() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{human_pos} messages stored, {per_sec}, {elapsed}");
    let bar = ProgressBar::new_spinner();
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_is_text_unless_it_says_otherwise() {
        let read = |text: &str| attribute(text).map(|(_, value)| value);
        assert_eq!(attribute("a=1=2").unwrap(), ("a".into(), "1=2".into()));
        assert_eq!(read("a:=-3"), Ok(AttributeValue::Integer(-3)));
        assert_eq!(read("a:=2.5"), Ok(AttributeValue::Float(2.5)));
        assert_eq!(read("a:=true"), Ok(AttributeValue::Bool(true)));
        assert!(read("a:=yes").is_err() && read("a").is_err());
    }

    #[test]
    fn a_lines_first_word_can_name_its_topic() {
        let mut topics = Topics::new("log.{}.x");
        assert_eq!(
            topics.of(b"  install curl").unwrap().as_str(),
            "log.install.x"
        );
        assert_eq!(
            topics.of(b"install curl").unwrap().as_str(),
            "log.install.x"
        );
        assert_eq!(topics.of(b"").unwrap().as_str(), "log..x");
        assert!(Topics::new("{}").of(b" ").is_err());
        assert_eq!(Topics::new("plain").of(b"a b").unwrap().as_str(), "plain");
    }
}
