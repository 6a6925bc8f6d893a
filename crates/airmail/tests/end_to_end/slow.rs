//! Three subscribers of one topic with a long past: one that begins at its start, one that never
//! reads, and one that is live. None holds up another, and each gets what it asked for.

use airmail_testkit::node::{self, Node};
use airmail_testkit::scale;
use airmail_testkit::waiting::waiting;
use std::fs;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::process::{Child, ChildStdout, Stdio};
use std::thread;

const LINE_BYTES: usize = 1024;
const LIVE_MESSAGES: usize = 1000;
/// Resident memory that a node may use beyond what it has when idle: its budgets, and slack for a
/// build without optimisation. Far below the backlog when that is run at full size.
const MEMORY_MAX: usize = 256 << 20;

#[test]
fn a_late_a_stuck_and_a_live_subscriber_do_not_disturb_one_another() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    let idle = resident_bytes_max(&node);
    let backlog = scale::backlog_bytes() / LINE_BYTES;
    let total = backlog + LIVE_MESSAGES;
    publish(&node, 0, backlog - 1);

    // From the last number of the backlog on: live as soon as it has that one.
    let mut live = Subscriber::start(&node, "latest", LIVE_MESSAGES + 1);
    let arrived = live.wait_for_first(&node, backlog - 1);
    // The output of the stuck one is a pipe that nobody reads until the end.
    let stuck = Subscriber::start(&node, "earliest", total);
    let late = Subscriber::start(&node, "earliest", total);
    let late = thread::Builder::new()
        .spawn(move || late.expect("the late one", 0..total))
        .unwrap();
    publish(&node, backlog, LIVE_MESSAGES);

    assert_eq!(arrived, line(backlog - 1));
    live.expect("the live one", backlog..total);
    late.join().unwrap();
    stuck.expect("the stuck one, once it reads", 0..total);
    let used = resident_bytes_max(&node).saturating_sub(idle);
    assert!(used < MEMORY_MAX, "{used} bytes more than when idle");
}

fn line(number: usize) -> String {
    format!("{number:0LINE_BYTES$}")
}

fn publish(node: &Node, first: usize, count: usize) {
    let mut input = String::with_capacity(count * (LINE_BYTES + 1));
    for number in first..first + count {
        input.push_str(&line(number));
        input.push('\n');
    }
    node::run(
        &mut node.airmail(&["pub", "--lines", "busy"]),
        input.as_bytes(),
    )
    .ok();
}

/// The most memory that the node has had resident so far.
fn resident_bytes_max(node: &Node) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", node.pid())).unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap_or("0 kB");
    line.trim()
        .trim_end_matches(" kB")
        .parse::<usize>()
        .unwrap()
        << 10
}

/// `airmail sub` in a process of its own.
struct Subscriber {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl Subscriber {
    fn start(node: &Node, from: &str, count: usize) -> Subscriber {
        let mut process = node
            .airmail(&["sub", "busy", "--from", from, "--count", &count.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Subscriber { process, output }
    }

    /// The first line, which is published once the node has this subscription.
    fn wait_for_first(&mut self, node: &Node, number: usize) -> String {
        node::wait_until("the live subscription", || subscriptions(node) >= 1);
        publish(node, number, 1);
        let mut first = String::new();
        let _waiting = waiting("the first line of a subscriber");
        self.output.read_line(&mut first).unwrap();
        first.trim_end().to_owned()
    }

    /// Reads to the end: these lines, and no others.
    fn expect(mut self, who: &str, numbers: Range<usize>) {
        let _waiting = waiting(format!("all of {who}"));
        let mut lines = self.output.lines().map(Result::unwrap);
        for number in numbers {
            let found = lines.next().unwrap_or_default();
            let start = found.trim_start_matches('0');
            assert!(found == line(number), "{who}: {start} in place of {number}");
        }
        assert_eq!(lines.next(), None, "{who}");
        assert!(self.process.wait().unwrap().success(), "{who}");
    }
}

/// Number of live subscriptions, by the node's metrics.
fn subscriptions(node: &Node) -> usize {
    node::metric(&node.http, "airmail_live_subscriptions").unwrap_or(0.0) as usize
}
