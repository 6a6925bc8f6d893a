//! A command that becomes a node, divided: one that becomes the node with its logs, and one that becomes a gateway, or a
//! leaf of a tree, where it would have been; with nodes of the tree between.

use super::{airmail, scale};
use crate::lasting::lasting_address;
use std::ffi::OsStr;
use std::process::Command;

/// Options of a node that are the gateway's, too: all that clients notice.
const OF_BOTH: [&str; 4] = ["--config", "--log-level", "--log-format", "--mailbox"];

/// The commands.
#[derive(Debug)]
pub(super) struct Divided {
    pub(super) tower: Command,
    /// Nodes of a tree between the two. As the last one, each is to be told of the one before.
    pub(super) between: Vec<Command>,
    /// It is to be told which node to join.
    pub(super) last: Command,
}

impl Divided {
    /// The arguments by which a command is told of the node before, which is at `address`.
    pub(super) fn join(address: &str) -> [String; 2] {
        if scale::tree_depth() > 0 {
            ["--log".to_owned(), format!("tree://{address}")]
        } else {
            ["--join".to_owned(), address.to_owned()]
        }
    }
}

/// Divides the command of a node, where tests are run so. `None` for any other, and for one of a cluster.
pub(super) fn divided(command: &Command) -> Option<Divided> {
    let arguments: Vec<&str> = command.get_args().filter_map(OsStr::to_str).collect();
    let of_cluster = ["--cluster", "--join", "--roles", "--print-config"];
    let is_node = arguments.first() == Some(&"serve")
        && !arguments
            .iter()
            .any(|argument| of_cluster.contains(argument));
    let depth = scale::tree_depth();
    if !(scale::is_apart() || depth > 0) || !is_node {
        return None;
    }
    let mut tower = like(command);
    let mut last = like(command);
    if depth > 0 {
        last.args(["serve", "--name", "leaf", "--cluster", "127.0.0.1:0"]);
    } else {
        last.args(["serve", "--roles", "pilot,copilot", "--name", "gateway"]);
    }
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        match argument {
            "--listen" => {
                last.arg(argument).args(arguments.next());
                // Clients are told of it: when it is gone, nobody else is to be at its address.
                tower.args([argument, &lasting_address()]);
            }
            "--http" => {
                last.arg(argument).args(arguments.next());
                tower.args([argument, "127.0.0.1:0"]);
            }
            both if OF_BOTH.contains(&both) => {
                let value = arguments.next();
                tower.arg(both).args(value);
                last.arg(both).args(value);
            }
            other => {
                tower.arg(other);
            }
        }
    }
    tower.args(["--cluster", "127.0.0.1:0"]);
    let between = (1..depth).map(|place| {
        let mut between = like(command);
        between.args(["serve", "--name", &format!("between-{place}")]);
        between.args(["--listen", &lasting_address()]);
        for address in ["--http", "--cluster"] {
            between.args([address, "127.0.0.1:0"]);
        }
        between
    });
    Some(Divided {
        tower,
        between: between.collect(),
        last,
    })
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
