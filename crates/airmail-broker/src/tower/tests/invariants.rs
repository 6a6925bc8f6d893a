//! Each invariant is asserted: a tower that breaks it is complained of under its name.

use super::super::Tower;
use super::super::catchup::member::Place;
use super::super::catchup::queue::HeldFor;
use super::super::log::Openness;
use super::super::storage_calls::Owner;
use super::transcripts::Driver;
use crate::keys::{MemberKey, ReaderKey, TowerLogKey};
use crate::transcript::{LOG, complaint};
use airmail_model::{AppendTime, Sequence};

/// The gateway is attached; one member has a reader, and an end, and one waits for a reader.
fn busy() -> Driver {
    let mut driver = Driver::new();
    let lines = [
        "catalog: open the log",
        "storage: #1, the log is open with 1 to 99, in life 7",
        "gateway: attach to the log's tail from 100 on, as attachment 1",
        "gateway: for member 1, read a from 1 on, before 9",
        "gateway: for member 2, read a from 50 on",
    ];
    for line in lines {
        driver.step(line).unwrap_or_else(|| panic!("{line:?}"));
    }
    driver
}

fn log(tower: &Tower) -> TowerLogKey {
    tower.logs.find(LOG).expect("open")
}

fn member(tower: &Tower, nth: usize) -> MemberKey {
    tower.members.iter().nth(nth).expect("a member").0
}

fn reader(tower: &Tower) -> ReaderKey {
    tower.readers.keys()[0]
}

#[cfg(feature = "sabotage")]
#[test]
fn an_id_of_a_member_that_is_kept_is_found_at_the_step_that_keeps_it() {
    let mut driver = busy();
    driver.tower.config.bug = Some(crate::sabotage::Bug::MemberKept);
    driver
        .step("gateway: detach attachment 1")
        .expect("an input");
    let said = complaint(|| _ = driver.step("gateway: member 2 leaves").expect("an input"));
    assert!(said.starts_with("one_place: who is queued"), "{said}");
}

type Break = fn(&mut Tower);

#[test]
fn a_state_that_breaks_an_invariant_is_complained_of_under_its_name() {
    busy().tower.check();
    let breaks: [(&str, Break); 15] = [
        ("one_place", |t| {
            let one = member(t, 0);
            t.members[one].place = Place::Queued;
        }),
        ("one_place", |t| {
            let two = member(t, 1);
            t.members.dequeue(two);
        }),
        ("one_place", |t| {
            let one = member(t, 0);
            t.members[one].topic = None;
        }),
        ("one_place", |t| {
            let two = member(t, 1);
            t.members.remove(two);
        }),
        ("silent", |t| {
            let log = log(t);
            t.members.hold(log, HeldFor::Silence);
        }),
        ("silent", |t| {
            let one = reader(t);
            t.readers.fall_silent(one);
            t.config.catch_up_readers = 0;
        }),
        ("retried", |t| {
            let log = log(t);
            t.members.hold(log, HeldFor::Failure);
        }),
        ("readers", |t| t.config.catch_up_readers = 2),
        ("ends", |t| {
            let one = reader(t);
            t.readers[one].position = Sequence(9);
        }),
        ("ends", |t| {
            let one = reader(t);
            t.readers[one].ends.clear();
        }),
        ("ends", |t| {
            let (one, two) = (reader(t), member(t, 1));
            t.readers[one].times.insert((AppendTime(9), two));
        }),
        ("owners", |t| {
            let one = reader(t);
            t.calls.give_up(t.readers[one].reader);
        }),
        ("owners", |t| {
            for _ in 0..2 {
                t.calls.reader(Owner::System);
            }
        }),
        ("end", |t| {
            let log = log(t);
            t.logs[log].end = Sequence(7);
        }),
        ("closed", |t| {
            let log = log(t);
            t.logs[log].openness = Openness::Deleting;
        }),
    ];
    for (name, broken) in breaks {
        let mut driver = busy();
        broken(&mut driver.tower);
        let said = complaint(|| driver.tower.check());
        assert!(said.starts_with(name), "{name}: {said}");
    }
}
