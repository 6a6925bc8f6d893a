//! Leases that are settled, and messages that become ready again, expire or are dead letters.

use super::messages::place_of;
use super::writer::Writer;
use crate::id::QueueId;
use crate::message::{Receipt, Settle};
use crate::store::SettleResults;
use crate::store_error::{LeaseEnded, StoreFailure};

impl Writer {
    pub(super) fn settle(
        &mut self,
        receipts: &[Receipt],
        what: Settle,
    ) -> Result<SettleResults, StoreFailure> {
        receipts
            .iter()
            .map(|receipt| self.settle_one(*receipt, what))
            .collect()
    }

    /// Settles a lease. The inner error refuses the lease, the outer one is the store's.
    fn settle_one(
        &mut self,
        receipt: Receipt,
        what: Settle,
    ) -> Result<Result<(), LeaseEnded>, StoreFailure> {
        let (id, lease) = (receipt.message.0, receipt.lease.0);
        let sql =
            "SELECT queue, receiver, key IS NOT NULL FROM message WHERE id = ?1 AND lease = ?2";
        let found: Option<(i32, i32, bool)> = self.one(sql, (id, lease), |row| row.try_into())?;
        let Some((queue, receiver, has_key)) = found else {
            // Input: the reader's lease has ended.
            let message = receipt.message;
            return Ok(Err(LeaseEnded { message }));
        };
        match what {
            Settle::Acknowledge => {
                self.remove(id)?;
                if has_key {
                    self.note_ready(QueueId(queue), receiver);
                }
            }
            Settle::Extend { lease_ms } => {
                let due_at = self.after(lease_ms);
                self.execute("UPDATE message SET due_at = ?2 WHERE id = ?1", (id, due_at))?;
            }
            Settle::Release { delay_ms: 0 } => self.make_ready(id)?,
            Settle::Release { delay_ms } => {
                let due_at = self.after(delay_ms);
                let sql = "UPDATE message SET due_at = ?2, lease = NULL WHERE id = ?1";
                self.execute(sql, (id, due_at))?;
            }
        }
        Ok(Ok(()))
    }

    /// Makes a message readable, or a dead letter if it was leased too often.
    pub(super) fn make_ready(&mut self, id: i64) -> Result<(), StoreFailure> {
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
            return self.move_to_dead_letters(id, receiver, dead_letter);
        }
        self.note_ready(QueueId(queue), receiver);
        Ok(())
    }

    /// Moves an expired message to the queue's dead letters, or removes it if the queue has none.
    pub(super) fn expire(&mut self, id: i64) -> Result<(), StoreFailure> {
        let sql = "SELECT m.receiver, m.priority, q.dead_letter
                   FROM message m JOIN queue q ON q.id = m.queue WHERE m.id = ?1";
        let found: Option<(i32, u8, Option<i32>)> = self.one(sql, [id], |row| row.try_into())?;
        match found {
            Some((receiver, priority, Some(dead_letter))) => {
                let place = place_of(id, priority, false);
                self.execute("UPDATE message SET place = ?2 WHERE id = ?1", (id, place))?;
                self.move_to_dead_letters(id, receiver, dead_letter)
            }
            _ => self.remove(id),
        }
    }

    fn move_to_dead_letters(
        &mut self,
        id: i64,
        receiver: i32,
        dead_letter: i32,
    ) -> Result<(), StoreFailure> {
        let sql = "UPDATE message SET queue = ?2, deliveries = 0, expires_at = NULL WHERE id = ?1";
        self.execute(sql, (id, dead_letter))?;
        self.note_ready(QueueId(dead_letter), receiver);
        Ok(())
    }
}
