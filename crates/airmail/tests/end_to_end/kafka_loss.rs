//! Kafka loses what it has confirmed, on real brokers: the log stops by name, an operator decides, and everybody goes on and
//! is told what is lost.

use airmail_testkit::kafka::{KafkaCluster, wait_patiently, wait_patiently_for};
use airmail_testkit::node::{Done, Node};
use airmail_testkit::waiting::waiting;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};
use tempfile::TempDir;

/// 16 bytes in base64.
const TAIL_ID: &str = "bG9zcy1jbHVzdGVyLTAwMQ";
const GONE_ID: &str = "Z29uZS1jbHVzdGVyLTAwMQ";
const ELECTED_ID: &str = "Y3V0My1jbHVzdGVyLTAwMQ";

/// A node with its logs on a cluster of its own.
struct Place {
    directory: TempDir,
    cluster: KafkaCluster,
    node: Node,
}

impl Place {
    /// None where Kafka was left out.
    fn new(id: &str, brokers: usize, settings: &str) -> Option<Place> {
        let directory = tempfile::tempdir().unwrap();
        let cluster = KafkaCluster::start(&directory.path().join("kafka"), id, brokers)?;
        let url = format!("kafka://{}?{settings}", cluster.bootstrap());
        let node = Node::start_with(&directory.path().join("data"), &["--log", &url]);
        let place = Place {
            directory,
            cluster,
            node,
        };
        wait_patiently("the namespace's logs", || {
            place.node.run(&["history", "t"]).code == Some(0)
        });
        Some(place)
    }

    /// The topic of the namespace `default`.
    fn topic(&self) -> String {
        let topics = self.cluster.topics().into_iter();
        let mut normal = topics.filter(|topic| topic.contains(".normal."));
        normal.next().unwrap()
    }

    fn publish(&self, text: &str) {
        self.node.run(&["pub", "t", text]).ok();
    }

    fn publish_patiently(&self, text: &str) {
        wait_patiently("a publish", || {
            self.node.run(&["pub", "t", text]).code == Some(0)
        });
    }

    fn status(&self) -> Done {
        self.node.run(&["cluster", "status"])
    }

    /// Waits until the status tells of a log that has stopped, with this; the log.
    fn wait_for_stop(&self, why: &str) -> String {
        let mut found = None;
        wait_patiently_for("a log that has stopped", || {
            let status = self.status();
            let line = status.stdout.lines().find(|line| line.contains(why));
            let log = line.and_then(|line| line.trim().strip_prefix("log "));
            found = log.and_then(|log| log.split_once(' ').map(|(log, _)| log.to_owned()));
            match (&found, status.code) {
                (Some(_), Some(1)) => Ok(()),
                _ => Err(format!("{status:?}")),
            }
        });
        found.unwrap()
    }

    fn history(&self) -> String {
        self.node.run(&["history", "t"]).ok()
    }
}

/// A subscriber, and what it tells beside messages.
struct Watcher {
    process: Child,
    output: BufReader<ChildStdout>,
    told: PathBuf,
}

impl Watcher {
    fn start(place: &Place) -> Watcher {
        let told = place.directory.path().join("told");
        let mut command = place.node.airmail(&["sub", "t", "--from", "earliest"]);
        command.stdout(Stdio::piped());
        command.stderr(File::create(&told).unwrap());
        let mut process = command.spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Watcher {
            process,
            output,
            told,
        }
    }

    fn take(&mut self, count: usize) -> Vec<String> {
        let _waiting = waiting("lines of a subscriber");
        let lines = (&mut self.output).lines();
        lines.take(count).map(Result::unwrap).collect()
    }

    fn told(&self) -> String {
        fs::read_to_string(&self.told).unwrap()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// First and last number of each record of one message, by offset: a place of Kafka has 4,096 numbers.
fn numbers(first: u64, last: u64) -> String {
    format!(
        "gap {} to {} (loss)",
        (first + 1) << 12,
        ((last + 2) << 12) - 1
    )
}

/// A log that was cut: refused by name, accepted, and gone on with.
fn accept(place: &Place, watcher: &mut Watcher) {
    let log = place.wait_for_stop("lost what it had from number");
    let refused = place.node.run(&["pub", "t", "refused"]).failed(1);
    assert!(
        refused.contains("LOG_SUSPENDED") && refused.contains(&log),
        "{refused}"
    );
    let recreate = place.node.run(&["namespace", "recreate", "default"]);
    assert!(recreate.failed(1).contains("INVALID_ARGUMENT"));
    let accepted = place.node.run(&["cluster", "accept-loss", &log]).ok();
    assert!(accepted.contains(&log), "{accepted}");
    assert_eq!(place.status().code, Some(0), "{:?}", place.status());
    let again = place.node.run(&["cluster", "accept-loss", &log]).failed(1);
    assert!(again.contains("a log that is suspended"), "{again}");
    place.publish_patiently("after");
    assert_eq!(watcher.take(1), ["after"]);
    assert_eq!(place.history(), "kept\nafter\n");
}

fn segment(directory: &Path, topic: &str) -> PathBuf {
    let of_topic = directory.join(format!("kafka/node-1/logs/{topic}-0"));
    of_topic.join("00000000000000000000.log")
}

#[test]
fn a_log_whose_only_broker_has_lost_its_end_goes_on_when_that_is_accepted() {
    let Some(mut place) = Place::new(TAIL_ID, 1, "replicas=1&min_insync=1") else {
        return;
    };
    let mut watcher = Watcher::start(&place);
    place.publish("kept");
    let file = segment(place.directory.path(), &place.topic());
    let kept = fs::metadata(&file).unwrap().len();
    place.publish("lost 1");
    place.publish("lost 2");
    assert_eq!(watcher.take(3), ["kept", "lost 1", "lost 2"]);
    place.cluster.kill(0);
    let file = OpenOptions::new().write(true).open(file).unwrap();
    file.set_len(kept).unwrap();
    place.cluster.revive(0);
    accept(&place, &mut watcher);
    // The birth record and `kept` are before.
    let told = watcher.told();
    assert!(told.contains(&numbers(2, 3)), "{told}");
    place.node.run(&["history", "t"]).ok();
}

#[test]
fn a_log_that_an_unclean_election_has_cut_goes_on_when_that_is_accepted() {
    let Some(mut place) = Place::new(ELECTED_ID, 3, "replicas=2&min_insync=1") else {
        return;
    };
    let topic = place.topic();
    let mut watcher = Watcher::start(&place);
    place.publish("kept");
    let copies = place.cluster.copies(&topic);
    let (leader, follower) = (copies.all[0], copies.all[1]);
    wait_patiently("both copies", || {
        place.cluster.copies(&topic).in_sync.len() == 2
    });
    place.cluster.kill(follower);
    wait_patiently("one copy in sync", || {
        place.cluster.copies(&topic).in_sync == [leader]
    });
    place.publish_patiently("lost 1");
    place.publish_patiently("lost 2");
    assert_eq!(watcher.take(3), ["kept", "lost 1", "lost 2"]);
    place.cluster.kill(leader);
    place.cluster.revive(follower);
    place.cluster.elect_uncleanly(&topic, follower);
    place.cluster.revive(leader);
    accept(&place, &mut watcher);
    let told = watcher.told();
    assert!(told.contains(&numbers(2, 3)), "{told}");
}

#[test]
fn a_namespace_whose_topic_is_deleted_goes_on_when_it_is_made_anew() {
    let Some(place) = Place::new(GONE_ID, 1, "replicas=1&min_insync=1") else {
        return;
    };
    let topic = place.topic();
    let mut watcher = Watcher::start(&place);
    place.publish("before");
    assert_eq!(watcher.take(1), ["before"]);
    let sound = place.node.run(&["namespace", "recreate", "default"]);
    assert!(sound.failed(1).contains("INVALID_ARGUMENT"));
    place.cluster.delete_topic(&topic);
    let log = place.wait_for_stop("is gone, or was made again");
    let refused = place.node.run(&["pub", "t", "refused"]).failed(1);
    assert!(refused.contains("LOG_SUSPENDED"), "{refused}");
    let refused = place.node.run(&["cluster", "accept-loss", &log]).failed(1);
    assert!(refused.contains("namespace recreate default"), "{refused}");
    let made = place.node.run(&["namespace", "recreate", "default"]).ok();
    assert!(made.starts_with("default\t"), "{made}");
    assert_eq!(place.status().code, Some(0), "{:?}", place.status());
    place.publish_patiently("after");
    assert_eq!(watcher.take(1), ["after"]);
    assert_eq!(place.history(), "after\n");
    assert!(!place.cluster.topics().contains(&topic));
}
