//! A node that is started for a run, in a process of its own: `airmail bench node`.

use crate::cli::{Cli, Command, UsageError};
use crate::commands::serve;
#[cfg(feature = "kafka")]
use airmail_bench::family::kafka_logs::PASSING_PREFIX;
use airmail_bench::family::leader::{AtEnd, Leader, say};
use airmail_bench::family::own_node::{Started, Task, directory};
use airmail_bench::process::Usage;
use airmail_node::environment::Environment;
#[cfg(feature = "kafka")]
use airmail_node::storage::StorageUrl;
use clap::Parser as _;
#[cfg(feature = "kafka")]
use std::path::Path;
use std::process::ExitCode;

/// Log level of a node whose log nobody reads.
const LOG_LEVEL: (&str, &str) = ("AIRMAIL_LOG_LEVEL", "error");

/// Serves until the leader is gone, and leaves nothing behind.
///
/// # Errors
/// As `airmail serve`.
pub(super) fn serve() -> anyhow::Result<ExitCode> {
    let (leader, task): (Leader, Task) = Leader::open(AtEnd::Tell)?;
    let data = directory(task.directory.as_deref())?;
    let mut environment = Environment::of_process();
    if environment.get(LOG_LEVEL.0).is_none() {
        environment = environment.with(LOG_LEVEL.0, LOG_LEVEL.1);
    }
    for (name, value) in &task.environment {
        environment = environment.with(name, value);
    }
    let free = format!("{}:0", task.address);
    let path = data.path().display().to_string();
    let mut words = vec!["airmail", "serve", "--listen", &free, "--http", &free];
    words.extend(["--data", &path]);
    words.extend(task.options.iter().map(String::as_str));
    let Command::Serve(args) = Cli::try_parse_from(words)?.command else {
        return Err(UsageError("--node: not an option of airmail serve".to_owned()).into());
    };
    #[cfg(feature = "kafka")]
    let logs = args.log.clone();
    serve::run_and_tell(&args, &environment, |_, running| {
        let started = Started {
            port: running.address.port(),
            http_port: running.http_address.map_or(0, |address| address.port()),
            cluster_port: running.cluster_address.map(|address| address.port()),
            pid: std::process::id(),
            data: data.path().to_owned(),
        };
        // Whether the leader still hears it, the thread finds out.
        let _ = serde_json::to_string(&started).map(|started| say(&format!("ready {started}")));
        let answer = move || {
            while let Ok(question) = leader.line() {
                if question == "usage" {
                    let usage = serde_json::to_string(&Usage::own());
                    let _ = usage.map(|usage| say(&format!("usage {usage}")));
                }
            }
            // Its data goes with it, so there is nothing that it would have to finish.
            #[cfg(feature = "kafka")]
            remove_topics(&logs, data.path());
            drop(data);
            std::process::exit(0);
        };
        let thread = std::thread::Builder::new().name("leader".into());
        if thread.spawn(answer).is_err() {
            std::process::exit(1);
        }
    })
}

/// Removes the topics of those of its storages that are on Kafka for this run alone.
#[cfg(feature = "kafka")]
fn remove_topics(logs: &[String], data: &Path) {
    let urls = logs.iter().map(|log| StorageUrl::parse(log, data));
    let urls = urls.filter_map(Result::ok);
    let passing = urls.filter_map(|url| match url {
        StorageUrl::Kafka(url) if url.prefix.starts_with(PASSING_PREFIX) => Some(url),
        _ => None,
    });
    for url in passing {
        if let Err(error) = url.remove_topics() {
            tracing::error!(prefix = url.prefix, %error, "topics are left on Kafka");
        }
    }
}
