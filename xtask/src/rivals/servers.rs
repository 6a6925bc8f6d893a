//! Servers for a run: each started on a free port of the loopback with fresh data, and stopped.

use super::workloads::Subject;
use anyhow::{Context as _, bail};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// How often a server is tried until it answers, and the wait between.
const ATTEMPTS: u32 = 300;
const BETWEEN: Duration = Duration::from_millis(100);
/// How long a node may take to say whether it is ready.
const PATIENCE: Duration = Duration::from_secs(5);

/// A server that runs until it is dropped; then its data is gone too.
pub(super) struct Server {
    child: Child,
    directory: PathBuf,
    url: String,
}

impl Server {
    pub(super) fn start(
        subject: Subject,
        airmail: &Path,
        nats: &Path,
        disk: &Path,
    ) -> anyhow::Result<Server> {
        let port = free_port()?;
        let directory = disk.join(format!("airmail-rivals-{}-{port}", std::process::id()));
        fs::create_dir(&directory)
            .with_context(|| format!("cannot make {}", directory.display()))?;
        let address = format!("127.0.0.1:{port}");
        let mut health = None;
        let (mut command, scheme) = match subject {
            Subject::Airmail | Subject::AirmailMemory => {
                let http = format!("127.0.0.1:{}", free_port()?);
                let mut command = serve(subject, airmail, &address, &directory);
                command.args(["--http", &http]);
                health = Some(http);
                (command, "airmail")
            }
            Subject::Nats => (serve_nats(nats, port), "nats"),
            Subject::JetStream | Subject::JetStreamSynced => {
                let mut command = serve_nats(nats, port);
                command.arg("-c").arg(configure(subject, &directory)?);
                (command, "jetstream")
            }
            Subject::Disk => bail!("the disk is no server"),
        };
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", subject.name()))?;
        let mut server = Server {
            child,
            directory,
            url: format!("{scheme}://{address}"),
        };
        server.wait_until("answers", || answers(&address))?;
        if let Some(health) = health {
            server.wait_until("is ready", || is_ready(&health))?;
        }
        Ok(server)
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Its process, as an argument.
    pub(super) fn pid(&self) -> String {
        self.child.id().to_string()
    }

    fn wait_until(&mut self, what: &str, holds: impl Fn() -> bool) -> anyhow::Result<()> {
        let url = self.url.clone();
        for _ in 0..ATTEMPTS {
            if let Some(status) = self.child.try_wait()? {
                bail!("{url} ended: {status}");
            }
            if holds() {
                return Ok(());
            }
            thread::sleep(BETWEEN);
        }
        bail!("it is not so that {url} {what}")
    }
}

/// Whether somebody takes connections there.
fn answers(address: &str) -> bool {
    TcpStream::connect(address).is_ok()
}

/// Whether a node says at its HTTP address that it takes requests.
fn is_ready(address: &str) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; its data is thrown away in any case.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn serve(subject: Subject, airmail: &Path, address: &str, directory: &Path) -> Command {
    let durability = match subject {
        Subject::AirmailMemory => "memory",
        _ => "fsync",
    };
    let mut command = Command::new(airmail);
    command.arg("serve").arg("--data").arg(directory);
    command.args(["--listen", address, "--durability", durability]);
    command
}

fn serve_nats(nats: &Path, port: u16) -> Command {
    let mut command = Command::new(nats);
    command.args(["-a", "127.0.0.1", "-p", &port.to_string()]);
    command
}

/// JetStream's configuration: by file, for the sync interval has no flag.
fn configure(subject: Subject, directory: &Path) -> anyhow::Result<PathBuf> {
    let interval = match subject {
        Subject::JetStreamSynced => "always",
        _ => "2m",
    };
    let store = directory.display();
    let text = format!("jetstream {{ store_dir: \"{store}\", sync_interval: {interval} }}\n");
    let path = directory.join("nats.conf");
    fs::write(&path, text)?;
    Ok(path)
}

fn free_port() -> anyhow::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("no free port")?;
    Ok(listener.local_addr()?.port())
}
