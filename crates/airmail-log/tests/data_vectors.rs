//! Data directories that earlier versions wrote: they are opened, and hold the same records for
//! ever.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

mod vector;

use airmail_log::conformance::{Driver, log, spec};
use airmail_log::disk::DataDir;
use airmail_log::journal::check;
use airmail_log::{Completion, LogSpec, Refusal};
use airmail_model::{Durability, Sequence};
use std::fs;
use std::path::{Path, PathBuf};
use vector::{Directory, HIGH, SYSTEM, describe};

/// Every directory under `vectors/data`.
fn vectors() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/data");
    let entries = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut vectors: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    vectors.sort();
    assert!(!vectors.is_empty());
    vectors
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[test]
fn every_version_ever_written_is_read() {
    for vector in vectors() {
        let temp = tempfile::tempdir().unwrap();
        copy(&vector, temp.path());
        let expected = fs::read_to_string(vector.with_extension("txt")).unwrap();
        let mut directory = Directory::at(temp.path());
        let mut d = Driver::new(&mut directory);
        let mut further = vec![SYSTEM, HIGH];
        further.retain(|title| expected.contains(title));
        let found = describe(&mut d, &further);
        assert_eq!(found, expected, "{}", vector.display());
    }
}

#[test]
fn from_version_3_on_a_log_that_was_deleted_is_made_anew_by_a_later_command_only() {
    for vector in vectors() {
        let name = vector.file_name().unwrap().to_string_lossy();
        let leaves_tombstones = !name.starts_with("v1") && !name.starts_with("v2");
        let temp = tempfile::tempdir().unwrap();
        copy(&vector, temp.path());
        let mut directory = Directory::at(temp.path());
        let mut d = Driver::new(&mut directory);
        let of = |as_of| LogSpec {
            as_of: Sequence(as_of),
            ..spec(Durability::FSYNC)
        };
        // The second was not there when it was deleted.
        for deleted in [log(3), log(6)] {
            let refused = matches!(
                d.try_open(deleted, &of(8)),
                Completion::Refused {
                    why: Refusal::NoLog,
                    ..
                }
            );
            assert_eq!(refused, leaves_tombstones, "{deleted} of {name}");
            d.open_with(deleted, &of(9));
        }
    }
}

#[test]
fn a_directory_with_lane_high_says_so_in_the_fourth_version_of_its_identity() {
    for vector in vectors() {
        let name = vector.file_name().unwrap().to_string_lossy();
        let has_lanes = name.contains("-lanes");
        for identity in ["identity", "identity.copy"].map(|name| vector.join(name)) {
            let Ok(identity) = fs::read_to_string(identity) else {
                // The first directories had no copy.
                continue;
            };
            assert_eq!(identity.contains("\nversion 4\n"), has_lanes, "{name}");
        }
    }
}

/// Every file under a directory, with what is in it.
fn contents(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(contents(&path));
        } else {
            all.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
    all.sort();
    all
}

#[test]
fn check_finds_every_version_sound_and_changes_nothing() {
    for vector in vectors() {
        let before = contents(&vector);
        let dir = DataDir::open_read_only(&vector).unwrap();
        assert!(!dir.in_use());
        for shard in 0..dir.identity().shards {
            let report = check(&mut dir.files_read_only(shard)).unwrap();
            assert!(report.is_sound(), "{}: {report:?}", vector.display());
            let expected = fs::read_to_string(vector.with_extension("txt")).unwrap();
            let logs = expected.lines().filter(|line| line.starts_with("log "));
            assert_eq!(report.logs.len(), logs.count());
        }
        assert!(
            contents(&vector) == before,
            "{} was changed",
            vector.display()
        );
    }
}

#[test]
fn check_reads_a_directory_that_is_in_use_and_changes_nothing() {
    let temp = tempfile::tempdir().unwrap();
    copy(&vectors()[0], temp.path());
    let mut directory = Directory::at(temp.path());
    let mut d = Driver::new(&mut directory);
    describe(&mut d, &[]);
    d.settle();
    let before = contents(temp.path());
    let dir = DataDir::open_read_only(temp.path()).unwrap();
    assert!(dir.in_use());
    let report = check(&mut dir.files_read_only(0)).unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert!(contents(temp.path()) == before);
    d.append(log(0), &[("after", "check")]);
}
