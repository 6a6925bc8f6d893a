use super::*;
use crate::disk::{DataDir, Identity};
use airmail_model::{NodeId, StorageName, Wall};
use std::fs;

const NEW: Identity = Identity {
    cluster: 11,
    node: NodeId(22),
    shards: 1,
    created: Wall(33),
    storage: StorageName::FIRST,
    needs: crate::Needs::Nothing,
};

/// The things that a look found changed.
fn odd(guard: &Guard) -> Vec<(Thing, Sight)> {
    let things = guard.look().things.into_iter();
    things.filter(|(_, sight)| *sight != Sight::Same).collect()
}

#[test]
fn whatever_files_are_gone_a_second_one_is_refused_while_the_first_is_there() {
    let temp = tempfile::tempdir().unwrap();
    let first = DataDir::open(temp.path(), &NEW).unwrap();
    let beside = DataDir::open_read_only(temp.path()).unwrap();
    for gone in [&["LOCK"][..], &["identity"], &["identity.copy"]] {
        for name in gone {
            fs::remove_file(temp.path().join(name)).unwrap();
        }
        let refused = DataDir::open(temp.path(), &NEW).unwrap_err();
        assert!(matches!(refused, DataDirError::InUse { .. }), "{refused}");
        assert!(beside.in_use());
    }
    // It has left nothing there that the first would have to take for its own.
    assert!(!temp.path().join("LOCK").exists());
    drop(first);
    assert!(!beside.in_use());
}

#[test]
fn a_directory_by_another_name_is_the_same_directory() {
    let temp = tempfile::tempdir().unwrap();
    let (path, moved) = (temp.path().join("a"), temp.path().join("b"));
    let first = DataDir::open(&path, &NEW).unwrap();
    fs::rename(&path, &moved).unwrap();
    fs::remove_file(moved.join("LOCK")).unwrap();
    let refused = DataDir::open(&moved, &NEW).unwrap_err();
    assert!(matches!(refused, DataDirError::InUse { .. }), "{refused}");
    drop(first);
    DataDir::open(&moved, &NEW).unwrap();
}

#[test]
fn a_version_that_locks_no_more_than_the_lock_file_keeps_out_and_is_kept_out() {
    let temp = tempfile::tempdir().unwrap();
    drop(DataDir::open(temp.path(), &NEW).unwrap());
    let earlier = File::open(temp.path().join("LOCK")).unwrap();
    earlier.try_lock().unwrap();
    let refused = DataDir::open(temp.path(), &NEW).unwrap_err();
    assert!(matches!(refused, DataDirError::InUse { .. }), "{refused}");
    drop(earlier);
    let dir = DataDir::open(temp.path(), &NEW).unwrap();
    let earlier = File::open(temp.path().join("LOCK")).unwrap();
    assert!(earlier.try_lock().is_err());
    drop(dir);
}

#[test]
fn a_lock_file_that_was_removed_or_replaced_is_seen_and_made_anew() {
    let temp = tempfile::tempdir().unwrap();
    let dir = DataDir::open(temp.path(), &NEW).unwrap();
    let guard = dir.guard().unwrap().unwrap();
    assert_eq!(guard.look().lock, Sight::Same);
    fs::remove_file(temp.path().join("LOCK")).unwrap();
    assert_eq!(guard.look().lock, Sight::Missing);
    guard.make_lock().unwrap();
    assert_eq!(guard.look().lock, Sight::Same);
    let text = fs::read_to_string(temp.path().join("LOCK")).unwrap();
    assert_eq!(text, format!("{}\n", std::process::id()));

    fs::write(temp.path().join("new"), "77\n").unwrap();
    fs::rename(temp.path().join("new"), temp.path().join("LOCK")).unwrap();
    assert_eq!(guard.look().lock, Sight::Other);
    let other = File::open(temp.path().join("LOCK")).unwrap();
    other.try_lock().unwrap();
    let taken = guard.make_lock().unwrap_err();
    assert!(
        matches!(&taken, NoLock::Taken { process } if process == "77"),
        "{taken:?}"
    );
    drop(other);
    guard.make_lock().unwrap();
    assert_eq!(guard.look().lock, Sight::Same);
    assert_eq!(odd(&guard), []);
}

#[test]
fn what_is_moved_removed_or_replaced_is_seen_until_it_is_back() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("data");
    let dir = DataDir::open(&path, &NEW).unwrap();
    let guard = dir.guard().unwrap().unwrap();
    assert_eq!(odd(&guard), []);
    for (name, thing) in [
        ("data", Thing::Directory),
        ("data/identity", Thing::Identity),
        ("data/shard-0000", Thing::Shard(0)),
    ] {
        let (at, away) = (temp.path().join(name), temp.path().join("away"));
        fs::rename(&at, &away).unwrap();
        assert_eq!(odd(&guard), [(thing.clone(), Sight::Missing)]);
        fs::create_dir(&at).unwrap();
        assert_eq!(odd(&guard), [(thing, Sight::Other)]);
        fs::remove_dir(&at).unwrap();
        fs::rename(&away, &at).unwrap();
        assert_eq!(odd(&guard), []);
    }
}

#[test]
fn files_that_are_taken_out_of_a_shard_are_seen_and_copies_of_them_are_not_the_same() {
    use crate::files::{FileOp, FileToken, Files};
    let temp = tempfile::tempdir().unwrap();
    let dir = DataDir::open(temp.path(), &NEW).unwrap();
    let guard = dir.guard().unwrap().unwrap();
    assert_eq!(odd(&guard), []);
    let options = crate::disk::DiskOptions::default();
    let mut files = dir.files(0, &options, Arc::new(|| {})).unwrap();
    let name = "seg-0000000000000001".into();
    files.submit(FileToken(1), FileOp::Create { name });
    drop(files);
    // That it has begun was marked meanwhile, which is no change by somebody else.
    assert_eq!(odd(&guard), []);
    let mark = temp.path().join("shard-0000/shard");
    let away = temp.path().join("away");
    fs::rename(&mark, &away).unwrap();
    assert_eq!(odd(&guard), [(Thing::Files(0), Sight::Missing)]);
    fs::copy(&away, &mark).unwrap();
    assert_eq!(odd(&guard), [(Thing::Files(0), Sight::Other)]);
    fs::rename(&away, &mark).unwrap();
    assert_eq!(odd(&guard), []);
}
