//! `airmail sub` in a process of its own.

use airmail_testkit::node::Node;
use airmail_testkit::waiting::waiting;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Stdio};

/// See the module's documentation. Killed when dropped.
pub(crate) struct Subscriber {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl Subscriber {
    pub(crate) fn start(node: &Node, topic: &str) -> Subscriber {
        Subscriber::start_with(node, topic, &[])
    }

    /// Starts it with further options.
    pub(crate) fn start_with(node: &Node, topic: &str, options: &[&str]) -> Subscriber {
        let mut command = node.airmail(&["sub", topic]);
        command.args(options);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Subscriber { process, output }
    }

    /// The next lines that it prints.
    pub(crate) fn take(&mut self, count: usize) -> Vec<String> {
        let _waiting = waiting("lines of a subscriber");
        let lines = (&mut self.output).lines();
        lines.take(count).map(Result::unwrap).collect()
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
