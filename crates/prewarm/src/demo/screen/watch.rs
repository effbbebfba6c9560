//! The watches of the live view. There are two of them, so that a change costs one object, however many there are.

use futures::{Stream, StreamExt as _, stream};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use prewarm_api::kruise::{ImagePullJob, NodeImage};

use super::state::{Change, job_name};

/// Watches all jobs and all NodeImages, for ever.
pub fn follow(client: &Client) -> impl Stream<Item = Change> + Unpin + use<> {
    let jobs = watcher(Api::<ImagePullJob>::all(client.clone()), watcher::Config::default());
    let nodes = watcher(Api::<NodeImage>::all(client.clone()), watcher::Config::default());
    // After an error the watch starts again; until then the view is slightly out of date.
    let jobs = jobs.default_backoff().filter_map(async |event| event.ok().map(job_change));
    let nodes = nodes.default_backoff().filter_map(async |event| node_change(event.ok()?));
    stream::select(jobs.boxed(), nodes.boxed())
}

fn job_change(event: Event<ImagePullJob>) -> Change {
    match event {
        Event::Init => Change::JobsBegin,
        Event::InitApply(job) | Event::Apply(job) => Change::Job(Box::new(job)),
        Event::InitDone => Change::JobsEnd,
        Event::Delete(job) => Change::JobGone(job_name(&job)),
    }
}

/// Nodes that are gone are no longer listed, so their deletion needs no handling.
fn node_change(event: Event<NodeImage>) -> Option<Change> {
    match event {
        Event::InitApply(node) | Event::Apply(node) => Some(Change::Node(Box::new(node))),
        Event::Init | Event::InitDone | Event::Delete(_) => None,
    }
}
