//! The conformance suite on the `memory` storage: with its defaults, and with everything tiny.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

mod subjects;

mod by_default {
    use super::subjects::InMemory;
    use airmail_log::journal::JournalConfig;

    airmail_log::conformance!(InMemory::new(JournalConfig::memory(0)));
}

mod tiny {
    use super::subjects::{InMemory, tiny};
    use airmail_log::journal::JournalConfig;

    airmail_log::conformance!(InMemory::new(tiny(JournalConfig::memory(0))));
}
