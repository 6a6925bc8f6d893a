//! The findings as one JSON object. Lists that may be long are written while they are computed:
//! none of them is in memory as text, and the overlapping pairs not at all.
//!
//! Scripts rely on these names. Nodes stand there by id, topics by name, max groups by index into
//! `max_groups`.

use super::findings::Findings;
use airmail_topology::{
    AddedPartitions, Advice, Cluster, Fault, NodeId, NodeSet, PartitionIndex, Place, Plan, Summary,
};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Writes the document on one line.
pub(super) fn write(out: &mut impl Write, findings: &Findings<'_>) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &Document(findings))?;
    out.write_all(b"\n")
}

struct Document<'a>(&'a Findings<'a>);

/// A list that is made while it is written.
struct Each<F>(F);

impl<I: Iterator<Item: Serialize>, F: Fn() -> I> Serialize for Each<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0())
    }
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let findings = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("balanced", &findings.is_balanced())?;
        map.serialize_entry("nodes", findings.cluster.nodes())?;
        self.sets(&mut map)?;
        self.partitions(&mut map)?;
        let cluster = findings.cluster;
        let faults = &findings.faults;
        let worst = Each(|| faults.worst.iter().map(|fault| of_fault(cluster, fault)));
        map.serialize_entry("faults", &worst)?;
        map.serialize_entry("faults_possible", &faults.possible)?;
        map.serialize_entry("faults_passed_over", &faults.passed_over)?;
        if let Some(advice) = &findings.advice {
            map.serialize_entry("advice", &of_advice(cluster, advice))?;
        }
        map.end()
    }
}

impl Document<'_> {
    /// Writes the findings on sets, which are chapter 3 of the paper.
    fn sets<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let findings = self.0;
        let cluster = findings.cluster;
        let groups = Each(|| {
            findings.groups.iter().map(|group| {
                json!({
                    "topics": names(cluster, &group.topics),
                    "nodes": ids(cluster, &group.nodes),
                })
            })
        });
        map.serialize_entry("max_groups", &groups)?;
        map.serialize_entry("overlap_count", &findings.overlaps)?;
        let overlaps = findings.overlapping();
        let pairs = Each(|| {
            overlaps
                .pairs()
                .map(|pair| json!({ "groups": pair.groups, "nodes": ids(cluster, &pair.nodes) }))
        });
        let pairs = findings.lists_overlaps.then_some(pairs);
        map.serialize_entry("overlaps", &pairs)?;
        let nodes = Each(|| {
            let nodes = overlaps.nodes();
            nodes.map(|(node, groups)| json!({ "node": cluster.id(node), "groups": groups }))
        });
        map.serialize_entry("overlapping_nodes", &nodes)
    }

    /// Writes the findings on single topics and nodes.
    fn partitions<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let findings = self.0;
        let cluster = findings.cluster;
        let uneven = Each(|| {
            findings.uneven.iter().map(|uneven| {
                let counts = uneven.leaders.counts().iter();
                let counts = counts.map(|(node, count)| (cluster.id(*node), *count));
                json!({
                    "group": uneven.group,
                    "topic": cluster.topics()[uneven.topic].name,
                    "partitions_per_node": counts.collect::<BTreeMap<_, _>>(),
                })
            })
        });
        map.serialize_entry("uneven", &uneven)?;
        let replicas = &findings.replicas;
        let not_preferred = replicas.not_preferred.iter().map(|(index, leader)| {
            let mut row = of_partition(cluster, *index);
            row["leader"] = json!(cluster.id(*leader));
            row
        });
        map.serialize_entry("not_preferred", &not_preferred.collect::<Vec<_>>())?;
        let under_replicated = replicas.under_replicated.iter().map(|(index, missing)| {
            let mut row = of_partition(cluster, *index);
            row["missing"] = json!(list(cluster, missing));
            row
        });
        map.serialize_entry("under_replicated", &under_replicated.collect::<Vec<_>>())?;
        let leaderless = replicas.leaderless.iter();
        let leaderless = leaderless.map(|index| of_partition(cluster, *index));
        map.serialize_entry("leaderless", &leaderless.collect::<Vec<_>>())?;
        let [by_partitions, by_nodes] = findings.loads.each_ref().map(|load| load.by_node());
        let loads = by_partitions.iter().zip(by_nodes).zip(cluster.nodes());
        let loads = loads.map(|((by_partitions, by_nodes), node)| {
            json!({ "node": node, "by_partitions": by_partitions, "by_nodes": by_nodes })
        });
        map.serialize_entry("load", &loads.collect::<Vec<_>>())
    }
}

fn of_partition(cluster: &Cluster, index: PartitionIndex) -> Value {
    json!({ "topic": cluster.topics()[index.topic].name, "partition": index.partition })
}

fn of_peak(cluster: &Cluster, peak: Option<(Place, f64)>) -> Option<Value> {
    peak.map(|(node, load)| json!({ "node": cluster.id(node), "load": load }))
}

fn of_fault(cluster: &Cluster, fault: &Fault) -> Value {
    let leaderless = fault.leaderless.iter().map(|(topic, partitions)| {
        json!({ "topic": cluster.topics()[*topic].name, "partitions": partitions })
    });
    json!({
        "lost": list(cluster, &fault.lost),
        "leaderless": leaderless.collect::<Vec<_>>(),
        "uneven": names(cluster, &fault.uneven),
        "overlap_count": fault.overlaps,
        "overlapping_nodes": list(cluster, &fault.overlapping_nodes),
        "peak": of_peak(cluster, fault.peak),
        "imbalance": fault.imbalance,
    })
}

fn of_advice(cluster: &Cluster, advice: &Advice) -> Value {
    let not_offered = advice.not_offered.iter();
    let not_offered = not_offered
        .map(|(goal, reason)| json!({ "goal": goal.name(), "reason": reason.to_string() }));
    let plans = advice.plans.iter().map(|plan| of_plan(cluster, plan));
    json!({
        "before": of_summary(cluster, &advice.before),
        "plans": plans.collect::<Vec<_>>(),
        "not_offered": not_offered.collect::<Vec<_>>(),
    })
}

fn of_plan(cluster: &Cluster, plan: &Plan) -> Value {
    let added = plan.reassignment.added.iter();
    let added = added.map(|AddedPartitions { topic, from, to }| {
        json!({ "topic": cluster.topics()[*topic].name, "from": from, "to": to })
    });
    json!({
        "goal": plan.goal.name(),
        "moves": plan.reassignment.moves(),
        "added_partitions": added.collect::<Vec<_>>(),
        "reassignment": serde_json::to_value(plan.reassignment.for_kafka(cluster)).ok(),
        "after": of_summary(cluster, &plan.after),
    })
}

fn of_summary(cluster: &Cluster, summary: &Summary) -> Value {
    json!({
        "max_groups": summary.max_groups,
        "overlap_count": summary.overlaps,
        "uneven": summary.uneven,
        "peak": of_peak(cluster, summary.peak),
        "imbalance": summary.imbalance,
    })
}

fn names<'a>(cluster: &'a Cluster, topics: &[usize]) -> Vec<&'a str> {
    let names = topics.iter().map(|topic| &*cluster.topics()[*topic].name);
    names.collect()
}

fn ids(cluster: &Cluster, nodes: &NodeSet) -> Vec<NodeId> {
    nodes.iter().map(|node| cluster.id(node)).collect()
}

fn list(cluster: &Cluster, nodes: &[Place]) -> Vec<NodeId> {
    nodes.iter().map(|node| cluster.id(*node)).collect()
}
