//! Memory of wants at a far end, by the resident memory of this process: what a topic costs that one reader wants,
//! and what each further reader of it costs.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

use airmail_link::{FromHost, HostedStorage, LinkLimits, LinkStorage, Port, ToHost, ring};
use airmail_log::conformance::{log, spec};
use airmail_log::memory;
use airmail_log::{
    Call, Completion, LogStorage, ReaderId, Scope, ScopeFilter, Tag, Waker, WantEdit,
};
use airmail_model::{Mono, Now, Sequence, TopicHash, Wall, random};
use std::sync::Arc;

const TOPICS: u64 = 1_000_000;
const EDIT_TOPICS: u64 = 4_096;
const GUESTS: usize = 4;

type Near = LinkStorage<Box<dyn Port<Out = ToHost, In = FromHost>>>;

fn hash(number: u64) -> TopicHash {
    let (high, low) = (random::nth(number, 1), random::nth(number, 2));
    TopicHash(u128::from(high) << 64 | u128::from(low))
}

/// Resident memory of this process, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    kib.unwrap().parse::<u64>().unwrap() * 1024
}

struct Links<S> {
    host: HostedStorage<S>,
    guests: Vec<Near>,
    now: Now,
}

impl<S: LogStorage> Links<S> {
    /// Polls everything until `guest` is told of something that `is_it`.
    fn until(&mut self, guest: usize, is_it: impl Fn(&Completion) -> bool) {
        for _ in 0..1_000_000 {
            self.now.mono.0 += 1_000;
            self.host.poll(self.now, &mut Vec::new());
            let mut told = Vec::new();
            for (place, near) in self.guests.iter_mut().enumerate() {
                let mut out = Vec::new();
                near.poll(self.now, &mut out);
                if place == guest {
                    told = out;
                }
            }
            if told.iter().any(&is_it) {
                return;
            }
        }
        panic!("guest {guest} waits for ever");
    }

    /// A guest's reader wants all topics.
    fn want_all(&mut self, guest: usize) {
        let r = ReaderId(1);
        let filter = ScopeFilter::Wanted;
        self.guests[guest].submit(Call::Read {
            r,
            log: log(0),
            from: Sequence::FIRST,
            scope: Box::new(Scope {
                filter,
                ..Scope::default()
            }),
            credit: 1_000,
        });
        let firsts = (0..TOPICS).step_by(EDIT_TOPICS as usize);
        for (edit, first) in (1..).zip(firsts) {
            let add = (first..TOPICS.min(first + EDIT_TOPICS)).map(hash).collect();
            let topics = Box::new(WantEdit {
                add,
                ..WantEdit::default()
            });
            self.guests[guest].submit(Call::Want { r, edit, topics });
            self.until(guest, |told| {
                matches!(told, Completion::Effective { edit: of, at: Some(_), .. } if *of == edit)
            });
        }
    }
}

#[test]
fn a_topic_that_is_wanted_costs_40_bytes_and_2_for_each_further_reader() {
    let now = Now {
        mono: Mono(1_000_000_000),
        wall: Wall(1_790_000_000_000_000),
    };
    let limits = LinkLimits {
        wants: 1 << 30,
        ..LinkLimits::default()
    };
    let mut host = HostedStorage::new(memory::open(1, now).unwrap(), limits);
    let waker: Waker = Arc::new(|| {});
    let guests = (0..GUESTS).map(|_| {
        let (ours, theirs) = ring(limits.ring_slots, Arc::clone(&waker), Arc::clone(&waker));
        host.add_port(Box::new(theirs));
        let ours: Box<dyn Port<Out = ToHost, In = FromHost>> = Box::new(ours);
        LinkStorage::new(ours, host.capabilities(), limits)
    });
    let guests = guests.collect();
    let mut links = Links { host, guests, now };
    let spec = Box::new(spec(links.host.capabilities().strongest));
    links.guests[0].submit(Call::Open {
        t: Tag(1),
        log: log(0),
        spec,
    });
    links.until(0, |told| matches!(told, Completion::Opened { .. }));
    let mut before = resident();
    for guest in 0..GUESTS {
        links.want_all(guest);
        let now = resident();
        let bytes = now.saturating_sub(before) as f64 / TOPICS as f64;
        println!("reader {guest}: {bytes:.1} bytes a topic");
        let most = if guest == 0 { 40.0 } else { 2.0 };
        assert!(bytes <= most, "reader {guest}: {bytes:.1} bytes a topic");
        before = now;
    }
}
