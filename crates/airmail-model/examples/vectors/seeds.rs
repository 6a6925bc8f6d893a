//! Seeds for the fuzz targets: the same cases, one file for each.

use crate::documents;
use std::io;
use std::path::Path;

/// Writes them to a folder for each target.
pub(crate) fn write(directory: &Path) -> io::Result<()> {
    let folder = |target: &str| {
        let folder = directory.join(target);
        std::fs::create_dir_all(&folder).map(|()| folder)
    };
    for case in documents::all_batches() {
        for target in ["batch_check", "batch_check_stored", "slice"] {
            std::fs::write(folder(target)?.join(&case.name), &case.bytes)?;
        }
    }
    for (name, position) in documents::positions() {
        std::fs::write(folder("position")?.join(name), position.to_string())?;
    }
    // Attributes of each kind, as they lie in a body.
    let attributes = b"\x01\x01s\x02\x00hi\x01\x02t\x01\x00\x00\x00\x00\x00\x00\x00\x01\x04u\x01";
    std::fs::write(folder("attributes")?.join("kinds"), attributes)
}
