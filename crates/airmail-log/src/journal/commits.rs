//! Batches that wait to be stored, and the writes that are under way.
//!
//! A batch with its numbers waits here until a commit takes it, in the queue of its lane
//! ([`lane_queue`](super::lane_queue)). Commits end in the order in which they
//! began; more than one is under way only where each follows the one before it to the same segment
//! ([`follow`](super::follow)).
//!
//! Invariants, held by [`Commits::check`]:
//! - A commit is of commands or of batches, never both; commands go alone, and to one segment.
//! - While more than one commit is under way, all are of batches and go to one segment, in order.
//! - All of a log's batches in a commit go to one segment.
//! - A commit that waits for a segment's end to be noted has a part that waits for it.

use super::commands::Command;
use super::entry::Entry;
use super::follow::COMMITS_MAX;
use super::id::{FileOffset, SegmentId, Slot};
use super::lane_queue::LaneQueue;
use airmail_model::{LaneBytes, Mono, NormalShare};
use std::collections::{BTreeMap, VecDeque};
use std::io;

/// Writes under way.
#[derive(Debug)]
pub(super) struct Commit {
    /// The place of its first part among those of all commits.
    place: usize,
    parts: Vec<Part>,
    /// Parts whose write has not ended.
    left: usize,
}

impl Commit {
    fn part_at(&mut self, place: usize) -> Option<&mut Part> {
        let at = place.checked_sub(self.place)?;
        self.parts.get_mut(at)
    }

    /// Takes the parts, one for each segment, after all of them have ended.
    pub(super) fn into_parts(self) -> Vec<Part> {
        self.parts
    }
}

/// The part of a commit that goes to one segment.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) segment: SegmentId,
    pub(super) entries: Vec<Entry>,
    pub(super) metas: Vec<Command>,
    pub(super) end: FileOffset,
    pub(super) sync: bool,
    /// The ends are written with it, if its sync goes well.
    pub(super) noted: bool,
    pub(super) result: Option<io::Result<()>>,
}

impl Part {
    pub(super) fn new(segment: SegmentId, sync: bool, entries: Vec<Entry>) -> Part {
        Part {
            segment,
            entries,
            metas: Vec::new(),
            end: FileOffset::START,
            sync,
            noted: false,
            result: None,
        }
    }
}

/// Time since when something waits for a commit, and whether somebody waits for that.
#[derive(Debug, Default)]
struct Gathering {
    since: Option<Mono>,
    awaited: bool,
}

/// Batches to be stored and commits under way. See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Commits {
    waiting: LaneQueue,
    gathering: Gathering,
    /// Commits under way, in the order in which they began.
    under_way: VecDeque<Commit>,
    places: usize,
}

impl Commits {
    /// None waits, and no write is under way; lane normal has this share.
    pub(super) fn new(share: NormalShare) -> Commits {
        Commits {
            waiting: LaneQueue::new(share),
            ..Commits::default()
        }
    }

    /// A batch waits behind those of its lane that do.
    pub(super) fn add(&mut self, entry: Entry) {
        self.waiting.add(entry);
    }

    /// A batch that was just accepted waits; `awaited` if somebody waits for it to be stored.
    pub(super) fn accept(&mut self, entry: Entry, awaited: bool, now: Mono) {
        self.gathering.since.get_or_insert(now);
        self.gathering.awaited |= awaited;
        self.add(entry);
    }

    /// Batches wait before all of their lane that do, in their order.
    pub(super) fn put_back(&mut self, entries: Vec<Entry>) {
        self.waiting.put_back(entries);
    }

    /// The next batch of the `open` lanes, which waits no more.
    pub(super) fn next(&mut self, open: [bool; 2]) -> Option<Entry> {
        self.waiting.next(open)
    }

    /// A batch that was the next one of the `open` lanes goes.
    pub(super) fn took(&mut self, entry: &Entry, open: [bool; 2]) {
        self.waiting.took(entry, open);
    }

    /// All batches that wait, lane high first; none does any more.
    pub(super) fn take_waiting(&mut self) -> Vec<Entry> {
        self.waiting.take_all()
    }

    /// Forgets the waiting batches of a deleted log.
    pub(super) fn forget_log(&mut self, slot: Slot) {
        self.waiting.forget_log(slot);
    }

    /// The batches that wait.
    pub(super) fn waiting(&self) -> &LaneQueue {
        &self.waiting
    }

    /// Total size of the waiting batches in their segments, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.lane_bytes().total() as u64
    }

    /// The same by lane.
    pub(super) fn lane_bytes(&self) -> LaneBytes {
        self.waiting.bytes()
    }

    /// Time since when batches wait for which nobody waits.
    pub(super) fn gathers_since(&self) -> Option<Mono> {
        self.gathering.since.filter(|_| !self.gathering.awaited)
    }

    /// Whether no write is under way.
    pub(super) fn are_idle(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Whether nothing waits, and no write is under way.
    pub(super) fn are_done(&self) -> bool {
        self.waiting.is_empty() && self.under_way.is_empty()
    }

    /// Number of commits under way.
    pub(super) fn len(&self) -> usize {
        self.under_way.len()
    }

    /// The one part of the last commit that began, if it goes to one segment.
    pub(super) fn last_part(&self) -> Option<&Part> {
        match &self.under_way.back()?.parts[..] {
            [part] => Some(part),
            _ => None,
        }
    }

    /// Parts of all commits under way, in order.
    pub(super) fn parts(&self) -> impl Iterator<Item = &Part> {
        self.under_way.iter().flat_map(|commit| &commit.parts)
    }

    /// The place of a part whose write begins now.
    pub(super) fn place(&mut self) -> usize {
        self.places += 1;
        self.places - 1
    }

    /// A commit of these parts is under way; they have the last places that were given.
    pub(super) fn begun(&mut self, parts: Vec<Part>) {
        if !parts.is_empty() {
            self.under_way.push_back(Commit {
                place: self.places - parts.len(),
                left: parts.iter().filter(|part| part.result.is_none()).count(),
                parts,
            });
        }
    }

    /// Notes that batches were taken for a commit: those that still wait have waited for it, and gather
    /// no longer.
    pub(super) fn gathered(&mut self) {
        self.gathering = Gathering {
            since: None,
            awaited: !self.waiting.is_empty(),
        };
    }

    /// The write of a part has ended. Of a commit that followed one that failed, nobody waits for the end.
    pub(super) fn part_ended(&mut self, place: usize, result: io::Result<()>) {
        for commit in &mut self.under_way {
            if let Some(part) = commit.part_at(place) {
                part.result = Some(result);
                commit.left -= 1;
                break;
            }
        }
    }

    /// The oldest commit, if all of it has ended.
    pub(super) fn take_ended(&mut self) -> Option<Commit> {
        self.under_way.pop_front_if(|commit| commit.left == 0)
    }

    /// Ends all commits under way without their results, and gives their parts.
    pub(super) fn give_up(&mut self) -> Vec<Part> {
        let parts = self.under_way.drain(..).flat_map(|commit| commit.parts);
        parts.collect()
    }

    /// The places of the parts whose write has not ended.
    pub(super) fn open_places(&self) -> impl Iterator<Item = usize> {
        self.under_way.iter().flat_map(|commit| {
            let parts = (commit.place..).zip(&commit.parts);
            let open = parts.filter(|(_, part)| part.result.is_none());
            open.map(|(place, _)| place)
        })
    }

    /// Asserts the invariants of the module's documentation.
    pub(super) fn check(&self) {
        self.waiting.check();
        assert!(
            self.under_way.len() <= COMMITS_MAX,
            "{} commits are under way",
            self.under_way.len()
        );
        for commit in &self.under_way {
            let commands = commit.parts.iter().filter(|part| !part.metas.is_empty());
            let alone = commit.parts.len() == 1 && commit.parts[0].entries.is_empty();
            assert!(
                commands.count() == 0 || alone,
                "commands go with something else: {:?}",
                commit.parts
            );
            let open = commit.parts.iter().filter(|part| part.result.is_none());
            assert_eq!(commit.left, open.count(), "parts that have not ended");
            let mut places = BTreeMap::new();
            for part in &commit.parts {
                for entry in &part.entries {
                    let segment = *places.entry(entry.slot).or_insert(part.segment);
                    assert_eq!(
                        segment, part.segment,
                        "slot {} goes to two segments in one commit",
                        entry.slot
                    );
                }
            }
        }
        if self.under_way.len() > 1 {
            let segment = self.parts().next().map(|part| part.segment);
            for part in self.parts() {
                assert_eq!(
                    Some(part.segment),
                    segment,
                    "commits that follow one another go elsewhere"
                );
                assert!(part.metas.is_empty(), "a commit follows commands");
            }
        }
    }
}
