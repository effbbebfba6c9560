//! The jobs of the benchmark, and waiting for their ends.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Context as _, bail};
use futures::StreamExt as _;
use k8s_openapi::NamespaceResourceScope;
use kube::api::{WatchEvent, WatchParams};
use kube::{Api, Client, Resource};
use prewarm_api::kruise::{ImageListPullJob, ImagePullJob};
use prewarm_api::names::condition::READY;
use prewarm_api::ofen::ImagePrefetch;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::cluster::NAMESPACE;

/// Longer than any job here takes.
const PATIENCE: Duration = Duration::from_mins(5);

pub fn job(name: &str, image: &str, parallelism: usize) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "metadata": { "name": name },
        "spec": { "image": image, "parallelism": parallelism, "completionPolicy": { "type": "Always" } },
    })
}

pub fn list(name: &str, images: &[String], parallelism: usize) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImageListPullJob", "metadata": { "name": name },
        "spec": { "images": images, "parallelism": parallelism, "completionPolicy": { "type": "Always" } },
    })
}

/// A job of either kind, as far as its end goes.
pub trait Ends:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned
{
    /// How many nodes or images succeeded, once it is over.
    fn succeeded(&self) -> Option<i32>;
}

impl Ends for ImagePullJob {
    fn succeeded(&self) -> Option<i32> {
        self.status.as_ref().filter(|status| status.completion_time.is_some()).map(|status| status.succeeded)
    }
}

impl Ends for ImageListPullJob {
    fn succeeded(&self) -> Option<i32> {
        self.status.as_ref().filter(|status| status.completion_time.is_some()).map(|status| status.succeeded)
    }
}

/// It never ends; it is ready.
impl Ends for ImagePrefetch {
    fn succeeded(&self) -> Option<i32> {
        let status = self.status.as_ref()?;
        let mut conditions = status.conditions.iter().flatten();
        let is_ready = conditions.any(|condition| condition.type_ == READY && condition.status == "True");
        is_ready.then_some(status.image_pulled_nodes)
    }
}

/// Waits until a job is over with this many successes.
pub async fn finished<K: Ends>(client: &Client, name: &str, wanted: usize) -> anyhow::Result<()> {
    let api = Api::<K>::namespaced(client.clone(), NAMESPACE);
    let params = WatchParams::default().fields(&format!("metadata.name={name}")).timeout(290);
    let mut events = Box::pin(api.watch(&params, "0").await?);
    let ended = async {
        while let Some(event) = events.next().await {
            match event? {
                WatchEvent::Added(job) | WatchEvent::Modified(job) => {
                    if let Some(succeeded) = job.succeeded() {
                        return Ok(succeeded);
                    }
                }
                WatchEvent::Error(status) => bail!("watching {name}: {}", status.message),
                WatchEvent::Deleted(_) | WatchEvent::Bookmark(_) => {}
            }
        }
        bail!("the watch of {name} ended")
    };
    let succeeded =
        tokio::time::timeout(PATIENCE, ended).await.with_context(|| format!("{name} does not end"))??;
    if usize::try_from(succeeded)? != wanted {
        bail!("{name} ended with {succeeded} of {wanted}");
    }
    Ok(())
}
