//! Compiles `proto/airmail/v1` without protoc, and keeps the descriptors for reflection.
//!
//! The server's side is made apart, without the calls that a node answers below tonic's codec, so
//! that there is no second way to serve them.

use prost::Message as _;
use std::{env, error::Error, fs, path::Path};

#[expect(
    clippy::disallowed_methods,
    reason = "cargo tells a build script its folders by the environment"
)]
fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(&env::var_os("CARGO_MANIFEST_DIR").ok_or("no manifest dir")?)
        .join("../../proto")
        .canonicalize()?;
    println!("cargo:rerun-if-changed={}", root.display());
    let files = ["airmail", "mailbox"].map(|name| root.join(format!("airmail/v1/{name}.proto")));
    let descriptors = protox::compile(files, [&root])?;
    let out = env::var_os("OUT_DIR").ok_or("no out dir")?;
    fs::write(
        Path::new(&out).join("airmail.v1.bin"),
        descriptors.encode_to_vec(),
    )?;
    let mut served = descriptors.clone();
    for service in served.file.iter_mut().flat_map(|file| &mut file.service) {
        let own = |name: &str| ["Publish", "Subscribe"].contains(&name);
        service.method.retain(|method| !own(method.name()));
    }
    let server = Path::new(&out).join("server");
    fs::create_dir_all(&server)?;
    tonic_prost_build::configure()
        .build_client(false)
        .extern_path(".airmail.v1", "crate::v1")
        .out_dir(server)
        .compile_fds(served)?;
    tonic_prost_build::configure()
        .build_server(false)
        .bytes(".")
        .btree_map(".")
        .compile_fds(descriptors)?;
    Ok(())
}
