//! A disk that is full: publishes are refused with the reason, reads go on, and when there is space
//! again publishing goes on by itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::node::{self, Node};
use crate::scale;

#[test]
fn a_full_disk_refuses_publishes_and_heals() {
    let directory = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(directory.path()) else {
        return;
    };
    let node = Node::start(&disk.path.join("data"));
    node.run(&["pub", "kept", "before"]).ok();

    let ballast = disk.fill();
    let payload = vec![b'x'; 1 << 20];
    let mut refused = None;
    for _ in 0..SmallDisk::MEBIBYTES {
        let mut publish = node.airmail(&["pub", "bulk", "--timeout", "1s"]);
        let done = node::run(&mut publish, &payload);
        if done.code != Some(0) {
            refused = Some(done);
            break;
        }
    }
    let said = refused
        .expect("more was stored than the disk holds")
        .failed(1);
    assert!(said.contains("STORAGE_FULL"), "{said}");
    assert_eq!(node.run(&["history", "kept"]).ok(), "before\n");

    fs::remove_file(ballast).unwrap();
    node.run(&["pub", "kept", "after"]).ok();
    assert_eq!(node.run(&["history", "kept"]).ok(), "before\nafter\n");
    node.kill();
    let node = Node::start(&disk.path.join("data"));
    assert_eq!(node.run(&["history", "kept"]).ok(), "before\nafter\n");
}

/// A file system of its own, in memory. Unmounted when dropped.
struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    const MEBIBYTES: usize = 256;

    /// Nothing, where this process may not mount.
    fn mount(directory: &Path) -> Option<SmallDisk> {
        let size = format!("size={}m", SmallDisk::MEBIBYTES);
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(directory)
            .output()
            .is_ok_and(|output| output.status.success());
        if !mounted {
            scale::not_run("this process may not mount a file system");
        }
        mounted.then(|| SmallDisk {
            path: directory.to_owned(),
        })
    }

    /// Takes all the space that is left, and says with which file.
    fn fill(&self) -> PathBuf {
        let ballast = self.path.join("ballast");
        let mut file = fs::File::create(&ballast).unwrap();
        let zeros = vec![0; 1 << 16];
        while std::io::Write::write_all(&mut file, &zeros).is_ok() {}
        ballast
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        Command::new("umount")
            .arg("--lazy")
            .arg(&self.path)
            .status()
            .ok();
    }
}
