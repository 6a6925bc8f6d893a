//! `airmail bench clients`: connections that do nothing, each with a subscription, and further
//! streams on them.

use std::process::ExitCode;

use airmail_client::{Client, Subscription};

use super::NodeArgs;

/// Arguments of `airmail bench clients`.
#[derive(clap::Args, Debug)]
pub struct ClientsArgs {
    /// Connections, each with one subscription
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub connections: u32,
    /// Further subscriptions on each connection, each a stream of its own
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub streams: u32,
    /// The node
    #[command(flatten)]
    pub node: NodeArgs,
}

/// Runs it.
///
/// # Errors
/// The node cannot be started or reached, or there are not enough files and sockets.
pub(in super::super) async fn clients(args: &ClientsArgs) -> anyhow::Result<ExitCode> {
    super::raise_open_files();
    let node = args.node.watch()?;
    let mut held: Vec<(Client, Vec<Subscription>)> = Vec::new();
    // The first one makes what is there once.
    held.push(connect(&node.url, 0).await?);
    let before = node.rss_bytes().await;
    for number in 1..=args.connections {
        held.push(connect(&node.url, number).await?);
    }
    let connections = node.growth(args.connections.into(), before).await;
    let before = node.rss_bytes().await;
    for ((client, subscriptions), number) in held.iter_mut().skip(1).zip(0u64..) {
        for stream in 0..args.streams {
            let topic = format!("bench/idle/{number}/{stream}");
            subscriptions.push(client.subscribe(&topic).open().await?);
        }
    }
    let count = u64::from(args.connections) * u64::from(args.streams);
    let streams = node.growth(count, before).await;
    let growths = [("connections", connections), ("streams", streams)];
    super::print(args.node.json, &growths)?;
    Ok(ExitCode::SUCCESS)
}

async fn connect(url: &str, number: u32) -> anyhow::Result<(Client, Vec<Subscription>)> {
    let client = Client::connect(url).await?;
    let topic = format!("bench/idle/{number}");
    let subscription = client.subscribe(&topic).open().await?;
    Ok((client, vec![subscription]))
}
