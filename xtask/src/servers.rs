//! `cargo xtask servers`: the servers of other projects that `airmail bench experiment rivals` measures,
//! brought once into `target/tools/servers`.
//!
//! - nats-server, by the Go module proxy: built here.
//! - redis-server, from the system's packages: downloaded and unpacked, not installed, so that no
//!   service begins to run. Where it is installed already there is nothing to bring.
//! - Kafka, its jars from Maven Central; it needs Java to run.
//!
//! They are for comparisons only: no test wants them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use crate::{process, tools, workspace};

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
/// Pinned, so that figures change for what we changed.
const KAFKA: &str = "4.3.1";
const KAFKA_SCALA: &str = "2.13";
const LOG4J: &str = "2.25.3";

/// What to bring, and where to.
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
    fs::create_dir_all(&directory)?;
    let brought = [
        ("nats-server", tools::bring_nats(&directory).map(drop)),
        ("redis-server", bring_redis(&directory)),
        ("Kafka", bring_kafka(&directory.join("kafka"))),
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
    println!(
        "airmail bench experiment rivals --servers {}",
        directory.display()
    );
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

fn bring_kafka(directory: &Path) -> anyhow::Result<()> {
    if directory
        .join(format!("kafka_{KAFKA_SCALA}-{KAFKA}.jar"))
        .exists()
    {
        return Ok(());
    }
    anyhow::ensure!(
        process::succeeds("mvn", &["--version"]),
        "Maven (mvn) and Java 17 are needed; install them with the system's package manager"
    );
    fs::create_dir_all(directory)?;
    let pom = directory.join("pom.xml");
    fs::write(&pom, pom_text())?;
    process::run(
        Command::new("mvn")
            .args(["-q", "-B", "-f"])
            .arg(&pom)
            .arg("dependency:copy-dependencies")
            .arg(format!("-DoutputDirectory={}", directory.display()))
            .arg("-DincludeScope=runtime"),
    )
}

/// A project that needs nothing but what a broker needs.
fn pom_text() -> String {
    let dependencies = [
        ("org.apache.kafka", format!("kafka_{KAFKA_SCALA}"), KAFKA),
        ("org.apache.logging.log4j", "log4j-core".to_owned(), LOG4J),
        (
            "org.apache.logging.log4j",
            "log4j-slf4j-impl".to_owned(),
            LOG4J,
        ),
    ];
    let dependencies: String = dependencies
        .iter()
        .map(|(group, artifact, version)| {
            format!(
                "<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>\
                 <version>{version}</version></dependency>\n"
            )
        })
        .collect();
    format!(
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\">\n\
         <modelVersion>4.0.0</modelVersion>\n\
         <groupId>airmail</groupId><artifactId>kafka</artifactId><version>1</version>\n\
         <dependencies>\n{dependencies}</dependencies>\n</project>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pom_names_every_version() {
        let pom = pom_text();
        for word in [KAFKA, LOG4J, "kafka_2.13", "log4j-slf4j-impl"] {
            assert!(pom.contains(word), "{word}");
        }
    }
}
