//! Nodes of a fixed list, which speak no gossip: they find each other, show what is wrong, and clients go on at another
//! node when theirs is killed or drains; and nobody is let in who is not of the cluster.

use crate::cluster::{part_command, publish, refused, secret, subscribed, tower_at, with};
use crate::members::{
    ALL_LIVE, drain_one, faults, reader, status, wait_for_states, wait_until_well,
};
use crate::subscriber::Subscriber;
use airmail_client::Client;
use airmail_testkit::node::{self, Node, wait_until};
use airmail_testkit::waiting::waiting;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

/// A list of three nodes: the tower, `one` and `other`.
struct List {
    addresses: [String; 3],
}

impl List {
    /// Addresses have to be known before any node runs, so none is the system's choice: a host of loopback that is this
    /// process's alone, and ports of this test.
    fn new() -> List {
        static LISTS: AtomicU16 = AtomicU16::new(0);
        let first = 7402 + 3 * LISTS.fetch_add(1, Ordering::Relaxed);
        let [_, high, middle, low] = std::process::id().to_be_bytes();
        let address = |node| format!("127.{}.{middle}.{low}:{}", high | 128, first + node);
        List {
            addresses: [0, 1, 2].map(address),
        }
    }

    fn peers(&self) -> String {
        self.addresses.join(",")
    }

    fn tower(&self, data: &Path, flags: &[&str]) -> Node {
        let peers = self.peers();
        let flags = [&["--peers", &peers], flags].concat();
        tower_at(data, &self.addresses[0], &flags)
    }

    fn gateway_command(&self, node: usize, flags: &[&str]) -> Command {
        let name = ["tower", "one", "other"][node];
        let mut command = part_command(name, "pilot,copilot");
        command.args(["--cluster", &self.addresses[node], "--peers", &self.peers()]);
        with(command, flags)
    }

    fn gateway(&self, node: usize, flags: &[&str]) -> Node {
        Node::spawn(self.gateway_command(node, flags))
    }

    /// All three, each of which knows the others.
    fn all(&self, data: &Path, flags: &[&str]) -> (Node, Node, Node) {
        let tower = self.tower(data, flags);
        let (one, other) = (self.gateway(1, flags), self.gateway(2, flags));
        wait_until_well([&tower, &one, &other]);
        (tower, one, other)
    }
}

#[test]
fn a_client_loses_nothing_when_its_node_of_a_fixed_list_is_killed_and_the_others_name_it() {
    const BEFORE: u32 = 20;
    const ALL: u32 = 60;
    let directory = tempfile::tempdir().unwrap();
    let list = List::new();
    let (tower, one, other) = list.all(directory.path(), &[]);
    let mut live = Subscriber::start(&one, "news");
    subscribed(&one);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let url = format!("airmail://{}", one.grpc);
    let client = runtime.block_on(async { Client::builder().url(&url).connect().await.unwrap() });
    let publish_all = |numbers: std::ops::Range<u32>| {
        runtime.block_on(async {
            for number in numbers {
                client.publish("news", number.to_string()).await.unwrap();
            }
        });
    };
    publish_all(0..BEFORE);
    one.kill();
    publish_all(BEFORE..ALL);
    let expected: Vec<String> = (0..ALL).map(|number| number.to_string()).collect();
    assert_eq!(live.take(ALL as usize), expected);
    assert_eq!(
        tower
            .run(&["history", "news"])
            .ok()
            .lines()
            .collect::<Vec<_>>(),
        expected
    );
    for node in [&tower, &other] {
        wait_until("a fault", || {
            faults(node).starts_with("node one has been down")
        });
        wait_for_states(
            node,
            &[("one", "down"), ("other", "live"), ("tower", "live")],
        );
        assert_eq!(status(node).1, 1);
    }
    let one = list.gateway(1, &[]);
    wait_until_well([&tower, &one, &other]);
}

#[test]
fn clients_leave_a_node_of_a_fixed_list_that_drains_and_it_has_left_when_it_is_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let right = secret(directory.path(), "secret", &"r".repeat(32), 0o600);
    let flags = ["--secret-file", right.to_str().unwrap()];
    let (tower, one, other) = List::new().all(&directory.path().join("data"), &flags);
    let mut live = reader(&one, &tower);
    // Asked of any node.
    let said = drain_one(&other);
    assert!(said.contains("no client is left"), "{said}");
    for node in [&tower, &other] {
        wait_for_states(
            node,
            &[("one", "draining"), ("other", "live"), ("tower", "live")],
        );
        assert_eq!(faults(node), "");
    }
    publish(&other, "news", "meanwhile");
    assert_eq!(live.take(1), ["meanwhile"]);
    one.stop();
    for node in [&tower, &other] {
        wait_for_states(
            node,
            &[("one", "left"), ("other", "live"), ("tower", "live")],
        );
        assert_eq!(faults(node), "");
    }
    publish(&tower, "news", "after");
    assert_eq!(live.take(1), ["after"]);
}

#[test]
fn nodes_of_a_fixed_list_are_started_in_any_order_and_one_that_is_missing_is_shown_by_its_address()
{
    let directory = tempfile::tempdir().unwrap();
    let list = List::new();
    let mut command = list.gateway_command(1, &[]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let mut said = BufReader::new(process.stderr.take().unwrap()).lines();
    let waits = waiting("a gateway that says what it waits for");
    assert!(said.any(|line| line.unwrap().contains("cannot be reached yet")));
    drop(waits);
    let tower = list.tower(directory.path(), &[]);
    let missing = &list.addresses[2];
    wait_for_states(
        &tower,
        &[(missing, "down"), ("one", "live"), ("tower", "live")],
    );
    assert_eq!(status(&tower).1, 1);
    let other = list.gateway(2, &[]);
    for node in [&tower, &other] {
        wait_for_states(node, &ALL_LIVE);
        wait_until("no faults", || faults(node).is_empty());
    }
    process.kill().unwrap();
    process.wait().unwrap();
}

#[test]
fn who_has_not_the_secret_of_a_fixed_list_gets_nowhere() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let right = secret(at, "right", &"r".repeat(32), 0o600);
    let wrong = secret(at, "wrong", &"w".repeat(40), 0o600);
    let list = List::new();
    let tower = list.tower(
        &at.join("data"),
        &["--secret-file", right.to_str().unwrap()],
    );
    let said = refused(list.gateway_command(1, &[]), 1);
    let why = "node tower has a secret, and node one has none";
    assert!(
        said.contains("cluster.peers") && said.contains(why),
        "{said}"
    );
    let said = refused(
        list.gateway_command(1, &["--secret-file", wrong.to_str().unwrap()]),
        1,
    );
    assert!(said.contains("have different secrets"), "{said}");
    // A tower with the wrong one is a cluster of its own, and is not believed.
    let mut stranger = node::serve(&at.join("other"));
    stranger.args(["--name", "one", "--cluster", &list.addresses[1]]);
    stranger.args(["--peers", &list.peers()]);
    stranger.arg("--secret-file").arg(wrong);
    let _stranger = Node::spawn(stranger);
    wait_until("a datagram that is dropped", || {
        tower.said().contains("without the cluster's secret")
    });
    let [_, one, other] = &list.addresses;
    wait_for_states(&tower, &[(one, "down"), (other, "down"), ("tower", "live")]);
}

#[test]
fn a_tower_that_gossips_says_that_a_node_with_a_fixed_list_does_not() {
    let directory = tempfile::tempdir().unwrap();
    let list = List::new();
    let tower = tower_at(directory.path(), &list.addresses[0], &[]);
    let one = list.gateway(1, &[]);
    wait_until("a warning", || {
        tower
            .said()
            .contains("all nodes of a cluster have cluster.peers, or none has")
    });
    publish(&one, "news", "by the link all the same");
}

#[test]
fn a_fixed_list_that_cannot_be_is_wrong_usage() {
    let gateway = Vec::new();
    let listening = vec!["--cluster", "127.0.0.1:0"];
    let join = [&listening[..], &["--join", "127.0.0.1:1"]].concat();
    let many: Vec<String> = (1..=33).map(|port| format!("127.0.0.1:{port}")).collect();
    let many = many.join(",");
    for (flags, peers, words) in [
        (
            &join,
            "127.0.0.1:1",
            ["cluster.peers", "127.0.0.1:1", "beside cluster.join"],
        ),
        (
            &gateway,
            "127.0.0.1:1",
            ["cluster.listen", "", "HOST:PORT with cluster.peers"],
        ),
        (
            &listening,
            "127.0.0.1:1,,127.0.0.1:2",
            ["--peers", "127.0.0.1:1,,127.0.0.1:2", "HOST:PORT"],
        ),
        (&listening, "tower", ["--peers", "tower", "HOST:PORT"]),
        (
            &listening,
            &many,
            [
                "--peers",
                "127.0.0.1:16",
                "at most 32 addresses, and it has 33",
            ],
        ),
    ] {
        let mut command = part_command("g", "pilot,copilot");
        command.args(["--peers", peers]);
        let said = refused(with(command, flags), 2);
        assert!(
            words.iter().all(|word| said.contains(word)),
            "{words:?}: {said}"
        );
    }
}
