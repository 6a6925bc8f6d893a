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
//! What cannot be brought is named, with how to bring it; the tests that want it say that they were
//! not run. Continuous integration wants all of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use crate::kafka;
use crate::maven;
use crate::process;
use crate::workspace;

/// Pinned, so that a test that fails does so for what we changed.
const GRPCURL: &str = "github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.3";
const NATS_SERVER: &str = "github.com/nats-io/nats-server/v2@v2.15.2";
const PYTHON_PACKAGES: [&str; 2] = ["grpcio>=1.60,<2", "grpcio-reflection>=1.60,<2"];

/// The directory that tests find their tools in: `python/bin/python`, `bin/grpcurl`.
#[derive(Debug)]
pub(crate) struct Tools {
    directory: PathBuf,
}

impl Tools {
    /// Brings what is missing, as far as it can be brought; with `all`, fails if something cannot.
    pub(crate) fn bring(all: bool) -> anyhow::Result<Tools> {
        let directory = workspace::root().join("target/tools");
        fs::create_dir_all(directory.join("bin"))?;
        let servers = directory.join("servers");
        let brought = [
            (
                "Python with grpcio",
                bring_python(&directory.join("python")),
            ),
            ("grpcurl", bring_grpcurl(&directory.join("bin"))),
            ("strace", find_strace()),
            ("PostgreSQL", find_postgres()),
            ("Maven with a JDK", maven::find()),
            ("Kafka", kafka::bring(&servers)),
            ("Kafka 3", kafka::bring_3(&servers)),
            ("partitioners", kafka::bring_partitioners(&servers)),
        ];
        for (name, brought) in brought {
            match brought.with_context(|| format!("no {name}")) {
                Err(error) if all => return Err(error),
                Err(error) => println!("tools: {error:#}"),
                Ok(()) => {}
            }
        }
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
