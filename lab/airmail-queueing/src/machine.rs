//! A system at work in virtual time: messages go in with their tickets, and come out when they are
//! acknowledged.
//!
//! Time is in nanoseconds from 0. Ties between equal times are broken by the order of arrival
//! alone, so a seed gives one run.

use crate::service::Service;
use crate::system::{Halving, Servers, System};
use airmail_flow::Ticket;
use rand::rngs::SmallRng;
use std::collections::VecDeque;

const NANOS_PER_US: f64 = 1_000.0;

/// The system with the messages in it.
#[derive(Debug)]
pub(crate) struct Machine {
    system: System,
    /// 1: as described; 0.5: half of it.
    capacity: f64,
    random: SmallRng,
    waiting: VecDeque<Ticket>,
    /// Tickets that are being served, each with its end; all of a commit have the same.
    serving: Vec<(u64, Ticket)>,
    /// The earliest of these times.
    next_served: Option<u64>,
    /// Served, and on the way back.
    returning: VecDeque<(u64, Ticket)>,
}

impl Machine {
    pub(crate) fn new(system: System, random: SmallRng) -> Machine {
        Machine {
            system,
            capacity: 1.0,
            random,
            waiting: VecDeque::new(),
            serving: Vec::new(),
            next_served: None,
            returning: VecDeque::new(),
        }
    }

    /// Changes the capacity; messages being served end as planned.
    pub(crate) fn set_capacity(&mut self, capacity: f64) {
        self.capacity = capacity;
    }

    /// Takes a message in.
    pub(crate) fn arrive(&mut self, ticket: Ticket) {
        self.waiting.push_back(ticket);
    }

    /// Begins to serve the messages that can be served now; to be called when all that arrives now has arrived.
    pub(crate) fn serve(&mut self, now: u64) {
        let places = self.places();
        while !self.waiting.is_empty() && self.serving.len() < places {
            let count = match self.system.servers {
                Servers::Queue { .. } => 1,
                Servers::Commits { .. } => self.waiting.len(),
            };
            let until = now + self.service_ns(count);
            let next = self.next_served.map_or(until, |next| next.min(until));
            self.next_served = Some(next);
            let tickets = self.waiting.drain(..count);
            self.serving.extend(tickets.map(|ticket| (until, ticket)));
        }
    }

    /// When the next message comes out or the next server is free.
    pub(crate) fn next(&self) -> Option<u64> {
        let returned = self.returning.front().map(|(at, _)| *at);
        match (self.next_served, returned) {
            (Some(served), Some(returned)) => Some(served.min(returned)),
            (served, returned) => served.or(returned),
        }
    }

    /// Takes the ticket that comes out now, if any does; lets servers become free up to now.
    pub(crate) fn depart(&mut self, now: u64) -> Option<Ticket> {
        if self.next_served.is_some_and(|next| next <= now) {
            let way = u64::from(self.system.round_trip_us) * 1_000;
            let mut place = 0;
            while place < self.serving.len() {
                if self.serving[place].0 <= now {
                    let (until, ticket) = self.serving.swap_remove(place);
                    self.returning.push_back((until + way, ticket));
                } else {
                    place += 1;
                }
            }
            self.next_served = self.serving.iter().map(|(until, _)| *until).min();
        }
        let (_, ticket) = self.returning.pop_front_if(|(at, _)| *at <= now)?;
        Some(ticket)
    }

    fn places(&self) -> usize {
        match (self.system.servers, self.system.halving) {
            (Servers::Commits { .. }, _) => 1,
            (Servers::Queue { count, .. }, Halving::Speed) => count as usize,
            (Servers::Queue { count, .. }, Halving::Servers) => {
                ((f64::from(count) * self.capacity).round() as usize).max(1)
            }
        }
    }

    fn service_ns(&mut self, messages: usize) -> u64 {
        let full_ns = match self.system.servers {
            Servers::Queue { mean_us, .. } => {
                let draw: Service = self.system.service;
                f64::from(mean_us) * NANOS_PER_US * draw.draw(&mut self.random)
            }
            Servers::Commits {
                commit_us,
                message_ns,
            } => f64::from(commit_us) * NANOS_PER_US + f64::from(message_ns) * messages as f64,
        };
        let speed = match self.system.halving {
            Halving::Speed => self.capacity,
            Halving::Servers => 1.0,
        };
        ((full_ns / speed).round() as u64).max(1)
    }
}
