//! A node in a process of its own, and commands that talk to it.

mod apart;
#[cfg(feature = "kafka")]
pub mod on_kafka;

use crate::scale;
use crate::waiting::{self, Waiting, alive, waiting};
use apart::Divided;
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};
use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// `airmail`, with nothing inherited that could change what it does. A node that it becomes has as many shards
/// as the tests are run with ([`scale::shards`]).
pub fn airmail() -> Command {
    let mut command = program("airmail");
    let shards = scale::shards();
    if shards > 1 {
        command.env("AIRMAIL_NODE_SHARDS", shards.to_string());
    }
    command
}

/// A program of ours that is built beside the tests, with nothing inherited that could change what it does.
///
/// # Panics
/// It is not built: `cargo test --workspace` does.
pub fn program(name: &str) -> Command {
    let mut command = Command::new(built(name));
    for name in scale::settings() {
        command.env_remove(name);
    }
    command
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .stdin(Stdio::null());
    command
}

/// Where a program of ours is that is built beside the tests.
///
/// # Panics
/// It is not built.
pub fn built(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    // Tests are in a directory below.
    let path = test.parent().unwrap().with_file_name(name);
    assert!(
        path.exists(),
        "{} is not built: cargo build -p {name}, or cargo test --workspace",
        path.display()
    );
    path
}

/// Result of a command.
#[derive(Debug)]
pub struct Done {
    /// Its exit code; absent: a signal ended it.
    pub code: Option<i32>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Done {
    /// Standard output of a command that must have succeeded.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self:#?}");
        self.stdout
    }

    /// Standard error of a command that must have ended with `code`.
    #[track_caller]
    pub fn failed(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self.stderr
    }
}

/// Runs a command to its end, with `input` as its standard input. One that says nothing for too long hangs; one
/// that tells how far it is may take its time.
pub fn run(command: &mut Command, input: &[u8]) -> Done {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let waiting = waiting(format!("the end of {command:?}"));
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let (stdout, stderr) = thread::scope(|scope| {
        // A command that fails does not read to the end; that is its right.
        scope.spawn(move || stdin.write_all(input).ok());
        let stdout = scope.spawn(|| read_to_end(stdout, &waiting));
        let stderr = read_to_end(stderr, &waiting);
        (stdout.join().unwrap(), stderr)
    });
    Done {
        code: child.wait().unwrap().code(),
        stdout,
        stderr,
    }
}

/// All that is said, of which each part shows that the wait is not in vain.
fn read_to_end(mut output: impl Read, waiting: &Waiting) -> String {
    let (mut said, mut part) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        let count = output.read(&mut part).unwrap();
        if count == 0 {
            return String::from_utf8_lossy(&said).into_owned();
        }
        said.extend_from_slice(&part[..count]);
        waiting.renew();
    }
}

/// `airmail serve` on free ports, with its data there.
pub fn serve(data: &Path) -> Command {
    let mut command = airmail();
    command.args(["serve", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
    command.arg("--data").arg(data);
    command
}

/// A command, begun by a shell that first sets something of the process's, as a limit or its mask.
pub fn after_shell(setting: &str, inner: &Command) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{setting} && exec \"$0\" \"$@\"")]);
    command.arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

/// A running node. Killed when dropped. Where tests are run so ([`scale::is_apart`], [`scale::tree_depth`]), it is a
/// gateway, or a leaf of a tree, and the node that has its logs is in another process; or its logs are on Kafka
/// ([`scale::kafka_brokers`]).
#[derive(Debug)]
pub struct Node {
    child: Child,
    /// The node that has its logs, if that is another.
    tower: Option<Box<Node>>,
    said: Said,
    _alive: Waiting,
    /// Where it answers gRPC, as `HOST:PORT`.
    pub grpc: String,
    /// Where it answers HTTP, as `HOST:PORT`.
    pub http: String,
}

impl Node {
    /// Starts a node on free ports.
    pub fn start(data: &Path) -> Node {
        Node::start_with(data, &[])
    }

    /// Starts a node on free ports, with further flags.
    pub fn start_with(data: &Path, flags: &[&str]) -> Node {
        let mut command = serve(data);
        command.args(flags);
        Node::spawn(command)
    }

    /// Starts a node where one was, or will be again.
    pub fn start_at(data: &Path, grpc: &str) -> Node {
        let mut command = airmail();
        command.args(["serve", "--listen", grpc, "--http", "127.0.0.1:0", "--data"]);
        command.arg(data);
        Node::spawn(command)
    }

    /// Starts a command that becomes a node, and waits until it has said its addresses.
    pub fn spawn(command: Command) -> Node {
        Node::attempt(command).unwrap_or_else(|refused| panic!("the node ended: {refused}"))
    }

    /// Starts a command that may become a node; gives why, if it ends instead.
    pub fn attempt(command: Command) -> Result<Node, Refused> {
        #[cfg(feature = "kafka")]
        let command = on_kafka::with_logs_there(command);
        match apart::divided(&command) {
            Some(divided) => Node::attempt_apart(divided),
            None => Node::attempt_whole(command),
        }
    }

    /// Starts the node that has the logs, then those that have them from it.
    fn attempt_apart(divided: Divided) -> Result<Node, Refused> {
        let mut node = Node::attempt_whole(divided.tower)?;
        for mut command in divided.between.into_iter().chain([divided.last]) {
            command.args(Divided::join(&node.address("nodes")));
            let mut below = Node::attempt_whole(command)?;
            below.tower = Some(Box::new(node));
            node = below;
        }
        Ok(node)
    }

    fn attempt_whole(mut command: Command) -> Result<Node, Refused> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let said = Said::default();
        let outputs = [
            said.listen(child.stdout.take().unwrap()),
            said.listen(child.stderr.take().unwrap()),
        ];
        let mut addresses = None;
        waiting::until("the node's addresses", Duration::from_millis(2), || {
            addresses = said.address("gRPC").zip(said.address("HTTP"));
            let ended = addresses.is_none() && child.try_wait().unwrap().is_some();
            if addresses.is_some() || ended {
                Ok(())
            } else {
                Err(said.all())
            }
        });
        let Some((grpc, http)) = addresses else {
            let status = child.wait().unwrap();
            for output in outputs {
                output.join().unwrap();
            }
            let said = said.all();
            return Err(Refused { status, said });
        };
        Ok(Node {
            _alive: alive(format!("a node at {grpc}")),
            child,
            tower: None,
            said,
            grpc,
            http,
        })
    }

    /// `airmail`, pointed at this node.
    pub fn airmail(&self, arguments: &[&str]) -> Command {
        let mut command = airmail();
        command
            .args(arguments)
            .env("AIRMAIL_URL", format!("airmail://{}", self.grpc));
        command
    }

    /// Runs `airmail` against this node to its end.
    pub fn run(&self, arguments: &[&str]) -> Done {
        run(&mut self.airmail(arguments), b"")
    }

    /// The process's id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The `HOST:PORT` that it says behind a word: where other nodes connect, behind `nodes`.
    pub fn address(&self, word: &str) -> String {
        let mut found = None;
        let what = format!("an address behind {word}");
        waiting::until(&what, Duration::from_millis(2), || {
            found = self.said.address(word);
            if found.is_some() {
                Ok(())
            } else {
                Err(self.said.all())
            }
        });
        found.unwrap_or_default()
    }

    /// Its output so far.
    pub fn said(&self) -> String {
        let of_tower = self.tower.as_ref().map(|tower| tower.said() + "\n");
        of_tower.unwrap_or_default() + &self.said.all()
    }

    /// `kill -9`.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        if let Some(tower) = self.tower.take() {
            tower.kill();
        }
    }

    /// SIGTERM; waits for the end.
    pub fn stop(mut self) -> ExitStatus {
        self.ask_to_stop();
        let _waiting = waiting("the end of a node that was asked to stop");
        let status = self.child.wait().unwrap();
        match self.tower.take() {
            Some(tower) => tower.stop(),
            None => status,
        }
    }

    /// SIGTERM.
    pub fn ask_to_stop(&self) {
        signal(&self.child, Signal::TERM);
    }

    /// Has it stand still (SIGSTOP), or go on (SIGCONT).
    pub fn set_still(&self, still: bool) {
        let one = if still { Signal::STOP } else { Signal::CONT };
        signal(&self.child, one);
    }
}

/// A node that ended before it was one.
#[derive(Debug)]
pub struct Refused {
    /// Its exit status.
    pub status: ExitStatus,
    /// All that it said.
    pub said: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:\n{}", self.status, self.said)
    }
}

/// Sends a process a signal.
pub fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

impl Drop for Node {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The lines of a process's outputs.
#[derive(Clone, Debug, Default)]
struct Said(Arc<Mutex<Vec<String>>>);

impl Said {
    fn listen(&self, output: impl Read + Send + 'static) -> JoinHandle<()> {
        let lines = Arc::clone(&self.0);
        let read = move || {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { break };
                lines.lock().push(line);
            }
        };
        thread::Builder::new()
            .name("listen".into())
            .spawn(read)
            .unwrap()
    }

    fn all(&self) -> String {
        self.0.lock().join("\n")
    }

    /// The `HOST:PORT` of the first line that begins with `what`.
    fn address(&self, what: &str) -> Option<String> {
        let lines = self.0.lock();
        let mut named = lines
            .iter()
            .filter_map(|line| line.trim().strip_prefix(what));
        let address = named.next()?.trim();
        // One that listens everywhere is asked on this machine.
        Some(address.replace("0.0.0.0:", "127.0.0.1:"))
    }
}

/// Waits until `true`, for five minutes at most, since no claim is how fast the machine is; says what it
/// waited for if it does not come.
#[track_caller]
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    waiting::until(what, Duration::from_millis(25), || {
        holds().then_some(()).ok_or("it is not so".to_owned())
    });
}

/// The end of a process that comes to it by itself.
#[track_caller]
pub fn end_of(child: &mut Child, what: &str) -> ExitStatus {
    let _waiting = waiting(format!("the end of {what}"));
    child.wait().unwrap()
}

/// The same, with what is left of its outputs.
#[track_caller]
pub fn output_of(child: Child, what: &str) -> Output {
    let _waiting = waiting(format!("the end of {what}"));
    child.wait_with_output().unwrap()
}

/// The body of an HTTP page, with its status.
pub fn get(address: &str, path: &str) -> (u16, String) {
    get_of(address, address, path)
}

/// The same, asked for by the name of a host.
pub fn get_of(host: &str, address: &str, path: &str) -> (u16, String) {
    let _waiting = waiting(format!("{path} at {address}"));
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .unwrap();
    (
        status,
        answer
            .split_once("\r\n\r\n")
            .map_or(String::new(), |(_, body)| body.to_owned()),
    )
}

/// The body of a page that is there. One whose shard has had no turn for seconds says so in its place, and is
/// asked again.
#[track_caller]
pub fn page(address: &str, path: &str) -> String {
    let mut found = String::new();
    wait_until(path, || {
        let (status, body) = get(address, path);
        found = body;
        status == 200
    });
    found
}

/// The sum of a metric's samples, if the node has it.
pub fn metric(address: &str, name: &str) -> Option<f64> {
    let page = page(address, "/metrics");
    let samples = page.lines().filter(|line| {
        line.strip_prefix(name)
            .is_some_and(|rest| rest.starts_with([' ', '{']))
    });
    samples
        .map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .reduce(|a, b| Some(a? + b?))?
}
