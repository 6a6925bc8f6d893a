//! A case: one setting of every factor.

use airmail_experiments::mailbox::Mix;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Systems that are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Subject {
    /// Nodes, through the SDK.
    Service,
    /// The paper's tables, through pgbench, with the one statement that each request needs.
    Statements,
    /// The store's functions, through pgbench, one request in each call.
    Functions,
    /// A table as pgmq has it, through pgbench, one statement for each message.
    Pgmq,
}

impl Subject {
    pub(super) fn name(self) -> &'static str {
        match self {
            Subject::Service => "service",
            Subject::Statements => "bare statements",
            Subject::Functions => "functions",
            Subject::Pgmq => "one statement a message",
        }
    }
}

/// A setting of every factor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Case {
    pub(super) subject: Subject,
    pub(super) mix: Mix,
    /// Nodes on one database; of no meaning where the service is not measured.
    pub(super) nodes: u32,
    /// Each with one request under way.
    pub(super) clients: u32,
    /// Threads of each node for mailboxes; 0: one for each processor.
    pub(super) workers: u32,
    /// Connections of each node for requests.
    pub(super) connections: u32,
    /// Bytes of messages, each as probable as the others.
    pub(super) sizes: Vec<u32>,
    /// Messages that are there before, and that nobody reads.
    pub(super) backlog: u64,
    /// Whether a transaction with a snapshot is held open beside it.
    pub(super) held: bool,
    /// The factor that the case is there for, where an experiment goes over several.
    pub(super) varied: Option<Factor>,
}

/// Sizes that stand for the paper's range from 200 to 2,000 bytes.
pub(super) const PAPER_SIZES: [u32; 2] = [200, 2000];

impl Case {
    /// The paper's workload on the service with its own settings, or on another subject.
    pub(super) fn of(subject: Subject, mix: Mix, nodes: u32, clients: u32) -> Case {
        Case {
            subject,
            mix,
            nodes,
            clients,
            workers: 0,
            connections: 4,
            sizes: PAPER_SIZES.into(),
            backlog: 0,
            held: false,
            varied: None,
        }
    }

    /// Whether a database takes part.
    pub(super) fn needs_database(&self) -> bool {
        self.mix != Mix::Ping
    }
}

/// Shows a case to a user who waits for the end.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} clients", self.subject.name(), self.clients)?;
        if self.subject == Subject::Service {
            write!(f, ", {} nodes", self.nodes)?;
        }
        for factor in [
            Factor::Workers,
            Factor::Connections,
            Factor::Batch,
            Factor::Backlog,
        ] {
            match factor.value(self) {
                Some(value) if self.varied == Some(factor) || factor == Factor::Batch => {
                    write!(f, ", {} {value}", factor.name())?;
                }
                _ => {}
            }
        }
        if self.held {
            write!(f, ", a transaction held open")?;
        }
        Ok(())
    }
}

/// A quantity in which cases differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Factor {
    Nodes,
    Clients,
    Workers,
    Connections,
    Size,
    Backlog,
    Batch,
}

impl Factor {
    pub(super) const ALL: [Factor; 7] = [
        Factor::Nodes,
        Factor::Clients,
        Factor::Workers,
        Factor::Connections,
        Factor::Size,
        Factor::Backlog,
        Factor::Batch,
    ];

    /// Name in tables and on axes.
    pub(super) fn name(self) -> &'static str {
        match self {
            Factor::Nodes => "nodes",
            Factor::Clients => "clients",
            Factor::Workers => "threads of a node",
            Factor::Connections => "connections of a node",
            Factor::Size => "bytes",
            Factor::Backlog => "messages there before",
            Factor::Batch => "messages a request",
        }
    }

    /// Its value; `None` where it has no meaning.
    pub(super) fn value(self, case: &Case) -> Option<f64> {
        let of_service = case.subject == Subject::Service;
        match self {
            Factor::Clients => Some(f64::from(case.clients)),
            Factor::Nodes => of_service.then(|| f64::from(case.nodes)),
            Factor::Workers => of_service.then(|| f64::from(case.workers)),
            Factor::Connections => of_service.then(|| f64::from(case.connections)),
            Factor::Size => {
                let sum: f64 = case.sizes.iter().copied().map(f64::from).sum();
                Some(sum / case.sizes.len().max(1) as f64)
            }
            Factor::Backlog => Some(case.backlog as f64),
            Factor::Batch => match case.mix {
                Mix::Batch(messages) => Some(f64::from(messages)),
                Mix::Ping | Mix::Workload | Mix::Database => None,
            },
        }
    }

    /// Whether its levels are factors apart rather than steps.
    pub(super) fn is_geometric(self) -> bool {
        matches!(self, Factor::Size | Factor::Backlog | Factor::Batch)
    }
}
