//! `airmail collect`, with real brokers: the records that it passes on, its commits, and its
//! output.

use airmail_collect::Stamp;
use airmail_testkit::kafka::{KafkaCluster, wait_patiently};
use airmail_testkit::node::{self, Node, airmail, get, get_of};
use airmail_testkit::waiting::waiting;
use rdkafka::message::{BorrowedMessage, Header, Headers as _, Message as _, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};
use rustix::process::Signal;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;

/// 16 bytes in base64.
pub(crate) const SMALL: &str = "c21hbGwtY2x1c3Rlci0wMQ";
pub(crate) const MAIN: &str = "bWFpbi1jbHVzdGVyLTAwMQ";
/// Time that a cluster may take to acknowledge a test's records.
const PATIENCE: Duration = Duration::from_secs(300);

/// A collector in a process of its own. Killed when dropped.
#[derive(Debug)]
pub(crate) struct Collector {
    child: Child,
    /// Where its metrics are, as `HOST:PORT`.
    http: String,
}

impl Collector {
    /// Starts one; its log goes to a file.
    pub(crate) fn start(arguments: &[&str], log: &Path) -> Collector {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(log)
            .unwrap();
        let mut command = airmail();
        command
            .args(["collect", "--metrics", "127.0.0.1:0"])
            .args(arguments);
        command.stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        let _waiting = waiting("a collector to say where its metrics are");
        let line = said
            .next()
            .expect("it ended before it said where its metrics are")
            .unwrap();
        let http = line.strip_prefix("metrics at http://").unwrap();
        let http = http.strip_suffix("/metrics").unwrap().to_owned();
        Collector { child, http }
    }

    /// The sum of a metric's samples.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        node::metric(&self.http, name).unwrap_or(0.0)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        node::signal(&self.child, signal);
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        node::end_of(&mut self.child, "a collector")
    }

    /// SIGTERM, and its end, which must be a good one.
    pub(crate) fn stop(mut self) {
        self.signal(Signal::TERM);
        assert_eq!(self.wait().code(), Some(0));
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The parts of a record of the main cluster that tests look at.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    partition: i32,
    key: Option<Vec<u8>>,
    value: Option<String>,
    time_ms: Option<i64>,
    headers: Vec<(String, String)>,
    stamp: Stamp,
}

fn headers(message: &BorrowedMessage<'_>) -> Vec<(String, Vec<u8>)> {
    let headers = message
        .headers()
        .into_iter()
        .flat_map(|headers| headers.iter());
    headers
        .map(|one| (one.key.to_owned(), one.value.unwrap_or_default().to_owned()))
        .collect()
}

/// The stamp of a record that was collected.
pub(crate) fn stamp(message: &BorrowedMessage<'_>) -> Stamp {
    let headers = headers(message);
    Stamp::read(headers.iter().map(|(name, value)| (&**name, &**value))).unwrap()
}

fn seen(cluster: &KafkaCluster, topic: &str, partitions: i32) -> Vec<Seen> {
    let mut all = Vec::new();
    cluster.read(topic, partitions, |message| {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_owned()).unwrap();
        let headers = headers(message);
        let own = headers
            .iter()
            .filter(|(name, _)| !name.starts_with("airmail-"));
        all.push(Seen {
            partition: message.partition(),
            key: message.key().map(<[u8]>::to_owned),
            value: message.payload().map(text),
            time_ms: message.timestamp().to_millis(),
            headers: own
                .map(|(name, value)| (name.clone(), text(value)))
                .collect(),
            stamp: stamp(message),
        });
    });
    all.sort_by_key(|seen| (seen.stamp.source.clone(), seen.stamp.range.number));
    all
}

fn send(cluster: &KafkaCluster, record: BaseRecord<'_, str, str>) {
    let producer: BaseProducer = cluster.client().set("acks", "all").create().unwrap();
    producer.send(record).map_err(|(error, _)| error).unwrap();
    producer.flush(PATIENCE).unwrap();
}

fn url(cluster: &KafkaCluster) -> String {
    format!("kafka://{}", cluster.bootstrap())
}

#[test]
fn what_cannot_be_collected_is_wrong_usage() {
    let good = [
        "collect",
        "--source",
        "kafka://127.0.0.1:1",
        "--target",
        "kafka://127.0.0.1:1",
    ];
    for more in [
        &[][..],
        &["--topic", "A", "--policy", "best"],
        &["--topic", "A", "--order", "x"],
    ] {
        node::run(airmail().args(good).args(more), b"").failed(2);
    }
}

/// A name that leads to this machine is not enough to be told what is on it.
fn check_host(address: &str) {
    let told = |path| get_of("evil.example", address, path).0;
    assert_eq!((told("/metrics"), told("/healthz")), (403, 200));
}

#[test]
fn records_go_on_as_they_are_stamped_and_once_over_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let Some(kafka) = KafkaCluster::start(&directory.path().join("kafka"), MAIN, 1) else {
        return;
    };
    kafka.make_topic("in", 2, &[]);
    kafka.make_topic("out", 3, &[]);
    let to = |partition| {
        BaseRecord::<str, str>::to("in")
            .partition(partition)
            .timestamp(1_234)
    };
    let header = Header {
        key: "lang",
        value: Some("en"),
    };
    let headers = OwnedHeaders::new().insert(header);
    send(&kafka, to(0).key("key").payload("first").headers(headers));
    send(&kafka, to(0).key("key"));
    send(&kafka, to(1).payload("third"));
    let url = url(&kafka);
    let arguments = [
        "--source",
        &url,
        "--target",
        &url,
        "--topic",
        "in=out",
        "--policy",
        "node",
        "--session",
        "6s",
    ];
    let log = directory.path().join("collect.log");
    let collector = Collector::start(&arguments, &log);
    wait_patiently("three records are collected", || {
        collector.metric("airmail_collect_collected_total") == 3.0
    });
    // It learns of ends once a second.
    wait_patiently("the lag is known", || {
        get(&collector.http, "/metrics").1.contains("_lag{")
    });
    check_page(&get(&collector.http, "/metrics").1);
    check_host(&collector.http);
    collector.stop();
    let done = seen(&kafka, "out", 3);
    assert_eq!(done.len(), 3, "{done:?}");
    // murmur2 of "key" among three, as vectors/partitioners.json has it.
    let (first, second, third) = (&done[0], &done[1], &done[2]);
    assert_eq!((first.partition, second.partition), (1, 1));
    assert_eq!(first.value.as_deref(), Some("first"));
    assert_eq!(first.key.as_deref(), Some(&b"key"[..]));
    assert_eq!(first.headers, [("lang".to_owned(), "en".to_owned())]);
    assert_eq!((second.value.as_ref(), second.time_ms), (None, Some(1_234)));
    assert_eq!(third.key, None);
    assert_eq!(first.stamp.source, format!("{MAIN}/in/0"));
    assert_eq!(second.stamp.range.to_string(), "1-1");
    assert_eq!(
        kafka.committed("airmail-collect", "in", 2),
        [(0, 2), (1, 1)].into()
    );

    send(&kafka, to(1).payload("fourth"));
    let collector = Collector::start(&arguments, &log);
    wait_patiently("the fourth is collected", || {
        collector.metric("airmail_collect_collected_total") == 1.0
    });
    collector.stop();
    let all = seen(&kafka, "out", 3);
    assert_eq!(all[..3], done[..]);
    assert_eq!(all[3].value.as_deref(), Some("fourth"));
    assert_eq!(all[3].stamp.range.to_string(), "1-1");

    refusals(&kafka, &url, &log);
    small_records_for_a_narrow_topic(&kafka, &url, &log);
}

/// A topic that is not there, and a record that is never taken: each ends it, and says which.
fn refusals(kafka: &KafkaCluster, url: &str, log: &Path) {
    let collect = ["collect", "--source", url, "--target", url, "--topic"];
    let said = node::run(airmail().args(collect).arg("in=nowhere"), b"").failed(1);
    assert!(said.contains("has no topic nowhere"), "{said}");
    kafka.make_topic("narrow", 1, &[("max.message.bytes", "1000")]);
    send(
        kafka,
        BaseRecord::to("in")
            .partition(1)
            .payload(&"x".repeat(2_000)),
    );
    let more = ["in=narrow", "--group", "narrow", "--session", "6s"];
    let said = node::run(airmail().args(collect).args(more), b"").failed(1);
    // Also where those before it were in one batch with it, which is refused whole.
    assert!(
        said.contains("refuses record 2 of") && said.contains("/in/1"),
        "{said}"
    );
    // What stood before it was taken, and is committed; it is where the next one begins.
    assert_eq!(
        kafka.committed("narrow", "in", 2)[&1],
        2,
        "{}",
        log.display()
    );
}

/// Together they are more than the topic takes at once, one by one they are not: all of them go on.
fn small_records_for_a_narrow_topic(kafka: &KafkaCluster, url: &str, log: &Path) {
    kafka.make_topic("small", 1, &[]);
    let producer: BaseProducer = kafka.client().set("acks", "all").create().unwrap();
    for _ in 0..40 {
        let payload = "x".repeat(100);
        let record: BaseRecord<'_, str, str> = BaseRecord::to("small").payload(&payload);
        producer.send(record).map_err(|(error, _)| error).unwrap();
    }
    producer.flush(PATIENCE).unwrap();
    let topics = ["--topic", "small=narrow", "--group", "small"];
    let ends = ["--source", url, "--target", url, "--session", "6s"];
    let arguments = [&topics[..], &ends, &["--linger", "200ms"]].concat();
    let collector = Collector::start(&arguments, log);
    wait_patiently("all small records are collected", || {
        collector.metric("airmail_collect_collected_total") >= 40.0
    });
    assert!(collector.metric("airmail_collect_beginnings_total") >= 1.0);
    collector.stop();
    assert_eq!(kafka.committed("small", "small", 1)[&0], 40);
}

/// Every metric on the page is in docs/kafka-balance.md, and the other way round.
fn check_page(page: &str) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/kafka-balance.md");
    let text = std::fs::read_to_string(path).unwrap();
    let documented = text
        .lines()
        .filter_map(|line| line.strip_prefix("| `airmail_collect_"));
    let mut documented: Vec<String> = documented
        .map(|rest| format!("airmail_collect_{}", rest.split('`').next().unwrap()))
        .collect();
    let served = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let mut served: Vec<String> = served
        .map(|line| match line.split_once(' ').unwrap() {
            (name, "counter") => format!("{name}_total"),
            (name, _) => name.to_owned(),
        })
        .collect();
    documented.sort();
    served.sort();
    assert_eq!(documented, served);
}

#[test]
fn messages_of_airmail_go_on_in_order_from_where_they_were() {
    let directory = tempfile::tempdir().unwrap();
    let Some(kafka) = KafkaCluster::start(&directory.path().join("kafka"), MAIN, 1) else {
        return;
    };
    kafka.make_topic("out", 2, &[]);
    let node = Node::start(&directory.path().join("data"));
    let publish = |from: u32| {
        let lines: String = (from..from + 50)
            .map(|number| format!("{number}\n"))
            .collect();
        node::run(
            &mut node.airmail(&["pub", "news", "--lines", "--attr", "kind=test"]),
            lines.as_bytes(),
        )
        .ok();
    };
    publish(0);
    let (source, target) = (format!("airmail://{}", node.grpc), url(&kafka));
    let arguments = [
        "--source",
        &source,
        "--target",
        &target,
        "--topic",
        "news=out",
        "--order",
        "pinned",
        "--session",
        "6s",
    ];
    let log = directory.path().join("collect.log");
    for round in 1..=2_u32 {
        let collector = Collector::start(&arguments, &log);
        wait_patiently("fifty messages are collected", || {
            collector.metric("airmail_collect_collected_total") == 50.0
        });
        collector.stop();
        let all = seen(&kafka, "out", 2);
        let values: Vec<String> = all.iter().filter_map(|seen| seen.value.clone()).collect();
        let expected: Vec<String> = (0..50 * round).map(|number| number.to_string()).collect();
        assert_eq!(values, expected, "each once, in order");
        assert!(all.iter().all(|seen| seen.partition == 0));
        assert_eq!(all[7].headers, [("kind".to_owned(), "test".to_owned())]);
        assert_eq!(all[7].stamp.source, "airmail.default/news/0");
        publish(50 * round);
    }
}
