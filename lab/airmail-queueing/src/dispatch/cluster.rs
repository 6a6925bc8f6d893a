//! Dispatchers and queues in virtual time.

use super::{Policy, Setting, Waits};
use crate::service::exponential;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::VecDeque;

/// Jobs before the first that counts, as a share of those that do.
const WARM_UP_SHARE: usize = 5;

/// A run.
#[derive(Debug)]
pub(super) struct Cluster {
    setting: Setting,
    random: SmallRng,
    now: f64,
    queues: Vec<Queue>,
    dispatchers: Vec<Dispatcher>,
    messages: u64,
    waits: Vec<f64>,
}

/// Jobs in their order, the first being served.
#[derive(Debug, Default)]
struct Queue {
    /// When each arrived at its dispatcher.
    jobs: VecDeque<f64>,
    /// When the first is done.
    done: Option<f64>,
}

#[derive(Debug, Default)]
struct Dispatcher {
    turn: usize,
    /// Lengths as last told, and the own jobs since.
    lengths: Vec<usize>,
    next_update: Option<f64>,
    /// Queues that said they were idle, in that order.
    idle: VecDeque<usize>,
    /// Jobs held until a queue is idle.
    held: VecDeque<f64>,
}

impl Cluster {
    pub(super) fn new(setting: Setting, seed: u64) -> Cluster {
        let mut random = SmallRng::seed_from_u64(seed);
        let queues = setting.queues;
        let count = setting.dispatchers;
        let dispatchers = (0..count)
            .map(|index| Dispatcher {
                turn: random.random_range(0..queues),
                lengths: vec![0; queues],
                // Not all at the same time.
                next_update: setting
                    .policy
                    .update_period()
                    .map(|period| period * (index + 1) as f64 / count as f64),
                idle: idle_at_first(setting.policy, index, count, queues),
                held: VecDeque::new(),
            })
            .collect();
        Cluster {
            setting,
            random,
            now: 0.0,
            queues: (0..queues).map(|_| Queue::default()).collect(),
            dispatchers,
            messages: 0,
            waits: Vec::new(),
        }
    }

    pub(super) fn run(mut self, jobs: usize) -> Waits {
        let warm_up = jobs / WARM_UP_SHARE;
        let rate = self.setting.load * self.setting.queues as f64;
        self.waits.reserve(jobs + warm_up);
        let mut next_job = 0.0;
        let mut messages_before = 0;
        for job in 0..jobs + warm_up {
            if job == warm_up {
                messages_before = self.messages;
            }
            next_job += exponential(&mut self.random) / rate;
            self.advance(next_job);
            let dispatcher = self.random.random_range(0..self.dispatchers.len());
            self.dispatch(dispatcher);
        }
        // Those still waiting at the end are left out: few, and no matter who they are.
        let counted = &mut self.waits[warm_up.min(jobs)..];
        let mean = counted.iter().sum::<f64>() / counted.len() as f64;
        counted.sort_by(f64::total_cmp);
        Waits {
            mean,
            p99: counted[(counted.len() - 1) * 99 / 100],
            messages_per_job: (self.messages - messages_before) as f64 / jobs as f64,
        }
    }

    /// Lets everything happen that is due before `until`, in its order.
    fn advance(&mut self, until: f64) {
        loop {
            let done = earliest(self.queues.iter().map(|queue| queue.done));
            let update = earliest(self.dispatchers.iter().map(|one| one.next_update));
            match (done, update) {
                (Some((queue, at)), other)
                    if at <= until && other.is_none_or(|(_, update)| at <= update) =>
                {
                    self.now = at;
                    self.finish(queue);
                }
                (_, Some((dispatcher, at))) if at <= until => {
                    self.now = at;
                    self.update(dispatcher);
                }
                _ => break,
            }
        }
        self.now = until;
    }

    fn finish(&mut self, queue: usize) {
        self.queues[queue].jobs.pop_front();
        self.queues[queue].done = None;
        self.start(queue);
        if self.queues[queue].done.is_some() {
            return;
        }
        match self.setting.policy {
            Policy::IdleQueue => self.tell_all(queue),
            Policy::IdleQueueOrRandom => {
                let one = self.random.random_range(0..self.dispatchers.len());
                self.messages += 1;
                self.dispatchers[one].idle.push_back(queue);
            }
            _ => {}
        }
    }

    /// Every dispatcher hears that the queue is idle, and believes it, whatever the others do.
    fn tell_all(&mut self, queue: usize) {
        let first = self.random.random_range(0..self.dispatchers.len());
        for offset in 0..self.dispatchers.len() {
            let index = (first + offset) % self.dispatchers.len();
            self.messages += 1;
            match self.dispatchers[index].held.pop_front() {
                Some(arrived) => self.join(queue, arrived),
                None => {
                    let idle = &mut self.dispatchers[index].idle;
                    // It may not have used what it was told before.
                    if !idle.contains(&queue) {
                        idle.push_back(queue);
                    }
                }
            }
        }
    }

    fn update(&mut self, dispatcher: usize) {
        let one = &mut self.dispatchers[dispatcher];
        for (length, queue) in one.lengths.iter_mut().zip(&self.queues) {
            *length = queue.jobs.len();
        }
        self.messages += 2 * self.queues.len() as u64;
        let period = self.setting.policy.update_period();
        one.next_update = one.next_update.zip(period).map(|(at, period)| at + period);
    }

    fn dispatch(&mut self, dispatcher: usize) {
        let all = self.queues.len();
        let queue = match self.setting.policy {
            Policy::Random => self.random.random_range(0..all),
            Policy::RoundRobin => {
                let one = &mut self.dispatchers[dispatcher];
                one.turn = (one.turn + 1) % all;
                one.turn
            }
            Policy::ShortestQueue => {
                self.messages += 2 * all as u64;
                self.shortest(0..all, |cluster, queue| cluster.queues[queue].jobs.len())
            }
            Policy::ShortestQueueStale { .. } => {
                let told = |cluster: &Cluster, queue: usize| {
                    cluster.dispatchers[dispatcher].lengths[queue]
                };
                let queue = self.shortest(0..all, told);
                self.dispatchers[dispatcher].lengths[queue] += 1;
                queue
            }
            Policy::ShortestOf { d } => {
                self.messages += 2 * d as u64;
                let some = rand::seq::index::sample(&mut self.random, all, d.min(all));
                self.shortest(some.into_iter(), |cluster, queue| {
                    cluster.queues[queue].jobs.len()
                })
            }
            Policy::IdleQueue => match self.dispatchers[dispatcher].idle.pop_front() {
                Some(queue) => queue,
                None => {
                    self.dispatchers[dispatcher].held.push_back(self.now);
                    return;
                }
            },
            Policy::IdleQueueOrRandom => {
                let idle = self.dispatchers[dispatcher].idle.pop_front();
                idle.unwrap_or_else(|| self.random.random_range(0..all))
            }
        };
        self.join(queue, self.now);
    }

    /// The one with the least; any of those that have it.
    fn shortest(
        &mut self,
        among: impl Iterator<Item = usize>,
        length: impl Fn(&Cluster, usize) -> usize,
    ) -> usize {
        let mut best = (usize::MAX, 0);
        let mut equals = 0u32;
        for queue in among {
            let length = length(self, queue);
            if length < best.0 {
                best = (length, queue);
                equals = 1;
            } else if length == best.0 {
                equals += 1;
                if self.random.random_range(0..equals) == 0 {
                    best.1 = queue;
                }
            }
        }
        best.1
    }

    fn join(&mut self, queue: usize, arrived: f64) {
        self.queues[queue].jobs.push_back(arrived);
        if self.queues[queue].done.is_none() {
            self.start(queue);
        }
    }

    fn start(&mut self, queue: usize) {
        let Some(arrived) = self.queues[queue].jobs.front() else {
            return;
        };
        self.waits.push(self.now - arrived);
        self.queues[queue].done = Some(self.now + exponential(&mut self.random));
    }
}

/// Makes every queue idle before the first job, and has it say so.
fn idle_at_first(
    policy: Policy,
    dispatcher: usize,
    dispatchers: usize,
    queues: usize,
) -> VecDeque<usize> {
    match policy {
        Policy::IdleQueue => (0..queues).collect(),
        Policy::IdleQueueOrRandom => (0..queues)
            .filter(|queue| queue % dispatchers == dispatcher)
            .collect(),
        _ => VecDeque::new(),
    }
}

fn earliest(times: impl Iterator<Item = Option<f64>>) -> Option<(usize, f64)> {
    times
        .enumerate()
        .filter_map(|(index, at)| Some((index, at?)))
        .min_by(|(_, one), (_, other)| one.total_cmp(other))
}
