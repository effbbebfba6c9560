//! The watches of the live view. There are two of them, so that a change costs one object, however many there are.

use futures::{Stream, StreamExt as _, stream};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use prewarm_api::kruise::{ImagePullJob, NodeImage};

use super::state::{News, job_name};

/// Watches all jobs and all NodeImages, for ever.
pub fn follow(client: &Client) -> impl Stream<Item = News> + Unpin + use<> {
    let jobs = watcher(Api::<ImagePullJob>::all(client.clone()), watcher::Config::default());
    let nodes = watcher(Api::<NodeImage>::all(client.clone()), watcher::Config::default());
    // After an error the watch starts again; until then the view is slightly out of date.
    let jobs = jobs.default_backoff().filter_map(async |event| event.ok().map(job_news));
    let nodes = nodes.default_backoff().filter_map(async |event| node_news(event.ok()?));
    stream::select(jobs.boxed(), nodes.boxed())
}

fn job_news(event: Event<ImagePullJob>) -> News {
    match event {
        Event::Init => News::JobsBegin,
        Event::InitApply(job) | Event::Apply(job) => News::Job(Box::new(job)),
        Event::InitDone => News::JobsEnd,
        Event::Delete(job) => News::JobGone(job_name(&job)),
    }
}

/// Nodes that are gone are no longer listed, so their deletion needs no handling.
fn node_news(event: Event<NodeImage>) -> Option<News> {
    match event {
        Event::InitApply(node) | Event::Apply(node) => Some(News::Node(Box::new(node))),
        Event::Init | Event::InitDone | Event::Delete(_) => None,
    }
}
