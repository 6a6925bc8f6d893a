//! A copy of the directory is made, and later put in its place: a backup, restored. Messages
//! acknowledged since the copy was begun may be gone; readers that have had them are told, and
//! messages acknowledged afterwards reach everybody. A copy may be restored more than once.

use crate::proof::hostile::history::Event;
use crate::proof::hostile::stage::{Copied, Stage};
use airmail_testkit::node::{self, airmail};
use rand::Rng;
use rand::rngs::SmallRng;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// Copies the directory as it is, in place of an earlier copy.
pub(super) fn copy(stage: &mut Stage, choices: &mut SmallRng) {
    let path = stage.root.join("copy");
    if path.exists() {
        fs::remove_dir_all(&path).unwrap();
    }
    let running: bool = choices.random();
    if !running {
        stage.end(choices);
    }
    let at = stage.note(Event::Copied);
    copy_directory(&stage.victim.data, &path);
    let ended = stage.history.len();
    stage.copy = Some(Copied {
        at,
        ended,
        path,
        restored: false,
    });
    if !running {
        stage.start();
    }
}

/// Puts the copy in place and starts a node on it, in one of two ways: as `docs/backup.md` says, with
/// `airmail check --repair-identity`, whatever publishers do meanwhile; or without, when nothing new is
/// published before readers come back with positions that lie beyond the copy's end. A copy that is
/// restored once more is always repaired.
pub(super) fn restore(stage: &mut Stage, choices: &mut SmallRng) {
    if stage.copy.is_none() {
        copy(stage, choices);
    }
    let Some(copied) = stage.copy.clone() else {
        return;
    };
    stage.everybody_publishes_after(copied.ended);
    let told: bool = choices.random();
    // A node that has the copy for the second time cannot know the positions of what became of the first.
    let told = told || copied.restored;
    if !told {
        stage.readers.all_come_back();
    }
    stage.progress();
    if !told {
        stage.pause_publishing();
    }
    stage.end(choices);
    fs::remove_dir_all(&stage.victim.data).unwrap();
    if choices.random() {
        copy_directory(&copied.path, &stage.victim.data);
        let restored = true;
        stage.copy = Some(Copied {
            restored,
            ..copied.clone()
        });
    } else {
        fs::rename(&copied.path, &stage.victim.data).unwrap();
        stage.copy = None;
    }
    if told {
        let mut repair = airmail();
        repair.arg("check").arg(&stage.victim.data);
        let done = node::run(repair.arg("--repair-identity"), b"");
        // 1: a copy of a running node may be found damaged at its ends.
        assert!(matches!(done.code, Some(0 | 1)), "{done:#?}");
    }
    let restored = stage.note(Event::Restored { copied: copied.at });
    stage.start();
    if !told {
        stage.stale_readers_are_told(copied.ended, restored);
        stage.go_on_publishing();
    }
}

/// Files and directories, by name. What goes meanwhile is left out: a node may be running.
fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    let entries = fs::read_dir(from).unwrap().map(|entry| entry.unwrap());
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_directory(&path, &to);
        } else if let Err(error) = fs::copy(&path, to) {
            assert_eq!(
                error.kind(),
                ErrorKind::NotFound,
                "{}: {error}",
                path.display()
            );
        }
    }
}
