//! The collector's process: its thread, its page of metrics, its line for each second, and signals.

use super::super::lasting::{Signals, entropy, print, start_logging};
use super::super::listening::listen;
use super::settings::settings;
use super::{CollectArgs, page};
use airmail_collect::shell::{self, CollectError, Metrics, Second};
use airmail_node::config::Config;
use airmail_node::config::hosts::{Hosts, is_loopback};
use airmail_node::same_origin::SameOrigin;
use anyhow::Context as _;
use futures::FutureExt as _;
use std::io::IsTerminal as _;
use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// The flag that says where its metrics are.
const METRICS: &str = "--metrics";
/// Time between two lines.
const SECOND: Duration = Duration::from_secs(1);

type Done = Result<(), CollectError>;

/// Runs it.
///
/// # Errors
/// As [`super::run`].
pub(super) fn run(args: &CollectArgs) -> anyhow::Result<ExitCode> {
    let settings = settings(args, entropy())?;
    start_logging(&Config {
        log_level: args.log_level.clone(),
        ..Config::default()
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let page = args.metrics.as_deref();
    let page = page.map(|address| listen(METRICS, address, args.allow_anyone));
    runtime.block_on(collect(settings, page.transpose()?).boxed_local())?;
    Ok(ExitCode::SUCCESS)
}

async fn collect(settings: shell::Settings, page: Option<TcpListener>) -> anyhow::Result<()> {
    let mut signals = Signals::new()?;
    let metrics = Arc::new(Metrics::new());
    let stopped = CancellationToken::new();
    let page = serve_page(page, &metrics, &stopped)?;
    let stop = Arc::new(AtomicBool::new(false));
    let (ended, end) = oneshot::channel();
    let collector = start(settings, Arc::clone(&metrics), Arc::clone(&stop), ended)?;
    let tell = std::io::stdout().is_terminal();
    let mut seconds = interval(SECOND);
    seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tokio::pin!(end);
    let done = loop {
        tokio::select! {
            // Nothing is told only where its thread has panicked.
            done = &mut end => break done.context("the collector's thread has ended")?,
            _ = seconds.tick(), if tell => line(&metrics.second()),
            signal = signals.next() => {
                anyhow::ensure!(!stop.swap(true, Ordering::Relaxed), "ended by a second signal");
                tracing::info!(signal, "gives its sources up");
            }
        }
    };
    stopped.cancel();
    if let Some(page) = page {
        page.await??;
    }
    // It has told its end.
    let _ = collector.join();
    Ok(done?)
}

fn start(
    settings: shell::Settings,
    metrics: Arc<Metrics>,
    stop: Arc<AtomicBool>,
    ended: oneshot::Sender<Done>,
) -> std::io::Result<JoinHandle<()>> {
    let collect = move || {
        let done = shell::run(settings, &metrics, &stop);
        // Nobody listens only after a second signal.
        let _ = ended.send(done);
    };
    thread::Builder::new().name("collect".into()).spawn(collect)
}

fn serve_page(
    listener: Option<TcpListener>,
    metrics: &Arc<Metrics>,
    stopped: &CancellationToken,
) -> anyhow::Result<Option<tokio::task::JoinHandle<std::io::Result<()>>>> {
    let Some(listener) = listener else {
        return Ok(None);
    };
    let address = listener.local_addr()?;
    print(&format!("metrics at http://{address}/metrics\n"));
    if !is_loopback(address.ip()) {
        tracing::warn!(%address, "anyone who reaches this address may read the metrics (--allow-anyone)");
    }
    listener.set_nonblocking(true)?;
    let serving = page::serve(
        tokio::net::TcpListener::from_std(listener)?,
        SameOrigin::new(address, Hosts::default()),
        Arc::clone(metrics),
        stopped.clone().cancelled_owned(),
    );
    let handle = tokio::runtime::Handle::current();
    Ok(Some(handle.spawn(serving)))
}

/// Prints the figures of one second.
fn line(second: &Second) {
    let mib_per_s = second.bytes as f64 / f64::from(1 << 20);
    print(&format!(
        "{} records/s, {mib_per_s:.1} MiB/s, lag {}, {} under way, p50 {:.1} ms, p99 {:.1} ms, {} sources\n",
        second.records,
        second.lag,
        second.outstanding,
        second.p50.as_secs_f64() * 1e3,
        second.p99.as_secs_f64() * 1e3,
        second.sources,
    ));
}
