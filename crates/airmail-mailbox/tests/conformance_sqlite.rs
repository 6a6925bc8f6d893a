//! SQLite passes the suite.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

use airmail_mailbox::Mailboxes;
use airmail_mailbox::sqlite::{SqliteStore, WAITING_MAX};
use std::sync::Arc;

fn run<F: Future<Output = ()>>(claim: impl FnOnce(Mailboxes) -> F) {
    let directory = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store =
            SqliteStore::start(&directory.path().join("mailboxes.db"), WAITING_MAX).unwrap();
        let mailboxes = Mailboxes::new(Arc::new(store));
        claim(mailboxes.clone()).await;
        mailboxes.close().await.unwrap();
    });
}

airmail_mailbox::conformance!(run);
