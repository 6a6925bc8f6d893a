//! A block's index file: where its batches are, by log and sequence, and by topic.
//!
//! Derived from the segment; written once, when the block is complete. Pages of 4,096 bytes, each
//! `crc u32 | 4,092 bytes`: a reader takes the few pages that it needs and trusts no damaged one.
//! Except for page 0, the crc is seeded with the page's number and the contents of page 0; so a
//! file that was made anew, under a checkpoint that knows the earlier one, is not mistaken for it.
//!
//! ```text
//! page 0:  magic u32 | version u32 | segment u64 | start u64 | block u32 | entries u32 | topics u32
//! entries: 146 to a page: first u64 | numbers u32 | offset in the block u32 | length u32 | time i64
//! topics:  341 to a page: fingerprint u64 | place in its log's entries u32, in order of both
//! ```
//!
//! One log's entries follow one another in order of number. A topic is found by its fingerprint's
//! place among all: one or two reads of a few pages, whatever the number of topics; so blocks are
//! not merged when a segment is complete.

use super::format::{VERSION, u32_at, u64_at};
use super::id::{BlockId, BlockIndex, FileOffset, SegmentId, Slot};
use super::table::{Location, Table, TopicEntry};
use airmail_model::{AppendTime, Sequence};
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

/// The block of an index file, and how the file is laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// The block that it is of.
    pub block: BlockId,
    /// Where that begins in its segment.
    pub start: FileOffset,
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

    /// Number of pages.
    #[must_use]
    pub const fn pages(self) -> u32 {
        self.topics_page() + self.topics.div_ceil(TOPICS_IN_PAGE)
    }
}

impl Layout {
    /// Encodes the head, the contents of page 0.
    fn head(self) -> Vec<u8> {
        let mut head = Vec::new();
        head.extend_from_slice(&MAGIC.to_le_bytes());
        head.extend_from_slice(&u32::from(VERSION).to_le_bytes());
        head.extend_from_slice(&self.block.segment.0.to_le_bytes());
        head.extend_from_slice(&self.start.0.to_le_bytes());
        for value in [self.block.block.0, self.entries, self.topics] {
            head.extend_from_slice(&value.to_le_bytes());
        }
        head
    }

    /// Seed of a page's checksum.
    #[must_use]
    pub fn seed(self, page: u32) -> u32 {
        match page {
            0 => 0,
            _ => crc32c::crc32c_append(page, &self.head()),
        }
    }
}

/// Gathers fixed-size things into pages.
struct Pages(Vec<u8>, Layout);

impl Pages {
    fn push(&mut self, page: u32, body: &[u8]) {
        let start = self.0.len();
        self.0.extend_from_slice(&[0; 4]);
        self.0.extend_from_slice(body);
        self.0.resize(start + PAGE_BYTES, 0);
        let crc = crc32c::crc32c_append(self.1.seed(page), &self.0[start + 4..]);
        self.0[start..start + 4].copy_from_slice(&crc.to_le_bytes());
    }
}

/// The index file of a block's table; and for each slot the place of its first entry.
#[must_use]
pub fn encode(
    block: BlockId,
    start: FileOffset,
    table: &Table,
) -> (Vec<u8>, Layout, BTreeMap<Slot, u32>) {
    let entries: usize = table.logs.values().map(Vec::len).sum();
    let layout = Layout {
        block,
        start,
        entries: entries as u32,
        topics: table.topics.len() as u32,
    };
    let mut pages = Pages(
        Vec::with_capacity(layout.pages() as usize * PAGE_BYTES),
        layout,
    );
    pages.push(0, &layout.head());
    let mut page = 1;
    let mut firsts = BTreeMap::new();
    let mut count = 0;
    let mut body = Vec::with_capacity(BODY_BYTES);
    for (slot, list) in &table.logs {
        firsts.insert(*slot, count);
        count += list.len() as u32;
        for entry in list {
            if body.len() + ENTRY_BYTES > BODY_BYTES {
                pages.push(page, &body);
                page += 1;
                body.clear();
            }
            body.extend_from_slice(&entry.first.0.to_le_bytes());
            body.extend_from_slice(&entry.numbers.to_le_bytes());
            body.extend_from_slice(&((entry.offset - start) as u32).to_le_bytes());
            body.extend_from_slice(&entry.length.to_le_bytes());
            body.extend_from_slice(&entry.time.0.to_le_bytes());
        }
    }
    if !body.is_empty() {
        pages.push(page, &body);
        page += 1;
    }
    let mut topics = table.topics.clone();
    topics.sort_unstable();
    for chunk in topics.chunks(TOPICS_IN_PAGE as usize) {
        body.clear();
        for topic in chunk {
            body.extend_from_slice(&topic.fingerprint.to_le_bytes());
            body.extend_from_slice(&topic.place.to_le_bytes());
        }
        pages.push(page, &body);
        page += 1;
    }
    (pages.0, layout, firsts)
}

/// The body of page `page`, the `at`-th in `bytes`; `None` if it is damaged.
fn body(bytes: &[u8], at: usize, page: u32, layout: Layout) -> Option<&[u8]> {
    let bytes = bytes.get(at * PAGE_BYTES..(at + 1) * PAGE_BYTES)?;
    (u32_at(bytes, 0) == crc32c::crc32c_append(layout.seed(page), &bytes[4..]))
        .then_some(&bytes[4..])
}

/// Decodes the layout from page 0.
#[must_use]
pub fn layout(bytes: &[u8]) -> Option<Layout> {
    let head = body(bytes, 0, 0, Layout::default())?;
    let ours = u32_at(head, 0) == MAGIC && u32_at(head, 4) == u32::from(VERSION);
    ours.then(|| Layout {
        block: BlockId {
            segment: SegmentId(u64_at(head, 8)),
            block: BlockIndex(u32_at(head, 24)),
        },
        start: FileOffset(u64_at(head, 16)),
        entries: u32_at(head, 28),
        topics: u32_at(head, 32),
    })
}

/// The byte at which an index file is first not what its block's layout says; `None` if it is sound.
#[must_use]
pub fn damage(bytes: &[u8], expected: Layout) -> Option<u64> {
    if layout(bytes) != Some(expected) {
        return Some(0);
    }
    let sound = |page: u32| body(bytes, page as usize, page, expected).is_some();
    let damaged = (1..expected.pages()).find(|page| !sound(*page));
    damaged.map(|page| u64::from(page) * PAGE_BYTES as u64)
}

/// The entries from `from` to `to`, exclusive, out of pages that begin with page `page`.
#[must_use]
pub fn entries(
    bytes: &[u8],
    page: u32,
    layout: Layout,
    from: u32,
    to: u32,
) -> Option<Vec<Location>> {
    let mut out =
        Vec::with_capacity((to.saturating_sub(from) as usize).min(bytes.len() / ENTRY_BYTES));
    for entry in from..to {
        let of_entry = Layout::entry_page(entry);
        let at = of_entry.checked_sub(page)? as usize;
        // Each page is checked once: at its first entry, or at the first that is wanted.
        let place = (entry % ENTRIES_IN_PAGE) as usize * ENTRY_BYTES;
        if entry == from || place == 0 {
            body(bytes, at, of_entry, layout)?;
        }
        let bytes = bytes.get(at * PAGE_BYTES + 4 + place..)?;
        let location = Location {
            first: Sequence(u64_at(bytes, 0)),
            numbers: u32_at(bytes, 8),
            offset: layout.start + u64::from(u32_at(bytes, 12)),
            length: u32_at(bytes, 16),
            time: AppendTime(u64_at(bytes, 20).cast_signed()),
        };
        out.push(Some(location).filter(Location::is_possible)?);
    }
    Some(out)
}

/// Every topic of page `page`, the `at`-th in `bytes`.
#[must_use]
pub fn topics(bytes: &[u8], at: usize, page: u32, layout: Layout) -> Option<Vec<TopicEntry>> {
    let body = body(bytes, at, page, layout)?;
    let nth = page.checked_sub(layout.topics_page())?;
    let before = nth.checked_mul(TOPICS_IN_PAGE)?;
    let count = layout.topics.checked_sub(before)?.min(TOPICS_IN_PAGE) as usize;
    let all = body.chunks_exact(TOPIC_BYTES).take(count);
    Some(
        all.map(|topic| TopicEntry {
            fingerprint: u64_at(topic, 0),
            place: u32_at(topic, 8),
        })
        .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_model::TopicHash;

    const BLOCK: BlockId = BlockId {
        segment: SegmentId(5),
        block: BlockIndex(2),
    };

    fn table() -> Table {
        let mut table = Table::default();
        for n in 0..400u64 {
            let location = Location {
                first: Sequence(1 + n * 3),
                numbers: 3,
                offset: FileOffset(64 + n * 100),
                length: 60,
                time: AppendTime(n as i64),
            };
            let topics = [TopicHash(u128::from(n) << 100), TopicHash(7 << 64)];
            table.add(Slot((n % 2) as u32), location, topics.into_iter());
        }
        table
    }

    #[test]
    fn entries_and_topics_come_back() {
        let table = table();
        let (bytes, told, firsts) = encode(BLOCK, FileOffset(64), &table);
        let layout = layout(&bytes).unwrap();
        assert_eq!(layout, told);
        assert_eq!((layout.entries, layout.topics), (400, 800));
        assert_eq!(bytes.len(), layout.pages() as usize * PAGE_BYTES);
        assert_eq!(firsts, [(Slot(0), 0), (Slot(1), 200)].into());
        let second = entries(&bytes[PAGE_BYTES..], 1, layout, 200, 400).unwrap();
        assert_eq!(second, table.logs[&Slot(1)]);
        let mut all = Vec::new();
        for number in layout.topics_page()..layout.pages() {
            all.extend(topics(&bytes, number as usize, number, layout).unwrap());
        }
        let mut wanted = table.topics.clone();
        wanted.sort_unstable();
        assert_eq!(all, wanted);
    }

    #[test]
    fn a_batch_without_numbers_is_damage_whatever_the_checksum_says() {
        for (first, numbers) in [(5, 0), (0, 1), (u64::MAX, 1)] {
            let mut table = Table::default();
            let location = Location {
                first: Sequence(first),
                numbers,
                offset: FileOffset(64),
                length: 60,
                time: AppendTime(0),
            };
            table.add(Slot(0), location, std::iter::empty());
            let (bytes, layout, _) = encode(BLOCK, FileOffset(64), &table);
            assert_eq!(entries(&bytes[PAGE_BYTES..], 1, layout, 0, 1), None);
        }
    }

    #[test]
    fn a_damaged_page_is_found_and_one_of_another_file() {
        let (bytes, layout, _) = encode(BLOCK, FileOffset(64), &table());
        assert_eq!(damage(&bytes, layout), None);
        for at in (0..bytes.len()).step_by(97) {
            let mut hit = bytes.clone();
            hit[at] ^= 1;
            let page = at / PAGE_BYTES;
            assert_eq!(damage(&hit, layout), Some((page * PAGE_BYTES) as u64));
        }
        let other = Layout {
            topics: layout.topics - 1,
            ..layout
        };
        assert_eq!(topics(&bytes, 5, 5, other), None);
        assert_eq!(entries(&bytes[PAGE_BYTES..], 1, other, 0, 1), None);
    }
}
