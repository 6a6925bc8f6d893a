//! What is not Rust here: `kafka-partitioners/`, for Kafka's own producers. Maven builds it, and tests
//! it with each Kafka client that it names.

use std::process::Command;

use crate::process;
use crate::workspace;

const PROJECT: &str = "kafka-partitioners/pom.xml";

/// Fails if Maven or a JDK is missing.
pub(crate) fn find() -> anyhow::Result<()> {
    anyhow::ensure!(
        process::succeeds("mvn", &["--version"]) && process::succeeds("javac", &["--version"]),
        "install both (Debian: maven, default-jdk-headless) with the system's package manager; \
         {PROJECT} is not built without them"
    );
    Ok(())
}

/// Builds the project and runs its tests; the jar is then in its `target`.
pub(crate) fn verify() -> anyhow::Result<()> {
    process::run(
        Command::new("mvn")
            .args(["-q", "-B", "-f", PROJECT, "verify"])
            .current_dir(workspace::root()),
    )
}
