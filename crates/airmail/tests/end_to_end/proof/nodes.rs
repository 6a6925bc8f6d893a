//! Nodes of a cluster under proof: each on a machine of its own, where the system lets such be made, else all on
//! loopback, where nobody can be cut off.
//!
//! They are a tower and gateways; or a tree, in which the tower is the root, and the others have parents in place of a
//! tower; or nodes whose logs are on Kafka, towers among them, with the brokers.

use super::brokers::{BROKERS, Brokers};
use airmail_testkit::lasting::lasting_address;
use airmail_testkit::network::{Cut, Machine, Network};
use airmail_testkit::node::{self, Node, airmail, wait_until};
use airmail_testkit::scale;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::time::Instant;

/// Time within which a fault is shown by the others, where it lasts for so long; and in a tree, which has more nodes,
/// each of which asks one of the others at a time.
const SHOWN: Duration = Duration::from_secs(5);
const SHOWN_IN_TREE: Duration = Duration::from_secs(10);

/// A node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// One beside the tower.
    Gateway(usize),
    Tower,
    /// A broker of Kafka.
    Broker(usize),
}

/// A node beside the tower, as it is to be started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plot {
    /// A role and a number; `gateway` are both roles without the logs.
    pub(crate) name: &'static str,
    /// Name of its machine, as clients are told it; empty: the system's.
    pub(crate) host: &'static str,
    /// In a tree, its parent: the one of that number among these, or the root.
    pub(crate) parent: Option<Who>,
}

impl Plot {
    /// A gateway.
    pub(crate) const fn gateway(name: &'static str, host: &'static str) -> Plot {
        Plot {
            name,
            host,
            parent: None,
        }
    }
}

/// A node's place, whether it runs or not.
struct Place {
    name: String,
    /// Name of its machine, as clients are told it; empty: the system's.
    host: &'static str,
    /// Where clients connect.
    address: String,
    /// Where other nodes connect.
    cluster: String,
    parent: Option<Who>,
    machine: Option<Machine>,
    node: Option<Node>,
}

impl Place {
    fn role(&self) -> &str {
        self.name.split('-').next().unwrap_or(&self.name)
    }

    /// Whether it has logs, and serves no clients.
    fn is_tower(&self) -> bool {
        self.role() == "tower"
    }
}

/// See the module's documentation.
pub(crate) struct Nodes {
    gateways: Vec<Place>,
    /// The node that has the logs, if they are on no Kafka.
    tower: Option<Place>,
    /// A node that comes and goes.
    joiner: Place,
    data: PathBuf,
    secret: PathBuf,
    settings: &'static [(&'static str, &'static str)],
    kafka: Option<Brokers>,
    /// Dropped after the nodes.
    network: Option<Arc<Network>>,
}

impl Nodes {
    /// Starts a tower, and these nodes in order.
    pub(crate) fn start(
        directory: &Path,
        plots: &[Plot],
        settings: &'static [(&'static str, &'static str)],
    ) -> Nodes {
        let tower = Some(Plot::gateway("tower", ""));
        let nodes = Nodes::placed(directory, tower, (plots, 0), settings);
        nodes.map_or_else(|| panic!("no nodes"), Nodes::all_started)
    }

    /// Starts brokers, and these nodes in order; none where brokers were left out.
    pub(crate) fn start_on_kafka(
        directory: &Path,
        plots: &[Plot],
        settings: &'static [(&'static str, &'static str)],
    ) -> Option<Nodes> {
        let nodes = Nodes::placed(directory, None, (plots, BROKERS), settings)?;
        Some(nodes.all_started())
    }

    fn placed(
        directory: &Path,
        tower: Option<Plot>,
        (plots, brokers): (&[Plot], usize),
        settings: &'static [(&'static str, &'static str)],
    ) -> Option<Nodes> {
        let secret = directory.join("secret");
        fs::write(&secret, "s".repeat(40)).unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
        let mut network = Network::new();
        if network.is_none() {
            scale::say("proof of clusters: no machines can be made here, so no node is cut off\n");
        }
        let mut place = |plot: Plot| {
            let machine = network.as_mut().map(|network| network.machine().unwrap());
            let at = |port: u16| match (&network, machine) {
                (Some(network), Some(machine)) => {
                    format!("{}:{port}", network.address_of(machine))
                }
                _ => lasting_address(),
            };
            Place {
                name: plot.name.to_owned(),
                host: plot.host,
                address: at(7400),
                cluster: at(7402),
                parent: plot.parent,
                machine,
                node: None,
            }
        };
        let tower = tower.map(&mut place);
        let gateways: Vec<_> = plots.iter().map(|plot| place(*plot)).collect();
        let joiner = place(Plot::gateway("joiner", ""));
        let machines = (0..brokers).map(|_| Some(network.as_mut()?.machine().unwrap()));
        let machines: Option<Vec<Machine>> = machines.collect();
        let network = network.map(Arc::new);
        let kafka = match brokers {
            0 => None,
            _ => Some(Brokers::start(directory, network.as_ref().zip(machines))?),
        };
        Some(Nodes {
            gateways,
            tower,
            joiner,
            data: directory.join("data"),
            secret,
            settings,
            kafka,
            network,
        })
    }

    fn all_started(mut self) -> Nodes {
        if self.tower.is_some() {
            self.start_again(Who::Tower);
        }
        (0..self.gateways.len()).for_each(|gateway| self.start_again(Who::Gateway(gateway)));
        self.wait_until_well();
        self
    }

    /// Addresses at which nodes join: those of all towers.
    fn towers(&self) -> String {
        let places = self.gateways.iter().filter(|place| place.is_tower());
        let places = places.chain(&self.tower);
        let towers: Vec<&str> = places.map(|place| &*place.cluster).collect();
        towers.join(",")
    }

    /// Whether the nodes beside the tower have parents.
    fn is_tree(&self) -> bool {
        self.gateways.iter().any(|place| place.parent.is_some())
    }

    /// Number of brokers of Kafka.
    pub(crate) fn brokers(&self) -> usize {
        self.kafka.as_ref().map_or(0, |_| BROKERS)
    }

    pub(crate) fn has_network(&self) -> bool {
        self.network.is_some()
    }

    /// Addresses of all gateways, for clients.
    pub(crate) fn addresses(&self) -> String {
        let gateways = self.gateways.iter().filter(|place| !place.is_tower());
        let addresses: Vec<&str> = gateways.map(|place| &*place.address).collect();
        addresses.join(",")
    }

    /// The address for clients of a node.
    pub(crate) fn address(&self, who: Who) -> &str {
        &self.place(who).address
    }

    /// Kafka's topics, if there are brokers.
    pub(crate) fn topics(&self) -> Vec<String> {
        self.kafka.as_ref().map_or_else(Vec::new, Brokers::topics)
    }

    /// Leaves topics of Kafka to one broker: fewer replicas than a message needs, so nothing is acknowledged.
    pub(crate) fn leave_to_broker(&self, topics: &[String], broker: usize) {
        let kafka = self.kafka.as_ref().expect("brokers");
        kafka.leave_to(topics, broker);
    }

    /// A metric of a node that runs, 0 if it has none of this name.
    pub(crate) fn metric(&self, who: Who, name: &str) -> f64 {
        let node = self.place(who).node.as_ref().unwrap();
        node::metric(&node.http, name).unwrap_or_default()
    }

    /// The process of a node that runs.
    pub(crate) fn pid(&self, who: Who) -> u32 {
        self.place(who).node.as_ref().unwrap().pid()
    }

    pub(crate) fn name(&self, who: Who) -> String {
        match who {
            Who::Broker(broker) => format!("broker {broker}"),
            node => self.place(node).name.clone(),
        }
    }

    /// Whether a node has logs, and serves no clients.
    pub(crate) fn is_tower(&self, who: Who) -> bool {
        !matches!(who, Who::Broker(_)) && self.place(who).is_tower()
    }

    fn place(&self, who: Who) -> &Place {
        match who {
            Who::Gateway(gateway) => &self.gateways[gateway],
            Who::Tower => self.tower.as_ref().expect("a tower"),
            Who::Broker(_) => panic!("{who:?} is no node"),
        }
    }

    fn place_mut(&mut self, who: Who) -> &mut Place {
        match who {
            Who::Gateway(gateway) => &mut self.gateways[gateway],
            Who::Tower => self.tower.as_mut().expect("a tower"),
            Who::Broker(_) => panic!("{who:?} is no node"),
        }
    }

    /// Starts a node that does not run.
    pub(crate) fn start_again(&mut self, who: Who) {
        if let Who::Broker(broker) = who {
            return self.brokers_mut().revive(broker);
        }
        let place = self.place(who);
        let mut command = self.command(place);
        match who {
            Who::Tower => {
                // The root of a tree serves clients, too.
                let roles = if self.is_tree() { "all" } else { "tower" };
                command.args(["--roles", roles, "--cluster", &place.cluster]);
                command.arg("--data").arg(&self.data);
            }
            Who::Gateway(_) if place.parent.is_some() => {
                let parent = &self.place(place.parent.unwrap_or(Who::Tower)).cluster;
                command.args(["--cluster", &place.cluster]);
                command.args(["--log", &format!("tree://{parent}")]);
            }
            _ => {
                let roles = match place.role() {
                    "gateway" => "pilot,copilot",
                    role => role,
                };
                command.args(["--roles", roles, "--join", &self.towers()]);
                if let Some(kafka) = self.kafka.as_ref().filter(|_| place.is_tower()) {
                    command.args(["--cluster", &place.cluster, "--log", &kafka.url()]);
                    let data = self.data.join(&place.name);
                    let held = self.held_reading(&place.name);
                    command.arg("--hold-reading").arg(held);
                    command.arg("--data").arg(data);
                }
            }
        }
        // Nodes of other machines give way, here where all are on one. Where nothing is judged the machine may be busy with
        // other tests, and whoever gives way to those gets no time at all.
        if !place.host.is_empty() && scale::prove("JUDGE").is_some() {
            command = node::after_shell("chrt --idle --pid 0 $$", &command);
        }
        let node = Node::spawn(self.on_machine(place, command));
        self.place_mut(who).node = Some(node);
    }

    fn command(&self, place: &Place) -> Command {
        let http = match place.address.rsplit_once(':') {
            Some((host, _)) => format!("{host}:0"),
            None => place.address.clone(),
        };
        let mut command = airmail();
        command.args(["serve", "--name", &place.name, "--listen", &place.address]);
        command.args(["--http", &http]);
        command.env("AIRMAIL_CLUSTER_HOST", place.host);
        command
            .arg("--secret-file")
            .arg(&self.secret)
            .envs(self.settings.iter().copied());
        if place.machine.is_some() {
            command.arg("--allow-anyone");
        }
        command
    }

    fn on_machine(&self, place: &Place, command: Command) -> Command {
        match (&self.network, place.machine) {
            (Some(network), Some(machine)) => network.on(machine, &command),
            _ => command,
        }
    }

    fn brokers_mut(&mut self) -> &mut Brokers {
        self.kafka.as_mut().expect("brokers")
    }

    pub(crate) fn kill(&mut self, who: Who) {
        match who {
            Who::Broker(broker) => self.brokers_mut().kill(broker),
            node => self.place_mut(node).node.take().unwrap().kill(),
        }
    }

    pub(crate) fn stop(&mut self, who: Who) {
        let status = self.place_mut(who).node.take().unwrap().stop();
        assert!(status.success(), "{who:?}: {status}");
    }

    pub(crate) fn set_still(&self, who: Who, still: bool) {
        match (who, &self.kafka) {
            (Who::Broker(broker), Some(kafka)) => kafka.set_still(broker, still),
            _ => self.place(who).node.as_ref().unwrap().set_still(still),
        }
    }

    /// The file during whose presence a tower reads nothing from Kafka.
    fn held_reading(&self, name: &str) -> PathBuf {
        self.data.with_file_name(format!("{name}-is-held"))
    }

    /// Has a tower read nothing from Kafka, or go on.
    pub(crate) fn hold_reading(&self, who: Who, on: bool) {
        let file = self.held_reading(&self.place(who).name);
        if on {
            fs::write(file, "").unwrap();
        } else {
            fs::remove_file(file).unwrap();
        }
    }

    /// Begins to measure anew how long librdkafka alone waits, if there are brokers.
    pub(crate) fn mark(&self) {
        self.kafka.iter().for_each(Brokers::mark);
    }

    /// Longest time that librdkafka alone was without an ack since the mark, if there are brokers.
    pub(crate) fn wait_of_librdkafka(&self) -> Option<Duration> {
        self.kafka.as_ref().map(Brokers::longest_wait)
    }

    pub(crate) fn cut(&self, who: Who, cut: Cut, on: bool) {
        let machine = match (who, &self.kafka) {
            (Who::Broker(broker), Some(kafka)) => kafka.machine(broker),
            _ => self.place(who).machine,
        };
        if let (Some(network), Some(machine)) = (&self.network, machine) {
            network.cut(machine, cut, on);
        }
    }

    /// Drains a gateway, asked of another. It refuses while it doubts that there is a live node for its clients.
    pub(crate) fn drain(&self, who: Who) {
        let name = &self.place(who).name;
        let other = self.other(name);
        wait_until(&format!("{name} to drain"), || {
            other.run(&["cluster", "drain", name]).code == Some(0)
        });
    }

    /// Has another gateway come, and leave in order.
    pub(crate) fn join_and_leave(&mut self, stay: Duration) {
        let mut command = self.command(&self.joiner);
        command.args(["--roles", "pilot,copilot", "--join", &self.towers()]);
        let joiner = Node::spawn(self.on_machine(&self.joiner, command));
        thread::sleep(stay);
        assert!(joiner.stop().success());
    }

    /// A gateway that runs, other than the one of this name.
    fn other(&self, name: &str) -> &Node {
        let is_other = |place: &&Place| place.name != name && !place.is_tower();
        let others = self.gateways.iter().filter(is_other);
        let mut others = others.filter_map(|place| place.node.as_ref());
        others.next().unwrap()
    }

    /// Keeps a fault for `hold`. Another node has to show it meanwhile, if there is time.
    pub(crate) fn wait_for_fault(&self, name: &str, hold: Duration) {
        let within = if self.is_tree() { SHOWN_IN_TREE } else { SHOWN };
        let begun = Instant::now();
        let mut shown = false;
        let mut told = Vec::new();
        while begun.elapsed() < hold {
            if !shown && hold >= within {
                let status = status(self.other(name));
                shown = matches!(&status, Some((faults, 1)) if faults.contains(name));
                told.push((begun.elapsed(), status));
            }
            thread::sleep(Duration::from_millis(100));
        }
        let slow = scale::prove("JUDGE").is_none();
        assert!(
            shown || hold < within || slow,
            "a fault of {name} is not shown: {told:?}"
        );
    }

    /// Waits until every node says that all is well, and every broker is there.
    pub(crate) fn wait_until_well(&self) {
        if let Some(kafka) = &self.kafka {
            kafka.wait_until_whole();
        }
        for place in self.gateways.iter().chain(&self.tower) {
            let Some(node) = &place.node else {
                continue;
            };
            wait_until(
                &format!("all to be well, as {} sees it", place.name),
                || status(node).is_some_and(|(_, code)| code == 0),
            );
        }
    }
}

/// Faults that a node shows, in words, and the exit code with which it does.
fn status(node: &Node) -> Option<(String, i32)> {
    let done = node::run(
        &mut node.airmail(&["cluster", "status", "--json", "--timeout", "2s"]),
        b"",
    );
    let status: Value = serde_json::from_str(&done.stdout).ok()?;
    Some((status["faults"].to_string(), done.code?))
}
