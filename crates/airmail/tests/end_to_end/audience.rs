//! Messages for some roles, by the command line; also from a gateway, whose tower knows nothing of who asks.

use crate::cluster::{gateway_command, subscribed, tower};
use crate::subscriber::Subscriber;
use airmail_testkit::node::{self, Node, metric, wait_until};

/// Has a node believe its clients.
const TRUST: (&str, &str) = ("AIRMAIL_SECURITY_TRUST_ROLES", "true");

/// Publishes something for cooks, for cooks and guests, and for all.
fn publish(node: &Node) {
    node.run(&["pub", "menu", "soup", "--to-role", "cook"]).ok();
    let roles = ["--to-role", "guest", "--to-role", "cook"];
    node.run(&[&["pub", "menu", "tea"][..], &roles].concat())
        .ok();
    node.run(&["pub", "menu", "bread"]).ok();
}

#[test]
fn each_gets_what_is_for_its_roles_live_late_and_from_history_by_any_node() {
    let directory = tempfile::tempdir().unwrap();
    let tower = tower(&directory.path().join("data"), &[]);
    let mut command = gateway_command("front", &tower.address("nodes"), &[]);
    let front = Node::spawn({
        command.env(TRUST.0, TRUST.1);
        command
    });
    assert_eq!(front.run(&["role", "create", "cook"]).ok(), "cook\tid 1\n");
    let guest = front.run(&["role", "create", "guest", "--json"]).ok();
    assert_eq!(guest, "{\"name\":\"guest\",\"id\":2}\n");
    wait_until("the tower to know of the roles", || {
        tower.run(&["role", "list"]).ok() == "cook\tid 1\nguest\tid 2\n"
    });
    let expected: [(&[&str], &[&str]); 4] = [
        (&[], &["bread"]),
        (&["--role", "cook"], &["soup", "tea", "bread"]),
        (&["--role", "guest"], &["tea", "bread"]),
        (
            &["--role", "guest", "--role", "cook"],
            &["soup", "tea", "bread"],
        ),
    ];
    let mut live = expected.map(|(roles, _)| Subscriber::start_with(&front, "menu", roles));
    wait_until("subscriptions", || {
        metric(&front.http, "airmail_live_subscriptions") == Some(4.0)
    });
    publish(&tower);
    for (live, (_, expected)) in live.iter_mut().zip(expected) {
        assert_eq!(live.take(expected.len()), expected);
    }
    for (roles, expected) in expected {
        let lines = format!("{}\n", expected.join("\n"));
        let history = front.run(&[&["history", "menu"][..], roles].concat());
        assert_eq!(history.ok(), lines);
        let count = expected.len().to_string();
        let late = ["sub", "menu", "--from", "earliest", "--count", &count];
        assert_eq!(front.run(&[&late[..], roles].concat()).ok(), lines);
    }
    // Live, late and from history: three times two for nobody, three times one for guests.
    let withheld = metric(&front.http, "airmail_forbidden_total").unwrap();
    assert!(withheld >= 9.0, "{withheld} were withheld");
}

#[test]
fn roles_are_not_believed_unless_the_node_is_told_to_and_only_known_ones_can_be_named() {
    let directory = tempfile::tempdir().unwrap();
    let mut node = Node::start(&directory.path().join("data"));
    node.run(&["role", "create", "cook"]).ok();
    for command in ["sub", "history"] {
        let said = node.run(&[command, "menu", "--role", "cook"]).failed(1);
        assert!(said.contains("PERMISSION_DENIED"), "{said}");
        assert!(said.contains("security.trust_roles"), "{said}");
    }
    let said = node.run(&["pub", "menu", "x", "--to-role", "waiter"]);
    let said = said.failed(1);
    assert!(said.contains("ROLE_NOT_FOUND"), "{said}");
    let said = node.run(&["role", "create", "cook"]).failed(1);
    assert!(said.contains("ROLE_EXISTS"), "{said}");
    node.run(&["pub", "menu", "secret", "--to-role", "cook"])
        .ok();
    node.run(&["role", "delete", "cook"]).ok();
    let said = node.run(&["role", "delete", "cook"]).failed(1);
    assert!(said.contains("ROLE_NOT_FOUND"), "{said}");
    node.stop();

    // What is addressed to a role stays so, also for one of the same name.
    let mut command = node::serve(&directory.path().join("data"));
    command.env(TRUST.0, TRUST.1);
    node = Node::spawn(command);
    let said = node.run(&["history", "menu", "--role", "cook"]).failed(1);
    assert!(said.contains("ROLE_NOT_FOUND"), "{said}");
    assert_eq!(node.run(&["role", "create", "cook"]).ok(), "cook\tid 2\n");
    assert_eq!(node.run(&["history", "menu", "--role", "cook"]).ok(), "");
    let mut live = Subscriber::start_with(&node, "menu", &["--role", "cook"]);
    subscribed(&node);
    let lines = node.airmail(&["pub", "menu", "--lines", "--to-role", "cook"]);
    node::run(&mut { lines }, b"soup\nstew\n").ok();
    assert_eq!(live.take(2), ["soup", "stew"]);
    assert_eq!(node.run(&["history", "menu"]).ok(), "");
}

#[test]
fn roles_cannot_be_believed_where_clients_come_from_beyond_this_machine() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = node::airmail();
    command.arg("serve").arg("--data").arg(directory.path());
    command.args([
        "--listen",
        "0.0.0.0:0",
        "--http",
        "127.0.0.1:0",
        "--allow-anyone",
    ]);
    let said = node::run(command.env(TRUST.0, TRUST.1), b"").failed(1);
    assert!(said.contains("listen.address"), "{said}");
    assert!(said.contains("security.trust_roles"), "{said}");
}
