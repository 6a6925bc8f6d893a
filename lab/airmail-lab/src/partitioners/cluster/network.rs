//! A network namespace for each broker, on a bridge, with a rate in either direction; by `ip` and `tc`.
//!
//! All of it goes when this is dropped. It needs root.

use anyhow::Context as _;
use std::process::{Command, Stdio};

/// Burst of a line, as a part of a second; and at least, for one that is slow.
const BURST_PARTS: u64 = 200;
const BURST_BYTES_MIN: u64 = 128 << 10;
/// Longest wait of bytes before they are dropped, as a switch would.
const QUEUE: &str = "100ms";

/// A broker's host.
#[derive(Clone, Debug)]
pub(super) struct Host {
    id: u32,
    pub(super) namespace: String,
    pub(super) address: String,
    /// The ends of its line: here, and within.
    line: [String; 2],
}

/// The network.
#[derive(Debug)]
pub(super) struct Network {
    bridge: String,
    address: String,
    hosts: Vec<Host>,
    bytes_per_s: u64,
}

impl Network {
    /// Makes hosts 1 to `count`, each with a line of this rate.
    ///
    /// # Errors
    /// The system does not let this process do it.
    pub(super) fn make(count: u32, bytes_per_s: u64) -> anyhow::Result<Network> {
        let own = std::process::id();
        // Names of interfaces have at most 15 letters; addresses need only differ from what runs here.
        let (name, net) = (format!("{:x}", own & 0xff_ffff), own % 256);
        let host = |id: u32| Host {
            id,
            namespace: format!("airmail-{name}-{id}"),
            address: format!("10.231.{net}.{}", 10 + id),
            line: [format!("am{name}h{id}"), format!("am{name}n{id}")],
        };
        let network = Network {
            bridge: format!("am{name}b"),
            address: format!("10.231.{net}.1"),
            hosts: (1..=count).map(host).collect(),
            bytes_per_s,
        };
        let made = network.build();
        made.context("cannot make a network for each broker: that needs root; or --limit cpu")?;
        Ok(network)
    }

    fn build(&self) -> anyhow::Result<()> {
        let Network {
            bridge, address, ..
        } = self;
        run("ip", &format!("link add {bridge} type bridge"))?;
        run("ip", &format!("addr add {address}/24 dev {bridge}"))?;
        run("ip", &format!("link set {bridge} up"))?;
        for host in &self.hosts {
            let Host {
                namespace,
                address,
                line: [here, within],
                ..
            } = host;
            run("ip", &format!("netns add {namespace}"))?;
            run(
                "ip",
                &format!("link add {here} type veth peer name {within} netns {namespace}"),
            )?;
            run("ip", &format!("link set {here} master {bridge} up"))?;
            run("ip", &format!("-n {namespace} link set lo up"))?;
            run(
                "ip",
                &format!("-n {namespace} addr add {address}/24 dev {within}"),
            )?;
            run("ip", &format!("-n {namespace} link set {within} up"))?;
            self.set_rate(host.id, self.bytes_per_s)?;
        }
        Ok(())
    }

    /// Gives a host's line another rate, in both directions.
    ///
    /// # Errors
    /// The system does not let this process do it.
    pub(super) fn set_rate(&self, id: u32, bytes_per_s: u64) -> anyhow::Result<()> {
        let host = self.host(id).context("no such host")?;
        let burst = (bytes_per_s / BURST_PARTS).max(BURST_BYTES_MIN);
        let bits = bytes_per_s * 8;
        let [here, within] = &host.line;
        let shape = |place: &str, device: &str| {
            let rule = format!("root tbf rate {bits}bit burst {burst}b latency {QUEUE}");
            run("tc", &format!("{place}qdisc replace dev {device} {rule}"))
        };
        shape("", here)?;
        shape(&format!("-n {} ", host.namespace), within)
    }

    /// A host.
    pub(super) fn host(&self, id: u32) -> Option<&Host> {
        self.hosts.iter().find(|host| host.id == id)
    }

    /// Where this machine is in it.
    pub(super) fn bridge_address(&self) -> &str {
        &self.address
    }

    /// Limits on brokers, for the report.
    pub(super) fn means(&self) -> String {
        format!(
            "{:.1} MB/s to and as much from each broker: held by a network namespace for each, with a \
             token bucket on either end of its line",
            self.bytes_per_s as f64 / 1e6
        )
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // A line goes with its namespace; what was not made cannot be removed.
        for host in &self.hosts {
            let _ = run("ip", &format!("netns del {}", host.namespace));
            let _ = run("ip", &format!("link del {}", host.line[0]));
        }
        let _ = run("ip", &format!("link del {}", self.bridge));
    }
}

fn run(program: &str, arguments: &str) -> anyhow::Result<()> {
    let output = Command::new(program)
        .args(arguments.split(' '))
        .stdin(Stdio::null())
        .output()
        .with_context(|| program.to_owned())?;
    let said = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(
        output.status.success(),
        "{program} {arguments}: {}",
        said.trim()
    );
    Ok(())
}
