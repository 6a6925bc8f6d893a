//! Runs the cases of an experiment, whichever it is, and records them.
//!
//! Each run has a new database, dropped behind it, and new nodes.

use super::RunArgs;
use super::case::{Case, Subject};
use super::database::{Connection, Database, Server};
use super::plan::{Plan, Scale};
use super::sampling::Sampling;
use super::service::Service;
use super::{pgbench, statements};
use crate::narration::say;
use airmail_bench::clock::now_us;
use airmail_bench::family::Stop;
use airmail_bench::family::own_node::directory;
use airmail_experiments::mailbox::record::{Recorder, Sink};
use std::thread::sleep;
use std::time::Duration;

/// Pause between the making of a run's tables and its begin, for the database's own work.
const BREATH: Duration = Duration::from_millis(200);

/// The runner.
pub(super) struct Runner<'a> {
    args: &'a RunArgs,
    stop: &'a Stop,
    /// Absent where no case has a database.
    server: Option<Server>,
    about_server: String,
}

impl<'a> Runner<'a> {
    /// Finds or starts the server, if the experiment has one.
    pub(super) fn new(
        args: &'a RunArgs,
        needs_database: bool,
        stop: &'a Stop,
    ) -> anyhow::Result<Runner<'a>> {
        let open = || Server::open(args.database.as_deref(), args.data.as_deref(), stop);
        let server = needs_database.then(open).transpose()?;
        let about_server = match &server {
            None => "No database takes part.".to_owned(),
            Some(server) => {
                let how = match args.database {
                    None => {
                        "started for this on the loopback, with its own defaults (so a commit \
                             waits for the disk) but for max_connections"
                    }
                    Some(_) => "which was there before, as it is",
                };
                format!(
                    "PostgreSQL {}, {how}; a new database for each run.",
                    server.version
                )
            }
        };
        Ok(Runner {
            args,
            stop,
            server,
            about_server,
        })
    }

    /// Paragraph about the server for a report.
    pub(super) fn server(&self) -> &str {
        &self.about_server
    }

    /// Runs all cases in all rounds, until it is stopped.
    pub(super) fn run(
        &self,
        plan: &Plan,
        scale: &Scale,
        recorder: &mut Recorder,
    ) -> anyhow::Result<()> {
        for round in 1..=scale.rounds {
            for case in plan.cases(scale, round) {
                if self.stop.is_set() {
                    return Ok(());
                }
                say(&format!("round {round} of {}: {case}", scale.rounds));
                let mut sink = recorder.begin(round, &case)?;
                self.run_case(&case, scale, &mut sink)?;
            }
        }
        Ok(())
    }

    fn run_case(&self, case: &Case, scale: &Scale, sink: &mut Sink) -> anyhow::Result<()> {
        let database = match &self.server {
            Some(server) if case.needs_database() => Some(server.create()?),
            _ => None,
        };
        let url = database.as_ref().map(|database| database.url.as_str());
        if let (Some(url), Some(tables)) = (url, statements::tables(case)) {
            Connection::open(url)?.run(&tables)?;
        }
        let service = match case.subject {
            Subject::Service => Some(Service::start(case, url)?),
            // Makes schema, queues and accounts, and goes.
            Subject::Functions => Service::start(case, url).map(drop).map(|()| None)?,
            Subject::Statements | Subject::Pgmq => None,
        };
        let _held = match url {
            Some(url) if case.held => Some(hold(url)?),
            _ => None,
        };
        sleep(BREATH);
        let watched = self.server.as_ref().zip(url);
        let sampling = Sampling::start(watched, service.as_ref(), sink.clone())?;
        let begin_us = now_us() + scale.warmup_ms() * 1000;
        let end_us = begin_us + scale.measured_ms * 1000;
        let until_us = end_us + scale.cooldown_ms() * 1000;
        match (&service, &database) {
            (Some(service), _) => service.run(case, until_us, sink, self.stop)?,
            (None, Some(database)) => self.run_pgbench(case, database, until_us, sink)?,
            (None, None) => {}
        }
        drop(sampling);
        sink.window(begin_us, end_us);
        Ok(())
    }

    fn run_pgbench(
        &self,
        case: &Case,
        database: &Database<'_>,
        until_us: u64,
        sink: &mut Sink,
    ) -> anyhow::Result<()> {
        let directory = directory(self.args.data.as_deref())?;
        let seconds = until_us.saturating_sub(now_us()).div_ceil(1_000_000);
        pgbench::run(
            case,
            &database.url,
            seconds,
            directory.path(),
            sink,
            self.stop,
        )
    }
}

/// A transaction with a number and a snapshot, open for as long as what comes back.
fn hold(url: &str) -> anyhow::Result<Connection> {
    let connection = Connection::open(url)?;
    connection.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT txid_current();")?;
    Ok(connection)
}
