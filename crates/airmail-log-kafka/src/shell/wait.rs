//! Waiting for a future of librdkafka's administration, without a runtime: it is made ready by a thread of the client's.

use super::clock::now;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// The most time between looks at whether to give up.
const LOOK: Duration = Duration::from_millis(100);

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Unpark>) {
        self.0.unpark();
    }
}

/// Waits for what a future gives; none if it has not by then, or once `gives_up`.
pub(super) fn wait_for<T>(
    future: impl Future<Output = T>,
    until: Instant,
    gives_up: impl Fn() -> bool,
) -> Option<T> {
    let mut future = pin!(future);
    let waker = Arc::new(Unpark(thread::current())).into();
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return Some(value);
        }
        let left = until.saturating_duration_since(now());
        if left.is_zero() || gives_up() {
            return None;
        }
        thread::park_timeout(left.min(LOOK));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};

    #[test]
    fn what_is_ready_is_given_and_what_is_not_is_given_up() {
        let never = || false;
        assert_eq!(wait_for(ready(5), now(), never), Some(5));
        assert_eq!(wait_for(pending::<u8>(), now(), never), None);
        let late = now() + Duration::from_secs(3600);
        assert_eq!(wait_for(pending::<u8>(), late, || true), None);
    }
}
