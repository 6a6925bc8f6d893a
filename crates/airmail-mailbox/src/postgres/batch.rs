//! Jobs of one kind, as one statement, and to each its part of the answer.

use super::Surroundings;
use super::fault::{Fault, away};
use super::job::{Job, Kind, Reply};
use super::link::Link;
use super::round::job_again;
use super::row::{count, millis, missing, number};
use super::sharing::share_out;
use crate::id::MessageId;
use crate::message::{Inbox, Message, Outgoing, Receipt, Receive, Settle, Take};
use airmail_model::{Error, ErrorCode};
use futures::future::join_all;
use tokio_postgres::types::ToSql;

const SEND: &str = "SELECT at, id, fault FROM airmail.send_many($1, $2, $3, $4, $5, $6, $7, $8)";
const TAKE: &str = "SELECT * FROM airmail.take_many($1, $2, $3, $4, $5, $6)";
const PEEK: &str = "SELECT * FROM airmail.peek_many($1, $2, $3, $4, $5)";
const RESTORE: &str = "SELECT airmail.restore_many($1, $2, $3, $4)::text";
const ACKNOWLEDGE: &str = "SELECT airmail.acknowledge_many($1, $2)";
const EXTEND: &str = "SELECT airmail.extend_many($1, $2, $3)";
const RELEASE: &str = "SELECT airmail.release_many($1, $2, $3)";

/// Messages to store, for each job.
type Sends = Vec<(Vec<Outgoing>, Reply<Vec<Result<MessageId, Error>>>)>;
/// Who wants to receive.
pub(super) type Receives = Vec<(Receive, Reply<Vec<Message>>)>;
/// Leases, for each job.
type Settles = Vec<(Vec<Receipt>, Reply<Vec<Result<(), Error>>>)>;

/// Jobs that one statement does; calls are a statement each.
#[derive(Debug)]
pub(super) enum Batch {
    Send(Sends),
    Receive(Take, Receives),
    Settle(Settle, Settles),
    Calls(Vec<Job>),
}

/// What a batch's statement gave, in the order of its jobs.
#[derive(Debug)]
pub(super) enum Outcome {
    /// For each message.
    Sent(Vec<Result<MessageId, Error>>),
    /// For each job.
    Received(Vec<Vec<Message>>),
    /// For each lease.
    Settled(Vec<Result<(), Error>>),
    /// Calls have been answered.
    Called,
}

impl Batch {
    /// Of jobs of one kind.
    pub(super) fn of(jobs: Vec<Job>) -> Option<Batch> {
        let kind = jobs.first().map(Job::kind)?;
        let (mut sends, mut receives, mut settles, mut calls) =
            <(Sends, Receives, Settles, _)>::default();
        for job in jobs {
            match job {
                Job::Send { messages, reply } => sends.push((messages, reply)),
                Job::Receive { request, reply } => receives.push((request, reply)),
                Job::Settle {
                    receipts, reply, ..
                } => settles.push((receipts, reply)),
                call @ Job::Call { .. } => Vec::push(&mut calls, call),
            }
        }
        Some(match kind {
            Kind::Send => Batch::Send(sends),
            Kind::Receive(take) => Batch::Receive(take, receives),
            Kind::Settle(what) => Batch::Settle(what, settles),
            Kind::Call => Batch::Calls(calls),
        })
    }

    /// Its statement, if it is one that can be a part of a transaction with others' that change something.
    pub(super) fn change(&self) -> Option<&'static str> {
        match self {
            Batch::Send(_) => Some(SEND),
            Batch::Receive(Take::Peek, _) | Batch::Calls(_) => None,
            Batch::Receive(..) => Some(TAKE),
            Batch::Settle(Settle::Acknowledge, _) => Some(ACKNOWLEDGE),
            Batch::Settle(Settle::Extend { .. }, _) => Some(EXTEND),
            Batch::Settle(Settle::Release { .. }, _) => Some(RELEASE),
        }
    }

    /// How many jobs.
    pub(super) fn len(&self) -> usize {
        match self {
            Batch::Send(jobs) => jobs.len(),
            Batch::Receive(_, jobs) => jobs.len(),
            Batch::Settle(_, jobs) => jobs.len(),
            Batch::Calls(jobs) => jobs.len(),
        }
    }

    /// A batch for each job.
    pub(super) fn split(self) -> Vec<Batch> {
        match self {
            Batch::Send(jobs) => jobs.into_iter().map(|job| Batch::Send(vec![job])).collect(),
            Batch::Receive(take, jobs) => jobs
                .into_iter()
                .map(|job| Batch::Receive(take, vec![job]))
                .collect(),
            Batch::Settle(what, jobs) => jobs
                .into_iter()
                .map(|job| Batch::Settle(what, vec![job]))
                .collect(),
            Batch::Calls(jobs) => jobs
                .into_iter()
                .map(|job| Batch::Calls(vec![job]))
                .collect(),
        }
    }

    /// Its jobs again.
    pub(super) fn into_jobs(self) -> Vec<Job> {
        match self {
            Batch::Send(jobs) => (jobs.into_iter())
                .map(|(messages, reply)| Job::Send { messages, reply })
                .collect(),
            Batch::Receive(_, jobs) => (jobs.into_iter())
                .map(|(request, reply)| Job::Receive { request, reply })
                .collect(),
            Batch::Settle(what, jobs) => (jobs.into_iter())
                .map(|(receipts, reply)| Job::Settle {
                    receipts,
                    what,
                    reply,
                })
                .collect(),
            Batch::Calls(jobs) => jobs,
        }
    }

    /// Runs the statement. Who asked to receive, and for whom there is nothing, is answered at once:
    /// that nothing changed for them holds whatever becomes of the statement.
    pub(super) async fn ask(&mut self, with: &Surroundings, link: &Link) -> Result<Outcome, Fault> {
        match self {
            Batch::Send(jobs) => send(link, jobs).await.map(Outcome::Sent),
            Batch::Receive(take, jobs) => {
                let results = receive(with, link, *take, jobs).await?;
                let mut received = Vec::new();
                for ((request, reply), result) in std::mem::take(jobs).into_iter().zip(results) {
                    match result {
                        Ok(messages) if !messages.is_empty() => {
                            jobs.push((request, reply));
                            received.push(messages);
                        }
                        nothing => drop(reply.send(nothing)),
                    }
                }
                Ok(Outcome::Received(received))
            }
            Batch::Settle(what, jobs) => settle(link, *what, jobs).await.map(Outcome::Settled),
            Batch::Calls(jobs) => {
                let calls = std::mem::take(jobs).into_iter();
                join_all(calls.map(|job| call(with, link, job))).await;
                Ok(Outcome::Called)
            }
        }
    }

    /// Tells each job what it gave.
    pub(super) async fn answer(self, link: &Link, outcome: Outcome) {
        match (self, outcome) {
            (Batch::Send(jobs), Outcome::Sent(mut results)) => {
                for (messages, reply) in jobs.into_iter().rev() {
                    let results = results.split_off(results.len() - messages.len());
                    let _ = reply.send(Ok(results));
                }
            }
            (Batch::Receive(take, jobs), Outcome::Received(results)) => {
                let mut orphans = Vec::new();
                for ((_, reply), result) in jobs.into_iter().zip(results) {
                    if let Err(Ok(messages)) = reply.send(Ok(result)) {
                        orphans.extend(messages);
                    }
                }
                give_back(link, take, &orphans).await;
            }
            (Batch::Settle(_, jobs), Outcome::Settled(mut results)) => {
                for (receipts, reply) in jobs.into_iter().rev() {
                    let results = results.split_off(results.len() - receipts.len());
                    let _ = reply.send(Ok(results));
                }
            }
            _ => {}
        }
    }

    /// Tells all jobs what went wrong.
    pub(super) fn fail(self, error: &Error) {
        match self {
            Batch::Send(jobs) => fail_all(jobs.into_iter().map(|(_, reply)| reply), error),
            Batch::Receive(_, jobs) => fail_all(jobs.into_iter().map(|(_, reply)| reply), error),
            Batch::Settle(_, jobs) => fail_all(jobs.into_iter().map(|(_, reply)| reply), error),
            Batch::Calls(jobs) => jobs.into_iter().for_each(|job| job.fail(error.clone())),
        }
    }
}

fn fail_all<T>(replies: impl Iterator<Item = Reply<T>>, error: &Error) {
    for reply in replies {
        let _ = reply.send(Err(error.clone()));
    }
}

async fn call(with: &Surroundings, link: &Link, job: Job) {
    let Job::Call {
        sql,
        parameters,
        effect,
        reply,
    } = job
    else {
        return;
    };
    let borrowed: Vec<&(dyn ToSql + Sync)> = parameters
        .iter()
        .map(|parameter| parameter.as_ref() as &(dyn ToSql + Sync))
        .collect();
    let answered = link.query(sql, &borrowed).await;
    // Nothing was done, or it changes nothing: it may be done again.
    let why = match answered {
        Err(Fault::Late(error)) => error,
        Err(Fault::Lost) if effect.reads() => away("the connection was lost"),
        answered => {
            if matches!(answered, Ok(_) | Err(Fault::Refused(_))) {
                with.pulse.beat();
            }
            return drop(reply.send(answered.map_err(Fault::of_change)));
        }
    };
    let again = Job::Call {
        sql,
        parameters,
        effect,
        reply,
    };
    job_again(with, again, &why);
}

async fn send(link: &Link, jobs: &Sends) -> Result<Vec<Result<MessageId, Error>>, Fault> {
    let messages: Vec<&Outgoing> = jobs.iter().flat_map(|(messages, _)| messages).collect();
    let queues: Vec<i32> = messages.iter().map(|m| m.queue.0).collect();
    let senders: Vec<i32> = messages.iter().map(|m| m.sender.0).collect();
    let receivers: Vec<i32> = messages.iter().map(|m| number(m.recipients)).collect();
    let contents: Vec<&[u8]> = messages.iter().map(|m| &m.content[..]).collect();
    let priorities: Vec<i16> = messages.iter().map(|m| i16::from(m.priority)).collect();
    let keys: Vec<Option<&str>> = messages.iter().map(|m| m.key.as_deref()).collect();
    let delays: Vec<i64> = messages.iter().map(|m| millis(m.delay_ms)).collect();
    let lifetimes: Vec<Option<i64>> = messages.iter().map(|m| m.lifetime_ms.map(millis)).collect();
    let rows = link
        .query(
            SEND,
            &[
                &queues,
                &senders,
                &receivers,
                &contents,
                &priorities,
                &keys,
                &delays,
                &lifetimes,
            ],
        )
        .await?;
    let results =
        rows.iter()
            .zip(messages)
            .map(|(row, message)| match row.get::<_, Option<&str>>("fault") {
                None => Ok(MessageId(row.get("id"))),
                Some("queue") => Err(missing(ErrorCode::QueueNotFound, "queue", message.queue)),
                Some("sender") => Err(missing(ErrorCode::AccountNotFound, "from", message.sender)),
                Some(_) => Err(missing(
                    ErrorCode::AccountNotFound,
                    "to",
                    number(message.recipients),
                )),
            });
    Ok(results.collect())
}

async fn receive(
    with: &Surroundings,
    link: &Link,
    take: Take,
    jobs: &Receives,
) -> Result<Vec<Result<Vec<Message>, Error>>, Fault> {
    let lines: Vec<Inbox> = jobs.iter().map(|(request, _)| request.inbox()).collect();
    let queues: Vec<i32> = lines.iter().map(|line| line.queue.0).collect();
    let readers: Vec<i32> = jobs.iter().map(|(request, _)| request.reader.0).collect();
    let receivers: Vec<i32> = lines.iter().map(|line| number(line.recipients)).collect();
    let counts: Vec<i32> = jobs
        .iter()
        .map(|(request, _)| count(request.count))
        .collect();
    let lows: Vec<i64> = lines.iter().map(|line| with.heads.low(*line)).collect();
    let rows = if take == Take::Peek {
        link.query(PEEK, &[&queues, &readers, &receivers, &counts, &lows])
            .await?
    } else {
        let lease_ms = match take {
            Take::Lease { lease_ms } => Some(millis(lease_ms)),
            Take::Peek | Take::Remove => None,
        };
        let all: [&(dyn ToSql + Sync); 6] =
            [&queues, &readers, &receivers, &counts, &lows, &lease_ms];
        link.query(TAKE, &all).await?
    };
    Ok(share_out(jobs, &lines, rows))
}

/// Messages whose readers were gone before they heard of them are there for others.
async fn give_back(link: &Link, take: Take, orphans: &[Message]) {
    if orphans.is_empty() || take == Take::Peek {
        return;
    }
    let ids: Vec<i64> = orphans.iter().map(|message| message.id.0).collect();
    let given = if let Take::Lease { .. } = take {
        let leases: Vec<i64> = orphans.iter().filter_map(|m| Some(m.lease?.0)).collect();
        link.query(RELEASE, &[&ids, &leases, &0_i64]).await
    } else {
        let queues: Vec<i32> = orphans.iter().map(|message| message.queue.0).collect();
        let deliveries: Vec<i32> = orphans
            .iter()
            .map(|m| count(m.deliveries as usize) - 1)
            .collect();
        let expires: Vec<Option<i64>> = orphans.iter().map(|m| Some(m.expires_at?.0)).collect();
        link.query(RESTORE, &[&ids, &queues, &deliveries, &expires])
            .await
    };
    if let Err(fault) = given {
        tracing::warn!(
            ?fault,
            "messages that their readers did not wait for were not given back"
        );
    }
}

async fn settle(
    link: &Link,
    what: Settle,
    jobs: &Settles,
) -> Result<Vec<Result<(), Error>>, Fault> {
    let receipts: Vec<Receipt> = jobs
        .iter()
        .flat_map(|(receipts, _)| receipts)
        .copied()
        .collect();
    let ids: Vec<i64> = receipts.iter().map(|receipt| receipt.message.0).collect();
    let leases: Vec<i64> = receipts.iter().map(|receipt| receipt.lease.0).collect();
    let rows = match what {
        Settle::Acknowledge => link.query(ACKNOWLEDGE, &[&ids, &leases]).await?,
        Settle::Extend { lease_ms } => {
            link.query(EXTEND, &[&ids, &leases, &millis(lease_ms)])
                .await?
        }
        Settle::Release { delay_ms } => {
            link.query(RELEASE, &[&ids, &leases, &millis(delay_ms)])
                .await?
        }
    };
    let mut results: Vec<Result<(), Error>> = receipts
        .iter()
        .map(|receipt| {
            Err(Error::new(ErrorCode::LeaseEnded)
                .field("message")
                .value(receipt.message))
        })
        .collect();
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
