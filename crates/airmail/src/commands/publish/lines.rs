//! `airmail pub --lines`: each line of standard input is a message.
//!
//! However it ends, every message that was handed over is waited for, and the summary counts all of
//! them: after an interrupt, or a line that cannot be published, the user knows how many messages
//! are stored.

use super::super::ending::{Ending, Endings};
use super::super::input::{Chunk, Input};
use super::super::status_line::{StatusLine, rate};
use super::{PublishArgs, topic_name};
use airmail_client::{Client, Error, ErrorCode, Message, Publisher, SummaryFuture};
use airmail_model::{RoleId, TopicName};
use std::collections::VecDeque;
use std::process::ExitCode;

/// Chunks of lines that wait for their acks.
const CHUNKS_OUT: usize = 64;

/// Ends of the reading of lines.
enum Read {
    /// All are handed over.
    All,
    /// A message was not stored.
    Failed,
    /// The line with this number cannot be published.
    Refused(u64, Error),
}

/// Publishes all lines, for these roles.
///
/// # Errors
/// Standard input cannot be read; a line cannot be published, or was not stored.
pub(super) async fn publish(
    args: &PublishArgs,
    audience: Vec<RoleId>,
    client: Client,
) -> anyhow::Result<ExitCode> {
    // One for all of it: no signal is lost while it is not waited for.
    let mut endings = Endings::new()?;
    let mut input = Input::of_stdin()?;
    let mut work = Work {
        args,
        audience,
        publisher: client.publisher(),
        topics: Topics::new(&args.topic),
        pending: Pending::default(),
    };
    let (read, ending) = tokio::select! {
        read = work.take_in(&mut input) => (read, None),
        ending = endings.next() => (Ok(Read::All), Some(ending)),
    };
    let mut pending = work.pending;
    let second = tokio::select! {
        settled = pending.settle(0) => {
            settled?;
            None
        }
        // Whoever asks twice does not wait.
        ending = endings.next() => Some(ending),
    };
    pending.progress.end();
    let told = pending.told(read, ending.or(second), second.is_some());
    if second.is_none() {
        client.close().await?;
    }
    told
}

/// The work of publishing lines: options, publisher and messages on their way.
struct Work<'a> {
    args: &'a PublishArgs,
    audience: Vec<RoleId>,
    publisher: Publisher,
    topics: Topics,
    pending: Pending,
}

impl Work<'_> {
    /// Hands over lines until there are no more, or one fails.
    ///
    /// # Cancel safety
    /// Lines that were not handed over yet are lost, and no others.
    async fn take_in(&mut self, input: &mut Input) -> anyhow::Result<Read> {
        while let Some(chunk) = input.next().await? {
            let refused = self.send(chunk).await?;
            self.pending.settle(CHUNKS_OUT).await?;
            if let Some((line, error)) = refused {
                return Ok(Read::Refused(line, error));
            }
            if self.pending.error.is_some() {
                return Ok(Read::Failed);
            }
        }
        Ok(Read::All)
    }

    /// Hands a chunk over, up to a line that cannot be published.
    async fn send(&mut self, chunk: Chunk) -> anyhow::Result<Option<(u64, Error)>> {
        let mut messages = Vec::with_capacity(chunk.lines.len());
        let mut refused = None;
        for (line, number) in chunk.lines.into_iter().zip(chunk.first..) {
            match self.topics.of(&line) {
                Ok(topic) => {
                    let mut message = Message::new(topic, line).lane(self.args.lane);
                    message.attributes.clone_from(&self.args.attributes);
                    message.ttl_ms = self.args.ttl;
                    message.audience.clone_from(&self.audience);
                    messages.push(message);
                }
                Err(error) => {
                    refused = Some((number, error));
                    break;
                }
            }
        }
        let ack = self.publisher.send_all(messages).await?;
        self.pending.acks.push_back(ack);
        Ok(refused)
    }
}

/// Messages that were handed over, and their outcomes.
struct Pending {
    acks: VecDeque<SummaryFuture>,
    stored: u64,
    failed: u64,
    /// Error of the first message that failed.
    error: Option<Error>,
    progress: StatusLine,
}

impl Default for Pending {
    fn default() -> Pending {
        Pending {
            acks: VecDeque::new(),
            stored: 0,
            failed: 0,
            error: None,
            progress: StatusLine::begin(),
        }
    }
}

impl Pending {
    /// Waits until no more than `most` chunks are not acknowledged.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped before it is done.
    async fn settle(&mut self, most: usize) -> anyhow::Result<()> {
        while self.acks.len() > most
            && let Some(ack) = self.acks.front_mut()
        {
            let summary = ack.await?;
            self.acks.pop_front();
            self.stored += summary.stored;
            self.failed += summary.failed;
            self.error = self.error.take().or(summary.error);
            let stored = self.stored;
            self.progress
                .show(|since| format!("messages stored: {}", rate(stored, since)));
        }
        Ok(())
    }

    /// Tells what became of all of it.
    fn told(
        self,
        read: anyhow::Result<Read>,
        ending: Option<Ending>,
        at_once: bool,
    ) -> anyhow::Result<ExitCode> {
        let mut count = format!("{} messages stored", self.stored);
        if self.failed > 0 {
            count = format!("{count}, {} not, or not for certain", self.failed);
        }
        if at_once {
            count = format!("{count}, and perhaps some that were under way");
        }
        if let Some(ending) = ending {
            remark(&format!("ended by {} after {count}", ending.name()));
        }
        let after = format!("after {count}");
        let read = read.map_err(|error| error.context(after.clone()))?;
        match (read, self.error, ending) {
            (Read::Refused(line, error), _, _) => {
                let error = anyhow::Error::from(error).context(after);
                Err(error.context(format!("line {line}")))
            }
            (_, Some(error), _) => Err(anyhow::Error::from(error).context(after)),
            (_, None, Some(ending)) => Ok(ending.code()),
            (_, None, None) => Ok(ExitCode::SUCCESS),
        }
    }
}

#[expect(clippy::print_stderr, reason = "a command's remark")]
fn remark(text: &str) {
    eprintln!("airmail: {text}");
}

/// The topics of lines: one for all, or by each line's first word.
struct Topics {
    pattern: String,
    /// The last one: logs repeat themselves.
    last: Option<(Vec<u8>, TopicName)>,
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
            first_word(line)
        } else {
            b""
        };
        if let Some((last, topic)) = &self.last
            && last == word
        {
            return Ok(topic.clone());
        }
        let text = std::str::from_utf8(word).map_err(|_| {
            let shown = word.escape_ascii().to_string();
            Error::new(ErrorCode::TopicInvalid)
                .field("topic")
                .value(self.pattern.replace("{}", &shown))
                .limit("UTF-8")
        })?;
        let topic = topic_name(&self.pattern.replace("{}", text))?;
        self.last = Some((word.to_vec(), topic.clone()));
        Ok(topic)
    }
}

fn first_word(line: &[u8]) -> &[u8] {
    let mut words = line.split(u8::is_ascii_whitespace);
    words.find(|word| !word.is_empty()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn words_that_are_no_text_name_no_topic_and_do_not_fall_together() {
        let mut topics = Topics::new("t/{}");
        for word in [&b"\xff"[..], b"\xfe x", b"a\xc3"] {
            let error = topics.of(word).unwrap_err();
            assert_eq!(error.code(), ErrorCode::TopicInvalid);
            assert_eq!(error.expected(), "UTF-8");
        }
        assert_eq!(topics.of(b"\xff").unwrap_err().found(), "t/\\xff");
        // Where the word names nothing it may be any bytes.
        assert_eq!(Topics::new("t").of(b"\xff").unwrap().as_str(), "t");
    }
}
