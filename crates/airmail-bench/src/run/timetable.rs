//! Sending at a rate, whether or not the system keeps up.
//!
//! A message counts from when it was due, so a publisher that waits makes the next ones late, not
//! absent.

use super::publishing::Sender;
use crate::alarm::Alarm;
use crate::chunk::Carver;
use crate::system::{Failure, Publisher, System};

/// Sends all that the timetable has.
pub(super) async fn send<S: System>(mut sender: Sender<S>) -> Result<(), Failure> {
    let alarm = Alarm::new()?;
    let most = Carver::messages_max(sender.run.settings());
    let mut first = 0;
    while first < sender.messages {
        let due_us = sender.pace.due_us(first);
        let Some(due_us) = due_us.filter(|due_us| *due_us < sender.end_us) else {
            break;
        };
        let now_us = alarm.wait_until(due_us).await?;
        let count = due_by(&sender, now_us, first, most);
        sender.sheet.room(count).await;
        sender.sheet.note_late(now_us - due_us, count);
        sender.send(first, count, None).await?;
        first += count;
    }
    sender.publisher.flush().await
}

/// Number of messages from `first` that are due by now.
fn due_by<S: System>(sender: &Sender<S>, now_us: u64, first: u64, most: u64) -> u64 {
    let end = sender.messages.min(first.saturating_add(most));
    let due = |number: &u64| {
        let due_us = sender.pace.due_us(*number);
        due_us.is_some_and(|due_us| due_us <= now_us && due_us < sender.end_us)
    };
    (first..end).take_while(due).count() as u64
}
