//! New lives for the logs of a directory that was set back to an older copy: its operator's order
//! to the next start.
//!
//! The file `new-life` says that each log is to begin a new life when the node starts, so that
//! every position from before is told apart from those that come. The file stays until all of them
//! have, so a start that is broken off is done again: a new life too many is only reported to
//! readers, while one too few would go unnoticed.

use super::{
    DataDir, DataDirError, IDENTITY, IDENTITY_COPY, failed, growing, has_identity, read_one,
    sync_directory,
};
use crate::disk::modes;
use std::fs;
use std::io;
use std::path::Path;

/// Name of the file that orders a new life. Its contents are for humans: its presence counts.
const NEW_LIFE: &str = "new-life";
const WORDS: &str = "At the next start each log of this directory begins a new life.\n";

/// Result of [`DataDir::repair`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repair {
    /// The file that was missing or damaged and has been written again from the other.
    pub mended: Option<&'static str>,
    /// New lives were asked for before, and no node has begun them yet.
    pub asked_before: bool,
}

impl DataDir {
    /// Repairs the directory at `path` after it was set back to an older copy: mends its two
    /// identities from each other, and has each log begin a new life at the next start. Once done,
    /// doing it again changes nothing until a node has started.
    ///
    /// # Errors
    /// It is not there, a node has it, both identities are damaged, or the system refuses something.
    pub fn repair(path: &Path) -> Result<Repair, DataDirError> {
        if !has_identity(path) {
            return Err(DataDirError::Missing {
                path: path.to_owned(),
            });
        }
        let identity = growing::read_identity(path)?;
        let both = [IDENTITY, IDENTITY_COPY].into_iter();
        let mut hit =
            both.filter(|name| !read_one(path, name).is_ok_and(|one| one.grows_to(&identity)));
        let mended = hit.next();
        // Taking it mends it, and is refused while a node has it.
        let directory = DataDir::open(path, &identity)?;
        let asked_before = directory.new_life_due();
        if !asked_before {
            let at = path.join(NEW_LIFE);
            modes::write_anew(&at, WORDS).map_err(failed("write", &at))?;
            sync_directory(path)?;
        }
        Ok(Repair {
            mended,
            asked_before,
        })
    }

    /// Whether each log is to begin a new life when it is opened.
    #[must_use]
    pub fn new_life_due(&self) -> bool {
        self.path.join(NEW_LIFE).exists()
    }

    /// Every log has begun its new life: the next start asks for none.
    ///
    /// # Errors
    /// The system refuses it. Then the next start begins new lives once more.
    pub fn new_life_begun(&self) -> Result<(), DataDirError> {
        let at = self.path.join(NEW_LIFE);
        match fs::remove_file(&at) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(failed("remove", &at)(error)),
            Ok(()) => sync_directory(&self.path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Identity;
    use airmail_model::{NodeId, StorageName, Wall};

    const OWN: Identity = Identity {
        cluster: 11,
        node: NodeId(22),
        shards: 1,
        created: Wall(33),
        storage: StorageName::FIRST,
        needs: crate::Needs::Nothing,
    };

    #[test]
    fn a_repair_asks_for_new_lives_once_until_they_have_begun() {
        let temp = tempfile::tempdir().unwrap();
        drop(DataDir::open(temp.path(), &OWN).unwrap());
        let first = DataDir::repair(temp.path()).unwrap();
        assert_eq!((first.mended, first.asked_before), (None, false));
        let again = DataDir::repair(temp.path()).unwrap();
        assert_eq!((again.mended, again.asked_before), (None, true));
        let directory = DataDir::open(temp.path(), &OWN).unwrap();
        assert!(directory.new_life_due());
        directory.new_life_begun().unwrap();
        assert!(!directory.new_life_due());
        directory.new_life_begun().unwrap();
        drop(directory);
        assert!(!DataDir::repair(temp.path()).unwrap().asked_before);
    }

    #[test]
    fn a_repair_mends_either_identity_from_the_other() {
        for name in [IDENTITY, IDENTITY_COPY] {
            let temp = tempfile::tempdir().unwrap();
            drop(DataDir::open(temp.path(), &OWN).unwrap());
            fs::write(temp.path().join(name), "airmail data directory\n").unwrap();
            let repair = DataDir::repair(temp.path()).unwrap();
            assert_eq!(repair.mended, Some(name));
            assert_eq!(read_one(temp.path(), name).unwrap(), OWN);
        }
    }

    #[test]
    fn a_repair_is_refused_while_a_node_runs_and_where_there_is_no_directory() {
        let temp = tempfile::tempdir().unwrap();
        let missing = DataDir::repair(temp.path()).unwrap_err();
        assert!(matches!(missing, DataDirError::Missing { .. }), "{missing}");
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0);
        let directory = DataDir::open(temp.path(), &OWN).unwrap();
        let refused = DataDir::repair(temp.path()).unwrap_err();
        assert!(matches!(refused, DataDirError::InUse { .. }), "{refused}");
        assert!(!directory.new_life_due());
    }
}
