//! Build and tests of the code that is not Rust: `kafka-partitioners/`, for Kafka's own producers,
//! and in it `load/`, which drives Kafka with them. Maven builds both, and tests the first with
//! each Kafka client that it names.

use crate::process;
use crate::workspace;
use std::process::Command;

const PROJECT: &str = "kafka-partitioners/pom.xml";
const LOAD: &str = "kafka-partitioners/load/pom.xml";

/// Fails if Maven or a JDK is missing.
pub(crate) fn find() -> anyhow::Result<()> {
    anyhow::ensure!(
        process::succeeds("mvn", &["--version"]) && process::succeeds("javac", &["--version"]),
        "install both (Debian: maven, default-jdk-headless) with the system's package manager; \
         {PROJECT} is not built without them"
    );
    Ok(())
}

/// Builds the projects and runs their tests; the jars are then in their `target`.
pub(crate) fn verify() -> anyhow::Result<()> {
    for project in [PROJECT, LOAD] {
        process::run(
            Command::new("mvn")
                .args(["-q", "-B", "-f", project, "verify"])
                .current_dir(workspace::root()),
        )?;
    }
    Ok(())
}
