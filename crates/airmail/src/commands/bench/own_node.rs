//! A node in a process of its own, on free ports, with durable data in a directory that goes with it.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::Duration;

use anyhow::{Context as _, bail};

/// How long it may take to start.
const START_PATIENCE: Duration = Duration::from_secs(30);
/// Where data is that nobody said a place for. `/tmp` is often memory, and a sync there is none.
const DISK: &str = "/var/tmp";

/// The node.
pub(super) struct OwnNode {
    process: Child,
    address: String,
    http: String,
    data: tempfile::TempDir,
}

/// A directory that is removed with what comes back: in `place`, or where there is a disk.
pub(super) fn directory(place: Option<&Path>) -> anyhow::Result<tempfile::TempDir> {
    let place = match place {
        Some(place) => place.to_owned(),
        None if Path::new(DISK).is_dir() => PathBuf::from(DISK),
        None => std::env::temp_dir(),
    };
    let mut name = tempfile::Builder::new();
    let made = name.prefix("airmail-bench-").tempdir_in(&place);
    made.with_context(|| format!("cannot make a directory in {}", place.display()))
}

impl OwnNode {
    /// Starts it with its data in a new directory in `place`, these further options, and these
    /// environment variables.
    pub(super) fn start(
        place: Option<&Path>,
        options: impl IntoIterator<Item = impl AsRef<OsStr>>,
        environment: &[(&str, String)],
    ) -> anyhow::Result<OwnNode> {
        let data = directory(place)?;
        let mut process = Command::new(std::env::current_exe()?)
            .args(["serve", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"])
            .arg("--data")
            .arg(data.path())
            .args(options)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (say, said) = mpsc::sync_channel(256);
        listen(process.stdout.take(), say.clone())?;
        listen(process.stderr.take(), say)?;
        let (address, http) = match addresses(&said) {
            Ok(addresses) => addresses,
            Err(error) => {
                process.kill()?;
                process.wait()?;
                return Err(error);
            }
        };
        Ok(OwnNode {
            process,
            address,
            http,
            data,
        })
    }

    /// As `airmail://HOST:PORT`.
    pub(super) fn url(&self) -> String {
        format!("airmail://{}", self.address)
    }

    /// Where its health and metrics are, as `HOST:PORT`.
    pub(super) fn http(&self) -> &str {
        &self.http
    }

    /// Its process.
    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Where its data is.
    pub(super) fn data(&self) -> &Path {
        self.data.path()
    }
}

impl Drop for OwnNode {
    fn drop(&mut self) {
        // Its data goes too, so there is nothing to finish. It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Passes on the lines of an output as long as anyone wants them, and reads it to the end, so that
/// the process never waits for its reader.
fn listen(
    output: Option<impl Read + Send + 'static>,
    say: SyncSender<String>,
) -> anyhow::Result<()> {
    let Some(output) = output else {
        bail!("the node has no output")
    };
    let read = move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let _ = say.try_send(line);
        }
    };
    std::thread::Builder::new()
        .name("listen".into())
        .spawn(read)?;
    Ok(())
}

/// The addresses that the node says it answers gRPC and HTTP on.
fn addresses(said: &Receiver<String>) -> anyhow::Result<(String, String)> {
    let (mut lines, mut grpc) = (Vec::new(), None);
    while let Ok(line) = said.recv_timeout(START_PATIENCE) {
        let address = line
            .split_whitespace()
            .find(|word| word.starts_with("127.0.0.1:"));
        match (address, grpc.take()) {
            (Some(address), None) if line.contains("gRPC") => grpc = Some(address.to_owned()),
            (Some(address), Some(grpc)) if line.contains("HTTP") => {
                return Ok((grpc, address.to_owned()));
            }
            (_, before) => grpc = before,
        }
        lines.push(line);
    }
    bail!("it did not say its addresses:\n{}", lines.join("\n"))
}
