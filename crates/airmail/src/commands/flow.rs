//! `airmail flow`: a node's bounds on messages in flight, and each decision on them.
//!
//! `show` prints the state of the gates once; `watch` follows them: on a terminal as a view that is
//! drawn anew, else as a line for each decision.

mod lines;
mod screen;
mod view;

use super::lines::printed;
use super::target::Target;
use crate::cli::{ClientOptions, UsageError};
use airmail_client::Admin;
use std::io::{self, IsTerminal as _};
use std::process::ExitCode;
use std::time::Duration;

/// Arguments of `airmail flow`.
#[derive(clap::Args, Debug)]
pub struct FlowArgs {
    /// The action
    #[command(subcommand)]
    pub action: Action,
}

/// Actions on flow control.
#[derive(clap::Subcommand, Debug)]
pub enum Action {
    /// Print how the gates stand: bound, in flight, waiting, and the last decision
    Show(ShowArgs),
    /// Follow them: a live view on a terminal (q ends it), else a line for each decision
    Watch(WatchArgs),
}

/// Arguments of `airmail flow show`.
#[derive(clap::Args, Debug)]
pub struct ShowArgs {
    /// Print a line of JSON for each gate
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `airmail flow watch`.
#[derive(clap::Args, Debug)]
pub struct WatchArgs {
    /// Print a line of JSON for each decision
    #[arg(long)]
    pub json: bool,
    /// Print a line for each decision, also on a terminal
    #[arg(long)]
    pub lines: bool,
    /// Interval at which the node is asked, as 500ms
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, default_value = "500ms")]
    pub interval: Duration,
    /// Number of decisions after which to end [default: go on]
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,
}

/// The shortest interval: below it, watching would be a load of its own.
const INTERVAL_MIN: Duration = Duration::from_millis(50);

/// Runs it.
///
/// # Errors
/// No node answers, or the terminal cannot be used.
pub async fn run(args: FlowArgs, options: &ClientOptions) -> anyhow::Result<ExitCode> {
    let target = Target::resolve(options, None)?;
    let client = target.client().connect().await?;
    let admin = client.admin();
    match args.action {
        Action::Show(args) => {
            let gates = admin.flow().await?;
            printed(lines::show(&mut io::stdout(), &gates, args.json).map_err(Into::into))?;
        }
        Action::Watch(args) => {
            if args.interval < INTERVAL_MIN {
                let interval = humantime::format_duration(args.interval);
                return Err(UsageError(format!(
                    "--interval: {interval} is too short; at least 50ms"
                ))
                .into());
            }
            printed(watch(&admin, &target.url, &args).await)?;
        }
    }
    client.close().await?;
    Ok(ExitCode::SUCCESS)
}

async fn watch(admin: &Admin, node: &str, args: &WatchArgs) -> anyhow::Result<()> {
    if io::stdout().is_terminal() && !args.lines && !args.json {
        return screen::watch(admin, node, args.interval).await;
    }
    let mut printer = lines::Printer::new(args.json, args.count);
    loop {
        let gates = admin.flow().await?;
        if !printer.print(&mut io::stdout(), &gates)? {
            return Ok(());
        }
        tokio::time::sleep(args.interval).await;
    }
}
