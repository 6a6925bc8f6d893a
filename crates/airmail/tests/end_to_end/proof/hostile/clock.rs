//! The wall clock is set a day ahead and back again, by `serve --clock-offset-file`, which only builds with
//! the feature `test-switches` have. One topic keeps its messages for an hour: none of them goes.

use super::stage::Stage;
use airmail_testkit::node::{self, airmail};
use airmail_testkit::scale;
use rand::Rng;
use rand::rngs::SmallRng;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The file that sets the clock of a round's nodes, if this build has the switch.
pub(super) struct Clock {
    file: Option<PathBuf>,
}

impl Clock {
    pub(super) fn new(root: &Path) -> Clock {
        let file = root.join("clock-offset");
        fs::write(&file, "0s").unwrap();
        let mut look = airmail();
        look.args(["serve", "--print-config", "--clock-offset-file"]);
        let known = node::run(look.arg(&file), b"").code == Some(0);
        Clock {
            file: known.then_some(file),
        }
    }

    /// Adds the flags by which a node gets its clock.
    pub(super) fn flags(&self, command: &mut Command) {
        if let Some(file) = &self.file {
            command.arg("--clock-offset-file").arg(file);
        }
    }
}

/// A day ahead, perhaps over a start, and back.
pub(super) fn jump(stage: &mut Stage, choices: &mut SmallRng) {
    let Some(file) = stage.clock.file.clone() else {
        let why = "clocks that jump want a build with --features airmail/test-switches";
        return scale::say(&format!("LEFT OUT: {why}\n"));
    };
    fs::write(&file, "+1d").unwrap();
    stage.progress();
    if choices.random() {
        stage.end(choices);
        stage.start();
    }
    retention_is_applied(stage);
    fs::write(&file, "0s").unwrap();
    stage.progress();
    if choices.random() {
        retention_is_applied(stage);
    }
}

/// Waits until retention has been applied since now: to a namespace that keeps two kilobytes.
fn retention_is_applied(stage: &Stage) {
    let Some(node) = &stage.node else {
        return;
    };
    let create = ["namespace", "create", "little", "--retention-bytes", "2KiB"];
    let made = node.run(&create);
    // It is there from the second time on.
    assert!(matches!(made.code, Some(0 | 1)), "{made:#?}");
    let long = "y".repeat(1_500);
    for _ in 0..3 {
        node.run(&["pub", "t", &long, "--namespace", "little"]).ok();
    }
    node::wait_until("retention to be applied", || {
        let kept = node.run(&["history", "t", "--namespace", "little"]).ok();
        kept.lines().count() < 2
    });
}
