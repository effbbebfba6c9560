//! A node's connection to the network: a namespace, a cable to the bridge, an address.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, ensure};
use prewarm_bed::commands::find;
use prewarm_bed::inside::{BRIDGE, BRIDGE_ADDRESS, PREFIX_LENGTH, configure_network, configure_network_in};

/// How many nodes share the third number of an address.
const NODES_PER_BLOCK: u16 = 250;

/// How long a packet may wait on a slow cable, and how much may pass in one burst.
const QUEUE: [&str; 4] = ["latency", "400ms", "burst", "64kb"];

/// The node's own end of its cable.
const INSIDE: &str = "eth0";

pub struct Link {
    number: u16,
    is_slow: AtomicBool,
    sends_slowly: AtomicBool,
}

/// What has passed over the cable.
#[derive(Debug, PartialEq, Eq)]
pub struct Counters {
    pub to_node: u64,
    pub from_node: u64,
}

impl Link {
    pub fn create(number: u16) -> anyhow::Result<Self> {
        let link = Self { number, is_slow: AtomicBool::new(false), sends_slowly: AtomicBool::new(false) };
        let (namespace, cable, address) = (link.namespace(), link.cable(), link.address());
        configure_network(&format!(
            "netns add {namespace}\n\
             link add {cable} type veth peer name eth0 netns {namespace}\n\
             link set {cable} master {BRIDGE} up\n"
        ))?;
        // The other end has a batch of its own, because one batch works in one namespace.
        configure_network_in(
            &namespace,
            &format!(
                "link set lo up\n\
                 addr add {address}/{PREFIX_LENGTH} dev eth0\n\
                 link set eth0 up\n\
                 route add default via {BRIDGE_ADDRESS}\n"
            ),
        )?;
        Ok(link)
    }

    /// Where the namespace can be entered.
    pub fn namespace_file(&self) -> PathBuf {
        Path::new("/run/netns").join(self.namespace())
    }

    /// A command that starts a program in the node's network namespace. The program replaces `nsenter`, so signals
    /// reach it. `ip netns exec` does not work: it hides the cgroup tree.
    pub fn inside(&self, program: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.namespace_file().display())).arg(program);
        command
    }

    /// Reads the counters at the bridge's end of the cable.
    pub fn counters(&self) -> anyhow::Result<Counters> {
        let table = fs::read_to_string("/proc/net/dev").context("reading the network counters")?;
        parse_counters(&table, &self.cable()).with_context(|| format!("no counters for {}", self.cable()))
    }

    pub fn cut(&self) -> anyhow::Result<()> {
        configure_network(&format!("link set {} down\n", self.cable()))
    }

    /// Limits what is sent to the node. Calling it again changes the limit.
    pub fn slow(&self, bits_per_second: u64) -> anyhow::Result<()> {
        limit(traffic_control()?, &self.cable(), bits_per_second)?;
        self.is_slow.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Limits what the node sends, at its own end of the cable.
    pub fn slow_sending(&self, bits_per_second: u64) -> anyhow::Result<()> {
        limit(self.inside(&traffic_control_program()?), INSIDE, bits_per_second)?;
        self.sends_slowly.store(true, Ordering::Relaxed);
        Ok(())
    }

    pub fn restore(&self) -> anyhow::Result<()> {
        if self.is_slow.swap(false, Ordering::Relaxed) {
            run(traffic_control()?.args(["qdisc", "del", "dev", &self.cable(), "root"]))?;
        }
        if self.sends_slowly.swap(false, Ordering::Relaxed) {
            let mut command = self.inside(&traffic_control_program()?);
            run(command.args(["qdisc", "del", "dev", INSIDE, "root"]))?;
        }
        configure_network(&format!("link set {} up\n", self.cable()))
    }

    fn namespace(&self) -> String {
        format!("node-{}", self.number)
    }

    fn cable(&self) -> String {
        format!("veth-{}", self.number)
    }

    pub fn address(&self) -> Ipv4Addr {
        address(self.number)
    }
}

fn traffic_control_program() -> anyhow::Result<PathBuf> {
    find("tc").context("tc is missing: run `cargo xtask tools`")
}

fn traffic_control() -> anyhow::Result<Command> {
    Ok(Command::new(traffic_control_program()?))
}

fn limit(mut command: Command, interface: &str, bits_per_second: u64) -> anyhow::Result<()> {
    let rate = format!("{bits_per_second}bit");
    run(command.args(["qdisc", "replace", "dev", interface, "root", "tbf", "rate", &rate]).args(QUEUE))
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let output = command.output().context("starting tc")?;
    ensure!(output.status.success(), "tc: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}

/// The address of a node, outside of the bridge's own block.
fn address(number: u16) -> Ipv4Addr {
    let [first, second, ..] = BRIDGE_ADDRESS.octets();
    let block = u8::try_from(number / NODES_PER_BLOCK + 1).expect("fewer nodes than a bed has addresses");
    let place = u8::try_from(number % NODES_PER_BLOCK + 1).expect("a block is smaller than a byte");
    Ipv4Addr::new(first, second, block, place)
}

/// Finds one interface in `/proc/net/dev`: the name, then eight numbers received and eight sent, bytes first.
fn parse_counters(table: &str, interface: &str) -> Option<Counters> {
    let numbers = table.lines().find_map(|line| line.trim().strip_prefix(interface)?.strip_prefix(':'))?;
    let mut numbers = numbers.split_whitespace().map(str::parse);
    let from_node = numbers.next()?.ok()?;
    let to_node = numbers.nth(7)?.ok()?;
    Some(Counters { to_node, from_node })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_node_receives_what_the_bridge_sends() {
        let table = "Inter-|   Receive                  |  Transmit\n \
                     face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets\n\
                     veth-1: 11 1 0 0 0 0 0 0 22 2 0 0 0 0 0 0\n\
                     veth-12: 33 1 0 0 0 0 0 0 44 2 0 0 0 0 0 0\n";
        assert_eq!(parse_counters(table, "veth-1"), Some(Counters { to_node: 22, from_node: 11 }));
        assert_eq!(parse_counters(table, "veth-12"), Some(Counters { to_node: 44, from_node: 33 }));
        assert_eq!(parse_counters(table, "veth-2"), None);
    }

    #[test]
    fn a_thousand_nodes_have_addresses_of_their_own() {
        let addresses: std::collections::BTreeSet<_> = (1..=1000).map(address).collect();
        assert_eq!(addresses.len(), 1000);
        assert!(!addresses.contains(&BRIDGE_ADDRESS));
        assert_eq!(address(1), Ipv4Addr::new(10, 77, 1, 2));
    }
}
