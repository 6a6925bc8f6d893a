//! A network of several machines on this one: each is a network namespace of the system, on a bridge of its own, whose
//! packets can be kept from it, from others, or both.
//!
//! It needs root, and a system that lets it: [`Network::new`] says whether it does. What it has made goes when it is
//! dropped.

use std::net::Ipv4Addr;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};

/// Machines of a network, at most: the last part of their addresses.
const MACHINES_MAX: u8 = 100;

/// Networks that this process has made.
static NETWORKS: AtomicU8 = AtomicU8::new(0);

/// A network of machines. See the module's documentation.
#[derive(Debug)]
pub struct Network {
    bridge: String,
    subnet: [u8; 3],
    machines: Vec<String>,
}

/// A machine, by its place in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine(u8);

/// Direction in which a machine's packets are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Both.
    Both,
    /// Those that it sends.
    Sent,
    /// Those that are sent to it.
    Received,
}

fn ip(arguments: &[&str]) -> bool {
    let mut command = Command::new("ip");
    command.args(arguments);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

impl Network {
    /// A network without machines; `None` where the system lets nobody make one.
    pub fn new() -> Option<Network> {
        let own = std::process::id();
        let [_, _, high, low] = own.to_be_bytes();
        // Tests of one process may have a network each.
        let number = NETWORKS.fetch_add(1, Ordering::Relaxed);
        let letter = char::from(b'a' + number % 26);
        let network = Network {
            bridge: format!("am{own}{letter}"),
            subnet: match number {
                0 => [10, high | 0x80, low],
                // Addresses that providers share (RFC 6598), so that nobody's own network has them.
                _ => [100, 64 | (high.wrapping_add(number) & 0x3f), low],
            },
            machines: Vec::new(),
        };
        let address = format!("{}/24", network.address(0));
        let made = ip(&["link", "add", &network.bridge, "type", "bridge"])
            && ip(&["address", "add", &address, "dev", &network.bridge])
            && ip(&["link", "set", &network.bridge, "up"]);
        let mut network = network;
        // Dropped, it takes back what it could make.
        (made && network.machine().is_some()).then_some(network)
    }

    fn address(&self, last: u8) -> Ipv4Addr {
        let [a, b, c] = self.subnet;
        Ipv4Addr::new(a, b, c, last)
    }

    /// The address of a machine.
    pub fn address_of(&self, machine: Machine) -> Ipv4Addr {
        self.address(machine.0)
    }

    /// Another machine; `None` where there is no room, or the system does not let it be.
    pub fn machine(&mut self) -> Option<Machine> {
        let last = u8::try_from(self.machines.len() + 1).ok()?;
        if last > MACHINES_MAX {
            return None;
        }
        let name = format!("{}-{last}", self.bridge);
        let (inner, outer) = (format!("{name}i"), name.clone());
        let address = format!("{}/24", self.address(last));
        let made = ip(&["netns", "add", &name]);
        self.machines.push(name.clone());
        let made =
            made && ip(&[
                "link", "add", &outer, "type", "veth", "peer", "name", &inner,
            ]) && ip(&["link", "set", &outer, "master", &self.bridge, "up"])
                && ip(&["link", "set", &inner, "netns", &name])
                && ip(&["-n", &name, "link", "set", "lo", "up"])
                && ip(&["-n", &name, "address", "add", &address, "dev", &inner])
                && ip(&["-n", &name, "link", "set", &inner, "up"]);
        made.then_some(Machine(last))
    }

    /// The same command, on a machine.
    pub fn on(&self, machine: Machine, command: &Command) -> Command {
        let mut there = Command::new("ip");
        there.args(["netns", "exec", self.name(machine)]);
        there.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => there.env(name, value),
                None => there.env_remove(name),
            };
        }
        there
    }

    fn name(&self, machine: Machine) -> &str {
        &self.machines[usize::from(machine.0) - 1]
    }

    /// Has packets of a machine be lost from now on, or no longer. Those on their way may still come.
    ///
    /// # Panics
    /// The system does not let it be.
    pub fn cut(&self, machine: Machine, cut: Cut, on: bool) {
        let own = self.name(machine);
        let done = match cut {
            Cut::Both => ip(&["link", "set", own, if on { "down" } else { "up" }]),
            Cut::Sent => {
                // Nearer than the way to the whole subnet.
                let [a, b, c] = self.subnet;
                let halves = [0, 128].map(|from| format!("{a}.{b}.{c}.{from}/25"));
                halves.iter().all(|half| {
                    let action = if on { "add" } else { "del" };
                    ip(&["-n", own, "route", action, "blackhole", half])
                })
            }
            Cut::Received => {
                let there = format!("{}/32", self.address_of(machine));
                let action = if on { "add" } else { "del" };
                let mut others = self.machines.iter().filter(|name| *name != own);
                ip(&["route", action, "blackhole", &there])
                    && others.all(|name| ip(&["-n", name, "route", action, "blackhole", &there]))
            }
        };
        assert!(done, "{cut:?} of {own}, {on}");
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in &self.machines {
            ip(&["link", "del", name]);
            ip(&["netns", "del", name]);
        }
        ip(&["link", "del", &self.bridge]);
    }
}
