//! Writes the golden vectors: `cargo run -p airmail-model --example vectors`.
//!
//! With a directory as argument it writes the same cases there instead, one file for each, as
//! seeds for the fuzz targets: `cargo run -p airmail-model --example vectors -- fuzz/corpus`.

#![expect(
    clippy::expect_used,
    reason = "the cases are constants; a wrong one must stop it"
)]

mod batches;
mod documents;
mod filters;
mod malformed;
mod malformed_records;
mod marked;
mod seeds;

use std::path::Path;

fn main() -> std::io::Result<()> {
    if let Some(directory) = std::env::args_os().nth(1) {
        return seeds::write(Path::new(&directory));
    }
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors");
    for (name, text) in documents::all() {
        std::fs::write(vectors.join(name), text)?;
    }
    Ok(())
}
