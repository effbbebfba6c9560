//! The watches of the live view. They are watches, so that a change costs one object, however many there are.

use std::fmt;
use std::future::ready;

use futures::{Stream, StreamExt as _, stream};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use prewarm_api::kruise::{ImagePullJob, NodeImage};
use prewarm_api::ofen::ImagePrefetch;
use serde::de::DeserializeOwned;

use super::state::{Change, Kind, Observed};

/// Watches everything that is shown as a job and all NodeImages, for ever.
pub fn follow(client: &Client) -> impl Stream<Item = Change> + Unpin + use<> {
    let jobs = follow_jobs::<ImagePullJob>(client, Kind::ImagePullJob);
    let prefetches = follow_jobs::<ImagePrefetch>(client, Kind::ImagePrefetch);
    let nodes = watcher(Api::<NodeImage>::all(client.clone()), watcher::Config::default());
    // After an error the watch starts again; until then the view is slightly out of date.
    let nodes = nodes.default_backoff().filter_map(async |event| node_change(event.ok()?));
    stream::select_all([jobs.boxed(), prefetches.boxed(), nodes.boxed()])
}

fn follow_jobs<K>(client: &Client, kind: Kind) -> impl Stream<Item = Change> + Send + use<K>
where
    K: kube::Resource<DynamicType = ()> + Clone + fmt::Debug + DeserializeOwned + Send + 'static,
    for<'a> Observed: From<&'a K>,
{
    let jobs = watcher(Api::<K>::all(client.clone()), watcher::Config::default());
    jobs.default_backoff().filter_map(move |event| ready(event.ok().map(|event| job_change(kind, &event))))
}

fn job_change<K>(kind: Kind, event: &Event<K>) -> Change
where
    for<'a> Observed: From<&'a K>,
{
    match event {
        Event::Init => Change::JobsBegin(kind),
        Event::InitApply(job) | Event::Apply(job) => Change::Job(Observed::from(job)),
        Event::InitDone => Change::JobsEnd(kind),
        Event::Delete(job) => Change::JobGone(Observed::from(job).name),
    }
}

/// Nodes that are gone are no longer listed, so their deletion needs no handling.
fn node_change(event: Event<NodeImage>) -> Option<Change> {
    match event {
        Event::InitApply(node) | Event::Apply(node) => Some(Change::Node(Box::new(node))),
        Event::Init | Event::InitDone | Event::Delete(_) => None,
    }
}
