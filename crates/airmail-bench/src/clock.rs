//! The one clock of all measuring: the system's monotonic one, which processes of one machine share,
//! so that a time that one of them wrote into a message can be subtracted by another.
//!
//! Machines do not share it. A process that takes part in a run of several shifts its clock once,
//! by the offset that it and the run's leader measured, before it measures anything; then all give
//! the leader's time, as exactly as they could measure it.

use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicI64, Ordering};

/// Lead of this process's clock over the system's, in microseconds.
static SHIFT_US: AtomicI64 = AtomicI64::new(0);

/// Present time, in microseconds since some moment that all processes of a run agree on.
#[must_use]
pub fn now_us() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let micros = now.tv_sec * 1_000_000 + now.tv_nsec / 1000;
    u64::try_from(micros + SHIFT_US.load(Ordering::Relaxed)).unwrap_or_default()
}

/// Shifts the clock of this process, ahead where `by_us` is above 0. To be called before anything is
/// measured: times from before cannot be compared with times from after.
pub fn shift(by_us: i64) {
    SHIFT_US.fetch_add(by_us, Ordering::Relaxed);
}

/// Reading of the system's own monotonic clock when this one shows `at_us`.
#[must_use]
pub(crate) fn system_us(at_us: u64) -> u64 {
    let shift_us = SHIFT_US.load(Ordering::Relaxed);
    at_us.saturating_add_signed(shift_us.saturating_neg())
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_does_not_run_backwards() {
        let times: Vec<u64> = (0..100).map(|_| super::now_us()).collect();
        assert!(times.is_sorted());
    }
}
