use super::super::sample_delivery::delivery_in;
use super::*;
use airmail_model::frame::{Generation, Places, State, SubscriptionId};
use airmail_model::position::LogPosition;
use airmail_model::{Incarnation, LogId, Mono, Sequence};
use proptest::prelude::*;

fn log(lane: Lane) -> LogId {
    LogId {
        lane,
        ..LogId::SYSTEM
    }
}

fn delivery(lane: Lane, number: u64, bytes: usize) -> Event {
    delivery_in(log(lane), number, bytes)
}

/// A barrier of a number.
fn barrier(number: u64) -> Event {
    Event::Reply(Reply::Clock {
        asked: Mono(number),
        node: Mono(0),
    })
}

fn mark(lane: Lane, previous: u64, next: u64) -> Event {
    Event::Reply(Reply::Mark {
        log: log(lane),
        previous: Sequence(previous),
        next: Sequence(next),
    })
}

fn status(state: State) -> Event {
    Event::Reply(Reply::Status {
        subscription: SubscriptionId(0),
        generation: Generation(1),
        state,
    })
}

fn place(lane: Lane) -> LogPosition {
    LogPosition {
        log: log(lane),
        incarnation: Incarnation(1),
        next: Sequence(1),
    }
}

fn detached(lane: Lane, beside: Option<Lane>) -> State {
    State::Detached {
        log: log(lane),
        incarnation: Incarnation(1),
        next: Sequence(1),
        resumed: false,
        lost_before: None,
        beside: beside.map(place),
    }
}

/// The lane and number of a delivery or a mark, or the number of a barrier.
fn told(event: &Event) -> (Option<Lane>, u64) {
    match event {
        Event::Reply(Reply::Delivery(delivery)) => (Some(delivery.log.lane), delivery.last.0),
        Event::Reply(Reply::Mark { log, next, .. }) => (Some(log.lane), next.0),
        Event::Reply(Reply::Clock { asked, .. }) => (None, asked.0),
        Event::Reply(Reply::Status { state, .. }) => (state.lane(), 0),
        other => panic!("{other:?}"),
    }
}

fn drain(queue: &mut LaneQueue) -> Vec<(Option<Lane>, u64)> {
    std::iter::from_fn(|| queue.pop())
        .map(|event| told(&event))
        .collect()
}

const NORMAL: Option<Lane> = Some(Lane::Normal);
const HIGH: Option<Lane> = Some(Lane::High);

#[test]
fn lane_high_goes_before_what_came_earlier_and_normal_has_a_quarter() {
    let mut queue = LaneQueue::default();
    for number in 0..40 {
        queue.push(delivery(Lane::Normal, number, 1_000));
    }
    for number in 0..40 {
        queue.push(delivery(Lane::High, number, 1_000));
    }
    let gone = drain(&mut queue);
    assert_eq!(gone[0], (HIGH, 0));
    let normal = gone[..40].iter().filter(|(lane, _)| *lane == NORMAL);
    assert_eq!(normal.count(), 10);
    assert_eq!((queue.len(), queue.bytes()), (0, 0));
}

#[test]
fn a_barrier_is_passed_by_neither_lane_and_passes_none() {
    let mut queue = LaneQueue::default();
    queue.push(delivery(Lane::Normal, 1, 10));
    queue.push(barrier(1));
    queue.push(delivery(Lane::Normal, 2, 10));
    queue.push(delivery(Lane::High, 1, 10));
    queue.push(barrier(2));
    queue.push(barrier(3));
    queue.push(delivery(Lane::High, 2, 10));
    let gone = drain(&mut queue);
    let expected = [
        (NORMAL, 1),
        (None, 1),
        (HIGH, 1),
        (NORMAL, 2),
        (None, 2),
        (None, 3),
        (HIGH, 2),
    ];
    assert_eq!(gone, expected);
}

#[test]
fn a_status_of_one_lane_waits_in_it_and_one_of_both_or_of_the_whole_is_a_barrier() {
    let both = Places::from_iter(Lane::ALL.map(place));
    let error = || airmail_model::Error::unimplemented("x");
    for state in [
        State::Live {
            places: both.clone(),
        },
        detached(Lane::High, Some(Lane::Normal)),
        State::Complete {
            places: Places::from_iter([place(Lane::High)]),
        },
        State::Changed {
            places: Places::from_iter([place(Lane::High)]),
        },
        State::Unchanged(error()),
        State::Removed,
        State::Failed(error()),
    ] {
        assert!(is_barrier(&status(state.clone())), "{state:?}");
    }
    for lane in Lane::ALL {
        for state in [State::live(place(lane)), detached(lane, None)] {
            assert_eq!(lane_of(&status(state)), Some(lane));
        }
    }
    let mut queue = LaneQueue::default();
    queue.push(delivery(Lane::Normal, 1, 10));
    queue.push(status(State::live(place(Lane::High))));
    assert_eq!(drain(&mut queue), [(HIGH, 0), (NORMAL, 1)]);
}

#[test]
fn marks_of_a_lane_are_joined_across_the_other_and_never_across_a_barrier() {
    let mut queue = LaneQueue::default();
    for (previous, next) in [(0, 5), (4, 9)] {
        for lane in Lane::ALL {
            queue.push(mark(lane, previous, next));
        }
    }
    assert_eq!(queue.len(), 2);
    queue.push(barrier(1));
    for lane in Lane::ALL {
        queue.push(mark(lane, 8, 12));
    }
    let expected = [(HIGH, 9), (NORMAL, 9), (None, 1), (HIGH, 12), (NORMAL, 12)];
    assert_eq!(drain(&mut queue), expected);
}

#[test]
fn what_waits_is_taken_whole_until_there_is_lane_high_and_by_turns_from_then_on() {
    let mut queue = LaneQueue::default();
    let mut taken = VecDeque::new();
    let fill = |queue: &mut LaneQueue| {
        (0..40).for_each(|number| queue.push(delivery(Lane::Normal, number, 10_000)));
    };
    fill(&mut queue);
    queue.take(&mut taken);
    assert_eq!((taken.len(), queue.len(), queue.bytes()), (40, 0, 0));
    taken.clear();
    fill(&mut queue);
    queue.push(delivery(Lane::High, 1, 10));
    queue.take(&mut taken);
    assert_eq!(told(&taken[0]), (HIGH, 1));
    assert!((10..20).contains(&taken.len()), "{}", taken.len());
    assert_eq!(queue.len() + taken.len(), 41);
}

#[test]
fn what_is_put_back_goes_first_again_behind_lane_high() {
    let mut queue = LaneQueue::default();
    queue.push(delivery(Lane::Normal, 1, 10));
    queue.push(barrier(1));
    queue.push(delivery(Lane::Normal, 2, 10));
    let mut taken = VecDeque::new();
    queue.take(&mut taken);
    queue.push(delivery(Lane::High, 1, 10));
    queue.push(delivery(Lane::Normal, 3, 10));
    queue.put_back(&mut taken);
    let expected = [(NORMAL, 1), (None, 1), (HIGH, 1), (NORMAL, 2), (NORMAL, 3)];
    assert_eq!(drain(&mut queue), expected);
    assert_eq!((taken.len(), queue.bytes()), (0, 0));
}

/// A step of a run: an event comes, some go, or some are taken and put back.
#[derive(Clone, Copy, Debug)]
enum Step {
    Comes(Option<Lane>, usize),
    Go(usize),
    Taken { all: bool, gone: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let comes = (0..7_u8, 0..3_000_usize).prop_map(|(of, bytes)| match of {
        0 => Step::Comes(None, 0),
        1..4 => Step::Comes(HIGH, bytes),
        _ => Step::Comes(NORMAL, bytes),
    });
    let go = (0..4_usize).prop_map(Step::Go);
    let taken = (any::<bool>(), 0..6_usize).prop_map(|(all, gone)| Step::Taken { all, gone });
    prop::collection::vec(prop_oneof![6 => comes, 2 => go, 1 => taken], 1..80)
}

/// A queue beside its model: for each lane, what waits in order, each with the barriers before it; and how many barriers
/// have come and gone.
#[derive(Default)]
struct Modelled {
    queue: LaneQueue,
    lanes: [VecDeque<(u64, u64)>; 2],
    come: u64,
    gone: u64,
    last: u64,
}

impl Modelled {
    fn comes(&mut self, lane: Option<Lane>, bytes: usize) {
        self.last += 1;
        match lane {
            Some(lane) => {
                self.lanes[lane as usize].push_back((self.come, self.last));
                self.queue.push(delivery(lane, self.last, bytes));
            }
            None => {
                self.come += 1;
                self.queue.push(barrier(self.come));
            }
        }
    }

    /// Lanes that have something that may go before the next barrier.
    fn waiting(&self) -> [bool; 2] {
        let may_go =
            |lane: &VecDeque<(u64, u64)>| lane.front().is_some_and(|(at, _)| *at == self.gone);
        [may_go(&self.lanes[0]), may_go(&self.lanes[1])]
    }

    /// An event has left; it is the first of its lane, or a barrier behind all that came before it.
    fn left(&mut self, event: &Event) {
        match told(event) {
            (Some(lane), number) => {
                let first = self.lanes[lane as usize].pop_front();
                assert_eq!(first, Some((self.gone, number)));
            }
            (None, number) => {
                assert_eq!(self.waiting(), [false, false]);
                self.gone += 1;
                assert_eq!(number, self.gone);
            }
        }
    }

    fn taken(&mut self, all: bool, gone: usize) {
        let mut taken = VecDeque::new();
        self.queue.take(&mut taken);
        let gone = if all { taken.len() } else { gone };
        for event in taken.drain(..gone.min(taken.len())) {
            self.left(&event);
        }
        self.queue.put_back(&mut taken);
    }

    fn drain(&mut self) {
        while let Some(event) = self.queue.pop() {
            self.left(&event);
        }
        assert_eq!((self.waiting(), self.gone), ([false, false], self.come));
        assert_eq!((self.queue.len(), self.queue.bytes()), (0, 0));
    }
}

proptest! {
    #[test]
    fn each_lane_leaves_in_order_and_nothing_passes_a_barrier(steps in steps()) {
        let mut modelled = Modelled::default();
        for step in steps {
            match step {
                Step::Comes(lane, bytes) => modelled.comes(lane, bytes),
                Step::Go(events) => {
                    for _ in 0..events {
                        let Some(event) = modelled.queue.pop() else { break };
                        modelled.left(&event);
                    }
                }
                Step::Taken { all, gone } => modelled.taken(all, gone),
            }
        }
        modelled.drain();
    }

    #[test]
    fn over_any_run_while_both_wait_each_has_its_share_less_one_event(
        sizes in prop::collection::vec((0..3_000_usize, any::<bool>()), 1..80),
    ) {
        let mut modelled = Modelled::default();
        for (bytes, high) in sizes {
            modelled.comes(if high { HIGH } else { NORMAL }, bytes);
        }
        let mut run = Vec::new();
        while modelled.waiting() == [true, true] {
            let event = modelled.queue.pop().expect("it waits");
            modelled.left(&event);
            run.push((told(&event).0 == HIGH, weight_of(&event)));
        }
        let largest = run.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
        for from in 0..run.len() {
            let [mut normal, mut high] = [0, 0];
            for (is_high, bytes) in &run[from..] {
                *(if *is_high { &mut high } else { &mut normal }) += bytes;
                prop_assert!(4 * (normal + largest) >= normal + high);
                prop_assert!(4 * (high + largest) >= 3 * (normal + high));
            }
        }
    }

    #[test]
    fn a_stream_without_lane_high_is_taken_as_it_came(sizes in prop::collection::vec(0..100_usize, 1..40)) {
        let mut queue = LaneQueue::default();
        let mut taken = VecDeque::new();
        for (number, bytes) in (0..).zip(&sizes) {
            queue.push(if *bytes < 10 { barrier(number) } else { delivery(Lane::Normal, number, *bytes) });
        }
        let room = queue.main.capacity();
        queue.take(&mut taken);
        prop_assert!(taken.iter().map(|event| told(event).1).eq(0..sizes.len() as u64));
        prop_assert_eq!((taken.capacity(), queue.main.capacity()), (room, 0));
    }
}
