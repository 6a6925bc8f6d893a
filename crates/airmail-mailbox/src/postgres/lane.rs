//! A lane: one connection, and the task that takes jobs from the tray to it.

use std::sync::Arc;
use std::time::Duration;

use airmail_model::{Error, ErrorCode};
use tokio::sync::watch;
use tokio::time::timeout;

use super::link::Link;
use super::{Surroundings, work};

const RETRY: Duration = Duration::from_millis(100);

/// Serves until the tray is closed and empty.
pub(super) async fn run(with: Arc<Surroundings>) {
    let mut life = with.answers.life();
    while !(with.tray.is_closed() && with.tray.is_empty()) {
        // The flusher's connection first, see there.
        let present = timeout(RETRY, life.wait_for(|life| *life != 0)).await;
        let Ok(Ok(present)) = present.map(|present| present.map(|present| *present)) else {
            give_up(&with, &with.answers.trouble());
            continue;
        };
        match Link::connect(&with.lane_config, None).await {
            Ok(link) => {
                // Another database may have taken the place of the one before.
                with.heads.forget();
                let _connected = with.counts.connected();
                serve(&with, link, present, &mut life).await;
            }
            Err(error) => {
                tracing::warn!(error, "a lane of the mailboxes has no connection");
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

/// Does jobs until the connection, the flusher's or the tray has ended.
async fn serve(with: &Surroundings, mut link: Link, present: u64, life: &mut watch::Receiver<u64>) {
    while !link.is_closed() {
        with.answers.room().await;
        let jobs = tokio::select! {
            biased;
            () = link.closed() => return,
            _ = life.wait_for(|life| *life != present) => return,
            jobs = with.tray.next() => jobs,
        };
        match jobs {
            Some(jobs) => {
                let _at_work = with.counts.at_work(jobs.len());
                work::run(with, &mut link, present, jobs).await;
            }
            None => return,
        }
    }
}
