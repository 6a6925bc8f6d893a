//! Words that the transcripts of gateway, tower and catalog have in common. What one of them tells another is
//! written the same way on both sides; for the link this is in [`link`].

pub(crate) mod link;

use airmail_log::{AppendClock, Bounds, Capabilities, Dedup, Numbering, Stored};
use airmail_model::batch::BatchTarget;
use airmail_model::frame::Delivered;
use airmail_model::{
    AppendTime, Batch, BatchEncoder, Checked, Durability, Extent, Incarnation, Lane, Limits, LogId,
    LogIndex, MapEpoch, Message, NamespaceId, Provisions, Sequence, TopicHash, TopicName,
};
use airmail_testkit::transcript::{Transcript, parts};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The namespace of the transcripts, and its only log.
pub(crate) const NAMESPACE: NamespaceId = NamespaceId(1);
pub(crate) const LOG: LogId = LogId {
    namespace: NAMESPACE,
    lane: Lane::Normal,
    index: LogIndex(0),
};

/// The log of the namespace after a move.
pub(crate) const NEXT: LogId = LogId {
    index: LogIndex(1),
    ..LOG
};

/// The log of the namespace after a second move.
pub(crate) const THIRD: LogId = LogId {
    index: LogIndex(2),
    ..LOG
};

/// Capabilities of the storage, where a transcript does not say otherwise.
pub(crate) const CAPABILITIES: Capabilities = Capabilities {
    strongest: Durability::FSYNC,
    dedup: Dedup::AtAppend,
    numbering: Numbering::Dense,
    clock: AppendClock::Monotone,
    many_writers: false,
    provisions: false,
    appends_apart: false,
    topic_index: true,
    past_end: false,
    seal: false,
    heal: false,
};

#[test]
fn the_architecture_shows_transcripts_as_they_are() {
    let shown = [
        ("gateway", "without_credit"),
        ("tower", "catching_up"),
        ("catalog", "failed_reader"),
    ];
    for (core, name) in shown {
        Transcript::of(env!("CARGO_PKG_NAME"), core, name).hold_architecture();
    }
}

/// A batch with an empty message on each of these topics, for the log of the transcripts.
pub(crate) fn batch(topics: &[&str]) -> Checked<Batch> {
    batch_of(LOG, MapEpoch(1), topics)
}

/// The same for another log, of this map.
fn batch_of(log: LogId, epoch: MapEpoch, topics: &[&str]) -> Checked<Batch> {
    encode(log, epoch, topics.iter().map(|topic| message(topic, "")))
}

/// A batch of these messages, for the log of the transcripts.
pub(crate) fn batch_with(messages: impl IntoIterator<Item = Message>) -> Checked<Batch> {
    encode(LOG, MapEpoch(1), messages)
}

fn encode(
    log: LogId,
    epoch: MapEpoch,
    messages: impl IntoIterator<Item = Message>,
) -> Checked<Batch> {
    let mut encoder = BatchEncoder::new(log.namespace);
    for message in messages {
        let pushed = encoder.push(&message, 0, &Limits::DEFAULT);
        pushed.expect("it fits");
    }
    encoder.finish(&BatchTarget {
        log,
        epoch,
        producer: None,
        producer_time: 0,
    })
}

/// A message to the topic of this name.
pub(crate) fn message(topic: &str, payload: &str) -> Message {
    let topic = TopicName::new(topic, &Limits::DEFAULT).expect("a good name");
    Message::new(topic, payload.to_owned())
}

/// Reads the topics of a batch, `a b`.
pub(crate) fn read_batch(topics: &str) -> Checked<Batch> {
    batch(&topics.split(' ').collect::<Vec<_>>())
}

/// The same for another log, of this map.
pub(crate) fn read_batch_of(log: LogId, epoch: MapEpoch, topics: &str) -> Checked<Batch> {
    batch_of(log, epoch, &topics.split(' ').collect::<Vec<_>>())
}

/// The topics of a batch, `a b`.
pub(crate) fn show_batch(batch: &Batch) -> String {
    let topics: Vec<&str> = batch.iter().map(|record| record.topic_name).collect();
    topics.join(" ")
}

/// Reads a batch as it stands in the log, `5 a, 6 b`: appended at the time of its first number, or as it says behind
/// `at time`.
pub(crate) fn read_stored(records: &str) -> Option<Stored> {
    if let Some([records, time]) = parts("{} at time {}", records) {
        let appended = AppendTime(time.parse().ok()?);
        return read_stored(records).map(|stored| Stored { appended, ..stored });
    }
    let records = records.split(", ").map(|record| record.split_once(' '));
    let records: Vec<(&str, &str)> = records.collect::<Option<_>>()?;
    let topics: Vec<&str> = records.iter().map(|(_, topic)| *topic).collect();
    let base = number(records[0].0)?;
    let numbers = (base.0..).map(Sequence);
    let mut numbered = records.iter().zip(numbers);
    if !numbered.all(|((at, _), n)| number(at) == Some(n)) {
        return None;
    }
    let batch = batch(&topics);
    Some(Stored {
        base,
        extent: Extent::starting_at(base, batch.records().into()),
        appended: AppendTime(i64::try_from(base.0).ok()?),
        batch,
    })
}

/// Records of a batch that begins at `base`, by number and topic: `5 a, 6 b`.
pub(crate) fn show_records(batch: &Batch, base: Sequence) -> String {
    let each = batch.iter().map(|record| {
        let at = base.plus(record.index.into());
        format!("{at} {}", record.topic_name)
    });
    each.collect::<Vec<_>>().join(", ")
}

/// The same of what is delivered of a batch, and whether that is a slice.
pub(crate) fn show_delivered(body: &Delivered, base: Sequence) -> String {
    match body {
        Delivered::Whole(batch) => show_records(batch, base),
        Delivered::Slice(slice) => format!("{} (a slice)", show_records(&slice.to_batch(), base)),
    }
}

/// The name of a topic, of those that transcripts have.
pub(crate) fn show_topic(topic: TopicHash) -> &'static str {
    let mut names = ["a", "b", "c"].into_iter();
    let found = names.find(|name| TopicName::hash_of(NAMESPACE, name) == topic);
    found.expect("a topic of a transcript")
}

/// Reads `1 to 4 in life 7`: the bounds of a log that holds these numbers.
pub(crate) fn read_bounds(words: &str) -> Option<Bounds> {
    let [held, life] = parts("{}, in life {}", words)?;
    let held = read_extent(held)?;
    Some(Bounds {
        first: held.first,
        next: held.next(),
        reach: held.next(),
        incarnation: Incarnation(life.parse().ok()?),
        first_time: None,
        bytes: 0,
        sealed: None,
    })
}

/// Reads provisions, which are letters.
pub(crate) fn read_provisions(letters: &str) -> Option<Provisions> {
    Provisions::new(letters.as_bytes())
}

/// Shows provisions as [`read_provisions`] reads them.
pub(crate) fn show_provisions(provisions: &Provisions) -> String {
    provisions.as_bytes().escape_ascii().to_string()
}

/// Reads a number.
pub(crate) fn number(word: &str) -> Option<Sequence> {
    word.parse().ok().map(Sequence)
}

/// Reads a number, or the first and the last of several: `5`, `5 to 6`.
pub(crate) fn read_extent(words: &str) -> Option<Extent> {
    let [first, last] = parts("{} to {}", words).unwrap_or([words, words]);
    Some(Extent {
        first: number(first)?,
        last: number(last)?,
    })
}

/// Shows numbers as [`read_extent`] reads them.
pub(crate) fn show_extent(extent: Extent) -> String {
    let Extent { first, last } = extent;
    if first == last {
        first.to_string()
    } else {
        format!("{first} to {last}")
    }
}

/// The message with which `look` panics.
pub(crate) fn complaint(look: impl FnOnce()) -> String {
    let panicked = catch_unwind(AssertUnwindSafe(look)).expect_err("nothing was complained of");
    // One without facts is a literal.
    let text = match panicked.downcast::<String>() {
        Ok(text) => *text,
        Err(other) => (*other.downcast::<&str>().expect("a text")).to_owned(),
    };
    text.trim_start_matches("assertion `left == right` failed: ")
        .trim_start_matches("assertion `left != right` failed: ")
        .to_owned()
}
