//! Writes the spec of a node and reads its status.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use k8s_openapi::api::events::v1::Event;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Api, Client};
use prewarm_api::kruise::{
    ImageSpec, ImageTagPullPolicy, ImageTagSpec, ImageTagStatus, NodeImage, NodeImageSpec, NodeImageStatus,
    PullPhase,
};
use serde_json::json;

/// How long a test waits for a status that does not change. The slowest are those that the agent checks once a
/// minute.
const PATIENCE: Duration = Duration::from_mins(3);
/// How long it waits for one that keeps changing, as on a slow machine or in an endless loop.
const MOST_PATIENCE: Duration = Duration::from_mins(20);
const INTERVAL: Duration = Duration::from_millis(50);

/// The NodeImage of one node.
pub struct Desk {
    pub client: Client,
    /// Untyped, because some tests store invalid objects.
    pub api: Api<DynamicObject>,
    pub node: String,
}

/// An entry that fails early: two attempts of a minute each.
pub fn entry(tag: &str) -> ImageTagSpec {
    let pull_policy = ImageTagPullPolicy {
        timeout_seconds: 60,
        backoff_limit: 1,
        ttl_seconds_after_finished: 3600,
        active_deadline_seconds: None,
    };
    ImageTagSpec { tag: tag.to_owned(), pull_policy, ..ImageTagSpec::default() }
}

/// What to pull: names and their entries.
pub fn spec<'a>(images: impl IntoIterator<Item = (&'a str, Vec<ImageTagSpec>)>) -> NodeImageSpec {
    let image = |tags| ImageSpec { tags, ..ImageSpec::default() };
    NodeImageSpec { images: images.into_iter().map(|(name, tags)| (name.to_owned(), image(tags))).collect() }
}

/// One tag of a status.
pub fn find<'a>(status: &'a NodeImageStatus, name: &str, tag: &str) -> Option<&'a ImageTagStatus> {
    status.image_statuses.as_ref()?.get(name)?.tags.iter().find(|status| status.tag == tag)
}

impl Desk {
    pub fn new(client: Client, node: &str) -> Self {
        let resource = ApiResource::erase::<NodeImage>(&());
        Self { api: Api::all_with(client.clone(), &resource), client, node: node.to_owned() }
    }

    /// Writes the spec; creates the NodeImage if there is none.
    pub async fn ask(&self, spec: &NodeImageSpec) -> anyhow::Result<()> {
        let object = NodeImage::new(&self.node, spec.clone());
        let params = PatchParams::apply("prewarm-tests").force();
        self.api
            .patch(&self.node, &params, &Patch::Apply(json!(object)))
            .await
            .context("writing a NodeImage")?;
        Ok(())
    }

    /// The current status; empty if there is none yet.
    pub async fn status(&self) -> anyhow::Result<NodeImageStatus> {
        let object = self.api.get(&self.node).await.context("reading a NodeImage")?;
        let status = object.data.get("status").cloned();
        status
            .map_or_else(|| Ok(NodeImageStatus::default()), serde_json::from_value)
            .context("reading a status")
    }

    /// Waits until the question has an answer.
    pub async fn until<T>(
        &self,
        what: &str,
        judge: impl Fn(&NodeImageStatus) -> Option<T>,
    ) -> anyhow::Result<T> {
        let start = Instant::now();
        let (mut last, mut moved) = (NodeImageStatus::default(), start);
        loop {
            // The API server may be down on purpose.
            if let Ok(status) = self.status().await {
                if let Some(answer) = judge(&status) {
                    return Ok(answer);
                }
                if status != last {
                    (last, moved) = (status, Instant::now());
                }
            }
            if moved.elapsed() > PATIENCE || start.elapsed() > MOST_PATIENCE {
                bail!("still waiting for {what}; the status is {}", json!(last));
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// Waits until one tag answers the question.
    pub async fn until_tag<T>(
        &self,
        what: &str,
        (name, tag): (&str, &str),
        judge: impl Fn(&ImageTagStatus) -> Option<T>,
    ) -> anyhow::Result<T> {
        self.until(&format!("{name}:{tag} {what}"), |status| judge(find(status, name, tag)?)).await
    }

    /// Waits until this version of a tag has ended, successfully or not.
    pub async fn ended(&self, image: (&str, &str), version: i64) -> anyhow::Result<ImageTagStatus> {
        let has_ended = |status: &ImageTagStatus| {
            let is_over = matches!(status.phase, PullPhase::Succeeded | PullPhase::Failed);
            (status.version == version && is_over).then(|| status.clone())
        };
        self.until_tag("to end", image, has_ended).await
    }

    /// Waits until a tag has succeeded.
    pub async fn succeeded(&self, image: (&str, &str), version: i64) -> anyhow::Result<ImageTagStatus> {
        let status = self.ended(image, version).await?;
        if status.phase != PullPhase::Succeeded {
            bail!("{}:{} failed: {}", image.0, image.1, json!(status));
        }
        Ok(status)
    }

    /// Waits until nothing is left to do.
    pub async fn settled(&self, desired: usize) -> anyhow::Result<NodeImageStatus> {
        let is_settled = |status: &NodeImageStatus| {
            let has_all = usize::try_from(status.desired).is_ok_and(|number| number == desired);
            (has_all && status.pulling + status.waiting == 0).then(|| status.clone())
        };
        self.until("everything to end", is_settled).await
    }

    /// The events on one object.
    pub async fn events(&self, kind: &str, name: &str) -> anyhow::Result<Vec<Event>> {
        let events = Api::<Event>::all(self.client.clone()).list(&ListParams::default()).await?;
        let is_about = |event: &Event| {
            let about = event.regarding.as_ref();
            about.is_some_and(|about| {
                about.kind.as_deref() == Some(kind) && about.name.as_deref() == Some(name)
            })
        };
        Ok(events.items.into_iter().filter(is_about).collect())
    }
}
