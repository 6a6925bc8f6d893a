//! A shard's directory, held open: files are made and found in the directory that was opened,
//! whatever becomes of its path.
//!
//! By path, a node whose directory is moved away would find nothing any more, and tell readers of a
//! loss that there is not; and where another directory comes in its place, it would go on in that
//! one, which may be another node's.

use super::modes::FILE_MODE;
use rustix::fs::{AtFlags, Mode, OFlags};
use std::fs::File;
use std::io;
use std::path::Path;

/// See the module's documentation.
pub(super) struct Folder {
    /// The open directory, or the kind of error if it could not be opened.
    handle: Result<File, io::ErrorKind>,
}

impl Folder {
    /// The directory at `path`.
    ///
    /// # Errors
    /// The system's error about it.
    pub(super) fn open(path: &Path) -> io::Result<Folder> {
        let handle = Ok(File::open(path)?);
        Ok(Folder { handle })
    }

    /// The directory at `path`; one that cannot be opened says so when it is used.
    pub(super) fn at(path: &Path) -> Folder {
        let handle = File::open(path).map_err(|error| error.kind());
        Folder { handle }
    }

    fn handle(&self) -> io::Result<&File> {
        self.handle.as_ref().map_err(|kind| (*kind).into())
    }

    /// A file that is there, to be read; to be written too if `write`.
    pub(super) fn file(&self, name: &str, write: bool) -> io::Result<File> {
        let how = if write { OFlags::RDWR } else { OFlags::RDONLY };
        self.with(name, how)
    }

    /// A file that is there, to be written; with further flags of the system.
    pub(super) fn writable(&self, name: &str, flags: OFlags) -> io::Result<File> {
        self.with(name, OFlags::WRONLY | flags)
    }

    /// A file that is not there yet.
    pub(super) fn create(&self, name: &str) -> io::Result<File> {
        self.with(name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)
    }

    fn with(&self, name: &str, how: OFlags) -> io::Result<File> {
        let mode = Mode::from_raw_mode(FILE_MODE);
        let handle = self.handle()?;
        let open = || rustix::fs::openat(handle, name, how | OFlags::CLOEXEC, mode);
        let file = rustix::io::retry_on_intr(open)?;
        Ok(File::from(file))
    }

    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let handle = self.handle()?;
        Ok(rustix::fs::renameat(handle, from, handle, to)?)
    }

    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(
            self.handle()?,
            name,
            AtFlags::empty(),
        )?)
    }

    /// Makes creations, renames and removals outlast a power cut.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.handle()?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_directory_that_was_moved_is_gone_on_with_and_not_the_one_in_its_place() {
        let temp = tempfile::tempdir().unwrap();
        let (path, moved) = (temp.path().join("here"), temp.path().join("there"));
        fs::create_dir(&path).unwrap();
        fs::write(path.join("old"), "1").unwrap();
        let folder = Folder::open(&path).unwrap();
        fs::rename(&path, &moved).unwrap();
        fs::create_dir(&path).unwrap();
        folder.create("new").unwrap();
        folder.rename("old", "other").unwrap();
        assert!(folder.file("other", false).is_ok());
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
        let mut names: Vec<_> = fs::read_dir(&moved)
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["new", "other"]);
        folder.remove("new").unwrap();
        folder.sync().unwrap();
        let gone = folder.file("new", true).unwrap_err();
        assert_eq!(gone.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn one_that_is_not_there_says_so_when_it_is_used() {
        let folder = Folder::at(Path::new("/nonexistent/directory"));
        let error = folder.file("any", false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(Folder::open(Path::new("/nonexistent/directory")).is_err());
    }
}
