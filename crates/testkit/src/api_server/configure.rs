//! The configuration of an API server: addresses, keys, flags.

use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};

use prewarm_bed::inside::{self, BRIDGE_ADDRESS};
use prewarm_bed::programs;

use super::ApiServer;
use super::identity::{certificate, write_kubeconfig};
use crate::pki::{Pair, Pki};
use crate::process::Process;

/// The address of the `kubernetes` service inside this range.
const SERVICE_RANGE: &str = "10.0.0.0/24";
pub(super) const SERVICE_ADDRESS: &str = "10.0.0.1";

/// How a server differs from the usual one.
#[derive(Default)]
pub struct Configure {
    controllers: Vec<String>,
    has_scheduler: bool,
    flags: Vec<String>,
}

/// The ports of one server. Addresses are free inside a bed, so counting is enough.
struct Ports {
    number: u16,
}

impl Configure {
    /// Runs these controllers of kube-controller-manager, by their full names, for example
    /// `garbage-collector-controller`.
    #[must_use]
    pub fn controllers(mut self, names: &[&str]) -> Self {
        self.controllers.extend(names.iter().map(ToString::to_string));
        self
    }

    /// Runs kube-scheduler, so that pods find their nodes by themselves.
    #[must_use]
    pub fn scheduler(mut self) -> Self {
        self.has_scheduler = true;
        self
    }

    /// Adds a flag of kube-apiserver.
    #[must_use]
    pub fn flag(mut self, flag: &str) -> Self {
        self.flags.push(flag.to_owned());
        self
    }

    /// Starts the programs and waits until the server answers.
    pub async fn start(self) -> anyhow::Result<ApiServer> {
        let ports = Ports::next();
        let directory = inside::directory(&format!("api-server-{}", ports.number))?;
        let pki = Pki::create(directory.join("pki"))?;
        let admin = pki.client("admin", "admin", Some("system:masters"))?;
        let address = format!("https://{BRIDGE_ADDRESS}:{}", ports.secure());
        let kubeconfig = directory.join("admin.kubeconfig");
        write_kubeconfig(&kubeconfig, &address, &pki, &certificate(&admin))?;

        // Both at the same time: kube-apiserver itself waits for etcd.
        let etcd = Process::start("etcd", etcd(&ports, &directory)?, &directory)?;
        let apiserver = Process::start("kube-apiserver", self.apiserver(&ports, &pki, &admin)?, &directory)?;
        let mut server = ApiServer {
            apiserver,
            etcd,
            controller_manager: None,
            scheduler: None,
            address,
            directory,
            pki,
            admin,
            kubeconfig,
        };
        server.ready().await?;
        if !self.controllers.is_empty() {
            let command = self.controller_manager(&ports, &server)?;
            server.controller_manager =
                Some(Process::start("kube-controller-manager", command, &server.directory)?);
        }
        if self.has_scheduler {
            let command = scheduler(&ports, &server)?;
            server.scheduler = Some(Process::start("kube-scheduler", command, &server.directory)?);
        }
        Ok(server)
    }

    fn apiserver(&self, ports: &Ports, pki: &Pki, admin: &Pair) -> anyhow::Result<Command> {
        let bridge = BRIDGE_ADDRESS.to_string();
        let hosts = ["127.0.0.1", &bridge, SERVICE_ADDRESS, "localhost", "kubernetes.default.svc"];
        let serving = pki.server("apiserver", &hosts)?;
        let (signing_key, verifying_key) = pki.signing_keys("service-account")?;
        let mut command = Command::new(programs::locate("kube-apiserver")?);
        command.arg(format!("--etcd-servers={}", ports.etcd_client()));
        command.arg("--bind-address=0.0.0.0").arg(format!("--secure-port={}", ports.secure()));
        command.arg(format!("--advertise-address={bridge}"));
        command
            .arg("--tls-cert-file")
            .arg(serving.certificate)
            .arg("--tls-private-key-file")
            .arg(serving.key);
        command.arg("--client-ca-file").arg(pki.authority_file());
        command.arg("--service-account-issuer=https://kubernetes.default.svc");
        command.arg("--service-account-signing-key-file").arg(signing_key);
        command.arg("--service-account-key-file").arg(verifying_key);
        command.arg(format!("--service-cluster-ip-range={SERVICE_RANGE}"));
        command.args(["--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction"]);
        // The logs of pods come from the kubelet, which authenticates its clients.
        command.arg("--kubelet-client-certificate").arg(&admin.certificate);
        command.arg("--kubelet-client-key").arg(&admin.key);
        command.args(["--kubelet-preferred-address-types=InternalIP", "--allow-privileged=true"]);
        command.args(&self.flags);
        Ok(command)
    }

    fn controller_manager(&self, ports: &Ports, server: &ApiServer) -> anyhow::Result<Command> {
        let mut command = companion("kube-controller-manager", ports.controller_manager(), server)?;
        command.arg("--use-service-account-credentials=true");
        let signing_key = server.directory.join("pki/service-account.key");
        command.arg("--service-account-private-key-file").arg(signing_key);
        command.arg("--root-ca-file").arg(server.pki.authority_file());
        command.arg(format!("--controllers={}", self.controllers.join(",")));
        Ok(command)
    }
}

impl Ports {
    fn next() -> Self {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        Self { number: NEXT.fetch_add(1, Ordering::Relaxed) }
    }

    fn secure(&self) -> u16 {
        6443 + self.number
    }

    fn controller_manager(&self) -> u16 {
        10257 + self.number
    }

    fn scheduler(&self) -> u16 {
        11257 + self.number
    }

    fn etcd_client(&self) -> String {
        format!("http://127.0.0.1:{}", 12379 + 2 * self.number)
    }

    fn etcd_peer(&self) -> String {
        format!("http://127.0.0.1:{}", 12380 + 2 * self.number)
    }
}

fn scheduler(ports: &Ports, server: &ApiServer) -> anyhow::Result<Command> {
    companion("kube-scheduler", ports.scheduler(), server)
}

/// The flags that all programs of the control plane that talk to the API server have in common.
fn companion(name: &str, port: u16, server: &ApiServer) -> anyhow::Result<Command> {
    let kubeconfig = server.kubeconfig_as(&format!("system:{name}"), None)?;
    let mut command = Command::new(programs::locate(name)?);
    for flag in ["--kubeconfig", "--authentication-kubeconfig", "--authorization-kubeconfig"] {
        command.arg(flag).arg(&kubeconfig);
    }
    command.arg("--cert-dir").arg(server.directory.join(name));
    command.args(["--bind-address=127.0.0.1", &format!("--secure-port={port}"), "--leader-elect=false"]);
    command.args(["--kube-api-qps=500", "--kube-api-burst=1000"]);
    Ok(command)
}

fn etcd(ports: &Ports, directory: &std::path::Path) -> anyhow::Result<Command> {
    let (client, peer) = (ports.etcd_client(), ports.etcd_peer());
    let mut command = Command::new(programs::locate("etcd")?);
    command.arg("--data-dir").arg(directory.join("etcd"));
    command.arg(format!("--listen-client-urls={client}")).arg(format!("--advertise-client-urls={client}"));
    command.arg(format!("--listen-peer-urls={peer}")).arg(format!("--initial-advertise-peer-urls={peer}"));
    command.arg(format!("--initial-cluster=default={peer}"));
    // With these flags a single member elects itself at once, and a test's data need not survive the machine.
    command.args([
        "--unsafe-no-fsync",
        "--election-timeout=100",
        "--heartbeat-interval=10",
        "--log-level=warn",
    ]);
    Ok(command)
}
