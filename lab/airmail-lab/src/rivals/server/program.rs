//! Search for a rival's program.

use super::Kind;
use anyhow::{Context as _, bail};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Advice on how to bring all of them.
const BRING: &str = "`cargo xtask servers` brings it into target/tools/servers, for --servers";

/// A program that can be started.
#[derive(Debug)]
pub(super) struct Program {
    /// A path, or a name that is in PATH.
    pub(super) path: PathBuf,
    /// Arguments that always stand behind it.
    pub(super) arguments: Vec<String>,
    /// Its version.
    pub(super) version: String,
}

/// The program of a server: in `servers`, else in PATH.
///
/// # Errors
/// It is in neither; the error says how to bring it.
pub(super) fn find(kind: Kind, servers: Option<&Path>) -> anyhow::Result<Program> {
    match kind {
        Kind::Nats | Kind::JetStream { .. } => native("nats-server", servers),
        Kind::Redis { .. } => native("redis-server", servers),
        Kind::Kafka => kafka(servers),
    }
}

fn native(name: &str, servers: Option<&Path>) -> anyhow::Result<Program> {
    let given = servers.map(|servers| servers.join(name));
    let path = given.filter(|path| path.exists()).unwrap_or(name.into());
    let version = said(&path, "--version")?;
    let version = version.with_context(|| {
        let place = servers.map_or("PATH".to_owned(), |servers| {
            format!("{} or PATH", servers.display())
        });
        format!("{name} is not in {place}: {BRING}")
    })?;
    // `Redis server v=7.0.15 sha=… …` as much as `nats-server: v2.15.2`.
    let words = version.split_whitespace();
    let short = words
        .map(|word| word.trim_start_matches("v="))
        .find(|word| {
            let digits = word.trim_start_matches('v');
            digits.starts_with(|first: char| first.is_ascii_digit())
        });
    Ok(Program {
        path: absolute(path),
        arguments: Vec::new(),
        version: short.unwrap_or(&version).to_owned(),
    })
}

fn kafka(servers: Option<&Path>) -> anyhow::Result<Program> {
    let directory = servers.map(|servers| servers.join("kafka"));
    let directory = directory.filter(|directory| directory.is_dir());
    let directory = directory.with_context(|| format!("no kafka in --servers: {BRING}"))?;
    let mut version = None;
    for file in fs::read_dir(&directory)? {
        let name = file?.file_name().display().to_string();
        let stem = name.strip_suffix(".jar").unwrap_or_default();
        // As kafka_2.13-4.3.1.jar: Scala's version, then its own.
        if let Some((_, own)) = stem.strip_prefix("kafka_").and_then(|s| s.split_once('-')) {
            version = Some(own.to_owned());
        }
    }
    let version =
        version.with_context(|| format!("no kafka_….jar in {}: {BRING}", directory.display()))?;
    let java = PathBuf::from("java");
    if said(&java, "-version")?.is_none() {
        bail!("Kafka needs java 17 or later in PATH");
    }
    let directory = absolute(directory);
    Ok(Program {
        path: java,
        arguments: vec!["-cp".to_owned(), format!("{}/*", directory.display())],
        version,
    })
}

/// A path that means the same in another directory; a bare name stays one.
fn absolute(path: PathBuf) -> PathBuf {
    if path.components().count() < 2 {
        return path;
    }
    std::path::absolute(&path).unwrap_or(path)
}

/// Output of a program about itself; `None` if the program is not there.
fn said(program: &Path, argument: &str) -> anyhow::Result<Option<String>> {
    let output = Command::new(program)
        .arg(argument)
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            Ok(Some(text.lines().next().unwrap_or_default().to_owned()))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| program.display().to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_not_there_is_named_with_how_to_bring_it() {
        let nowhere = tempfile::tempdir().unwrap();
        for (kind, name) in [
            (Kind::Kafka, "kafka"),
            (Kind::JetStream { always: false }, "nats-server"),
        ] {
            let Err(error) = find(kind, Some(nowhere.path())) else {
                continue; // It is in PATH.
            };
            let said = format!("{error:#}");
            assert!(
                said.contains(name) && said.contains("xtask servers"),
                "{said}"
            );
        }
    }
}
