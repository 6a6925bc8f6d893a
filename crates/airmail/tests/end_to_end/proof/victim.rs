//! The node under proof: the real binary on small segments, so that in a short time it begins many,
//! writes checkpoints, and opens a directory with both.

use airmail_client::core::BackoffConfig;
use airmail_client::{Client, ClientBuilder};
use airmail_testkit::lasting::lasting_address;
use airmail_testkit::node::{Node, airmail};
use airmail_testkit::shards;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// Settings of every node here.
pub(crate) const SETTINGS: [(&str, &str); 6] = [
    ("AIRMAIL_STORAGE_SEGMENT_BYTES", "1280KiB"),
    ("AIRMAIL_LIMITS_FRAME_BYTES", "256KiB"),
    ("AIRMAIL_LIMITS_MESSAGE_BYTES", "128KiB"),
    ("AIRMAIL_LIMITS_BATCH_BYTES", "32KiB"),
    ("AIRMAIL_LIMITS_CREDIT_BYTES", "256KiB"),
    ("AIRMAIL_LOG_LEVEL", "warn"),
];

/// Settings of a client of these addresses that does not give up, and comes back quickly.
pub(crate) fn client(addresses: &str) -> ClientBuilder {
    Client::builder()
        .url(format!("airmail://{addresses}"))
        .delivery_timeout(Duration::from_secs(600))
        .connect_timeout(Duration::from_secs(60))
        .backoff(BackoffConfig {
            base: Duration::from_millis(5),
            cap: Duration::from_millis(100),
        })
}

/// Runs a node and kills it after `delay`, wherever it is by then.
pub(crate) fn run_and_kill(mut command: Command, delay: Duration) {
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut child: Child = child.unwrap();
    thread::sleep(delay);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A data directory, and the address of whichever node runs on it.
#[derive(Clone, Debug)]
pub(crate) struct Victim {
    pub(crate) data: PathBuf,
    pub(crate) address: String,
}

impl Victim {
    /// None runs yet.
    pub(crate) fn new(data: &Path) -> Victim {
        Victim {
            data: data.to_owned(),
            address: lasting_address(),
        }
    }

    /// The command that runs a node on it.
    pub(crate) fn command(&self) -> Command {
        let mut command = airmail();
        command.args(["serve", "--http", "127.0.0.1:0", "--listen", &self.address]);
        command.arg("--data").arg(&self.data).envs(SETTINGS);
        command
    }

    /// Starts a node, and waits until it says that it is ready.
    pub(crate) fn start(&self) -> Node {
        Node::spawn(self.command())
    }

    /// Starts a node and kills it after `delay`, wherever it is by then.
    pub(crate) fn start_and_kill(&self, delay: Duration) {
        run_and_kill(self.command(), delay);
    }

    /// Settings of a client of it.
    pub(crate) fn client(&self) -> ClientBuilder {
        client(&self.address)
    }

    /// The directory of the shard that has stored the most.
    pub(crate) fn shard(&self) -> PathBuf {
        shards::fullest(&self.data)
    }

    /// The names of the files of this shard.
    pub(crate) fn files(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.shard()) else {
            return Vec::new();
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}
