//! PostgreSQL passes the suite.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

use airmail_mailbox::Mailboxes;
use airmail_testkit::postgres;
use std::sync::Arc;

fn run<F: Future<Output = ()>>(claim: impl FnOnce(Mailboxes) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (store, _) = postgres::new_store();
        let mailboxes = Mailboxes::new(Arc::new(store));
        claim(mailboxes.clone()).await;
        mailboxes.close().await.unwrap();
    });
}

airmail_mailbox::conformance!(run);
