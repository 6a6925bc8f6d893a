//! Upkeep on real brokers: what somebody has set otherwise is set right while nodes run, and topics that nobody names are
//! removed.

use airmail_testkit::kafka::{KafkaCluster, wait_patiently};
use airmail_testkit::node::Node;

/// 16 bytes in base64.
const ID: &str = "dXBrZWVwLWNsdXN0ZXItMQ";

#[test]
fn a_topic_is_as_log_0_says_within_minutes_and_one_that_it_can_never_name_is_removed() {
    let directory = tempfile::tempdir().unwrap();
    let Some(cluster) = KafkaCluster::start(&directory.path().join("kafka"), ID, 1) else {
        return;
    };
    let url = format!("kafka://{}?replicas=1&min_insync=1", cluster.bootstrap());
    let data = directory.path().join("data");
    let node = Node::start_with(&data, &["--log", &url]);
    wait_patiently("the namespace's logs", || {
        node.run(&["pub", "t", "kept"]).code == Some(0)
    });
    let topics = cluster.topics().into_iter();
    let mut own = topics.filter(|topic| topic.contains(".normal."));
    let topic = own.next().unwrap();
    // As if somebody had made it for the namespace at the same time, and had come too late.
    let unnamed = format!("{}00000000000000aa", &topic[..topic.len() - 16]);
    let foreign = "airmail.reports".to_owned();
    for name in [&unnamed, &foreign] {
        cluster.make_topic(name, 1, &[]);
    }
    cluster.set(&topic, "retention.ms", "36000000");
    wait_patiently("upkeep", || {
        let right = cluster.setting(&topic, "retention.ms").as_deref() == Some("-1");
        right && !cluster.topics().contains(&unnamed)
    });
    let topics = cluster.topics();
    assert!(topics.contains(&topic) && topics.contains(&foreign));
    assert_eq!(node.run(&["history", "t"]).ok(), "kept\n");
    let said = node.said();
    for (what, of) in [("settings are changed", &topic), ("is deleted", &unnamed)] {
        let mut lines = said.lines();
        assert!(
            lines.any(|line| line.contains(what) && line.contains(of.as_str())),
            "{what}: {said}"
        );
    }
}
