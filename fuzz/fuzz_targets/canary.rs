//! A planted bug: it fails on four certain bytes and three more behind them, and so proves that
//! comparisons and coverage come back to the fuzzer. `cargo xtask fuzz` fails if this does not.

#![no_main]

use airmail_fuzz::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some(rest) = data.strip_prefix(b"MAIL") else {
        return;
    };
    let sum = rest
        .iter()
        .take(3)
        .try_fold(0_u8, |sum, byte| sum.checked_add(byte / 2));
    assert!(sum != Some(200), "found, as it must be");
});
