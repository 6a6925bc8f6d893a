use super::*;

const START: Mono = Mono(1_000_000_000);

fn at(ms: u64) -> Mono {
    START.plus(Duration::from_millis(ms))
}

/// A look that finds everything unchanged, but for the things given.
fn seen(lock: Sight, odd: &[(Thing, Sight)]) -> Input {
    let mut things = vec![
        (Thing::Directory, Sight::Same),
        (Thing::Identity, Sight::Same),
        (Thing::Shard(0), Sight::Same),
    ];
    for (thing, sight) in odd {
        things.retain(|(other, _)| other != thing);
        things.push((thing.clone(), sight.clone()));
    }
    Input::Seen(Seen { lock, things })
}

#[test]
fn as_long_as_everything_is_as_it_was_nothing_is_done() {
    let mut watch = Watch::default();
    for n in 0..5 {
        assert_eq!(watch.step(at(n * 300), seen(Sight::Same, &[])), []);
    }
    assert_eq!(watch.withheld(), None);
}

#[test]
fn a_lock_file_that_is_gone_or_another_is_made_anew_and_told() {
    for sight in [Sight::Missing, Sight::Other] {
        let mut watch = Watch::default();
        let effects = watch.step(at(0), seen(sight.clone(), &[]));
        assert_eq!(effects, [Effect::MakeLock]);
        // Once, until it is known what came of it.
        assert_eq!(watch.step(at(300), seen(sight, &[])), []);
        assert_eq!(watch.step(at(310), Input::LockMade), [Effect::TellLockMade]);
        assert_eq!(watch.step(at(600), seen(Sight::Same, &[])), []);
        assert_eq!(watch.withheld(), None);
    }
}

#[test]
fn a_lock_file_that_cannot_be_made_is_told_and_tried_again_later() {
    let mut watch = Watch::default();
    watch.step(at(0), seen(Sight::Missing, &[]));
    let why = "no space".to_owned();
    let told = watch.step(at(1), Input::LockFailed(why.clone()));
    assert_eq!(told, [Effect::TellLockFailed(why)]);
    assert_eq!(watch.step(at(300), seen(Sight::Missing, &[])), []);
    let later = watch.step(at(10_002), seen(Sight::Missing, &[]));
    assert_eq!(later, [Effect::MakeLock]);
}

#[test]
fn whatever_else_is_gone_or_another_withholds_at_once_and_heals_when_it_is_back() {
    for thing in [
        Thing::Directory,
        Thing::Identity,
        Thing::Shard(0),
        Thing::Files(0),
    ] {
        for sight in [Sight::Missing, Sight::Other] {
            let mut watch = Watch::default();
            let odd = [(thing.clone(), sight.clone())];
            let why = Estranged::Gone(thing.clone(), sight.clone());
            let effects = watch.step(at(0), seen(Sight::Same, &odd));
            assert_eq!(effects, [Effect::Withhold(why.clone())]);
            // Told once, and no lock is made in a directory that may be another's.
            assert_eq!(watch.step(at(300), seen(Sight::Missing, &odd)), []);
            assert_eq!(watch.withheld(), Some(&why));
            let effects = watch.step(at(600), seen(Sight::Same, &[]));
            assert_eq!(effects, [Effect::Release]);
            assert_eq!(watch.withheld(), None);
        }
    }
}

/// A watch of a directory that was moved away, has come back, and has no lock file any more.
fn back_without_lock() -> Watch {
    let mut watch = Watch::default();
    let odd = [(Thing::Directory, Sight::Missing)];
    watch.step(at(0), seen(Sight::Missing, &odd));
    let effects = watch.step(at(300), seen(Sight::Missing, &[]));
    assert_eq!(effects, [Effect::MakeLock]);
    // Nothing is stored before it is known who has the lock.
    assert_eq!(watch.step(at(600), seen(Sight::Missing, &[])), []);
    assert!(watch.withheld().is_some());
    watch
}

#[test]
fn a_directory_that_is_back_is_stored_in_when_it_is_known_that_nobody_has_its_lock() {
    let mut watch = back_without_lock();
    assert_eq!(watch.step(at(610), Input::LockMade), [Effect::TellLockMade]);
    let effects = watch.step(at(900), seen(Sight::Same, &[]));
    assert_eq!(effects, [Effect::Release]);
    // One that cannot be made says of nobody else that he has it.
    let mut watch = back_without_lock();
    let why = "no space".to_owned();
    let told = watch.step(at(610), Input::LockFailed(why.clone()));
    assert_eq!(told, [Effect::TellLockFailed(why)]);
    let effects = watch.step(at(900), seen(Sight::Missing, &[]));
    assert_eq!(effects, [Effect::Release]);
}

#[test]
fn a_directory_that_comes_back_with_another_lock_is_not_stored_in_for_a_moment() {
    let mut watch = back_without_lock();
    let process = "7".to_owned();
    let why = Estranged::Taken {
        process: process.clone(),
    };
    let effects = watch.step(at(610), Input::LockTaken { process });
    assert_eq!(effects, [Effect::Withhold(why.clone())]);
    assert_eq!(watch.step(at(900), seen(Sight::Same, &[])), []);
    assert_eq!(watch.withheld(), Some(&why));
}

#[test]
fn a_lock_that_could_not_be_made_is_tried_before_a_directory_that_is_back_is_stored_in() {
    let mut watch = Watch::default();
    watch.step(at(0), seen(Sight::Missing, &[]));
    watch.step(at(1), Input::LockFailed("no space".to_owned()));
    let odd = [(Thing::Directory, Sight::Missing)];
    watch.step(at(300), seen(Sight::Missing, &odd));
    let effects = watch.step(at(600), seen(Sight::Other, &[]));
    assert_eq!(effects, [Effect::MakeLock]);
}

#[test]
fn the_directory_is_named_before_what_was_in_it() {
    let mut watch = Watch::default();
    let gone = |thing| (thing, Sight::Missing);
    let all = [Thing::Shard(0), Thing::Identity, Thing::Directory].map(gone);
    let effects = watch.step(at(0), seen(Sight::Missing, &all));
    let why = Estranged::Gone(Thing::Directory, Sight::Missing);
    assert_eq!(effects, [Effect::Withhold(why)]);
}

#[test]
fn what_cannot_be_looked_at_for_long_counts_as_gone() {
    let mut watch = Watch::default();
    let sight = Sight::Unclear("stale handle".into());
    let odd = [(Thing::Directory, sight.clone())];
    assert_eq!(watch.step(at(0), seen(Sight::Same, &odd)), []);
    assert_eq!(watch.step(at(100), seen(Sight::Same, &[])), []);
    assert_eq!(watch.step(at(300), seen(Sight::Same, &odd)), []);
    let effects = watch.step(at(600), seen(Sight::Same, &odd));
    let why = Estranged::Gone(Thing::Directory, sight);
    assert_eq!(effects, [Effect::Withhold(why)]);
}

#[test]
fn a_lock_that_another_process_has_withholds_for_good() {
    let mut watch = Watch::default();
    watch.step(at(0), seen(Sight::Other, &[]));
    let process = "7".to_owned();
    let why = Estranged::Taken {
        process: process.clone(),
    };
    let effects = watch.step(at(1), Input::LockTaken { process });
    assert_eq!(effects, [Effect::Withhold(why.clone())]);
    assert_eq!(watch.step(at(300), seen(Sight::Same, &[])), []);
    assert_eq!(watch.withheld(), Some(&why));
    assert!(why.to_string().contains("process 7"));
}
