//! Pods with one container, for tests that only need something to run.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use k8s_openapi::api::core::v1 as core;
use kube::api::{DeleteParams, LogParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::node::Node;
use crate::wait;

/// A pod to create. It is not restarted, and pulls its image only if the node does not have it.
#[derive(Debug, Clone)]
pub struct Pod {
    name: String,
    /// The spec, for whatever else a test needs.
    pub spec: Value,
}

/// A created pod.
pub struct Made {
    pub api: Api<core::Pod>,
    name: String,
    since: Instant,
}

impl Pod {
    /// A pod that waits until it is ended, unless its arguments say otherwise.
    pub fn new(name: &str, image: &str) -> Self {
        let container = json!({"name": "workload", "image": image, "imagePullPolicy": "IfNotPresent"});
        let spec = json!({
            "containers": [container],
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
        });
        Self { name: name.to_owned(), spec }
    }

    /// Binds it to a node, as a DaemonSet's pods are bound in the end. Without this, the scheduler chooses.
    #[must_use]
    pub fn on(mut self, node: &Node) -> Self {
        self.spec["nodeName"] = node.name().into();
        self
    }

    /// Sets the arguments of the program; see `tools/workload/main.go`.
    #[must_use]
    pub fn arguments(mut self, arguments: &[&str]) -> Self {
        self.spec["containers"][0]["args"] = arguments.into();
        self
    }

    /// Creates the pod.
    pub async fn make(&self, client: Client, namespace: &str) -> anyhow::Result<Made> {
        let api = Api::<core::Pod>::namespaced(client, namespace);
        let pod = json!({"metadata": {"name": self.name}, "spec": self.spec});
        let pod = serde_json::from_value(pod).context("describing a pod")?;
        let since = Instant::now();
        let made = api.create(&PostParams::default(), &pod).await;
        made.with_context(|| format!("making the pod {}", self.name))?;
        Ok(Made { api, name: self.name.clone(), since })
    }
}

impl Made {
    /// Waits until the pod is ready, and returns how long that took since its creation.
    pub async fn ready(&self) -> anyhow::Result<Duration> {
        let is_ready = |status: &core::PodStatus| {
            let mut conditions = status.conditions.iter().flatten();
            conditions.any(|one| one.type_ == "Ready" && one.status == "True").then_some(())
        };
        self.until("to be ready", is_ready).await?;
        Ok(self.since.elapsed())
    }

    /// Waits until the container has ended, and returns its exit code.
    pub async fn ended(&self) -> anyhow::Result<i32> {
        let code = |status: &core::PodStatus| {
            let container = status.container_statuses.iter().flatten().next()?;
            Some(container.state.as_ref()?.terminated.as_ref()?.exit_code)
        };
        self.until("to end", code).await
    }

    /// Waits until the pod as a whole has succeeded, possibly after restarts.
    pub async fn succeeded(&self) -> anyhow::Result<()> {
        let is_over = |status: &core::PodStatus| match status.phase.as_deref() {
            Some("Succeeded") => Some(true),
            Some("Failed") => Some(false),
            _ => None,
        };
        ensure!(self.until("to succeed", is_over).await?, "the pod {} failed", self.name);
        Ok(())
    }

    /// The output of the container.
    pub async fn log(&self) -> anyhow::Result<String> {
        let log = self.api.logs(&self.name, &LogParams::default()).await;
        log.with_context(|| format!("reading the log of the pod {}", self.name))
    }

    /// Deletes the pod and waits until its node has removed it.
    pub async fn delete(self) -> anyhow::Result<()> {
        self.api.delete(&self.name, &DeleteParams::default()).await.context("deleting a pod")?;
        wait::until(&format!("the end of the pod {}", self.name), async || {
            Ok(self.api.get_opt(&self.name).await?.is_none().then_some(()))
        })
        .await
    }

    /// Waits until `look` finds something in the status. If it never does, the error has the last status.
    async fn until<T>(
        &self,
        what: &str,
        answer: impl Fn(&core::PodStatus) -> Option<T>,
    ) -> anyhow::Result<T> {
        let mut last = core::PodStatus::default();
        let what = format!("the pod {} {what}", self.name);
        let waited = wait::until(&what, async || {
            let Some(pod) = self.api.get_opt(&self.name).await? else { bail!("{} is gone", self.name) };
            last = pod.status.unwrap_or_default();
            Ok(answer(&last))
        })
        .await;
        waited.with_context(|| format!("its last status was {}", json!(last)))
    }
}
