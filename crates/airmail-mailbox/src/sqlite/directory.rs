//! Accounts and queues.

use super::writer::Writer;
use crate::id::{AccountId, Name, QueueId};
use crate::message::Counts;
use crate::store::{Account, Queue, QueueSettings, Selection};
use crate::store_error::{
    CreateQueueRefusal, DeleteRefusal, Entity, NameTaken, NotEmpty, NotFound, StoreError,
    StoreFailure,
};
use airmail_model::{Error, Wall};
use rusqlite::types::Value;

type QueueRow = (i32, String, i64, Option<u32>, Option<i32>);

impl Writer {
    pub(super) fn create_account(
        &mut self,
        name: &Name,
    ) -> Result<AccountId, StoreError<NameTaken>> {
        let sql = "INSERT INTO account (name, created_at) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        if self.execute(sql, (name.as_str(), self.now_us()))? == 0 {
            return Err(StoreError::Refused(taken(Entity::Account, name)));
        }
        Ok(AccountId(narrow(self.inserted())?))
    }

    pub(super) fn find_account(&mut self, name: &Name) -> Result<AccountId, StoreError<NotFound>> {
        let sql = "SELECT id FROM account WHERE name = ?1";
        let found = self.one(sql, [name.as_str()], |row| row.get(0))?;
        found
            .map(AccountId)
            .ok_or_else(|| StoreError::Refused(NotFound::account("account", name)))
    }

    /// Checks that an account exists; `argument` names it in the error.
    pub(super) fn check_account(
        &mut self,
        account: AccountId,
        argument: &'static str,
    ) -> Result<(), StoreError<NotFound>> {
        let sql = "SELECT 1 FROM account WHERE id = ?1";
        match self.one(sql, [account.0], |_| Ok(()))? {
            Some(()) => Ok(()),
            None => Err(StoreError::Refused(NotFound::account(argument, account))),
        }
    }

    /// Checks that a queue exists.
    pub(super) fn check_queue(&mut self, queue: QueueId) -> Result<(), StoreError<NotFound>> {
        let sql = "SELECT 1 FROM queue WHERE id = ?1";
        match self.one(sql, [queue.0], |_| Ok(()))? {
            Some(()) => Ok(()),
            None => Err(StoreError::Refused(NotFound::queue(queue))),
        }
    }

    pub(super) fn accounts(
        &mut self,
        selection: &Selection<AccountId>,
    ) -> Result<Vec<Account>, StoreFailure> {
        let (condition, parameters) = condition(selection, |account| account.0);
        let sql = format!("SELECT id, name, created_at FROM account {condition}");
        let rows: Vec<(i32, String, i64)> = self.all(&sql, parameters, |row| row.try_into())?;
        let account = |(id, name, created_at): (i32, String, i64)| {
            Ok(Account {
                id: AccountId(id),
                name: read_name(&name)?,
                created_at: Wall(created_at),
            })
        };
        rows.into_iter().map(account).collect()
    }

    pub(super) fn delete_account(
        &mut self,
        account: AccountId,
        force: bool,
    ) -> Result<(), StoreError<DeleteRefusal>> {
        self.check_account(account, "account")
            .map_err(|error| error.map(DeleteRefusal::from))?;
        let sql = "SELECT id FROM message WHERE sender = ?1 OR receiver = ?1";
        let messages: Vec<i64> = self.all(sql, [account.0], |row| row.get(0))?;
        if !messages.is_empty() && !force {
            return Err(in_use(Entity::Account, account));
        }
        for id in messages {
            self.remove(id)?;
        }
        self.execute("DELETE FROM account WHERE id = ?1", [account.0])?;
        Ok(())
    }

    pub(super) fn create_queue(
        &mut self,
        name: &Name,
        settings: QueueSettings,
    ) -> Result<QueueId, StoreError<CreateQueueRefusal>> {
        if let Some(queue) = settings.dead_letter {
            self.check_queue(queue)
                .map_err(|error| error.map(CreateQueueRefusal::from))?;
        }
        let sql = "INSERT INTO queue (name, created_at, deliveries_max, dead_letter)
                   VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
        let most = settings.deliveries_max.map(std::num::NonZeroU32::get);
        let dead_letter = settings.dead_letter.map(|queue| queue.0);
        if self.execute(sql, (name.as_str(), self.now_us(), most, dead_letter))? == 0 {
            return Err(StoreError::Refused(taken(Entity::Queue, name).into()));
        }
        Ok(QueueId(narrow(self.inserted())?))
    }

    pub(super) fn find_queue(&mut self, name: &Name) -> Result<QueueId, StoreError<NotFound>> {
        let sql = "SELECT id FROM queue WHERE name = ?1";
        let found = self.one(sql, [name.as_str()], |row| row.get(0))?;
        found
            .map(QueueId)
            .ok_or_else(|| StoreError::Refused(NotFound::queue(name)))
    }

    pub(super) fn queues(
        &mut self,
        selection: &Selection<QueueId>,
    ) -> Result<Vec<Queue>, StoreFailure> {
        let (condition, parameters) = condition(selection, |queue| queue.0);
        let columns = "id, name, created_at, deliveries_max, dead_letter";
        let sql = format!("SELECT {columns} FROM queue {condition}");
        let rows: Vec<QueueRow> = self.all(&sql, parameters, |row| row.try_into())?;
        let queue = |(id, name, created_at, most, dead_letter): QueueRow| {
            Ok(Queue {
                id: QueueId(id),
                name: read_name(&name)?,
                created_at: Wall(created_at),
                settings: QueueSettings {
                    dead_letter: dead_letter.map(QueueId),
                    deliveries_max: most.and_then(|most| most.try_into().ok()),
                },
            })
        };
        rows.into_iter().map(queue).collect()
    }

    pub(super) fn delete_queue(
        &mut self,
        queue: QueueId,
        force: bool,
    ) -> Result<(), StoreError<DeleteRefusal>> {
        self.check_queue(queue)
            .map_err(|error| error.map(DeleteRefusal::from))?;
        let sql = "SELECT 1 FROM queue WHERE dead_letter = ?1 LIMIT 1";
        let used = self.one(sql, [queue.0], |_| Ok(()))?.is_some();
        let sql = "SELECT 1 FROM message WHERE queue = ?1 LIMIT 1";
        let full = self.one(sql, [queue.0], |_| Ok(()))?.is_some();
        if used || (full && !force) {
            return Err(in_use(Entity::Queue, queue));
        }
        self.remove_all(queue)?;
        self.execute("DELETE FROM queue WHERE id = ?1", [queue.0])?;
        Ok(())
    }

    pub(super) fn purge(&mut self, queue: QueueId) -> Result<u64, StoreError<NotFound>> {
        self.check_queue(queue)?;
        Ok(self.remove_all(queue)?)
    }

    /// Removes all messages of a queue and returns how many.
    fn remove_all(&mut self, queue: QueueId) -> Result<u64, StoreFailure> {
        let sql = "DELETE FROM content WHERE id IN (SELECT id FROM message WHERE queue = ?1)";
        self.execute(sql, [queue.0])?;
        let removed = self.execute("DELETE FROM message WHERE queue = ?1", [queue.0])?;
        Ok(removed as u64)
    }

    pub(super) fn counts(&mut self, queue: QueueId) -> Result<Counts, StoreError<NotFound>> {
        self.check_queue(queue)?;
        let sql = "SELECT count(*) FILTER (WHERE due_at IS NULL),
                          count(*) FILTER (WHERE due_at IS NOT NULL AND lease IS NULL),
                          count(*) FILTER (WHERE lease IS NOT NULL)
                   FROM message WHERE queue = ?1";
        let counts = self.one(sql, [queue.0], |row| {
            let count = |at| row.get::<_, i64>(at).map(i64::unsigned_abs);
            Ok(Counts {
                ready: count(0)?,
                delayed: count(1)?,
                leased: count(2)?,
            })
        })?;
        Ok(counts.unwrap_or_default())
    }
}

/// Returns the end of a statement that lists rows by number, and its parameters.
fn condition<Id>(
    selection: &Selection<Id>,
    number: impl Fn(&Id) -> i32,
) -> (&'static str, (Value, i64)) {
    match selection {
        Selection::After { id, limit } => (
            "WHERE id > ?1 ORDER BY id LIMIT ?2",
            (Value::from(number(id)), i64::try_from(*limit).unwrap_or(0)),
        ),
        Selection::These(ids) => {
            let ids: Vec<String> = ids.iter().map(|id| number(id).to_string()).collect();
            (
                "WHERE id IN (SELECT value FROM json_each(?1)) ORDER BY id LIMIT ?2",
                (Value::from(format!("[{}]", ids.join(","))), -1),
            )
        }
    }
}

fn taken(entity: Entity, name: &Name) -> NameTaken {
    let name = name.to_string();
    NameTaken { entity, name }
}

fn in_use(entity: Entity, number: impl std::fmt::Display) -> StoreError<DeleteRefusal> {
    let value = number.to_string();
    StoreError::Refused(NotEmpty { entity, value }.into())
}

fn read_name(name: &str) -> Result<Name, StoreFailure> {
    // Somebody may have written to the file past the store.
    Name::new("name", name).map_err(|error: Error| StoreFailure::Internal {
        reason: error.to_string(),
    })
}

fn narrow(id: i64) -> Result<i32, StoreFailure> {
    i32::try_from(id).map_err(|_| StoreFailure::Internal {
        reason: format!("no number after {} is left", i32::MAX),
    })
}
