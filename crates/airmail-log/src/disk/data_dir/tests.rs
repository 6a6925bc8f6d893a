use super::*;
use airmail_model::{NodeId, StorageName, Wall};

/// Asserts that both identities of a directory are this.
fn assert_both_say(path: &Path, identity: &Identity) {
    for name in [IDENTITY, IDENTITY_COPY] {
        assert_eq!(&read_one(path, name).unwrap(), identity);
    }
}

#[test]
fn a_directory_with_roles_or_lanes_says_so_in_both_identities_keeps_its_lock_and_grows_on() {
    for needs in [crate::Needs::Roles, crate::Needs::Lanes] {
        let temp = tempfile::tempdir().unwrap();
        let data = DataDir::open(temp.path(), &NEW).unwrap();
        let guard = data.guard().unwrap().unwrap();
        let before = guard.look();
        data.note_needs(needs).unwrap();
        let noted = Identity { needs, ..NEW };
        assert_both_say(temp.path(), &noted);
        data.note_needs(needs).unwrap();
        let taken = DataDir::open(temp.path(), &NEW).unwrap_err();
        assert!(matches!(taken, DataDirError::InUse { .. }), "{taken}");
        assert_eq!(guard.look(), before);
        drop((data, guard));
        // One of the two was not written any more before the power failed.
        write_identity(temp.path(), IDENTITY_COPY, &NEW).unwrap();
        let more = Identity { shards: 2, ..NEW };
        let data = DataDir::open(temp.path(), &more).unwrap();
        assert_eq!(data.problems(), []);
        let grown = Identity { shards: 2, ..noted };
        assert_eq!(data.identity(), &grown);
        assert_both_say(temp.path(), &grown);
    }
}

#[test]
fn a_directory_with_roles_gets_lanes_and_never_needs_less_again() {
    let temp = tempfile::tempdir().unwrap();
    let data = DataDir::open(temp.path(), &NEW).unwrap();
    let needing = |needs| Identity { needs, ..NEW };
    data.note_needs(crate::Needs::Roles).unwrap();
    assert_both_say(temp.path(), &needing(crate::Needs::Roles));
    data.note_needs(crate::Needs::Lanes).unwrap();
    data.note_needs(crate::Needs::Roles).unwrap();
    assert_both_say(temp.path(), &needing(crate::Needs::Lanes));
    drop(data);
    let data = DataDir::open(temp.path(), &NEW).unwrap();
    assert_eq!(data.identity(), &needing(crate::Needs::Lanes));
    data.note_needs(crate::Needs::Roles).unwrap();
    assert_both_say(temp.path(), &needing(crate::Needs::Lanes));
}

#[test]
fn what_was_noted_since_the_start_is_kept_where_an_identity_is_written_anew() {
    for damaged in [IDENTITY, IDENTITY_COPY] {
        let temp = tempfile::tempdir().unwrap();
        let data = DataDir::open(temp.path(), &NEW).unwrap();
        data.note_needs(crate::Needs::Lanes).unwrap();
        std::fs::write(temp.path().join(damaged), "damaged").unwrap();
        data.note_needs(crate::Needs::Roles).unwrap();
        for name in [IDENTITY, IDENTITY_COPY] {
            let needs = read_one(temp.path(), name).unwrap().needs;
            assert_eq!(needs, crate::Needs::Lanes, "{name}, {damaged} damaged");
        }
    }
}

const NEW: Identity = Identity {
    cluster: 11,
    node: NodeId(22),
    shards: 2,
    created: Wall(33),
    storage: StorageName::FIRST,
    needs: crate::Needs::Nothing,
};

#[test]
fn a_missing_directory_is_made_and_keeps_its_identity() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("deep/data");
    let dir = DataDir::open(&path, &NEW).unwrap();
    assert_eq!(dir.identity(), &NEW);
    assert!(dir.shard(1).is_dir());
    drop(dir);
    let other = Identity {
        node: NodeId(99),
        ..NEW
    };
    let dir = DataDir::open(&path, &other).unwrap();
    assert_eq!(dir.identity(), &NEW);
}

#[test]
fn a_second_one_is_refused_with_the_directory_and_the_process() {
    let temp = tempfile::tempdir().unwrap();
    let first = DataDir::open(temp.path(), &NEW).unwrap();
    let refused = DataDir::open(temp.path(), &NEW).unwrap_err();
    let text = refused.to_string();
    assert!(matches!(refused, DataDirError::InUse { .. }), "{text}");
    assert!(text.contains(&temp.path().display().to_string()), "{text}");
    assert!(text.contains(&std::process::id().to_string()), "{text}");
    let beside = DataDir::open_read_only(temp.path()).unwrap();
    assert!(beside.in_use());
    drop(first);
    assert!(!beside.in_use());
    DataDir::open(temp.path(), &NEW).unwrap();
}

#[test]
fn somebody_elses_directory_is_refused_and_left_as_it_is() {
    let temp = tempfile::tempdir().unwrap();
    fs::write(temp.path().join("letter.txt"), "dear").unwrap();
    let refused = DataDir::open(temp.path(), &NEW).unwrap_err();
    assert!(matches!(refused, DataDirError::NotOurs { .. }));
    assert!(refused.to_string().contains("letter.txt"));
    assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 1);
}

#[test]
fn an_attempt_that_was_broken_off_is_taken_up() {
    let temp = tempfile::tempdir().unwrap();
    fs::write(temp.path().join(IDENTITY_NEW), "airmail da").unwrap();
    fs::write(temp.path().join(LOCK), "1\n").unwrap();
    assert_eq!(DataDir::open(temp.path(), &NEW).unwrap().identity(), &NEW);
}

/// The problems that `check` would report now.
fn beside(path: &Path) -> Vec<Problem> {
    DataDir::open_read_only(path).unwrap().problems()
}

fn damage(temp: &Path, name: &str) -> String {
    let at = temp.join(name);
    let text = fs::read_to_string(&at)
        .unwrap()
        .replace("shards 2", "shards 3");
    fs::write(&at, &text).unwrap();
    text
}

#[test]
fn a_damaged_or_missing_identity_is_told_and_written_again_from_the_other() {
    let temp = tempfile::tempdir().unwrap();
    drop(DataDir::open(temp.path(), &NEW).unwrap());
    for name in [IDENTITY, IDENTITY_COPY] {
        damage(temp.path(), name);
        let problems = DataDir::open_read_only(temp.path()).unwrap().problems();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!(problems[0].file, name);
        for missing in [false, true] {
            if missing {
                fs::remove_file(temp.path().join(name)).unwrap();
            }
            let dir = DataDir::open(
                temp.path(),
                &Identity {
                    node: NodeId(99),
                    ..NEW
                },
            )
            .unwrap();
            assert_eq!(dir.identity(), &NEW);
            assert_eq!(dir.problems().len(), usize::from(!missing));
            assert_eq!(beside(temp.path()), []);
            let text = fs::read_to_string(temp.path().join(name)).unwrap();
            assert_eq!(text, NEW.to_string());
        }
    }
}

#[test]
fn damage_to_both_identities_is_refused_and_they_are_not_replaced() {
    let temp = tempfile::tempdir().unwrap();
    drop(DataDir::open(temp.path(), &NEW).unwrap());
    let both = [IDENTITY, IDENTITY_COPY].map(|name| (name, damage(temp.path(), name)));
    let refused = DataDir::open(temp.path(), &NEW).unwrap_err();
    assert!(
        matches!(refused, DataDirError::Identity { .. }),
        "{refused}"
    );
    for (name, text) in both {
        assert_eq!(fs::read_to_string(temp.path().join(name)).unwrap(), text);
    }
}

#[test]
fn reading_only_needs_a_directory_and_gives_no_way_to_write() {
    let temp = tempfile::tempdir().unwrap();
    let missing = DataDir::open_read_only(temp.path()).unwrap_err();
    assert!(matches!(missing, DataDirError::Missing { .. }));
    drop(DataDir::open(temp.path(), &NEW).unwrap());
    let dir = DataDir::open_read_only(temp.path()).unwrap();
    let options = DiskOptions::default();
    let refused = dir
        .files(0, &options, std::sync::Arc::new(|| {}))
        .unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ReadOnlyFilesystem);
}

/// The files that a journal has, once it has begun.
fn begin(dir: &DataDir, shard: u16) {
    use crate::files::{FileOp, FileToken, Files};
    let options = DiskOptions::default();
    let files = dir.files(shard, &options, Arc::new(|| {}));
    let name = "seg-0000000000000001".into();
    files.unwrap().submit(FileToken(1), FileOp::Create { name });
}

/// Reason for which a directory is refused for a shard.
fn loss(path: &Path) -> (String, ShardLoss) {
    // `check` is not more confident than a node.
    let checked = DataDir::open_read_only(path).unwrap_err();
    let refused = DataDir::open(path, &NEW).unwrap_err();
    assert_eq!(refused.to_string(), checked.to_string());
    match refused {
        DataDirError::Shard { loss, .. } => (checked.to_string(), loss),
        other => panic!("{other}"),
    }
}

#[test]
fn a_shard_that_is_missing_is_refused_by_name_with_what_to_do() {
    let temp = tempfile::tempdir().unwrap();
    let dir = DataDir::open(temp.path(), &NEW).unwrap();
    begin(&dir, 1);
    drop(dir);
    let (shard, away) = (temp.path().join("shard-0001"), temp.path().join("away"));
    fs::rename(&shard, &away).unwrap();
    let (text, why) = loss(temp.path());
    assert_eq!(why, ShardLoss::Missing);
    for word in ["shard-0001", "not mounted", "restore", "another directory"] {
        assert!(text.contains(word), "{text}");
    }
    assert!(text.contains(&temp.path().display().to_string()), "{text}");
    assert!(!shard.exists());
    fs::rename(&away, &shard).unwrap();
    DataDir::open(temp.path(), &NEW).unwrap();
}

#[test]
fn a_shard_that_is_a_file_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    drop(DataDir::open(temp.path(), &NEW).unwrap());
    fs::remove_dir_all(temp.path().join("shard-0000")).unwrap();
    fs::write(temp.path().join("shard-0000"), "").unwrap();
    assert_eq!(loss(temp.path()).1, ShardLoss::NotDirectory);
}

#[test]
fn an_empty_shard_is_refused_whether_it_is_a_mount_point_or_was_emptied() {
    let temp = tempfile::tempdir().unwrap();
    let dir = DataDir::open(temp.path(), &NEW).unwrap();
    begin(&dir, 0);
    drop(dir);
    let shard = temp.path().join("shard-0000");
    // All but the mark.
    fs::remove_file(shard.join("seg-0000000000000001")).unwrap();
    assert_eq!(loss(temp.path()).1, ShardLoss::Emptied);
    // Nor is it enough that there is something of what has been.
    fs::write(shard.join("ends"), "").unwrap();
    assert_eq!(loss(temp.path()).1, ShardLoss::Emptied);
    // As where its volume is not mounted.
    fs::remove_dir_all(&shard).unwrap();
    fs::create_dir(&shard).unwrap();
    assert_eq!(loss(temp.path()).1, ShardLoss::Emptied);
    assert_eq!(fs::read_dir(&shard).unwrap().count(), 0);
}

#[test]
fn another_directorys_shard_is_refused() {
    let (temp, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    drop(DataDir::open(temp.path(), &NEW).unwrap());
    let elsewhere = Identity {
        node: NodeId(99),
        ..NEW
    };
    drop(DataDir::open(other.path(), &elsewhere).unwrap());
    let shard = temp.path().join("shard-0000");
    fs::remove_dir_all(&shard).unwrap();
    fs::rename(other.path().join("shard-0000"), &shard).unwrap();
    let (cluster, node, shard) = (NEW.cluster, NodeId(99), 0);
    let foreign = ShardLoss::Foreign {
        cluster,
        node,
        shard,
    };
    assert_eq!(loss(temp.path()).1, foreign);
}

#[test]
fn a_first_start_that_was_broken_off_anywhere_is_taken_up() {
    // Before there was an identity, with the shards of an identity that is forgotten.
    let temp = tempfile::tempdir().unwrap();
    let forgotten = Identity {
        node: NodeId(99),
        ..NEW
    };
    drop(DataDir::open(temp.path(), &forgotten).unwrap());
    for name in [IDENTITY, IDENTITY_COPY] {
        fs::remove_file(temp.path().join(name)).unwrap();
    }
    fs::write(temp.path().join("shard-0001/shard.new"), "airm").unwrap();
    let dir = DataDir::open(temp.path(), &NEW).unwrap();
    assert_eq!(dir.identity(), &NEW);
    assert!(dir.is_new());
    drop(dir);
    // With one, and before the journals have begun.
    let dir = DataDir::open(temp.path(), &NEW).unwrap();
    assert!(!dir.is_new());
    begin(&dir, 0);
    drop(dir);
    // One has begun, the other has not.
    drop(DataDir::open(temp.path(), &NEW).unwrap());
    // With a journal's first file, and before that was marked.
    let mark = temp.path().join("shard-0000/shard");
    let begun = fs::read_to_string(&mark).unwrap();
    assert!(begun.contains("begun yes"));
    fs::write(&mark, ShardMark::new(&NEW, 0, false).to_string()).unwrap();
    drop(DataDir::open(temp.path(), &NEW).unwrap());
    assert_eq!(fs::read_to_string(&mark).unwrap(), begun);
    // A shard with files and no identity is no attempt.
    for name in [IDENTITY, IDENTITY_COPY] {
        fs::remove_file(temp.path().join(name)).unwrap();
    }
    let refused = DataDir::open(temp.path(), &NEW).unwrap_err();
    assert!(matches!(refused, DataDirError::NotOurs { .. }), "{refused}");
}

#[test]
fn a_directory_from_before_there_were_marks_gets_them_and_a_damaged_one_is_told_and_mended() {
    let temp = tempfile::tempdir().unwrap();
    let dir = DataDir::open(temp.path(), &NEW).unwrap();
    begin(&dir, 0);
    begin(&dir, 1);
    drop(dir);
    let mark = temp.path().join("shard-0001/shard");
    let text = fs::read_to_string(&mark).unwrap();
    fs::remove_file(&mark).unwrap();
    let dir = DataDir::open(temp.path(), &NEW).unwrap();
    assert_eq!(dir.problems(), []);
    drop(dir);
    assert_eq!(fs::read_to_string(&mark).unwrap(), text);
    fs::write(&mark, text.replace("begun yes", "begun no")).unwrap();
    let problems = DataDir::open_read_only(temp.path()).unwrap().problems();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0].file, "shard-0001/shard");
    let dir = DataDir::open(temp.path(), &NEW).unwrap();
    assert_eq!(dir.problems(), problems);
    assert_eq!(fs::read_to_string(&mark).unwrap(), text);
}

#[test]
fn all_that_is_made_is_for_its_owner_alone_and_what_is_not_is_told() {
    use std::os::unix::fs::PermissionsExt as _;
    let set_mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("data");
    let dir = DataDir::open(&path, &NEW).unwrap();
    assert_eq!((mode(&path), mode(&dir.shard(1))), (0o700, 0o700));
    let files = [IDENTITY, IDENTITY_COPY, LOCK, "shard-0000/shard"];
    for name in files {
        assert_eq!(mode(&path.join(name)), 0o600, "{name}");
    }
    assert_eq!(dir.exposed().unwrap(), None);
    set_mode(&dir.shard(1), 0o755);
    let told = dir.exposed().unwrap().unwrap().to_string();
    assert!(told.contains("shard-0001 (mode 0755)"), "{told}");
    set_mode(&path, 0o750);
    let told = DataDir::open_read_only(&path).unwrap().exposed();
    let told = told.unwrap().unwrap().to_string();
    assert!(told.contains("data (mode 0750)"), "{told}");
    // It keeps its mode: who shares it has a reason.
    drop(dir);
    DataDir::open(&path, &NEW).unwrap();
    assert_eq!(mode(&path), 0o750);
}
