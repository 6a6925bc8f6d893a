//! A command that becomes a node, with its logs on the Kafka that the tests of this process share.

use crate::{kafka, scale};
use std::collections::hash_map::DefaultHasher;
use std::ffi::OsStr;
use std::hash::{Hash, Hasher as _};
use std::process::Command;

/// The command of a node, with its logs on Kafka where tests are run so and it does not say where they are. Those of one
/// data directory are the same: so a node that is started again there has what it had.
pub(super) fn with_logs_there(mut command: Command) -> Command {
    let brokers = scale::kafka_brokers();
    let arguments: Vec<&OsStr> = command.get_args().collect();
    let has = |flag: &str| arguments.iter().any(|argument| *argument == flag);
    let says_where = ["--log", "--config", "--roles", "--join", "--print-config"];
    let is_node = arguments.first().is_some_and(|first| *first == "serve");
    if brokers == 0 || !is_node || says_where.iter().any(|flag| has(flag)) {
        return command;
    }
    let data = arguments.iter().position(|argument| *argument == "--data");
    let data = data.and_then(|at| arguments.get(at + 1));
    if let Some(url) = url_of(&data) {
        command.args(["--log", &url]);
    }
    command
}

/// The URL of logs on Kafka that are of this, where tests are run so: the same logs at each call.
pub fn url_of(of: &impl Hash) -> Option<String> {
    let brokers = scale::kafka_brokers();
    if brokers == 0 {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    let (prefix, insync) = (hasher.finish(), brokers.div_ceil(2));
    let bootstrap = kafka::shared(brokers)?;
    Some(format!(
        "kafka://{bootstrap}?replicas={brokers}&min_insync={insync}&prefix=node-{prefix:016x}"
    ))
}
