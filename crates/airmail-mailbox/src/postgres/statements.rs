//! The statements of requests: what the functions of the schema take as arrays, and what their rows mean
//! for each request.

use super::StoreContext;
use super::connection::DatabaseConnection;
use super::job::Job;
use super::job_batch::{Receives, Sends, Settles};
use super::round_trip::requeue;
use super::row::{count, message, millis};
use super::statement_error::{StatementError, away};
use crate::id::MessageId;
use crate::message::{Inbox, Message, Outgoing, Receipt, Settle, Take};
use crate::receiver::receiver;
use crate::store::{SendResults, SettleResults};
use crate::store_error::{LeaseEnded, NotFound, StoreFailure};
use airmail_model::bug;
use std::collections::BTreeMap;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

pub(super) const SEND: &str =
    "SELECT at, id, fault FROM airmail.send_many($1, $2, $3, $4, $5, $6, $7, $8)";
pub(super) const TAKE: &str = "SELECT * FROM airmail.take_many($1, $2, $3, $4, $5, $6)";
const PEEK: &str = "SELECT * FROM airmail.peek_many($1, $2, $3, $4, $5)";
const RESTORE: &str = "SELECT airmail.restore_many($1, $2, $3, $4)::text";
pub(super) const ACKNOWLEDGE: &str = "SELECT airmail.acknowledge_many($1, $2)";
pub(super) const EXTEND: &str = "SELECT airmail.extend_many($1, $2, $3)";
pub(super) const RELEASE: &str = "SELECT airmail.release_many($1, $2, $3)";

/// Runs a job that is a statement of its own, and answers it.
pub(super) async fn run(context: &StoreContext, connection: &DatabaseConnection, job: Job) {
    let Job::Statement {
        sql,
        parameters,
        class,
        reply,
    } = job
    else {
        bug!("a job without a statement of its own: {job:?}");
        let reason = "a request without a statement".to_owned();
        return job.fail(StoreFailure::Internal { reason });
    };
    let borrowed: Vec<&(dyn ToSql + Sync)> = parameters
        .iter()
        .map(|parameter| parameter.as_ref() as &(dyn ToSql + Sync))
        .collect();
    let answered = connection.query(sql, &borrowed).await;
    // Nothing was done, or the statement changes nothing: it may be repeated.
    let reason = match answered {
        Err(StatementError::TimedOut(failure)) => failure,
        Err(StatementError::ConnectionLost) if class.is_read() => away("the connection was lost"),
        answered => {
            if !matches!(answered, Err(StatementError::ConnectionLost)) {
                context.liveness.note_answer();
            }
            return drop(reply.send(answered.map_err(StatementError::into)));
        }
    };
    let again = Job::Statement {
        sql,
        parameters,
        class,
        reply,
    };
    requeue(context, again, &reason);
}

/// Stores the messages of all jobs.
pub(super) async fn send(
    connection: &DatabaseConnection,
    jobs: &Sends,
) -> Result<SendResults, StatementError> {
    let messages: Vec<&Outgoing> = jobs.iter().flat_map(|(messages, _)| messages).collect();
    let queues: Vec<i32> = messages.iter().map(|m| m.queue.0).collect();
    let senders: Vec<i32> = messages.iter().map(|m| m.sender.0).collect();
    let receivers: Vec<i32> = messages.iter().map(|m| receiver(m.recipients)).collect();
    let contents: Vec<&[u8]> = messages.iter().map(|m| &m.content[..]).collect();
    let priorities: Vec<i16> = messages.iter().map(|m| i16::from(m.priority)).collect();
    let keys: Vec<Option<&str>> = messages.iter().map(|m| m.key.as_deref()).collect();
    let delays: Vec<i64> = messages.iter().map(|m| millis(m.delay_ms)).collect();
    let lifetimes: Vec<Option<i64>> = messages.iter().map(|m| m.lifetime_ms.map(millis)).collect();
    let parameters: [&(dyn ToSql + Sync); 8] = [
        &queues,
        &senders,
        &receivers,
        &contents,
        &priorities,
        &keys,
        &delays,
        &lifetimes,
    ];
    let rows = connection.query(SEND, &parameters).await?;
    let results =
        rows.iter()
            .zip(messages)
            .map(|(row, message)| match row.get::<_, Option<&str>>("fault") {
                None => Ok(MessageId(row.get("id"))),
                Some("queue") => Err(NotFound::queue(message.queue)),
                Some("sender") => Err(NotFound::account("from", message.sender)),
                Some(_) => Err(NotFound::account("to", receiver(message.recipients))),
            });
    Ok(results.collect())
}

/// Hands out messages, and distributes them among the jobs.
pub(super) async fn receive(
    context: &StoreContext,
    connection: &DatabaseConnection,
    take: Take,
    jobs: &Receives,
) -> Result<Vec<Result<Vec<Message>, NotFound>>, StatementError> {
    let inboxes: Vec<Inbox> = jobs.iter().map(|(request, _)| request.inbox()).collect();
    let queues: Vec<i32> = inboxes.iter().map(|inbox| inbox.queue.0).collect();
    let readers: Vec<i32> = jobs.iter().map(|(request, _)| request.reader.0).collect();
    let receivers: Vec<i32> = inboxes
        .iter()
        .map(|inbox| receiver(inbox.recipients))
        .collect();
    let counts: Vec<i32> = jobs
        .iter()
        .map(|(request, _)| count(request.count))
        .collect();
    let lows: Vec<i64> = inboxes
        .iter()
        .map(|inbox| context.low_water.of(*inbox))
        .collect();
    let rows = if take == Take::Peek {
        let parameters: [&(dyn ToSql + Sync); 5] = [&queues, &readers, &receivers, &counts, &lows];
        connection.query(PEEK, &parameters).await?
    } else {
        let lease_ms = match take {
            Take::Lease { lease_ms } => Some(millis(lease_ms)),
            Take::Peek | Take::Remove => None,
        };
        let parameters: [&(dyn ToSql + Sync); 6] =
            [&queues, &readers, &receivers, &counts, &lows, &lease_ms];
        connection.query(TAKE, &parameters).await?
    };
    Ok(distribute(jobs, &inboxes, rows))
}

/// Distributes rows among the jobs: a row that names a job is that job's; any other belongs to its inbox,
/// whose jobs are served in their order, each with one message before any gets more.
fn distribute(
    jobs: &Receives,
    inboxes: &[Inbox],
    rows: Vec<Row>,
) -> Vec<Result<Vec<Message>, NotFound>> {
    let mut results: Vec<Result<Vec<Message>, NotFound>> =
        jobs.iter().map(|_| Ok(Vec::new())).collect();
    let mut by_inbox: BTreeMap<Inbox, Vec<Message>> = BTreeMap::new();
    for row in rows {
        let at: Option<i32> = row.get("at");
        let index = at.and_then(|at| usize::try_from(at - 1).ok());
        let fault: Option<&str> = row.get("fault");
        match (
            index.and_then(|index| Some((results.get_mut(index)?, jobs.get(index)?))),
            fault,
        ) {
            (Some((result, (request, _))), Some(fault)) => {
                *result = Err(match fault {
                    "queue" => NotFound::queue(request.queue),
                    _ => NotFound::account("as", request.reader),
                });
            }
            (Some((Ok(own), _)), None) => own.push(message(&row)),
            _ => {
                let message = message(&row);
                let (queue, recipients) = (message.queue, message.recipients);
                by_inbox
                    .entry(Inbox { queue, recipients })
                    .or_default()
                    .push(message);
            }
        }
    }
    for messages in by_inbox.values_mut() {
        messages.reverse();
    }
    let mut unserved: BTreeMap<Inbox, usize> = BTreeMap::new();
    for inbox in inboxes {
        *unserved.entry(*inbox).or_default() += 1;
    }
    for ((result, inbox), (request, _)) in results.iter_mut().zip(inboxes).zip(jobs) {
        if let (Ok(own), Some(messages), Some(unserved)) =
            (result, by_inbox.get_mut(inbox), unserved.get_mut(inbox))
        {
            // There may be more messages than came, so no job may be left with nothing.
            *unserved -= 1;
            let free = messages.len().saturating_sub(*unserved).max(1);
            let rest = messages.len() - messages.len().min(request.count).min(free);
            own.extend(messages.drain(rest..).rev());
        }
    }
    results
}

/// Gives back messages whose readers were gone before the answer came, so that others get them.
pub(super) async fn give_back(connection: &DatabaseConnection, take: Take, orphans: &[Message]) {
    if orphans.is_empty() || take == Take::Peek {
        return;
    }
    let ids: Vec<i64> = orphans.iter().map(|message| message.id.0).collect();
    let given = if let Take::Lease { .. } = take {
        let leases: Vec<i64> = orphans.iter().filter_map(|m| Some(m.lease?.0)).collect();
        connection.query(RELEASE, &[&ids, &leases, &0_i64]).await
    } else {
        let queues: Vec<i32> = orphans.iter().map(|message| message.queue.0).collect();
        let deliveries: Vec<i32> = orphans
            .iter()
            .map(|m| count(m.deliveries as usize) - 1)
            .collect();
        let expires: Vec<Option<i64>> = orphans.iter().map(|m| Some(m.expires_at?.0)).collect();
        let parameters: [&(dyn ToSql + Sync); 4] = [&ids, &queues, &deliveries, &expires];
        connection.query(RESTORE, &parameters).await
    };
    if let Err(error) = given {
        tracing::warn!(
            ?error,
            "messages that their readers did not wait for were not given back"
        );
    }
}

/// Settles the leases of all jobs.
pub(super) async fn settle(
    connection: &DatabaseConnection,
    what: Settle,
    jobs: &Settles,
) -> Result<SettleResults, StatementError> {
    let receipts: Vec<Receipt> = jobs
        .iter()
        .flat_map(|(receipts, _)| receipts)
        .copied()
        .collect();
    let ids: Vec<i64> = receipts.iter().map(|receipt| receipt.message.0).collect();
    let leases: Vec<i64> = receipts.iter().map(|receipt| receipt.lease.0).collect();
    let rows = match what {
        Settle::Acknowledge => connection.query(ACKNOWLEDGE, &[&ids, &leases]).await?,
        Settle::Extend { lease_ms } => {
            connection
                .query(EXTEND, &[&ids, &leases, &millis(lease_ms)])
                .await?
        }
        Settle::Release { delay_ms } => {
            connection
                .query(RELEASE, &[&ids, &leases, &millis(delay_ms)])
                .await?
        }
    };
    let ended = |receipt: &Receipt| {
        Err(LeaseEnded {
            message: receipt.message,
        })
    };
    let mut results: SettleResults = receipts.iter().map(ended).collect();
    for row in rows {
        let at: i32 = row.get(0);
        if let Some(result) = usize::try_from(at - 1)
            .ok()
            .and_then(|at| results.get_mut(at))
        {
            *result = Ok(());
        }
    }
    Ok(results)
}
