//! Objects of one kind, read once in pages or kept current by a watch.

use std::fmt::{self, Debug};
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::ListParams;
use kube::runtime::reflector::{self, Lookup, Store};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt as _, watcher as watch};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, mpsc};

use super::{Cluster, Request, sentence};

/// So many objects are asked for at once.
const PAGE: u32 = 500;
/// What changes within this time is shown together.
const GATHER: Duration = Duration::from_secs(1);

/// Which objects are wanted of a kind.
#[derive(Clone, Debug, Default)]
pub struct Narrow {
    /// Those with these labels, as kubectl's `-l`.
    pub labels: Option<String>,
    /// Those with these fields.
    pub fields: Option<String>,
}

/// Objects of one kind. It stays as it was read, or follows the cluster.
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

/// Tells when something that is followed has changed, or cannot be followed.
pub struct Changes {
    news: Arc<Notify>,
    complaints: mpsc::UnboundedReceiver<String>,
    sender: mpsc::UnboundedSender<String>,
}

impl Default for Changes {
    fn default() -> Self {
        let (sender, complaints) = mpsc::unbounded_channel();
        Self { news: Arc::default(), complaints, sender }
    }
}

impl Changes {
    /// Waits until something has changed, and a moment longer for what comes along with it. It also ends after a while,
    /// because times are shown.
    pub async fn next(&mut self) -> anyhow::Result<()> {
        tokio::select! {
            () = self.news.notified() => {}
            Some(complaint) = self.complaints.recv() => return Err(anyhow!(complaint)),
        }
        tokio::time::sleep(GATHER).await;
        Ok(())
    }

    /// The same, but ends after this time at the latest.
    pub async fn next_within(&mut self, time: Duration) -> anyhow::Result<()> {
        tokio::time::timeout(time, self.next()).await.unwrap_or(Ok(()))
    }
}

impl Cluster {
    /// Reads objects, and follows them if changes are wanted.
    pub async fn feed<K>(
        &self,
        api: Api<K>,
        narrow: &Narrow,
        changes: Option<&mut Changes>,
    ) -> anyhow::Result<Feed<K>>
    where
        K: Resource<DynamicType = ()> + Lookup<DynamicType = ()>,
        K: Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    {
        match changes {
            None => self.list(&api, narrow).await.map(Feed::fixed),
            Some(changes) => self.follow(api, narrow, changes).await,
        }
    }

    /// The same, but what nobody may read, or what there is no definition for, is a reason and no error.
    pub async fn feed_or_reason<K>(
        &self,
        api: Api<K>,
        narrow: &Narrow,
        changes: Option<&mut Changes>,
    ) -> anyhow::Result<Result<Feed<K>, String>>
    where
        K: Resource<DynamicType = ()> + Lookup<DynamicType = ()>,
        K: Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    {
        match self.feed(api, narrow, changes).await {
            Ok(feed) => Ok(Ok(feed)),
            Err(error) => error.downcast().map(|Refused(reason)| Err(reason)),
        }
    }

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
        let (news, complaints, cluster) = (changes.news.clone(), changes.sender.clone(), self.clone());
        let request = Request::of::<K>("watch", api.namespace());
        // Whoever cannot be watched at first cannot be watched later; what breaks later is taken up again.
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
                    Ok(_) => news.notify_one(),
                    Err(watcher::Error::WatchStartFailed(error @ kube::Error::Api(_)))
                        if is_refusal(&error) =>
                    {
                        // Nobody listens any more if the command has ended.
                        let _ = complaints.send(sentence(&error, &request, &cluster.name));
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

    /// An error with the sentence for a failed request.
    pub fn trouble(&self, error: &kube::Error, request: &Request) -> anyhow::Error {
        let sentence = sentence(error, request, &self.name);
        if is_refusal(error) { Refused(sentence).into() } else { anyhow!(sentence) }
    }
}

/// The sentence for something that one may not read, or that there is not.
#[derive(Debug)]
struct Refused(String);

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

/// Whether asking again is of no use.
fn is_refusal(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if matches!(status.code, 401 | 403 | 404))
}
