//! Promises of a storage about provisions, at the other end of links that are slow and cut: over a line to one of two
//! hosts, and behind two towers, of which another one is asked when the first is out of reach.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

mod wire;

use airmail_link::LinkLimits;
use airmail_log::conformance::{Driver, End, Subject, log, provisioning, run, spec};
use airmail_log::many_writers::{LogsHandle, SharedLogs, SharedSettings};
use airmail_log::{Call, Completion, LogStorage, Tag};
use airmail_model::{Mono, Now, Wall};
use wire::Linked;
use wire::line::Weather;

const BEGIN: Now = Now {
    mono: Mono(1_000_000_000),
    wall: Wall(1_790_000_000_000_000),
};

/// Logs that have to be provisioned for, over links.
struct Provisioned {
    logs: SharedLogs,
    weather: Weather,
    has_towers: bool,
}

impl Provisioned {
    fn new(seed: u64, has_towers: bool) -> Provisioned {
        Provisioned {
            logs: Provisioned::logs(),
            weather: Weather {
                seed,
                delay: 5,
                cuts: 15,
                cuts_max: 100,
                is_late: false,
                holes: 0,
                room: 16,
            },
            has_towers,
        }
    }

    fn logs() -> SharedLogs {
        SharedLogs::new(SharedSettings {
            provisions: true,
            ..SharedSettings::default()
        })
    }

    fn link(&self) -> Linked<LogsHandle> {
        let (storage, limits) = (self.logs.handle(), LinkLimits::default());
        if self.has_towers {
            Linked::by_towers(storage, limits, self.weather, true)
        } else {
            Linked::by_line(storage, limits, self.weather, true)
        }
    }
}

impl Subject for Provisioned {
    type Storage = Linked<LogsHandle>;

    fn fresh(&mut self, _: Now) -> Self::Storage {
        self.logs = Provisioned::logs();
        self.link()
    }

    fn reopen(&mut self, _: Self::Storage, _: End, _: Now) -> Self::Storage {
        self.link()
    }

    fn outlives(&self) -> bool {
        true
    }

    fn busy(&self) -> bool {
        false
    }

    fn wait(&mut self) {}
}

/// Runs a case under the weather of many seeds, over either kind of link.
fn everywhere(case: impl Fn(&mut Driver<'_, Provisioned>)) {
    for seed in 0..30 {
        for has_towers in [false, true] {
            run(&mut Provisioned::new(seed, has_towers), &case);
        }
    }
}

#[test]
fn a_log_is_opened_with_its_provisions_alone() {
    everywhere(provisioning::a_log_is_opened_with_its_provisions_alone);
}

#[test]
fn what_is_withdrawn_opens_no_log() {
    everywhere(provisioning::what_is_withdrawn_opens_no_log);
}

#[test]
fn a_withdrawal_leaves_alone_what_was_made_besides() {
    everywhere(provisioning::a_withdrawal_leaves_alone_what_was_made_besides);
}

#[test]
fn a_log_that_was_not_opened_is_deleted_by_its_provisions() {
    everywhere(provisioning::a_log_that_was_not_opened_is_deleted_by_its_provisions);
}

#[test]
fn another_tower_is_asked_when_the_first_is_out_of_reach_before_it_has_answered() {
    let (storage, limits) = (Provisioned::logs().handle(), LinkLimits::default());
    let mut link = Linked::by_towers(storage, limits, Weather::calm(16), true);
    let mut now = BEGIN;
    while !link.turn(&mut now).1 {}
    let (t, log, logs) = (Tag(1), log(0), 1);
    let spec = Box::new(spec(link.capabilities().strongest));
    link.submit(Call::Provision { t, log, logs, spec });
    let home = link.active(log);
    for _ in 0..10_000 {
        let (told, _) = link.turn(&mut now);
        if let [Completion::Provisioned { t: of, .. }] = told[..] {
            assert_eq!(of, t);
            assert!(link.is_unplaced(log), "no tower is kept for it");
            return;
        }
        assert_eq!(told, []);
        link.cut(home);
    }
    panic!("nobody answers");
}
