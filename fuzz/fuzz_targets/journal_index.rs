//! The pages of a block's index file.

#![no_main]

use airmail_log::journal::index::{ENTRIES_IN_PAGE, PAGE_BYTES, entries, layout, topics};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = layout(data, 1, 2);
    let Some((&[from, to], rest)) = data.split_first_chunk() else {
        return;
    };
    // Pages 0, 1 and so on, each with the checksum that it would need.
    let mut pages = Vec::new();
    for (number, body) in (0..).zip(rest.chunks(PAGE_BYTES - 4)) {
        let mut page = [0; PAGE_BYTES];
        page[4..4 + body.len()].copy_from_slice(body);
        let crc = crc32c::crc32c_append(number, &page[4..]);
        page[..4].copy_from_slice(&crc.to_le_bytes());
        pages.extend_from_slice(&page);
    }
    if let Some(layout) = layout(&pages, 1, 2) {
        // The pages that it names may be beyond the file, but they can be named.
        let _ = layout.topics_page();
    }
    let (from, to) = (u32::from(from), u32::from(from) + u32::from(to));
    if let Some(entries) = entries(&pages, 0, 64, from, to) {
        assert_eq!(entries.len(), (to - from) as usize);
        assert!(entries.is_empty() || pages.len() > (to / ENTRIES_IN_PAGE) as usize * PAGE_BYTES);
    }
    for number in 0..=(pages.len() / PAGE_BYTES) as u32 {
        let read = topics(&pages, number as usize, number, to);
        assert_eq!(
            read.is_some(),
            ((number as usize) * PAGE_BYTES) < pages.len()
        );
    }
});
