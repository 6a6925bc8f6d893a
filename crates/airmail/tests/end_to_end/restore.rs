//! A data directory that is copied, and one that is set back to an older copy of itself.

use airmail_testkit::lasting::lasting_address;
use airmail_testkit::node::{self, Node, airmail, wait_until};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

const TOPIC: &str = "restored";

/// A directory and its copies.
struct Bench {
    temp: tempfile::TempDir,
    address: String,
}

impl Bench {
    fn new() -> Bench {
        Bench {
            temp: tempfile::tempdir().unwrap(),
            address: lasting_address(),
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    fn start(&self) -> Node {
        Node::start_at(&self.at("data"), &self.address)
    }

    fn copy(&self) {
        shell(self.temp.path(), "cp -a data copy");
    }

    /// Puts the copy in the directory's place.
    fn set_back(&self) {
        fs::remove_dir_all(self.at("data")).unwrap();
        shell(self.temp.path(), "cp -a copy data");
    }

    fn repair(&self) -> String {
        let mut check = airmail();
        check
            .arg("check")
            .arg(self.at("data"))
            .arg("--repair-identity");
        node::run(&mut check, b"").ok()
    }
}

fn shell(directory: &Path, script: &str) {
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).current_dir(directory);
    node::run(&mut shell, b"").ok();
}

fn words(what: &str, range: std::ops::RangeInclusive<usize>) -> Vec<String> {
    range.map(|n| format!("{what} {n}")).collect()
}

fn publish(node: &Node, words: &[String]) {
    let mut command = node.airmail(&["pub", "--lines", TOPIC]);
    node::run(&mut command, (words.join("\n") + "\n").as_bytes()).ok();
}

fn history(node: &Node) -> Vec<String> {
    let printed = node.run(&["history", TOPIC]).ok();
    printed.lines().map(str::to_owned).collect()
}

/// The position after all of a topic's `count` messages.
fn position_after(node: &Node, count: usize) -> String {
    let count = count.to_string();
    let printed = node.run(&[
        "sub", TOPIC, "--from", "earliest", "--count", &count, "--json",
    ]);
    let printed = printed.ok();
    let last: serde_json::Value = serde_json::from_str(printed.lines().last().unwrap()).unwrap();
    last["position"].as_str().unwrap().to_owned()
}

/// A subscriber from a position, with its outputs in files.
struct Subscriber {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Subscriber {
    fn start(bench: &Bench, node: &Node, position: &str, count: usize) -> Subscriber {
        let (out, err) = (bench.at("out"), bench.at("err"));
        let count = count.to_string();
        let mut command = node.airmail(&["sub", TOPIC, "--from", position, "--count", &count]);
        command.stdout(File::create(&out).unwrap());
        command.stderr(File::create(&err).unwrap());
        Subscriber {
            child: command.spawn().unwrap(),
            out,
            err,
        }
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.err).unwrap()
    }

    /// Its messages, when it has all that it waits for.
    fn end(mut self) -> (Vec<String>, String) {
        wait_until("the subscriber has all of its messages", || {
            self.child.try_wait().unwrap().is_some()
        });
        let printed = fs::read_to_string(&self.out).unwrap();
        (printed.lines().map(str::to_owned).collect(), self.said())
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A directory with 100 messages, set back to when it had them after there were 200; and the
/// position after these.
fn set_back() -> (Bench, String) {
    let bench = Bench::new();
    let node = bench.start();
    publish(&node, &words("old", 1..=100));
    assert!(node.stop().success());
    bench.copy();
    let node = bench.start();
    publish(&node, &words("gone", 101..=200));
    let position = position_after(&node, 200);
    assert!(node.stop().success());
    bench.set_back();
    (bench, position)
}

#[test]
fn a_subscriber_from_beyond_the_end_of_a_restored_node_is_told_a_gap_and_gets_all_that_is_new() {
    let (bench, position) = set_back();
    let node = bench.start();
    publish(&node, &words("new", 1..=20));
    let subscriber = Subscriber::start(&bench, &node, &position, 250);
    wait_until("the gap is told", || subscriber.said().contains("gap"));
    publish(&node, &words("new", 21..=150));
    let (messages, said) = subscriber.end();
    let all = [words("old", 1..=100), words("new", 1..=150)].concat();
    assert_eq!(messages, all);
    let told = said.lines().find(|line| line.contains("gap")).unwrap();
    assert!(told.contains("201") && told.contains("loss"), "{said}");
    wait_until("the node has told it", || {
        node.said().contains("older copy")
    });
    // The new life outlives the node: the position is stale for good.
    node.kill();
    let node = bench.start();
    let (messages, said) = Subscriber::start(&bench, &node, &position, 250).end();
    assert_eq!((messages, said.contains("gap")), (all, true), "{said}");
}

#[test]
fn after_a_repair_a_stale_position_is_told_though_the_numbers_have_caught_up() {
    let (bench, position) = set_back();
    assert!(bench.repair().contains("each log begins one"));
    assert!(bench.repair().contains("asked for already"));
    let node = bench.start();
    publish(&node, &words("new", 1..=150));
    let subscriber = Subscriber::start(&bench, &node, &position, 250);
    let (messages, said) = subscriber.end();
    assert_eq!(
        messages,
        [words("old", 1..=100), words("new", 1..=150)].concat()
    );
    assert!(
        said.contains("gap from 201") && said.contains("loss"),
        "{said}"
    );
    let mut check = airmail();
    check
        .arg("check")
        .arg(bench.at("data"))
        .arg("--repair-identity");
    let refused = node::run(&mut check, b"").failed(1);
    assert!(refused.contains("in use"), "{refused}");
    // The next start begins no further lives: a position of this one is good.
    let now = position_after(&node, 250);
    assert!(node.stop().success());
    let node = bench.start();
    let subscriber = Subscriber::start(&bench, &node, &now, 1);
    publish(&node, &words("newer", 1..=1));
    let (messages, said) = subscriber.end();
    assert_eq!((messages, said.as_str()), (words("newer", 1..=1), ""));
}

#[test]
fn a_publisher_that_goes_on_over_a_restore_stores_what_it_publishes_once_and_in_order() {
    let bench = Bench::new();
    let node = bench.start();
    let mut publisher = node.airmail(&["pub", "--lines", TOPIC]);
    publisher.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut publisher = publisher.spawn().unwrap();
    let mut input = publisher.stdin.take().unwrap();
    let mut say = |words: &[String]| {
        input
            .write_all((words.join("\n") + "\n").as_bytes())
            .unwrap();
        input.flush().unwrap();
    };
    say(&words("old", 1..=100));
    wait_until("the first are stored", || history(&node).len() == 100);
    assert!(node.stop().success());
    bench.copy();
    let node = bench.start();
    say(&words("gone", 101..=200));
    wait_until("the others are stored", || history(&node).len() == 200);
    assert!(node.stop().success());
    bench.set_back();
    let node = bench.start();
    say(&words("new", 1..=150));
    drop(input);
    let done = publisher.wait_with_output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let all = [words("old", 1..=100), words("new", 1..=150)].concat();
    assert_eq!(history(&node), all);
}

/// Commands with which docs/backup.md copies a running node's directory; a file that is gone
/// meanwhile is no matter.
const COPY: &str = "mkdir copy
cp -a data/identity data/identity.copy copy/
for shard in $(cd data && ls -dr shard-*); do
  mkdir copy/$shard
  cp -a data/$shard/shard data/$shard/checkpoint-* data/$shard/ends copy/$shard/
  cp -a data/$shard/seg-* copy/$shard/
done
true";

#[test]
fn a_copy_of_a_running_nodes_directory_has_all_that_was_acknowledged_before_once_and_sound() {
    copied_under_load(COPY, true);
}

#[test]
fn a_plain_copy_of_a_running_nodes_directory_has_all_that_was_acknowledged_before_once() {
    copied_under_load("cp -a data copy; true", false);
}

/// A node whose segments are small, so that there are many.
fn start_small(data: &Path) -> Node {
    let mut command = airmail();
    command.args(["serve", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
    command.arg("--data").arg(data);
    command.envs([
        ("AIRMAIL_STORAGE_SEGMENT_BYTES", "1280KiB"),
        ("AIRMAIL_LIMITS_FRAME_BYTES", "256KiB"),
        ("AIRMAIL_LIMITS_MESSAGE_BYTES", "128KiB"),
        ("AIRMAIL_LIMITS_BATCH_BYTES", "32KiB"),
        ("AIRMAIL_LIMITS_CREDIT_BYTES", "256KiB"),
    ]);
    Node::spawn(command)
}

/// Copies the directory of a node that is published to, several times, and reads each copy.
fn copied_under_load(script: &str, sound: bool) {
    const EACH: usize = 400;
    const COPIES: usize = 4;
    let bench = Bench::new();
    let node = start_small(&bench.at("data"));
    // Runs of the publisher that have ended, so that all of their messages are acknowledged.
    let (acknowledged, enough) = (AtomicUsize::new(0), AtomicBool::new(false));
    let filler = "x".repeat(300);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !enough.load(Ordering::Relaxed) {
                let first = acknowledged.load(Ordering::Relaxed) * EACH;
                let messages: Vec<String> = words("message", first + 1..=first + EACH)
                    .into_iter()
                    .map(|message| format!("{message} {filler}"))
                    .collect();
                publish(&node, &messages);
                acknowledged.fetch_add(1, Ordering::Relaxed);
            }
        });
        for round in 1..=COPIES {
            wait_until("more is acknowledged", || {
                acknowledged.load(Ordering::Relaxed) >= round * 8
            });
            let before = acknowledged.load(Ordering::Relaxed) * EACH;
            shell(bench.temp.path(), script);
            fs::rename(bench.at("copy"), bench.at(&format!("copy-{round}"))).unwrap();
            fs::write(bench.at(&format!("before-{round}")), before.to_string()).unwrap();
        }
        enough.store(true, Ordering::Relaxed);
    });
    node.kill();
    for round in 1..=COPIES {
        let copy = bench.at(&format!("copy-{round}"));
        let before = fs::read_to_string(bench.at(&format!("before-{round}"))).unwrap();
        let mut check = airmail();
        let checked = node::run(check.arg("check").arg(&copy), b"");
        assert!(!sound || checked.code == Some(0), "{checked:#?}");
        let node = start_small(&copy);
        let printed = history(&node);
        let numbers: Vec<usize> = printed
            .iter()
            .map(|line| {
                let (message, rest) = line.rsplit_once(' ').unwrap();
                assert_eq!(rest, filler);
                message.strip_prefix("message ").unwrap().parse().unwrap()
            })
            .collect();
        let once: BTreeSet<usize> = numbers.iter().copied().collect();
        assert_eq!(once.len(), numbers.len(), "something came twice");
        assert!(numbers.is_sorted());
        let missing: Vec<usize> = (1..=before.parse().unwrap())
            .filter(|number| !once.contains(number))
            .collect();
        assert!(missing.is_empty(), "copy {round} lacks {missing:?}");
    }
}
