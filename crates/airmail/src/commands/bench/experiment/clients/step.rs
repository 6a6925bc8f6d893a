//! One number of clients: a node that is held, clients that stand, rounds of messages.

use std::fmt;
use std::time::Duration;

use airmail_bench::clock::now_us;
use airmail_bench::process::Usage;
use airmail_bench::stamp::Stamp;
use airmail_client::Client;
use airmail_model::{Limits as MessageLimits, TopicName};
use tokio::time::sleep;

use super::super::Stop;
use super::super::narration::say;
use super::ClientsArgs;
use super::crowd::{Crowd, Got, Round, Task};
use super::hold::{Hold, Limits, Throttled};
use super::round_book::MESSAGES;
use crate::commands::bench::own_node::OwnNode;

/// Clients of one process at most.
const CROWD: u32 = 10_000;
/// What the topic begins with that everybody subscribes to.
const TOPIC: &str = "bench/round";
/// Connections that the node takes beside the clients'.
const OTHER_CONNECTIONS: u32 = 50;

/// What is to be done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Clients, each with a subscription on a stream of its own.
    pub(super) clients: u32,
    /// Connections that these share; as many, or fewer.
    pub(super) connections: u32,
    /// Rounds of 20 messages.
    pub(super) rounds: u32,
    /// From one round's beginning to the next one's.
    pub(super) interval_ms: u64,
    /// What takes longer has timed out.
    pub(super) timeout_ms: u32,
    /// Payload of a message, in bytes.
    pub(super) size: usize,
    /// What the node is held to.
    pub(super) limits: Option<Limits>,
}

/// What was found.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// What was to be done; with fewer rounds if it was stopped.
    pub(super) plan: Plan,
    /// Processes that the clients were spread over.
    pub(super) processes: u32,
    /// What clients got.
    pub(super) got: Got,
    /// Processor time of the node in the rounds, in microseconds.
    pub(super) node_cpu_us: u64,
    /// The same as a share of one core.
    pub(super) node_cpu_share: f64,
    /// While clients connected and subscribed, when it never rests: shows whether it is held.
    pub(super) connecting_cpu_share: f64,
    /// How often it was stopped in them for having had its share.
    pub(super) throttled: Option<Throttled>,
    /// Memory of the node at the end.
    pub(super) rss_bytes: u64,
    /// How it was held.
    pub(super) means: Vec<String>,
}

impl Step {
    /// Does it.
    pub(super) fn run(plan: &Plan, args: &ClientsArgs, stop: &Stop) -> anyhow::Result<Step> {
        let node = Node::new(plan, args)?;
        let run = std::process::id()
            .wrapping_mul(64)
            .wrapping_add(plan.clients);
        let topic = format!("{TOPIC}/{run:08x}");
        let (idle, connecting_us) = (node.usage(), now_us());
        let mut crowds = start(plan, &node.url, &topic, run)?;
        for crowd in &mut crowds {
            crowd.stand()?;
        }
        let (clients, connections) = (plan.clients, plan.connections);
        say(&format!(
            "{clients} clients stand, on {connections} connections"
        ));
        let (before, before_throttled, start_us) = (node.usage(), node.throttled(), now_us());
        let connecting_cpu_share = share(before.since(&idle), connecting_us);
        // One thread: a round is handed over before any of it is sent.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let rounds = runtime.block_on(publish(plan, (&node.url, &topic), run, stop))?;
        runtime.shutdown_background();
        // Before clients go, which is work too.
        let used = node.usage().since(&before);
        let node_cpu_share = share(used, start_us);
        let throttled = node.throttled().zip(before_throttled);
        let mut got = Got::default();
        for crowd in &mut crowds {
            crowd.stop(rounds)?;
        }
        let processes = crowds.len() as u32;
        for crowd in crowds {
            got.add(crowd.end()?);
        }
        Ok(Step {
            plan: Plan { rounds, ..*plan },
            processes,
            got,
            node_cpu_us: used.cpu_us,
            node_cpu_share,
            connecting_cpu_share,
            throttled: throttled.map(|(after, before)| after.since(before)),
            rss_bytes: used.rss_bytes,
            means: node.means(),
        })
    }

    /// Whether every client got every message, once and in order, however late.
    pub(super) fn is_sound(&self) -> bool {
        let incomplete = self.got.rounds.iter().any(|round| round.incomplete > 0);
        self.got.wrong == 0 && self.got.error.is_none() && !incomplete
    }

    /// Processor time of the node for each round, in milliseconds.
    pub(super) fn work_ms(&self) -> f64 {
        self.node_cpu_us as f64 / 1e3 / f64::from(self.plan.rounds.max(1))
    }

    /// Deliveries of messages that each client had in each round, on average.
    pub(super) fn deliveries(&self) -> f64 {
        let rounds = u64::from(self.plan.clients) * u64::from(self.plan.rounds);
        self.got.deliveries as f64 / rounds.max(1) as f64
    }

    /// All rounds as one.
    pub(super) fn all(&self) -> Round {
        let mut all = Got {
            rounds: vec![Round::default()],
            ..Got::default()
        };
        for round in &self.got.rounds {
            all.add(Got {
                rounds: vec![round.clone()],
                ..Got::default()
            });
        }
        all.rounds.pop().unwrap_or_default()
    }
}

impl Round {
    /// The mean of those that completed it, in milliseconds.
    pub(super) fn mean_ms(&self) -> f64 {
        self.sum_us as f64 / self.took.count().max(1) as f64 / 1e3
    }

    /// 99 of 100 completed it within this, in milliseconds.
    pub(super) fn p99_ms(&self) -> f64 {
        self.took.percentiles().p99 as f64 / 1e3
    }

    /// The part of the clients for which it took too long, or for ever.
    pub(super) fn timeout_rate(&self) -> f64 {
        let clients = self.took.count() + self.incomplete;
        (self.late + self.incomplete) as f64 / clients.max(1) as f64
    }
}

/// For whoever waits for the end.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (all, Step { plan, got, .. }) = (self.all(), self);
        let (clients, rounds) = (plan.clients, plan.rounds);
        let (mean, p99) = (all.mean_ms(), all.p99_ms());
        let (rate, work) = (all.timeout_rate() * 100.0, self.work_ms());
        write!(
            f,
            "{clients} clients, {rounds} rounds: mean {mean:.1} ms, p99 {p99:.1} ms, timed out \
             {rate:.3} %, the node works {work:.0} ms a round"
        )?;
        if !self.is_sound() {
            write!(
                f,
                "; {} incomplete, {} wrong {:?}",
                all.incomplete, got.wrong, got.error
            )?;
        }
        Ok(())
    }
}

/// Processor time since then, as a share of one core.
fn share(used: Usage, since_us: u64) -> f64 {
    used.cpu_us as f64 / now_us().saturating_sub(since_us).max(1) as f64
}

/// The node of a step: one of its own, or another that is there.
struct Node {
    url: String,
    /// Its process, if it is on this machine.
    pid: Option<u32>,
    own: Option<OwnNode>,
    hold: Option<Hold>,
}

impl Drop for Node {
    fn drop(&mut self) {
        // What holds it can go only when nobody is in it.
        self.own = None;
        self.hold = None;
    }
}

impl Node {
    fn new(plan: &Plan, args: &ClientsArgs) -> anyhow::Result<Node> {
        if let Some(url) = &args.target {
            return Ok(Node {
                url: url.clone(),
                pid: args.pid,
                own: None,
                hold: None,
            });
        }
        let most = plan.connections + OTHER_CONNECTIONS;
        let environment = [("AIRMAIL_LISTEN_CONNECTIONS", most.to_string())];
        let log = Some("--log=memory:".to_owned());
        let own = OwnNode::start(&args.node, log, &environment)?;
        Ok(Node {
            url: own.url(),
            pid: Some(own.pid()),
            hold: plan.limits.map(|limits| Hold::on(own.pid(), limits)),
            own: Some(own),
        })
    }

    /// Zeros of a process that is not known.
    fn usage(&self) -> Usage {
        self.pid.map(Usage::of).unwrap_or_default()
    }

    fn means(&self) -> Vec<String> {
        let hold = self.hold.as_ref();
        hold.map(|hold| hold.means.clone()).unwrap_or_default()
    }

    fn throttled(&self) -> Option<Throttled> {
        self.hold.as_ref().and_then(Hold::throttled)
    }
}

/// The clients' processes, which share clients and connections evenly.
fn start(plan: &Plan, url: &str, topic: &str, run: u32) -> anyhow::Result<Vec<Crowd>> {
    let processes = plan.clients.div_ceil(CROWD);
    let share = |all: u32, place: u32| all / processes + u32::from(place < all % processes);
    let task = |place| Task {
        target: url.to_owned(),
        topic: topic.to_owned(),
        run,
        connections: share(plan.connections, place),
        clients: share(plan.clients, place),
        timeout_us: plan.timeout_ms * 1000,
    };
    let starting = (0..processes).map(|place| Crowd::start(&task(place)));
    starting.collect()
}

/// Publishes rounds; how many, which is fewer if it is stopped.
async fn publish(
    plan: &Plan,
    (url, topic): (&str, &str),
    run: u32,
    stop: &Stop,
) -> anyhow::Result<u32> {
    let client = Client::connect(url).await?;
    let publisher = client.publisher();
    // The publisher stands too, when the first round begins.
    publisher.publish(&format!("{topic}/before"), "").await?;
    let topic = TopicName::new(topic, &MessageLimits::DEFAULT)?;
    let mut done = 0;
    for round in 0..plan.rounds {
        if stop.is_set() {
            break;
        }
        let begun_us = now_us();
        let mut receipts = Vec::new();
        for number in 0..MESSAGES {
            let stamp = Stamp {
                run,
                publisher: 0,
                number: u64::from(round) * MESSAGES + number,
                // The round's, which is what counts.
                sent_us: begun_us,
            };
            let payload = stamp.payload(plan.size);
            receipts.push(publisher.send_ref(&topic, &payload).await?);
        }
        publisher.flush().await?;
        for receipt in receipts {
            receipt.await?;
        }
        done += 1;
        let next_us = begun_us + plan.interval_ms * 1000;
        sleep(Duration::from_micros(next_us.saturating_sub(now_us()))).await;
    }
    client.close().await?;
    Ok(done)
}
