//! The semaphore against a model that is a list of numbers.

use airmail_flow::{Entry, Key, LaneTurns, Semaphore, Ticket};
use airmail_model::{Lane, Mono};
use proptest::prelude::*;
use std::collections::VecDeque;

const NOW: Mono = Mono(7);

#[derive(Clone, Debug)]
enum Step {
    Enter(Lane, u64),
    TryEnter(Lane, u64),
    /// Hands back one of the tickets, by its place.
    Leave(usize),
    /// Takes out one of those who wait, by its place.
    Withdraw(usize),
    Resize(u64),
}

fn lane() -> impl Strategy<Value = Lane> {
    prop_oneof![3 => Just(Lane::Normal), 1 => Just(Lane::High)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (lane(), 0u64..12).prop_map(|(lane, messages)| Step::Enter(lane, messages)),
        1 => (lane(), 0u64..12).prop_map(|(lane, messages)| Step::TryEnter(lane, messages)),
        4 => any::<usize>().prop_map(Step::Leave),
        1 => any::<usize>().prop_map(Step::Withdraw),
        2 => (0u64..20).prop_map(Step::Resize),
    ]
}

/// A model of the semaphore: units in flight and waiters, by name and size.
#[derive(Debug, Default)]
struct Model {
    bound: u64,
    flying: Vec<(usize, u64)>,
    /// By lane.
    waiting: [VecDeque<(usize, u64)>; 2],
    turns: LaneTurns,
}

impl Model {
    fn in_flight(&self) -> u64 {
        self.flying.iter().map(|(_, messages)| messages).sum()
    }

    fn fits(&self, messages: u64) -> bool {
        self.in_flight() == 0 || self.in_flight() + messages <= self.bound
    }

    fn waits(&self) -> [bool; 2] {
        [0, 1].map(|lane| !self.waiting[lane].is_empty())
    }

    /// Whether one who comes goes at once: nobody of its lane waits, it is its lane's turn, and it fits.
    fn goes(&self, lane: Lane, messages: u64) -> bool {
        let mut waits = self.waits();
        waits[lane as usize] = true;
        let is_turn = self.turns.next(waits) == Some(lane);
        is_turn && self.waiting[lane as usize].is_empty() && self.fits(messages)
    }

    fn let_in(&mut self, lane: Lane, one: (usize, u64)) {
        let other_waits = self.waits()[lane.other() as usize];
        self.turns.took(lane, one.1, other_waits);
        self.flying.push(one);
    }

    /// The one whose turn it is, of those who wait.
    fn next(&self) -> Option<(Lane, (usize, u64))> {
        let lane = self.turns.next(self.waits())?;
        Some((lane, self.waiting[lane as usize][0]))
    }

    /// Lets those who wait in by turns as far as they fit, and gives those, in order.
    fn advance(&mut self) -> Vec<(usize, u64)> {
        let mut gone = Vec::new();
        while let Some((lane, one)) = self.next().filter(|(_, one)| self.fits(one.1)) {
            self.waiting[lane as usize].pop_front();
            self.let_in(lane, one);
            gone.push(one);
        }
        gone
    }
}

/// Semaphore and model side by side.
struct Both {
    semaphore: Semaphore<usize>,
    model: Model,
    tickets: Vec<(usize, Ticket)>,
    keys: Vec<(usize, Key)>,
    next: usize,
}

impl Both {
    fn new(bound: u64) -> Both {
        Both {
            semaphore: Semaphore::new(bound),
            model: Model {
                bound,
                ..Model::default()
            },
            tickets: Vec::new(),
            keys: Vec::new(),
            next: 0,
        }
    }

    fn step(&mut self, step: &Step) {
        let mut admitted: Vec<(usize, Ticket)> = Vec::new();
        match step {
            Step::Enter(lane, messages) => self.enter(*lane, *messages),
            Step::TryEnter(lane, messages) => self.try_enter(*lane, *messages),
            Step::Leave(place) if !self.tickets.is_empty() => {
                let (who, ticket) = self.tickets.remove(place % self.tickets.len());
                self.semaphore.leave(NOW, ticket, &mut admitted);
                self.model.flying.retain(|(name, _)| *name != who);
            }
            Step::Withdraw(place) if !self.keys.is_empty() => {
                let (who, key) = self.keys[place % self.keys.len()];
                let mut waiting = self.model.waiting.iter().flatten();
                let waits = waiting.any(|(name, _)| *name == who);
                let out = self.semaphore.withdraw(NOW, key, &mut admitted);
                assert_eq!(out, waits.then_some(who));
                for line in &mut self.model.waiting {
                    line.retain(|(name, _)| *name != who);
                }
            }
            Step::Resize(bound) => {
                self.semaphore.resize(NOW, *bound, &mut admitted);
                self.model.bound = *bound;
            }
            Step::Leave(_) | Step::Withdraw(_) => {}
        }
        let expected = self.model.advance();
        let names = admitted
            .iter()
            .map(|(who, ticket)| (*who, ticket.messages()));
        assert_eq!(names.collect::<Vec<_>>(), expected);
        self.tickets.extend(admitted);
        self.check();
    }

    fn enter(&mut self, lane: Lane, messages: u64) {
        let who = self.next;
        self.next += 1;
        let goes = self.model.goes(lane, messages);
        match self.semaphore.enter(NOW, lane, messages, who) {
            Entry::Go(ticket) => {
                assert!(goes);
                self.tickets.push((who, ticket));
                self.model.let_in(lane, (who, messages));
            }
            Entry::Waits(key) => {
                assert!(!goes);
                self.keys.push((who, key));
                self.model.waiting[lane as usize].push_back((who, messages));
            }
        }
    }

    fn try_enter(&mut self, lane: Lane, messages: u64) {
        let who = self.next;
        self.next += 1;
        let goes = self.model.goes(lane, messages);
        let ticket = self.semaphore.try_enter(NOW, lane, messages);
        assert_eq!(ticket.is_some(), goes);
        if let Some(ticket) = ticket {
            self.tickets.push((who, ticket));
            self.model.let_in(lane, (who, messages));
        }
    }

    fn check(&self) {
        let waiting = &self.model.waiting;
        assert_eq!(self.semaphore.in_flight(), self.model.in_flight());
        assert_eq!(self.semaphore.waiters(), waiting.iter().flatten().count());
        for lane in Lane::ALL {
            let messages = waiting[lane as usize].iter().map(|(_, messages)| messages);
            assert_eq!(
                self.semaphore.waiting_messages_of(lane),
                messages.sum::<u64>()
            );
        }
        // Nobody is stranded: whoever has the next turn does not fit.
        if let Some((_, (_, messages))) = self.model.next() {
            assert!(!self.model.fits(messages));
        }
    }
}

proptest! {
    #[test]
    fn it_admits_whom_the_model_admits_and_strands_nobody(
        bound in 0u64..20,
        steps in prop::collection::vec(step(), 0..200),
    ) {
        let mut both = Both::new(bound);
        for step in &steps {
            both.step(step);
        }
    }

    /// The paper's semaphores count side by side for a while; here what was admitted after a
    /// change, together with all that still flies, never goes above the new bound.
    #[test]
    fn two_bounds_are_never_live_at_once(
        bounds in prop::collection::vec(1u64..30, 1..20),
        steps in prop::collection::vec(any::<usize>(), 0..200),
    ) {
        let mut semaphore = Semaphore::new(bounds[0]);
        let mut tickets: Vec<Ticket> = Vec::new();
        for (index, step) in steps.iter().enumerate() {
            let before = semaphore.in_flight();
            let mut admitted: Vec<((), Ticket)> = Vec::new();
            match step % 3 {
                0 => semaphore.resize(NOW, bounds[index % bounds.len()], &mut admitted),
                1 if !tickets.is_empty() => {
                    let ticket = tickets.swap_remove(step % tickets.len());
                    semaphore.leave(NOW, ticket, &mut admitted);
                }
                _ => {
                    if let Entry::Go(ticket) = semaphore.enter(NOW, Lane::Normal, 1, ()) {
                        tickets.push(ticket);
                    }
                }
            }
            tickets.extend(admitted.into_iter().map(|(_, ticket)| ticket));
            let now = semaphore.in_flight();
            prop_assert!(now <= before || now <= semaphore.bound());
        }
    }

    /// However bound and sizes are, everyone gets a turn as long as tickets come back.
    #[test]
    fn everyone_who_waits_gets_a_turn(
        bound in 0u64..10,
        sizes in prop::collection::vec(0u64..30, 1..100),
    ) {
        let mut semaphore = Semaphore::new(bound);
        let mut flying: VecDeque<(usize, Ticket)> = VecDeque::new();
        let mut turns = Vec::new();
        for (who, messages) in sizes.iter().enumerate() {
            if let Entry::Go(ticket) = semaphore.enter(NOW, Lane::Normal, *messages, who) {
                flying.push_back((who, ticket));
            }
        }
        while let Some((who, ticket)) = flying.pop_front() {
            turns.push(who);
            semaphore.leave(NOW, ticket, &mut flying);
        }
        prop_assert_eq!(turns, (0..sizes.len()).collect::<Vec<_>>(), "in the order of asking");
        prop_assert_eq!(semaphore.in_flight(), 0);
    }
}

#[test]
fn what_is_larger_than_the_bound_goes_alone() {
    let mut semaphore = Semaphore::new(10);
    let mut admitted: Vec<(&str, Ticket)> = Vec::new();
    let small = semaphore.try_enter(NOW, Lane::Normal, 1).unwrap();
    assert!(matches!(
        semaphore.enter(NOW, Lane::Normal, 99, "large"),
        Entry::Waits(_)
    ));
    assert!(matches!(
        semaphore.enter(NOW, Lane::Normal, 1, "behind"),
        Entry::Waits(_)
    ));
    semaphore.leave(NOW, small, &mut admitted);
    let (who, large) = admitted.pop().unwrap();
    assert_eq!((who, semaphore.in_flight()), ("large", 99));
    semaphore.leave(NOW, large, &mut admitted);
    assert_eq!(admitted.pop().unwrap().0, "behind");
}

#[test]
fn lane_high_goes_before_lane_normal_which_gets_a_quarter() {
    let mut semaphore = Semaphore::new(1);
    let mut flying =
        VecDeque::from([("first", semaphore.try_enter(NOW, Lane::Normal, 1).unwrap())]);
    for _ in 0..9 {
        for (lane, who) in [(Lane::Normal, "normal"), (Lane::High, "high")] {
            assert!(matches!(
                semaphore.enter(NOW, lane, 1, who),
                Entry::Waits(_)
            ));
        }
    }
    let mut turns = Vec::new();
    while let Some((who, ticket)) = flying.pop_front() {
        turns.push(who);
        semaphore.leave(NOW, ticket, &mut flying);
    }
    let normal = |of: &[&str]| of.iter().filter(|who| **who == "normal").count();
    assert_eq!(turns[1], "high");
    assert_eq!((normal(&turns[1..9]), normal(&turns[1..])), (2, 9));
    assert_eq!(&turns[13..], ["normal"; 6], "nobody of lane high is left");
}
