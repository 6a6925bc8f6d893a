//! What becomes of leased and delayed messages.

use super::desk::Desk;
use super::directory::told;
use super::handing::place_of;
use crate::id::QueueId;
use crate::message::{Receipt, Settle};
use airmail_model::{Error, ErrorCode};

impl Desk {
    pub(super) fn settle(
        &mut self,
        receipts: &[Receipt],
        what: Settle,
    ) -> Result<Vec<Result<(), Error>>, Error> {
        receipts
            .iter()
            .map(|receipt| self.settle_one(*receipt, what))
            .collect()
    }

    fn settle_one(&mut self, receipt: Receipt, what: Settle) -> Result<Result<(), Error>, Error> {
        let (id, lease) = (receipt.message.0, receipt.lease.0);
        let sql =
            "SELECT queue, receiver, key IS NOT NULL FROM message WHERE id = ?1 AND lease = ?2";
        let found: Option<(i32, i32, bool)> = self.one(sql, (id, lease), |row| row.try_into())?;
        let Some((queue, receiver, has_key)) = found else {
            return Ok(Err(told(ErrorCode::LeaseEnded, "message", receipt.message)));
        };
        match what {
            Settle::Acknowledge => {
                self.remove(id)?;
                if has_key {
                    self.ring(QueueId(queue), receiver);
                }
            }
            Settle::Extend { lease_ms } => {
                let due_at = self.after(lease_ms);
                self.execute("UPDATE message SET due_at = ?2 WHERE id = ?1", (id, due_at))?;
            }
            Settle::Release { delay_ms: 0 } => self.put_back(id)?,
            Settle::Release { delay_ms } => {
                let due_at = self.after(delay_ms);
                let sql = "UPDATE message SET due_at = ?2, lease = NULL WHERE id = ?1";
                self.execute(sql, (id, due_at))?;
            }
        }
        Ok(Ok(()))
    }

    /// Makes a message readable, or a dead letter if it was leased too often.
    pub(super) fn put_back(&mut self, id: i64) -> Result<(), Error> {
        let sql = "SELECT m.queue, m.receiver, m.priority, m.deliveries >= q.deliveries_max,
                          q.dead_letter
                   FROM message m JOIN queue q ON q.id = m.queue WHERE m.id = ?1";
        type Found = (i32, i32, u8, Option<bool>, Option<i32>);
        let found: Option<Found> = self.one(sql, [id], |row| row.try_into())?;
        let Some((queue, receiver, priority, dead, dead_letter)) = found else {
            return Ok(());
        };
        let place = place_of(id, priority, false);
        let sql = "UPDATE message SET due_at = NULL, lease = NULL, place = ?2 WHERE id = ?1";
        self.execute(sql, (id, place))?;
        if let (Some(true), Some(dead_letter)) = (dead, dead_letter) {
            return self.bury(id, receiver, dead_letter);
        }
        self.ring(QueueId(queue), receiver);
        Ok(())
    }

    /// Removes what has expired, to the queue's dead letters where it has such.
    pub(super) fn expire(&mut self, id: i64) -> Result<(), Error> {
        let sql = "SELECT m.receiver, m.priority, q.dead_letter
                   FROM message m JOIN queue q ON q.id = m.queue WHERE m.id = ?1";
        let found: Option<(i32, u8, Option<i32>)> = self.one(sql, [id], |row| row.try_into())?;
        match found {
            Some((receiver, priority, Some(dead_letter))) => {
                let place = place_of(id, priority, false);
                self.execute("UPDATE message SET place = ?2 WHERE id = ?1", (id, place))?;
                self.bury(id, receiver, dead_letter)
            }
            _ => self.remove(id),
        }
    }

    fn bury(&mut self, id: i64, receiver: i32, dead_letter: i32) -> Result<(), Error> {
        let sql = "UPDATE message SET queue = ?2, deliveries = 0, expires_at = NULL WHERE id = ?1";
        self.execute(sql, (id, dead_letter))?;
        self.ring(QueueId(dead_letter), receiver);
        Ok(())
    }
}
