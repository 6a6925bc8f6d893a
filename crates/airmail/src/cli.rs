//! The command line: its grammar, and the choice of the command that runs.
//!
//! Exit codes: 0 done, 1 failed, 2 wrong usage, 128 and a signal's number: ended by it. Errors go to
//! standard error as `airmail: …`.

use crate::commands::{
    bench, check, clock, cluster, collect, context, flow, history, kafka, lines, mailbox,
    namespace, plan, publish, role, serve, subscribe, target, topics,
};
use airmail_node::environment::Environment;
use clap::{Args, Parser, Subcommand};
use futures::FutureExt as _;
use std::future::Future;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

/// Publish/subscribe on durable logs, in one binary.
#[derive(Debug, Parser)]
#[command(name = "airmail", version, max_term_width = 100)]
pub struct Cli {
    /// The node, for a command that asks one: as after the command
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// A saved context, for a command that asks a node: as after the command
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// Options for the node that a command asks.
#[derive(Args, Clone, Debug, Default)]
pub struct NodeArgs {
    /// The node: airmail://HOST:PORT[,HOST:PORT…], where a port left out is 7400 [env AIRMAIL_URL,
    /// default airmail://127.0.0.1:7400]
    #[arg(long, global = true, value_name = "URL")]
    pub url: Option<String>,
    /// A saved context to take the URL and namespace from [env AIRMAIL_CONTEXT]
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,
}

/// A command that asks a node, and which.
#[derive(Args, Debug)]
pub struct At<T: Args> {
    /// The command's own arguments.
    #[command(flatten)]
    pub what: T,
    /// The node to ask.
    #[command(flatten)]
    pub node: NodeArgs,
}

/// A command that asks a node, and waits for its answers for so long.
#[derive(Args, Debug)]
pub struct Asking<T: Args> {
    /// The command, and whom it asks.
    #[command(flatten)]
    pub at: At<T>,
    /// Longest time to wait for a node's answer [default: 30s, and 5s for a node to be there]
    #[arg(long, global = true, value_name = "TIME", value_parser = target::timeout)]
    pub timeout: Option<Duration>,
}

/// Options of a client command beside its own arguments.
#[derive(Clone, Debug, Default)]
pub struct ClientOptions {
    /// `--url`, not yet completed from context and environment.
    pub url: Option<String>,
    /// `--context`, not yet completed from the environment.
    pub context: Option<String>,
    /// `--timeout`.
    pub timeout: Option<Duration>,
    /// The process's environment.
    pub environment: Environment,
}

/// Every command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a node.
    Serve(serve::ServeArgs),
    /// Publish messages.
    Pub(At<publish::PublishArgs>),
    /// Subscribe to a topic, or to a selection of topics.
    Sub(Asking<subscribe::SubscribeArgs>),
    /// Print the stored messages of a topic, or of a selection of topics.
    History(Asking<history::HistoryArgs>),
    /// List the topics that hold messages.
    Topics(Asking<topics::TopicsArgs>),
    /// Create, list, show, change and delete namespaces.
    Namespace(Asking<namespace::NamespaceArgs>),
    /// Create, list and delete roles, which messages are addressed to.
    Role(Asking<role::RoleArgs>),
    /// Put messages in queues and take them out, each for one reader.
    Mailbox(Asking<mailbox::MailboxArgs>),
    /// Keep several nodes' addresses under names.
    Context(context::ContextArgs),
    /// Read a data directory, change nothing, and tell whether it is sound.
    Check(check::CheckArgs),
    /// Show a node's bounds on messages in flight, and each decision on them.
    Flow(Asking<flow::FlowArgs>),
    /// Show whether a node believes its wall clock, or have it believe it.
    Clock(Asking<clock::ClockArgs>),
    /// Show the nodes of a cluster, or have one's clients go elsewhere.
    Cluster(Asking<cluster::ClusterArgs>),
    /// Tell how many machines a number of topics takes.
    Plan(plan::PlanArgs),
    /// Measure a node.
    Bench(bench::BenchArgs),
    /// Look at Kafka clusters.
    Kafka(kafka::KafkaArgs),
    /// Take records from producers, and send them to the main Kafka cluster.
    Collect(collect::CollectArgs),
}

/// The command line was well formed but asks for something that cannot be: exit code 2.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// Reads the command line, runs the command, and gives its exit code.
#[must_use]
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(told) => return tell(&told),
    };
    match run(cli, Environment::of_process()) {
        Ok(code) => code,
        Err(error) => {
            complain(&error);
            ExitCode::from(if error.is::<UsageError>() { 2 } else { 1 })
        }
    }
}

/// Prints a help text or the version, or an error about the command line.
fn tell(told: &clap::Error) -> ExitCode {
    let code = u8::try_from(told.exit_code()).unwrap_or(2);
    if told.kind() == clap::error::ErrorKind::InvalidUtf8 {
        let typed = std::env::args_os().skip(1);
        let strange = typed.filter(|argument| argument.to_str().is_none());
        let strange: Vec<String> = strange.map(|argument| format!("{argument:?}")).collect();
        let what = format!(
            "not UTF-8: {}; only a message and paths of files may be any bytes",
            strange.join(", ")
        );
        complain(&UsageError(what).into());
        return ExitCode::from(code);
    }
    let printed = told.print().and_then(|()| std::io::stdout().flush());
    if told.use_stderr() {
        return ExitCode::from(code);
    }
    match lines::printed(printed.map_err(anyhow::Error::from)) {
        Ok(()) => ExitCode::from(code),
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

/// Runs a command.
///
/// # Errors
/// Error for which the command failed.
pub fn run(cli: Cli, environment: Environment) -> anyhow::Result<ExitCode> {
    let given = NodeArgs {
        url: cli.url,
        context: cli.context,
    };
    if !cli.command.asks_a_node() {
        given.refuse()?;
    }
    let options = |node: NodeArgs, timeout| ClientOptions {
        url: node.url.or_else(|| given.url.clone()),
        context: node.context.or_else(|| given.context.clone()),
        timeout,
        environment: environment.clone(),
    };
    match cli.command {
        Command::Serve(args) => serve::run(&args, &environment),
        Command::Check(args) => check::run(&args),
        Command::Pub(At { what, node }) => wait_for(publish::run(what, &options(node, None))),
        Command::Sub(asking) => ask(subscribe::run, asking, options),
        Command::History(asking) => ask(history::run, asking, options),
        Command::Topics(asking) => ask(topics::run, asking, options),
        Command::Namespace(asking) => ask(namespace::run, asking, options),
        Command::Role(asking) => ask(role::run, asking, options),
        Command::Mailbox(asking) => ask(mailbox::run, asking, options),
        Command::Flow(asking) => ask(flow::run, asking, options),
        Command::Clock(asking) => ask(clock::run, asking, options),
        Command::Cluster(asking) => ask(cluster::run, asking, options),
        Command::Context(args) => context::run(args, &environment),
        Command::Plan(args) => plan::run(&args),
        Command::Bench(args) => bench::run(args),
        Command::Kafka(args) => kafka::run(&args),
        Command::Collect(args) => collect::run(&args),
    }
}

impl Command {
    /// Whether `--url` and `--context` mean anything to it.
    fn asks_a_node(&self) -> bool {
        // Each is named, so that none is forgotten.
        match self {
            Command::Pub(_)
            | Command::Sub(_)
            | Command::History(_)
            | Command::Topics(_)
            | Command::Namespace(_)
            | Command::Role(_)
            | Command::Mailbox(_)
            | Command::Flow(_)
            | Command::Clock(_)
            | Command::Cluster(_) => true,
            Command::Serve(_)
            | Command::Context(_)
            | Command::Check(_)
            | Command::Plan(_)
            | Command::Bench(_)
            | Command::Kafka(_)
            | Command::Collect(_) => false,
        }
    }
}

impl NodeArgs {
    /// Refuses these options for a command to which they would mean nothing.
    fn refuse(&self) -> Result<(), UsageError> {
        let given = [("--url", &self.url), ("--context", &self.context)];
        match given.into_iter().find(|(_, value)| value.is_some()) {
            None => Ok(()),
            Some((flag, _)) => Err(UsageError(format!(
                "{flag}: this command asks no node, so it would do nothing"
            ))),
        }
    }
}

fn ask<T: Args>(
    run: impl AsyncFnOnce(T, &ClientOptions) -> anyhow::Result<ExitCode>,
    asking: Asking<T>,
    options: impl FnOnce(NodeArgs, Option<Duration>) -> ClientOptions,
) -> anyhow::Result<ExitCode> {
    let At { what, node } = asking.at;
    let options = options(node, asking.timeout);
    wait_for(run(what, &options))
}

/// Runs a client command on a runtime of its own, and does not wait for what it leaves behind
/// (a blocked read of standard input would keep the process for ever).
///
/// The command is waited for as a trait object: `block_on` is compiled for each kind of runtime and each
/// future, and would hold the whole command three times.
fn wait_for<T>(command: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let result = runtime.block_on(command.boxed_local());
    runtime.shutdown_background();
    result
}

#[expect(
    clippy::print_stderr,
    reason = "this is where a command's error is told"
)]
fn complain(error: &anyhow::Error) {
    eprintln!("airmail: {error:#}");
}
