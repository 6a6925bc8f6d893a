//! Choice of the inputs whose comparisons libFuzzer sees.
//!
//! From the operands of comparisons it learns what an input should have had in some place, such as
//! a magic number. Reporting them takes half of the time of a busy target, and one input's are
//! nearly the last one's: so only those of some inputs are reported. Coverage is reported for every
//! input. The gate that the compiler puts before each call is a variable that it names itself.

/// Interval, in inputs, at which one's comparisons are reported.
const EACH: u64 = 8;

/// Called before each input.
#[cfg(gated)]
pub fn watch_some() {
    use std::sync::atomic::{AtomicU64, Ordering};

    static INPUTS: AtomicU64 = AtomicU64::new(0);
    unsafe extern "C" {
        static __sancov_should_track: AtomicU64;
    }
    let number = INPUTS.fetch_add(1, Ordering::Relaxed);
    let watched = u64::from(number.is_multiple_of(EACH));
    // SAFETY: eight bytes, aligned, that the compiler defines in every crate that is built with
    // `-sanitizer-coverage-gated-trace-callbacks`, which comes with `--cfg gated`.
    unsafe { &__sancov_should_track }.store(watched, Ordering::Relaxed);
}

/// Called before each input; without gates in the code there is nothing to choose.
#[cfg(not(gated))]
pub fn watch_some() {
    let _ = EACH;
}
