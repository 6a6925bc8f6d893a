//! Messages on standard output: as lines of text, or as lines of JSON.

use airmail_client::{AttributeValue, Expired, Gap, Item, Received};
use airmail_model::frame::GapReason;
use airmail_model::{AppendTime, Sequence};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::io::{self, BufWriter, ErrorKind, Stdout, Write};

/// Collected before it is written, if more is there at once.
const BUFFER_BYTES: usize = 64 << 10;

/// Writes messages.
#[derive(Debug)]
pub struct Lines {
    out: BufWriter<Stdout>,
    shape: Shape,
    /// Messages are of any topic: each line says which, and each gap of which log it is.
    are_of_any_topic: bool,
}

/// Content of a line for a message.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// Its payload.
    Payload,
    /// Its number and its attributes, as `pub --attr` takes them.
    Headers,
    /// Everything, as JSON; the payload only if it came.
    Json {
        /// Payloads come.
        payload: bool,
    },
}

impl Shape {
    /// Gives the one that the options `--json` and `--headers-only` ask for.
    #[must_use]
    pub fn of(json: bool, headers_only: bool) -> Shape {
        match (json, headers_only) {
            (true, _) => Shape::Json {
                payload: !headers_only,
            },
            (false, true) => Shape::Headers,
            (false, false) => Shape::Payload,
        }
    }
}

/// A message as a line of JSON; the fields are in this order, for ever.
#[derive(Debug, Serialize)]
struct Line<'a> {
    namespace: &'a str,
    topic: &'a str,
    sequence: u64,
    lane: String,
    appended_at: String,
    attributes: Attributes<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_ms: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_base64: Option<String>,
    position: String,
}

#[derive(Debug)]
struct Attributes<'a>(&'a [(String, AttributeValue)]);

impl Serialize for Attributes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in self.0 {
            match value {
                AttributeValue::String(text) => map.serialize_entry(name, text)?,
                AttributeValue::Integer(number) => map.serialize_entry(name, number)?,
                AttributeValue::Float(number) => map.serialize_entry(name, number)?,
                AttributeValue::Bool(flag) => map.serialize_entry(name, flag)?,
            }
        }
        map.end()
    }
}

impl<'a> Line<'a> {
    fn of(message: &'a Received, payload: bool) -> Line<'a> {
        let text = std::str::from_utf8(&message.payload).ok();
        let bytes = text.is_none().then(|| STANDARD.encode(&message.payload));
        Line {
            namespace: message.namespace(),
            topic: message.topic(),
            sequence: message.sequence.0,
            lane: message.lane.to_string(),
            appended_at: time_text(message.appended),
            attributes: Attributes(&message.attributes),
            ttl_ms: message.ttl_ms,
            payload: text.filter(|_| payload),
            payload_base64: bytes.filter(|_| payload),
            position: message.position().to_string(),
        }
    }
}

/// A time as RFC 3339 with microseconds.
#[must_use]
pub fn time_text(time: AppendTime) -> String {
    match jiff::Timestamp::from_microsecond(time.0) {
        Ok(timestamp) => format!("{timestamp:.6}"),
        Err(_) => time.0.to_string(),
    }
}

impl Lines {
    /// Prints on standard output.
    #[must_use]
    pub fn new(shape: Shape) -> Lines {
        Lines {
            out: BufWriter::with_capacity(BUFFER_BYTES, io::stdout()),
            shape,
            are_of_any_topic: false,
        }
    }

    /// Says of each message of which topic it is: before it, and a tab, which is in no topic's name.
    #[must_use]
    pub fn of_any_topic(self) -> Lines {
        Lines {
            are_of_any_topic: true,
            ..self
        }
    }

    /// Writes a message, as [`Lines::message`]; tells anything else on standard error, behind what is collected.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn item(&mut self, item: &Item) -> io::Result<()> {
        match item {
            Item::Message(message) => return self.message(message),
            Item::Gap(gap) => {
                self.flush()?;
                tell_gap(gap, self.are_of_any_topic);
            }
            Item::Expired(gone) => {
                self.flush()?;
                tell_expired(gone, self.are_of_any_topic);
            }
        }
        Ok(())
    }

    /// Writes a message; it may wait until [`Lines::flush`].
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn message(&mut self, message: &Received) -> io::Result<()> {
        let says_topic = !matches!(self.shape, Shape::Json { .. });
        if self.are_of_any_topic && says_topic {
            write!(self.out, "{}\t", message.topic())?;
        }
        match self.shape {
            Shape::Payload => self.out.write_all(&message.payload)?,
            Shape::Headers => self.headers(message)?,
            Shape::Json { payload } => {
                serde_json::to_writer(&mut self.out, &Line::of(message, payload))?;
            }
        }
        self.out.write_all(b"\n")
    }

    fn headers(&mut self, message: &Received) -> io::Result<()> {
        write!(self.out, "{}", message.sequence)?;
        for (name, value) in &message.attributes {
            match value {
                AttributeValue::String(text) => write!(self.out, " {name}={text}")?,
                AttributeValue::Integer(number) => write!(self.out, " {name}:={number}")?,
                AttributeValue::Float(number) => write!(self.out, " {name}:={number:?}")?,
                AttributeValue::Bool(flag) => write!(self.out, " {name}:={flag}")?,
            }
        }
        Ok(())
    }

    /// Writes the collected lines.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Tells a gap on standard error: standard output is for messages.
#[expect(clippy::print_stderr, reason = "for whoever watches the command")]
fn tell_gap(gap: &Gap, of_log: bool) {
    let log = of_log.then(|| format!(" of log {}", gap.log));
    let log = log.unwrap_or_default();
    let reason = match gap.reason {
        GapReason::Unused => "unused",
        GapReason::Retention => "retention",
        GapReason::Loss => "loss",
    };
    if gap.last == Sequence::MAX.before() {
        eprintln!(
            "airmail: gap from {} on{log} ({reason}: its storage has nothing left of the log)",
            gap.first
        );
    } else if gap.last == Sequence::MAX {
        eprintln!(
            "airmail: gap from {} on{log} ({reason}: the log began anew, since its node was restored from \
             an older copy or kept it in memory; what follows is all that it holds now)",
            gap.first
        );
    } else {
        eprintln!("airmail: gap {} to {}{log} ({reason})", gap.first, gap.last);
    }
}

/// Tells a message that has expired on standard error.
#[expect(clippy::print_stderr, reason = "for whoever watches the command")]
fn tell_expired(gone: &Expired, of_log: bool) {
    let log = of_log.then(|| format!(" of log {}", gone.log));
    eprintln!(
        "airmail: expired {}{}",
        gone.sequence,
        log.unwrap_or_default()
    );
}

/// Result of a command that prints: success if the reader has closed its output; if standard output
/// cannot be written, the error says so.
///
/// A bare I/O error is one of standard output. Errors of other files come with words that name the
/// file, and are reported by them.
///
/// # Errors
/// Any other than that the output was closed.
pub fn printed(result: anyhow::Result<()>) -> anyhow::Result<()> {
    let Err(error) = result else {
        return Ok(());
    };
    let outermost = error.chain().next();
    match outermost.and_then(|error| error.downcast_ref::<io::Error>()) {
        Some(failed) if failed.kind() == ErrorKind::BrokenPipe => Ok(()),
        Some(_) => Err(error.context("writing standard output")),
        None => Err(error),
    }
}

/// Says something on standard output, at once.
///
/// # Errors
/// As [`printed`].
pub fn say(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let said = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    printed(said.map_err(anyhow::Error::from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;

    #[test]
    fn only_a_bare_error_is_one_of_standard_output() {
        let failed = |kind: ErrorKind| Err::<(), _>(io::Error::from(kind));
        let told = printed(failed(ErrorKind::StorageFull).map_err(Into::into));
        let told = format!("{:#}", told.unwrap_err());
        assert!(told.starts_with("writing standard output: "), "{told}");
        assert!(printed(failed(ErrorKind::BrokenPipe).map_err(Into::into)).is_ok());
        // A peer that closes its connection is no reader who has had enough.
        for kind in [ErrorKind::BrokenPipe, ErrorKind::ConnectionRefused] {
            let told = printed(failed(kind).context("--bootstrap a:1"));
            let told = format!("{:#}", told.unwrap_err());
            assert!(told.starts_with("--bootstrap a:1: "), "{told}");
        }
    }
}
