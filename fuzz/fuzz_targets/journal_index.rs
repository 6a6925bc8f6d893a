//! The pages of a block's index file.

#![no_main]

use airmail_fuzz::fuzz_target;
use airmail_log::journal::index::{Layout, PAGE_BYTES, damage, entries, layout, topics};

fuzz_target!(|data: &[u8]| {
    let _ = layout(data);
    let Some((&[entry_count, topic_count, from, to], rest)) = data.split_first_chunk() else {
        return;
    };
    let shape = Layout {
        entries: u32::from(entry_count),
        topics: u32::from(topic_count),
        ..Layout::default()
    };
    // Pages 0, 1 and so on, each with the checksum that it would need.
    let mut pages = Vec::new();
    for (number, body) in (0..).zip(rest.chunks(PAGE_BYTES - 4)) {
        let mut page = [0; PAGE_BYTES];
        page[4..4 + body.len()].copy_from_slice(body);
        let crc = crc32c::crc32c_append(shape.seed(number), &page[4..]);
        page[..4].copy_from_slice(&crc.to_le_bytes());
        pages.extend_from_slice(&page);
    }
    if let Some(layout) = layout(&pages) {
        // The pages that it names may be beyond the file, but they can be named.
        let _ = (layout.topics_page(), damage(&pages, layout));
    }
    let (from, to) = (u32::from(from), u32::from(from) + u32::from(to));
    if let Some(entries) = entries(&pages, 0, shape, from, to) {
        assert_eq!(entries.len(), (to - from) as usize);
    }
    for number in 0..=(pages.len() / PAGE_BYTES) as u32 {
        let _ = topics(&pages, number as usize, number, shape);
    }
});
