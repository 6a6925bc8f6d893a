//! `airmail mailbox` against a node that keeps its mailboxes in SQLite.

use airmail_testkit::node::{self, Done, Node};
use std::path::Path;
use std::process::Stdio;

/// A node with a queue, a sender and a receiver.
fn world(data: &Path) -> Node {
    let node = Node::start(data);
    set_up(&node);
    node
}

/// Makes a queue and two accounts.
pub(crate) fn set_up(node: &Node) {
    mailbox(node, "queue create orders").ok();
    for account in ["shop", "kitchen"] {
        mailbox(node, &format!("account create {account}")).ok();
    }
}

/// Runs `airmail mailbox` with arguments that have no blanks in them.
pub(crate) fn mailbox(node: &Node, arguments: &str) -> Done {
    let arguments: Vec<&str> = ["mailbox"]
        .into_iter()
        .chain(arguments.split(' '))
        .collect();
    node.run(&arguments)
}

const SEND: &str = "send orders --from shop --to kitchen";
const RECEIVE: &str = "receive orders --as kitchen";

/// Sends from the shop to the kitchen.
pub(crate) fn send(node: &Node, text: &str) {
    assert_eq!(mailbox(node, &format!("{SEND} {text}")).ok(), "");
}

#[track_caller]
fn refused(done: Done, code: &str) -> String {
    let said = done.failed(1);
    let begin = format!("airmail: {code}: ");
    assert!(said.starts_with(&begin), "no {code}: {said}");
    said
}

#[test]
fn messages_are_taken_out_oldest_first_and_each_once() {
    let directory = tempfile::tempdir().unwrap();
    let node = world(directory.path());
    for text in ["soup", "bread", "tea"] {
        send(&node, text);
    }
    assert_eq!(mailbox(&node, &format!("{RECEIVE} --peek")).ok(), "soup\n");
    assert_eq!(mailbox(&node, RECEIVE).ok(), "soup\n");
    let rest = mailbox(&node, &format!("{RECEIVE} --count 5")).ok();
    assert_eq!(rest, "bread\ntea\n");
    let said = refused(mailbox(&node, RECEIVE), "QUEUE_IS_EMPTY");
    assert!(said.contains("orders"), "{said}");
}

#[test]
fn a_line_of_json_has_its_fields_in_order_and_names_for_numbers() {
    let directory = tempfile::tempdir().unwrap();
    let node = world(directory.path());
    send(&node, "soup");
    mailbox(&node, "send orders --from shop --broadcast closed").ok();
    let line = mailbox(&node, &format!("{RECEIVE} --json")).ok();
    let begin =
        r#"{"id":1,"queue":"orders","from":"shop","to":"kitchen","content":"soup","created_at":"2"#;
    assert!(
        line.starts_with(begin) && line.ends_with("Z\"}\n"),
        "{line}"
    );
    let line = mailbox(&node, &format!("{RECEIVE} --broadcast --json")).ok();
    let begin = r#"{"id":2,"queue":"orders","from":"shop","to":null,"content":"closed","#;
    assert!(line.starts_with(begin), "{line}");
    let mut send = node.airmail(&["mailbox"]);
    send.args(SEND.split(' '));
    node::run(&mut send, b"\xff\xfe").ok();
    let line = mailbox(&node, &format!("{RECEIVE} --lease 60s --json")).ok();
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(line["content_base64"], "//4=");
    assert_eq!(line["deliveries"], 1);
    assert!(
        line["receipt"].as_str().unwrap().starts_with("3:"),
        "{line}"
    );
}

#[test]
fn every_error_has_the_papers_name_and_ends_with_1() {
    let directory = tempfile::tempdir().unwrap();
    let node = world(directory.path());
    let fails = |arguments: &str, code: &str| {
        let said = refused(mailbox(&node, arguments), code);
        assert_eq!(said.lines().count(), 1, "{said}");
    };
    fails("queue create orders", "QUEUE_NAME_EXISTS");
    fails("account create shop", "ACCOUNT_NAME_EXISTS");
    for arguments in [
        "queue delete nowhere",
        "queue purge nowhere",
        "queue count nowhere",
        "queue create x --dead-letters nowhere",
        "send nowhere --from shop --to kitchen x",
        "receive nowhere --as kitchen",
    ] {
        fails(arguments, "QUEUE_NOT_FOUND");
    }
    for arguments in [
        "account delete nobody",
        "send orders --from nobody --to kitchen x",
        "send orders --from shop --to nobody x",
        "receive orders --as nobody",
        "find --as nobody --from shop",
        "find --as kitchen --from nobody",
        "queues --as nobody",
    ] {
        fails(arguments, "ACCOUNT_NOT_FOUND");
    }
    fails(RECEIVE, "QUEUE_IS_EMPTY");
    fails("receive orders --as kitchen --wait 10ms", "QUEUE_IS_EMPTY");
    fails("find --as kitchen --from shop", "NO_MESSAGE_FOUND");
    fails("show 99 --as kitchen", "NO_MESSAGE_FOUND");
    fails("queues --as kitchen", "NO_QUEUES_FOUND");
    fails("queues --as kitchen --broadcast", "NO_QUEUES_FOUND");
    fails("ack 1:1", "LEASE_ENDED");
    send(&node, "soup");
    fails("show 1 --as shop", "NO_PERMISSION_TO_READ");
    fails("queue delete orders", "QUEUE_NOT_EMPTY");
    fails("account delete kitchen", "ACCOUNT_NOT_EMPTY");
    fails(
        &format!("account create {}", "n".repeat(256)),
        "INVALID_ARGUMENT",
    );
    fails(&format!("{SEND} x --priority 10"), "INVALID_ARGUMENT");
    let mut large = node.airmail(&["mailbox"]);
    large.args(SEND.split(' '));
    let done = node::run(&mut large, &vec![b'x'; (1 << 20) + 1]);
    refused(done, "MESSAGE_TOO_LARGE");
    mailbox(&node, "queue delete orders --force").ok();
    mailbox(&node, "account delete kitchen").ok();
    assert_eq!(mailbox(&node, "account list").ok(), "shop\n");
    assert_eq!(mailbox(&node, "queue list").ok(), "");
}

#[test]
fn a_message_is_for_one_or_for_all_and_a_reader_has_one_way_to_take_it() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    for arguments in [
        "send orders --from shop x",
        "send orders --from shop --to kitchen --broadcast x",
        "send orders --from shop --to kitchen --lines x",
        "receive orders",
        "receive orders --as kitchen --count 0",
        "receive orders --as kitchen --peek --lease 5s",
        "queue create x --deliveries 3",
        "ack",
        "ack soup",
    ] {
        mailbox(&node, arguments).failed(2);
    }
}

#[test]
fn a_leased_message_comes_again_until_it_is_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let node = world(directory.path());
    send(&node, "soup");
    let lease = || {
        let line = mailbox(&node, &format!("{RECEIVE} --lease 600s --wait 60s")).ok();
        let (receipt, text) = line.split_once('\t').unwrap();
        assert_eq!(text, "soup\n");
        receipt.to_owned()
    };
    let receipt = lease();
    refused(mailbox(&node, RECEIVE), "QUEUE_IS_EMPTY");
    assert_eq!(
        mailbox(&node, "queue count orders").ok(),
        "ready 0\tdelayed 0\tleased 1\n"
    );
    mailbox(&node, &format!("extend {receipt} --lease 700s")).ok();
    mailbox(&node, &format!("release {receipt}")).ok();
    let second = lease();
    assert_ne!(second, receipt);
    // What can be acknowledged is, whatever is wrong with the rest.
    let said = refused(
        mailbox(&node, &format!("ack {receipt} {second}")),
        "LEASE_ENDED",
    );
    assert!(said.contains(&receipt), "{said}");
    let counts = mailbox(&node, "queue count orders --json").ok();
    assert_eq!(counts, "{\"ready\":0,\"delayed\":0,\"leased\":0}\n");
    // One that ends by itself.
    send(&node, "tea");
    mailbox(&node, &format!("{RECEIVE} --lease 1ms")).ok();
    let again = mailbox(&node, &format!("{RECEIVE} --wait 60s")).ok();
    assert_eq!(again, "tea\n");
}

#[test]
fn a_reader_waits_for_all_that_it_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let node = world(directory.path());
    let mut reader = node.airmail(&["mailbox"]);
    reader.args(format!("{RECEIVE} --wait 60s --count 3").split(' '));
    let reader = reader.stdout(Stdio::piped()).spawn().unwrap();
    node::wait_until("a reader that waits", || {
        node::metric(&node.http, "airmail_mailbox_waiting_readers") == Some(1.0)
    });
    for text in ["soup", "bread", "tea"] {
        send(&node, text);
    }
    let done = node::output_of(reader, "a reader of three messages");
    assert!(done.status.success());
    assert_eq!(done.stdout, b"soup\nbread\ntea\n");
}

#[test]
fn lines_are_sent_and_received_in_their_order() {
    let directory = tempfile::tempdir().unwrap();
    let node = world(directory.path());
    let lines: String = (0..2_500).map(|n| format!("line {n}\n")).collect();
    let mut send = node.airmail(&["mailbox"]);
    send.args(SEND.split(' ')).arg("--lines");
    node::run(&mut send, lines.as_bytes()).ok();
    let received = mailbox(&node, &format!("{RECEIVE} --count 5000")).ok();
    assert_eq!(received, lines);
    let json = node::run(send.arg("--json"), b"a\nb\n").ok();
    assert_eq!(json, "{\"id\":2501}\n{\"id\":2502}\n");
    assert_eq!(mailbox(&node, "queue purge orders").ok(), "2\n");
}

#[test]
fn priority_delay_lifetime_and_dead_letters_work_from_the_command_line() {
    let directory = tempfile::tempdir().unwrap();
    let node = world(directory.path());
    mailbox(&node, "queue create spoilt").ok();
    mailbox(
        &node,
        "queue create food --dead-letters spoilt --deliveries 1",
    )
    .ok();
    let queues = mailbox(&node, "queue list --json").ok();
    assert!(
        queues.contains(r#""dead_letters":"spoilt","deliveries":1}"#),
        "{queues}"
    );
    send(&node, "soup");
    mailbox(&node, &format!("{SEND} --priority 9 tea")).ok();
    mailbox(&node, &format!("{SEND} --delay 600s cake")).ok();
    assert_eq!(
        mailbox(&node, &format!("{RECEIVE} --count 9")).ok(),
        "tea\nsoup\n"
    );
    let food = "send food --from shop --to kitchen";
    mailbox(&node, &format!("{food} --lifetime 1ms fish")).ok();
    let dead = "receive spoilt --as kitchen --wait 60s";
    assert_eq!(mailbox(&node, dead).ok(), "fish\n");
    mailbox(&node, &format!("{food} meat")).ok();
    mailbox(&node, "receive food --as kitchen --lease 1ms").ok();
    assert_eq!(mailbox(&node, dead).ok(), "meat\n");
}

#[test]
fn who_looks_finds_messages_and_queues_without_taking_anything() {
    let directory = tempfile::tempdir().unwrap();
    let node = world(directory.path());
    mailbox(&node, "queue create notes").ok();
    send(&node, "soup");
    mailbox(&node, "send notes --from shop --to kitchen salt").ok();
    mailbox(&node, "send notes --from kitchen --broadcast closed").ok();
    assert_eq!(
        mailbox(&node, "find --as kitchen --from shop").ok(),
        "soup\n"
    );
    assert_eq!(mailbox(&node, "show 2 --as kitchen").ok(), "salt\n");
    assert_eq!(
        mailbox(&node, "queues --as kitchen").ok(),
        "orders\nnotes\n"
    );
    let broadcasts = mailbox(&node, "queues --as shop --broadcast").ok();
    assert_eq!(broadcasts, "notes\n");
    assert_eq!(mailbox(&node, "ping").ok(), "ping\n");
    assert_eq!(mailbox(&node, "ping hello").ok(), "hello\n");
    assert_eq!(mailbox(&node, RECEIVE).ok(), "soup\n");
    let accounts = mailbox(&node, "account list --json").ok();
    assert!(
        accounts.starts_with(r#"{"name":"shop","id":1,"created_at":"2"#),
        "{accounts}"
    );
}

#[test]
fn errors_tell_the_names_that_were_typed_and_no_numbers() {
    let directory = tempfile::tempdir().unwrap();
    let node = world(directory.path());
    let said = refused(
        mailbox(&node, "find --as kitchen --from shop"),
        "NO_MESSAGE_FOUND",
    );
    assert!(said.contains("(from: shop)"), "{said}");
    send(&node, "soup");
    let said = refused(mailbox(&node, "queue delete orders"), "QUEUE_NOT_EMPTY");
    assert!(said.contains("(queue: orders)"), "{said}");
    let said = refused(
        mailbox(&node, "account delete kitchen"),
        "ACCOUNT_NOT_EMPTY",
    );
    assert!(said.contains("(account: kitchen)"), "{said}");
    mailbox(&node, RECEIVE).ok();
    mailbox(&node, "queue create work --dead-letters orders").ok();
    let said = refused(mailbox(&node, "queue delete orders"), "QUEUE_NOT_EMPTY");
    assert!(said.contains("(queue: orders"), "{said}");
}

#[test]
fn one_queue_one_account_and_one_message_are_looked_up() {
    let directory = tempfile::tempdir().unwrap();
    let node = world(directory.path());
    mailbox(
        &node,
        "queue create work --dead-letters orders --deliveries 3",
    )
    .ok();
    let shown = mailbox(&node, "queue show work").ok();
    assert!(shown.starts_with("id 2\tcreated 2"), "{shown}");
    let end = "Z\tdead letters orders\tdeliveries 3\n";
    assert!(shown.ends_with(end), "{shown}");
    let shown = mailbox(&node, "queue show work --json").ok();
    let line = mailbox(&node, "queue list --json").ok();
    assert_eq!(line.lines().nth(1), Some(shown.trim_end()));
    let shown = mailbox(&node, "account show kitchen").ok();
    assert!(shown.starts_with("id 2\tcreated 2"), "{shown}");
    let shown = mailbox(&node, "account show kitchen --json").ok();
    assert!(shown.starts_with(r#"{"name":"kitchen","id":2,"#), "{shown}");
    refused(mailbox(&node, "queue show nowhere"), "QUEUE_NOT_FOUND");
    refused(mailbox(&node, "account show nobody"), "ACCOUNT_NOT_FOUND");
    // The paper's get_queues without a client: those that hold a broadcast.
    refused(mailbox(&node, "queues"), "NO_QUEUES_FOUND");
    send(&node, "soup");
    mailbox(&node, "send work --from shop --broadcast closed").ok();
    assert_eq!(mailbox(&node, "queues").ok(), "work\n");
    assert_eq!(mailbox(&node, "queues --as kitchen").ok(), "orders\n");
    for _ in 0..2 {
        assert_eq!(mailbox(&node, "message 1 --as kitchen").ok(), "soup\n");
        assert_eq!(mailbox(&node, "message 2").ok(), "closed\n");
    }
    refused(mailbox(&node, "message 1"), "NO_PERMISSION_TO_READ");
    refused(mailbox(&node, "message 3"), "NO_MESSAGE_FOUND");
}

#[test]
fn what_was_sent_outlives_the_node() {
    let directory = tempfile::tempdir().unwrap();
    let node = world(directory.path());
    send(&node, "soup");
    node.kill();
    let node = Node::start(directory.path());
    assert_eq!(mailbox(&node, RECEIVE).ok(), "soup\n");
    send(&node, "tea");
    assert!(node.stop().success());
    assert!(directory.path().join("mailboxes.sqlite").exists());
    let node = Node::start(directory.path());
    assert_eq!(
        mailbox(&node, &format!("{RECEIVE} --count 9")).ok(),
        "tea\n"
    );
}

#[test]
fn mailboxes_may_be_in_a_file_of_their_own_and_of_one_node() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("work.db");
    let url = format!("sqlite:{}", file.display());
    let node = Node::start_with(&directory.path().join("a"), &["--mailbox", &url]);
    set_up(&node);
    assert!(file.exists());
    let second = Node::start_with(&directory.path().join("b"), &["--mailbox", &url]);
    let said = refused(mailbox(&second, "account list"), "MAILBOXES_AWAY");
    assert!(said.contains("no other process"), "{said}");
    second.run(&["pub", "topic", "text"]).ok();
    assert!(node.stop().success());
    node::wait_until("the file", || {
        mailbox(&second, "account list").code == Some(0)
    });
    assert_eq!(mailbox(&second, "account list").ok(), "shop\nkitchen\n");
}

#[test]
fn a_damaged_file_of_mailboxes_harms_no_topic_and_can_be_put_back() {
    let directory = tempfile::tempdir().unwrap();
    let node = world(directory.path());
    send(&node, "soup");
    node.run(&["pub", "topic", "text"]).ok();
    assert!(node.stop().success());
    let file = directory.path().join("mailboxes.sqlite");
    let sound = std::fs::read(&file).unwrap();
    std::fs::write(&file, &sound[..sound.len() / 2]).unwrap();
    let node = Node::start(directory.path());
    let said = refused(mailbox(&node, RECEIVE), "MAILBOXES_AWAY");
    assert!(said.contains("malformed"), "{said}");
    assert_eq!(node.run(&["history", "topic"]).ok(), "text\n");
    assert_eq!(
        node::metric(&node.http, "airmail_mailbox_connections"),
        Some(0.0)
    );
    std::fs::write(&file, &sound).unwrap();
    node::wait_until("the sound file", || {
        mailbox(&node, "queue list").code == Some(0)
    });
    assert_eq!(mailbox(&node, RECEIVE).ok(), "soup\n");
}

#[test]
fn a_file_that_is_no_database_or_a_newer_versions_is_told_by_name_at_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("letters.txt");
    let url = format!("sqlite:{}", file.display());
    let refused = |words: &[&str]| {
        let mut serve = node::airmail();
        serve.args(["serve", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
        serve.args(["--log", "memory:", "--mailbox", &url]);
        let said = node::run(&mut serve, b"").failed(1);
        for word in words.iter().chain(&["letters.txt", "MAILBOXES_UNUSABLE"]) {
            assert!(said.contains(word), "no {word} in: {said}");
        }
    };
    std::fs::write(&file, "Dear all,\n".repeat(1_000)).unwrap();
    refused(&["not a database"]);
    std::fs::remove_file(&file).unwrap();
    let node = Node::start_with(&directory.path().join("data"), &["--mailbox", &url]);
    set_up(&node);
    assert!(node.stop().success());
    // The version of the schema, as SQLite keeps it in its head.
    let mut bytes = std::fs::read(&file).unwrap();
    assert_eq!(bytes[60..64], [0, 0, 0, 1]);
    bytes[63] = 99;
    std::fs::write(&file, bytes).unwrap();
    refused(&["version 99", "newer airmail"]);
}

#[test]
fn a_mailbox_url_that_cannot_be_used_is_wrong_usage() {
    for (url, words) in [
        (
            "mysql://db",
            &["mailbox.url", "mysql://db", "sqlite:PATH"][..],
        ),
        ("postgres://db:port", &["mailbox.url", "postgres://"]),
    ] {
        let mut serve = node::airmail();
        serve.args(["serve", "--print-config", "--mailbox", url]);
        let said = node::run(&mut serve, b"").failed(2);
        for word in words {
            assert!(said.contains(word), "no {word} in: {said}");
        }
    }
}
