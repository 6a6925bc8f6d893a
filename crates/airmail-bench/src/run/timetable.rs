//! Sending at a rate, whether or not the system keeps up.
//!
//! A message counts from when it was due, so a publisher that waits makes the next ones late, not
//! absent. An async runtime's own timer wakes at whole milliseconds, which would be most of what is
//! then measured; so a publisher has a timer of the system, which the runtime waits for as for a
//! socket: it wakes within microseconds, spins on nothing, and has no thread that would have to hand
//! each message over.

use std::io::ErrorKind;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::net::unix::pipe::Receiver;

use super::publishing::Sender;
use crate::chunk::Carver;
use crate::clock::now_us;
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

/// How many messages from `first` are due by now.
fn due_by<S: System>(sender: &Sender<S>, now_us: u64, first: u64, most: u64) -> u64 {
    let end = sender.messages.min(first.saturating_add(most));
    let due = |number: &u64| {
        let due_us = sender.pace.due_us(*number);
        due_us.is_some_and(|due_us| due_us <= now_us && due_us < sender.end_us)
    };
    (first..end).take_while(due).count() as u64
}

/// A timer of the system, in the only type of the runtime that takes any file to be waited for.
#[derive(Debug)]
struct Alarm(Receiver);

impl Alarm {
    fn new() -> Result<Alarm, Failure> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags).map_err(Failure::new)?;
        let timer = Receiver::from_file_unchecked(timer.into()).map_err(Failure::new)?;
        Ok(Alarm(timer))
    }

    /// Waits until the clock says so, if it does not yet. Gives what it says then.
    async fn wait_until(&self, due_us: u64) -> Result<u64, Failure> {
        let mut now = now_us();
        if now >= due_us {
            return Ok(now);
        }
        self.set(due_us)?;
        loop {
            self.0.readable().await.map_err(Failure::new)?;
            match self.0.try_read(&mut [0; 8]) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(Failure::new(error)),
                Ok(_) => now = now_us(),
            }
            if now >= due_us {
                return Ok(now);
            }
        }
    }

    fn set(&self, due_us: u64) -> Result<(), Failure> {
        let never = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let once = Itimerspec {
            it_interval: never,
            it_value: Timespec {
                tv_sec: (due_us / 1_000_000).cast_signed(),
                tv_nsec: (due_us % 1_000_000 * 1000).cast_signed(),
            },
        };
        let at = TimerfdTimerFlags::ABSTIME;
        timerfd_settime(&self.0, at, &once).map_err(Failure::new)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_alarm_goes_off_when_it_is_due_and_not_before() {
        let alarm = Alarm::new().unwrap();
        for wait_us in [0, 50, 700, 3000, 20] {
            let due_us = now_us() + wait_us;
            assert!(alarm.wait_until(due_us).await.unwrap() >= due_us);
        }
    }
}
