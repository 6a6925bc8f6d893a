//! The journal's file of durable ends.

#![no_main]

use airmail_fuzz::fuzz_target;
use airmail_log::journal::ends::Ends;

fuzz_target!(|data: &[u8]| {
    let _ = Ends::newest(data);
    let Ok(length) = u32::try_from(data.len() + 4) else {
        return;
    };
    let crc = crc32c::crc32c(data).to_le_bytes();
    let sealed = [&length.to_le_bytes()[..], &crc, data].concat();
    if let Some(ends) = Ends::decode(&sealed) {
        assert!(Ends::decode(&ends.encode()).is_some());
    }
});
