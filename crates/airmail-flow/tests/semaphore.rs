//! The semaphore against a model that is a list of numbers.

use airmail_flow::{Entry, Key, Semaphore, Ticket};
use airmail_model::Mono;
use proptest::prelude::*;
use std::collections::VecDeque;

const NOW: Mono = Mono(7);

#[derive(Clone, Debug)]
enum Step {
    Enter(u64),
    TryEnter(u64),
    /// Hands back one of the tickets, by its place.
    Leave(usize),
    /// Takes out one of those who wait, by its place.
    Withdraw(usize),
    Resize(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0u64..12).prop_map(Step::Enter),
        1 => (0u64..12).prop_map(Step::TryEnter),
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
    waiting: VecDeque<(usize, u64)>,
}

impl Model {
    fn in_flight(&self) -> u64 {
        self.flying.iter().map(|(_, messages)| messages).sum()
    }

    fn fits(&self, messages: u64) -> bool {
        self.in_flight() == 0 || self.in_flight() + messages <= self.bound
    }

    /// Lets the first waiters in as far as they fit, and gives those, in order.
    fn advance(&mut self) -> Vec<(usize, u64)> {
        let mut gone = Vec::new();
        while self
            .waiting
            .front()
            .is_some_and(|(_, messages)| self.fits(*messages))
        {
            gone.extend(self.waiting.pop_front());
            self.flying.extend(gone.last());
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
            Step::Enter(messages) => self.enter(*messages),
            Step::TryEnter(messages) => self.try_enter(*messages),
            Step::Leave(place) if !self.tickets.is_empty() => {
                let (who, ticket) = self.tickets.remove(place % self.tickets.len());
                self.semaphore.leave(NOW, ticket, &mut admitted);
                self.model.flying.retain(|(name, _)| *name != who);
            }
            Step::Withdraw(place) if !self.keys.is_empty() => {
                let (who, key) = self.keys[place % self.keys.len()];
                let waits = self.model.waiting.iter().any(|(name, _)| *name == who);
                let out = self.semaphore.withdraw(NOW, key, &mut admitted);
                assert_eq!(out, waits.then_some(who));
                self.model.waiting.retain(|(name, _)| *name != who);
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

    fn enter(&mut self, messages: u64) {
        let who = self.next;
        self.next += 1;
        let goes = self.model.waiting.is_empty() && self.model.fits(messages);
        match self.semaphore.enter(NOW, messages, who) {
            Entry::Go(ticket) => {
                assert!(goes);
                self.tickets.push((who, ticket));
                self.model.flying.push((who, messages));
            }
            Entry::Waits(key) => {
                assert!(!goes);
                self.keys.push((who, key));
                self.model.waiting.push_back((who, messages));
            }
        }
    }

    fn try_enter(&mut self, messages: u64) {
        let who = self.next;
        self.next += 1;
        let goes = self.model.waiting.is_empty() && self.model.fits(messages);
        let ticket = self.semaphore.try_enter(NOW, messages);
        assert_eq!(ticket.is_some(), goes);
        if let Some(ticket) = ticket {
            self.tickets.push((who, ticket));
            self.model.flying.push((who, messages));
        }
    }

    fn check(&self) {
        let waiting = &self.model.waiting;
        assert_eq!(self.semaphore.in_flight(), self.model.in_flight());
        assert_eq!(self.semaphore.waiters(), waiting.len());
        let messages: u64 = waiting.iter().map(|(_, messages)| messages).sum();
        assert_eq!(self.semaphore.waiting_messages(), messages);
        // Nobody is stranded: whoever is first does not fit.
        if let Some((_, messages)) = waiting.front() {
            assert!(!self.model.fits(*messages));
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
                    if let Entry::Go(ticket) = semaphore.enter(NOW, 1, ()) {
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
            if let Entry::Go(ticket) = semaphore.enter(NOW, *messages, who) {
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
    let small = semaphore.try_enter(NOW, 1).unwrap();
    assert!(matches!(semaphore.enter(NOW, 99, "large"), Entry::Waits(_)));
    assert!(matches!(semaphore.enter(NOW, 1, "behind"), Entry::Waits(_)));
    semaphore.leave(NOW, small, &mut admitted);
    let (who, large) = admitted.pop().unwrap();
    assert_eq!((who, semaphore.in_flight()), ("large", 99));
    semaphore.leave(NOW, large, &mut admitted);
    assert_eq!(admitted.pop().unwrap().0, "behind");
}
