//! A timer that wakes within microseconds.
//!
//! An async runtime's own timer wakes at whole milliseconds, which would be most of the measured
//! latency of a message that waited for it. This is a timer of the system, which the runtime waits
//! for as for a socket: it spins on nothing, and has no thread that would have to hand each message
//! over.

use crate::clock::{now_us, system_us};
use crate::system::Failure;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::io::ErrorKind;
use tokio::net::unix::pipe::Receiver;

/// A timer of the system, in the only type of the runtime that takes any file to be waited for.
#[derive(Debug)]
pub struct Alarm(Receiver);

impl Alarm {
    /// One that is not set.
    ///
    /// # Errors
    /// The system has no more timers, or this is not in a runtime.
    pub fn new() -> Result<Alarm, Failure> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags).map_err(Failure::new)?;
        let timer = Receiver::from_file_unchecked(timer.into()).map_err(Failure::new)?;
        Ok(Alarm(timer))
    }

    /// Waits until [`crate::clock`] says so, if it does not yet. Gives what it says then, in
    /// microseconds.
    ///
    /// # Errors
    /// The system cannot set the timer.
    pub async fn wait_until(&self, due_us: u64) -> Result<u64, Failure> {
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
        let due_us = system_us(due_us);
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
