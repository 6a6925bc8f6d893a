//! A worker: one connection, and the task that takes jobs from the request queue to it.
//!
//! A round trip that the database does not answer at all ends with its connection, so that nobody waits
//! for ever: what it would have changed has an unknown outcome then. A lock is never the cause, since the
//! database itself ends the wait for one, and says that nothing was done.

use super::connection::DatabaseConnection;
use super::{StoreContext, round_trip};
use std::sync::Arc;
use std::time::Duration;

const RETRY: Duration = Duration::from_millis(100);
/// Factor by which the wait for a round trip is longer than the patience of a request.
const ROUND_TRIP_SHARE: u32 = 2;
/// Least wait for a round trip: a disk may be slow.
const ROUND_TRIP_MIN: Duration = Duration::from_secs(5);
/// Least wait for a round trip with statements that may take long though nothing is wrong.
const LONG_ROUND_TRIP_MIN: Duration = Duration::from_secs(600);

/// Serves until the queue is closed and empty.
pub(super) async fn run(context: Arc<StoreContext>) {
    while !(context.request_queue.is_closed() && context.request_queue.is_empty()) {
        match DatabaseConnection::open(&context.config, None).await {
            Ok(connection) => {
                context.liveness.note_connected();
                // Another database may have taken the place of the one before.
                context.low_water.forget_all();
                let _connected = context.load_counters.count_connection();
                serve(&context, connection).await;
                context.request_queue.wake_another();
            }
            Err(failure) => {
                context.liveness.note_not_connected(failure);
                context.fail_overdue_requests();
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// Makes round trips until the connection or the queue has ended.
async fn serve(context: &StoreContext, mut connection: DatabaseConnection) {
    while !connection.is_closed() {
        let assignment = tokio::select! {
            biased;
            () = connection.closed() => return,
            assignment = context.request_queue.next() => assignment,
        };
        let Some(assignment) = assignment else {
            // Input: the queue is closed and empty.
            return;
        };
        let _under_way = context
            .load_counters
            .count_round_trip(assignment.jobs, assignment.waited);
        let time_max = round_trip_max(context.options.patience(), assignment.takes_long);
        let round_trip = round_trip::run(context, &connection, assignment);
        tokio::pin!(round_trip);
        if tokio::time::timeout(time_max, &mut round_trip)
            .await
            .is_err()
        {
            tracing::warn!(
                seconds = time_max.as_secs(),
                "the database of the mailboxes does not answer: its connection is given up"
            );
            connection.abandon();
            round_trip.await;
        }
    }
}

/// Returns the time after which a round trip is given up.
fn round_trip_max(patience: Duration, takes_long: bool) -> Duration {
    let usual = patience
        .saturating_mul(ROUND_TRIP_SHARE)
        .max(ROUND_TRIP_MIN);
    if takes_long {
        usual.max(LONG_ROUND_TRIP_MIN)
    } else {
        usual
    }
}
