//! A node in a process of its own, and commands that talk to it.

use rustix::process::{Pid, Signal, kill_process};
use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::scale;
use crate::waiting::{self, Waiting, alive, waiting};

/// `airmail`, with nothing inherited that could change what it does.
pub(crate) fn airmail() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_airmail"));
    for name in scale::settings() {
        command.env_remove(name);
    }
    command
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .stdin(Stdio::null());
    command
}

/// What a command did.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Done {
    /// Standard output of a command that must have succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self:#?}");
        self.stdout
    }

    /// Standard error of a command that must have ended with `code`.
    #[track_caller]
    pub(crate) fn failed(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self.stderr
    }
}

/// Runs a command to its end, with `input` as its standard input.
pub(crate) fn run(command: &mut Command, input: &[u8]) -> Done {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let _waiting = waiting(format!("the end of {command:?}"));
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let output = thread::scope(|scope| {
        // A command that fails does not read to the end; that is its right.
        scope.spawn(move || stdin.write_all(input).ok());
        child.wait_with_output().unwrap()
    });
    Done {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// `airmail serve` on free ports, with its data there.
pub(crate) fn serve(data: &Path) -> Command {
    let mut command = airmail();
    command.args(["serve", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
    command.arg("--data").arg(data);
    command
}

/// A running node. Killed when dropped.
#[derive(Debug)]
pub(crate) struct Node {
    child: Child,
    said: Said,
    _alive: Waiting,
    /// Where it answers gRPC, as `HOST:PORT`.
    pub(crate) grpc: String,
    /// Where it answers HTTP, as `HOST:PORT`.
    pub(crate) http: String,
}

impl Node {
    /// Starts a node on free ports.
    pub(crate) fn start(data: &Path) -> Node {
        Node::start_with(data, &[])
    }

    /// Starts a node on free ports, with further flags.
    pub(crate) fn start_with(data: &Path, flags: &[&str]) -> Node {
        let mut command = serve(data);
        command.args(flags);
        Node::spawn(command)
    }

    /// Starts a node where one was, or will be again.
    pub(crate) fn start_at(data: &Path, grpc: &str) -> Node {
        let mut command = airmail();
        command.args(["serve", "--listen", grpc, "--http", "127.0.0.1:0", "--data"]);
        command.arg(data);
        Node::spawn(command)
    }

    /// Starts a command that becomes a node, and waits until it has said its addresses.
    pub(crate) fn spawn(command: Command) -> Node {
        Node::attempt(command).unwrap_or_else(|refused| panic!("the node ended: {refused}"))
    }

    /// Starts a command that may become a node; gives why, if it ends instead.
    pub(crate) fn attempt(mut command: Command) -> Result<Node, Refused> {
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
            match addresses.is_some() || ended {
                true => Ok(()),
                false => Err(said.all()),
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
            said,
            grpc,
            http,
        })
    }

    /// `airmail`, pointed at this node.
    pub(crate) fn airmail(&self, arguments: &[&str]) -> Command {
        let mut command = airmail();
        command
            .args(arguments)
            .env("AIRMAIL_URL", format!("airmail://{}", self.grpc));
        command
    }

    /// Runs `airmail` against this node to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Done {
        run(&mut self.airmail(arguments), b"")
    }

    /// The process's id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has said so far.
    pub(crate) fn said(&self) -> String {
        self.said.all()
    }

    /// `kill -9`.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM; waits for the end.
    pub(crate) fn stop(mut self) -> ExitStatus {
        self.ask_to_stop();
        let _waiting = waiting("the end of a node that was asked to stop");
        self.child.wait().unwrap()
    }

    /// SIGTERM.
    pub(crate) fn ask_to_stop(&self) {
        signal(&self.child, Signal::TERM);
    }
}

/// A node that ended before it was one.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) status: ExitStatus,
    /// All that it said.
    pub(crate) said: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:\n{}", self.status, self.said)
    }
}

/// Sends a process a signal.
pub(crate) fn signal(child: &Child, signal: Signal) {
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
                lines.lock().unwrap().push(line);
            }
        };
        thread::Builder::new()
            .name("listen".into())
            .spawn(read)
            .unwrap()
    }

    fn all(&self) -> String {
        self.0.lock().unwrap().join("\n")
    }

    /// The `HOST:PORT` of the first line that names `what`.
    fn address(&self, what: &str) -> Option<String> {
        let lines = self.0.lock().unwrap();
        let line = lines
            .iter()
            .find(|line| line.contains(what) && line.contains("127.0.0.1:"))?;
        let rest = &line[line.find("127.0.0.1:")?..];
        let end = "127.0.0.1:".len()
            + rest["127.0.0.1:".len()..]
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(rest.len() - "127.0.0.1:".len());
        Some(rest[..end].to_owned())
    }
}

/// Waits until `true`, for five minutes at most, since no claim is how fast the machine is; says what it
/// waited for if it does not come.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    waiting::until(what, Duration::from_millis(25), || {
        holds().then_some(()).ok_or("it is not so".to_owned())
    });
}

/// The end of a process that comes to it by itself.
#[track_caller]
pub(crate) fn end_of(child: &mut Child, what: &str) -> ExitStatus {
    let _waiting = waiting(format!("the end of {what}"));
    child.wait().unwrap()
}

/// The same, with what is left of its outputs.
#[track_caller]
pub(crate) fn output_of(child: Child, what: &str) -> Output {
    let _waiting = waiting(format!("the end of {what}"));
    child.wait_with_output().unwrap()
}

/// The body of an HTTP page, with its status.
pub(crate) fn get(address: &str, path: &str) -> (u16, String) {
    let _waiting = waiting(format!("{path} at {address}"));
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
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
pub(crate) fn page(address: &str, path: &str) -> String {
    let mut found = String::new();
    wait_until(path, || {
        let (status, body) = get(address, path);
        found = body;
        status == 200
    });
    found
}

/// The sum of a metric's samples, if the node has it.
pub(crate) fn metric(address: &str, name: &str) -> Option<f64> {
    let page = page(address, "/metrics");
    let samples = page.lines().filter(|line| {
        line.strip_prefix(name)
            .is_some_and(|rest| rest.starts_with([' ', '{']))
    });
    samples
        .map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .reduce(|a, b| Some(a? + b?))?
}
