//! Logs of two towers: who serves them when one fails, stands still, or is back.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

mod wire;

use airmail_link::LinkLimits;
use airmail_log::conformance::{Maker, log, spec};
use airmail_log::memory::{self, MemoryStorage};
use airmail_log::{Call, Completion, LogStorage, ReaderId, Scope, ScopeFilter, Tag, WantEdit};
use airmail_model::{Mono, Now, Sequence, TopicName, Wall};
use std::collections::BTreeSet;
use wire::Linked;
use wire::line::Weather;

/// Polls after which something that has not happened never will.
const POLLS_MAX: usize = 20_000;
const READER: ReaderId = ReaderId(7);

/// An owner of the logs of two towers.
struct Owner {
    link: Linked<MemoryStorage>,
    now: Now,
    tags: u64,
    unanswered: BTreeSet<Tag>,
    told: Vec<Completion>,
}

impl Owner {
    fn new(logs: u16, takeover_logs: usize) -> Owner {
        let limits = LinkLimits {
            wants: 1_000,
            ..LinkLimits::default()
        };
        Owner::within(logs, takeover_logs, limits)
    }

    fn within(logs: u16, takeover_logs: usize, limits: LinkLimits) -> Owner {
        let now = Now {
            mono: Mono(1_000_000_000),
            wall: Wall(1_790_000_000_000_000),
        };
        let weather = Weather::calm(1_000);
        let storage = memory::open(1, now).unwrap();
        let mut owner = Owner {
            link: Linked::by_paced_towers(storage, limits, weather, false, takeover_logs),
            now,
            tags: 0,
            unanswered: BTreeSet::new(),
            told: Vec::new(),
        };
        for index in 0..logs {
            let spec = Box::new(spec(owner.link.capabilities().strongest));
            let log = log(index);
            owner.ask(|t| Call::Open { t, log, spec });
        }
        owner.settle();
        owner
    }

    fn ask(&mut self, call: impl FnOnce(Tag) -> Call) {
        self.tags += 1;
        let t = Tag(self.tags);
        self.unanswered.insert(t);
        self.link.submit(call(t));
    }

    fn append(&mut self, index: u16) {
        let batch = Maker::new(log(index)).batch(&[("a", "x")]);
        let map = batch.map_epoch();
        let log = log(index);
        self.ask(|t| Call::Append {
            t,
            log,
            map,
            batch,
            sole: false,
        });
    }

    fn read(&mut self, filter: ScopeFilter) {
        self.read_as(READER, filter);
    }

    fn read_as(&mut self, r: ReaderId, filter: ScopeFilter) {
        self.link.submit(Call::Read {
            r,
            log: log(0),
            from: Sequence::FIRST,
            scope: Box::new(Scope {
                filter,
                ..Scope::default()
            }),
            credit: 1 << 30,
        });
    }

    fn poll(&mut self) {
        let (out, _) = self.link.turn(&mut self.now);
        for completion in out {
            if let Some(t) = completion.tag() {
                let is_refused = matches!(completion, Completion::Refused { .. });
                assert!(!is_refused, "{completion:?}");
                assert!(self.unanswered.remove(&t), "{completion:?}");
            }
            self.told.push(completion);
        }
    }

    fn until(&mut self, what: &str, mut holds: impl FnMut(&Owner) -> bool) {
        for _ in 0..POLLS_MAX {
            if holds(self) {
                return;
            }
            self.poll();
        }
        panic!("{what}");
    }

    /// Lets everything be answered, and both towers be level.
    fn settle(&mut self) {
        self.until("answers", |owner| owner.unanswered.is_empty());
        (0..300).for_each(|_| self.poll());
    }

    /// Wants a topic of the reader, by an edit of this number.
    fn want(&mut self, edit: u32) {
        self.want_as(READER, edit);
    }

    fn want_as(&mut self, r: ReaderId, edit: u32) {
        let topics = Box::new(WantEdit {
            add: vec![TopicName::hash_of(log(0).namespace, "a")],
            ..WantEdit::default()
        });
        self.link.submit(Call::Want { r, edit, topics });
    }

    fn given(&self) -> usize {
        let batches = self
            .told
            .iter()
            .filter(|told| matches!(told, Completion::Batch { .. }));
        batches.count()
    }
}

#[test]
fn a_tower_that_stands_still_is_left_for_one_that_serves_and_taken_again_when_it_does() {
    let mut owner = Owner::new(1, 64);
    owner.read(ScopeFilter::All);
    owner.append(0);
    owner.settle();
    let home = owner.link.active(log(0));
    owner.link.still = Some(home);
    for _ in 0..3 {
        // Each is asked of whoever is active then.
        let is_first = owner.link.moved() == 0;
        owner.ask(|t| Call::Bounds { t, log: log(0) });
        owner.settle();
        assert!(!is_first || owner.link.moved() == 1);
    }
    assert_eq!(
        owner.link.active(log(0)),
        1 - home,
        "it does not go back to one that says nothing"
    );
    assert_eq!(owner.link.moved(), 1);
    owner.append(0);
    owner.until("both", |owner| owner.given() == 2);
    owner.link.still = None;
    owner.until("home", |owner| owner.link.active(log(0)) == home);
    owner.append(0);
    owner.until("all three", |owner| owner.given() == 3);
    let is_loss = |told: &&Completion| matches!(told, Completion::Lost { .. });
    assert_eq!(owner.told.iter().find(is_loss), None);
}

#[test]
fn a_takeover_says_nothing_anew_of_what_is_wanted() {
    let mut owner = Owner::new(1, 64);
    owner.read(ScopeFilter::Wanted);
    (1..=3).for_each(|edit| owner.want(edit));
    owner.append(0);
    owner.settle();
    let before = [0, 1].map(|place| owner.link.wants(place));
    assert_eq!(before, [3, 3], "both know it");
    let home = owner.link.active(log(0));
    owner.link.still = Some(home);
    owner.append(0);
    owner.link.cut(home);
    owner.until("the other tower", |owner| owner.link.active(log(0)) != home);
    owner.append(0);
    owner.until("what was stored", |owner| owner.given() >= 2);
    assert_eq!(owner.link.wants(1 - home), 3);
    let is_asked = |told: &&Completion| matches!(told, Completion::WantsLost { .. });
    assert_eq!(owner.told.iter().find(is_asked), None);
}

#[test]
fn a_standby_that_cuts_a_reader_off_for_want_of_room_can_take_over() {
    let limits = LinkLimits {
        wants: 1_000,
        marks: 1,
        ..LinkLimits::default()
    };
    // Edits are answered in the same turn in which the reader is given its first mark, in some of these runs.
    for polls in 0..20 {
        let mut owner = Owner::within(1, 64, limits);
        owner.read(ScopeFilter::Wanted);
        owner.want(1);
        (0..polls).for_each(|_| owner.poll());
        (2..10).for_each(|edit| owner.want(edit));
        owner.settle();
        owner.want(10);
        owner.settle();
        let home = owner.link.active(log(0));
        owner.link.still = Some(home);
        owner.ask(|t| Call::Bounds { t, log: log(0) });
        owner.until("the other tower", |owner| owner.link.active(log(0)) != home);
        owner.append(0);
        owner.until("what was stored", |owner| owner.given() == 1);
    }
}

#[test]
fn a_standby_without_room_for_what_is_wanted_is_left_alone_for_a_while() {
    let limits = LinkLimits {
        wants: 1,
        ..LinkLimits::default()
    };
    let mut owner = Owner::within(1, 64, limits);
    owner.read(ScopeFilter::Wanted);
    owner.want(1);
    owner.settle();
    let (other, mut edits) = (ReaderId(8), 1);
    owner.read_as(other, ScopeFilter::Wanted);
    owner.want_as(other, edits);
    for _ in 0..2_000 {
        owner.poll();
        let lost = owner.told.iter();
        let lost = lost.filter(|told| matches!(told, Completion::WantsLost { r } if *r == other));
        let lost = lost.count() as u32;
        while edits < 1 + lost {
            edits += 1;
            owner.want_as(other, edits);
        }
    }
    assert!(
        (2..=12).contains(&edits),
        "told what is wanted {edits} times"
    );
}

#[test]
fn takeovers_are_under_way_few_at_a_time() {
    const LOGS: u16 = 12;
    let mut owner = Owner::new(LOGS, 2);
    let at_first = (0..LOGS).filter(|index| owner.link.active(log(*index)) == 0);
    let at_first = at_first.count() as u64;
    assert!(at_first > 2, "{at_first}");
    owner.link.still = Some(0);
    owner.link.cut(0);
    let (mut moved, mut most) = (owner.link.moved(), 0);
    let begun = moved;
    while moved < begun + at_first {
        owner.poll();
        let now = owner.link.moved();
        most = most.max(now - moved);
        moved = now;
        assert!(owner.tags < 1_000_000);
    }
    assert!(most <= 2, "{most} at once");
}
