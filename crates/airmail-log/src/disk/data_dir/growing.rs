//! More shards for a directory that has been made.
//!
//! The directories of the new shards come first, each with its mark, and then the two identities, one
//! after the other; the journals of the new shards begin after that. So a start that is broken off leaves
//! either more directories than the identity says, which are new, or two identities of which one says
//! more. Both are taken up by the next start, whatever number of shards it wants.
//!
//! A shard whose journal has begun is never forgotten, not even where the identity says fewer (it was
//! restored from a copy that is older than the shard, say): its mark says whose it is.

use super::{DataDirError, failed, look_at_shard, mark_shard, modes, shard_name, sync_directory};
use crate::disk::identity::Identity;
use crate::disk::shard_mark::{self, MARK, ShardMark};
use std::fs;
use std::path::Path;

/// The identity, with as many shards as have begun if those are more.
pub(super) fn read_identity(path: &Path) -> Result<Identity, DataDirError> {
    let mut identity = super::read_identity(path)?;
    for entry in fs::read_dir(path).map_err(failed("list", path))? {
        let name = entry.map_err(failed("list", path))?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("shard-"));
        let Some(shard) = number.and_then(|number| number.parse().ok()) else {
            // Input: every other name in the directory.
            continue;
        };
        if shard >= identity.shards && shard < u16::MAX && has_begun(path, &identity, shard)? {
            identity.shards = shard + 1;
        }
    }
    Ok(identity)
}

fn has_begun(path: &Path, identity: &Identity, shard: u16) -> Result<bool, DataDirError> {
    let at = path.join(shard_name(shard));
    let wanted = ShardMark::new(identity, shard, true);
    let found = shard_mark::look(&at, &wanted).map_err(failed("look at", &at))?;
    Ok(found.is_ok_and(|found| found.begun && found.marked))
}

/// Makes the shards that are missing of so many. The identities are still to be written.
pub(super) fn to_shards(
    path: &Path,
    identity: &mut Identity,
    shards: u16,
) -> Result<(), DataDirError> {
    if shards < identity.shards {
        return Err(DataDirError::FewerShards {
            path: path.to_owned(),
            asked: shards,
            found: identity.shards,
        });
    }
    if shards == identity.shards {
        return Ok(());
    }
    // An identity that is not that of its shards makes no more of them.
    for shard in 0..identity.shards {
        look_at_shard(path, identity, shard)?;
    }
    for shard in identity.shards..shards {
        make_shard(path, identity, shard)?;
    }
    sync_directory(path)?;
    identity.shards = shards;
    Ok(())
}

/// Makes a shard that the identity does not know, or takes up one that was made before.
fn make_shard(path: &Path, identity: &Identity, shard: u16) -> Result<(), DataDirError> {
    let at = path.join(shard_name(shard));
    let is_unmarked = !at.join(MARK).exists();
    if !at.exists() || is_unmarked && shard_mark::is_new(&at) {
        modes::create_directory(&at).map_err(failed("create", &at))?;
        return mark_shard(&at, &ShardMark::new(identity, shard, false));
    }
    if look_at_shard(path, identity, shard)?.marked {
        return Ok(());
    }
    Err(DataDirError::NotOurs {
        path: at,
        found: "files without a mark".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::{DataDir, IDENTITY, IDENTITY_COPY, read_one, write_identity};
    use super::*;
    use airmail_model::{NodeId, StorageName, Wall};

    fn with(shards: u16) -> Identity {
        Identity {
            cluster: 11,
            node: NodeId(22),
            shards,
            created: Wall(33),
            storage: StorageName::FIRST,
            needs: crate::Needs::Nothing,
        }
    }

    /// Leaves a shard as a journal does that has stored something.
    fn begin(path: &Path, shard: u16) {
        let at = path.join(shard_name(shard));
        fs::write(at.join("seg-0000000000000001"), "x").unwrap();
        mark_shard(&at, &ShardMark::new(&with(1), shard, true)).unwrap();
    }

    #[test]
    fn a_directory_grows_and_keeps_who_it_is() {
        let temp = tempfile::tempdir().unwrap();
        drop(DataDir::open(temp.path(), &with(1)).unwrap());
        let other = Identity {
            cluster: 99,
            ..with(4)
        };
        let grown = DataDir::open(temp.path(), &other).unwrap();
        assert_eq!(grown.identity(), &with(4));
        assert_eq!(grown.problems(), []);
        assert!(grown.shard(3).is_dir());
        drop(grown);
        for name in [IDENTITY, IDENTITY_COPY] {
            assert_eq!(read_one(temp.path(), name).unwrap(), with(4));
        }
        assert_eq!(DataDir::open(temp.path(), &with(4)).unwrap().problems(), []);
    }

    #[test]
    fn fewer_shards_than_there_are_are_refused_with_how_many_there_are() {
        let temp = tempfile::tempdir().unwrap();
        drop(DataDir::open(temp.path(), &with(3)).unwrap());
        let refused = DataDir::open(temp.path(), &with(2))
            .unwrap_err()
            .to_string();
        let path = temp.path().display();
        let told = format!("node.shards: 2, limit: at least 3, as many as {path} has");
        assert_eq!(refused, told);
        assert_eq!(
            DataDir::open(temp.path(), &with(3)).unwrap().identity(),
            &with(3)
        );
    }

    #[test]
    fn growing_that_was_broken_off_anywhere_is_taken_up_by_a_start_with_any_number() {
        for (directories, identities) in [(1, 0), (3, 0), (3, 1)] {
            for shards in [1, 4, 8] {
                let temp = tempfile::tempdir().unwrap();
                drop(DataDir::open(temp.path(), &with(1)).unwrap());
                for shard in 1..=directories {
                    let at = temp.path().join(shard_name(shard));
                    modes::create_directory(&at).unwrap();
                    if shard < directories {
                        mark_shard(&at, &ShardMark::new(&with(1), shard, false)).unwrap();
                    }
                }
                if identities == 1 {
                    write_identity(temp.path(), IDENTITY, &with(4)).unwrap();
                }
                let taken = DataDir::open(temp.path(), &with(shards));
                if identities == 1 && shards == 1 {
                    assert!(matches!(taken, Err(DataDirError::FewerShards { .. })));
                } else if identities == 1 {
                    // The last mark was never lost in this way: the marks come before the identity.
                    assert!(matches!(taken, Err(DataDirError::Shard { .. })));
                } else {
                    let taken = taken.unwrap();
                    assert_eq!(taken.identity().shards, shards);
                    assert_eq!(taken.problems(), []);
                }
            }
        }
        let temp = tempfile::tempdir().unwrap();
        drop(DataDir::open(temp.path(), &with(4)).unwrap());
        write_identity(temp.path(), IDENTITY_COPY, &with(1)).unwrap();
        let beside = DataDir::open_read_only(temp.path()).unwrap();
        assert_eq!(beside.problems(), []);
        let taken = DataDir::open(temp.path(), &with(4)).unwrap();
        assert_eq!(taken.problems(), []);
        assert_eq!(read_one(temp.path(), IDENTITY_COPY).unwrap(), with(4));
    }

    #[test]
    fn a_shard_that_has_begun_is_not_forgotten_by_an_older_identity() {
        let temp = tempfile::tempdir().unwrap();
        drop(DataDir::open(temp.path(), &with(3)).unwrap());
        begin(temp.path(), 2);
        for name in [IDENTITY, IDENTITY_COPY] {
            write_identity(temp.path(), name, &with(1)).unwrap();
        }
        let beside = DataDir::open_read_only(temp.path()).unwrap();
        assert_eq!(beside.identity().shards, 3);
        let refused = DataDir::open(temp.path(), &with(2)).unwrap_err();
        assert!(matches!(
            refused,
            DataDirError::FewerShards { found: 3, .. }
        ));
        DataDir::repair(temp.path()).unwrap();
        assert_eq!(
            DataDir::open(temp.path(), &with(3)).unwrap().identity(),
            &with(3)
        );
    }

    #[test]
    fn what_is_somebody_elses_does_not_become_a_shard() {
        let temp = tempfile::tempdir().unwrap();
        drop(DataDir::open(temp.path(), &with(1)).unwrap());
        let at = temp.path().join(shard_name(1));
        fs::create_dir(&at).unwrap();
        fs::write(at.join("seg-0000000000000001"), "x").unwrap();
        let refused = DataDir::open(temp.path(), &with(2)).unwrap_err();
        assert!(matches!(refused, DataDirError::NotOurs { .. }), "{refused}");
        assert!(!at.join(MARK).exists());
        let foreign = Identity {
            cluster: 5,
            ..with(2)
        };
        mark_shard(&at, &ShardMark::new(&foreign, 1, true)).unwrap();
        let refused = DataDir::open(temp.path(), &with(2)).unwrap_err();
        assert!(matches!(refused, DataDirError::Shard { .. }), "{refused}");
        assert_eq!(
            DataDir::open(temp.path(), &with(1)).unwrap().identity(),
            &with(1)
        );
    }

    #[test]
    fn another_directorys_identity_makes_no_shards_and_marks_none() {
        let temp = tempfile::tempdir().unwrap();
        drop(DataDir::open(temp.path(), &with(4)).unwrap());
        let foreign = Identity {
            cluster: 5,
            ..with(1)
        };
        for name in [IDENTITY, IDENTITY_COPY] {
            write_identity(temp.path(), name, &foreign).unwrap();
        }
        let refused = DataDir::open(temp.path(), &with(8)).unwrap_err();
        assert!(matches!(refused, DataDirError::Shard { .. }), "{refused}");
        assert!(!temp.path().join(shard_name(4)).exists());
        for name in [IDENTITY, IDENTITY_COPY] {
            write_identity(temp.path(), name, &with(4)).unwrap();
        }
        assert_eq!(DataDir::open(temp.path(), &with(4)).unwrap().problems(), []);
    }
}
