//! Waits that end, and say what they waited for.
//!
//! A test names each wait by [`waiting`] for as long as it lasts; a poll goes through [`until`].
//! The fixtures of a test hold [`alive`]. A wait that lasts longer than it could on the slowest
//! machine that anyone would run tests on hangs: then all waits of the test are printed, past the
//! harness, and the process is ended, with those it has started. So no test waits for ever, and its
//! output says why.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::Write as _;
use std::panic::Location;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Longest time that something is polled for before the test fails.
pub const PATIENCE: Duration = Duration::from_secs(5 * 60);
/// Longest time for a wait that only the end of the process could interrupt.
const WAIT_MAX: Duration = Duration::from_secs(10 * 60);
/// Longest life of a fixture.
const TEST_MAX: Duration = Duration::from_secs(20 * 60);
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);

/// Something that lasts, until it is dropped.
#[derive(Debug)]
pub struct Waiting(u64);

#[derive(Debug)]
struct Wait {
    test: String,
    what: String,
    place: &'static Location<'static>,
    since: Instant,
    most: Option<Duration>,
}

#[derive(Debug)]
struct Waits {
    begun: u64,
    lasting: BTreeMap<u64, Wait>,
}

static WAITS: Mutex<Waits> = Mutex::new(Waits {
    begun: 0,
    lasting: BTreeMap::new(),
});

/// Notes that this test waits for `what`, from now on until the answer is dropped.
#[track_caller]
pub fn waiting(what: impl Display) -> Waiting {
    begin(what.to_string(), Some(WAIT_MAX))
}

/// Notes that this test has `what`, such as a node, from now on until the answer is dropped; tests
/// of a proof have it for as long as they were asked to go on.
#[track_caller]
pub fn alive(what: impl Display) -> Waiting {
    let proof = is_asked_for_more();
    begin(what.to_string(), (!proof).then_some(TEST_MAX))
}

/// Looks again and again until `holds`; fails with what it waited for, and what it saw last, after five minutes.
#[track_caller]
pub fn until(what: &str, between: Duration, mut holds: impl FnMut() -> Result<(), String>) {
    let _waiting = waiting(what);
    let begun = now();
    loop {
        let Err(saw) = holds() else { return };
        let waited = now() - begun;
        assert!(
            waited < PATIENCE,
            "waited {} s for this: {what}; last seen: {saw}",
            waited.as_secs()
        );
        thread::sleep(between);
    }
}

#[track_caller]
fn begin(what: String, most: Option<Duration>) -> Waiting {
    let mut waits = WAITS.lock();
    if waits.begun == 0 {
        let watch = thread::Builder::new().name("watchdog".into());
        watch.spawn(watch_over).unwrap();
    }
    waits.begun += 1;
    let id = waits.begun;
    let wait = Wait {
        test: thread::current().name().unwrap_or("?").to_owned(),
        what,
        place: Location::caller(),
        since: now(),
        most,
    };
    waits.lasting.insert(id, wait);
    Waiting(id)
}

impl Waiting {
    /// Something has come of what is waited for: from now on it may last as long again.
    pub fn renew(&self) {
        if let Some(wait) = WAITS.lock().lasting.get_mut(&self.0) {
            wait.since = now();
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITS.lock().lasting.remove(&self.0);
    }
}

/// Watches over the waits until the process ends.
fn watch_over() {
    loop {
        thread::sleep(BETWEEN_LOOKS);
        if let Some(told) = overdue(Duration::ZERO) {
            std::io::stderr().write_all(told.as_bytes()).ok();
            end_children();
            std::process::abort();
        }
    }
}

/// Report for a wait that will have lasted for too long by then: that wait, and all others that
/// last.
pub fn overdue(by: Duration) -> Option<String> {
    let at = now() + by;
    let waits = WAITS.lock();
    let waited = |wait: &Wait| at.saturating_duration_since(wait.since);
    let hangs = |wait: &&Wait| wait.most.is_some_and(|most| waited(wait) > most);
    let first = waits.lasting.values().find(hangs)?;
    let line = |wait: &Wait| {
        let (test, what, place) = (&wait.test, &wait.what, wait.place);
        format!("  {test}: {what} ({} s, {place})\n", waited(wait).as_secs())
    };
    let all: String = waits.lasting.values().map(line).collect();
    let test = &first.test;
    Some(format!(
        "\n{test} HANGS; this test program is ended. What tests wait for, or have:\n{all}"
    ))
}

/// Kills what this process has started, and what they have: they would go on without it.
fn end_children() {
    let mut doomed = children_of(std::process::id());
    let mut at = 0;
    while let Some(process) = doomed.get(at).copied() {
        doomed.extend(children_of(process));
        at += 1;
    }
    let mut kill = Command::new("kill");
    kill.arg("-KILL");
    kill.args(doomed.iter().map(u32::to_string));
    kill.status().ok();
}

fn children_of(process: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task"));
    let threads = threads.into_iter().flatten().flatten();
    let lists = threads.map(|one| std::fs::read_to_string(one.path().join("children")));
    let ids = |list: String| -> Vec<u32> {
        let ids = list.split_whitespace();
        ids.filter_map(|id| id.parse().ok()).collect()
    };
    lists.map(Result::unwrap_or_default).flat_map(ids).collect()
}

#[expect(
    clippy::disallowed_methods,
    reason = "what hangs is known by the clock alone"
)]
fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "the tests' own settings")]
fn is_asked_for_more() -> bool {
    std::env::vars_os().any(|(name, _)| name.to_string_lossy().starts_with("AIRMAIL_PROVE_"))
}
