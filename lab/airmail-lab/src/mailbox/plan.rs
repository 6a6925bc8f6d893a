//! The table of experiments: the question of each, its cases, and its figures.

use super::RunArgs;
use super::case::{Case, Factor, Subject};
use airmail_experiments::mailbox::Mix;

/// An experiment.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// Paragraphs on the parts of the paper that it repeats, and on its further questions.
    pub(super) about: &'static [&'static str],
    /// Its cases; those of a sample if asked for.
    cases: fn(quick: bool) -> Vec<Case>,
    /// Time for which each case is measured, in milliseconds, and number of repetitions: in full,
    /// and in a sample.
    full: (u64, u32),
    quick: (u64, u32),
    /// Factors over which curves are drawn, with their names.
    pub(super) curves: &'static [(Factor, &'static str)],
    /// Whether each run is drawn over time.
    pub(super) over_time: bool,
}

/// Extent of an experiment.
#[derive(Debug)]
pub(super) struct Scale {
    pub(super) quick: bool,
    pub(super) measured_ms: u64,
    pub(super) rounds: u32,
    /// Connections of a node to the database, a case each; empty: as the experiment has them.
    connections: Vec<u32>,
    /// Only cases with this in their names.
    only: String,
}

impl Scale {
    pub(super) fn new(plan: &Plan, args: &RunArgs) -> Scale {
        let (usual_ms, usual_rounds) = if args.quick { plan.quick } else { plan.full };
        Scale {
            quick: args.quick,
            measured_ms: args.duration.unwrap_or(usual_ms).max(1000),
            rounds: args.rounds.unwrap_or(usual_rounds).max(1),
            connections: args.connections.clone(),
            only: args.only.clone().unwrap_or_default(),
        }
    }

    /// The case with the connections that are asked for, if it does not set them itself.
    fn of(&self, case: Case) -> Vec<Case> {
        let is_set = case.subject != Subject::Service || case.varied.is_some();
        if is_set || self.connections.is_empty() {
            return vec![case];
        }
        let with = |connections: &u32| Case {
            connections: *connections,
            ..case.clone()
        };
        self.connections.iter().map(with).collect()
    }

    /// Time before the measurement that is left out: a sixth of it, at most the paper's minute.
    pub(super) fn warmup_ms(&self) -> u64 {
        (self.measured_ms / 6).clamp(1000, 60_000)
    }

    /// And behind it.
    pub(super) fn cooldown_ms(&self) -> u64 {
        (self.measured_ms / 20).clamp(200, 60_000)
    }
}

impl Plan {
    /// The cases, in the order of the table.
    pub(super) fn all(&self, quick: bool) -> Vec<Case> {
        (self.cases)(quick)
    }

    /// The cases in a round: the first one changes from round to round.
    pub(super) fn cases(&self, scale: &Scale, round: u32) -> Vec<Case> {
        let cases = (self.cases)(scale.quick).into_iter();
        let mut cases: Vec<Case> = cases
            .flat_map(|case| scale.of(case))
            .filter(|case| case.to_string().contains(&scale.only))
            .collect();
        let count = cases.len().max(1);
        cases.rotate_left(round as usize % count);
        cases
    }
}

const MINUTE: u64 = 60_000;

/// All of them.
const PLANS: &[Plan] = &[
    Plan {
        name: "workload",
        title: "Mailboxes: the paper's workload beside the bare statements",
        about: &[
            "Table 6.2: of 100 requests 20 send (a tenth of them broadcasts), 60 read, 20 read \
             broadcasts; 90 of 100 reads remove. 10 clients, 2 nodes, 2 queues, messages of 200 and of \
             2,000 bytes. Beside it pgbench, with as many clients, does the same on the paper's tables \
             and indexes with the one statement that each request needs (SKIP LOCKED where it removes, \
             so that it hands nothing out twice either), prepared, without a node between.",
            "The paper has almost 4,000 requests/s and almost 6 ms for 10 clients (section 6.3.5). In \
             closed loop both cannot be: 10 clients with 6 ms make at most 1,667 requests/s, and at \
             4,000 requests/s a request takes 2.5 ms.",
        ],
        cases: workload,
        full: (30_000, 7),
        quick: (10_000, 3),
        curves: &[],
        over_time: false,
    },
    Plan {
        name: "ping",
        title: "Mailboxes: ping, on one node and on two",
        about: &[
            "Figures 3.5 to 3.8: a request of one byte that the database is not asked for. In the paper \
             one thread of each node reads all requests, and throughput ends at 2 to 4 clients on one \
             node and at 6 on two.",
        ],
        cases: ping,
        full: (20_000, 3),
        quick: (2_000, 1),
        curves: &[(Factor::Clients, "clients")],
        over_time: false,
    },
    Plan {
        name: "batch",
        title: "Mailboxes: many messages in a request, beside one statement a message",
        about: &[
            "10 clients on 2 nodes and one queue: half send messages of 200 bytes, half remove them, so \
             many in each request. Beside it pgbench works as pgmq does, on pgmq's table: each message \
             is inserted by one statement, and removed by one (DELETE of the oldest that is visible, \
             SKIP LOCKED). A message counts when it is sent and when it is received; a pop that finds \
             nothing counts for pgmq as if it had found one.",
            "The paper's 4,000 requests/s at 6 ms are of one message each.",
        ],
        cases: batch,
        full: (20_000, 5),
        quick: (6_000, 2),
        curves: &[(Factor::Batch, "batch")],
        over_time: false,
    },
    Plan {
        name: "stability",
        title: "Mailboxes: stability",
        about: &[
            "Figures 6.3 to 6.10: the paper's workload for an hour (or --duration), 10 clients, 10 \
             threads and connections in all, on one node and on two; and once more on two with a \
             transaction that holds its snapshot open all the time. Beside such a transaction also with 100 \
             messages in a request: more of them than a day of the workload has.",
        ],
        cases: stability,
        full: (60 * MINUTE, 1),
        quick: (22_000, 1),
        curves: &[],
        over_time: true,
    },
    Plan {
        name: "backlog",
        title: "Mailboxes: with messages that nobody reads",
        about: &[
            "What chapter 7 left open: the paper's workload while 10^3 to 10^7 messages of 200 bytes for \
             another reader lie in the same queues. The bare statements beside it.",
        ],
        cases: backlog,
        full: (20_000, 1),
        quick: (4_000, 1),
        curves: &[(Factor::Backlog, "backlog")],
        over_time: false,
    },
    Plan {
        name: "factors",
        title: "Mailboxes: threads, connections and clients",
        about: &[
            "Figures 6.11 to 6.22: the paper's workload; threads of a node, its connections to the \
             database, or clients vary, while the other two are 20; on one, two and four nodes.",
        ],
        cases: factors,
        full: (15_000, 1),
        quick: (1_500, 1),
        curves: &[
            (Factor::Workers, "threads"),
            (Factor::Connections, "connections"),
            (Factor::Clients, "clients"),
        ],
        over_time: false,
    },
    Plan {
        name: "database",
        title: "Mailboxes: the database alone",
        about: &[
            "Figures 2.7 and 2.8 with the probabilities of table 2.6: a fifth each sends (3 of 10 of \
             them broadcasts), reads, reads a broadcast, looks for a message from a sender, and lists \
             queues. pgbench, with as many connections as clients: the bare statements on the paper's \
             tables, and this store's functions with one request in each call, as nodes that gather \
             nothing would use them.",
        ],
        cases: database,
        full: (15_000, 2),
        quick: (3_000, 1),
        curves: &[(Factor::Clients, "clients")],
        over_time: false,
    },
    Plan {
        name: "size",
        title: "Mailboxes: bytes of a message",
        about: &[
            "Figure 6.23: the paper's workload with messages of one size; clients, threads and \
             connections are 10.",
        ],
        cases: size,
        full: (15_000, 3),
        quick: (3_000, 1),
        curves: &[(Factor::Size, "bytes")],
        over_time: false,
    },
    Plan {
        name: "time",
        title: "Mailboxes: where the time of a request goes",
        about: &[
            "Figure 6.24: the paper's workload, 10 clients and 2 nodes. What a client waits for a read; \
             what of it is the node's; and how long, on the average of all requests, it waits for a \
             connection, and a round trip to the database takes, with its commit.",
        ],
        cases: time,
        full: (5 * MINUTE, 1),
        quick: (30_000, 1),
        curves: &[],
        over_time: true,
    },
];

/// The experiment of a name.
pub(super) fn find(name: &str) -> Option<&'static Plan> {
    PLANS.iter().find(|plan| plan.name == name)
}

fn workload(_: bool) -> Vec<Case> {
    let case = |subject| Case::of(subject, Mix::Workload, 2, 10);
    vec![case(Subject::Service), case(Subject::Statements)]
}

fn ping(quick: bool) -> Vec<Case> {
    let clients: &[u32] = if quick {
        &[1, 2, 4, 8, 16, 32]
    } else {
        &[1, 2, 4, 6, 8, 10, 16, 24, 32, 48, 64]
    };
    let of_nodes = |nodes| {
        let cases = clients.iter();
        cases.map(move |clients| Case::of(Subject::Service, Mix::Ping, nodes, *clients))
    };
    [1, 2].into_iter().flat_map(of_nodes).collect()
}

fn batch(quick: bool) -> Vec<Case> {
    let batches: &[u32] = if quick {
        &[1, 10, 100]
    } else {
        &[1, 10, 100, 1000]
    };
    let of_service = |batch: &u32| Case::of(Subject::Service, Mix::Batch(*batch), 2, 10);
    let one = Case::of(Subject::Pgmq, Mix::Batch(1), 0, 10);
    let cases = batches.iter().map(of_service).chain([one]);
    let sizes = vec![200];
    cases
        .map(|case| Case {
            sizes: sizes.clone(),
            ..case
        })
        .collect()
}

fn stability(_: bool) -> Vec<Case> {
    let case = |nodes, held| Case {
        workers: 10 / nodes,
        connections: 10 / nodes,
        held,
        ..Case::of(Subject::Service, Mix::Workload, nodes, 10)
    };
    let many = Case {
        held: true,
        ..Case::of(Subject::Service, Mix::Batch(100), 2, 10)
    };
    vec![case(1, false), case(2, false), case(2, true), many]
}

fn backlog(quick: bool) -> Vec<Case> {
    let powers = if quick { 3..=5 } else { 3..=7 };
    let of_power = |power| {
        [Subject::Service, Subject::Statements].map(|subject| Case {
            backlog: 10_u64.pow(power),
            ..Case::of(subject, Mix::Workload, 2, 10)
        })
    };
    powers.flat_map(of_power).collect()
}

/// Level of the other factors while one varies (section 6.3).
const OTHERS: u32 = 20;

fn factors(quick: bool) -> Vec<Case> {
    let (levels, nodes): (&[u32], &[u32]) = if quick {
        (&[1, 4, 20], &[1, 2])
    } else {
        (&[1, 2, 4, 8, 12, 16, 20, 24], &[1, 2, 4])
    };
    let mut cases = Vec::new();
    for nodes in nodes {
        for factor in [Factor::Workers, Factor::Connections, Factor::Clients] {
            for level in levels {
                let level_of = |of| if factor == of { *level } else { OTHERS };
                cases.push(Case {
                    workers: level_of(Factor::Workers),
                    connections: level_of(Factor::Connections),
                    varied: Some(factor),
                    ..Case::of(
                        Subject::Service,
                        Mix::Workload,
                        *nodes,
                        level_of(Factor::Clients),
                    )
                });
            }
        }
    }
    cases
}

fn database(quick: bool) -> Vec<Case> {
    let clients: &[u32] = if quick {
        &[1, 4, 10, 20]
    } else {
        &[1, 2, 4, 6, 8, 10, 12, 16, 20, 30, 40]
    };
    let of = |clients: &u32| {
        [Subject::Statements, Subject::Functions]
            .map(|subject| Case::of(subject, Mix::Database, 0, *clients))
    };
    clients.iter().flat_map(of).collect()
}

fn size(quick: bool) -> Vec<Case> {
    let sizes: &[u32] = if quick {
        &[200, 2000, 8000, 64_000]
    } else {
        &[100, 200, 500, 1000, 2000, 4000, 8000, 16_000, 64_000]
    };
    let of = |size: &u32| Case {
        workers: 10,
        connections: 10,
        sizes: vec![*size],
        ..Case::of(Subject::Service, Mix::Workload, 2, 10)
    };
    sizes.iter().map(of).collect()
}

fn time(_: bool) -> Vec<Case> {
    vec![Case::of(Subject::Service, Mix::Workload, 2, 10)]
}

#[cfg(test)]
mod tests {
    use super::super::OutArgs;
    use super::*;
    use std::collections::BTreeSet;

    /// Starting nodes and a new database, at most, in milliseconds.
    const AROUND_MS: u64 = 1_500;

    fn sample(plan: &Plan, connections: &[u32]) -> Scale {
        let args = RunArgs {
            quick: true,
            duration: None,
            rounds: None,
            connections: connections.to_vec(),
            only: None,
            database: None,
            data: None,
            out: OutArgs {
                out: "unused".into(),
                json: false,
            },
        };
        Scale::new(plan, &args)
    }

    #[test]
    fn every_experiment_has_cases_and_a_sample_that_fits_two_minutes() {
        let names: BTreeSet<&str> = PLANS.iter().map(|plan| plan.name).collect();
        assert_eq!(names.len(), PLANS.len());
        for plan in PLANS {
            let scale = sample(plan, &[]);
            let cases = plan.cases(&scale, 0);
            assert!(!cases.is_empty() && !(plan.cases)(false).is_empty());
            let each = scale.warmup_ms() + scale.measured_ms + scale.cooldown_ms() + AROUND_MS;
            let all = each * u64::from(scale.rounds) * cases.len() as u64;
            assert!(all <= 2 * MINUTE, "{}: {all} ms", plan.name);
        }
    }

    #[test]
    fn who_is_first_changes_and_nobody_is_left_out() {
        let plan = find("workload").unwrap();
        let scale = sample(plan, &[]);
        let (first, second) = (plan.cases(&scale, 1), plan.cases(&scale, 2));
        assert_ne!(first[0], second[0]);
        assert!(first.iter().all(|case| second.contains(case)));
    }

    #[test]
    fn connections_that_are_asked_for_are_a_case_each_of_nodes_alone() {
        let plan = find("workload").unwrap();
        let cases = plan.cases(&sample(plan, &[1, 2]), 0);
        let of = |subject| cases.iter().filter(move |case| case.subject == subject);
        let connections: Vec<u32> = of(Subject::Service).map(|case| case.connections).collect();
        assert_eq!(connections, [1, 2]);
        assert_eq!(of(Subject::Statements).count(), 1);
    }

    #[test]
    fn one_factor_varies_while_the_others_are_twenty() {
        for case in factors(false) {
            let levels = [Factor::Workers, Factor::Connections, Factor::Clients];
            for factor in levels.into_iter().filter(|one| case.varied != Some(*one)) {
                assert_eq!(factor.value(&case), Some(f64::from(OTHERS)), "{case:?}");
            }
        }
    }
}
