//! The switch of `NOTIFY`: senders notify nodes only while some node has said that its readers wait.
//!
//! Invariant: while the switch is on, every message that becomes ready is notified. Maintenance sets it:
//! from requested to on when all senders that may not have heard of it have ended, and back to off when
//! no reader has waited for long.

use std::sync::atomic::{AtomicU32, Ordering};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// A state of the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum SwitchState {
    /// No reader of this node waits.
    Off = 0,
    /// A reader is about to wait.
    Requested = 1,
    /// All senders know that readers wait.
    On = 2,
}

/// The switch.
#[derive(Debug, Default)]
pub(super) struct NotifySwitch {
    state: AtomicU32,
    requested: Notify,
    moved: Notify,
}

impl NotifySwitch {
    /// Requests notifications, and waits until the switch is on.
    pub(super) async fn switched_on(&self) {
        let (off, requested) = (SwitchState::Off as u32, SwitchState::Requested as u32);
        loop {
            let moved = self.moved.notified();
            tokio::pin!(moved);
            moved.as_mut().enable();
            if self.is(SwitchState::On) {
                return;
            }
            // If it is not off, somebody else has requested it.
            let _ =
                self.state
                    .compare_exchange(off, requested, Ordering::AcqRel, Ordering::Acquire);
            self.requested.notify_one();
            moved.await;
        }
    }

    /// Waits until somebody requests notifications.
    pub(super) fn requested(&self) -> Notified<'_> {
        self.requested.notified()
    }

    /// Returns whether the switch is in a state.
    pub(super) fn is(&self, state: SwitchState) -> bool {
        self.state.load(Ordering::Acquire) == state as u32
    }

    /// Moves the switch.
    pub(super) fn set(&self, state: SwitchState) {
        self.state.store(state as u32, Ordering::Release);
        self.moved.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::future::join;

    #[tokio::test]
    async fn a_reader_waits_until_the_switch_is_on() {
        let switch = NotifySwitch::default();
        let maintenance = async {
            switch.requested().await;
            assert!(switch.is(SwitchState::Requested));
            switch.set(SwitchState::On);
        };
        join(switch.switched_on(), maintenance).await;
        switch.switched_on().await;
    }

    #[tokio::test]
    async fn a_reader_requests_again_what_was_switched_off_meanwhile() {
        let switch = NotifySwitch::default();
        let maintenance = async {
            switch.requested().await;
            switch.set(SwitchState::Off);
            switch.requested().await;
            assert!(switch.is(SwitchState::Requested));
            switch.set(SwitchState::On);
        };
        join(switch.switched_on(), maintenance).await;
        assert!(switch.is(SwitchState::On));
    }
}
