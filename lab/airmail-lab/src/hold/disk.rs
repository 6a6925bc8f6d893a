//! The limit on what a process writes to the disk that a directory is on.
//!
//! The system counts bytes by disk, not by partition, and counts what goes past the page cache as it
//! is written, which a node's segments do. A sync costs no bytes: it is as quick as it is.

use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Bytes that may be written to a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DiskLimit {
    /// A directory on the disk, on the machine of the process.
    pub(crate) directory: PathBuf,
    /// Bytes that may be written each second.
    pub(crate) write_bytes_per_s: u64,
}

impl DiskLimit {
    /// The disk's device, as `MAJOR:MINOR`.
    ///
    /// # Errors
    /// The directory is not there, or its file system is on no block device.
    pub(super) fn device(&self) -> io::Result<String> {
        let number = fs::metadata(&self.directory)?.dev();
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        whole_disk(Path::new("/sys/dev/block"), &format!("{major}:{minor}"))
    }

    /// The file of a control group that sets the limit, and what is written to it.
    pub(super) fn setting(&self, device: &str, unified: bool) -> (&'static str, String) {
        let bytes = self.write_bytes_per_s;
        if unified {
            ("io.max", format!("{device} wbps={bytes}"))
        } else {
            (
                "blkio.throttle.write_bps_device",
                format!("{device} {bytes}"),
            )
        }
    }
}

/// The disk that a device is, or that it is a partition of, by what the system tells below `devices`.
fn whole_disk(devices: &Path, device: &str) -> io::Result<String> {
    let about = fs::canonicalize(devices.join(device))?;
    if !about.join("partition").exists() {
        return Ok(device.to_owned());
    }
    let disk = about.parent().unwrap_or(&about).join("dev");
    Ok(fs::read_to_string(disk)?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_held_by_its_disk() {
        let devices = tempfile::tempdir().unwrap();
        let disk = devices.path().join("vda");
        fs::create_dir_all(disk.join("vda1")).unwrap();
        fs::write(disk.join("dev"), "254:0\n").unwrap();
        fs::write(disk.join("vda1/partition"), "1\n").unwrap();
        let link = |name: &str, target| {
            std::os::unix::fs::symlink(disk.join(target), devices.path().join(name)).unwrap();
        };
        link("254:0", "");
        link("254:1", "vda1");
        let of = |device| whole_disk(devices.path(), device);
        assert_eq!(of("254:0").unwrap(), "254:0");
        assert_eq!(of("254:1").unwrap(), "254:0");
        // A file system in memory has no device.
        assert!(of("0:35").is_err());
    }

    #[test]
    fn the_limit_is_set_in_either_version() {
        let limit = DiskLimit {
            directory: PathBuf::from("/var/tmp"),
            write_bytes_per_s: 1_000,
        };
        let first = ("blkio.throttle.write_bps_device", "254:0 1000".to_owned());
        assert_eq!(limit.setting("254:0", false), first);
        assert_eq!(
            limit.setting("254:0", true),
            ("io.max", "254:0 wbps=1000".to_owned())
        );
    }
}
