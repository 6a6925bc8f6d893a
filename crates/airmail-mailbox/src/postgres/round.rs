//! A round of a clerk: what has gathered, of all kinds, in one write to the database.
//!
//! What only reads goes first and is answered as soon as it is there. Of what changes something, all
//! kinds are one transaction: they wait for the disk once. A statement that is refused has done nothing,
//! nor have the others of its transaction; then each is done by itself, and where it is still refused
//! its jobs one by one, so that each gets its own error and none another's.
//!
//! A statement that waits for a lock for too long is rolled back by the database, with its transaction.
//! Its jobs go back into the tray, and are told so when their patience is over: nothing was done for
//! them.

use super::Surroundings;
use super::batch::{Batch, Outcome};
use super::fault::Fault;
use super::job::Job;
use super::link::Link;
use airmail_model::Error;
use futures::future::{BoxFuture, join, join_all, join3};

/// Does jobs, of one kind in each part, in their order.
pub(super) async fn run(with: &Surroundings, link: &Link, kinds: Vec<Vec<Job>>) {
    // One that was late does not make others so again.
    let is_late = kinds.iter().flatten().any(|job| job.wait().lates() > 0);
    let batches = kinds.into_iter().filter_map(Batch::of);
    let (changes, reads): (Vec<Batch>, Vec<Batch>) =
        batches.partition(|batch| batch.change().is_some());
    let reads = join_all(reads.into_iter().map(|batch| alone(with, link, batch)));
    if changes.len() < 2 || is_late {
        let changes = join_all(changes.into_iter().map(|batch| alone(with, link, batch)));
        join(reads, changes).await;
    } else {
        join(reads, together(with, link, changes)).await;
    }
}

/// One batch, in a transaction of its own.
fn alone<'a>(with: &'a Surroundings, link: &'a Link, mut batch: Batch) -> BoxFuture<'a, ()> {
    Box::pin(async move {
        match batch.ask(with, link).await {
            Ok(outcome) => {
                with.pulse.beat();
                batch.answer(link, outcome).await;
            }
            Err(Fault::Late(error)) => try_again(with, batch, &error),
            Err(Fault::Refused(_)) if batch.len() > 1 => {
                for job in batch.split() {
                    alone(with, link, job).await;
                }
            }
            Err(fault) => batch.fail(&fault.of_change()),
        }
    })
}

/// Puts back jobs for which nothing was done, unless they have waited for long enough.
fn try_again(with: &Surroundings, batch: Batch, why: &Error) {
    for job in batch.into_jobs() {
        job_again(with, job, why);
    }
}

/// Puts a job back for which nothing was done, unless it has waited for long enough.
pub(super) fn job_again(with: &Surroundings, mut job: Job, why: &Error) {
    job.was_late();
    if job.wait().is_over(with.options.patience()) {
        job.fail(why.clone());
    } else if let Err(job) = with.tray.put_back(job) {
        job.fail(why.clone());
    }
}

/// Batches that change something, in one transaction.
async fn together(with: &Surroundings, link: &Link, mut batches: Vec<Batch>) {
    match commit(with, link, &mut batches).await {
        Ok(outcomes) => {
            with.pulse.beat();
            // At once: one that has to give messages back holds up no other.
            let answers = batches.into_iter().zip(outcomes);
            join_all(answers.map(|(batch, outcome)| batch.answer(link, outcome))).await;
        }
        Err(Fault::Refused(_)) => {
            // Without those that have been told that there is nothing.
            for batch in batches.into_iter().filter(|batch| batch.len() > 0) {
                alone(with, link, batch).await;
            }
        }
        Err(Fault::Late(error)) => {
            for batch in batches {
                try_again(with, batch, &error);
            }
        }
        Err(Fault::Lost) => {
            let error = Fault::Lost.of_change();
            batches.into_iter().for_each(|batch| batch.fail(&error));
        }
    }
}

async fn commit(
    with: &Surroundings,
    link: &Link,
    batches: &mut [Batch],
) -> Result<Vec<Outcome>, Fault> {
    // One that is prepared in between would come behind the commit.
    for sql in batches.iter().filter_map(Batch::change) {
        link.prepare(sql).await?;
    }
    let asked = join_all(batches.iter_mut().map(|batch| batch.ask(with, link)));
    let (begun, asked, committed) = join3(link.run("BEGIN"), asked, link.run("COMMIT")).await;
    // The commit of what was refused is none.
    let outcomes: Result<Vec<Outcome>, Fault> = asked.into_iter().collect();
    match (begun, outcomes, committed) {
        (Err(Fault::Lost), ..) | (_, Err(Fault::Lost), _) | (.., Err(Fault::Lost)) => {
            Err(Fault::Lost)
        }
        (Ok(()), Ok(outcomes), Ok(())) => Ok(outcomes),
        (Err(fault), ..) | (_, Err(fault), _) | (.., Err(fault)) => Err(fault),
    }
}
