//! The identity file of a data directory.

#![no_main]

use airmail_fuzz::fuzz_target;
use airmail_log::disk::Identity;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let _ = Identity::parse(text);
    // The same with the checksum that it would need.
    let body = text.split_inclusive("crc32c ").next().unwrap_or_default();
    let body = body.strip_suffix("crc32c ").unwrap_or(body);
    let crc = crc32c::crc32c(body.as_bytes());
    let sealed = format!("{body}crc32c {crc:08x}\n");
    if let Ok(identity) = Identity::parse(&sealed) {
        assert_eq!(Identity::parse(&identity.to_string()), Ok(identity));
    }
});
