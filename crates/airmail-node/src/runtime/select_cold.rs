//! Waits for what comes often, beside what comes once or never.
//!
//! `select!` polls all of its sides each time that one of them wakes the task, and each poll of a
//! signal takes its lock. Here the rare side is polled only when it has woken the task itself.

use futures::future::Either;
use futures::task::AtomicWaker;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// Wakes the task, and notes that it was for the rare side.
struct ColdWaker {
    woken: AtomicBool,
    task: AtomicWaker,
}

impl Wake for ColdWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.task.wake();
    }
}

/// Waits for the one that ends first; the rare one if both have.
pub(crate) async fn select_cold<R: Future, O: Future>(
    rare: R,
    often: O,
) -> Either<R::Output, O::Output> {
    let (mut rare, mut often) = (pin!(rare), pin!(often));
    let cold_waker = Arc::new(ColdWaker {
        // To be polled once by itself.
        woken: AtomicBool::new(true),
        task: AtomicWaker::new(),
    });
    let waker = Waker::from(Arc::clone(&cold_waker));
    poll_fn(|cx| {
        // Before looking, so that what rings later wakes this task.
        cold_waker.task.register(cx.waker());
        if cold_waker.woken.swap(false, Ordering::Acquire)
            && let Poll::Ready(done) = rare.as_mut().poll(&mut Context::from_waker(&waker))
        {
            return Poll::Ready(Either::Left(done));
        }
        often.as_mut().poll(cx).map(Either::Right)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;
    use tokio::sync::Notify;

    #[tokio::test]
    async fn the_rare_side_is_polled_only_when_it_has_something_to_say() {
        let (rare, often) = (Notify::new(), Notify::new());
        let polls = Rc::new(Cell::new(0));
        let (counted, mut notified) = (Rc::clone(&polls), Box::pin(rare.notified()));
        let rarely = poll_fn(move |cx| {
            counted.set(counted.get() + 1);
            notified.as_mut().poll(cx)
        });
        let forever = async {
            loop {
                often.notified().await;
            }
        };
        let mut both = pin!(select_cold(rarely, forever));
        for _ in 0..5 {
            assert!(futures::poll!(both.as_mut()).is_pending());
            often.notify_one();
        }
        assert_eq!(polls.get(), 1);
        rare.notify_one();
        assert!(matches!(both.await, Either::Left(())));
        assert_eq!(polls.get(), 2);
    }

    #[tokio::test]
    async fn the_end_of_the_other_side_is_given() {
        let both = select_cold(std::future::pending::<()>(), async { 7 });
        assert!(matches!(both.await, Either::Right(7)));
    }
}
