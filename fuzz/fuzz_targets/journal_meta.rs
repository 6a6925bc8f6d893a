//! The journal's commands.

#![no_main]

use airmail_fuzz::fuzz_target;
use airmail_log::journal::meta::Meta;

fuzz_target!(|data: &[u8]| {
    let _ = Meta::decode(data);
    let sealed = [&crc32c::crc32c(data).to_le_bytes()[..], data].concat();
    if let Some(command) = Meta::decode(&sealed) {
        assert_eq!(Meta::decode(&command.encode()), Some(command));
    }
});
