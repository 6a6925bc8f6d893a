//! Finds nothing of ours: it fails on four certain bytes, and so proves that the fuzzer works.
//! Run it with `-max_total_time=60`; it must crash.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    assert!(!data.starts_with(b"MAIL"), "found, as it must be");
});
