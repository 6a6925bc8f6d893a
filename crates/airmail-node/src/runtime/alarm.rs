//! The one timer of a shard's turns.
//!
//! Deadlines come with every turn, mostly the same or a later one. The timer is set again only for
//! an earlier one; what rings too early costs one turn that does nothing, where setting a timer for
//! each turn would cost every turn. Tokio's timer has steps of a millisecond and never rings early:
//! nothing that a shard waits for by time is in more of a hurry.

use airmail_model::{Mono, Now};
use std::pin::Pin;
use tokio::time::{Instant, Sleep};

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    /// Kept when it has rung: setting it again is cheaper than a new one.
    timer: Option<Pin<Box<Sleep>>>,
    /// When it rings, if it is set.
    at: Option<Mono>,
}

impl Alarm {
    /// Waits until `deadline`, or less long; for ever if there is none. `now` is the time of the
    /// turn that gave the deadline. Can be dropped and called again.
    pub(crate) async fn until(&mut self, deadline: Option<Mono>, now: Now) {
        let Some(deadline) = deadline else {
            return std::future::pending().await;
        };
        if deadline <= now.mono {
            return tokio::task::yield_now().await;
        }
        if self.at.is_none_or(|at| deadline < at) {
            self.set(deadline, now);
        }
        if let Some(timer) = &mut self.timer {
            timer.as_mut().await;
            self.at = None;
        }
    }

    fn set(&mut self, deadline: Mono, now: Now) {
        let left = deadline.since(now.mono);
        self.at = Some(deadline);
        match (&mut self.timer, Instant::now().checked_add(left)) {
            (Some(timer), Some(at)) => timer.as_mut().reset(at),
            _ => self.timer = Some(Box::pin(tokio::time::sleep(left))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_model::Wall;
    use std::time::Duration;

    fn at(minutes: u64) -> Mono {
        Mono::default().plus(Duration::from_secs(60 * minutes))
    }

    const NOW: Now = Now {
        mono: Mono(0),
        wall: Wall(0),
    };

    async fn rings_now(alarm: &mut Alarm, deadline: Option<Mono>) -> bool {
        futures::poll!(std::pin::pin!(alarm.until(deadline, NOW))).is_ready()
    }

    #[tokio::test]
    async fn the_timer_is_set_again_only_for_an_earlier_deadline() {
        let mut alarm = Alarm::default();
        for (deadline, set) in [(50, 50), (90, 50), (20, 20), (30, 20)] {
            assert!(!rings_now(&mut alarm, Some(at(deadline))).await);
            assert_eq!(alarm.at, Some(at(set)));
        }
    }

    #[tokio::test]
    async fn it_rings_at_the_deadline_and_can_be_set_again() {
        let mut alarm = Alarm::default();
        for _ in 0..2 {
            assert!(!rings_now(&mut alarm, Some(at(50))).await);
            alarm.until(Some(Mono(1_000_000)), NOW).await;
            assert_eq!(alarm.at, None);
        }
    }

    #[tokio::test]
    async fn what_is_due_is_not_waited_for_and_nothing_is_waited_for_for_ever() {
        let mut alarm = Alarm::default();
        alarm.until(Some(NOW.mono), NOW).await;
        assert!(!rings_now(&mut alarm, None).await);
    }
}
