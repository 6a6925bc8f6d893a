//! Pilots that append to Kafka by handles of their own: their publishes need no tower.

use crate::cluster::{gateway, publish, tower, tower_at};
use airmail_testkit::node::on_kafka;

#[test]
fn publishes_of_a_pilot_that_knows_its_kafka_go_on_while_no_tower_lives() {
    let directory = tempfile::tempdir().unwrap();
    let Some(url) = on_kafka::url_of(&directory.path()) else {
        // Input: tests that are run without Kafka.
        return;
    };
    let log = ["--log", &url];
    let first = tower(directory.path(), &log);
    let address = first.address("nodes");
    let pilot = gateway("one", &first, &log);
    publish(&pilot, "news", "1");
    first.kill();
    // Each is a producer of its own, and its epoch begins here; one without a producer is stamped here.
    for text in ["2", "3", "4"] {
        publish(&pilot, "news", text);
    }
    let _again = tower_at(directory.path(), &address, &log);
    publish(&pilot, "news", "5");
    let history = pilot.run(&["history", "news"]).ok();
    assert_eq!(history, "1\n2\n3\n4\n5\n");
}

#[test]
fn a_pilot_whose_kafka_is_another_one_than_its_towers_does_not_start() {
    let directory = tempfile::tempdir().unwrap();
    let own = on_kafka::url_of(&directory.path());
    let Some((own, other)) = own.zip(on_kafka::url_of(&"another")) else {
        // Input: tests that are run without Kafka.
        return;
    };
    let tower = tower(directory.path(), &["--log", &own]);
    let mut command =
        crate::cluster::gateway_command("one", &tower.address("nodes"), &["--log", &other]);
    let ended = command.output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(
        !ended.status.success() && said.contains("log.url"),
        "{said}"
    );
}
