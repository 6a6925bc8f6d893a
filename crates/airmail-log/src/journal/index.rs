//! A block's index file: where its batches are, by log and sequence, and by topic.
//!
//! Derived from the segment; written once, when the block is complete. Pages of 4,096 bytes, each
//! `crc u32 | 4,092 bytes`, the crc seeded with the page's number: a reader takes the few pages that
//! it needs and trusts none that is damaged.
//!
//! ```text
//! page 0:  magic u32 | version u32 | segment u64 | block u32 | entries u32 | topics u32
//! entries: 146 to a page: first u64 | numbers u32 | offset in the block u32 | length u32 | time i64
//! topics:  341 to a page: fingerprint u64 | place in its log's entries u32, in order of both
//! ```
//!
//! One log's entries follow one another in order of number. A topic is found by its fingerprint's
//! place among all: one or two reads of a few pages, whatever the number of topics; so blocks are
//! not merged when a segment is complete.

use super::format::{VERSION, u32_at, u64_at};
use super::table::{Location, Table};
use std::collections::BTreeMap;

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;
/// Bytes of a page without its checksum.
const BODY_BYTES: usize = PAGE_BYTES - 4;
const ENTRY_BYTES: usize = 28;
const TOPIC_BYTES: usize = 12;
/// Entries in one page.
pub const ENTRIES_IN_PAGE: u32 = (BODY_BYTES / ENTRY_BYTES) as u32;
/// Topics in one page.
pub const TOPICS_IN_PAGE: u32 = (BODY_BYTES / TOPIC_BYTES) as u32;
const MAGIC: u32 = u32::from_le_bytes(*b"AmIx");

/// How an index file is laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Entries in it.
    pub entries: u32,
    /// (topic, batch) pairs in it.
    pub topics: u32,
}

impl Layout {
    /// The page in which an entry is.
    #[must_use]
    pub const fn entry_page(entry: u32) -> u32 {
        1 + entry / ENTRIES_IN_PAGE
    }

    /// The first page of topics.
    #[must_use]
    pub const fn topics_page(self) -> u32 {
        1 + self.entries.div_ceil(ENTRIES_IN_PAGE)
    }

    /// How many pages there are.
    #[must_use]
    pub const fn pages(self) -> u32 {
        self.topics_page() + self.topics.div_ceil(TOPICS_IN_PAGE)
    }
}

/// Gathers fixed-size things into pages.
struct Pages(Vec<u8>);

impl Pages {
    fn push(&mut self, number: u32, body: &[u8]) {
        let start = self.0.len();
        self.0.extend_from_slice(&[0; 4]);
        self.0.extend_from_slice(body);
        self.0.resize(start + PAGE_BYTES, 0);
        let crc = crc32c::crc32c_append(number, &self.0[start + 4..]);
        self.0[start..start + 4].copy_from_slice(&crc.to_le_bytes());
    }
}

/// The index file of a block's table; and for each slot the place of its first entry.
#[must_use]
pub fn encode(
    segment: u64,
    block: u32,
    start: u64,
    table: &Table,
) -> (Vec<u8>, BTreeMap<u32, u32>) {
    let entries: usize = table.logs.values().map(Vec::len).sum();
    let layout = Layout {
        entries: entries as u32,
        topics: table.topics.len() as u32,
    };
    let mut pages = Pages(Vec::with_capacity(layout.pages() as usize * PAGE_BYTES));
    let mut head = Vec::new();
    for value in [MAGIC, u32::from(VERSION)] {
        head.extend_from_slice(&value.to_le_bytes());
    }
    head.extend_from_slice(&segment.to_le_bytes());
    for value in [block, layout.entries, layout.topics] {
        head.extend_from_slice(&value.to_le_bytes());
    }
    pages.push(0, &head);
    let mut number = 1;
    let mut firsts = BTreeMap::new();
    let mut count = 0;
    let mut body = Vec::with_capacity(BODY_BYTES);
    for (slot, list) in &table.logs {
        firsts.insert(*slot, count);
        count += list.len() as u32;
        for entry in list {
            if body.len() + ENTRY_BYTES > BODY_BYTES {
                pages.push(number, &body);
                number += 1;
                body.clear();
            }
            body.extend_from_slice(&entry.first.to_le_bytes());
            body.extend_from_slice(&entry.numbers.to_le_bytes());
            body.extend_from_slice(&((entry.offset - start) as u32).to_le_bytes());
            body.extend_from_slice(&entry.length.to_le_bytes());
            body.extend_from_slice(&entry.time.to_le_bytes());
        }
    }
    if !body.is_empty() {
        pages.push(number, &body);
        number += 1;
    }
    let mut topics = table.topics.clone();
    topics.sort_unstable();
    for page in topics.chunks(TOPICS_IN_PAGE as usize) {
        body.clear();
        for (fingerprint, place) in page {
            body.extend_from_slice(&fingerprint.to_le_bytes());
            body.extend_from_slice(&place.to_le_bytes());
        }
        pages.push(number, &body);
        number += 1;
    }
    (pages.0, firsts)
}

/// The body of page `number`, the `at`-th in `bytes`; `None` if it is damaged.
fn body(bytes: &[u8], at: usize, number: u32) -> Option<&[u8]> {
    let page = bytes.get(at * PAGE_BYTES..(at + 1) * PAGE_BYTES)?;
    (u32_at(page, 0) == crc32c::crc32c_append(number, &page[4..])).then_some(&page[4..])
}

/// Whether page 0 is that of this block, and what it says of the others.
#[must_use]
pub fn layout(bytes: &[u8], segment: u64, block: u32) -> Option<Layout> {
    let head = body(bytes, 0, 0)?;
    let ours = u32_at(head, 0) == MAGIC
        && u32_at(head, 4) == u32::from(VERSION)
        && u64_at(head, 8) == segment
        && u32_at(head, 16) == block;
    ours.then(|| Layout {
        entries: u32_at(head, 20),
        topics: u32_at(head, 24),
    })
}

/// The byte at which an index file is first not what its block's layout says; `None` if it is sound.
#[must_use]
pub fn damage(bytes: &[u8], segment: u64, block: u32, expected: Layout) -> Option<u64> {
    if layout(bytes, segment, block) != Some(expected) {
        return Some(0);
    }
    let damaged = (0..expected.pages()).find(|page| body(bytes, *page as usize, *page).is_none());
    damaged.map(|page| u64::from(page) * PAGE_BYTES as u64)
}

/// The entries from `from` to `to`, exclusive, out of pages that begin with page `page`.
#[must_use]
pub fn entries(bytes: &[u8], page: u32, start: u64, from: u32, to: u32) -> Option<Vec<Location>> {
    let mut out = Vec::with_capacity((to - from) as usize);
    for entry in from..to {
        let number = Layout::entry_page(entry);
        let at = number.checked_sub(page)? as usize;
        // Each page is checked once: at its first entry, or at the first that is wanted.
        let place = (entry % ENTRIES_IN_PAGE) as usize * ENTRY_BYTES;
        if entry == from || place == 0 {
            body(bytes, at, number)?;
        }
        let bytes = bytes.get(at * PAGE_BYTES + 4 + place..)?;
        out.push(Location {
            first: u64_at(bytes, 0),
            numbers: u32_at(bytes, 8),
            offset: start + u64::from(u32_at(bytes, 12)),
            length: u32_at(bytes, 16),
            time: u64_at(bytes, 20).cast_signed(),
        });
    }
    Some(out)
}

/// Every topic of a page; `count` of them are there in all of the file, `first` before this page.
#[must_use]
pub fn topics(bytes: &[u8], at: usize, number: u32, count: u32) -> Option<Vec<(u64, u32)>> {
    let body = body(bytes, at, number)?;
    let count = count.min(TOPICS_IN_PAGE) as usize;
    let all = body.chunks_exact(TOPIC_BYTES).take(count);
    Some(
        all.map(|topic| (u64_at(topic, 0), u32_at(topic, 8)))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_model::TopicHash;

    fn table() -> Table {
        let mut table = Table::default();
        for n in 0..400u64 {
            let location = Location {
                first: 1 + n * 3,
                numbers: 3,
                offset: 64 + n * 100,
                length: 60,
                time: n as i64,
            };
            let topics = [TopicHash(u128::from(n) << 100), TopicHash(7 << 64)];
            table.add((n % 2) as u32, location, topics.into_iter());
        }
        table
    }

    #[test]
    fn entries_and_topics_come_back() {
        let table = table();
        let (bytes, firsts) = encode(5, 2, 64, &table);
        let layout = layout(&bytes, 5, 2).unwrap();
        assert_eq!((layout.entries, layout.topics), (400, 800));
        assert_eq!(bytes.len(), layout.pages() as usize * PAGE_BYTES);
        assert_eq!(firsts, [(0, 0), (1, 200)].into());
        let second = entries(&bytes[PAGE_BYTES..], 1, 64, 200, 400).unwrap();
        assert_eq!(second, table.logs[&1]);
        let page = layout.topics_page();
        let mut all = Vec::new();
        for number in page..layout.pages() {
            let before = (number - page) * TOPICS_IN_PAGE;
            all.extend(topics(&bytes, number as usize, number, 800 - before).unwrap());
        }
        let mut wanted = table.topics.clone();
        wanted.sort_unstable();
        assert_eq!(all, wanted);
    }

    #[test]
    fn a_damaged_page_is_found() {
        let (bytes, _) = encode(5, 2, 64, &table());
        for at in (0..bytes.len()).step_by(97) {
            let mut hit = bytes.clone();
            hit[at] ^= 1;
            let page = (at / PAGE_BYTES) as u32;
            assert!(body(&hit, page as usize, page).is_none());
        }
    }
}
