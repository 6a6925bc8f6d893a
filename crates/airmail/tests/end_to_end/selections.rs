//! Selections of topics, by the command line; also from a gateway, whose tower knows nothing of them, and over a move.

use crate::cluster::{gateway, tower};
use crate::subscriber::Subscriber;
use airmail_testkit::node::{Node, metric, wait_until};
use std::collections::BTreeSet;

fn publish(node: &Node, topic: &str, text: &str) {
    node.run(&["pub", topic, text]).ok();
}

/// Waits until so many subscriptions are live at a node.
fn live(node: &Node, count: f64) {
    wait_until("subscriptions", || {
        metric(&node.http, "airmail_live_subscriptions") == Some(count)
    });
}

#[test]
fn who_selects_gets_its_topics_live_late_or_from_history_by_any_node() {
    let directory = tempfile::tempdir().unwrap();
    let tower = tower(&directory.path().join("data"), &[]);
    let front = gateway("front", &tower, &[]);
    let mut plain = Subscriber::start(&front, "weather/us/ny");
    let mut eu = Subscriber::start_with(&front, "--prefix", &["weather/eu/"]);
    let mut all = Subscriber::start_with(&front, "--everything", &[]);
    live(&front, 3.0);
    for (topic, text) in [
        ("weather/eu/de", "40"),
        ("weather/us/ny", "70"),
        ("news", "none"),
        ("weather/eu/fr", "35"),
    ] {
        publish(&tower, topic, text);
    }
    let europe = ["weather/eu/de\t40", "weather/eu/fr\t35"];
    assert_eq!(eu.take(2), europe);
    assert_eq!(plain.take(1), ["70"]);
    let everything = [
        "weather/eu/de\t40",
        "weather/us/ny\t70",
        "news\tnone",
        "weather/eu/fr\t35",
    ];
    assert_eq!(all.take(4), everything);
    let pattern = [
        "--pattern",
        "weather/*/*r",
        "--count",
        "1",
        "--from",
        "earliest",
    ];
    for node in [&tower, &front] {
        let late = node.run(&[&["sub"][..], &pattern].concat()).ok();
        assert_eq!(late, "weather/eu/fr\t35\n");
        let past = node.run(&["history", "--prefix", "weather/eu/"]).ok();
        assert_eq!(past, europe.map(|line| format!("{line}\n")).concat());
    }
    let json = front
        .run(&["history", "--everything", "--limit", "1", "--json"])
        .ok();
    assert!(
        json.contains(r#""topic":"weather/eu/de","sequence":1"#),
        "{json}"
    );
    let position = json.split_once(r#""position":""#).unwrap().1;
    let (position, _) = position.split_once('"').unwrap();
    let rest = ["sub", "--everything", "--from", position, "--count", "3"];
    assert_eq!(
        front.run(&rest).ok().lines().collect::<Vec<_>>(),
        everything[1..]
    );
}

#[test]
fn a_selection_of_a_namespace_with_several_logs_goes_on_over_a_move() {
    let directory = tempfile::tempdir().unwrap();
    let far = format!("far=disk:{}", directory.path().join("far").display());
    let node = Node::start_with(&directory.path().join("data"), &["--log", &far]);
    node.run(&["namespace", "create", "many", "--logs", "3"])
        .ok();
    let many = ["--namespace", "many"];
    let mut all = Subscriber::start_with(&node, "--everything", &many);
    live(&node, 3.0);
    let topics = || (0..9).map(|n| format!("t/{n}"));
    let publish_all = |text: &str| {
        for topic in topics() {
            node.run(&["pub", "--namespace", "many", &topic, text]).ok();
        }
    };
    publish_all("before");
    node.run(&["namespace", "move", "many", "--storage", "far"])
        .ok();
    publish_all("after");
    let got: BTreeSet<String> = all.take(18).into_iter().collect();
    let expected =
        topics().flat_map(|topic| [format!("{topic}\tbefore"), format!("{topic}\tafter")]);
    assert_eq!(got, expected.collect());
    let past = node.run(&[&["history", "--pattern", "t/[0-9]"][..], &many].concat());
    assert_eq!(past.ok(), "", "no classes of characters");
    let past = node.run(&[&["history", "--pattern", "t/*"][..], &many].concat());
    assert_eq!(past.ok().lines().count(), 18);
}

#[test]
fn a_command_without_topics_or_with_a_bad_pattern_is_wrong_usage() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(&directory.path().join("data"));
    for command in ["sub", "history"] {
        let said = node.run(&[command, "--pattern", "a\\"]);
        let said = said.failed(2);
        assert!(
            said.contains("--pattern") && said.contains("the pattern ends with"),
            "{said}"
        );
        let said = node.run(&[command, "--json"]);
        let said = said.failed(2);
        assert!(said.contains("--everything"), "{said}");
    }
}
