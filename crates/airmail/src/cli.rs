//! What can be typed, and which command runs.
//!
//! Exit codes: 0 done, 1 failed, 2 wrong usage. Errors go to standard error as `airmail: …`.

use crate::commands::{
    bench, check, collect, context, flow, history, kafka, lab, mailbox, namespace, publish, serve,
    subscribe, topics,
};
use crate::environment::Environment;
use clap::{Args, Parser, Subcommand};
use std::future::Future;
use std::process::ExitCode;

/// Publish/subscribe on durable logs, in one binary.
#[derive(Debug, Parser)]
#[command(name = "airmail", version, max_term_width = 100)]
pub struct Cli {
    /// Settings that every client command takes.
    #[command(flatten)]
    pub client: ClientArgs,
    /// Which command.
    #[command(subcommand)]
    pub command: Command,
}

/// Where the node is, for every command that is a client.
#[derive(Args, Clone, Debug, Default)]
pub struct ClientArgs {
    /// The node: airmail://HOST:PORT[,HOST:PORT…] [env AIRMAIL_URL, default
    /// airmail://127.0.0.1:7400]
    #[arg(long, global = true, value_name = "URL")]
    pub url: Option<String>,
    /// A saved context to take the URL and namespace from [env AIRMAIL_CONTEXT]
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,
}

/// What a client command is given beside its own arguments.
#[derive(Clone, Debug, Default)]
pub struct ClientOptions {
    /// `--url`, not yet completed from context and environment.
    pub url: Option<String>,
    /// `--context`, not yet completed from the environment.
    pub context: Option<String>,
    /// The process's environment.
    pub environment: Environment,
}

/// Every command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a node.
    Serve(serve::ServeArgs),
    /// Publish messages.
    Pub(publish::PublishArgs),
    /// Subscribe to a topic.
    Sub(subscribe::SubscribeArgs),
    /// Print a topic's stored messages.
    History(history::HistoryArgs),
    /// List the topics that hold messages.
    Topics(topics::TopicsArgs),
    /// Create, list, show, change and delete namespaces.
    Namespace(namespace::NamespaceArgs),
    /// Put messages in queues and take them out, each for one reader.
    Mailbox(mailbox::MailboxArgs),
    /// Keep several nodes' addresses under names.
    Context(context::ContextArgs),
    /// Read a data directory, change nothing, and tell whether it is sound.
    Check(check::CheckArgs),
    /// Show what a node lets be in flight, and each decision on it.
    Flow(flow::FlowArgs),
    /// Measure a node.
    Bench(bench::BenchArgs),
    /// Simulate limiters and dispatch policies, without a node.
    Lab(lab::LabArgs),
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
    let cli = Cli::parse();
    match run(cli, Environment::of_process()) {
        Ok(code) => code,
        Err(error) => {
            complain(&error);
            ExitCode::from(if error.is::<UsageError>() { 2 } else { 1 })
        }
    }
}

/// Runs a command.
///
/// # Errors
/// Whatever kept the command from doing what it was asked.
pub fn run(cli: Cli, environment: Environment) -> anyhow::Result<ExitCode> {
    let client = ClientOptions {
        url: cli.client.url,
        context: cli.client.context,
        environment: environment.clone(),
    };
    match cli.command {
        Command::Serve(args) => serve::run(&args, &environment),
        Command::Check(args) => check::run(&args),
        Command::Pub(args) => wait_for(publish::run(args, &client)),
        Command::Sub(args) => wait_for(subscribe::run(args, &client)),
        Command::History(args) => wait_for(history::run(args, &client)),
        Command::Topics(args) => wait_for(topics::run(args, &client)),
        Command::Namespace(args) => wait_for(namespace::run(args, &client)),
        Command::Mailbox(args) => wait_for(mailbox::run(args, &client)),
        Command::Context(args) => wait_for(context::run(args, &client)),
        Command::Flow(args) => wait_for(flow::run(args, &client)),
        Command::Bench(args) => bench::run(args, &client),
        Command::Lab(args) => lab::run(&args),
        Command::Kafka(args) => kafka::run(&args),
        Command::Collect(args) => collect::run(&args),
    }
}

/// Runs a client command on a runtime of its own, and does not wait for what it leaves behind
/// (a blocked read of standard input would keep the process for ever).
fn wait_for<T>(command: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let result = runtime.block_on(command);
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
