//! The nodes of a case, and the clients that ask them.

use super::case::Case;
use super::database::Connection;
use super::statements;
use airmail_bench::family::Stop;
use airmail_bench::family::own_node::{OwnNode, OwnNodeArgs};
use airmail_client::Client as Sdk;
use airmail_client::mailbox::Mailbox;
use airmail_experiments::mailbox::client::{Client, World};
use airmail_experiments::mailbox::record::Sink;
use anyhow::Context as _;
use std::sync::Arc;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

/// Messages do not concern the log, which is not to take time from them.
const LOG: &str = "--log=memory:";
/// Where a node keeps mailboxes that no database is asked for.
const NO_DATABASE: &str = "sqlite::memory:";
/// Threads of clients, as many as pgbench is given.
const THREADS: usize = 2;

/// Clients that share a thread, whose runtime has their connections.
#[derive(Debug)]
struct Crowd {
    clients: Vec<(u32, Mailbox)>,
    runtime: Runtime,
}

/// Nodes, and connections to them.
#[derive(Debug)]
pub(super) struct Service {
    world: Arc<World>,
    /// Dropped before the nodes.
    crowds: Vec<Crowd>,
    pub(super) nodes: Vec<OwnNode>,
}

impl Service {
    /// Starts the nodes of a case on a database, makes queues and accounts, and sends the backlog.
    pub(super) fn start(case: &Case, database: Option<&str>) -> anyhow::Result<Service> {
        let environment = [
            (
                "AIRMAIL_MAILBOX_URL",
                database.unwrap_or(NO_DATABASE).to_owned(),
            ),
            ("AIRMAIL_MAILBOX_THREADS", case.workers.to_string()),
            (
                "AIRMAIL_MAILBOX_CONNECTIONS",
                case.connections.max(1).to_string(),
            ),
        ];
        let args = OwnNodeArgs::default();
        let nodes = (0..case.nodes.max(1))
            .map(|_| OwnNode::start(crate::cli::NODE, &args, Some(LOG.to_owned()), &environment))
            .collect::<Result<Vec<OwnNode>, _>>()
            .context("cannot start a node to measure")?;
        let crowds = (0..THREADS)
            .map(|thread| Crowd::connect(case, thread, &nodes))
            .collect::<anyhow::Result<Vec<Crowd>>>()?;
        let world = if case.needs_database() {
            crowds[0].make_world(case)?
        } else {
            World::default()
        };
        if let Some(url) = database
            && case.backlog > 0
        {
            fill(&world, url, case.backlog)?;
        }
        Ok(Service {
            world: Arc::new(world),
            crowds,
            nodes,
        })
    }

    /// Lets the clients ask until this moment.
    pub(super) fn run(
        &self,
        case: &Case,
        until_us: u64,
        sink: &Sink,
        stop: &Stop,
    ) -> anyhow::Result<()> {
        std::thread::scope(|scope| {
            let run = |crowd| move || self.run_crowd(crowd, case, until_us, sink, stop);
            let threads: Vec<_> = self
                .crowds
                .iter()
                .map(|crowd| scope.spawn(run(crowd)))
                .collect();
            let ended = threads.into_iter().map(|thread| thread.join());
            let ended =
                ended.map(|ended| ended.unwrap_or_else(|_| anyhow::bail!("clients panicked")));
            ended.collect()
        })
    }

    fn run_crowd(
        &self,
        crowd: &Crowd,
        case: &Case,
        until_us: u64,
        sink: &Sink,
        stop: &Stop,
    ) -> anyhow::Result<()> {
        let mut clients = JoinSet::new();
        for (number, mailbox) in &crowd.clients {
            let client = Client {
                number: *number,
                mailbox: mailbox.clone(),
                world: Arc::clone(&self.world),
                mix: case.mix,
                sizes: case.sizes.clone(),
                seed: u64::from(*number),
                sink: sink.clone(),
            };
            clients.spawn_on(client.run(until_us), crowd.runtime.handle());
        }
        let all = async {
            while let Some(ended) = clients.join_next().await {
                ended.context("a client")?.context("a request failed")?;
            }
            Ok(())
        };
        crowd.runtime.block_on(async {
            tokio::select! {
                ended = all => ended,
                () = stop.wait() => anyhow::bail!("stopped"),
            }
        })
    }
}

impl Crowd {
    /// Connects the clients of one thread, each by itself, to the nodes in turn.
    fn connect(case: &Case, thread: usize, nodes: &[OwnNode]) -> anyhow::Result<Crowd> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let clients = (0..case.clients)
            .zip(nodes.iter().cycle())
            .skip(thread)
            .step_by(THREADS);
        let connect = async {
            let mut connected = Vec::new();
            for (number, node) in clients {
                let client = Sdk::builder().url(node.url()).connect().await?;
                connected.push((number, client.mailbox()));
            }
            anyhow::Ok(connected)
        };
        Ok(Crowd {
            clients: runtime.block_on(connect)?,
            runtime,
        })
    }

    /// Makes queues and accounts.
    fn make_world(&self, case: &Case) -> anyhow::Result<World> {
        let (_, mailbox) = self.clients.first().context("there are no clients")?;
        Ok(self.runtime.block_on(World::make(mailbox, case.clients))?)
    }
}

/// Fills the queues with messages for the account that nobody reads as.
fn fill(world: &World, url: &str, messages: u64) -> anyhow::Result<()> {
    let nobody = world.nobody.context("there are no accounts")?.0;
    let queues: Vec<i32> = world.queues.iter().map(|queue| queue.0).collect();
    let sql = statements::backlog(&queues, nobody, nobody, messages);
    Connection::open(url)?.row(&sql).map(drop)
}
