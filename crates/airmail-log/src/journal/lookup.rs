//! Search for a reader's next batches in a block's index file, a few pages at a time.
//!
//! A topic's batches are found by interpolation among the block's sorted fingerprints; a number's
//! among its log's entries. If a page is damaged, the block's table is made again.

use super::damage::{Problem, Reason};
use super::effects::Purpose;
use super::id::BlockId;
use super::index::{self, Layout, PAGE_BYTES};
use super::names::index_name;
use super::places::Place;
use super::read::{Item, Reader, Reading};
use super::table::{Location, fingerprint};
use crate::contract::ReaderId;
use crate::files::FileOp;
use airmail_model::{Sequence, bug};
use bytes::Bytes;
use std::io;
use std::ops::Range;

/// Pages of topics read at once.
const TOPIC_PAGES: u32 = 4;
/// Pages of entries read at once.
const ENTRY_PAGES: u32 = 16;

/// A search in one block's index.
#[derive(Debug)]
pub(super) struct Lookup {
    place: Place,
    layout: Layout,
    /// Bounds of the search: pages of topics, or entries of the log.
    lo: u32,
    hi: u32,
    phase: Phase,
    /// The first page of the read under way.
    page: u32,
    /// Way of choosing the next page: by the number, by halves, or the page is known.
    choice: Choice,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Guess,
    Halve,
    Next,
}

#[derive(Debug)]
enum Phase {
    /// Among the topics, for the first of this fingerprint.
    Topics(u64),
    /// The first was found, or there is none: from page `lo` on they are gathered.
    Gather(u64, Vec<u32>),
    /// Among the log's entries.
    Entries,
    /// The entries that hold the topic, and which of them is next.
    Matches(Vec<u32>, usize),
}

/// Result of a read of pages.
enum Step {
    /// More pages are needed.
    Again,
    /// These numbers are known now.
    Known(Vec<Item>),
    /// The pages are damaged.
    Damaged,
}

impl Lookup {
    fn new(place: Place, layout: Layout, reader: &Reader) -> Lookup {
        let (lo, hi, phase) = match reader.gives.topic() {
            Some(topic) => {
                let wanted = fingerprint(reader.slot, topic);
                (layout.topics_page(), layout.pages(), Phase::Topics(wanted))
            }
            None => (0, place.entries, Phase::Entries),
        };
        Lookup {
            place,
            layout,
            lo,
            hi,
            phase,
            page: 0,
            choice: Choice::Guess,
        }
    }

    /// The pages to read next. None: there is nothing to read.
    fn pages(&self, number: Sequence) -> Option<Range<u32>> {
        let entry_page = |entry: u32| Layout::entry_page(self.place.entries_at + entry);
        let nothing = self.lo >= self.hi;
        let (from, to) = match &self.phase {
            Phase::Topics(_) | Phase::Entries if nothing => return None,
            Phase::Topics(wanted) => {
                let first = self.layout.topics_page();
                let pages = u128::from(self.layout.pages() - first);
                let guess = first + ((u128::from(*wanted) * pages) >> 64) as u32;
                let guess = if (self.lo..self.hi).contains(&guess) {
                    guess.saturating_sub(1)
                } else {
                    self.lo + (self.hi - self.lo) / 2
                };
                let from = guess.clamp(self.lo, self.hi.saturating_sub(1));
                (from, (from + TOPIC_PAGES).min(self.hi))
            }
            Phase::Gather(..) => (self.lo, (self.lo + TOPIC_PAGES).min(self.layout.pages())),
            Phase::Entries => {
                let span = u128::from(self.place.extent().numbers());
                let ahead = u128::from(number.0.saturating_sub(self.place.first.0));
                let guess = (u128::from(self.place.entries) * ahead / span) as u32;
                let from = entry_page(match self.choice {
                    Choice::Guess => guess.clamp(self.lo, self.hi - 1),
                    Choice::Halve => self.lo + (self.hi - self.lo) / 2,
                    Choice::Next => self.lo,
                });
                let end = entry_page(self.hi - 1) + 1;
                (from, (from + ENTRY_PAGES).min(end))
            }
            Phase::Matches(matches, next) => {
                let from = entry_page(*matches.get(*next)?);
                let near = matches[*next..].iter().map(|entry| entry_page(*entry));
                let to = near.take_while(|page| *page < from + ENTRY_PAGES).last()?;
                (from, to + 1)
            }
        };
        (from < to).then_some(from..to)
    }

    /// The entries of the log in pages from `page` to `end`.
    fn entries(&self, bytes: &[u8], end: u32) -> Option<(u32, Vec<Location>)> {
        let at = self.place.entries_at;
        let first = ((self.page - 1) * index::ENTRIES_IN_PAGE).max(at);
        let last = ((end - 1) * index::ENTRIES_IN_PAGE).min(at + self.place.entries);
        let list = index::entries(bytes, self.page, self.layout, first, last.max(first))?;
        Some((first - at, list))
    }

    /// Takes up pages.
    fn take(&mut self, bytes: &[u8], number: Sequence) -> Step {
        let pages = (bytes.len() / PAGE_BYTES) as u32;
        if pages == 0 {
            return Step::Damaged;
        }
        let end = self.page + pages;
        let step = match self.phase {
            Phase::Topics(_) | Phase::Gather(..) => self.take_topics(bytes, end),
            Phase::Entries => self.take_entries(bytes, end, number),
            Phase::Matches(..) => self.take_matches(bytes, end, number),
        };
        step.unwrap_or(Step::Damaged)
    }

    fn take_topics(&mut self, bytes: &[u8], end: u32) -> Option<Step> {
        let mut all = Vec::new();
        for number in self.page..end {
            let at = (number - self.page) as usize;
            all.extend(index::topics(bytes, at, number, self.layout)?);
        }
        let (first, last) = (all.first()?.fingerprint, all.last()?.fingerprint);
        if let Phase::Topics(wanted) = self.phase {
            if last < wanted {
                self.lo = end;
            } else if first >= wanted && self.page > self.lo {
                self.hi = self.page;
            } else {
                self.lo = self.page;
                self.hi = self.page;
            }
            if self.lo < self.hi {
                return Some(Step::Again);
            }
            self.phase = Phase::Gather(wanted, Vec::new());
            if self.lo != self.page {
                return Some(self.gathered(self.lo >= self.layout.pages()));
            }
        }
        let Phase::Gather(wanted, found) = &mut self.phase else {
            bug!("pages of topics were read in phase {:?}", self.phase);
            return None;
        };
        let wanted = *wanted;
        found.extend(
            all.iter()
                .filter(|topic| topic.fingerprint == wanted)
                .map(|topic| topic.place),
        );
        self.lo = end;
        Some(self.gathered(last > wanted || end >= self.layout.pages()))
    }

    /// Goes on when all of a topic's batches are known.
    fn gathered(&mut self, complete: bool) -> Step {
        let Phase::Gather(_, found) = &mut self.phase else {
            bug!("topics are gathered in phase {:?}", self.phase);
            return Step::Damaged;
        };
        if !complete {
            return Step::Again;
        }
        let found = std::mem::take(found);
        let none = found.is_empty();
        self.phase = Phase::Matches(found, 0);
        if none {
            Step::Known(vec![Item::Unused(self.place.last)])
        } else {
            Step::Again
        }
    }

    fn take_entries(&mut self, bytes: &[u8], end: u32, number: Sequence) -> Option<Step> {
        let (at, list) = self.entries(bytes, end)?;
        let (first, last) = (list.first()?, list.last()?);
        let behind = at + list.len() as u32;
        self.choice = Choice::Halve;
        if last.last() < number && behind < self.hi {
            self.lo = behind;
            return Some(Step::Again);
        }
        if first.first > number && at > self.lo {
            self.hi = at;
            return Some(Step::Again);
        }
        let mut items = Vec::new();
        let mut expected = number;
        for location in list.iter().filter(|location| location.last() >= number) {
            if location.first > expected {
                items.push(Item::Lost(location.first.before()));
            }
            expected = location.last().plus(1);
            items.push(Item::Read(self.place.block.segment, *location));
        }
        if behind >= self.place.entries && expected <= self.place.last {
            items.push(Item::Lost(self.place.last));
        }
        (self.lo, self.hi, self.choice) = (behind, self.place.entries, Choice::Next);
        Some(Step::Known(items))
    }

    fn take_matches(&mut self, bytes: &[u8], end: u32, number: Sequence) -> Option<Step> {
        let (at, list) = self.entries(bytes, end)?;
        let Phase::Matches(matches, next) = &mut self.phase else {
            bug!("pages of matches were read in phase {:?}", self.phase);
            return None;
        };
        let mut items = Vec::new();
        while let Some(entry) = matches.get(*next) {
            let Some(location) = entry.checked_sub(at).and_then(|n| list.get(n as usize)) else {
                break;
            };
            *next += 1;
            if location.last() < number {
                continue;
            }
            if location.first > number {
                items.push(Item::Unused(location.first.before()));
            }
            items.push(Item::Read(self.place.block.segment, *location));
        }
        if *next >= matches.len() {
            items.push(Item::Unused(self.place.last));
        } else if items.is_empty() {
            return Some(Step::Again);
        }
        Some(Step::Known(items))
    }
}

impl Reading<'_> {
    /// Goes on with a reader's search in a block's index: has pages read. False: it waits.
    pub(super) fn look_up(&mut self, reader: &mut Reader, place: Place) -> bool {
        let Some(block) = self.segments.block(place.block) else {
            bug!(
                "a log keeps something in block {}, which is not there",
                place.block
            );
            reader.plan.push_back(Item::Lost(place.last));
            return true;
        };
        let Some(layout) = block.layout() else {
            // Input: damage to the index, which another reader has found.
            reader.reading = true;
            self.rebuild(reader.id, place.block);
            return false;
        };
        let going = reader.lookup.take();
        let going = going
            .filter(|going| going.layout == layout && going.place.entries_at == place.entries_at);
        let mut lookup = going.unwrap_or_else(|| Lookup::new(place, layout, reader));
        #[cfg(feature = "sabotage")]
        if self.config.has_bug(crate::sabotage::Bug::IndexMissesOne)
            && let Phase::Matches(matches, _) = &mut lookup.phase
        {
            matches.truncate(matches.len() - 1);
        }
        let Some(pages) = lookup.pages(reader.next) else {
            // Input: a topic of which nothing is left in the block.
            let item = match reader.gives.topic() {
                Some(_) => Item::Unused(place.last),
                None => Item::Lost(place.last),
            };
            reader.plan.push_back(item);
            return true;
        };
        lookup.page = pages.start;
        reader.lookup = Some(lookup);
        reader.reading = true;
        self.segments.read_begun(place.block.segment);
        let name = index_name(place.block);
        let at = u64::from(pages.start) * PAGE_BYTES as u64;
        let length = pages.len() as u32 * PAGE_BYTES as u32;
        let op = FileOp::Read {
            name,
            at,
            length,
            records: Vec::new(),
        };
        self.effects
            .submit(Purpose::Pages(reader.id, place.block), op);
        false
    }

    /// Pages of an index were read for a reader.
    pub(super) fn pages_read(&mut self, r: ReaderId, block: BlockId, result: io::Result<Bytes>) {
        self.segments.read_ended(block.segment);
        let Some(reader) = self.readers.get_mut(r) else {
            // Input: a reader that was stopped while pages were read for it.
            return;
        };
        let Some(lookup) = reader.lookup.as_mut().filter(|_| reader.reading) else {
            // Input: a reader that has begun since, with the id of one that was stopped.
            return;
        };
        let step = match result {
            Ok(bytes) => lookup.take(&bytes, reader.next),
            Err(_) => Step::Damaged,
        };
        match step {
            Step::Again => {}
            Step::Known(items) => reader.plan.extend(items),
            Step::Damaged => {
                let name = index_name(block);
                self.faults.found(Problem::of(&name, 0, Reason::Index));
                return self.rebuild(r, block);
            }
        }
        reader.reading = false;
        self.readers.wake(r);
    }
}
