//! The tools of other projects that the end-to-end tests use, brought once into `target/tools`.
//!
//! - Python with grpcio, in an environment of its own: the client without an SDK in `examples/`.
//! - grpcurl, where Go is there: the generic gRPC client that people know.
//! - PostgreSQL's server: the tests of mailboxes start their own. From the system's packages.
//! - Maven and a JDK: `kafka-partitioners/`. From the system's packages.
//! - Kafka with its tools, also those of the last one before 4, and our partitioners: into `servers`
//!   below, for the tests with a live cluster.
//! - strace: shows that no ack is sent before its fdatasync. From the system's packages.
//!
//! A tool that cannot be brought is a failure that says how to bring it. A user who has no use for
//! a tool leaves it out by name ([`Without`]); the tests that want it say so each time. Continuous
//! integration leaves out none.

use crate::kafka;
use crate::maven;
use crate::process;
use crate::workspace;
use anyhow::Context as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Pinned, so that a test that fails does so for what we changed.
const GRPCURL: &str = "github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.3";
const NATS_SERVER: &str = "github.com/nats-io/nats-server/v2@v2.15.2";
const PYTHON_PACKAGES: [&str; 2] = ["grpcio>=1.60,<2", "grpcio-reflection>=1.60,<2"];

/// Tools that tests can go without. PostgreSQL's server is not one: half of the claims about
/// mailboxes rest on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Without {
    /// The client in Python.
    Python,
    /// The generic client of gRPC.
    Grpcurl,
    /// The traces of system calls, also where this user may not trace.
    Strace,
    /// The tests in Java.
    Maven,
    /// All tests with live brokers of Kafka.
    Kafka,
    /// The file systems that are filled, also where this user may not mount.
    Mount,
}

impl Without {
    /// The name that tests know it by.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Without::Python => "python",
            Without::Grpcurl => "grpcurl",
            Without::Strace => "strace",
            Without::Maven => "maven",
            Without::Kafka => "kafka",
            Without::Mount => "mount",
        }
    }
}

/// Brings a tool, or finds it.
type Bring<'a> = &'a dyn Fn() -> anyhow::Result<()>;

/// The directory that tests find their tools in: `python/bin/python`, `bin/grpcurl`.
#[derive(Debug)]
pub(crate) struct Tools {
    directory: PathBuf,
}

impl Tools {
    /// Brings what is missing; fails if something cannot be brought that is not left out.
    pub(crate) fn bring(without: &[Without]) -> anyhow::Result<Tools> {
        let directory = workspace::root().join("target/tools");
        fs::create_dir_all(directory.join("bin"))?;
        let servers = directory.join("servers");
        let kafka = Some(Without::Kafka);
        let python = || bring_python(&directory.join("python"));
        let grpcurl = || bring_grpcurl(&directory.join("bin"));
        let wanted: [(&str, Option<Without>, Bring<'_>); 8] = [
            ("Python with grpcio", Some(Without::Python), &python),
            ("grpcurl", Some(Without::Grpcurl), &grpcurl),
            ("strace", Some(Without::Strace), &find_strace),
            ("PostgreSQL", None, &find_postgres),
            ("Maven with a JDK", Some(Without::Maven), &maven::find),
            ("Kafka", kafka, &|| kafka::bring(&servers)),
            ("Kafka 3", kafka, &|| kafka::bring_3(&servers)),
            ("partitioners", kafka, &|| {
                kafka::bring_partitioners(&servers)
            }),
        ];
        let mut missing = Vec::new();
        for (name, left_out, bring) in wanted {
            if left_out.is_some_and(|left_out| without.contains(&left_out)) {
                continue;
            }
            if let Err(error) = bring() {
                let without = left_out.map_or_else(String::new, |one| {
                    format!(" (or leave out its tests: --without {})", one.name())
                });
                missing.push(format!("no {name}: {error:#}{without}"));
            }
        }
        anyhow::ensure!(
            missing.is_empty(),
            "what tests want is not there:\n{}",
            missing.join("\n")
        );
        Ok(Tools { directory })
    }

    /// Where they are.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }
}

fn find_strace() -> anyhow::Result<()> {
    anyhow::ensure!(
        process::succeeds("strace", &["--version"]),
        "install it with the system's package manager"
    );
    Ok(())
}

fn find_postgres() -> anyhow::Result<()> {
    let in_path = process::succeeds("initdb", &["--version"]);
    let packaged = fs::read_dir("/usr/lib/postgresql").is_ok_and(|mut versions| {
        versions.any(|version| version.is_ok_and(|found| found.path().join("bin/initdb").exists()))
    });
    anyhow::ensure!(
        in_path || packaged,
        "install the server (Debian: postgresql) with the system's package manager"
    );
    Ok(())
}

fn bring_python(directory: &Path) -> anyhow::Result<()> {
    let python = directory.join("bin/python");
    if process::succeeds(&python, &["-c", "import grpc, grpc_reflection"]) {
        return Ok(());
    }
    process::run(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(directory),
    )?;
    let install = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ];
    process::run(Command::new(python).args(install).args(PYTHON_PACKAGES))
}

fn bring_grpcurl(directory: &Path) -> anyhow::Result<()> {
    if process::succeeds(directory.join("grpcurl"), &["-version"]) {
        return Ok(());
    }
    process::run(
        Command::new("go")
            .args(["install", GRPCURL])
            .env("GOBIN", directory),
    )
}

/// Brings the NATS server, for comparisons only: no test wants it. Where it is then.
pub(crate) fn bring_nats(directory: &Path) -> anyhow::Result<PathBuf> {
    let program = directory.join("nats-server");
    if !process::succeeds(&program, &["--version"]) {
        fs::create_dir_all(directory)?;
        process::run(
            Command::new("go")
                .args(["install", NATS_SERVER])
                .env("GOBIN", directory),
        )
        .context("Go is needed to build it")?;
    }
    Ok(program)
}
