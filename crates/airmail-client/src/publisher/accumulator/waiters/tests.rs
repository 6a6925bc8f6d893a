//! Senders are admitted in the order in which they came, and one that leaves makes way.

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

/// A waker that counts how often it is woken.
#[derive(Default)]
struct CountingWaker(AtomicUsize);

impl Wake for CountingWaker {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Makes a queue of three senders, with their numbers and wakers.
fn three() -> (Waiters, Vec<Option<u64>>, Vec<Arc<CountingWaker>>) {
    let mut waiters = Waiters::default();
    let wakers: Vec<_> = (0..3).map(|_| Arc::<CountingWaker>::default()).collect();
    let mut senders = vec![None; 3];
    for (sender, waker) in senders.iter_mut().zip(&wakers) {
        waiters.wait(sender, &Waker::from(Arc::clone(waker)));
    }
    (waiters, senders, wakers)
}

fn wake_first(waiters: &Waiters) {
    let mut wakes = Vec::new();
    waiters.wake_first(&mut wakes);
    wakes.into_iter().for_each(Waker::wake);
}

fn woken(wakers: &[Arc<CountingWaker>]) -> Vec<usize> {
    let count = |waker: &Arc<CountingWaker>| waker.0.load(Ordering::Relaxed);
    wakers.iter().map(count).collect()
}

#[test]
fn only_the_first_is_woken_and_let_in_and_then_the_one_behind() {
    let (mut waiters, senders, wakers) = three();
    for turn in 0..3 {
        wake_first(&waiters);
        let mut expected = vec![1; turn + 1];
        expected.resize(3, 0);
        assert_eq!(woken(&wakers), expected);
        let may: Vec<bool> = senders[turn..]
            .iter()
            .map(|p| waiters.is_turn_of(*p))
            .collect();
        assert!(may[0] && may[1..].iter().all(|may| !may));
        assert!(!waiters.is_turn_of(None), "who comes late waits too");
        waiters.leave(senders[turn].unwrap());
    }
    assert!(waiters.is_empty() && waiters.is_turn_of(None));
}

#[test]
fn who_stops_waiting_gives_its_turn_to_the_next() {
    let (mut waiters, senders, wakers) = three();
    waiters.leave(senders[0].unwrap());
    wake_first(&waiters);
    assert_eq!(woken(&wakers), [0, 1, 0]);
    assert!(waiters.is_turn_of(senders[1]));
}

#[test]
fn who_asks_again_keeps_its_place() {
    let (mut waiters, mut senders, wakers) = three();
    let another = Arc::<CountingWaker>::default();
    waiters.wait(&mut senders[0], &Waker::from(Arc::clone(&another)));
    wake_first(&waiters);
    assert_eq!(
        (woken(&wakers), woken(&[another])),
        (vec![0, 0, 0], vec![1])
    );
}
