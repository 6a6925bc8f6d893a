//! `cargo xtask servers`: the servers of other projects that `airmail-lab rivals` and
//! `partitioners` measure, brought once into `target/tools/servers`.
//!
//! - nats-server, by the Go module proxy: built here.
//! - redis-server, from the system's packages: downloaded and unpacked, not installed, so that no
//!   service begins to run. Where it is installed already there is nothing to bring.
//! - Kafka, its jars from Maven Central, and our partitioners for it, built here ([`kafka`]).
//!
//! Tests want Kafka; the others are for comparisons only.

use crate::{kafka, process, tools, workspace};
use anyhow::Context as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian's packages with the server and what it needs that is not on every system.
const REDIS_PACKAGES: [&str; 7] = [
    "redis-server",
    "redis-tools",
    "libjemalloc2",
    "liblua5.1-0",
    "liblzf1",
    "lua-bitop",
    "lua-cjson",
];
/// Starts the unpacked server with the libraries beside it.
const REDIS_SCRIPT: &str = "#!/bin/sh\n\
here=$(dirname \"$(readlink -f \"$0\")\")\n\
export LD_LIBRARY_PATH=\"$(echo \"$here\"/redis/usr/lib/*-linux-gnu)\"\n\
exec \"$here/redis/usr/bin/redis-server\" \"$@\"\n";

/// The servers to bring, and the directory for them.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Where they go. Default: target/tools/servers.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Where they are, if nobody says where.
pub(crate) fn directory() -> PathBuf {
    workspace::root().join("target/tools/servers")
}

/// Brings what is missing; fails if something cannot be brought.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let directory = options.out.clone().unwrap_or_else(directory);
    let brought = bring(&directory);
    for experiment in ["rivals", "partitioners"] {
        println!("airmail-lab {experiment} --servers {}", directory.display());
    }
    brought
}

/// Brings them into a directory; fails with the names of those that cannot be brought.
pub(crate) fn bring(directory: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(directory)?;
    let brought = [
        ("nats-server", tools::bring_nats(directory).map(drop)),
        ("redis-server", bring_redis(directory)),
        ("Kafka", kafka::bring(directory)),
        (
            "partitioners for Kafka",
            kafka::bring_partitioners(directory),
        ),
    ];
    let mut missing = Vec::new();
    for (name, brought) in brought {
        match brought {
            Ok(()) => println!("servers: {name} is there"),
            Err(error) => {
                println!("servers: no {name}: {error:#}");
                missing.push(name);
            }
        }
    }
    anyhow::ensure!(missing.is_empty(), "not brought: {}", missing.join(", "));
    Ok(())
}

fn bring_redis(directory: &Path) -> anyhow::Result<()> {
    let script = directory.join("redis-server");
    let installed = process::succeeds("redis-server", &["--version"]);
    if installed || process::succeeds(&script, &["--version"]) {
        return Ok(());
    }
    let unpacked = directory.join("redis");
    fs::create_dir_all(&unpacked)?;
    let unpack = || -> anyhow::Result<()> {
        process::run(
            Command::new("apt-get")
                .arg("download")
                .args(REDIS_PACKAGES)
                .current_dir(&unpacked),
        )?;
        for entry in fs::read_dir(&unpacked)? {
            let path = entry?.path();
            if path.extension().is_some_and(|ending| ending == "deb") {
                process::run(Command::new("dpkg-deb").arg("-x").arg(&path).arg(&unpacked))?;
                fs::remove_file(&path)?;
            }
        }
        fs::write(&script, REDIS_SCRIPT)?;
        Ok(fs::set_permissions(
            &script,
            fs::Permissions::from_mode(0o755),
        )?)
    };
    unpack().context(
        "no Debian packages here: install redis-server with the system's package manager, so that it \
         is in PATH; its service need not run",
    )?;
    anyhow::ensure!(
        process::succeeds(&script, &["--version"]),
        "{} does not run: install redis-server with the system's package manager",
        script.display()
    );
    Ok(())
}
