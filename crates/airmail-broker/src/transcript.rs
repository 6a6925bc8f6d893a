//! Transcripts: what happens to a core and what it wants done, as text that can be read without the code.
//! They are in `tests/transcripts`; with `AIRMAIL_REWRITE=1` they are written anew.
//!
//! A line that begins with `>` is an input. The indented lines below it are what comes of it. All other
//! lines are remarks.

use airmail_log::{Bounds, Stored};
use airmail_model::batch::BatchTarget;
use airmail_model::frame::Delivered;
use airmail_model::{
    AppendTime, Batch, BatchEncoder, Checked, Extent, Incarnation, Lane, Limits, LogId, LogIndex,
    MapEpoch, Message, NamespaceId, Sequence, TopicName,
};
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// The namespace of the transcripts, and its only log.
pub(crate) const NAMESPACE: NamespaceId = NamespaceId(1);
pub(crate) const LOG: LogId = LogId {
    namespace: NAMESPACE,
    lane: Lane::Normal,
    index: LogIndex(0),
};

/// Compares a transcript with what comes of its inputs, or writes it. `step` takes an input and gives the
/// lines that tell what came of it.
#[track_caller]
#[expect(
    clippy::disallowed_methods,
    reason = "a test: whether it compares or writes is said by the environment"
)]
pub(crate) fn hold(core: &str, name: &str, mut step: impl FnMut(&str) -> Option<Vec<String>>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/transcripts")
        .join(core)
        .join(format!("{name}.txt"));
    let old = std::fs::read_to_string(&path).expect("a transcript");
    let mut new = String::new();
    for line in old.lines().filter(|line| !line.starts_with("  ")) {
        let _ = writeln!(new, "{line}");
        if let Some(input) = line.strip_prefix("> ") {
            for effect in step(input).unwrap_or_else(|| panic!("{input:?} is no input")) {
                let _ = writeln!(new, "  {effect}");
            }
        }
    }
    if std::env::var_os("AIRMAIL_REWRITE").is_some() {
        std::fs::write(&path, new).expect("it can be written");
    } else {
        let command = "AIRMAIL_REWRITE=1 cargo test -p airmail-broker transcripts";
        assert!(new == old, "{name}.txt is stale: {command}\n\n{new}");
    }
}

/// ARCHITECTURE.md shows parts of transcripts word for word.
#[test]
fn the_architecture_shows_transcripts_as_they_are() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).expect(path);
    let page = read("../../ARCHITECTURE.md");
    for (core, name) in [
        ("gateway", "without_credit"),
        ("tower", "catching_up"),
        ("catalog", "failed_reader"),
    ] {
        let link =
            format!("crates/airmail-broker/tests/transcripts/{core}/{name}.txt)).\n\n```text\n");
        let (_, rest) = page.split_once(&link).expect("it is named");
        let (shown, _) = rest.split_once("```").expect("a block");
        let whole = read(&format!("tests/transcripts/{core}/{name}.txt"));
        assert!(whole.contains(shown), "{core}/{name}: {shown}");
    }
}

/// A batch with an empty message on each of these topics, for the log of the transcripts.
pub(crate) fn batch(topics: &[&str]) -> Checked<Batch> {
    let mut encoder = BatchEncoder::new(NAMESPACE);
    for topic in topics {
        let topic = TopicName::new(topic, &Limits::DEFAULT).expect("a good name");
        let pushed = encoder.push(&Message::new(topic, Vec::new()), 0, &Limits::DEFAULT);
        pushed.expect("it fits");
    }
    encoder.finish(&BatchTarget {
        log: LOG,
        epoch: MapEpoch(1),
        producer: None,
        producer_time: 0,
    })
}

/// The same as it stands in the log, from `first` on, appended at the time of its first number.
pub(crate) fn stored(first: u64, topics: &[&str]) -> Stored {
    let batch = batch(topics);
    let base = Sequence(first);
    Stored {
        base,
        extent: Extent::starting_at(base, batch.records().into()),
        appended: AppendTime(i64::try_from(first).expect("small")),
        batch,
    }
}

/// A storage's bounds of a log in its given life that has these numbers.
pub(crate) fn bounds(first: u64, next: u64, incarnation: u64) -> Bounds {
    Bounds {
        first: Sequence(first),
        next: Sequence(next),
        reach: Sequence(next),
        incarnation: Incarnation(incarnation),
        first_time: None,
        bytes: 0,
    }
}

/// The records of a batch that begins at `base`, by number and topic.
pub(crate) fn records(batch: &Batch, base: Sequence) -> String {
    let each = batch.iter().map(|record| {
        let at = base.plus(record.index.into());
        format!("{at} {}", record.topic_name)
    });
    each.collect::<Vec<_>>().join(", ")
}

/// The same of what is delivered of one, and whether it was cut.
pub(crate) fn delivered(body: &Delivered, base: Sequence) -> String {
    match body {
        Delivered::Whole(batch) => records(batch, base),
        Delivered::Slice(slice) => format!("{} (cut)", records(&slice.to_batch(), base)),
    }
}

/// The number of a word, if it is one.
pub(crate) fn number(word: &str) -> Option<Sequence> {
    word.parse().ok().map(Sequence)
}

/// From the first number to the last, both included.
pub(crate) fn extent(first: &str, last: &str) -> Option<Extent> {
    Some(Extent {
        first: number(first)?,
        last: number(last)?,
    })
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
