//! A round trip: the batches of one assignment, in one write to the database.
//!
//! Batches that only read go first and are answered as soon as their rows are there. All that change
//! something are one transaction, so that they wait for the disk once. A statement that is refused has
//! done nothing, and neither have the others of its transaction; then each batch is run by itself, and
//! where it is refused again its jobs one by one, so that each gets its own error and none another's.
//!
//! A statement that waits for a lock for too long is rolled back by the database, with its transaction.
//! Its jobs go back into the queue, and fail when they have waited for as long as any request may:
//! nothing was done for them.

use super::StoreContext;
use super::connection::DatabaseConnection;
use super::job::Job;
use super::job_batch::{BatchResults, JobBatch};
use super::request_queue::Assignment;
use super::statement_error::StatementError;
use crate::store_error::StoreFailure;
use futures::future::{BoxFuture, join, join_all, join3};

/// Does the batches of an assignment.
pub(super) async fn run(
    context: &StoreContext,
    connection: &DatabaseConnection,
    mut assignment: Assignment<'_>,
) {
    let reads = std::mem::take(&mut assignment.alone);
    let changes = std::mem::take(&mut assignment.changes);
    let alone = |batch| run_alone(context, connection, batch);
    let reads = join_all(reads.into_iter().map(alone));
    // A job whose statement timed out must not make others time out with it.
    if changes.len() < 2 || assignment.is_retry {
        join(reads, join_all(changes.into_iter().map(alone))).await;
    } else {
        join(reads, run_together(context, connection, changes)).await;
    }
}

/// Runs one batch in a transaction of its own.
fn run_alone<'a>(
    context: &'a StoreContext,
    connection: &'a DatabaseConnection,
    mut batch: JobBatch,
) -> BoxFuture<'a, ()> {
    Box::pin(async move {
        match batch.run(context, connection).await {
            Ok(results) => {
                context.liveness.note_answer();
                batch.answer(connection, results).await;
            }
            Err(StatementError::TimedOut(failure)) => requeue_all(context, batch, &failure),
            Err(StatementError::Raised(_) | StatementError::Refused(_)) if batch.len() > 1 => {
                for job in batch.split() {
                    run_alone(context, connection, job).await;
                }
            }
            Err(error) => batch.fail(&error.into_failure()),
        }
    })
}

/// Puts jobs back into the queue for which nothing was done, unless they have waited for long enough.
fn requeue_all(context: &StoreContext, batch: JobBatch, failure: &StoreFailure) {
    for job in batch.into_jobs() {
        requeue(context, job, failure);
    }
}

/// Puts a job back into the queue for which nothing was done. If it has waited for long enough, or the
/// queue is closed, it fails.
pub(super) fn requeue(context: &StoreContext, mut job: Job, failure: &StoreFailure) {
    job.count_timeout();
    if job.wait().is_over(context.options.patience()) {
        job.fail(failure.clone());
    } else if let Err(job) = context.request_queue.push_again(job) {
        job.fail(failure.clone());
    }
}

/// Runs batches that change something in one transaction.
async fn run_together(
    context: &StoreContext,
    connection: &DatabaseConnection,
    mut batches: Vec<JobBatch>,
) {
    match commit(context, connection, &mut batches).await {
        Ok(results) => {
            context.liveness.note_answer();
            // All at once: a batch that has messages to give back holds up no other.
            let answers = batches.into_iter().zip(results);
            join_all(answers.map(|(batch, results)| batch.answer(connection, results))).await;
        }
        Err(StatementError::Raised(_) | StatementError::Refused(_)) => {
            // A batch may have no jobs left: those for which there was nothing have been answered.
            for batch in batches.into_iter().filter(|batch| batch.len() > 0) {
                run_alone(context, connection, batch).await;
            }
        }
        Err(StatementError::TimedOut(failure)) => {
            for batch in batches {
                requeue_all(context, batch, &failure);
            }
        }
        Err(StatementError::ConnectionLost) => {
            let failure = StatementError::ConnectionLost.into_failure();
            batches.into_iter().for_each(|batch| batch.fail(&failure));
        }
    }
}

/// Runs the batches' statements in one transaction, and returns their results if it was committed.
async fn commit(
    context: &StoreContext,
    connection: &DatabaseConnection,
    batches: &mut [JobBatch],
) -> Result<Vec<BatchResults>, StatementError> {
    // A statement that is prepared on the way would come behind the commit.
    for sql in batches.iter().filter_map(JobBatch::shared_change) {
        connection.prepare(sql).await?;
    }
    let run = join_all(
        batches
            .iter_mut()
            .map(|batch| batch.run(context, connection)),
    );
    let (begun, run, committed) =
        join3(connection.run("BEGIN"), run, connection.run("COMMIT")).await;
    // COMMIT of a failed transaction is a rollback, and succeeds.
    let results: Result<Vec<BatchResults>, StatementError> = run.into_iter().collect();
    match (begun, results, committed) {
        (Err(StatementError::ConnectionLost), ..)
        | (_, Err(StatementError::ConnectionLost), _)
        | (.., Err(StatementError::ConnectionLost)) => Err(StatementError::ConnectionLost),
        (Ok(()), Ok(results), Ok(())) => Ok(results),
        (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => Err(error),
    }
}
