//! The contract's requests, as jobs for the workers.

use super::PostgresStore;
use super::job::StatementClass::{self, Change, Look, Search, Sweep};
use super::job::{Job, ReplySender};
use super::raised::Raised;
use super::row::{message, wall};
use super::statement_error::away;
use crate::id::{AccountId, MessageId, Name, QueueId};
use crate::message::{Counts, Inbox, Message, Outgoing, Receipt, Receive, Recipients, Settle};
use crate::notifier::Waiter;
use crate::receiver::receiver;
use crate::store::{
    Account, Answer, MailboxStore, Queue, QueueSettings, Selection, SendResults, SettleResults,
    StoreLoad,
};
use crate::store_error::{
    CreateQueueRefusal, DeleteRefusal, NameTaken, NotForReader, NotFound, StoreError, StoreFailure,
};
use airmail_model::Error;
use tokio::sync::oneshot;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

type Parameters = Vec<Box<dyn ToSql + Sync + Send>>;

impl PostgresStore {
    /// Queues a job and waits for its answer.
    async fn submit<T, E: From<StoreFailure>>(
        &self,
        job: impl FnOnce(ReplySender<T, E>) -> Job,
    ) -> Result<T, E> {
        let (reply, answer) = oneshot::channel();
        self.request_queue.push(job(ReplySender::new(reply)))?;
        // A worker that ends in the middle drops the job.
        answer
            .await
            .unwrap_or_else(|_| Err(StoreFailure::OutcomeUnknown.into()))
    }

    /// Runs a statement that is one request, and returns its rows.
    async fn run(
        &self,
        sql: &'static str,
        class: StatementClass,
        parameters: Parameters,
    ) -> Result<Vec<Row>, StoreError<Raised>> {
        self.submit(|reply| Job::Statement {
            sql,
            parameters,
            class,
            reply,
        })
        .await
    }

    /// Runs a statement that no function of the schema refuses.
    async fn query(
        &self,
        sql: &'static str,
        class: StatementClass,
        parameters: Parameters,
    ) -> Result<Vec<Row>, StoreFailure> {
        let rows = self.run(sql, class, parameters).await;
        rows.map_err(|error| match error {
            StoreError::Refused(raised) => raised.into_failure(),
            StoreError::Failed(failure) => failure,
        })
    }

    /// Runs a statement that may be refused with `R`.
    async fn call<R: TryFrom<Raised, Error = Raised>>(
        &self,
        sql: &'static str,
        class: StatementClass,
        parameters: Parameters,
    ) -> Result<Vec<Row>, StoreError<R>> {
        let rows = self.run(sql, class, parameters).await;
        rows.map_err(|error| match error {
            StoreError::Refused(raised) => match R::try_from(raised) {
                Ok(refusal) => StoreError::Refused(refusal),
                Err(raised) => StoreError::Failed(raised.into_failure()),
            },
            StoreError::Failed(failure) => StoreError::Failed(failure),
        })
    }

    /// Runs a statement that gives one number and may be refused with `R`.
    async fn call_number<R: TryFrom<Raised, Error = Raised>>(
        &self,
        sql: &'static str,
        class: StatementClass,
        parameters: Parameters,
    ) -> Result<i32, StoreError<R>> {
        let rows = self.call::<R>(sql, class, parameters).await?;
        let row = rows.first().ok_or_else(|| StoreFailure::Internal {
            reason: "a statement gave no row".to_owned(),
        })?;
        Ok(row.get(0))
    }
}

impl MailboxStore for PostgresStore {
    fn create_account(&self, name: Name) -> Answer<'_, AccountId, StoreError<NameTaken>> {
        let sql = "SELECT airmail.create_account($1)";
        Box::pin(async move {
            let number = self
                .call_number::<NameTaken>(sql, Change, text(&name))
                .await?;
            Ok(AccountId(number))
        })
    }

    fn delete_account(
        &self,
        account: AccountId,
        force: bool,
    ) -> Answer<'_, (), StoreError<DeleteRefusal>> {
        let sql = "SELECT airmail.delete_account($1, $2)::text";
        let parameters: Parameters = vec![Box::new(account.0), Box::new(force)];
        Box::pin(async move {
            self.call::<DeleteRefusal>(sql, Sweep, parameters)
                .await
                .map(drop)
        })
    }

    fn find_account(&self, name: Name) -> Answer<'_, AccountId, StoreError<NotFound>> {
        let sql = "SELECT airmail.find_account($1)";
        Box::pin(async move {
            let number = self.call_number::<NotFound>(sql, Look, text(&name)).await?;
            Ok(AccountId(number))
        })
    }

    fn accounts(&self, selection: Selection<AccountId>) -> Answer<'_, Vec<Account>> {
        let sql = match selection {
            Selection::After { .. } => {
                "SELECT id, name, created_at FROM airmail.account
                 WHERE id > $1 ORDER BY id LIMIT $2"
            }
            Selection::These(_) => {
                "SELECT id, name, created_at FROM airmail.account
                 WHERE id = ANY($1) ORDER BY id LIMIT $2"
            }
        };
        let parameters = selection_parameters(selection, |account| account.0);
        Box::pin(async move {
            let rows = self.query(sql, Look, parameters).await?;
            rows.iter().map(account).collect()
        })
    }

    fn create_queue(
        &self,
        name: Name,
        settings: QueueSettings,
    ) -> Answer<'_, QueueId, StoreError<CreateQueueRefusal>> {
        let sql = "SELECT airmail.create_queue($1, $2, $3)";
        let mut parameters = text(&name);
        parameters.push(Box::new(settings.dead_letter.map(|queue| queue.0)));
        let deliveries_max = settings.deliveries_max;
        parameters.push(Box::new(
            deliveries_max.map(|most| i32::try_from(most.get()).unwrap_or(i32::MAX)),
        ));
        Box::pin(async move {
            let number = self
                .call_number::<CreateQueueRefusal>(sql, Change, parameters)
                .await?;
            Ok(QueueId(number))
        })
    }

    fn delete_queue(
        &self,
        queue: QueueId,
        force: bool,
    ) -> Answer<'_, (), StoreError<DeleteRefusal>> {
        let sql = "SELECT airmail.delete_queue($1, $2)::text";
        let parameters: Parameters = vec![Box::new(queue.0), Box::new(force)];
        Box::pin(async move {
            self.call::<DeleteRefusal>(sql, Sweep, parameters)
                .await
                .map(drop)
        })
    }

    fn find_queue(&self, name: Name) -> Answer<'_, QueueId, StoreError<NotFound>> {
        let sql = "SELECT airmail.find_queue($1)";
        Box::pin(async move {
            let number = self.call_number::<NotFound>(sql, Look, text(&name)).await?;
            Ok(QueueId(number))
        })
    }

    fn queues(&self, selection: Selection<QueueId>) -> Answer<'_, Vec<Queue>> {
        let sql = match selection {
            Selection::After { .. } => {
                "SELECT id, name, created_at, deliveries_max, dead_letter FROM airmail.queue
                 WHERE id > $1 ORDER BY id LIMIT $2"
            }
            Selection::These(_) => {
                "SELECT id, name, created_at, deliveries_max, dead_letter FROM airmail.queue
                 WHERE id = ANY($1) ORDER BY id LIMIT $2"
            }
        };
        let parameters = selection_parameters(selection, |queue| queue.0);
        Box::pin(async move {
            let rows = self.query(sql, Look, parameters).await?;
            rows.iter().map(queue).collect()
        })
    }

    fn purge(&self, queue: QueueId) -> Answer<'_, u64, StoreError<NotFound>> {
        let sql = "SELECT airmail.purge($1)";
        Box::pin(async move {
            let parameters: Parameters = vec![Box::new(queue.0)];
            let rows = self.call::<NotFound>(sql, Sweep, parameters).await?;
            Ok(rows.first().map_or(0, |row| unsigned(row.get(0))))
        })
    }

    fn counts(&self, queue: QueueId) -> Answer<'_, Counts, StoreError<NotFound>> {
        let sql = "SELECT ready, delayed, leased FROM airmail.counts($1)";
        Box::pin(async move {
            let parameters: Parameters = vec![Box::new(queue.0)];
            let rows = self.call::<NotFound>(sql, Search, parameters).await?;
            Ok(rows.first().map_or(Counts::default(), |row| Counts {
                ready: unsigned(row.get("ready")),
                delayed: unsigned(row.get("delayed")),
                leased: unsigned(row.get("leased")),
            }))
        })
    }

    fn send(&self, messages: Vec<Outgoing>) -> Answer<'_, SendResults> {
        Box::pin(self.submit(|reply| Job::Send { messages, reply }))
    }

    fn receive(&self, request: Receive) -> Answer<'_, Vec<Message>, StoreError<NotFound>> {
        Box::pin(self.submit(move |reply| Job::Receive { request, reply }))
    }

    fn look_up(
        &self,
        wanted: MessageId,
        reader: AccountId,
    ) -> Answer<'_, Option<Message>, StoreError<NotForReader>> {
        let sql = "SELECT * FROM airmail.look_up($1)";
        Box::pin(async move {
            let rows = self.query(sql, Look, vec![Box::new(wanted.0)]).await?;
            let found = rows.first().map(message);
            match found.as_ref().map(|message| message.recipients) {
                Some(Recipients::Direct(receiver)) if receiver != reader => {
                    Err(StoreError::Refused(NotForReader { message: wanted }))
                }
                _ => Ok(found),
            }
        })
    }

    fn find_from(
        &self,
        sender: AccountId,
        reader: AccountId,
    ) -> Answer<'_, Option<Message>, StoreError<NotFound>> {
        let sql = "SELECT * FROM airmail.find_from($1, $2)";
        let parameters: Parameters = vec![Box::new(reader.0), Box::new(sender.0)];
        Box::pin(async move {
            let rows = self.query(sql, Search, parameters).await?;
            let Some(row) = rows.first() else {
                // Input: there is no such message.
                return Ok(None);
            };
            let missing = match row.get::<_, Option<&str>>("fault") {
                None => return Ok(Some(message(row))),
                Some("sender") => NotFound::account("from", sender),
                Some(_) => NotFound::account("as", reader),
            };
            Err(StoreError::Refused(missing))
        })
    }

    fn queues_for(&self, recipients: Recipients) -> Answer<'_, Vec<QueueId>> {
        let sql = "SELECT airmail.queues_for($1)";
        let parameters: Parameters = vec![Box::new(receiver(recipients))];
        Box::pin(async move {
            let rows = self.query(sql, Search, parameters).await?;
            Ok(rows.iter().map(|row| QueueId(row.get(0))).collect())
        })
    }

    fn settle(&self, receipts: Vec<Receipt>, what: Settle) -> Answer<'_, SettleResults> {
        Box::pin(self.submit(move |reply| Job::Settle {
            receipts,
            what,
            reply,
        }))
    }

    fn waiter(&self, inbox: Inbox) -> Answer<'_, Waiter> {
        Box::pin(async move {
            let waiter = self.notifier.waiter(inbox);
            let switched_on = self.notify_switch.switched_on();
            match tokio::time::timeout(self.patience, switched_on).await {
                Ok(()) => Ok(waiter),
                Err(_) => Err(away("no answer")),
            }
        })
    }

    fn load(&self) -> StoreLoad {
        self.load_counters.load(StoreLoad {
            waiting: self.request_queue.len(),
            ..self.bounds
        })
    }

    fn close(&self) -> Answer<'_, ()> {
        Box::pin(self.stop())
    }
}

fn account(row: &Row) -> Result<Account, StoreFailure> {
    Ok(Account {
        id: AccountId(row.get("id")),
        name: name(row)?,
        created_at: wall(row.get("created_at")),
    })
}

fn queue(row: &Row) -> Result<Queue, StoreFailure> {
    let most: Option<i32> = row.get("deliveries_max");
    Ok(Queue {
        id: QueueId(row.get("id")),
        name: name(row)?,
        created_at: wall(row.get("created_at")),
        settings: QueueSettings {
            dead_letter: row.get::<_, Option<i32>>("dead_letter").map(QueueId),
            deliveries_max: most.and_then(|most| u32::try_from(most).ok()?.try_into().ok()),
        },
    })
}

fn name(row: &Row) -> Result<Name, StoreFailure> {
    // Somebody may have written to the tables past the functions.
    Name::new("name", row.get("name")).map_err(|error: Error| StoreFailure::Internal {
        reason: error.to_string(),
    })
}

/// Makes the parameters of a statement that lists accounts or queues.
fn selection_parameters<Id>(selection: Selection<Id>, number: impl Fn(Id) -> i32) -> Parameters {
    match selection {
        Selection::After { id, limit } => vec![
            Box::new(number(id)),
            Box::new(i64::try_from(limit).unwrap_or(i64::MAX)),
        ],
        Selection::These(ids) => {
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
