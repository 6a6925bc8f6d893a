//! `airmail mailbox` against nodes that keep their mailboxes in PostgreSQL.

use crate::mailbox::{mailbox, send, set_up};
use airmail_testkit::node::{self, Node, airmail};
use airmail_testkit::postgres::{Holder, LOCK_ALL, Server, psql, shared_server};
use std::path::Path;
use std::process::Stdio;

fn on(data: &Path, url: &str) -> Node {
    Node::start_with(data, &["--log", "memory:", "--mailbox", url])
}

/// One that does not wait long for its database.
fn impatient(data: &Path, url: &str) -> Node {
    let mut command = airmail();
    command.args(["serve", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
    command.args(["--log", "memory:", "--mailbox", url, "--data"]);
    command.arg(data).env("AIRMAIL_MAILBOX_PATIENCE", "200ms");
    Node::spawn(command)
}

#[test]
fn nodes_share_a_database_and_wake_each_others_readers() {
    let url = shared_server().new_database();
    let directory = tempfile::tempdir().unwrap();
    let nodes = [on(directory.path(), &url), on(directory.path(), &url)];
    set_up(&nodes[0]);
    send(&nodes[0], "soup");
    let receive = "receive orders --as kitchen";
    assert_eq!(mailbox(&nodes[1], receive).ok(), "soup\n");
    let mut reader = nodes[1].airmail(&["mailbox"]);
    reader.args(format!("{receive} --wait 60s").split(' '));
    let reader = reader.stdout(Stdio::piped()).spawn().unwrap();
    let at = |name: &str| node::metric(&nodes[1].http, name);
    node::wait_until("a reader that waits", || {
        at("airmail_mailbox_waiting_readers") == Some(1.0)
    });
    // It waits without a connection.
    node::wait_until("connections at rest", || {
        at("airmail_mailbox_connections_busy") == Some(0.0)
    });
    node::wait_until("all connections", || {
        at("airmail_mailbox_connections") == Some(4.0)
    });
    send(&nodes[0], "tea");
    let done = node::output_of(reader, "a reader of a queue");
    assert_eq!(done.stdout, b"tea\n");
    for node in nodes {
        assert!(node.stop().success());
    }
}

#[test]
fn readers_at_several_nodes_never_get_the_same() {
    let url = shared_server().new_database();
    let directory = tempfile::tempdir().unwrap();
    let nodes = [on(directory.path(), &url), on(directory.path(), &url)];
    set_up(&nodes[0]);
    let lines: Vec<String> = (0..2_000).map(|n| n.to_string()).collect();
    let mut send = nodes[0].airmail(&["mailbox", "send", "orders", "--from", "shop"]);
    send.args(["--to", "kitchen", "--lines"]);
    node::run(&mut send, lines.join("\n").as_bytes()).ok();
    let readers: Vec<_> = (0..4)
        .map(|reader| {
            let mut command = nodes[reader % 2].airmail(&["mailbox"]);
            command.args("receive orders --as kitchen --count 500 --wait 60s".split(' '));
            command.stdout(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let mut received: Vec<u32> = Vec::new();
    for reader in readers {
        let done = node::output_of(reader, "a reader of a queue");
        let text = String::from_utf8(done.stdout).unwrap();
        let numbers: Vec<u32> = text.lines().map(|line| line.parse().unwrap()).collect();
        assert!(numbers.is_sorted(), "{numbers:?}");
        received.extend(numbers);
    }
    received.sort_unstable();
    assert_eq!(received, (0..2_000).collect::<Vec<_>>());
}

#[test]
fn a_node_starts_without_its_database_and_goes_on_when_it_comes() {
    let mut server = Server::start();
    let url = server.new_database();
    server.kill();
    let directory = tempfile::tempdir().unwrap();
    let node = impatient(directory.path(), &url);
    let away = |node: &Node| {
        let said = mailbox(node, "queue list --timeout 2s").failed(1);
        // ErrorCode::MailboxesAway: nothing was done, and it may be tried again.
        assert!(said.starts_with("airmail: MAILBOXES_AWAY: "), "{said}");
        assert!(said.contains("retry after"), "{said}");
    };
    away(&node);
    // All else of the node is as well as ever.
    assert_eq!(mailbox(&node, "ping").ok(), "ping\n");
    node.run(&["pub", "topic", "text"]).ok();
    for path in ["/healthz", "/readyz"] {
        node::page(&node.http, path);
    }
    let connections = "airmail_mailbox_connections";
    assert_eq!(node::metric(&node.http, connections), Some(0.0));
    server.start_again();
    node::wait_until("the database", || {
        mailbox(&node, "queue list").code == Some(0)
    });
    set_up(&node);
    send(&node, "soup");
    server.kill();
    away(&node);
    server.start_again();
    node::wait_until("the database again", || {
        mailbox(&node, "queue list").code == Some(0)
    });
    let again = mailbox(&node, "receive orders --as kitchen --wait 60s");
    assert_eq!(again.ok(), "soup\n");
    assert!(node.stop().success());
}

#[test]
fn who_sends_while_somebody_has_locked_the_tables_is_told_so_and_nothing_is_sent() {
    let url = shared_server().new_database();
    let directory = tempfile::tempdir().unwrap();
    let node = impatient(directory.path(), &url);
    node::wait_until("the schema", || {
        mailbox(&node, "queue list").code == Some(0)
    });
    set_up(&node);
    // Its names are found; its tables of messages are not to be had.
    let holder = Holder::new(
        &url,
        "LOCK TABLE airmail.message, airmail.ready, airmail.later IN ACCESS EXCLUSIVE MODE",
    );
    let sent = mailbox(&node, "send orders --from shop --to kitchen soup");
    let said = sent.failed(1);
    assert!(said.starts_with("airmail: MAILBOXES_AWAY: "), "{said}");
    assert!(said.contains("lock timeout"), "{said}");
    holder.release();
    let counts = mailbox(&node, "queue count orders").ok();
    assert_eq!(counts, "ready 0\tdelayed 0\tleased 0\n");
    // A node that is started meanwhile goes on afterwards as well.
    let holder = Holder::new(
        &url,
        &format!("{LOCK_ALL}; LOCK TABLE airmail.schema_version"),
    );
    let second = impatient(directory.path(), &url);
    let said = mailbox(&second, "queue list").failed(1);
    assert!(said.starts_with("airmail: MAILBOXES_AWAY: "), "{said}");
    holder.release();
    node::wait_until("the tables", || {
        mailbox(&second, "queue list").code == Some(0)
    });
    send(&second, "soup");
    let receive = "receive orders --as kitchen --wait 60s";
    assert_eq!(mailbox(&node, receive).ok(), "soup\n");
}

#[test]
fn a_node_does_not_start_on_a_newer_versions_database() {
    let url = shared_server().new_database();
    let directory = tempfile::tempdir().unwrap();
    let node = on(directory.path(), &url);
    set_up(&node);
    psql(&url, "INSERT INTO airmail.schema_version VALUES (99)");
    let mut serve = airmail();
    serve.args(["serve", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
    serve.args(["--log", "memory:", "--mailbox", &url]);
    let said = node::run(&mut serve, b"").failed(1);
    for word in ["MAILBOXES_UNUSABLE", "version 99", "newer airmail"] {
        assert!(said.contains(word), "no {word} in: {said}");
    }
}

#[test]
fn a_node_whose_database_is_away_stops_in_order() {
    let mut server = Server::start();
    let url = server.new_database();
    server.kill();
    let directory = tempfile::tempdir().unwrap();
    let node = impatient(directory.path(), &url);
    assert!(node.stop().success());
}

#[test]
fn a_password_is_told_to_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let url = "postgres://me:s3cret@127.0.0.1:1/db?application_name=x";
    let node = impatient(directory.path(), url);
    let said = mailbox(&node, "queue list --timeout 2s").failed(1);
    assert!(said.starts_with("airmail: MAILBOXES_AWAY: "), "{said}");
    for text in [said, node.said()] {
        assert!(!text.contains("s3cret"), "{text}");
    }
    assert!(
        node.said().contains("postgres://127.0.0.1:1/db"),
        "{}",
        node.said()
    );
}
