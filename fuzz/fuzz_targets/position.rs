//! Positions: a text is refused, or it is exactly what the position it says would write.

#![no_main]

use airmail_model::Position;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(position) = text.parse::<Position>() {
        assert_eq!(position.to_string(), text);
    }
});
