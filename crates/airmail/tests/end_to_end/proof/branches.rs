//! A wide tree: a root, sixteen nodes below it, and four leaves below each of these, 81 processes in all. One of the
//! sixteen, drawn at random, is killed every ten seconds, and started again fifteen seconds later; each leaf has a
//! subscriber, and four of them a publisher.
//!
//! What must hold is that nothing acknowledged is lost, reordered or seen twice. How long the subscribers of those below
//! a node that was killed wait is told always, and judged with `AIRMAIL_PROVE_JUDGE`. The root has as many children as
//! it may, so whoever comes to it then is sent on to another node.

use super::Plan;
use super::load::{Load, Topic};
use super::times::Times;
use super::victim::SETTINGS;
use airmail_bench::process::Usage;
use airmail_testkit::lasting::lasting_address;
use airmail_testkit::node::{Node, airmail, serve, wait_until};
use airmail_testkit::scale;
use rand::Rng;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;
use tokio::time::Instant;

const PUBLISHERS: usize = 4;
/// Messages a second of each publisher.
const RATE: u64 = 640;
const TOPICS: u32 = 2;
/// Memory in which each node keeps what its parent gave.
const CACHE: &str = "4MiB";

/// Size of a tree, and half of the time between two kills.
struct Size {
    branches: usize,
    leaves: usize,
    half: Duration,
}

impl Size {
    fn of_run() -> Size {
        match scale::prove("ROUNDS") {
            None => Size {
                branches: 3,
                leaves: 2,
                half: Duration::from_millis(1_500),
            },
            Some(_) => Size {
                branches: 16,
                leaves: 4,
                half: Duration::from_secs(5),
            },
        }
    }
}

#[test]
fn nothing_acknowledged_is_lost_reordered_or_seen_twice_when_branches_of_a_wide_tree_are_killed() {
    let plan = Plan::new("branches", 3);
    let size = Size::of_run();
    let directory = tempfile::tempdir().unwrap();
    let mut tree = Tree::start(directory.path(), &size);
    let mut load = tree.load(&plan);
    load.wait_for_all();
    let begun = (Instant::now(), tree.usage());
    let (mut times, mut killed) = (Times::default(), None);
    for round in plan.rounds() {
        let _watch = plan.watch(round, directory.path());
        let running: Vec<usize> = (0..size.branches)
            .filter(|branch| Some(*branch) != killed)
            .collect();
        let branch = running[plan.choices(round).random_range(0..running.len())];
        load.mark();
        tree.kill(branch);
        thread::sleep(size.half);
        load.wait_for_all();
        let waits = load.subscribers_waits();
        let below = &waits[branch * size.leaves..][..size.leaves];
        times.take("parent killed", below.iter().copied(), None);
        plan.tell(round, &format!("branch {branch}: {times}"));
        // The one of the round before has been gone for one and a half.
        if let Some(again) = killed.replace(branch) {
            tree.start_branch(again);
        }
        thread::sleep(size.half);
    }
    let last = plan.rounds().end;
    let _watch = plan.watch(last, directory.path());
    let used = tree.usage();
    let cores = [0, 1, 2].map(|kind| {
        let time = used[kind].since(&begun.1[kind]).cpu_us as f64;
        time / begun.0.elapsed().as_micros() as f64
    });
    let mib = used.map(|usage| usage.rss_bytes >> 20);
    killed
        .into_iter()
        .for_each(|branch| tree.start_branch(branch));
    load.stop_publishing();
    load.wait_for_followers();
    let messages = load.check_history();
    wait_until("all to be well, as the root sees it", || {
        tree.root.run(&["cluster", "status"]).code == Some(0)
    });
    plan.tell(last, &format!("clean: {messages} messages; {times}; root, branches, leaves: cores {cores:.2?}, MiB {mib:?}"));
    if scale::prove("JUDGE").is_some() {
        times.judge();
    }
}

/// The nodes of a tree.
struct Tree {
    root: Node,
    /// Addresses where leaves reach the branches, and these where they run.
    branches: Vec<(String, Option<Node>)>,
    /// Those of the first branch, then those of the second, and so on.
    leaves: Vec<Node>,
    /// Processor time of branches that were killed, in microseconds.
    killed_cpu_us: u64,
}

impl Tree {
    fn start(directory: &Path, size: &Size) -> Tree {
        let mut root = serve(directory);
        root.args(["--name", "root", "--cluster", "127.0.0.1:0"]);
        let branches = (0..size.branches).map(|_| (lasting_address(), None));
        let mut tree = Tree {
            root: Node::spawn(with_settings(root)),
            branches: branches.collect(),
            leaves: Vec::new(),
            killed_cpu_us: 0,
        };
        (0..size.branches).for_each(|branch| tree.start_branch(branch));
        for leaf in 0..size.branches * size.leaves {
            let parent = &tree.branches[leaf / size.leaves].0;
            let mut command = child(&format!("leaf-{leaf}"), parent, "127.0.0.1:0");
            // Its clients keep to it.
            command.env("AIRMAIL_CLUSTER_HOST", format!("leaf-{leaf}"));
            tree.leaves.push(Node::spawn(command));
        }
        tree
    }

    fn start_branch(&mut self, branch: usize) {
        let above = self.root.address("nodes");
        let (address, node) = &mut self.branches[branch];
        let command = child(&format!("branch-{branch}"), &above, address);
        *node = Some(Node::spawn(command));
    }

    fn kill(&mut self, branch: usize) {
        let node = self.branches[branch].1.take().unwrap();
        self.killed_cpu_us += Usage::of(node.pid()).cpu_us;
        node.kill();
    }

    /// Starts a load with a subscriber at each leaf, in their order.
    fn load(&self, plan: &Plan) -> Load {
        let topics = (0..TOPICS).map(|index| Topic {
            namespace: "default",
            name: format!("topic-{index}"),
            index,
            reserves: false,
        });
        let mut load = Load::at(self.root.grpc.clone(), topics.collect());
        let mut choices = plan.choices(u64::MAX);
        let topics = load.topics.clone();
        for (number, leaf) in self.leaves.iter().enumerate() {
            load.begin_on(&format!("leaf-{number}"), &leaf.grpc);
            if number % (self.leaves.len() / PUBLISHERS).max(1) == 0 {
                load.publish(choices.random(), RATE);
            }
            load.follow(&topics[number % topics.len()], false);
        }
        load
    }

    /// Use of the machine by the root, by its children and by the leaves.
    fn usage(&self) -> [Usage; 3] {
        let branches = self.branches.iter();
        let branches = branches.filter_map(|(_, node)| node.as_ref().map(Node::pid));
        let leaves: Vec<u32> = self.leaves.iter().map(Node::pid).collect();
        let branches: Vec<u32> = branches.collect();
        let all = [&[self.root.pid()][..], &branches, &leaves];
        let mut usage = all.map(Usage::of_all);
        usage[1].cpu_us += self.killed_cpu_us;
        usage
    }
}

fn with_settings(mut command: Command) -> Command {
    command.envs(SETTINGS);
    command
}

/// The command of a node below the one at this address, whose own children reach it at `cluster`.
fn child(name: &str, parent: &str, cluster: &str) -> Command {
    let mut command = airmail();
    let log = format!("tree://{parent}?cache={CACHE}");
    command.args(["serve", "--name", name, "--log", &log]);
    command.args(["--cluster", cluster]);
    for address in ["--listen", "--http"] {
        command.args([address, "127.0.0.1:0"]);
    }
    with_settings(command)
}
