//! A clerk: one connection, and the task that takes jobs from the tray to it.
//!
//! A round that the database does not answer at all ends with its connection, so that nobody waits
//! for ever: what it would have changed has an unknown outcome then. Locks are not among the causes,
//! since the database itself ends the wait for one, and says that nothing was done.

use super::link::Link;
use super::tray::Taken;
use super::{Surroundings, round};
use std::sync::Arc;
use std::time::Duration;

const RETRY: Duration = Duration::from_millis(100);
/// A round is waited for so many times as long as a request waits at all,
const ROUND_SHARE: u32 = 2;
/// but for no less than this, since a disk may be slow,
const ROUND_MIN: Duration = Duration::from_secs(5);
/// and for this, if it may take long though nothing is wrong.
const LONG_ROUND_MAX: Duration = Duration::from_secs(600);

/// Serves until the tray is closed and empty.
pub(super) async fn run(with: Arc<Surroundings>) {
    while !(with.tray.is_closed() && with.tray.is_empty()) {
        match Link::connect(&with.config, None).await {
            Ok(link) => {
                with.pulse.recover();
                // Another database may have taken the place of the one before.
                with.heads.forget();
                let _connected = with.counts.connected();
                serve(&with, link).await;
                with.tray.pass_on();
            }
            Err(error) => {
                with.pulse.fail(error);
                with.give_up();
                tokio::time::sleep(RETRY).await;
            }
        }
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
        let bound = bound(with.options.patience(), &taken);
        let round = round::run(with, &link, std::mem::take(&mut taken.kinds));
        tokio::pin!(round);
        if tokio::time::timeout(bound, &mut round).await.is_err() {
            tracing::warn!(
                seconds = bound.as_secs(),
                "the database of the mailboxes does not answer: its connection is given up"
            );
            link.abandon();
            round.await;
        }
    }
}

/// How long a round is waited for.
fn bound(patience: Duration, taken: &Taken<'_>) -> Duration {
    let usual = patience.saturating_mul(ROUND_SHARE).max(ROUND_MIN);
    if taken.takes_long() {
        usual.max(LONG_ROUND_MAX)
    } else {
        usual
    }
}
