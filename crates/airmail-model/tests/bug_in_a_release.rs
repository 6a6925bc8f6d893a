//! The macro as a release has it. A process of its own, because whether bugs panic is a setting of
//! the process.

use airmail_model::bug;
use parking_lot::Mutex;

static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Meets a bug and answers nevertheless.
fn look_up(id: u64) -> Result<u64, String> {
    let Some(found) = (id == 1).then_some(id) else {
        bug!("segment {id} is gone");
        return Err(format!("segment {id} failed"));
    };
    Ok(found)
}

#[test]
fn where_bugs_do_not_panic_a_caller_is_answered_and_the_bug_is_counted_and_told_once() {
    bug::set_panics(false);
    assert!(bug::on_first_at_each_place(|met| {
        TOLD.lock().push(met.to_string());
    }));
    assert_eq!(look_up(1), Ok(1));
    assert_eq!((bug::count(), bug::first()), (0, None));
    for id in 2..5 {
        assert_eq!(look_up(id), Err(format!("segment {id} failed")));
    }
    assert_eq!(bug::count(), 3);
    let first = bug::first().unwrap();
    assert_eq!(first.facts, "segment 2 is gone");
    assert!(first.file.ends_with("bug_in_a_release.rs"), "{first}");
    assert_eq!(*TOLD.lock(), [first.to_string()]);
}
