//! A real API server: etcd and kube-apiserver, and kube-controller-manager and kube-scheduler for tests that need them.
//!
//! Most tests share one per test binary and take a namespace each. A test that touches cluster-wide objects, or
//! disturbs the server, starts its own; that takes about three seconds.

mod configure;
mod identity;
mod service;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use http::Request;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use prewarm_bed::programs;
use tokio::sync::OnceCell;

pub use configure::Configure;
pub use service::Service;

use crate::pki::{Pair, Pki};
use crate::process::Process;
use crate::wait;

const PROBE_LIMIT: Duration = Duration::from_secs(1);

/// A running API server. Dropping it ends its programs.
pub struct ApiServer {
    pub apiserver: Process,
    pub etcd: Process,
    /// Runs only if the test asked for controllers.
    pub controller_manager: Option<Process>,
    /// Runs only if the test asked for it.
    pub scheduler: Option<Process>,
    address: String,
    directory: PathBuf,
    pki: Pki,
    admin: Pair,
    kubeconfig: PathBuf,
}

impl ApiServer {
    /// Starts a server of its own for a test.
    pub async fn start() -> anyhow::Result<Self> {
        Self::configure().start().await
    }

    /// Configures a server that differs from the usual one, for example by its controllers.
    pub fn configure() -> Configure {
        Configure::default()
    }

    /// The server that all tests of this binary share. The first caller starts it.
    pub async fn shared() -> anyhow::Result<&'static Self> {
        static SHARED: OnceCell<ApiServer> = OnceCell::const_new();
        SHARED.get_or_try_init(Self::start).await
    }

    /// A fresh namespace.
    pub async fn namespace(&self) -> anyhow::Result<String> {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        let name = format!("test-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let namespace = Namespace {
            metadata: ObjectMeta { name: Some(name.clone()), ..Default::default() },
            ..Default::default()
        };
        let namespaces = Api::<Namespace>::all(self.client()?);
        namespaces.create(&PostParams::default(), &namespace).await.context("creating a namespace")?;
        Ok(name)
    }

    /// A fresh namespace in which pods can be created: a controller gives it the service account that they need.
    pub async fn namespace_for_pods(&self) -> anyhow::Result<String> {
        let controllers = self.controller_manager.as_ref().context("no controllers run")?;
        let name = self.namespace().await?;
        let accounts = Api::<ServiceAccount>::namespaced(self.client()?, &name);
        wait::until("the service account of pods", async || {
            controllers.check()?;
            Ok(accounts.get_opt("default").await?.map(drop))
        })
        .await?;
        Ok(name)
    }

    /// Waits until the server answers, after a start, a restart or a thaw.
    pub async fn ready(&self) -> anyhow::Result<()> {
        let client = self.client()?;
        let ready = wait::until("the API server", async || {
            self.etcd.check()?;
            self.apiserver.check()?;
            Ok(is_ready(&client).await.then_some(()))
        });
        ready.await.with_context(|| format!("kube-apiserver logged\n{}", self.apiserver.log_tail()))
    }

    /// Stops kube-apiserver and starts it again on the same data.
    pub async fn restart(&self) -> anyhow::Result<()> {
        self.apiserver.restart()?;
        self.ready().await
    }

    /// The server's URL, which nodes can reach too.
    pub fn url(&self) -> &str {
        &self.address
    }

    /// Runs kubectl as the administrator and returns its output.
    pub async fn kubectl<A: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
    ) -> anyhow::Result<String> {
        let output = self.kubectl_output(arguments).await?;
        ensure!(output.status.success(), "kubectl: {}", String::from_utf8_lossy(&output.stderr).trim());
        String::from_utf8(output.stdout).context("kubectl printed no text")
    }

    /// Runs kubectl as the administrator, for tests of its exit code or its errors.
    pub async fn kubectl_output<A: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
    ) -> anyhow::Result<Output> {
        let mut command = Command::new(programs::locate("kubectl")?);
        command.arg("--kubeconfig").arg(&self.kubeconfig).args(arguments);
        command.env("HOME", &self.directory);
        tokio::process::Command::from(command).output().await.context("starting kubectl")
    }
}

async fn is_ready(client: &Client) -> bool {
    let request = Request::get("/readyz").body(Vec::new()).expect("a fixed path is a valid request");
    // Without a limit, a frozen server would block the caller for as long as it is frozen.
    let answer = tokio::time::timeout(PROBE_LIMIT, client.request_text(request)).await;
    matches!(answer, Ok(Ok(_)))
}
