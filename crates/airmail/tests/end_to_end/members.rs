//! Nodes of a cluster that find each other, show what is wrong, and clients that go on at another node when theirs is
//! killed, stands still or drains.

use crate::cluster::{
    gateway, gateway_command, member_command, publish, secret, subscribed, tower, tower_at,
};
use crate::subscriber::Subscriber;
use airmail_client::{Client, Subscription};
use airmail_testkit::node::{self, Node, wait_until};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// The cluster as a node sees it, and the exit code with which that was told.
pub(crate) fn status(node: &Node) -> (Value, i32) {
    let done = node.run(&["cluster", "status", "--json"]);
    let code = done.code.unwrap_or(-1);
    (serde_json::from_str(&done.stdout).unwrap_or_default(), code)
}

/// Names and states of members, in order of name.
fn states(node: &Node) -> Vec<(String, String)> {
    let members = status(node).0["members"].clone();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let members = members.as_array().cloned().unwrap_or_default();
    let state = |member: &Value| (text(&member["name"]), text(&member["state"]));
    members.iter().map(state).collect()
}

pub(crate) fn wait_for_states(node: &Node, expected: &[(&str, &str)]) {
    let expected: Vec<(String, String)> = expected
        .iter()
        .map(|(name, state)| ((*name).to_owned(), (*state).to_owned()))
        .collect();
    wait_until(&format!("{expected:?}"), || states(node) == expected);
}

pub(crate) const ALL_LIVE: [(&str, &str); 3] =
    [("one", "live"), ("other", "live"), ("tower", "live")];

/// A tower and two gateways that know each other.
fn cluster(data: &Path, flags: &[&str]) -> (Node, Node, Node) {
    let tower = tower(data, flags);
    let one = gateway("one", &tower, flags);
    let other = gateway("other", &tower, flags);
    wait_until_well([&tower, &one, &other]);
    (tower, one, other)
}

/// Waits until each of the three knows the others, and finds nothing wrong with them.
pub(crate) fn wait_until_well(nodes: [&Node; 3]) {
    for node in nodes {
        wait_for_states(node, &ALL_LIVE);
        wait_until("no faults", || faults(node).is_empty());
    }
}

/// Drains the node `one`, asked of another, and gives what that says. It is refused for as long as `one` doubts that
/// others live, as it may where the machine has much to do.
pub(crate) fn drain_one(other: &Node) -> String {
    let mut said = String::new();
    wait_until("a drain", || {
        let done = other.run(&["cluster", "drain", "one"]);
        said = done.stdout;
        done.code == Some(0)
    });
    said
}

/// Subscriber to `news` at `node`: it is live, and has read what came from `tower`.
pub(crate) fn reader(node: &Node, tower: &Node) -> Subscriber {
    let mut live = Subscriber::start(node, "news");
    subscribed(node);
    publish(tower, "news", "before");
    assert_eq!(live.take(1), ["before"]);
    live
}

pub(crate) fn faults(node: &Node) -> String {
    let (status, code) = status(node);
    let faults = status["faults"].as_array().cloned().unwrap_or_default();
    let faults: Vec<&str> = faults.iter().filter_map(Value::as_str).collect();
    assert_eq!(code == 0, faults.is_empty(), "{status}: exit code {code}");
    faults.join("; ")
}

#[test]
fn every_node_shows_all_nodes_and_what_is_wrong_with_them_until_it_is_well_again() {
    let directory = tempfile::tempdir().unwrap();
    let right = secret(directory.path(), "secret", &"r".repeat(32), 0o600);
    let flags = ["--secret-file", right.to_str().unwrap()];
    let (tower, one, other) = cluster(&directory.path().join("data"), &flags);
    let address = tower.address("nodes");
    // A gateway that is killed is down, at all others; started again, it is itself.
    other.kill();
    for node in [&tower, &one] {
        wait_until("a fault", || {
            faults(node).starts_with("node other has been down")
        });
    }
    let other = gateway("other", &tower, &flags);
    wait_until_well([&tower, &one, &other]);
    // Whoever stops in order has left: nothing is wrong.
    other.stop();
    wait_for_states(
        &one,
        &[("one", "live"), ("other", "left"), ("tower", "live")],
    );
    assert_eq!(faults(&one), "");
    // Without its tower a gateway has no link and no logs.
    tower.kill();
    wait_until("three faults", || {
        let faults = faults(&one);
        faults.contains("node tower has been down")
            && faults.contains("node one has no link to tower")
            && faults.contains("no node with role tower is live")
    });
    let tower = tower_at(&directory.path().join("data"), &address, &flags);
    for node in [&tower, &one] {
        wait_until("no faults", || faults(node).is_empty());
    }
    let text = one.run(&["cluster", "status"]).ok();
    assert!(text.contains("all is well, as one sees it"), "{text}");
    let links = node::metric(&one.http, "airmail_links_missing");
    assert_eq!(links, Some(0.0));
}

#[test]
fn a_client_goes_on_at_another_node_when_its_own_is_killed_and_misses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (tower, one, other) = cluster(directory.path(), &[]);
    let mut live = reader(&one, &tower);
    one.kill();
    for number in 0..3 {
        publish(&other, "news", &format!("after {number}"));
    }
    assert_eq!(live.take(3), ["after 0", "after 1", "after 2"]);
}

#[test]
fn a_client_goes_on_at_another_node_when_its_own_stands_still() {
    let directory = tempfile::tempdir().unwrap();
    let (tower, one, other) = cluster(directory.path(), &[]);
    let mut live = reader(&one, &tower);
    one.set_still(true);
    publish(&other, "news", "meanwhile");
    // Its system still has the connection; the node says nothing any more.
    assert_eq!(live.take(1), ["meanwhile"]);
    wait_until("a fault", || {
        faults(&other).starts_with("node one has been down")
    });
    one.set_still(false);
    wait_until_well([&tower, &one, &other]);
    publish(&one, "news", "after");
    assert_eq!(live.take(1), ["after"]);
}

#[test]
fn clients_leave_a_node_that_drains_and_it_can_be_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let (tower, one, other) = cluster(directory.path(), &[]);
    let mut live = reader(&one, &tower);
    // Asked of any node.
    let said = drain_one(&other);
    assert!(said.contains("no client is left"), "{said}");
    wait_for_states(
        &tower,
        &[("one", "draining"), ("other", "live"), ("tower", "live")],
    );
    assert_eq!(faults(&tower), "");
    publish(&other, "news", "meanwhile");
    assert_eq!(live.take(1), ["meanwhile"]);
    one.stop();
    publish(&tower, "news", "after");
    assert_eq!(live.take(1), ["after"]);
}

#[test]
fn nobody_drains_the_last_node_for_clients_or_one_that_there_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let alone = tower(directory.path(), &[]);
    let said = alone.run(&["cluster", "drain", "tower"]).failed(1);
    assert!(said.contains("one of several live nodes"), "{said}");
    let said = alone.run(&["cluster", "drain", "nobody"]).failed(2);
    assert!(said.contains("no node nobody: there are tower"), "{said}");
    let text = alone.run(&["cluster", "status"]).ok();
    assert!(text.contains("all is well"), "{text}");
}

#[test]
fn a_client_stays_where_it_is_where_a_nearer_node_cannot_be_reached() {
    let directory = tempfile::tempdir().unwrap();
    let far = |mut command: Command| {
        command.env("AIRMAIL_CLUSTER_HOST", "elsewhere");
        Node::spawn(command)
    };
    let mut command = node::serve(directory.path());
    command.args(["--name", "tower", "--cluster", "127.0.0.1:0"]);
    let tower = far(command);
    let gateway = far(gateway_command("far", &tower.address("nodes"), &[]));
    let mut live = Subscriber::start(&gateway, "news");
    subscribed(&gateway);
    // It is on the client's machine, and says that clients reach it where nobody is.
    let mut command = gateway_command("near", &tower.address("nodes"), &[]);
    command.env("AIRMAIL_LISTEN_ADVERTISED", "nowhere.invalid:1");
    let _near = Node::spawn(command);
    wait_for_states(
        &gateway,
        &[("far", "live"), ("near", "live"), ("tower", "live")],
    );
    publish(&tower, "news", "still there");
    assert_eq!(live.take(1), ["still there"]);
    subscribed(&gateway);
}

#[test]
fn publishes_go_to_pilots_and_subscriptions_to_copilots_whichever_node_is_asked() {
    let directory = tempfile::tempdir().unwrap();
    let tower = tower(directory.path(), &["--roles", "tower"]);
    let address = tower.address("nodes");
    let of_role = |name, role| Node::spawn(member_command(name, role, &address));
    let (pilot, copilot) = (of_role("p", "pilot"), of_role("c", "copilot"));
    let nodes = [&tower, &pilot, &copilot];
    for node in nodes {
        wait_for_states(node, &[("c", "live"), ("p", "live"), ("tower", "live")]);
    }
    let mut subscribers = nodes.map(|node| Subscriber::start(node, "news"));
    wait_until("three subscriptions at the copilot", || {
        node::metric(&copilot.http, "airmail_live_subscriptions") == Some(3.0)
    });
    let published = |node: &Node| node::metric(&node.http, "airmail_published_messages_total");
    let before = published(&pilot);
    for (number, node) in nodes.iter().enumerate() {
        publish(node, "news", &format!("by way of {number}"));
    }
    let expected = ["by way of 0", "by way of 1", "by way of 2"];
    for subscriber in &mut subscribers {
        assert_eq!(subscriber.take(3), expected);
    }
    assert_eq!((before, published(&pilot)), (Some(0.0), Some(3.0)));
    assert_eq!(published(&copilot), Some(0.0));
    // A question that a node does not take is refused with what it would need; the last of a role does not drain.
    let said = copilot.run(&["cluster", "drain", "p"]).failed(1);
    assert!(said.contains("one of several live nodes"), "{said}");
}

#[test]
fn clients_that_all_begin_at_one_node_spread_over_those_there_are() {
    const CLIENTS: u32 = 80;
    let directory = tempfile::tempdir().unwrap();
    let tower = tower(directory.path(), &["--roles", "tower"]);
    let one = gateway("one", &tower, &[]);
    let other = gateway("other", &tower, &[]);
    for node in [&one, &other] {
        wait_for_states(node, &ALL_LIVE);
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let url = format!("airmail://{}", one.grpc);
    let subscriptions: Vec<Subscription> = runtime.block_on(async {
        let mut subscriptions = Vec::new();
        for client in 0..CLIENTS {
            let client = Client::builder().url(&url).seed(client.into());
            let client = client.connect().await.unwrap();
            subscriptions.push(client.subscribe("news").open().await.unwrap());
        }
        subscriptions
    });
    let mut received = 0;
    let mut readers = tokio::task::JoinSet::new();
    for mut subscription in subscriptions {
        readers.spawn_on(
            async move { subscription.next().await.unwrap().is_some() },
            runtime.handle(),
        );
    }
    let connections = |node: &Node| {
        let count = node::metric(&node.http, "airmail_live_subscriptions");
        count.unwrap_or_default() as u32
    };
    let mean = CLIENTS / 2;
    wait_until("as many clients at each node, but for a tenth", || {
        let counts = [connections(&one), connections(&other)];
        counts.iter().sum::<u32>() == CLIENTS
            && counts.iter().all(|count| count.abs_diff(mean) * 10 <= mean)
    });
    publish(&one, "news", "for all");
    runtime.block_on(async {
        while let Some(ended) = readers.join_next().await {
            received += u32::from(ended.unwrap());
        }
    });
    assert_eq!(received, CLIENTS);
}
