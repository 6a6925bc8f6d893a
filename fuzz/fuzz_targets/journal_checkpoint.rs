//! The journal's checkpoints.

#![no_main]

use airmail_fuzz::fuzz_target;
use airmail_log::journal::checkpoint::Checkpoint;

fuzz_target!(|data: &[u8]| {
    let _ = Checkpoint::decode(data);
    let length = (data.len() as u64 + 4).to_le_bytes();
    let crc = crc32c::crc32c(data).to_le_bytes();
    let sealed = [&b"AmCp"[..], &1_u32.to_le_bytes(), &length, &crc, data].concat();
    if let Some(checkpoint) = Checkpoint::decode(&sealed) {
        assert_eq!(Checkpoint::decode(&checkpoint.encode()), Some(checkpoint));
    }
});
