//! `cargo xtask fuzz`: builds the fuzz targets, runs each with a number of inputs, and prints the
//! results.
//!
//! The targets are built by plain cargo on the stable compiler, with the flags by which LLVM
//! reports coverage to libFuzzer: neither cargo-fuzz nor a nightly compiler is needed, only a C++
//! compiler for libFuzzer itself. No address sanitizer: unsafe code is denied in the workspace, and
//! without it a target takes many times as many inputs; overflows and debug assertions do panic.
//!
//! One target, `canary`, has a bug planted in it. A run in which that is not found has shown
//! nothing, and fails. A seed repeats a run of one job: same target, same inputs.

mod report;
mod seeds;

use crate::process::{self, cargo};
use crate::workspace;
use anyhow::{Context as _, bail, ensure};
use report::Report;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Coverage of edges, counted, and of comparisons' operands; and the checks that release builds
/// leave out. Comparisons of bytes must stay calls, which libFuzzer sees: those that the compiler
/// makes part of the code after the coverage is put in it are invisible (the canary tells).
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
     -Cllvm-args=-sanitizer-coverage-trace-compares -Cllvm-args=-max-loads-per-memcmp=0 \
     -Cllvm-args=-sanitizer-coverage-gated-trace-callbacks --cfg gated \
     --cfg fuzzing -Cdebug-assertions -Ccodegen-units=1";
/// The targets are a workspace of their own, with a lock file of their own.
pub(crate) const WORKSPACE: [&str; 2] = ["--manifest-path", "fuzz/Cargo.toml"];
/// The target that must fail.
const CANARY: &str = "canary";
/// Inputs that the canary is given: it is found within some 50,000.
const CANARY_INPUTS: u64 = 1_000_000;

/// The targets to run, and the number of inputs.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Inputs for each target.
    #[arg(long, default_value_t = 20_000)]
    inputs: u64,
    /// Where the choice of inputs begins; a run of it can be had again. 0 is not taken.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    seed: u32,
    /// The longest input, in bytes: a target that lives through a step for every few of them takes
    /// more short inputs than long ones in the same time. Default: libFuzzer's 4,096.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    longest: Option<u32>,
    /// Targets at a time.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: u16,
    /// Build only.
    #[arg(long)]
    build_only: bool,
    /// Only these targets, and the canary. Default: all.
    targets: Vec<String>,
}

/// Builds the targets, runs them and prints the table. Fails if a target finds something, does not
/// get through its inputs, or the canary is not found.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    ensure!(
        process::succeeds("c++", &["--version"]),
        "libFuzzer needs a C++ compiler, `c++`: install one with the system's package manager"
    );
    let targets = choose(&options.targets)?;
    let built = build(&targets)?;
    if options.build_only {
        return Ok(());
    }
    let directory = workspace::target_directory()?.join("fuzz-runs");
    seeds::write(&targets, &directory)?;
    let reports = run_all(&targets, options, &built, &directory)?;
    report::print(&reports);
    let failed: Vec<&str> = reports
        .iter()
        .filter(|report| !report.as_wanted())
        .map(|report| report.target.as_str())
        .collect();
    ensure!(
        failed.is_empty(),
        "not as it should be: {} (logs and inputs are in {})",
        failed.join(", "),
        directory.display()
    );
    Ok(())
}

/// The manifest's targets, each with the features that it asks for.
fn manifest() -> anyhow::Result<Vec<(String, Vec<String>)>> {
    let text = fs::read_to_string(workspace::root().join("fuzz/Cargo.toml"))?;
    let manifest: toml::Table = toml::from_str(&text)?;
    let text = |value: &toml::Value| value.as_str().map(str::to_owned);
    let target = |bin: &toml::Value| {
        let features = bin
            .get("required-features")
            .and_then(|list| list.as_array());
        let features = features.into_iter().flatten().filter_map(text);
        Some((text(bin.get("name")?)?, features.collect()))
    };
    let bins = manifest.get("bin").and_then(toml::Value::as_array);
    Ok(bins.into_iter().flatten().filter_map(target).collect())
}

/// Every target of the manifest in its order, the canary first; or those that were named.
fn choose(named: &[String]) -> anyhow::Result<Vec<String>> {
    let manifest = manifest()?;
    let all: Vec<&str> = manifest.iter().map(|(name, _)| name.as_str()).collect();
    if let Some(unknown) = named.iter().find(|name| !all.contains(&name.as_str())) {
        bail!("no target `{unknown}`; there are: {}", all.join(", "));
    }
    let wanted = |name: &&str| {
        *name == CANARY || named.is_empty() || named.iter().any(|other| other == name)
    };
    let mut targets: Vec<String> = all.into_iter().filter(wanted).map(Into::into).collect();
    targets.sort_by_key(|name| name != CANARY);
    Ok(targets)
}

/// Fails if the lock file of the targets lacks something that they use. The workspace's own is checked by
/// cargo whenever it starts this program.
pub(crate) fn check_lock() -> anyhow::Result<()> {
    let mut fetch = cargo(&["fetch", "--locked", "--quiet"]);
    let fetched = process::output(fetch.args(WORKSPACE));
    fetched.context(
        "fuzz/Cargo.lock cannot be used as it is: `cargo xtask fix` brings it up to date",
    )?;
    Ok(())
}

/// Builds the targets; gives the directory of the programs.
fn build(targets: &[String]) -> anyhow::Result<PathBuf> {
    // Named, so that build scripts and macros are built without the flags.
    let told = process::output(Command::new("rustc").arg("-vV"))?;
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.context("rustc does not say what it builds for")?;
    let output = workspace::target_directory()?.join("fuzz");
    let mut build = cargo(&["build", "--locked", "--release"]);
    build.args(WORKSPACE).args(["--target", host]);
    build.arg("--target-dir").arg(&output);
    for (target, features) in manifest()? {
        if targets.contains(&target) {
            build.args(["--bin", &target]);
            for feature in features {
                build.args(["--features", &feature]);
            }
        }
    }
    process::run(build.env("RUSTFLAGS", FLAGS))?;
    Ok(output.join(host).join("release"))
}

/// Runs the targets, some at a time; the reports are in the targets' order.
fn run_all(
    targets: &[String],
    options: &Options,
    built: &Path,
    directory: &Path,
) -> anyhow::Result<Vec<Report>> {
    let next = AtomicUsize::new(0);
    let work = || -> anyhow::Result<Vec<Report>> {
        let mut reports = Vec::new();
        while let Some(target) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
            let report = run_one(target, options, built, directory)?;
            println!("{}", report.line());
            reports.push(report);
        }
        Ok(reports)
    };
    let mut reports = Vec::new();
    thread::scope(|scope| -> anyhow::Result<()> {
        let jobs: Vec<_> = (0..options.jobs).map(|_| scope.spawn(work)).collect();
        for job in jobs {
            let done = job.join().map_err(|_| anyhow::anyhow!("a job died"))?;
            reports.extend(done?);
        }
        Ok(())
    })?;
    let place = |report: &Report| targets.iter().position(|name| *name == report.target);
    reports.sort_by_key(place);
    Ok(reports)
}

/// Gives one target its inputs. What it found stays in its directory.
fn run_one(
    target: &str,
    options: &Options,
    built: &Path,
    directory: &Path,
) -> anyhow::Result<Report> {
    let directory = directory.join(target);
    let inputs = if target == CANARY {
        CANARY_INPUTS
    } else {
        options.inputs
    };
    // What earlier runs reached would make this one another than its seed says.
    let corpus = directory.join("corpus");
    let _ = fs::remove_dir_all(&corpus);
    fs::create_dir_all(&corpus)?;
    let longest = options.longest.map(|bytes| format!("-max_len={bytes}"));
    let output = Command::new(built.join(target))
        .arg(format!("-runs={inputs}"))
        .args(longest)
        .arg(format!("-seed={}", options.seed))
        .arg(format!("-artifact_prefix={}/", directory.display()))
        // What one input frees is for the next: to give it back and ask again takes long.
        .env("MALLOC_TRIM_THRESHOLD_", "268435456")
        .env("MALLOC_TOP_PAD_", "67108864")
        .args(["-timeout=20", "-rss_limit_mb=1024", "-print_final_stats=1"])
        .arg(&corpus)
        .arg(directory.join("seeds"))
        .output()
        .with_context(|| format!("cannot run the fuzz target {target}"))?;
    let told = String::from_utf8_lossy(&output.stderr);
    fs::write(directory.join("log"), told.as_bytes())?;
    Ok(Report::new(
        target,
        inputs,
        target == CANARY,
        output.status.success(),
        &told,
    ))
}
