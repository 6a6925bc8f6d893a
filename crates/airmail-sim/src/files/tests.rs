//! Promises of the simulated disk, and the promises that it does not make.

use super::*;
use crate::swarm::Swarm;
use airmail_model::Mono;

fn machine(faults: Swarm) -> Machine {
    let disk = Disk::new(Entropy::new(7), faults, false);
    Machine::new(vec![disk])
}

fn write(at: u64, bytes: &'static [u8], sync: bool) -> FileOp {
    FileOp::Write {
        name: "a".into(),
        at,
        parts: vec![Bytes::from_static(bytes)],
        sync,
        note: None,
    }
}

/// Submits, lets everything happen, and says which operations were done well.
fn perform(machine: &Machine, files: &mut SimFiles, ops: Vec<FileOp>) -> Vec<bool> {
    for (index, op) in ops.into_iter().enumerate() {
        files.submit(FileToken(index as u64), op);
    }
    machine.disk().advance(Mono(u64::MAX));
    let mut done = Vec::new();
    files.poll(&mut done);
    done.sort_by_key(|done| done.token);
    done.into_iter().map(|done| done.result.is_ok()).collect()
}

fn contents(files: &mut SimFiles) -> Vec<u8> {
    files.load(&"a".into(), 0, 100).unwrap().to_vec()
}

#[test]
fn what_was_synced_survives_the_power_and_the_rest_is_at_hazard() {
    let mut kept = 0;
    for seed in 0..50 {
        let disk = Disk::new(crate::entropy::Entropy::new(seed), Swarm::calm(), false);
        let machine = Machine::new(vec![disk]);
        let mut files = machine.boot(0);
        let create = FileOp::Create { name: "a".into() };
        let ops = vec![create, write(0, b"safe", true), write(4, b"late", false)];
        assert_eq!(perform(&machine, &mut files, ops), [true, true, true]);
        machine.disk().cut_power();
        let mut files = machine.boot(0);
        let found = contents(&mut files);
        assert!(found.starts_with(b"safe"), "{found:?}");
        kept += usize::from(found == b"safelate");
    }
    assert!((5..45).contains(&kept), "{kept}");
}

#[test]
fn a_killed_process_leaves_what_it_wrote() {
    let machine = machine(Swarm::calm());
    let mut files = machine.boot(0);
    let create = FileOp::Create { name: "a".into() };
    perform(&machine, &mut files, vec![create, write(0, b"late", false)]);
    machine.disk().kill();
    assert_eq!(contents(&mut machine.boot(0)), b"late");
}

#[test]
fn the_files_of_a_dead_process_do_nothing() {
    let machine = machine(Swarm::calm());
    let mut dead = machine.boot(0);
    let mut files = machine.boot(0);
    let create = FileOp::Create { name: "a".into() };
    assert!(perform(&machine, &mut dead, vec![create]).is_empty());
    assert!(files.list().unwrap().is_empty());
}

#[test]
fn a_sync_after_a_failed_one_is_a_violation() {
    let faults = Swarm {
        sync_fails: 1_000_000,
        ..Swarm::calm()
    };
    let machine = machine(faults);
    let mut files = machine.boot(0);
    let create = FileOp::Create { name: "a".into() };
    let ops = vec![create, write(0, b"x", true)];
    assert_eq!(perform(&machine, &mut files, ops), [true, false]);
    assert_eq!(machine.disk().take_violation(), None);
    perform(&machine, &mut files, vec![write(1, b"y", true)]);
    assert!(machine.disk().take_violation().is_some());
}

#[test]
fn a_full_disk_refuses_growth_and_takes_changes() {
    let machine = machine(Swarm::calm());
    let mut files = machine.boot(0);
    let create = FileOp::Create { name: "a".into() };
    perform(&machine, &mut files, vec![create, write(0, b"xxxx", true)]);
    machine.disk().set_room(Some(0));
    let ops = vec![write(0, b"yyyy", true), write(4, b"y", true)];
    assert_eq!(perform(&machine, &mut files, ops), [true, false]);
}
