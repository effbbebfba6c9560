//! One ImagePrefetch: what is written to it, and what is read of it and its NodeImageSets.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use prewarm_api::names::condition::READY;
use prewarm_api::names::{OWNER_NAME_LABEL, OWNER_NAMESPACE_LABEL};
use prewarm_api::ofen::{
    ContainerImageStatus, ImagePrefetch, ImagePrefetchStatus, NodeImageSet, RegistryPolicy,
};
use prewarm_testkit::wait;
use serde_json::{Value, json};

use crate::fleet::Fleet;

/// How long is waited for a status that does not move: the longest pause between attempts, and one that stalls, twice.
const PATIENCE: Duration = Duration::from_mins(2);
const INTERVAL: Duration = Duration::from_millis(50);

pub struct Prefetch<'a> {
    fleet: &'a Fleet,
    namespace: String,
    name: String,
}

/// What its NodeImageSets say of their only image, by node.
pub type Seen = BTreeMap<String, (RegistryPolicy, ContainerImageStatus)>;

impl<'a> Prefetch<'a> {
    /// Makes it.
    pub async fn make(fleet: &'a Fleet, namespace: &str, name: &str, spec: &Value) -> anyhow::Result<Self> {
        let prefetch = Self { fleet, namespace: namespace.to_owned(), name: name.to_owned() };
        let object = json!({"metadata": {"name": name}, "spec": spec});
        prefetch.api()?.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
        Ok(prefetch)
    }

    fn api(&self) -> anyhow::Result<Api<ImagePrefetch>> {
        Ok(Api::namespaced(self.fleet.cluster.server.client()?, &self.namespace))
    }

    /// Changes its spec.
    pub async fn change(&self, fields: &Value) -> anyhow::Result<()> {
        let patch = Patch::Merge(json!({"spec": fields}));
        self.api()?.patch(&self.name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Waits until all is on so many nodes, in its present generation.
    pub async fn ready(&self, nodes: usize) -> anyhow::Result<()> {
        let generation = self.api()?.get(&self.name).await?.metadata.generation;
        let nodes = i32::try_from(nodes)?;
        self.until(&format!("it to be on {nodes} nodes"), |status, _| {
            let mut conditions = status.conditions.iter().flatten();
            let is_ready = conditions.any(|condition| condition.type_ == READY && condition.status == "True");
            is_ready && status.image_pulled_nodes == nodes && status.observed_generation == generation
        })
        .await
        .map(drop)
    }

    /// Waits until it and its sets say what is wanted, as long as they say something else from time to time.
    pub async fn until(
        &self,
        what: &str,
        is_wanted: impl Fn(&ImagePrefetchStatus, &Seen) -> bool,
    ) -> anyhow::Result<Seen> {
        let mut last = None;
        let mut moved = Instant::now();
        loop {
            let (status, seen) = (self.status().await?, self.seen().await?);
            if is_wanted(&status, &seen) {
                return Ok(seen);
            }
            let said = Some((status, seen));
            if said != last {
                (last, moved) = (said, Instant::now());
            }
            if moved.elapsed() > PATIENCE {
                bail!("still waiting for {what}: {last:?}\n{}", self.fleet.controller.log_tail());
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }

    pub async fn status(&self) -> anyhow::Result<ImagePrefetchStatus> {
        Ok(self.api()?.get(&self.name).await?.status.unwrap_or_default())
    }

    async fn sets(&self) -> anyhow::Result<Vec<NodeImageSet>> {
        let sets = Api::<NodeImageSet>::all(self.fleet.cluster.server.client()?);
        let own = format!("{OWNER_NAMESPACE_LABEL}={},{OWNER_NAME_LABEL}={}", self.namespace, self.name);
        Ok(sets.list(&ListParams::default().labels(&own)).await?.items)
    }

    /// Whom each node asks, and how far it is.
    pub async fn seen(&self) -> anyhow::Result<Seen> {
        let sets = self.sets().await?.into_iter();
        let status =
            |set: &NodeImageSet| set.status.as_ref()?.container_image_statuses.as_ref()?.first().cloned();
        Ok(sets
            .map(|set| {
                let status = status(&set).unwrap_or_default();
                (set.spec.node_name, (set.spec.registry_policy, status))
            })
            .collect())
    }

    /// How many nodes were to ask the registry.
    pub async fn seeds(&self) -> anyhow::Result<usize> {
        Ok(self.seen().await?.values().filter(|(policy, _)| *policy == RegistryPolicy::Default).count())
    }

    /// It goes, and with it every set and every entry for this image.
    pub async fn delete(&self, image: &str) -> anyhow::Result<()> {
        self.api()?.delete(&self.name, &DeleteParams::background()).await.context("deleting it")?;
        wait::until("the end of what there was of it", async || {
            let nodes = self.fleet.node_images().await?;
            let is_empty = nodes.iter().all(|node| !node.spec.images.contains_key(image));
            Ok((is_empty && self.sets().await?.is_empty()).then_some(()))
        })
        .await
    }
}
