//! Which objects of a kind are followed: all, those with labels, or one.

use std::fmt::Debug;
use std::time::Duration;

use kube::runtime::watcher;
use kube::{Api, Resource};
use prewarm_plan::cluster::Input;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use super::{Lenient, Watch, Watched, follow_chosen};
use crate::metrics::Metrics;

/// How long a silent server keeps a watch; then it is opened anew. Below what load balancers commonly allow.
const WATCH_TIMEOUT: Duration = Duration::from_secs(290);
/// So many objects are asked for at once: a page of full NodeImages stays below some tens of megabytes.
const PAGE: u32 = 500;

/// Follows all objects of a kind through outages, for ever.
pub fn follow<K>(
    api: Api<Lenient<K>>,
    namespace: Option<String>,
    sender: mpsc::Sender<Input>,
    metrics: Metrics,
) -> Watch
where
    K: Watched + Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    follow_labelled(api, "", namespace, sender, metrics)
}

/// Follows the one object of a kind that has this name.
pub fn follow_named<K>(
    api: Api<Lenient<K>>,
    name: &str,
    sender: mpsc::Sender<Input>,
    metrics: Metrics,
) -> Watch
where
    K: Watched + Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    follow_chosen(api, config().fields(&format!("metadata.name={name}")), None, sender, metrics)
}

/// Follows those objects of a kind that a label selector chooses.
pub fn follow_labelled<K>(
    api: Api<Lenient<K>>,
    labels: &'static str,
    namespace: Option<String>,
    sender: mpsc::Sender<Input>,
    metrics: Metrics,
) -> Watch
where
    K: Watched + Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    follow_chosen(api, config().labels(labels), namespace, sender, metrics)
}

fn config() -> watcher::Config {
    let seconds = u32::try_from(WATCH_TIMEOUT.as_secs()).unwrap_or(u32::MAX);
    watcher::Config::default().timeout(seconds).page_size(PAGE)
}
