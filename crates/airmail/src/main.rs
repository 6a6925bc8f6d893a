//! airmail
fn main() {}
