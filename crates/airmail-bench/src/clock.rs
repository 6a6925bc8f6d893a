//! The one clock of all measuring: the system's monotonic one, which processes of one machine share,
//! so that a time that one of them wrote into a message can be subtracted by another.

use rustix::time::{ClockId, clock_gettime};

/// Now, in microseconds since some moment that all processes of this machine agree on.
#[must_use]
pub fn now_us() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let micros = now.tv_sec * 1_000_000 + now.tv_nsec / 1000;
    u64::try_from(micros).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_does_not_run_backwards() {
        let times: Vec<u64> = (0..100).map(|_| super::now_us()).collect();
        assert!(times.is_sorted());
    }
}
