//! A small file system in memory, which can be filled.

use airmail_testkit::scale;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file system of its own. Unmounted when dropped.
#[derive(Debug)]
pub(crate) struct SmallDisk {
    /// Where it is mounted.
    pub(crate) path: PathBuf,
}

impl SmallDisk {
    /// None where tests that mount were left out.
    pub(crate) fn mount(directory: &Path, mebibytes: usize) -> Option<SmallDisk> {
        if scale::is_left_out("mount") {
            return None;
        }
        let size = format!("size={mebibytes}m");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(directory)
            .output()
            .is_ok_and(|output| output.status.success());
        if !mounted {
            scale::want("mount", "this process may not mount a file system");
        }
        Some(SmallDisk {
            path: directory.to_owned(),
        })
    }

    /// Takes all the space that is left, until the ballast is dropped.
    pub(crate) fn fill(&self) -> Ballast {
        let path = self.path.join("ballast");
        let mut file = File::create(&path).unwrap();
        let zeros = vec![0; 1 << 16];
        while file.write_all(&zeros).is_ok() {}
        Ballast { path }
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

/// A file that takes what space there is. Removed when dropped.
#[derive(Debug)]
pub(crate) struct Ballast {
    path: PathBuf,
}

impl Ballast {
    /// Takes the space that has become free since.
    pub(crate) fn grow(&self) {
        let file = File::options().append(true).open(&self.path);
        let mut file = file.unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
    }
}

impl Drop for Ballast {
    fn drop(&mut self) {
        fs::remove_file(&self.path).ok();
    }
}
