//! What is the registry itself, by whatever name: the hosts that `MirrorOnly` never asks (ofen W19).

use super::address::{Address, plain_host, split_port};

/// The registry whose name in references is not the name of a host that serves it.
const HUB: &str = "docker.io";
/// Everything beneath these belongs to it, also what it redirects to.
const HUB_DOMAINS: [&str; 2] = ["docker.io", "docker.com"];
/// The ports that an address without one means, by its scheme.
const USUAL_PORTS: [u16; 2] = [80, 443];

/// The hosts of one registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    hosts: Vec<(String, Option<u16>)>,
    is_hub: bool,
}

impl Upstream {
    /// The registry that references name so.
    pub(super) fn of(registry: &str) -> Self {
        let (host, port) = split_port(registry);
        let host = plain_host(host);
        let is_hub = HUB_DOMAINS.iter().any(|domain| is_within(&host, domain)) || host == HUB;
        Self { hosts: vec![(host, port.filter(|port| !USUAL_PORTS.contains(port)))], is_hub }
    }

    /// Where a file says that the registry is.
    pub(super) fn add(&mut self, server: Option<&Address>) {
        let Some(server) = server else { return };
        self.is_hub |= HUB_DOMAINS.iter().any(|domain| is_within(&server.host, domain));
        let port = (!USUAL_PORTS.contains(&server.port)).then_some(server.port);
        self.hosts.push((server.host.clone(), port));
    }

    /// Whether this is the registry itself.
    pub fn is(&self, host: &str, port: u16) -> bool {
        let host = plain_host(host);
        let is_named = self
            .hosts
            .iter()
            .any(|(name, at)| *name == host && at.map_or(USUAL_PORTS.contains(&port), |at| at == port));
        is_named || (self.is_hub && HUB_DOMAINS.iter().any(|domain| is_within(&host, domain)))
    }
}

fn is_within(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn docker_hub_is_known_by_all_of_its_names() {
        let hub = Upstream::of("docker.io");
        for host in
            ["docker.io", "registry-1.docker.io", "Index.Docker.IO.", "production.cloudflare.docker.com"]
        {
            assert!(hub.is(host, 443), "{host}");
        }
        for host in ["mirror.example", "notdocker.io", "docker.io.example", "mirror.gcr.io"] {
            assert!(!hub.is(host, 443), "{host}");
        }
    }

    #[test]
    fn a_registry_is_its_host_and_port() {
        let plain = Upstream::of("reg.example");
        assert!(plain.is("reg.example", 443) && plain.is("REG.example", 80));
        assert!(!plain.is("reg.example", 5000) && !plain.is("a.reg.example", 443));
        let numbered = Upstream::of("10.0.0.1:5000");
        assert!(numbered.is("10.0.0.1", 5000) && !numbered.is("10.0.0.1", 443));
        let sixth = Upstream::of("[2001:db8::1]:5000");
        assert!(sixth.is("2001:db8::1", 5000) && sixth.is("[2001:DB8:0::1]", 5000));
    }

    #[test]
    fn what_the_file_calls_its_server_is_the_registry_too() {
        let mut upstream = Upstream::of("reg.example");
        upstream.add(Address::parse("https://registry-1.docker.io", false).as_ref());
        assert!(upstream.is("registry-1.docker.io", 443) && upstream.is("auth.docker.io", 443));
    }
}
