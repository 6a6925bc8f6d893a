//! Batches: jobs of one kind, which one statement does, and their answers.

use super::StoreContext;
use super::connection::DatabaseConnection;
use super::job::{Job, JobKind, ReplySender};
use super::statement_error::StatementError;
use super::statements::{self, ACKNOWLEDGE, EXTEND, RELEASE, SEND, TAKE};
use crate::message::{Message, Outgoing, Receipt, Receive, Settle, Take};
use crate::store::{SendResults, SettleResults};
use crate::store_error::{NotFound, StoreError, StoreFailure};
use airmail_model::bug;
use futures::future::join_all;

/// Messages to store, and the reply of each job.
pub(super) type Sends = Vec<(Vec<Outgoing>, ReplySender<SendResults>)>;
/// Requests for messages, and the reply of each job.
pub(super) type Receives = Vec<(Receive, ReplySender<Vec<Message>, StoreError<NotFound>>)>;
/// Leases to settle, and the reply of each job.
pub(super) type Settles = Vec<(Vec<Receipt>, ReplySender<SettleResults>)>;

/// Jobs of one kind. One statement does all of them, but for statements, which are run one by one.
#[derive(Debug)]
pub(super) enum JobBatch {
    Send(Sends),
    Receive(Take, Receives),
    Settle(Settle, Settles),
    Statements(Vec<Job>),
}

/// The results of a batch's statement, in the order of its jobs.
#[derive(Debug)]
pub(super) enum BatchResults {
    /// A result for each message.
    Sent(SendResults),
    /// The messages for each job.
    Received(Vec<Vec<Message>>),
    /// A result for each lease.
    Settled(SettleResults),
    /// Nothing: the statements have been answered.
    Answered,
}

impl JobBatch {
    /// Makes a batch of jobs of one kind; none of no jobs.
    pub(super) fn of(jobs: impl Iterator<Item = Job>) -> Option<JobBatch> {
        let mut jobs = jobs.peekable();
        let kind = jobs.peek().map(Job::kind)?;
        let (mut sends, mut receives, mut settles, mut statements) =
            <(Sends, Receives, Settles, _)>::default();
        for job in jobs {
            match job {
                Job::Send { messages, reply } => sends.push((messages, reply)),
                Job::Receive { request, reply } => receives.push((request, reply)),
                Job::Settle {
                    receipts, reply, ..
                } => settles.push((receipts, reply)),
                statement @ Job::Statement { .. } => Vec::push(&mut statements, statement),
            }
        }
        Some(match kind {
            JobKind::Send => JobBatch::Send(sends),
            JobKind::Receive(take) => JobBatch::Receive(take, receives),
            JobKind::Settle(what) => JobBatch::Settle(what, settles),
            JobKind::Statement => JobBatch::Statements(statements),
        })
    }

    /// Returns the batch's statement, if it changes something and can share a transaction with others.
    pub(super) fn shared_change(&self) -> Option<&'static str> {
        match self {
            JobBatch::Send(_) => Some(SEND),
            JobBatch::Receive(Take::Peek, _) | JobBatch::Statements(_) => None,
            JobBatch::Receive(..) => Some(TAKE),
            JobBatch::Settle(Settle::Acknowledge, _) => Some(ACKNOWLEDGE),
            JobBatch::Settle(Settle::Extend { .. }, _) => Some(EXTEND),
            JobBatch::Settle(Settle::Release { .. }, _) => Some(RELEASE),
        }
    }

    /// Returns the number of jobs.
    pub(super) fn len(&self) -> usize {
        match self {
            JobBatch::Send(jobs) => jobs.len(),
            JobBatch::Receive(_, jobs) => jobs.len(),
            JobBatch::Settle(_, jobs) => jobs.len(),
            JobBatch::Statements(jobs) => jobs.len(),
        }
    }

    /// Makes a batch of each job.
    pub(super) fn split(self) -> impl Iterator<Item = JobBatch> {
        let jobs = self.into_jobs().into_iter();
        jobs.filter_map(|job| JobBatch::of(std::iter::once(job)))
    }

    /// Makes jobs of the batch again.
    pub(super) fn into_jobs(self) -> Vec<Job> {
        match self {
            JobBatch::Send(jobs) => (jobs.into_iter())
                .map(|(messages, reply)| Job::Send { messages, reply })
                .collect(),
            JobBatch::Receive(_, jobs) => (jobs.into_iter())
                .map(|(request, reply)| Job::Receive { request, reply })
                .collect(),
            JobBatch::Settle(what, jobs) => (jobs.into_iter())
                .map(|(receipts, reply)| Job::Settle {
                    receipts,
                    what,
                    reply,
                })
                .collect(),
            JobBatch::Statements(jobs) => jobs,
        }
    }

    /// Runs the batch's statement. Jobs that receive, and for which there is nothing, are answered at
    /// once: that nothing changed for them holds whatever becomes of the statement.
    pub(super) async fn run(
        &mut self,
        context: &StoreContext,
        connection: &DatabaseConnection,
    ) -> Result<BatchResults, StatementError> {
        match self {
            JobBatch::Send(jobs) => statements::send(connection, jobs)
                .await
                .map(BatchResults::Sent),
            JobBatch::Receive(take, jobs) => {
                let results = statements::receive(context, connection, *take, jobs).await?;
                let mut received = Vec::new();
                for ((request, reply), result) in std::mem::take(jobs).into_iter().zip(results) {
                    match result {
                        Ok(messages) if !messages.is_empty() => {
                            jobs.push((request, reply));
                            received.push(messages);
                        }
                        nothing => drop(reply.send(nothing.map_err(StoreError::Refused))),
                    }
                }
                Ok(BatchResults::Received(received))
            }
            JobBatch::Settle(what, jobs) => statements::settle(connection, *what, jobs)
                .await
                .map(BatchResults::Settled),
            JobBatch::Statements(jobs) => {
                let jobs = std::mem::take(jobs).into_iter();
                join_all(jobs.map(|job| statements::run(context, connection, job))).await;
                Ok(BatchResults::Answered)
            }
        }
    }

    /// Answers each job with its part of the results.
    pub(super) async fn answer(self, connection: &DatabaseConnection, results: BatchResults) {
        match (self, results) {
            (JobBatch::Send(jobs), BatchResults::Sent(results)) => answer_parts(jobs, results),
            (JobBatch::Receive(take, jobs), BatchResults::Received(results)) => {
                let mut orphans = Vec::new();
                for ((_, reply), result) in jobs.into_iter().zip(results) {
                    if let Err(Ok(messages)) = reply.send(Ok(result)) {
                        orphans.extend(messages);
                    }
                }
                statements::give_back(connection, take, &orphans).await;
            }
            (JobBatch::Settle(_, jobs), BatchResults::Settled(results)) => {
                answer_parts(jobs, results)
            }
            (JobBatch::Statements(_), BatchResults::Answered) => {}
            (batch, results) => {
                bug!("{batch:?} has got {results:?}");
                let reason = "an answer of another kind".to_owned();
                batch.fail(&StoreFailure::Internal { reason });
            }
        }
    }

    /// Answers all jobs with a failure.
    pub(super) fn fail(self, failure: &StoreFailure) {
        for job in self.into_jobs() {
            job.fail(failure.clone());
        }
    }
}

/// Answers jobs that have several items each, from a result for each item.
fn answer_parts<Item, R>(jobs: Vec<(Vec<Item>, ReplySender<Vec<R>>)>, mut results: Vec<R>) {
    for (items, reply) in jobs.into_iter().rev() {
        let rest = results.len().saturating_sub(items.len());
        // A caller that no longer waits does not hear it.
        let _ = reply.send(Ok(results.split_off(rest)));
    }
}
