//! Messages without their payloads, by the command line; also from a gateway, whose tower gives it whole batches.

use crate::cluster::{gateway, subscribed, tower};
use crate::subscriber::Subscriber;
use airmail_testkit::node::{Node, metric};

fn publish(node: &Node, payload: &str, price: &str) {
    let price = format!("price:={price}");
    let command = [
        "pub", "quotes", payload, "--attr", "of=ACME", "--attr", &price,
    ];
    node.run(&command).ok();
}

#[test]
fn who_asks_for_headers_only_is_sent_no_payload_live_late_or_from_history_by_any_node() {
    let directory = tempfile::tempdir().unwrap();
    let tower = tower(&directory.path().join("data"), &[]);
    let front = gateway("front", &tower, &[]);
    let options = ["--headers-only"];
    let mut live = Subscriber::start_with(&front, "quotes", &options);
    subscribed(&front);
    let payload = "x".repeat(100_000);
    for price in ["1", "2.5"] {
        publish(&tower, &payload, price);
    }
    let expected = ["1 of=ACME price:=1", "2 of=ACME price:=2.5"];
    assert_eq!(live.take(2), expected);
    let late = ["sub", "quotes", "--from", "earliest", "--count", "2"];
    for node in [&tower, &front] {
        for command in [&["history", "quotes"][..], &late] {
            let printed = node.run(&[command, &options].concat()).ok();
            assert_eq!(printed.lines().collect::<Vec<_>>(), expected);
        }
        let json = node.run(&[&late[..], &options, &["--json"]].concat()).ok();
        assert!(
            json.contains(r#""attributes":{"of":"ACME","price":1}"#),
            "{json}"
        );
        assert!(!json.contains("payload"), "{json}");
        let sent = metric(&node.http, "airmail_delivered_bytes_total").unwrap();
        assert!(sent < 10_000.0, "{sent} bytes were delivered");
    }
    // Beside it somebody has payloads.
    assert_eq!(
        tower
            .run(&["history", "quotes", "--limit", "1"])
            .ok()
            .trim(),
        payload
    );
}
