//! A tree over a distance: a root, two regions far from it, and two leaves in each.
//!
//! The ways between the root and its regions take 40 ms each way, have a bandwidth, and hold one in a hundred reads back
//! for 200 ms. A message that is published at the root comes to a leaf little later than that takes; what is published as
//! fast as it goes uses the way nearly as well as a bare connection over it does, in the same run; and no batch goes down
//! a link twice. Times are told always, and judged with `AIRMAIL_PROVE_JUDGE`.

use super::Plan;
use airmail_bench::clock::now_us;
use airmail_client::{Client, Item, Message, Start, Subscription};
use airmail_model::{Limits, TopicName};
use airmail_testkit::node::{self, Node, airmail, serve};
use airmail_testkit::scale;
use airmail_testkit::slow_way::{Distance, SlowWay};
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;
use tokio::task::JoinSet;

const DISTANCE: Distance = Distance {
    delay: Duration::from_millis(40),
    bytes_per_s: 25_000_000,
    held_one_in: 100,
    hold: Duration::from_millis(200),
};
/// Bytes of a message of the second part, and most messages that wait for their acks.
const SIZE: usize = 1_000;
/// Bounds: median from the root to a leaf, and the part of what a bare connection carries over the way.
const P50_MAX: Duration = Duration::from_millis(45);
const SHARE_MIN: f64 = 0.8;

#[test]
fn a_tree_over_a_distance_uses_the_way_and_nothing_goes_down_it_twice() {
    let plan = Plan::new("distance", 1);
    let is_sample = scale::prove("ROUNDS").is_none();
    let directory = tempfile::tempdir().unwrap();
    let _watch = plan.watch(0, directory.path());
    let mut command = serve(directory.path());
    command.args(["--name", "root", "--cluster", "127.0.0.1:0"]);
    let root = Node::spawn(command);
    let ways = [(); 2].map(|()| SlowWay::to(&root.address("nodes"), DISTANCE));
    let regions: Vec<Node> = (0..)
        .zip(&ways)
        .map(|(number, way)| child(&format!("region-{number}"), &way.address()))
        .collect();
    let leaves: Vec<Node> = (0..4)
        .map(|number| {
            let region = &regions[number / 2];
            child(&format!("leaf-{number}"), &region.address("nodes"))
        })
        .collect();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (few, many) = if is_sample {
        (40, 5_000)
    } else {
        (200, 300_000)
    };
    let latencies = runtime.block_on(slowly(&root, &leaves, few));
    let p50 = latencies[latencies.len() / 2];
    let took = runtime.block_on(as_fast_as_it_goes(&root, &leaves, many));
    let share = bare(many * SIZE).as_secs_f64() / took.as_secs_f64();
    let nodes = regions.iter().chain(&leaves);
    let fetched: Vec<f64> = nodes
        .map(|node| node::metric(&node.http, "airmail_cache_fetched_bytes_total").unwrap())
        .collect();
    let (least, most) = fetched
        .iter()
        .fold((f64::MAX, 0.0_f64), |(least, most), bytes| {
            (least.min(*bytes), most.max(*bytes))
        });
    plan.tell(
        1,
        &format!(
            "root to leaf: p50 {p50:?}, p99 {:?}, most {:?}; goodput {share:.2} of a bare connection's; most over least that came \
             down a link {:.3}; bytes on the ways {:?}",
            latencies[latencies.len() * 99 / 100],
            latencies[latencies.len() - 1],
            most / least,
            ways.each_ref().map(SlowWay::carried_bytes),
        ),
    );
    assert!(
        most <= least * 1.02,
        "something came down twice: {fetched:?}"
    );
    if scale::prove("JUDGE").is_some() {
        assert!(p50 <= P50_MAX, "{p50:?}");
        assert!(share >= SHARE_MIN, "{share}");
    }
}

/// Time that so many bytes take over a bare connection, until all have come.
fn bare(bytes: usize) -> Duration {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let way = SlowWay::to(&listener.local_addr().unwrap().to_string(), DISTANCE);
    let mut sends = TcpStream::connect(way.address()).unwrap();
    let (mut receives, _) = listener.accept().unwrap();
    let begun = now_us();
    thread::scope(|scope| {
        scope.spawn(move || {
            let piece = vec![b'.'; SIZE];
            (0..bytes / SIZE).for_each(|_| sends.write_all(&piece).unwrap());
        });
        let received = std::io::copy(&mut receives, &mut std::io::sink());
        assert_eq!(received.unwrap() as usize, bytes / SIZE * SIZE);
    });
    Duration::from_micros(now_us() - begun)
}

fn child(name: &str, parent: &str) -> Node {
    let mut command = airmail();
    command.args([
        "serve",
        "--name",
        name,
        "--log",
        &format!("tree://{parent}"),
    ]);
    for address in ["--listen", "--http", "--cluster"] {
        command.args([address, "127.0.0.1:0"]);
    }
    Node::spawn(command)
}

async fn client(node: &Node, keep_to: &str) -> Client {
    let builder = Client::builder().url(format!("airmail://{}", node.grpc));
    builder.host(keep_to).connect().await.unwrap()
}

async fn subscribe(leaves: &[Node], topic: &str) -> Vec<Subscription> {
    let mut subscriptions = Vec::new();
    for leaf in leaves {
        let client = client(leaf, "").await;
        let opened = client.subscribe(topic).from(Start::Latest).open().await;
        subscriptions.push(opened.unwrap());
    }
    subscriptions
}

/// Times from publishes at the root, a few in a second, to the leaves, in order of length.
async fn slowly(root: &Node, leaves: &[Node], messages: usize) -> Vec<Duration> {
    let mut readers = JoinSet::new();
    for mut subscription in subscribe(leaves, "slow").await {
        readers.spawn(async move {
            let mut took = Vec::new();
            while took.len() < messages {
                let item = subscription.next().await.unwrap().unwrap();
                let Item::Message(message) = item else {
                    panic!("{item:?}");
                };
                let sent = u64::from_le_bytes(message.payload[..8].try_into().unwrap());
                took.push(Duration::from_micros(now_us().saturating_sub(sent)));
            }
            took
        });
    }
    let client = client(root, "").await;
    let publisher = client.publisher();
    let name = TopicName::new("slow", &Limits::DEFAULT).unwrap();
    for _ in 0..messages {
        let payload = now_us().to_le_bytes().to_vec();
        let message = Message::new(name.clone(), payload);
        publisher.send(message).await.unwrap().await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let mut all = readers.join_all().await.concat();
    all.sort_unstable();
    all
}

/// Time until everything that was published at the root at once has come to all leaves.
async fn as_fast_as_it_goes(root: &Node, leaves: &[Node], messages: usize) -> Duration {
    let mut readers = JoinSet::new();
    for mut subscription in subscribe(leaves, "fast").await {
        readers.spawn(async move {
            for _ in 0..messages {
                subscription.next().await.unwrap().unwrap();
            }
        });
    }
    let client = client(root, "").await;
    let publisher = client.publisher();
    let name = TopicName::new("fast", &Limits::DEFAULT).unwrap();
    let begun = now_us();
    let payload = vec![b'.'; SIZE];
    for _ in 0..messages {
        drop(publisher.send_ref(&name, &payload).await.unwrap());
    }
    publisher.flush().await.unwrap();
    readers.join_all().await;
    Duration::from_micros(now_us() - begun)
}
