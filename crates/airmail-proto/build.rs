//! Compiles `proto/airmail/v1` without protoc, and keeps the descriptors for reflection.

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
    let descriptors = protox::compile([root.join("airmail/v1/airmail.proto")], [&root])?;
    let out = env::var_os("OUT_DIR").ok_or("no out dir")?;
    fs::write(
        Path::new(&out).join("airmail.v1.bin"),
        descriptors.encode_to_vec(),
    )?;
    tonic_prost_build::configure()
        .bytes(".")
        .btree_map(".")
        .compile_fds(descriptors)?;
    Ok(())
}
