//! The code in `generated/` is what prost makes of `proto/airmail/link/v1`. It is kept rather than made by
//! each build. A test compares; with `AIRMAIL_REWRITE=1` it writes.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test panics where something is wrong")]

use airmail_testkit::scale;
use std::fs;
use std::path::Path;

const COMMAND: &str = "AIRMAIL_REWRITE=1 cargo test -p airmail-wire --test generated";
const FILE: &str = "airmail.link.v1.rs";

#[test]
fn the_code_that_is_kept_is_what_the_protocol_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proto");
    let root = root.canonicalize().unwrap();
    let descriptors = protox::compile([root.join("airmail/link/v1/link.proto")], [&root]).unwrap();
    let made = tempfile::tempdir().unwrap();
    prost_build::Config::new()
        .bytes(["."])
        .out_dir(made.path())
        .compile_fds(descriptors)
        .unwrap();
    let new = fs::read(made.path().join(FILE)).unwrap();
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("generated");
    if scale::rewrite() {
        fs::create_dir_all(&kept).unwrap();
        fs::write(kept.join(FILE), new).unwrap();
    } else {
        let old = fs::read(kept.join(FILE)).unwrap_or_default();
        assert!(old == new, "generated/{FILE} is stale: {COMMAND}");
    }
}
