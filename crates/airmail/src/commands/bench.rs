//! `airmail bench`: measures a node, by default one that it starts for the purpose.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::Duration;

use airmail_bench::e2e::{self, Run};
use airmail_bench::{Progress, Settings};
use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};

use crate::cli::{ClientOptions, UsageError};

/// How long a node of our own may take to start.
const START_PATIENCE: Duration = Duration::from_secs(30);

/// Arguments of `airmail bench`.
#[derive(clap::Args, Debug)]
pub struct BenchArgs {
    /// What to measure.
    #[command(subcommand)]
    pub workload: Workload,
}

/// What can be measured.
#[derive(clap::Subcommand, Debug)]
pub enum Workload {
    /// From publish to delivery: rate and latency, with loss, duplicates and order counted
    E2e(E2eArgs),
}

/// Arguments of `airmail bench e2e`.
#[derive(clap::Args, Debug)]
pub struct E2eArgs {
    /// The node to measure, as airmail://HOST:PORT; without one, a node is started for the run, with
    /// its data in the directory for temporary files
    #[arg(long, value_name = "URL")]
    pub target: Option<String>,
    /// Messages to publish, by all publishers together
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub messages: u64,
    /// Payload of each message, in bytes, at least 24
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    pub size: usize,
    /// Publishers, each with a connection of its own
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub publishers: u32,
    /// Subscribers, each with a connection of its own and a subscription to every topic
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub subscribers: u32,
    /// Topics, used in turn
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub topics: u32,
    /// Messages a second, whether or not the node keeps up; without it, as fast as there is room
    #[arg(long, value_name = "N")]
    pub rate: Option<u64>,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs it: 0 if every message arrived once and in order, else 1.
///
/// # Errors
/// The node cannot be started or reached.
pub async fn run(args: BenchArgs, options: &ClientOptions) -> anyhow::Result<ExitCode> {
    let Workload::E2e(args) = args.workload;
    let settings = Settings {
        messages: args.messages,
        size: args.size,
        publishers: args.publishers,
        subscribers: args.subscribers,
        topics: args.topics,
        rate: args.rate,
        ..Settings::default()
    };
    settings
        .check()
        .map_err(|wrong| UsageError(format!("--{wrong}")))?;
    let (target, node) = match args.target.or_else(|| options.url.clone()) {
        Some(target) => (target, None),
        None => {
            let node = OwnNode::start().context("cannot start a node to measure")?;
            (format!("airmail://{}", node.address), Some(node))
        }
    };
    let progress = Arc::new(Progress::default());
    let run = Run {
        target,
        settings,
        id: std::process::id(),
    };
    let watch = show(run.settings.deliveries(), Arc::clone(&progress));
    let report = tokio::select! {
        report = e2e::run(run, progress) => report?,
        never = watch => match never {},
    };
    drop(node);
    print(&report, args.json)?;
    Ok(ExitCode::from(u8::from(!report.is_sound())))
}

#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command's result"
)]
fn print(report: &airmail_bench::Report, json: bool) -> anyhow::Result<()> {
    if json {
        println!("{}", serde_json::to_string(report)?);
    } else {
        print!("{report}");
    }
    if !report.is_sound() {
        eprintln!("airmail: not every message arrived once and in order");
    }
    Ok(())
}

/// Draws a bar of what was delivered, if standard error is a terminal. Does not end by itself.
async fn show(messages: u64, progress: Arc<Progress>) -> std::convert::Infallible {
    let bar = ProgressBar::new(messages).with_finish(ProgressFinish::AndClear);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} delivered, {per_sec}") {
        bar.set_style(style);
    }
    loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        bar.set_position(progress.delivered());
    }
}

/// A node in a process of its own, on free ports, with durable data in a directory that goes with it.
struct OwnNode {
    process: Child,
    address: String,
    _data: tempfile::TempDir,
}

impl OwnNode {
    fn start() -> anyhow::Result<OwnNode> {
        let data = tempfile::tempdir()?;
        let mut process = Command::new(std::env::current_exe()?)
            .args([
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--http",
                "127.0.0.1:0",
                "--data",
            ])
            .arg(data.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (say, said) = mpsc::sync_channel(256);
        listen(process.stdout.take(), say.clone())?;
        listen(process.stderr.take(), say)?;
        let address = match address(&said) {
            Ok(address) => address,
            Err(error) => {
                process.kill()?;
                process.wait()?;
                return Err(error);
            }
        };
        Ok(OwnNode {
            process,
            address,
            _data: data,
        })
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

/// The address that the node says it answers gRPC on.
fn address(said: &Receiver<String>) -> anyhow::Result<String> {
    let mut lines = Vec::new();
    while let Ok(line) = said.recv_timeout(START_PATIENCE) {
        let address = line
            .split_whitespace()
            .find(|word| word.starts_with("127.0.0.1:"));
        if let Some(address) = address.filter(|_| line.contains("gRPC")) {
            return Ok(address.to_owned());
        }
        lines.push(line);
    }
    bail!("it did not say its address:\n{}", lines.join("\n"))
}
