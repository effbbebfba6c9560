//! Objects of one kind, read once in pages or kept current by a watch.

use std::fmt::{self, Debug};
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::NamespaceResourceScope;
use kube::api::ListParams;
use kube::runtime::reflector::{self, Lookup, Store};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt as _, watcher as watch};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, mpsc};

use super::{Cluster, Request, sentence};

/// How many objects are requested at once.
const PAGE: u32 = 500;
/// Changes within this time are shown together.
const GATHER: Duration = Duration::from_secs(1);

/// Which objects of a kind to read.
#[derive(Clone, Debug, Default)]
pub struct Narrow {
    /// Only those with these labels, as in kubectl's `-l`.
    pub labels: Option<String>,
    /// Only those with these fields.
    pub fields: Option<String>,
}

/// Objects of one kind, as they were read or as a watch keeps them.
pub struct Feed<K: 'static + Lookup<DynamicType = ()>>(Store<K>);

impl<K: 'static + Lookup<DynamicType = ()> + Clone> Feed<K> {
    /// All objects, by namespace and name.
    pub fn objects(&self) -> Vec<Arc<K>> {
        let mut objects = self.0.state();
        objects.sort_by_cached_key(|object| {
            (
                object.namespace().map(std::borrow::Cow::into_owned),
                object.name().map(std::borrow::Cow::into_owned),
            )
        });
        objects
    }

    fn fixed(objects: Vec<K>) -> Self {
        let (store, mut writer) = reflector::store();
        writer.apply_watcher_event(&Event::Init);
        for object in objects {
            writer.apply_watcher_event(&Event::InitApply(object));
        }
        writer.apply_watcher_event(&Event::InitDone);
        Self(store)
    }
}

/// Wakes a waiting command when a watched object has changed, or when a watch is refused.
struct Changes {
    signal: Arc<Notify>,
    refusals: mpsc::UnboundedReceiver<String>,
    sender: mpsc::UnboundedSender<String>,
}

impl Default for Changes {
    fn default() -> Self {
        let (sender, refusals) = mpsc::unbounded_channel();
        Self { signal: Arc::default(), refusals, sender }
    }
}

impl Changes {
    /// Waits until something has changed, and a moment longer for what comes along with it.
    async fn next(&mut self) -> anyhow::Result<()> {
        tokio::select! {
            () = self.signal.notified() => {}
            Some(refusal) = self.refusals.recv() => return Err(anyhow!(refusal)),
        }
        tokio::time::sleep(GATHER).await;
        Ok(())
    }
}

/// Reads the objects of a cluster, either once or together with their changes.
pub struct Reader {
    pub cluster: Cluster,
    changes: Option<Changes>,
}

impl Reader {
    /// Reads every object once.
    pub fn once(cluster: Cluster) -> Self {
        Self { cluster, changes: None }
    }

    /// Watches every object that it reads.
    pub fn following(cluster: Cluster) -> Self {
        Self { cluster, changes: Some(Changes::default()) }
    }

    pub fn is_following(&self) -> bool {
        self.changes.is_some()
    }

    /// Waits until something that was read has changed, but at most for this time.
    pub async fn changed_within(&mut self, time: Duration) -> anyhow::Result<()> {
        let Some(changes) = &mut self.changes else {
            tokio::time::sleep(time).await;
            return Ok(());
        };
        tokio::time::timeout(time, changes.next()).await.unwrap_or(Ok(()))
    }

    /// All objects of a kind in a namespace, or in all namespaces.
    pub async fn namespaced<K>(&mut self, namespace: Option<&str>) -> anyhow::Result<Feed<K>>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Lookup<DynamicType = ()>,
        K: Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    {
        self.feed(self.cluster.api(namespace), &Narrow::default()).await
    }

    /// Objects of a kind that lives outside of namespaces.
    pub async fn cluster_wide<K>(&mut self, narrow: &Narrow) -> anyhow::Result<Feed<K>>
    where
        K: Resource<DynamicType = ()> + Lookup<DynamicType = ()>,
        K: Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    {
        self.feed(Api::all(self.cluster.client.clone()), narrow).await
    }

    async fn feed<K>(&mut self, api: Api<K>, narrow: &Narrow) -> anyhow::Result<Feed<K>>
    where
        K: Resource<DynamicType = ()> + Lookup<DynamicType = ()>,
        K: Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    {
        match &mut self.changes {
            None => self.cluster.list(&api, narrow).await.map(Feed::fixed),
            Some(changes) => self.cluster.follow(api, narrow, changes).await,
        }
    }
}

/// Separates what the user may not read, or what the cluster has no definition for, from other errors.
pub fn or_refusal<T>(read: anyhow::Result<T>) -> anyhow::Result<Result<T, String>> {
    or_refused(read).map(|read| read.map_err(|Refused { reason, .. }| reason))
}

/// The same, where a missing definition is nothing to talk about: there is no reason then.
pub fn or_undefined<T>(read: anyhow::Result<T>) -> anyhow::Result<Result<T, Option<String>>> {
    let silent = |Refused { reason, is_undefined }| (!is_undefined).then_some(reason);
    or_refused(read).map(|read| read.map_err(silent))
}

fn or_refused<T>(read: anyhow::Result<T>) -> anyhow::Result<Result<T, Refused>> {
    match read {
        Ok(read) => Ok(Ok(read)),
        Err(error) => error.downcast().map(Err),
    }
}

impl Cluster {
    /// Reads objects page by page.
    pub async fn list<K>(&self, api: &Api<K>, narrow: &Narrow) -> anyhow::Result<Vec<K>>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let mut params = ListParams {
            label_selector: narrow.labels.clone(),
            field_selector: narrow.fields.clone(),
            ..ListParams::default().limit(PAGE)
        };
        let mut objects = Vec::new();
        loop {
            let request = || Request::of::<K>("list", api.namespace());
            let page = api.list(&params).await.map_err(|error| self.trouble(&error, &request()))?;
            objects.extend(page.items);
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params.continue_token = Some(token),
                None => return Ok(objects),
            }
        }
    }

    async fn follow<K>(&self, api: Api<K>, narrow: &Narrow, changes: &mut Changes) -> anyhow::Result<Feed<K>>
    where
        K: Resource<DynamicType = ()> + Lookup<DynamicType = ()>,
        K: Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    {
        let config = watcher::Config {
            label_selector: narrow.labels.clone(),
            field_selector: narrow.fields.clone(),
            ..watcher::Config::default()
        };
        let (store, writer) = reflector::store();
        let (signal, refusals, cluster) = (changes.signal.clone(), changes.sender.clone(), self.clone());
        let request = Request::of::<K>("watch", api.namespace());
        // A watch that is refused at the start will be refused later, too; one that breaks later is started again.
        let mut events = Box::pin(watch(api, config).reflect(writer));
        while let Some(event) = events.try_next().await.map_err(|error| cluster.broken(&error, &request))? {
            if matches!(event, Event::InitDone) {
                break;
            }
        }
        tokio::spawn(async move {
            let mut events = Box::pin(events.default_backoff());
            while let Some(event) = events.next().await {
                match event {
                    Ok(_) => signal.notify_one(),
                    Err(watcher::Error::WatchStartFailed(error @ kube::Error::Api(_)))
                        if is_refusal(&error) =>
                    {
                        // Nobody receives it if the command has ended.
                        let _ = refusals.send(sentence(&error, &request, &cluster.name));
                    }
                    Err(_) => {}
                }
            }
        });
        Ok(Feed(store))
    }

    fn broken(&self, error: &watcher::Error, request: &Request) -> anyhow::Error {
        match error {
            watcher::Error::InitialListFailed(error)
            | watcher::Error::WatchStartFailed(error)
            | watcher::Error::WatchFailed(error) => self.trouble(error, request),
            other => anyhow!("cannot watch {} at {}: {other}", request.resource, self.name),
        }
    }

    /// The error for a failed request, with its sentence.
    pub fn trouble(&self, error: &kube::Error, request: &Request) -> anyhow::Error {
        let sentence = sentence(error, request, &self.name);
        if !is_refusal(error) {
            return anyhow!(sentence);
        }
        let is_undefined = matches!(error, kube::Error::Api(status) if status.code == 404);
        Refused { reason: sentence, is_undefined }.into()
    }
}

/// A request that was refused, or for a kind that does not exist.
#[derive(Debug)]
struct Refused {
    reason: String,
    /// Whether the cluster has no such kind.
    is_undefined: bool,
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.reason)
    }
}

impl std::error::Error for Refused {}

/// Whether another attempt would be refused, too.
fn is_refusal(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if matches!(status.code, 401 | 403 | 404))
}
