//! A disk that is full: publishes are refused with the reason, reads go on, and when there is space
//! again publishing goes on by itself.

use crate::small_disk::SmallDisk;
use airmail_testkit::node::{self, Node};

const MEBIBYTES: usize = 256;

#[test]
fn a_full_disk_refuses_publishes_and_heals() {
    let directory = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(directory.path(), MEBIBYTES) else {
        return;
    };
    let node = Node::start(&disk.path.join("data"));
    node.run(&["pub", "kept", "before"]).ok();

    let ballast = disk.fill();
    let payload = vec![b'x'; 1 << 20];
    let mut refused = None;
    for _ in 0..MEBIBYTES {
        // Long enough for a busy machine to be told why.
        let mut publish = node.airmail(&["pub", "bulk", "--timeout", "20s"]);
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

    drop(ballast);
    node.run(&["pub", "kept", "after"]).ok();
    assert_eq!(node.run(&["history", "kept"]).ok(), "before\nafter\n");
    node.kill();
    let node = Node::start(&disk.path.join("data"));
    assert_eq!(node.run(&["history", "kept"]).ok(), "before\nafter\n");
}
