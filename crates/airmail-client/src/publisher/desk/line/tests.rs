//! Who waits is let in in order, and who leaves makes way.

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

/// Counts its wake-ups.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A line of three, with their places and bells.
fn three() -> (Line, Vec<Option<u64>>, Vec<Arc<Bell>>) {
    let mut line = Line::default();
    let bells: Vec<_> = (0..3).map(|_| Arc::<Bell>::default()).collect();
    let mut places = vec![None; 3];
    for (place, bell) in places.iter_mut().zip(&bells) {
        line.wait(place, &Waker::from(Arc::clone(bell)));
    }
    (line, places, bells)
}

fn wake_first(line: &Line) {
    let mut wakes = Vec::new();
    line.wake_first(&mut wakes);
    wakes.into_iter().for_each(Waker::wake);
}

fn rung(bells: &[Arc<Bell>]) -> Vec<usize> {
    let count = |bell: &Arc<Bell>| bell.0.load(Ordering::Relaxed);
    bells.iter().map(count).collect()
}

#[test]
fn only_the_first_is_woken_and_let_in_and_then_the_one_behind() {
    let (mut line, places, bells) = three();
    for turn in 0..3 {
        wake_first(&line);
        let mut expected = vec![1; turn + 1];
        expected.resize(3, 0);
        assert_eq!(rung(&bells), expected);
        let may: Vec<bool> = places[turn..].iter().map(|p| line.is_turn_of(*p)).collect();
        assert!(may[0] && may[1..].iter().all(|may| !may));
        assert!(!line.is_turn_of(None), "who comes late waits too");
        line.leave(places[turn].unwrap());
    }
    assert!(line.is_empty() && line.is_turn_of(None));
}

#[test]
fn who_stops_waiting_gives_its_turn_to_the_next() {
    let (mut line, places, bells) = three();
    line.leave(places[0].unwrap());
    wake_first(&line);
    assert_eq!(rung(&bells), [0, 1, 0]);
    assert!(line.is_turn_of(places[1]));
}

#[test]
fn who_asks_again_keeps_its_place() {
    let (mut line, mut places, bells) = three();
    let another = Arc::<Bell>::default();
    line.wait(&mut places[0], &Waker::from(Arc::clone(&another)));
    wake_first(&line);
    assert_eq!((rung(&bells), rung(&[another])), (vec![0, 0, 0], vec![1]));
}
