//! Gateways and a tower as processes of their own: clients of a gateway see what clients of a single node see, and
//! go on when the tower has been away; and nobody is let in who is not of the cluster.

use crate::subscriber::Subscriber;
use airmail_bench::process::Usage;
use airmail_testkit::node::{self, Node, airmail, wait_until};
use airmail_testkit::scale;
use airmail_testkit::waiting::waiting;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A node that lets others use its logs, at an address of the system's choice.
pub(crate) fn tower(data: &Path, flags: &[&str]) -> Node {
    tower_at(data, "127.0.0.1:0", flags)
}

pub(crate) fn tower_at(data: &Path, cluster: &str, flags: &[&str]) -> Node {
    let mut command = node::serve(data);
    command.args(["--name", "tower", "--cluster", cluster]);
    Node::spawn(with(command, flags))
}

pub(crate) fn with(mut command: Command, flags: &[&str]) -> Command {
    command.args(flags);
    command
}

/// The command of a node that uses a tower's logs.
pub(crate) fn gateway_command(name: &str, tower: &str, flags: &[&str]) -> Command {
    with(member_command(name, "pilot,copilot", tower), flags)
}

/// The command of a node with these roles that uses a tower's logs.
pub(crate) fn member_command(name: &str, roles: &str, tower: &str) -> Command {
    let mut command = part_command(name, roles);
    command.args(["--join", tower]);
    command
}

/// The command of a node with these roles, which does not say yet whose logs it uses.
pub(crate) fn part_command(name: &str, roles: &str) -> Command {
    let mut command = airmail();
    command.args(["serve", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
    command.args(["--roles", roles, "--name", name]);
    command
}

pub(crate) fn gateway(name: &str, tower: &Node, flags: &[&str]) -> Node {
    Node::spawn(gateway_command(name, &tower.address("nodes"), flags))
}

pub(crate) fn publish(node: &Node, topic: &str, text: &str) {
    node.run(&["pub", topic, text]).ok();
}

/// Waits for a node's one subscription to be live.
pub(crate) fn subscribed(node: &Node) {
    wait_until("a subscription", || {
        node::metric(&node.http, "airmail_live_subscriptions") == Some(1.0)
    });
}

/// Clients of three nodes that have one storage see the same, also of a namespace with four logs that the last makes.
pub(crate) fn assert_clients_see_the_same(nodes: [&Node; 3]) {
    let mut subscribers = nodes.map(|node| Subscriber::start(node, "news"));
    nodes.iter().for_each(|node| subscribed(node));
    for (number, node) in nodes.iter().enumerate() {
        publish(node, "news", &format!("of node {number}"));
        publish(node, "other", "for nobody");
    }
    let expected = ["of node 0", "of node 1", "of node 2"];
    for subscriber in &mut subscribers {
        assert_eq!(subscriber.take(3), expected);
    }
    for node in nodes {
        let history = node.run(&["history", "news"]).ok();
        assert_eq!(history.lines().collect::<Vec<_>>(), expected);
        assert_eq!(node.run(&["topics"]).ok(), "news\nother\n");
    }
    let last = nodes[2];
    last.run(&["namespace", "create", "space", "--logs", "4"])
        .ok();
    for (node, text) in nodes.iter().zip(["a", "b", "c"]) {
        node.run(&["pub", "t", text, "--namespace", "space"]).ok();
    }
    for node in nodes {
        let history = node.run(&["history", "t", "--namespace", "space"]).ok();
        assert_eq!(history, "a\nb\nc\n");
    }
}

#[test]
fn clients_of_two_gateways_and_of_the_tower_see_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let tower = tower(directory.path(), &["--shards", "2"]);
    let one = gateway("one", &tower, &["--shards", "2"]);
    let other = gateway("other", &tower, &[]);
    assert_clients_see_the_same([&tower, &one, &other]);
    other.run(&["namespace", "delete", "space"]).ok();
    wait_until("the namespace's end", || {
        one.run(&["history", "t", "--namespace", "space"]).code != Some(0)
    });
}

#[test]
fn subscribers_of_a_gateway_miss_nothing_and_get_nothing_twice_when_the_tower_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let first = tower(directory.path(), &[]);
    let address = first.address("nodes");
    let gateway = gateway("one", &first, &[]);
    let mut live = Subscriber::start(&gateway, "news");
    subscribed(&gateway);
    publish(&gateway, "news", "1");
    publish(&gateway, "news", "2");
    assert_eq!(live.take(2), ["1", "2"]);
    first.kill();
    // Meanwhile a publish ends by its deadline, and says so.
    let refused = gateway.run(&["pub", "news", "lost", "--timeout", "5s"]);
    let said = refused.failed(1);
    assert!(
        said.contains("UNAVAILABLE") || said.contains("OUTCOME_UNKNOWN"),
        "{said}"
    );
    let _again = tower_at(directory.path(), &address, &[]);
    publish(&gateway, "news", "3");
    publish(&gateway, "news", "4");
    let history = gateway.run(&["history", "news"]).ok();
    let stored: Vec<&str> = history.lines().collect();
    // Its outcome may have been unknown.
    let acknowledged: Vec<&str> = stored
        .iter()
        .copied()
        .filter(|line| *line != "lost")
        .collect();
    assert_eq!(acknowledged, ["1", "2", "3", "4"]);
    assert_eq!(live.take(stored.len() - 2), stored[2..]);
}

/// Memory of the tower for a link without traffic, and for knowing the node that it is to.
const IDLE_LINK_BYTES_MAX: u64 = 256 << 10;

#[test]
fn an_idle_link_takes_no_more_of_a_tower_than_its_bound() {
    let directory = tempfile::tempdir().unwrap();
    let tower = tower(directory.path(), &[]);
    let _first = gateway("first", &tower, &[]);
    let before = Usage::of(tower.pid()).rss_bytes;
    let names = (0..12).map(|number| format!("gateway-{number}"));
    let gateways: Vec<Node> = names.map(|name| gateway(&name, &tower, &[])).collect();
    gateways.iter().for_each(|node| publish(node, "topic", "x"));
    let grown = Usage::of(tower.pid()).rss_bytes.saturating_sub(before);
    let each = grown / gateways.len() as u64;
    scale::say(&format!("an idle link: {} KiB of the tower\n", each >> 10));
    assert!(each <= IDLE_LINK_BYTES_MAX, "{each} bytes each");
}

#[test]
fn a_gateway_waits_for_its_tower_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let tower_address = {
        let tower = tower(directory.path(), &[]);
        let address = tower.address("nodes");
        tower.stop();
        address
    };
    let mut command = gateway_command("one", &tower_address, &[]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let mut said = BufReader::new(process.stderr.take().unwrap()).lines();
    let waiting = waiting("a gateway that says what it waits for");
    let waits = said.any(|line| line.unwrap().contains("cannot be reached yet"));
    assert!(waits, "it does not say that it waits");
    drop(waiting);
    let _tower = tower_at(directory.path(), &tower_address, &[]);
    let mut printed = BufReader::new(process.stdout.take().unwrap()).lines();
    let ready = printed.next().unwrap().unwrap();
    assert!(ready.contains("is ready, logs of the node at"), "{ready}");
    process.kill().unwrap();
    process.wait().unwrap();
}

pub(crate) fn secret(directory: &Path, name: &str, text: &str, mode: u32) -> PathBuf {
    let path = directory.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path
}

/// Words of a gateway that ends instead of being ready.
pub(crate) fn refused(mut command: Command, code: i32) -> String {
    node::run(&mut command, b"").failed(code)
}

#[test]
fn who_has_not_the_secret_or_has_a_name_in_use_gets_nowhere() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let right = secret(at, "right", &"r".repeat(32), 0o600);
    let right = right.to_str().unwrap();
    let wrong = secret(at, "wrong", &"w".repeat(40), 0o600);
    let tower = tower(&at.join("data"), &["--secret-file", right]);
    let address = tower.address("nodes");
    let asks = |name: &str, flags: &[&str]| gateway_command(name, &address, flags);

    let said = refused(asks("one", &[]), 1);
    assert!(
        said.contains("node tower has a secret, and node one has none"),
        "{said}"
    );
    let said = refused(asks("one", &["--secret-file", wrong.to_str().unwrap()]), 1);
    assert!(
        said.contains("have different secrets") && said.contains("SECRET"),
        "{said}"
    );

    let one = gateway("one", &tower, &["--secret-file", right]);
    publish(&one, "t", "x");
    let said = refused(asks("one", &["--secret-file", right]), 1);
    assert!(said.contains("the name one is that of node"), "{said}");
    // As soon as the other is gone, its name is free.
    one.stop();
    let again = gateway("one", &tower, &["--secret-file", right]);
    assert_eq!(again.run(&["history", "t"]).ok(), "x\n");
}

#[test]
fn a_secret_that_others_may_read_or_that_is_short_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let open = secret(at, "open", &"r".repeat(32), 0o644);
    let short = secret(at, "short", &format!("{}\n", "r".repeat(31)), 0o600);
    let missing = at.join("missing");
    for (path, why) in [
        (&open, "chmod 600"),
        (&short, "has 31"),
        (&missing, "can be read"),
    ] {
        let mut command = node::serve(&at.join("data"));
        command
            .args(["--cluster", "127.0.0.1:0", "--secret-file"])
            .arg(path);
        let said = refused(command, 1);
        assert!(
            said.contains("cluster.secret_file") && said.contains(why),
            "{said}"
        );
        assert!(!at.join("data").exists(), "something was made");
    }
}

#[test]
fn what_a_gateway_cannot_have_is_wrong_usage() {
    for (flags, field) in [
        (
            &["--roles", "pilot,copilot", "--name", "g"][..],
            "cluster.join",
        ),
        (
            &["--roles", "pilot,copilot", "--join", "127.0.0.1:1"],
            "node.name",
        ),
        (&["--join", "127.0.0.1:1"], "cluster.join"),
        (&["--roles", "pilot"], "cluster.join"),
        (&["--roles", "broker"], "--roles"),
        (
            &[
                "--roles",
                "pilot,copilot",
                "--name",
                "g",
                "--join",
                "127.0.0.1:1",
                "--log",
                "memory:",
            ],
            "log.url",
        ),
        (&["--cluster", "0.0.0.0:0"], "--secret-file"),
    ] {
        let mut command = airmail();
        command.args(["serve", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
        let said = refused(with(command, flags), 2);
        assert!(said.contains(field), "{flags:?}: {said}");
    }
}

#[test]
fn a_gateway_has_no_mailboxes_unless_it_is_told_where_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let tower = tower(&directory.path().join("data"), &[]);
    let bare = gateway("bare", &tower, &[]);
    let said = bare.run(&["mailbox", "account", "create", "a"]).failed(1);
    assert!(
        said.contains("UNIMPLEMENTED") && said.contains("mailbox.url"),
        "{said}"
    );
    let file = format!("sqlite:{}", directory.path().join("mail.sqlite").display());
    let given = gateway("given", &tower, &["--mailbox", &file]);
    given.run(&["mailbox", "account", "create", "a"]).ok();
}
