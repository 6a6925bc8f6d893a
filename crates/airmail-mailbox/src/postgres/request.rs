//! The contract's requests, as jobs.

use super::PostgresStore;
use super::fault::away;
use super::job::Effect::{self, Changes, Looks, Searches, Sweeps};
use super::job::Job;
use super::row::{message, missing, number, wall};
use crate::bell::Watch;
use crate::id::{AccountId, MessageId, Name, QueueId};
use crate::message::{Counts, Inbox, Message, Outgoing, Receipt, Receive, Recipients, Settle};
use crate::store::{Account, Answer, Load, MailboxStore, Queue, QueueSettings, Which};
use airmail_model::{Error, ErrorCode};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

type Parameters = Vec<Box<dyn ToSql + Sync + Send>>;

impl PostgresStore {
    async fn call(
        &self,
        sql: &'static str,
        effect: Effect,
        parameters: Parameters,
    ) -> Result<Vec<Row>, Error> {
        self.ask(|reply| Job::Call {
            sql,
            parameters,
            effect,
            reply,
        })
        .await
    }

    /// The one number that a statement gives.
    async fn number(
        &self,
        sql: &'static str,
        effect: Effect,
        parameters: Parameters,
    ) -> Result<i32, Error> {
        let rows = self.call(sql, effect, parameters).await?;
        rows.first()
            .map(|row| row.get(0))
            .ok_or_else(|| Error::new(ErrorCode::Internal).field("database"))
    }
}

impl MailboxStore for PostgresStore {
    fn create_account(&self, name: Name) -> Answer<'_, AccountId> {
        let sql = "SELECT airmail.create_account($1)";
        Box::pin(async move { self.number(sql, Changes, text(&name)).await.map(AccountId) })
    }

    fn delete_account(&self, account: AccountId, force: bool) -> Answer<'_, ()> {
        let sql = "SELECT airmail.delete_account($1, $2)::text";
        let parameters: Parameters = vec![Box::new(account.0), Box::new(force)];
        Box::pin(async move { self.call(sql, Sweeps, parameters).await.map(drop) })
    }

    fn find_account(&self, name: Name) -> Answer<'_, AccountId> {
        let sql = "SELECT airmail.find_account($1)";
        Box::pin(async move { self.number(sql, Looks, text(&name)).await.map(AccountId) })
    }

    fn accounts(&self, which: Which<AccountId>) -> Answer<'_, Vec<Account>> {
        let sql = match which {
            Which::After { .. } => {
                "SELECT id, name, created_at FROM airmail.account
                 WHERE id > $1 ORDER BY id LIMIT $2"
            }
            Which::These(_) => {
                "SELECT id, name, created_at FROM airmail.account
                 WHERE id = ANY($1) ORDER BY id LIMIT $2"
            }
        };
        let parameters = listed(which, |account| account.0);
        Box::pin(async move {
            let rows = self.call(sql, Looks, parameters).await?;
            let account = |row: &Row| {
                Ok(Account {
                    id: AccountId(row.get("id")),
                    name: Name::new("name", row.get("name"))?,
                    created_at: wall(row.get("created_at")),
                })
            };
            rows.iter().map(account).collect()
        })
    }

    fn create_queue(&self, name: Name, settings: QueueSettings) -> Answer<'_, QueueId> {
        let sql = "SELECT airmail.create_queue($1, $2, $3)";
        let mut parameters = text(&name);
        parameters.push(Box::new(settings.dead_letter.map(|queue| queue.0)));
        let so_many = settings.deliveries_max;
        parameters.push(Box::new(
            so_many.map(|most| i32::try_from(most.get()).unwrap_or(i32::MAX)),
        ));
        Box::pin(async move { self.number(sql, Changes, parameters).await.map(QueueId) })
    }

    fn delete_queue(&self, queue: QueueId, force: bool) -> Answer<'_, ()> {
        let sql = "SELECT airmail.delete_queue($1, $2)::text";
        let parameters: Parameters = vec![Box::new(queue.0), Box::new(force)];
        Box::pin(async move { self.call(sql, Sweeps, parameters).await.map(drop) })
    }

    fn find_queue(&self, name: Name) -> Answer<'_, QueueId> {
        let sql = "SELECT airmail.find_queue($1)";
        Box::pin(async move { self.number(sql, Looks, text(&name)).await.map(QueueId) })
    }

    fn queues(&self, which: Which<QueueId>) -> Answer<'_, Vec<Queue>> {
        let sql = match which {
            Which::After { .. } => {
                "SELECT id, name, created_at, deliveries_max, dead_letter FROM airmail.queue
                 WHERE id > $1 ORDER BY id LIMIT $2"
            }
            Which::These(_) => {
                "SELECT id, name, created_at, deliveries_max, dead_letter FROM airmail.queue
                 WHERE id = ANY($1) ORDER BY id LIMIT $2"
            }
        };
        let parameters = listed(which, |queue| queue.0);
        Box::pin(async move {
            let rows = self.call(sql, Looks, parameters).await?;
            rows.iter().map(queue).collect()
        })
    }

    fn purge(&self, queue: QueueId) -> Answer<'_, u64> {
        let sql = "SELECT airmail.purge($1)";
        Box::pin(async move {
            let rows = self.call(sql, Sweeps, vec![Box::new(queue.0)]).await?;
            Ok(rows.first().map_or(0, |row| unsigned(row.get(0))))
        })
    }

    fn counts(&self, queue: QueueId) -> Answer<'_, Counts> {
        let sql = "SELECT ready, delayed, leased FROM airmail.counts($1)";
        Box::pin(async move {
            let rows = self.call(sql, Searches, vec![Box::new(queue.0)]).await?;
            Ok(rows.first().map_or(Counts::default(), |row| Counts {
                ready: unsigned(row.get("ready")),
                delayed: unsigned(row.get("delayed")),
                leased: unsigned(row.get("leased")),
            }))
        })
    }

    fn send(&self, messages: Vec<Outgoing>) -> Answer<'_, Vec<Result<MessageId, Error>>> {
        Box::pin(self.ask(|reply| Job::Send { messages, reply }))
    }

    fn receive(&self, request: Receive) -> Answer<'_, Vec<Message>> {
        Box::pin(self.ask(move |reply| Job::Receive { request, reply }))
    }

    fn look_up(&self, wanted: MessageId, reader: AccountId) -> Answer<'_, Option<Message>> {
        let sql = "SELECT * FROM airmail.look_up($1)";
        Box::pin(async move {
            let rows = self.call(sql, Looks, vec![Box::new(wanted.0)]).await?;
            let found = rows.first().map(message);
            match found.as_ref().map(|message| message.recipients) {
                Some(Recipients::Direct(receiver)) if receiver != reader => {
                    Err(missing(ErrorCode::NoPermissionToRead, "message", wanted))
                }
                _ => Ok(found),
            }
        })
    }

    fn find_from(&self, sender: AccountId, reader: AccountId) -> Answer<'_, Option<Message>> {
        let sql = "SELECT * FROM airmail.find_from($1, $2)";
        let parameters: Parameters = vec![Box::new(reader.0), Box::new(sender.0)];
        Box::pin(async move {
            let rows = self.call(sql, Searches, parameters).await?;
            let Some(row) = rows.first() else {
                return Ok(None);
            };
            match row.get::<_, Option<&str>>("fault") {
                None => Ok(Some(message(row))),
                Some("sender") => Err(missing(ErrorCode::AccountNotFound, "from", sender)),
                Some(_) => Err(missing(ErrorCode::AccountNotFound, "as", reader)),
            }
        })
    }

    fn queues_for(&self, recipients: Recipients) -> Answer<'_, Vec<QueueId>> {
        let sql = "SELECT airmail.queues_for($1)";
        let parameters: Parameters = vec![Box::new(number(recipients))];
        Box::pin(async move {
            let rows = self.call(sql, Searches, parameters).await?;
            Ok(rows.iter().map(|row| QueueId(row.get(0))).collect())
        })
    }

    fn settle(&self, receipts: Vec<Receipt>, what: Settle) -> Answer<'_, Vec<Result<(), Error>>> {
        Box::pin(self.ask(move |reply| Job::Settle {
            receipts,
            what,
            reply,
        }))
    }

    fn watch(&self, line: Inbox) -> Answer<'_, Watch> {
        Box::pin(async move {
            let watch = self.bell.watch(line);
            match tokio::time::timeout(self.patience, self.arming.armed()).await {
                Ok(()) => Ok(watch),
                Err(_) => Err(away("no answer")),
            }
        })
    }

    fn load(&self) -> Load {
        self.counts.load(Load {
            waiting: self.tray.len(),
            ..self.bounds
        })
    }

    fn close(&self) -> Answer<'_, ()> {
        Box::pin(self.end())
    }
}

fn queue(row: &Row) -> Result<Queue, Error> {
    let most: Option<i32> = row.get("deliveries_max");
    Ok(Queue {
        id: QueueId(row.get("id")),
        name: Name::new("name", row.get("name"))?,
        created_at: wall(row.get("created_at")),
        settings: QueueSettings {
            dead_letter: row.get::<_, Option<i32>>("dead_letter").map(QueueId),
            deliveries_max: most.and_then(|most| u32::try_from(most).ok()?.try_into().ok()),
        },
    })
}

/// The parameters of a statement that lists.
fn listed<Id>(which: Which<Id>, number: impl Fn(Id) -> i32) -> Parameters {
    match which {
        Which::After { id, limit } => vec![
            Box::new(number(id)),
            Box::new(i64::try_from(limit).unwrap_or(i64::MAX)),
        ],
        Which::These(ids) => {
            let ids: Vec<i32> = ids.into_iter().map(number).collect();
            vec![Box::new(ids), Box::new(i64::MAX)]
        }
    }
}

fn text(name: &Name) -> Parameters {
    vec![Box::new(name.as_str().to_owned())]
}

fn unsigned(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}
