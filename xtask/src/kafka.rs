//! Kafka and our partitioners for it, brought once into a directory of servers: `kafka/`, its jars
//! with its tools, from Maven Central; `kafka-partitioners/`, our jars, built here; `kafka-3/`, the
//! tools of the last Kafka before 4, whose clients a test runs the partitioners with. All of it
//! needs Java to run.

use crate::{maven, process, workspace};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Pinned, so that figures change for what we changed.
const KAFKA: &str = "4.3.1";
const KAFKA_3: &str = "3.9.2";
const SCALA: &str = "2.13";
const LOG4J: &str = "2.25.3";
const SLF4J: &str = "1.7.36";
/// Ours: the project, and the name of its jar.
const OURS: [(&str, &str); 2] = [
    ("kafka-partitioners", "kafka-partitioners-0.1.0.jar"),
    ("kafka-partitioners/load", "kafka-load-0.1.0.jar"),
];

/// A group, an artifact and a version.
type Artifact = (&'static str, String, &'static str);

/// Brings Kafka.
pub(crate) fn bring(servers: &Path) -> anyhow::Result<()> {
    let directory = servers.join("kafka");
    // The one that came last to what is brought.
    if directory.join(format!("kafka-tools-{KAFKA}.jar")).exists() {
        return Ok(());
    }
    let log4j = |artifact: &str| ("org.apache.logging.log4j", artifact.to_owned(), LOG4J);
    copy(
        &directory,
        &[
            ("org.apache.kafka", format!("kafka_{SCALA}"), KAFKA),
            ("org.apache.kafka", "kafka-tools".to_owned(), KAFKA),
            log4j("log4j-core"),
            log4j("log4j-slf4j-impl"),
        ],
    )
}

/// Brings the tools of the last Kafka before 4, with its clients.
pub(crate) fn bring_3(servers: &Path) -> anyhow::Result<()> {
    let directory = servers.join("kafka-3");
    if directory
        .join(format!("kafka-tools-{KAFKA_3}.jar"))
        .exists()
    {
        return Ok(());
    }
    copy(
        &directory,
        &[
            ("org.apache.kafka", "kafka-tools".to_owned(), KAFKA_3),
            ("org.slf4j", "slf4j-nop".to_owned(), SLF4J),
        ],
    )
}

/// Builds our jars, and puts them beside Kafka.
pub(crate) fn bring_partitioners(servers: &Path) -> anyhow::Result<()> {
    maven::find()?;
    let directory = servers.join("kafka-partitioners");
    fs::create_dir_all(&directory)?;
    for (project, jar) in OURS {
        process::run(
            Command::new("mvn")
                .args(["-q", "-B", "-DskipTests", "-f"])
                .arg(format!("{project}/pom.xml"))
                .arg("package")
                .current_dir(workspace::root()),
        )?;
        let built = workspace::root().join(project).join("target").join(jar);
        fs::copy(built, directory.join(jar))?;
    }
    Ok(())
}

fn copy(directory: &Path, artifacts: &[Artifact]) -> anyhow::Result<()> {
    maven::find()?;
    fs::create_dir_all(directory)?;
    let pom = directory.join("pom.xml");
    fs::write(&pom, pom_text(artifacts))?;
    process::run(
        Command::new("mvn")
            .args(["-q", "-B", "-f"])
            .arg(&pom)
            .arg("dependency:copy-dependencies")
            .arg(format!("-DoutputDirectory={}", directory.display()))
            .arg("-DincludeScope=runtime"),
    )
}

/// A project that needs nothing but these.
fn pom_text(artifacts: &[Artifact]) -> String {
    let dependencies: String = artifacts
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
    fn the_pom_names_every_artifact_with_its_version() {
        let pom = pom_text(&[
            ("org.apache.kafka", "kafka-tools".to_owned(), KAFKA),
            ("org.slf4j", "slf4j-nop".to_owned(), SLF4J),
        ]);
        for word in ["kafka-tools", KAFKA, "slf4j-nop", SLF4J] {
            assert!(pom.contains(word), "{word}");
        }
    }

    #[test]
    fn our_jars_have_the_names_that_their_projects_give_them() {
        for (project, jar) in OURS {
            let pom = workspace::root().join(project).join("pom.xml");
            let pom = fs::read_to_string(pom).unwrap();
            let of = |element: &str| {
                let (_, behind) = pom.split_once(&format!("<{element}>")).unwrap();
                behind.split_once('<').unwrap().0.to_owned()
            };
            assert_eq!(jar, format!("{}-{}.jar", of("artifactId"), of("version")));
        }
    }
}
