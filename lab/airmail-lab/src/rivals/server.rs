//! A rival's server, started for a run with fresh data on a free port, here or on the node's machine.
//!
//! A process of this program keeps it, `airmail-lab server`: it finds the program, starts it, and
//! ends it by its process when its own standard input ends. So no server outlives the experiment.

mod keeper;
mod program;

use crate::hosts::Hosts;
use airmail_bench::family::member::Member;
use airmail_bench::process::Usage;
use anyhow::Context as _;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

pub(crate) use keeper::keep_server;

/// Kinds of servers, with their settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// NATS without JetStream.
    Nats,
    /// NATS with JetStream on files: synced before each ack (`always`), or as it comes.
    JetStream {
        /// Whether each write is synced before its ack.
        always: bool,
    },
    /// Redis with the append-only file: synced before each reply (`always`), or every second.
    Redis {
        /// Whether each write is synced before its ack.
        always: bool,
    },
    /// Kafka: one process that is broker and controller.
    Kafka,
}

/// Task of the keeper.
#[derive(Debug, Serialize, Deserialize)]
struct Task {
    kind: Kind,
    /// Where the programs are.
    servers: Option<PathBuf>,
    /// Where the directory for data is to be; absent: where there is a disk.
    directory: Option<PathBuf>,
    /// Where it listens.
    address: String,
}

/// The keeper's report when the server answers.
#[derive(Debug, Serialize, Deserialize)]
struct Started {
    port: u16,
    version: String,
}

/// The server.
#[derive(Debug)]
pub(crate) struct Server {
    member: Mutex<Member>,
    url: String,
    version: String,
}

impl Kind {
    /// Scheme of its URLs.
    fn scheme(self) -> &'static str {
        match self {
            Kind::Nats => "nats",
            Kind::JetStream { .. } => "jetstream",
            Kind::Redis { .. } => "redis",
            Kind::Kafka => "kafka",
        }
    }
}

impl Server {
    /// Starts it on the node's machine, with its program from `servers` and its data in `directory`.
    ///
    /// # Errors
    /// Its program is not there, or it does not start; the error says what to do.
    pub(crate) fn start(
        hosts: &Hosts,
        kind: Kind,
        servers: Option<PathBuf>,
        directory: Option<PathBuf>,
    ) -> anyhow::Result<Server> {
        let place = hosts.node();
        let task = Task {
            kind,
            servers,
            directory,
            address: place.address().to_owned(),
        };
        let mut member = Member::start_at(place, crate::cli::SERVER, &task, hosts.stop())?;
        let started: Started = serde_json::from_str(&member.hear("ready")?)?;
        let (scheme, port) = (kind.scheme(), started.port);
        Ok(Server {
            member: Mutex::new(member),
            url: format!("{scheme}://{}:{port}", place.address()),
            version: started.version,
        })
    }

    /// URL of the server, for [`airmail_bench::Target`].
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Version of the server.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Resources that it has used.
    ///
    /// # Errors
    /// Its keeper has ended.
    pub(crate) fn usage(&self) -> anyhow::Result<Usage> {
        let mut member = self.member.lock();
        member.tell("usage").context("the server's keeper")?;
        Ok(serde_json::from_str(&member.hear("usage")?)?)
    }
}
