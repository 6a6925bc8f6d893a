//! What a lane does with jobs of one kind: one statement, and to each its part of the answer.
//!
//! A statement that is refused has done nothing. Its jobs are then done one by one, so that each
//! gets its own error and none another's.

use std::collections::BTreeMap;
use std::time::SystemTime;

use airmail_model::{Error, ErrorCode, Wall};
use bytes::Bytes;
use futures::future::BoxFuture;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::Surroundings;
use super::fault::Fault;
use super::flush::{Answers, Done};
use super::link::Link;
use super::tray::{Job, Kind, Reply};
use crate::id::{AccountId, LeaseId, MessageId, QueueId};
use crate::message::{Audience, Line, Message, Outgoing, Receipt, Receive, Settle, Take};

const SEND: &str = "SELECT at, id, fault FROM airmail.send_many($1, $2, $3, $4, $5, $6, $7, $8)";
const TAKE: &str = "SELECT * FROM airmail.take_many($1, $2, $3, $4, $5, $6)";
const PEEK: &str = "SELECT * FROM airmail.peek_many($1, $2, $3, $4, $5)";
const RESTORE: &str = "SELECT airmail.restore_many($1, $2, $3, $4)::text";
const ACKNOWLEDGE: &str = "SELECT airmail.acknowledge_many($1, $2)";
const EXTEND: &str = "SELECT airmail.extend_many($1, $2, $3)";
const RELEASE: &str = "SELECT airmail.release_many($1, $2, $3)";

type Sends = Vec<(Vec<Outgoing>, Reply<Vec<Result<MessageId, Error>>>)>;
type Receives = Vec<(Receive, Reply<Vec<Message>>)>;
type Settles = Vec<(Vec<Receipt>, Reply<Vec<Result<(), Error>>>)>;

/// Where answers go that rest on a change.
#[derive(Clone, Copy, Debug)]
struct Later<'a> {
    answers: &'a Answers,
    life: u64,
}

impl Later<'_> {
    fn put(&self, done: Done) {
        self.answers.put(self.life, done);
    }
}

/// Does jobs of one kind.
pub(super) async fn run(with: &Surroundings, link: &mut Link, life: u64, jobs: Vec<Job>) {
    let answers = Later {
        answers: &with.answers,
        life,
    };
    let Some(kind) = jobs.first().map(Job::kind) else {
        return;
    };
    let (mut sends, mut receives, mut settles) = (Vec::new(), Vec::new(), Vec::new());
    for job in jobs {
        match job {
            Job::Send { messages, reply } => sends.push((messages, reply)),
            Job::Receive { request, reply } => receives.push((request, reply)),
            Job::Settle {
                receipts, reply, ..
            } => settles.push((receipts, reply)),
            call @ Job::Call { .. } => run_call(with, answers, link, call).await,
        }
    }
    match kind {
        Kind::Send => send(answers, link, sends).await,
        Kind::Receive(take) => receive(with, answers, link, take, receives).await,
        Kind::Settle(what) => settle(answers, link, what, settles).await,
        Kind::Call => {}
    }
}

async fn run_call(with: &Surroundings, answers: Later<'_>, link: &mut Link, job: Job) {
    let Job::Call {
        sql,
        parameters,
        reads,
        reply,
    } = job
    else {
        return;
    };
    let borrowed: Vec<&(dyn ToSql + Sync)> = parameters
        .iter()
        .map(|parameter| parameter.as_ref() as &(dyn ToSql + Sync))
        .collect();
    match link.query(sql, &borrowed).await {
        Err(Fault::Lost) if reads => {
            let again = Job::Call {
                sql,
                parameters,
                reads,
                reply,
            };
            // Full or closed: then it is answered below, by the reply that is dropped.
            if let Err(error) = with.tray.put(again) {
                tracing::debug!(error = %error, "a request was not tried again");
            }
        }
        Ok(rows) if !reads => answers.put(Done::Call { rows, reply }),
        answered => drop(reply.send(answered.map_err(Fault::of_change))),
    }
}

fn send<'a>(answers: Later<'a>, link: &'a mut Link, jobs: Sends) -> BoxFuture<'a, ()> {
    Box::pin(async move {
        match send_at_once(link, &jobs).await {
            Ok(mut results) => {
                for (messages, reply) in jobs.into_iter().rev() {
                    let results = results.split_off(results.len() - messages.len());
                    answers.put(Done::Send { results, reply });
                }
            }
            Err(Fault::Refused(_)) if jobs.len() > 1 => {
                for job in jobs {
                    send(answers, link, vec![job]).await;
                }
            }
            Err(fault) => fail_all(jobs.into_iter().map(|(_, reply)| reply), fault),
        }
    })
}

async fn send_at_once(
    link: &mut Link,
    jobs: &Sends,
) -> Result<Vec<Result<MessageId, Error>>, Fault> {
    let messages: Vec<&Outgoing> = jobs.iter().flat_map(|(messages, _)| messages).collect();
    let queues: Vec<i32> = messages.iter().map(|m| m.queue.0).collect();
    let senders: Vec<i32> = messages.iter().map(|m| m.sender.0).collect();
    let receivers: Vec<i32> = messages.iter().map(|m| number(m.audience)).collect();
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
                    number(message.audience),
                )),
            });
    Ok(results.collect())
}

fn receive<'a>(
    with: &'a Surroundings,
    answers: Later<'a>,
    link: &'a mut Link,
    take: Take,
    jobs: Receives,
) -> BoxFuture<'a, ()> {
    Box::pin(async move {
        match receive_at_once(with, link, take, &jobs).await {
            Ok(results) => {
                for ((_, reply), result) in jobs.into_iter().zip(results) {
                    match result {
                        Ok(messages) if take != Take::Peek && !messages.is_empty() => {
                            answers.put(Done::Receive {
                                messages,
                                take,
                                reply,
                            });
                        }
                        unchanged => drop(reply.send(unchanged)),
                    }
                }
            }
            Err(Fault::Refused(_)) if jobs.len() > 1 => {
                for job in jobs {
                    receive(with, answers, link, take, vec![job]).await;
                }
            }
            Err(fault) => fail_all(jobs.into_iter().map(|(_, reply)| reply), fault),
        }
    })
}

async fn receive_at_once(
    with: &Surroundings,
    link: &mut Link,
    take: Take,
    jobs: &Receives,
) -> Result<Vec<Result<Vec<Message>, Error>>, Fault> {
    let lines: Vec<Line> = jobs.iter().map(|(request, _)| request.line()).collect();
    let queues: Vec<i32> = lines.iter().map(|line| line.queue.0).collect();
    let readers: Vec<i32> = jobs.iter().map(|(request, _)| request.reader.0).collect();
    let receivers: Vec<i32> = lines.iter().map(|line| number(line.audience)).collect();
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

/// Gives each request its messages: a row that names a request is its own, any other belongs to its
/// line, whose requests are served in their order.
fn share_out(jobs: &Receives, lines: &[Line], rows: Vec<Row>) -> Vec<Result<Vec<Message>, Error>> {
    let mut results: Vec<Result<Vec<Message>, Error>> =
        jobs.iter().map(|_| Ok(Vec::new())).collect();
    let mut of_lines: BTreeMap<Line, Vec<Message>> = BTreeMap::new();
    for row in rows {
        let at: Option<i32> = row.get("at");
        let slot = at.and_then(|at| usize::try_from(at - 1).ok());
        let fault: Option<&str> = row.get("fault");
        match (
            slot.and_then(|slot| Some((results.get_mut(slot)?, jobs.get(slot)?))),
            fault,
        ) {
            (Some((result, (request, _))), Some(fault)) => {
                *result = Err(match fault {
                    "queue" => missing(ErrorCode::QueueNotFound, "queue", request.queue),
                    _ => missing(ErrorCode::AccountNotFound, "as", request.reader),
                });
            }
            (Some((Ok(own), _)), None) => own.push(message(&row)),
            _ => {
                let message = message(&row);
                let (queue, audience) = (message.queue, message.audience);
                of_lines
                    .entry(Line { queue, audience })
                    .or_default()
                    .push(message);
            }
        }
    }
    for messages in of_lines.values_mut() {
        messages.reverse();
    }
    for ((result, line), (request, _)) in results.iter_mut().zip(lines).zip(jobs) {
        if let (Ok(own), Some(messages)) = (result, of_lines.get_mut(line)) {
            let rest = messages.len() - messages.len().min(request.count);
            own.extend(messages.drain(rest..).rev());
        }
    }
    results
}

/// Messages whose readers were gone before they heard of them are there for others.
pub(super) async fn give_back(link: &mut Link, take: Take, orphans: &[Message]) {
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

fn settle<'a>(
    answers: Later<'a>,
    link: &'a mut Link,
    what: Settle,
    jobs: Settles,
) -> BoxFuture<'a, ()> {
    Box::pin(async move {
        match settle_at_once(link, what, &jobs).await {
            Ok(mut results) => {
                for (receipts, reply) in jobs.into_iter().rev() {
                    let results = results.split_off(results.len() - receipts.len());
                    answers.put(Done::Settle { results, reply });
                }
            }
            Err(Fault::Refused(_)) if jobs.len() > 1 => {
                for job in jobs {
                    settle(answers, link, what, vec![job]).await;
                }
            }
            Err(fault) => fail_all(jobs.into_iter().map(|(_, reply)| reply), fault),
        }
    })
}

async fn settle_at_once(
    link: &mut Link,
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

fn fail_all<T>(replies: impl Iterator<Item = Reply<T>>, fault: Fault) {
    let error = fault.of_change();
    for reply in replies {
        let _ = reply.send(Err(error.clone()));
    }
}

/// A message, from the columns that all functions that give messages have.
pub(super) fn message(row: &Row) -> Message {
    let receiver: i32 = row.get("receiver");
    Message {
        id: MessageId(row.get("id")),
        queue: QueueId(row.get("queue")),
        origin: QueueId(row.get("origin")),
        sender: AccountId(row.get("sender")),
        audience: if receiver == 0 {
            Audience::Broadcast
        } else {
            Audience::Direct(AccountId(receiver))
        },
        content: Bytes::copy_from_slice(row.get("content")),
        created_at: wall(row.get("created_at")),
        priority: u8::try_from(row.get::<_, i16>("priority")).unwrap_or(0),
        key: row.get("key"),
        expires_at: row.get::<_, Option<SystemTime>>("expires_at").map(wall),
        deliveries: u32::try_from(row.get::<_, i32>("deliveries")).unwrap_or(0),
        lease: row.get::<_, Option<i64>>("lease").map(LeaseId),
    }
}

/// A moment of the database's clock.
pub(super) fn wall(time: SystemTime) -> Wall {
    let since = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    Wall(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// A receiver as the tables have it: 0 for broadcasts.
pub(super) fn number(audience: Audience) -> i32 {
    match audience {
        Audience::Direct(account) => account.0,
        Audience::Broadcast => 0,
    }
}

/// What is not there.
pub(super) fn missing(code: ErrorCode, field: &str, value: impl std::fmt::Display) -> Error {
    Error::new(code).field(field).value(value)
}

fn millis(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

fn count(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
