//! What a node needs for real pods besides its runtime: a network for them, cgroups, and an image for their sandboxes.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use prewarm_bed::enter::BED_VARIABLE;
use prewarm_bed::{cgroups, inside, programs};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

/// What holds the namespaces of a pod. [`workload::push_sandbox`](crate::workload::push_sandbox) stores it.
pub const SANDBOX: &str = "prewarm.example/sandbox:1";

/// How long the processes of a node may take to be gone after they were killed.
const PATIENCE: Duration = Duration::from_secs(5);

/// The first two numbers of the addresses of pods; each node has a third of its own.
const FIRST_RANGE: u8 = 128;

/// Joins the cgroup in `$0` and becomes the program in the arguments.
const JOIN: &str = r#"echo $$ > "$0/cgroup.procs" && exec "$@""#;

/// The cgroups of one node. All that its runtime starts is in them, so that nothing outlives the node.
pub struct Cgroup {
    /// From the root of each hierarchy.
    name: String,
    /// In the hierarchy by which processes are found.
    directory: PathBuf,
}

impl Cgroup {
    /// Makes the directories in every hierarchy, as kubelet wants them.
    pub fn create(node: &str) -> anyhow::Result<Self> {
        let bed = std::env::var(BED_VARIABLE).context("a node lives in a bed")?;
        let name = format!("{bed}/{node}");
        let hierarchies = cgroups::hierarchies();
        for hierarchy in &hierarchies {
            fs::create_dir_all(hierarchy.join(&name)).context("creating a cgroup")?;
        }
        // Any hierarchy can tell who is in a cgroup, but some take no process before they are set up further.
        let telling = hierarchies.iter().find(|path| path.ends_with("pids")).or(hierarchies.first());
        let directory = telling.context("this machine has no cgroups")?.join(&name);
        fs::create_dir_all(directory.join("runtime")).context("creating the runtime's cgroup")?;
        Ok(Self { name, directory })
    }

    /// As kubelet's configuration names it.
    pub fn path(&self) -> String {
        format!("/{}", self.name)
    }

    /// A shell that joins the runtime's cgroup and becomes the program that follows in the arguments.
    pub fn join(&self, mut shell: Command) -> Command {
        shell.args(["-c", JOIN]).arg(self.directory.join("runtime"));
        shell
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // A process may start another while it is killed, so we look again until there is none. What is left after
        // all ends with the bed.
        let deadline = Instant::now() + PATIENCE;
        loop {
            let processes = processes(&self.directory);
            if processes.is_empty() || Instant::now() > deadline {
                return;
            }
            for process in processes {
                let _already_gone = kill_process(process, Signal::KILL);
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The processes in a cgroup and those below it.
fn processes(directory: &Path) -> Vec<Pid> {
    let list = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
    let mut found: Vec<Pid> =
        list.lines().filter_map(|line| line.parse().ok()).filter_map(Pid::from_raw).collect();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            found.extend(processes(&entry.path()));
        }
    }
    found
}

/// The directory of the programs that give pods their network.
pub fn plugins() -> anyhow::Result<PathBuf> {
    let bridge = programs::locate("bridge")?;
    Ok(bridge.parent().context("a program lies in a directory")?.to_owned())
}

/// Tells the runtime how pods get a network: a bridge on the node, and a range of addresses of the node's own.
pub fn write_network(directory: &Path, number: u16) -> anyhow::Result<()> {
    let network = json!({
        "cniVersion": "1.0.0",
        "name": "bed",
        "plugins": [{
            "type": "bridge", "bridge": "cni0", "isGateway": true, "isDefaultGateway": true, "hairpinMode": true,
            "ipam": {
                "type": "host-local", "dataDir": directory.join("addresses"),
                "ranges": [[{"subnet": format!("{}/24", range(number))}]],
            },
        }],
    });
    let directory = directory.join("cni");
    fs::create_dir_all(&directory).context("creating the directory of networks")?;
    fs::write(directory.join("10-bed.conflist"), network.to_string()).context("writing the pods' network")
}

/// Lets the bed and its other nodes reach the pods of a node.
pub fn route(number: u16, node: Ipv4Addr) -> anyhow::Result<()> {
    // It belongs to the bed's network namespace, not to the machine.
    fs::write("/proc/sys/net/ipv4/ip_forward", "1").context("letting the bed forward packets")?;
    inside::configure_network(&format!("route add {}/24 via {node}\n", range(number)))
}

fn range(number: u16) -> Ipv4Addr {
    let [block, place] = number.to_be_bytes();
    Ipv4Addr::new(10, FIRST_RANGE + block, place, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_has_addresses_of_its_own_for_its_pods() {
        assert_eq!(range(1), Ipv4Addr::new(10, 128, 1, 0));
        assert_eq!(range(1000), Ipv4Addr::new(10, 131, 232, 0));
    }
}
