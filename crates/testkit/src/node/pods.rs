//! What a node needs for real pods besides its runtime: a network, and an image for sandboxes.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use prewarm_bed::{inside, programs};
use serde_json::json;

/// The image of the container that holds the namespaces of a pod.
/// [`workload::push_sandbox`](crate::workload::push_sandbox) stores it.
pub const SANDBOX: &str = "prewarm.example/sandbox:1";

/// The second number of the addresses of pods. Each node has a range of its own.
const FIRST_RANGE: u8 = 128;

/// The directory of the CNI plugins.
pub fn plugins() -> anyhow::Result<PathBuf> {
    let bridge = programs::locate("bridge")?;
    Ok(bridge.parent().context("a program lies in a directory")?.to_owned())
}

/// Configures the network of pods: a bridge on the node, and a range of addresses of the node's own.
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
    // This setting belongs to the bed's network namespace, not to the machine.
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
