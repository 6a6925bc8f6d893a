//! The code in `generated/` is what prost and tonic make of `proto/airmail/v1`. It is kept rather than
//! made by each build, so that whoever builds a node compiles no compiler of protocols first. A test
//! compares; with `AIRMAIL_REWRITE=1` it writes.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test panics where something is wrong")]

use airmail_testkit::scale;
use prost::Message as _;
use prost_types::FileDescriptorSet;
use std::fs;
use std::path::Path;

const COMMAND: &str = "AIRMAIL_REWRITE=1 cargo test -p airmail-proto --test generated";
/// Calls that a node answers below tonic's codec. The server's code is made without them, so that there is
/// no second way to serve them.
const BELOW_THE_CODEC: [&str; 2] = ["Publish", "Subscribe"];

/// Makes messages and clients in `to`, the services in `to/server`, and the descriptors for reflection.
fn generate(to: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proto");
    let root = root.canonicalize().unwrap();
    let files = ["airmail", "mailbox"].map(|name| root.join(format!("airmail/v1/{name}.proto")));
    let descriptors = protox::compile(files, [&root]).unwrap();
    fs::write(to.join("airmail.v1.bin"), descriptors.encode_to_vec()).unwrap();
    let server = to.join("server");
    fs::create_dir_all(&server).unwrap();
    tonic_prost_build::configure()
        .build_client(false)
        .extern_path(".airmail.v1", "crate::v1")
        .out_dir(server)
        .compile_fds(served(descriptors.clone()))
        .unwrap();
    tonic_prost_build::configure()
        .build_server(false)
        .bytes(".")
        .btree_map(".")
        .out_dir(to)
        .compile_fds(descriptors)
        .unwrap();
}

/// The services without the calls that a node answers below tonic's codec.
fn served(mut descriptors: FileDescriptorSet) -> FileDescriptorSet {
    let files = descriptors.file.iter_mut();
    for service in files.flat_map(|file| &mut file.service) {
        let method = &mut service.method;
        method.retain(|method| !BELOW_THE_CODEC.contains(&method.name()));
    }
    descriptors
}

#[test]
fn the_code_that_is_kept_is_what_the_protocol_says() {
    let made = tempfile::tempdir().unwrap();
    generate(made.path());
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("generated");
    for name in ["airmail.v1.rs", "airmail.v1.bin", "server/airmail.v1.rs"] {
        let new = fs::read(made.path().join(name)).unwrap();
        let path = kept.join(name);
        if scale::rewrite() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, new).unwrap();
        } else {
            let old = fs::read(&path).unwrap_or_default();
            assert!(old == new, "generated/{name} is stale: {COMMAND}");
        }
    }
}
