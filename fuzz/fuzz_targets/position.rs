//! Positions: a text is refused, or it is exactly the encoding of the position that it gives.

#![no_main]

use airmail_fuzz::fuzz_target;
use airmail_model::Position;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

fn check(text: &str) {
    if let Ok(position) = text.parse::<Position>() {
        assert_eq!(position.to_string(), text);
    }
}

fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        check(text);
    }
    // The bytes of one, with the checksum that they would need.
    let sealed = [data, &crc32c::crc32c(data).to_le_bytes()].concat();
    check(&format!("pos1-{}", URL_SAFE_NO_PAD.encode(sealed)));
});
