//! A clerk: one connection, and the task that takes jobs from the tray to it.

use std::sync::Arc;
use std::time::Duration;

use airmail_model::{Error, ErrorCode};

use super::link::Link;
use super::{Surroundings, round};

const RETRY: Duration = Duration::from_millis(100);

/// Serves until the tray is closed and empty.
pub(super) async fn run(with: Arc<Surroundings>) {
    while !(with.tray.is_closed() && with.tray.is_empty()) {
        match Link::connect(&with.config, None).await {
            Ok(link) => {
                // Another database may have taken the place of the one before.
                with.heads.forget();
                let _connected = with.counts.connected();
                serve(&with, link).await;
                with.tray.pass_on();
            }
            Err(error) => {
                tracing::warn!(error, "the database of the mailboxes does not answer");
                give_up(&with, &error);
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// Answers those who have waited long enough; all of them if there will be no more tries.
fn give_up(with: &Surroundings, why: &str) {
    let patience = if with.tray.is_closed() {
        Duration::ZERO
    } else {
        Duration::from_millis(with.options.patience_ms)
    };
    for job in with.tray.take_overdue(patience) {
        let error = Error::new(ErrorCode::MailboxesAway)
            .field("database")
            .value(why)
            .retry_after(Duration::from_secs(1));
        job.fail(error);
    }
}

/// Does jobs until the connection or the tray has ended.
async fn serve(with: &Surroundings, mut link: Link) {
    while !link.is_closed() {
        let taken = tokio::select! {
            biased;
            () = link.closed() => return,
            taken = with.tray.next() => taken,
        };
        let Some(mut taken) = taken else {
            return;
        };
        let _at_work = with.counts.at_work(taken.len(), taken.waited);
        round::run(with, &link, std::mem::take(&mut taken.kinds)).await;
    }
}
