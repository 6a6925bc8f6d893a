//! The Java programs that take part: Kafka's brokers and tools, the partitioners, and the program
//! that drives Kafka with them.

use crate::server_process::last_lines;
use airmail_bench::family::Stop;
use airmail_bench::family::member::Member;
use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Advice on how to bring them.
const BRING: &str = "`cargo xtask servers` brings it into target/tools/servers, for --servers";
/// Kafka's, and ours, below the directory of the servers.
const KAFKA: &str = "kafka";
const OURS: &str = "kafka-partitioners";
/// Options of a Java program that is no broker.
const HEAP: [&str; 2] = ["-Xmx512m", "-XX:+UseSerialGC"];

/// Where the jars are.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Jars {
    servers: PathBuf,
    /// Kafka's.
    pub(super) version: String,
}

impl Jars {
    /// Those that `cargo xtask servers` has left.
    ///
    /// # Errors
    /// Something is missing; the error says how to bring it.
    pub(super) fn find(servers: &Path) -> anyhow::Result<Jars> {
        let servers = std::path::absolute(servers)?;
        let (kafka, ours) = (servers.join(KAFKA), servers.join(OURS));
        let version = version(&kafka, "kafka_")
            .with_context(|| format!("no Kafka in {}: {BRING}", kafka.display()))?;
        for (directory, name) in [
            (&kafka, "kafka-tools-"),
            (&ours, "kafka-partitioners-"),
            (&ours, "kafka-load-"),
        ] {
            jar(directory, name)
                .with_context(|| format!("no {name}….jar in {}: {BRING}", directory.display()))?;
        }
        let java = Command::new("java")
            .arg("-version")
            .stdin(Stdio::null())
            .output();
        java.context("java 17 or later must be in PATH")?;
        Ok(Jars { servers, version })
    }

    /// Arguments of `java` with which it finds all classes.
    pub(super) fn class_path(&self) -> [String; 2] {
        let all = |directory: &str| self.servers.join(directory).join("*").display().to_string();
        ["-cp".to_owned(), format!("{}:{}", all(KAFKA), all(OURS))]
    }

    /// Starts a program of ours that answers by lines, and writes all else to a file in `directory`.
    ///
    /// # Errors
    /// There is no Java.
    pub(super) fn start(
        &self,
        class: &str,
        arguments: &[&str],
        directory: &Path,
        stop: &Stop,
    ) -> anyhow::Result<Program> {
        let log = directory.join(format!("{class}.log"));
        let mut command = Command::new("java");
        command.args(HEAP).args(self.class_path());
        command
            .arg(format!("airmail.kafka.load.{class}"))
            .args(arguments)
            .stderr(File::create(&log)?);
        Ok(Program {
            member: Member::of(command, stop)?,
            log,
        })
    }
}

/// A program of ours that runs; it ends with this.
#[derive(Debug)]
pub(super) struct Program {
    member: Member,
    log: PathBuf,
}

impl Program {
    /// Tells it a line.
    ///
    /// # Errors
    /// It has ended.
    pub(super) fn tell(&mut self, line: &str) -> anyhow::Result<()> {
        let told = self.member.tell(line);
        told.with_context(|| self.complaint())
    }

    /// Text behind the word that is due.
    ///
    /// # Errors
    /// It has ended, or was told to.
    pub(super) fn hear(&mut self, word: &str) -> anyhow::Result<String> {
        let heard = self.member.hear(word);
        heard.with_context(|| self.complaint())
    }

    /// Last lines of its own log.
    fn complaint(&self) -> String {
        let name = self.log.file_stem().unwrap_or_default();
        format!("java …{}: {}", name.display(), last_lines(&self.log))
    }
}

/// Part of a jar's name behind `name`, without `.jar`.
fn jar(directory: &Path, name: &str) -> Option<String> {
    let files = fs::read_dir(directory).ok()?.filter_map(Result::ok);
    let mut names = files.map(|file| file.file_name().display().to_string());
    let behind = |file: String| {
        let stem = file.strip_suffix(".jar")?;
        stem.strip_prefix(name).map(str::to_owned)
    };
    names.find_map(behind)
}

/// Version in a name such as `kafka_2.13-4.3.1.jar`: Scala's version, then its own.
fn version(directory: &Path, name: &str) -> Option<String> {
    let behind = jar(directory, name)?;
    let (_, own) = behind.split_once('-')?;
    Some(own.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_how_to_bring_it() {
        let servers = tempfile::tempdir().unwrap();
        let kafka = servers.path().join(KAFKA);
        fs::create_dir(&kafka).unwrap();
        for (missing, there) in [
            ("no Kafka in", None),
            ("kafka-tools-", Some("kafka_2.13-4.3.1.jar")),
            ("kafka-partitioners-", Some("kafka-tools-4.3.1.jar")),
        ] {
            if let Some(jar) = there {
                fs::write(kafka.join(jar), "").unwrap();
            }
            let said = format!("{:#}", Jars::find(servers.path()).unwrap_err());
            assert!(
                said.contains(missing) && said.contains("xtask servers"),
                "{said}"
            );
        }
        assert_eq!(version(&kafka, "kafka_").as_deref(), Some("4.3.1"));
    }
}
