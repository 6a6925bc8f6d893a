//! Numbers that matter: small ones, which meet one another, and the last ones that there are.

/// A small number, or one of the 16 before the last, which no record has.
pub fn number(byte: u8) -> u64 {
    match byte {
        0..=239 => u64::from(byte % 40),
        _ => u64::MAX - 1 - u64::from(255 - byte),
    }
}
