//! What scenes have in common: images to publish, jobs to create and to wait for, and messages.

use std::cell::Cell;
use std::fmt;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use prewarm_api::kruise::{AdvancedCronJob, ImageListPullJob, ImagePullJob, ImageTagStatus, NodeImage};
use prewarm_api::names::OWNER_NAME_LABEL;
use prewarm_api::ofen::{ImagePrefetch, NodeImageSet};
use prewarm_api::reference::ImageRef;
use prewarm_image::{Image, Layer};
use prewarm_plan::amount;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use super::{Counts, Message, Settings, Trouble};
use crate::cluster::{Cluster, REGISTRY};
use crate::{Choices, Store};

/// The namespace in which everything happens.
pub const NAMESPACE: &str = "default";
/// How often a condition is checked.
const LOOK: Duration = Duration::from_millis(50);
/// How long a scene waits for something after its last message, at the usual speed.
const PATIENCE: Duration = Duration::from_mins(2);
/// The pause between two scenes, so that the end of one can be read.
const PAUSE: Duration = Duration::from_secs(1);
/// The bytes of one layer of an image. The last layer has the rest.
const LAYER: usize = 8 << 20;

/// Where scenes are played.
pub struct Stage<'a> {
    pub cluster: &'a mut Cluster,
    settings: Settings,
    messages: mpsc::UnboundedSender<Message>,
    start: Instant,
    /// When the last message was sent.
    spoken: Cell<Instant>,
}

impl<'a> Stage<'a> {
    pub(super) fn new(
        cluster: &'a mut Cluster,
        settings: Settings,
        messages: mpsc::UnboundedSender<Message>,
    ) -> Self {
        let now = Instant::now();
        Self { cluster, settings, messages, start: now, spoken: Cell::new(now) }
    }

    /// Starts a scene.
    pub fn title(&mut self, text: impl Into<String>) {
        self.start = Instant::now();
        self.speak(Message::Title(text.into()));
    }

    /// Reports what happens.
    pub fn say(&self, text: impl Into<String>) {
        self.speak(Message::Said(text.into()));
    }

    /// Ends a scene, with the time it took.
    pub fn end(&self, text: impl fmt::Display) {
        let seconds = self.start.elapsed().as_secs_f64();
        self.speak(Message::Ended(format!("{text} ({seconds:.1} s)")));
    }

    fn speak(&self, message: Message) {
        self.spoken.set(Instant::now());
        // Nobody may be listening any more; the story ends soon in that case.
        let _sent = self.messages.send(message);
    }

    /// A moment for reading.
    pub async fn pause(&self) {
        sleep(PAUSE.div_f64(self.settings.speed)).await;
    }

    /// A node that the seed chooses.
    pub fn chosen(&self, purpose: &str) -> Result<(String, Store), Trouble> {
        let chosen = self.choices().choose(purpose, self.cluster.nodes.iter());
        let (name, node) = chosen.ok_or_else(|| Trouble::new("there is no node"))?;
        Ok((name.clone(), node.store.clone()))
    }

    pub fn choices(&self) -> Choices {
        Choices::new(self.settings.seed)
    }

    pub fn nodes(&self) -> i32 {
        i32::try_from(self.cluster.nodes.len()).unwrap_or(i32::MAX)
    }

    /// Pushes an image of this size to the registry. Returns its reference.
    pub async fn publish(&self, repository: &str, tag: &str, size: usize) -> Result<String, Trouble> {
        let seed = format!("{repository}:{tag} {}", self.settings.seed);
        let image = Image::new(&seed).layers(size / LAYER, Layer::of(LAYER)).layer(Layer::of(size % LAYER));
        // Building takes a while, and the screen must go on meanwhile.
        let built = spawn_blocking(move || image.build()).await;
        let built = built.map_err(|error| Trouble::new(format!("no image {repository}:{tag}: {error}")))?;
        self.cluster.registry.push(repository, tag, built);
        Ok(format!("{REGISTRY}/{repository}:{tag}"))
    }

    /// Creates an object in the story's namespace, as `kubectl create` does.
    pub async fn create<K>(&self, object: Value) -> Result<K, Trouble>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + fmt::Debug
            + Serialize
            + DeserializeOwned,
    {
        let object: K = serde_json::from_value(object)
            .map_err(|error| Trouble::new(format!("no {}: {error}", K::kind(&()))))?;
        Ok(self.api().create(&PostParams::default(), &object).await?)
    }

    /// The objects of a kind in the story's namespace.
    pub fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client(), NAMESPACE)
    }

    fn client(&self) -> Client {
        self.cluster.client.clone()
    }

    /// Creates an ImagePullJob.
    pub async fn pull(&self, name: &str, spec: Value) -> Result<(), Trouble> {
        let job = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "metadata": {"name": name}, "spec": spec,
        });
        self.create::<ImagePullJob>(job).await.map(drop)
    }

    /// Creates an ImageListPullJob.
    pub async fn pull_list(&self, name: &str, spec: Value) -> Result<(), Trouble> {
        let job = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImageListPullJob",
            "metadata": {"name": name}, "spec": spec,
        });
        self.create::<ImageListPullJob>(job).await.map(drop)
    }

    /// Creates an ImagePrefetch.
    pub async fn prefetch(&self, name: &str, spec: Value) -> Result<(), Trouble> {
        let prefetch = json!({
            "apiVersion": "ofen.cybozu.io/v1", "kind": "ImagePrefetch", "metadata": {"name": name}, "spec": spec,
        });
        self.create::<ImagePrefetch>(prefetch).await.map(drop)
    }

    /// The nodes of an ImagePrefetch that have begun, as their NodeImageSets report them.
    pub async fn sets_of(&self, prefetch: &str) -> Result<Vec<NodeImageSet>, Trouble> {
        let of_it = ListParams::default().labels(&format!("{OWNER_NAME_LABEL}={prefetch}"));
        Ok(Api::all(self.client()).list(&of_it).await?.items)
    }

    /// Deletes an ImagePrefetch and waits until its NodeImageSets are gone. Its images stay on the nodes.
    pub async fn delete_prefetch(&self, name: &str) -> Result<(), Trouble> {
        self.api::<ImagePrefetch>().delete(name, &DeleteParams::background()).await?;
        let what = format!("the end of the NodeImageSets of {name}");
        self.wait(&what, async || Ok(self.sets_of(name).await?.is_empty().then_some(()))).await
    }

    /// Creates an AdvancedCronJob of an image list, one run at a time.
    pub async fn schedule(&self, name: &str, line: &str, list: Value) -> Result<(), Trouble> {
        let template = json!({"imageListPullJobTemplate": {"spec": list}});
        let cron = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "AdvancedCronJob", "metadata": {"name": name},
            "spec": {"schedule": line, "concurrencyPolicy": "Forbid", "template": template},
        });
        self.create::<AdvancedCronJob>(cron).await.map(drop)
    }

    /// Waits until a run of a schedule that comes after `before` has succeeded. Returns its name.
    pub async fn run_after(&self, name: &str, before: Option<&str>) -> Result<String, Trouble> {
        self.wait(&format!("a run of {name}"), async || {
            let runs = self.api::<ImageListPullJob>().list(&ListParams::default()).await?.items;
            let is_over = |run: &&ImageListPullJob| {
                let status = run.status.as_ref();
                status.is_some_and(|status| {
                    status.completion_time.is_some() && status.succeeded == status.desired
                })
            };
            let names = runs.iter().filter(is_over).filter_map(|run| run.metadata.name.as_deref());
            // The names of runs end in their times, so they sort by time.
            let later = names.filter(|run| run.starts_with(&format!("{name}-")) && Some(*run) > before);
            Ok(later.max().map(str::to_owned))
        })
        .await
    }

    /// Suspends a schedule.
    pub async fn pause_schedule(&self, name: &str) -> Result<(), Trouble> {
        let patch = Patch::Merge(json!({"spec": {"paused": true}}));
        self.api::<AdvancedCronJob>().patch(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Creates the Secret for an account of the registry.
    pub async fn secret(&self, name: &str, username: &str, password: &str) -> Result<(), Trouble> {
        let config = json!({"auths": {REGISTRY: {"username": username, "password": password}}});
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
            "type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": config.to_string()},
        });
        self.create::<Secret>(secret).await.map(drop)
    }

    /// Deletes an ImagePullJob. Its images stay on the nodes.
    pub async fn delete(&self, name: &str) -> Result<(), Trouble> {
        self.api::<ImagePullJob>().delete(name, &DeleteParams::background()).await?;
        Ok(())
    }

    /// Waits until a condition on a job holds, and reports the progress whenever a node has ended.
    pub async fn until(
        &self,
        name: &str,
        is_so: impl Fn(&ImagePullJob) -> bool,
    ) -> Result<ImagePullJob, Trouble> {
        let mut reported = Counts::default();
        self.wait(&format!("the job {name}"), async || {
            let job = self.api::<ImagePullJob>().get(name).await?;
            let counts = Counts::of(&job);
            if (counts.succeeded, counts.failed) != (reported.succeeded, reported.failed) {
                self.say(format!("{name}: {counts}"));
                reported = counts;
            }
            Ok(is_so(&job).then_some(job))
        })
        .await
    }

    /// Waits until a job is over, and checks how many nodes succeeded and failed.
    pub async fn finished(&self, name: &str, succeeded: i32, failed: i32) -> Result<ImagePullJob, Trouble> {
        let is_over =
            |job: &ImagePullJob| job.status.as_ref().is_some_and(|status| status.completion_time.is_some());
        let job = self.until(name, is_over).await?;
        let counts = Counts::of(&job);
        if (counts.succeeded, counts.failed) == (succeeded, failed) {
            return Ok(job);
        }
        Err(Trouble::new(format!("{name} ended with {counts}, not with {succeeded} good and {failed} bad")))
    }

    /// Waits until a condition on a node's report on an image holds.
    pub async fn reported(
        &self,
        node: &str,
        image: &str,
        is_so: impl Fn(&ImageTagStatus) -> bool,
    ) -> Result<ImageTagStatus, Trouble> {
        let image = ImageRef::parse(image).map_err(|error| Trouble::new(error.to_string()))?;
        let api: Api<NodeImage> = Api::all(self.client());
        self.wait(&format!("a report of {node}"), async || {
            let statuses = api.get(node).await?.status.and_then(|status| status.image_statuses);
            let tags = statuses.and_then(|mut images| images.remove(image.name())).unwrap_or_default().tags;
            Ok(tags.into_iter().find(|tag| tag.tag == image.tag() && is_so(tag)))
        })
        .await
    }

    /// Waits until a look finds something. As long as messages come it may take long, as it does with a few hundred
    /// nodes.
    pub async fn wait<T>(
        &self,
        what: &str,
        mut look: impl AsyncFnMut() -> Result<Option<T>, Trouble>,
    ) -> Result<T, Trouble> {
        let start = Instant::now();
        let patience = PATIENCE.div_f64(self.settings.speed.min(1.0));
        loop {
            if let Some(found) = look().await? {
                return Ok(found);
            }
            if Instant::now() > start.max(self.spoken.get()) + patience {
                return Err(Trouble::new(format!("{what} makes no more progress")));
            }
            sleep(LOOK).await;
        }
    }
}

/// A size as people read it.
pub fn size(bytes: usize) -> String {
    amount::show(u64::try_from(bytes).unwrap_or(u64::MAX))
}
