//! `airmail cluster`: shows the nodes of a cluster and what is wrong with them, drains one, and accepts what logs have lost.

use super::lines::printed;
use super::target::Target;
use crate::cli::{ClientOptions, UsageError};
use airmail_client::{Client, ClusterMember, MemberTree, NodeCluster};
use airmail_model::LogId;
use anyhow::Context as _;
use serde::Serialize;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;
use tokio::time::Instant;

/// Time between two looks of `--watch`.
const WATCH_EVERY: Duration = Duration::from_secs(1);
/// Time between two looks at a node that drains.
const DRAIN_EVERY: Duration = Duration::from_millis(200);

/// Arguments of `airmail cluster`.
#[derive(clap::Args, Debug)]
pub struct ClusterArgs {
    /// The action
    #[command(subcommand)]
    pub action: Action,
}

/// Actions on a cluster.
#[derive(clap::Subcommand, Debug)]
pub enum Action {
    /// Show the nodes as one of them sees them; exit code 1 if anything is not as it should be
    Status {
        /// Print it as JSON
        #[arg(long)]
        json: bool,
        /// Print it again each second, until interrupted
        #[arg(long)]
        watch: bool,
    },
    /// Have a node's clients go on at other nodes, and wait until they have; it can be stopped then
    Drain {
        /// The node's name
        node: String,
        /// Longest time to wait for its clients to go
        #[arg(long, value_name = "TIME", default_value = "10s", value_parser = super::target::timeout)]
        wait: Duration,
    },
    /// Accept that a log has lost its end, as `cluster status` says: it goes on where it was cut, and its subscribers are told
    /// what is lost
    AcceptLoss {
        /// The log, as `cluster status` names it
        log: LogId,
    },
}

/// Runs it.
///
/// # Errors
/// No node answers; there is no node of this name, or none where its clients could go.
pub async fn run(args: ClusterArgs, options: &ClientOptions) -> anyhow::Result<ExitCode> {
    let target = Target::resolve(options, None)?;
    let client = target.client().connect().await?;
    let code = match args.action {
        Action::Status { json, watch } => status(&client, json, watch).await?,
        Action::Drain { node, wait } => drain(&client, &target, &node, wait).await?,
        Action::AcceptLoss { log } => accept_loss(&client, log).await?,
    };
    client.close().await?;
    Ok(code)
}

async fn status(client: &Client, json: bool, watch: bool) -> anyhow::Result<ExitCode> {
    let admin = client.admin();
    loop {
        let cluster = admin.cluster().await?;
        printed(show(&mut io::stdout(), &cluster, json))?;
        if !watch {
            return Ok(if cluster.faults.is_empty() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            });
        }
        tokio::time::sleep(WATCH_EVERY).await;
    }
}

async fn drain(
    client: &Client,
    target: &Target,
    name: &str,
    wait: Duration,
) -> anyhow::Result<ExitCode> {
    let cluster = client.admin().cluster().await?;
    let member = cluster.members.iter().find(|member| member.name == name);
    let member = member.ok_or_else(|| {
        let names: Vec<&str> = cluster.members.iter().map(|member| &*member.name).collect();
        UsageError(format!("no node {name}: there are {}", names.join(", ")))
    })?;
    let there = Target {
        url: format!("airmail://{}", member.address),
        ..target.clone()
    };
    let drained = there.client().connect().await;
    let drained = drained.with_context(|| format!("node {name}, at {}", member.address))?;
    drained.admin().drain().await?;
    let begun = Instant::now();
    // The connection by which it is asked is one of them.
    let left = loop {
        let cluster = drained.admin().cluster().await?;
        let own = cluster.members.iter().find(|member| member.name == name);
        let left = own.map_or(0, |own| own.connections.saturating_sub(1));
        if left == 0 || begun.elapsed() >= wait {
            break left;
        }
        tokio::time::sleep(DRAIN_EVERY).await;
    };
    drained.close().await?;
    printed(say_drained(&mut io::stdout(), name, left))?;
    Ok(match left {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

async fn accept_loss(client: &Client, log: LogId) -> anyhow::Result<ExitCode> {
    let namespace = client.admin().accept_loss(log).await?;
    printed(say_accepted(&mut io::stdout(), log, &namespace.name))?;
    Ok(ExitCode::SUCCESS)
}

fn say_accepted(out: &mut impl Write, log: LogId, namespace: &str) -> anyhow::Result<()> {
    writeln!(
        out,
        "log {log} of namespace {namespace} goes on where it was cut"
    )?;
    Ok(())
}

fn say_drained(out: &mut impl Write, name: &str, left: u32) -> anyhow::Result<()> {
    match left {
        0 => writeln!(
            out,
            "{name} drains, and no client is left: it can be stopped"
        )?,
        _ => writeln!(
            out,
            "{name} drains, and {left} connections are left: of clients that hold no stream, or know no way to others"
        )?,
    }
    Ok(())
}

/// A cluster as JSON.
#[derive(Serialize)]
struct Shown<'a> {
    node: &'a str,
    members: Vec<ShownMember<'a>>,
    faults: &'a [String],
}

#[derive(Serialize)]
struct ShownMember<'a> {
    name: &'a str,
    node: String,
    boot: u64,
    state: String,
    since_ms: u128,
    roles: &'a str,
    zone: &'a str,
    host: &'a str,
    address: &'a str,
    cluster_address: &'a str,
    shards: u32,
    connections: u32,
    unlinked: &'a [String],
    version: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tree: Option<ShownTree<'a>>,
}

/// A node's place in a tree. Of the root `parent` is absent; of a node without a way to the root `depth` is.
#[derive(Serialize)]
struct ShownTree<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<u32>,
    children: u32,
    delay_us: u128,
    behind_ms: u128,
}

fn shown(member: &ClusterMember) -> ShownMember<'_> {
    ShownMember {
        name: &member.name,
        node: format!("{:016x}", member.node),
        boot: member.boot,
        state: member.standing.to_string(),
        since_ms: member.since.as_millis(),
        roles: &member.roles,
        zone: &member.zone,
        host: &member.host,
        address: &member.address,
        cluster_address: &member.cluster_address,
        shards: member.shards,
        connections: member.connections,
        unlinked: &member.unlinked,
        version: &member.version,
        tree: member.tree.as_ref().map(|tree| ShownTree {
            parent: Some(&*tree.parent).filter(|parent| !parent.is_empty()),
            depth: (!tree.is_child || tree.depth > 0).then_some(tree.depth),
            children: tree.children,
            delay_us: tree.delay.as_micros(),
            behind_ms: tree.behind.as_millis(),
        }),
    }
}

fn show(out: &mut impl Write, cluster: &NodeCluster, json: bool) -> anyhow::Result<()> {
    if json {
        let shown = Shown {
            node: &cluster.node,
            members: cluster.members.iter().map(shown).collect(),
            faults: &cluster.faults,
        };
        writeln!(out, "{}", serde_json::to_string(&shown)?)?;
        return Ok(());
    }
    let is_tree = cluster.members.iter().any(|member| member.tree.is_some());
    let rows = cluster.members.iter().map(|member| {
        let since = Duration::from_secs(member.since.as_secs());
        let mut row = vec![
            member.name.clone(),
            member.standing.to_string(),
            humantime::format_duration(since).to_string(),
            member.roles.clone(),
            member.connections.to_string(),
            member.address.clone(),
            member.cluster_address.clone(),
            member.zone.clone(),
        ];
        if is_tree {
            row.extend(member.tree.as_ref().map_or_else(Default::default, in_tree));
        }
        row
    });
    let mut head = vec![
        "NODE", "STATE", "FOR", "ROLES", "CLIENTS", "ADDRESS", "NODES AT", "ZONE",
    ];
    if is_tree {
        head.extend(["PARENT", "DEPTH", "CHILDREN", "DELAY", "BEHIND"]);
    }
    let head: Vec<String> = head.into_iter().map(str::to_owned).collect();
    let columns = head.len();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..columns)
        .map(|column| width(column).unwrap_or(0))
        .collect();
    for row in &rows {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        writeln!(out, "{}", line.trim_end())?;
    }
    match cluster.faults.as_slice() {
        [] => writeln!(out, "all is well, as {} sees it", cluster.node)?,
        faults => {
            writeln!(out, "not as it should be, as {} sees it:", cluster.node)?;
            for fault in faults {
                writeln!(out, "  {fault}")?;
            }
        }
    }
    Ok(())
}

/// A node's place in a tree, in columns.
fn in_tree(tree: &MemberTree) -> [String; 5] {
    let (depth, parent) = match (tree.is_child, tree.depth) {
        (true, 0) => ("none".to_owned(), "none".to_owned()),
        (_, depth) => (depth.to_string(), tree.parent.clone()),
    };
    let round = |time: Duration| humantime::format_duration(time).to_string();
    let delay = Duration::from_micros(u64::try_from(tree.delay.as_micros()).unwrap_or(u64::MAX));
    [
        parent,
        depth,
        tree.children.to_string(),
        round(delay),
        round(tree.behind),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_client::MemberStanding;

    fn cluster(faults: &[&str]) -> NodeCluster {
        let member = |name: &str, roles: &str, standing| ClusterMember {
            name: name.into(),
            node: 10,
            boot: 7,
            standing,
            since: Duration::from_millis(61_900),
            roles: roles.into(),
            zone: "west".into(),
            host: "here".into(),
            address: "10.0.0.1:7400".into(),
            cluster_address: "10.0.0.1:7402".into(),
            shards: 1,
            connections: 3,
            unlinked: Vec::new(),
            version: "0.1.0".into(),
            tree: None,
        };
        NodeCluster {
            node: "g1".into(),
            members: vec![
                member("g1", "pilot,copilot", MemberStanding::Live),
                member("t1", "all", MemberStanding::Down),
            ],
            faults: faults.iter().map(|fault| (*fault).to_owned()).collect(),
        }
    }

    fn text(cluster: &NodeCluster, json: bool) -> String {
        let mut out = Vec::new();
        show(&mut out, cluster, json).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn nodes_are_shown_in_columns_with_what_is_wrong_below() {
        assert_eq!(
            text(&cluster(&["node t1 has been down for 61 s"]), false),
            "NODE  STATE  FOR    ROLES          CLIENTS  ADDRESS        NODES AT       ZONE\n\
             g1    live   1m 1s  pilot,copilot  3        10.0.0.1:7400  10.0.0.1:7402  west\n\
             t1    down   1m 1s  all            3        10.0.0.1:7400  10.0.0.1:7402  west\n\
             not as it should be, as g1 sees it:\n  node t1 has been down for 61 s\n"
        );
        assert!(text(&cluster(&[]), false).ends_with("\nall is well, as g1 sees it\n"));
    }

    #[test]
    fn places_in_a_tree_have_columns_where_there_is_one() {
        let mut cluster = cluster(&[]);
        let place = |depth, parent: &str| MemberTree {
            is_child: !parent.is_empty(),
            parent: parent.into(),
            depth,
            children: 2,
            delay: Duration::from_micros(40_100),
            behind: Duration::ZERO,
        };
        cluster.members[0].tree = Some(place(1, "t1"));
        cluster.members[1].tree = Some(MemberTree {
            is_child: true,
            ..place(0, "")
        });
        let shown = text(&cluster, false);
        let lines: Vec<&str> = shown.lines().collect();
        assert!(
            lines[0].ends_with("ZONE  PARENT  DEPTH  CHILDREN  DELAY       BEHIND"),
            "{shown}"
        );
        assert!(
            lines[1].ends_with("west  t1      1      2         40ms 100us  0s"),
            "{shown}"
        );
        assert!(
            lines[2].ends_with("west  none    none   2         40ms 100us  0s"),
            "{shown}"
        );
        let json = text(&cluster, true);
        assert!(
            json.contains(r#""tree":{"parent":"t1","depth":1,"children":2,"#),
            "{json}"
        );
        assert!(json.contains(r#""tree":{"children":2,"#), "{json}");
    }

    #[test]
    fn as_json_it_is_one_line() {
        let line = text(&cluster(&["x"]), true);
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["members"][1]["state"], "down");
        assert_eq!(value["members"][0]["node"], "000000000000000a");
        assert_eq!(value["faults"][0], "x");
        assert_eq!(line.matches('\n').count(), 1);
    }
}
