//! The book of messages, kept by writers and readers.

use airmail_client::mailbox::{LeaseId, Message, MessageId, Receipt};
use airmail_client::{Error, ErrorCode};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// A message as its writer knows it: the writer, and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stamp {
    pub(super) writer: usize,
    pub(super) number: u64,
}

impl Stamp {
    /// The message, of `bytes` bytes if the stamp has room in them.
    pub(super) fn content(self, bytes: usize) -> Vec<u8> {
        let Stamp { writer, number } = self;
        format!("{:<bytes$}", format!("{writer} {number}")).into_bytes()
    }

    fn of(message: &Message) -> Option<Stamp> {
        let text = std::str::from_utf8(&message.content).ok()?;
        let (writer, number) = text.trim_end().split_once(' ')?;
        Some(Stamp {
            writer: writer.parse().ok()?,
            number: number.parse().ok()?,
        })
    }
}

/// Last word that a writer got about a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// Nothing yet, or that the outcome is not known.
    Nothing,
    Acknowledged(MessageId),
    Refused,
}

/// Readers' knowledge of a message.
#[derive(Clone, Copy, Debug)]
struct Held {
    stamp: Stamp,
    lease: Option<LeaseId>,
    /// When it was entered here.
    since: Instant,
    /// The lease lasts at least until then. None: it was given back.
    until: Option<Instant>,
    done: bool,
}

#[derive(Debug, Default)]
struct Pages {
    told: BTreeMap<Stamp, Told>,
    held: BTreeMap<MessageId, Held>,
    /// Number under which each came.
    came: BTreeMap<Stamp, MessageId>,
    counts: Counts,
    wrong: Option<String>,
}

/// Counters of events.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    sent: u64,
    pub(super) acknowledged: u64,
    unknown: u64,
    refused: u64,
    came: u64,
    handed_out: u64,
    pub(super) done: u64,
}

impl Counts {
    /// Approximate number of messages that wait for their first reader: some of unknown outcome may
    /// be among them.
    pub(super) fn backlog(&self) -> u64 {
        self.acknowledged.saturating_sub(self.came)
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts {
            sent,
            acknowledged,
            unknown,
            refused,
            came,
            handed_out,
            done,
        } = self;
        write!(
            f,
            "{sent} sent ({acknowledged} acknowledged, {unknown} unknown, {refused} refused), \
             {came} handed out, {handed_out} times in all, {done} known to be done"
        )
    }
}

/// The book that everybody writes in.
#[derive(Debug)]
pub(super) struct Book {
    pages: Mutex<Pages>,
    pub(super) writing: AtomicBool,
    pub(super) reading: AtomicBool,
}

impl Default for Book {
    fn default() -> Book {
        Book {
            pages: Mutex::default(),
            writing: AtomicBool::new(true),
            reading: AtomicBool::new(true),
        }
    }
}

impl Book {
    pub(super) fn is_writing(&self) -> bool {
        self.writing.load(Ordering::Relaxed)
    }

    pub(super) fn is_reading(&self) -> bool {
        self.reading.load(Ordering::Relaxed)
    }

    pub(super) fn counts(&self) -> Counts {
        self.pages.lock().counts
    }

    /// Messages are about to be sent.
    pub(super) fn begin(&self, stamps: &[Stamp]) {
        let mut pages = self.pages.lock();
        pages.counts.sent += stamps.len() as u64;
        let new = stamps.iter().map(|stamp| (*stamp, Told::Nothing));
        pages.told.extend(new);
    }

    /// Enters the results that the writer got.
    pub(super) fn told(&self, stamps: &[Stamp], results: &[Result<MessageId, Error>]) {
        let mut pages = self.pages.lock();
        for (stamp, result) in stamps.iter().zip(results) {
            let told = match result {
                Ok(id) => {
                    pages.counts.acknowledged += 1;
                    Told::Acknowledged(*id)
                }
                Err(error) => match error.code() {
                    // These say that nothing was done.
                    ErrorCode::MailboxesAway | ErrorCode::Overloaded => {
                        pages.counts.refused += 1;
                        Told::Refused
                    }
                    ErrorCode::OutcomeUnknown | ErrorCode::Disconnected => {
                        pages.counts.unknown += 1;
                        Told::Nothing
                    }
                    _ => {
                        pages.complain(|| format!("{stamp:?} was answered with {error}"));
                        Told::Nothing
                    }
                },
            };
            pages.told.insert(*stamp, told);
        }
    }

    /// A message came, to a question of this moment for this long.
    pub(super) fn handed_out(&self, message: &Message, asked: Instant, lease: Duration) {
        let mut pages = self.pages.lock();
        let (id, now) = (message.id, Instant::now());
        let Some(stamp) = Stamp::of(message) else {
            pages.complain(|| format!("{message:?} is nobody's"));
            return;
        };
        pages.counts.handed_out += 1;
        match pages.came.insert(stamp, id) {
            None => pages.counts.came += 1,
            Some(first) if first == id => {}
            Some(first) => {
                pages.complain(|| format!("{stamp:?} is there twice, as {first} and as {id}"));
            }
        }
        let held = Held {
            stamp,
            lease: message.lease,
            since: now,
            until: Some(asked + lease),
            done: false,
        };
        let Some(before) = pages.held.get(&id).copied() else {
            pages.held.insert(id, held);
            return;
        };
        // Leases have rising numbers. An answer may be under way for longer than its lease, and be entered
        // when who has the next one has been here: then that one's lease must have begun after this one's.
        let (first, second, is_late) = if before.lease > held.lease {
            (held, before, true)
        } else {
            (before, held, false)
        };
        if !is_late {
            pages.held.insert(id, held);
        }
        if first.done {
            pages.complain(|| format!("{id} came after its end: {first:?}"));
        }
        if first.until.is_some_and(|until| second.since < until) {
            pages.complain(|| format!("{id} came to two at once: {first:?}, {second:?}"));
        }
    }

    /// A reader is about to give a message back: others may get it from now on.
    pub(super) fn give_back(&self, receipt: Receipt) {
        self.change(receipt, |held| held.until = None);
    }

    /// A lease was lengthened, by a question of this moment.
    pub(super) fn extended(&self, receipt: Receipt, asked: Instant, lease: Duration) {
        self.change(receipt, |held| held.until = Some(asked + lease));
    }

    /// A message was acknowledged.
    pub(super) fn done(&self, receipt: Receipt) {
        let mut pages = self.pages.lock();
        pages.counts.done += 1;
        match pages.held.get_mut(&receipt.message) {
            Some(held) if held.lease == Some(receipt.lease) && !held.done => held.done = true,
            held => {
                let held = format!("{held:?}");
                pages.complain(|| {
                    format!("{receipt:?} was acknowledged by who had lost it: {held}")
                });
            }
        }
    }

    /// Changes what is known, unless somebody else has the message by now.
    fn change(&self, receipt: Receipt, change: impl FnOnce(&mut Held)) {
        let mut pages = self.pages.lock();
        let held = pages.held.get_mut(&receipt.message);
        if let Some(held) = held.filter(|held| held.lease == Some(receipt.lease)) {
            change(held);
        }
    }

    /// Fails if anything was wrong.
    #[track_caller]
    pub(super) fn check(&self) {
        let wrong = self.pages.lock().wrong.clone();
        assert!(wrong.is_none(), "{}", wrong.unwrap_or_default());
    }

    /// Fails unless everything that was acknowledged came, under its number, and nothing that was
    /// refused did.
    #[track_caller]
    pub(super) fn check_all_were_handed_out(&self) {
        let pages = self.pages.lock();
        let wrong = pages.told.iter().filter(|(stamp, told)| {
            let came = pages.came.get(stamp);
            match told {
                Told::Nothing => false,
                Told::Acknowledged(id) => came != Some(id),
                Told::Refused => came.is_some(),
            }
        });
        let wrong: Vec<String> = wrong
            .map(|(stamp, told)| format!("{stamp:?} {told:?}, came as {:?}", pages.came.get(stamp)))
            .collect();
        assert!(wrong.is_empty(), "{} wrong: {wrong:#?}", wrong.len());
        let nobodys = pages
            .held
            .values()
            .find(|held| !pages.told.contains_key(&held.stamp));
        assert!(nobodys.is_none(), "nobody sent {nobodys:?}");
        assert!(pages.counts.acknowledged > 0 && pages.counts.done > 0);
    }
}

impl Pages {
    /// The first thing that went wrong is kept.
    fn complain(&mut self, what: impl FnOnce() -> String) {
        self.wrong.get_or_insert_with(what);
    }
}
