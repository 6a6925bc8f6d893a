//! Section 6.4: topic A has one partition on node 1 and two on node 2, B has one each on nodes 2 and 3;
//! one producer sends α records to A, another β to B. What does each node get?
//!
//! The two are in processes of their own, as on different machines, and once in one process with one
//! shared SQF partitioner (figure 6.7), where they send in step. What nodes have got is read from the
//! cluster.

use super::Given;
use super::bench::Bench;
use super::cluster::{LONG_SESSION_MS, Resource};
use super::load::Flow;
use super::policy::Policy;
use super::scene::Acks;
use crate::narration::say;
use airmail_experiments::results::{Findings, Row, Section, Table};
use airmail_experiments::row;

/// The leaders of A's partitions, and of B's.
const LEADERS: [&[u32]; 2] = [&[1, 2, 2], &[2, 3]];
/// Records of A and of B: α and β.
const RECORDS: [u64; 2] = [60_000, 40_000];
/// Largest difference between a node's share and the expected one.
const TOLERANCE: f64 = 0.01;
const NODES: usize = 3;

/// Records of nodes 1, 2, 3.
type Load = [f64; NODES];

/// A way to send, and its result.
struct Sent {
    policy: Policy,
    is_shared: bool,
    load: Load,
}

pub(super) fn run(given: Given<'_>, findings: &mut Findings) -> anyhow::Result<bool> {
    let policies = given.args.policies();
    let mut bench = Bench::start(given, 3, (Resource::Shared, LONG_SESSION_MS))?;
    let shared = policies
        .contains(&Policy::Sqf)
        .then_some((Policy::Sqf, true));
    let ways = policies.into_iter().map(|policy| (policy, false));
    let sent = given
        .times
        .each(ways.chain(shared), |(policy, is_shared)| {
            let sent = send(&mut bench, policy, is_shared)?;
            let [first, second, third] = sent.load;
            let name = sent.name();
            say(&format!("section 6.4, {name}: {first}, {second}, {third}"));
            Ok(sent)
        })?;
    findings.rows.extend(sent.iter().map(row));
    findings.sections.push(section(&sent));
    Ok(sent.iter().all(Sent::is_as_it_must_be))
}

fn send(bench: &mut Bench<'_>, policy: Policy, is_shared: bool) -> anyhow::Result<Sent> {
    let mut flows = Vec::new();
    for (leaders, records) in LEADERS.iter().zip(RECORDS) {
        let topic = bench.new_topic();
        let replicas: Vec<Vec<u32>> = leaders.iter().map(|leader| vec![*leader]).collect();
        bench.desk.create(&topic, &replicas)?;
        let private = (policy == Policy::Sqf && !is_shared).then(|| {
            (
                "airmail.partitioner.sqf.shared".to_owned(),
                "false".to_owned(),
            )
        });
        flows.push(Flow {
            topic,
            acks: Acks::All,
            policy,
            records,
            warm_up: 0,
            size: bench.size(),
            rate: None,
            is_in_step: is_shared,
            number: flows.len() as u32,
            properties: private.into_iter().collect(),
        });
    }
    let processes = if is_shared {
        vec![flows.clone()]
    } else {
        flows.iter().map(|flow| vec![flow.clone()]).collect()
    };
    let mut loads = Vec::new();
    for flows in &processes {
        loads.push(bench.load(flows)?);
    }
    for load in &mut loads {
        load.ready()?;
    }
    for load in &mut loads {
        load.go()?;
    }
    for load in loads {
        load.end()?;
    }
    let mut load = [0.0; NODES];
    for (leaders, flow) in LEADERS.iter().zip(&flows) {
        let records = bench.desk.records(&flow.topic)?;
        for (leader, records) in leaders.iter().zip(records) {
            load[*leader as usize - 1] += records as f64;
        }
        bench.desk.delete(&flow.topic)?;
    }
    Ok(Sent {
        policy,
        is_shared,
        load,
    })
}

impl Sent {
    fn name(&self) -> String {
        if self.is_shared {
            format!("{}, shared", self.policy.title())
        } else {
            self.policy.title().to_owned()
        }
    }

    /// The table of section 6.4.
    fn expected(&self) -> Load {
        let [alpha, beta] = RECORDS.map(|records| records as f64);
        match (self.is_shared, self.policy.is_by_node()) {
            (true, _) => [(alpha + beta) / 3.0; NODES],
            (false, true) => [alpha / 2.0, f64::midpoint(alpha, beta), beta / 2.0],
            (false, false) => [alpha / 3.0, alpha * 2.0 / 3.0 + beta / 2.0, beta / 2.0],
        }
    }

    /// Deviation of the node that is farthest off, as a part of its expected share.
    fn deviation(&self) -> f64 {
        let pairs = self.load.iter().zip(self.expected());
        let off = pairs.map(|(is, shall)| (is - shall).abs() / shall);
        off.fold(0.0, f64::max)
    }

    /// Policies of the paper give each record its turn. Those that fill batches come near, and go where
    /// there is room.
    fn is_exact(&self) -> bool {
        !matches!(self.policy, Policy::BuiltIn | Policy::Adaptive)
    }

    fn is_as_it_must_be(&self) -> bool {
        let all = self.load.iter().sum::<f64>() as u64 == RECORDS.iter().sum::<u64>();
        all && (!self.is_exact() || self.deviation() <= TOLERANCE)
    }
}

fn row(sent: &Sent) -> Row {
    row! {
        "part": "nodes",
        "policy": sent.policy.name(),
        "shared": sent.is_shared,
        "alpha": RECORDS[0],
        "beta": RECORDS[1],
        "records": sent.load,
        "expected": sent.expected(),
        "deviation": sent.deviation(),
        "is_exact": sent.is_exact(),
        "is_as_it_must_be": sent.is_as_it_must_be(),
    }
}

fn section(sent: &[Sent]) -> Section {
    let line = |sent: &Sent| {
        let mut line = vec![sent.name()];
        let pairs = sent.load.iter().zip(sent.expected());
        line.extend(pairs.map(|(is, shall)| format!("{is:.0} ({shall:.0})")));
        line.push(format!("{:.2} %", sent.deviation() * 100.0));
        line
    };
    let [alpha, beta] = RECORDS;
    Section {
        title: "Section 6.4: what each node gets".to_owned(),
        text: vec![format!(
            "A has one partition on node 1 and two on node 2, B has one each on nodes 2 and 3. One producer \
             sends α = {alpha} records to A, another β = {beta} to B. By node that is α/2, (α+β)/2, β/2; by \
             partition α/3, 2α/3+β/2, β/2; and (α+β)/3 each for a shared SQF. In brackets what it shall \
             be; at most {:.0} % off for the paper's policies. Those that fill batches follow also what nodes \
             can take at the moment.",
            TOLERANCE * 100.0
        )],
        table: Table::new(
            ["policy", "node 1", "node 2", "node 3", "farthest off"],
            sent.iter().map(line),
        ),
        ..Section::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percent_too_much_for_a_node_is_told() {
        let sent = |policy, is_shared, load| Sent {
            policy,
            is_shared,
            load,
        };
        assert!(sent(Policy::Node, false, [30_000.0, 50_000.0, 20_000.0]).is_as_it_must_be());
        assert!(!sent(Policy::Node, false, [29_600.0, 50_400.0, 20_000.0]).is_as_it_must_be());
        assert!(sent(Policy::Default, false, [20_000.0, 60_000.0, 20_000.0]).is_as_it_must_be());
        assert!(!sent(Policy::Default, false, [30_000.0, 50_000.0, 20_000.0]).is_as_it_must_be());
        assert!(sent(Policy::Sqf, true, [33_333.0, 33_334.0, 33_333.0]).is_as_it_must_be());
        // One record is lost.
        assert!(!sent(Policy::Sqf, true, [33_333.0, 33_333.0, 33_333.0]).is_as_it_must_be());
        assert!(sent(Policy::Adaptive, false, [40_000.0, 50_000.0, 10_000.0]).is_as_it_must_be());
    }
}
