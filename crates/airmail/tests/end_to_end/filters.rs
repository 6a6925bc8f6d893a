//! Filters, by the command line; also from a gateway, whose tower knows nothing of them.

use crate::cluster::{gateway, tower};
use crate::subscriber::Subscriber;
use airmail_testkit::node::{Node, metric, wait_until};

fn publish(node: &Node, quote: &str, price: &str, of: &str) {
    let (price, of) = (format!("price:={price}"), format!("of={of}"));
    node.run(&["pub", "quotes", quote, "--attr", &price, "--attr", &of])
        .ok();
}

#[test]
fn who_filters_gets_what_matches_live_late_or_from_history_by_any_node() {
    let directory = tempfile::tempdir().unwrap();
    let tower = tower(&directory.path().join("data"), &[]);
    let front = gateway("front", &tower, &[]);
    let dear = ["--filter", "price > 20 and of in ('ACME', 'BOLT')"];
    let mut live = Subscriber::start_with(&front, "quotes", &dear);
    let mut all = Subscriber::start(&front, "quotes");
    wait_until("subscriptions", || {
        metric(&front.http, "airmail_live_subscriptions") == Some(2.0)
    });
    for (quote, price, of) in [
        ("a", "30", "ACME"),
        ("b", "10", "ACME"),
        ("c", "20.5", "BOLT"),
        ("d", "99", "CORE"),
        ("e", "21", "BOLT"),
    ] {
        publish(&tower, quote, price, of);
    }
    assert_eq!(live.take(3), ["a", "c", "e"]);
    assert_eq!(all.take(5), ["a", "b", "c", "d", "e"]);
    for node in [&tower, &front] {
        let late = ["sub", "quotes", "--from", "earliest", "--count", "3"];
        for command in [&["history", "quotes"][..], &late] {
            assert_eq!(node.run(&[command, &dear].concat()).ok(), "a\nc\ne\n");
        }
    }
    let filtered = metric(&front.http, "airmail_filtered_total").unwrap();
    assert!(filtered >= 6.0, "{filtered} were left out");
}

#[test]
fn a_bad_filter_is_wrong_usage_and_names_the_column() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(&directory.path().join("data"));
    for command in ["sub", "history"] {
        let said = node.run(&[command, "quotes", "--filter", "price > 5 or"]);
        let said = said.failed(2);
        assert!(said.contains("column 13"), "{said}");
        assert!(said.contains("expected a name"), "{said}");
    }
}
