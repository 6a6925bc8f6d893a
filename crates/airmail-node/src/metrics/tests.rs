//! Metrics against their page, and the sum of several shards.

use super::*;
use airmail_flow::{Gate, GateSettings};

#[test]
fn every_metric_is_named_with_its_unit_and_documented() {
    let metrics = Metrics::default();
    metrics.publish_latency.observe(0.001);
    metrics.refused_at_edge(&Error::new(ErrorCode::TopicInvalid));
    let took = std::time::Duration::from_millis(1);
    metrics.mailbox.answered("Ping", None, took);
    metrics.doors.turned_away("grpc");
    metrics.doors.not_accepted("http");
    metrics.doors.http_refused("origin");
    metrics.doors.is_open("grpc", true);
    metrics.cluster.members([1, 0, 0]);
    metrics.cluster.link_meters("t1").sent.inc_by(5);
    let text = metrics.text(vec![Snapshot::default()], vec![1]).unwrap();
    let documentation = include_str!("../../../../docs/metrics.md");
    let names = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let mut count = 0;
    for name in names.filter_map(|line| line.split(' ').next()) {
        assert!(documentation.contains(&format!("`{name}")), "{name}");
        count += 1;
    }
    assert!(count > 25, "{text}");
    assert!(text.contains("airmail_publish_refused_total{code=\"TOPIC_INVALID\"} 1"));
    assert!(text.contains("airmail_published_messages_total 0"));
    assert!(text.contains("airmail_bugs_total 0"));
}

#[test]
fn shards_are_summed_and_the_worst_trouble_of_any_is_told() {
    let trouble = |full| Trouble {
        full,
        error: "broken".into(),
    };
    let mut shards = vec![Snapshot::default(); 3];
    for (shard, count) in shards.iter_mut().zip(1..) {
        shard.ready = true;
        shard.stats.sessions = count;
        shard.stats.published_messages = 10 * count;
        shard.namespaces = count;
        shard.damage = count;
        shard.clock.jumps = 1;
    }
    let sum = Snapshot::sum(&shards);
    assert!(sum.ready && sum.trouble.is_none());
    assert_eq!((sum.stats.sessions, sum.stats.published_messages), (6, 60));
    assert_eq!((sum.namespaces, sum.damage, sum.clock.jumps), (3, 6, 1));
    shards[1].trouble = Some(trouble(true));
    assert!(Snapshot::sum(&shards).trouble.unwrap().full);
    shards[2].trouble = Some(trouble(false));
    assert!(!Snapshot::sum(&shards).trouble.unwrap().full);
    shards[0].ready = false;
    assert!(!Snapshot::sum(&shards).ready);
}

#[test]
fn gates_and_turns_of_several_shards_are_told_apart() {
    let shard = || Snapshot {
        flow: Flow {
            publishes: Some(Gate::<()>::new(GateSettings::DEFAULT).reading()),
            deliveries: None,
        },
        ..Snapshot::default()
    };
    let one = Metrics::default().text(vec![shard()], vec![7]).unwrap();
    assert!(
        one.contains("airmail_flow_bound{gate=\"publish\"} "),
        "{one}"
    );
    assert!(one.contains("airmail_shard_turns_total{shard=\"0\"} 7\n"));
    let two = Metrics::default()
        .text(vec![shard(), shard()], vec![7, 8])
        .unwrap();
    for gate in ["publish-0", "publish-1"] {
        assert!(
            two.contains(&format!("airmail_flow_bound{{gate=\"{gate}\"}} ")),
            "{two}"
        );
    }
    assert!(two.contains("airmail_shard_turns_total{shard=\"1\"} 8\n"));
}

#[test]
fn the_memory_of_this_process_is_known() {
    assert!(resident_bytes() > 0);
}
