use super::*;
use airmail_model::Wall;

const NEW: Identity = Identity {
    cluster: 11,
    node: 22,
    shards: 2,
    created: Wall(33),
};

#[test]
fn a_missing_directory_is_made_and_keeps_its_identity() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("deep/data");
    let dir = DataDir::open(&path, &NEW).unwrap();
    assert_eq!(dir.identity(), &NEW);
    assert!(dir.shard(1).is_dir());
    drop(dir);
    let other = Identity { node: 99, ..NEW };
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
            let dir = DataDir::open(temp.path(), &Identity { node: 99, ..NEW }).unwrap();
            assert_eq!(dir.identity(), &NEW);
            assert_eq!(dir.problems(), []);
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
