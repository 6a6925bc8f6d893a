//! The conformance suite on the `disk` storage: with its defaults, and with everything tiny. And on
//! the same journal over files in memory, where a failure is quicker to look into.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

mod subjects;

mod by_default {
    use super::subjects::OnDisk;
    use airmail_log::journal::JournalConfig;

    airmail_log::conformance!(OnDisk::new(JournalConfig::default()));
}

mod tiny {
    use super::subjects::{OnDisk, tiny};
    use airmail_log::journal::JournalConfig;

    airmail_log::conformance!(OnDisk::new(tiny(JournalConfig::default())));
}

mod in_memory {
    use super::subjects::{OnKept, tiny};
    use airmail_log::journal::JournalConfig;

    airmail_log::conformance!(OnKept::new(tiny(JournalConfig::default())));
}
