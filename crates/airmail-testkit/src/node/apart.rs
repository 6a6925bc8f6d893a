//! A command that becomes a node, divided in two: one that becomes the node with its logs, and one that becomes a
//! gateway where it would have been.

use super::{airmail, scale};
use std::ffi::OsStr;
use std::process::Command;

/// Options of a node that are the gateway's, too: all that clients notice.
const OF_BOTH: [&str; 4] = ["--config", "--log-level", "--log-format", "--mailbox"];

/// The two commands.
#[derive(Debug)]
pub(super) struct Divided {
    pub(super) tower: Command,
    /// It is to be told which node to join.
    pub(super) gateway: Command,
}

/// Divides the command of a node, where tests are run so. `None` for any other, and for one of a cluster.
pub(super) fn divided(command: &Command) -> Option<Divided> {
    let arguments: Vec<&str> = command.get_args().filter_map(OsStr::to_str).collect();
    let of_cluster = ["--cluster", "--join", "--roles", "--print-config"];
    let is_node = arguments.first() == Some(&"serve")
        && !arguments
            .iter()
            .any(|argument| of_cluster.contains(argument));
    if !scale::is_apart() || !is_node {
        return None;
    }
    let mut tower = like(command);
    let mut gateway = like(command);
    gateway.args(["serve", "--roles", "pilot,copilot", "--name", "gateway"]);
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        match argument {
            "--listen" | "--http" => {
                gateway.arg(argument).args(arguments.next());
                tower.args([argument, "127.0.0.1:0"]);
            }
            both if OF_BOTH.contains(&both) => {
                let value = arguments.next();
                tower.arg(both).args(value);
                gateway.arg(both).args(value);
            }
            other => {
                tower.arg(other);
            }
        }
    }
    tower.args(["--cluster", "127.0.0.1:0"]);
    Some(Divided { tower, gateway })
}

/// A command of the same program, in the same place and environment.
fn like(command: &Command) -> Command {
    let mut like = airmail();
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => like.env(name, value),
            None => like.env_remove(name),
        };
    }
    if let Some(directory) = command.get_current_dir() {
        like.current_dir(directory);
    }
    like
}
