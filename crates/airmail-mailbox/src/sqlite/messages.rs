//! Messages as they are stored, handed out and shown.

use super::writer::Writer;
use crate::id::{AccountId, LeaseId, MessageId, QueueId};
use crate::message::{ANSWER_BYTES_MAX, Inbox, Message, Outgoing, Receive, Recipients, Take};
use crate::receiver::{receiver, recipients};
use crate::store::SendResults;
use crate::store_error::{NotForReader, NotFound, StoreError, StoreFailure};
use airmail_model::Wall;
use bytes::Bytes;
use rusqlite::Row;

const MICROS_PER_MS: i64 = 1000;

/// Condition that a message is the next of its key: no earlier one is there, and none is at a reader or
/// waits to come back from one.
const IS_NEXT: &str = "(m.key IS NULL OR NOT EXISTS (
    SELECT 1 FROM message e
    WHERE e.queue = m.queue AND e.receiver = m.receiver AND e.key = m.key AND e.id <> m.id
      AND ((e.due_at IS NULL AND e.id < m.id) OR (e.due_at IS NOT NULL AND e.deliveries > 0))))";

const COLUMNS: &str = "m.id, m.queue, m.origin, m.sender, m.receiver, m.priority, m.deliveries,
    m.lease, m.created_at, m.expires_at, m.key, c.content";

impl Writer {
    pub(super) fn send(&mut self, messages: &[Outgoing]) -> Result<SendResults, StoreFailure> {
        messages
            .iter()
            .map(|message| self.send_one(message))
            .collect()
    }

    /// Stores a message. The inner error refuses the message, the outer one is the store's.
    fn send_one(
        &mut self,
        message: &Outgoing,
    ) -> Result<Result<MessageId, NotFound>, StoreFailure> {
        match self.check_names(message) {
            Ok(()) => {}
            Err(StoreError::Refused(missing)) => return Ok(Err(missing)),
            Err(StoreError::Failed(failure)) => return Err(failure),
        }
        let to = receiver(message.recipients);
        let due_at = (message.delay_ms > 0).then(|| self.after(message.delay_ms));
        let expires_at = message.lifetime_ms.map(|ms| self.after(ms));
        let sql = "INSERT INTO message (queue, origin, sender, receiver, priority, deliveries,
                       due_at, created_at, expires_at, key)
                   VALUES (?1, ?1, ?2, ?3, ?4, 0, ?5, ?6, ?7, ?8)";
        let (queue, sender) = (message.queue, message.sender.0);
        let (now, key) = (self.now_us(), message.key.as_deref());
        let values = (
            queue.0,
            sender,
            to,
            message.priority,
            due_at,
            now,
            expires_at,
            key,
        );
        self.execute(sql, values)?;
        let id = self.inserted();
        let sql = "INSERT INTO content (id, content) VALUES (?1, ?2)";
        self.execute(sql, (id, &message.content[..]))?;
        if due_at.is_none() {
            let place = place_of(id, message.priority, true);
            self.execute("UPDATE message SET place = ?2 WHERE id = ?1", (id, place))?;
            self.note_ready(queue, to);
        }
        Ok(Ok(MessageId(id)))
    }

    /// Checks that queue, sender and receiver exist.
    fn check_names(&mut self, message: &Outgoing) -> Result<(), StoreError<NotFound>> {
        self.check_queue(message.queue)?;
        self.check_account(message.sender, "from")?;
        match message.recipients {
            Recipients::Direct(account) => self.check_account(account, "to"),
            Recipients::Broadcast => Ok(()),
        }
    }

    pub(super) fn receive(
        &mut self,
        request: Receive,
    ) -> Result<Vec<Message>, StoreError<NotFound>> {
        let Inbox { queue, recipients } = request.inbox();
        self.check_queue(queue)?;
        self.check_account(request.reader, "as")?;
        let sql = format!(
            "SELECT {COLUMNS} FROM message m JOIN content c ON c.id = m.id
             WHERE m.receiver = ?1 AND m.queue = ?2 AND m.due_at IS NULL
               AND (m.expires_at IS NULL OR m.expires_at > ?3) AND {IS_NEXT}
             ORDER BY m.place LIMIT ?4"
        );
        let count = i64::try_from(request.count).unwrap_or(i64::MAX);
        let values = (receiver(recipients), queue.0, self.now_us(), count);
        let mut bytes = 0;
        let mut found = self.all_while(&sql, values, message, |message| {
            bytes += message.content.len();
            // The first always comes: no message is larger than the bound.
            bytes <= ANSWER_BYTES_MAX
        })?;
        for message in &mut found {
            match request.take {
                Take::Peek => continue,
                Take::Remove => {
                    self.remove(message.id.0)?;
                    if message.key.is_some() {
                        self.note_ready(queue, receiver(recipients));
                    }
                }
                Take::Lease { lease_ms } => message.lease = Some(self.lease(message.id, lease_ms)?),
            }
            message.deliveries += 1;
        }
        Ok(found)
    }

    fn lease(&mut self, id: MessageId, lease_ms: u64) -> Result<LeaseId, StoreFailure> {
        self.execute("UPDATE counter SET lease = lease + 1", ())?;
        let lease = self.one("SELECT lease FROM counter", (), |row| row.get(0))?;
        let lease: i64 = lease.unwrap_or_default();
        let sql = "UPDATE message SET lease = ?2, due_at = ?3, deliveries = deliveries + 1
                   WHERE id = ?1";
        let due_at = self.after(lease_ms);
        self.execute(sql, (id.0, lease, due_at))?;
        Ok(LeaseId(lease))
    }

    pub(super) fn look_up(
        &mut self,
        id: MessageId,
        reader: AccountId,
    ) -> Result<Option<Message>, StoreError<NotForReader>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM message m JOIN content c ON c.id = m.id WHERE m.id = ?1"
        );
        let found = self.one(&sql, [id.0], message)?;
        match found.as_ref().map(|message| message.recipients) {
            Some(Recipients::Direct(receiver)) if receiver != reader => {
                Err(StoreError::Refused(NotForReader { message: id }))
            }
            _ => Ok(found.map(|message| Message {
                lease: None,
                ..message
            })),
        }
    }

    pub(super) fn find_from(
        &mut self,
        sender: AccountId,
        reader: AccountId,
    ) -> Result<Option<Message>, StoreError<NotFound>> {
        self.check_account(sender, "from")?;
        self.check_account(reader, "as")?;
        let sql = format!(
            "SELECT {COLUMNS} FROM message m JOIN content c ON c.id = m.id
             WHERE m.receiver = ?1 AND m.sender = ?2 AND m.due_at IS NULL
               AND (m.expires_at IS NULL OR m.expires_at > ?3)
             ORDER BY m.id LIMIT 1"
        );
        Ok(self.one(&sql, (reader.0, sender.0, self.now_us()), message)?)
    }

    pub(super) fn queues_for(
        &mut self,
        recipients: Recipients,
    ) -> Result<Vec<QueueId>, StoreFailure> {
        let sql = "SELECT min(queue) FROM message
                   WHERE receiver = ?1 AND queue > ?2 AND due_at IS NULL
                     AND (expires_at IS NULL OR expires_at > ?3)";
        let mut found: Vec<QueueId> = Vec::new();
        loop {
            let last = found.last().map_or(0, |queue| queue.0);
            let values = (receiver(recipients), last, self.now_us());
            match self.one(sql, values, |row| row.get(0))?.flatten() {
                Some(queue) => found.push(QueueId(queue)),
                None => return Ok(found),
            }
        }
    }

    /// Removes a message, wherever it is.
    pub(super) fn remove(&mut self, id: i64) -> Result<(), StoreFailure> {
        self.execute("DELETE FROM message WHERE id = ?1", [id])?;
        self.execute("DELETE FROM content WHERE id = ?1", [id])?;
        Ok(())
    }

    /// Returns the time a number of milliseconds after this transaction's, in microseconds since 1970.
    pub(super) fn after(&self, ms: u64) -> i64 {
        let micros = i64::try_from(ms)
            .unwrap_or(i64::MAX)
            .saturating_mul(MICROS_PER_MS);
        self.now_us().saturating_add(micros)
    }
}

/// Returns the place of a message in its inbox, as in PostgreSQL: a message that came straight from its
/// sender, without a priority, is at its number; every other one is before those, higher priorities
/// first.
pub(super) fn place_of(id: i64, priority: u8, fresh: bool) -> i64 {
    if fresh && priority == 0 {
        id
    } else {
        id - ((i64::from(priority) + 1) << 58)
    }
}

fn message(row: &Row<'_>) -> rusqlite::Result<Message> {
    Ok(Message {
        id: MessageId(row.get(0)?),
        queue: QueueId(row.get(1)?),
        origin: QueueId(row.get(2)?),
        sender: AccountId(row.get(3)?),
        recipients: recipients(row.get(4)?),
        priority: row.get(5)?,
        deliveries: row.get(6)?,
        lease: row.get::<_, Option<i64>>(7)?.map(LeaseId),
        created_at: Wall(row.get(8)?),
        expires_at: row.get::<_, Option<i64>>(9)?.map(Wall),
        key: row.get(10)?,
        content: Bytes::from(row.get::<_, Vec<u8>>(11)?),
    })
}
