//! The agent's view of its NodeImage: the one object, untyped, so that a part that cannot be read hides nothing else.

use std::ops::RangeInclusive;

use futures::{Stream, StreamExt as _, stream};
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use prewarm_api::kruise::NodeImage;
use prewarm_process::log::chain;
use prewarm_process::watch::{Crowd, patiently};
use tracing::warn;

use crate::metrics::Metrics;

/// How long a server keeps a watch; then it is opened anew. Below what load balancers commonly allow. Each agent has a time of
/// its own, so that thousands that found the server again together do not lose it together.
const WATCH_TIMEOUT: RangeInclusive<u32> = 240..=290;

/// What is known of the NodeImage after a change.
pub enum Seen {
    /// It is like this.
    Object(Box<DynamicObject>),
    /// There is none.
    Gone,
    /// The API server could not be asked.
    Trouble,
}

/// NodeImages as untyped objects.
pub fn api(client: Client) -> Api<DynamicObject> {
    Api::all_with(client, &ApiResource::erase::<NodeImage>(&()))
}

/// Follows the NodeImage of one node through outages, for ever.
pub fn follow(client: Client, node: &str, metrics: Metrics) -> impl Stream<Item = Seen> + use<> {
    let seconds = rand::random_range(WATCH_TIMEOUT);
    let config = watcher::Config::default().fields(&format!("metadata.name={node}")).timeout(seconds);
    let mut has_listed_one = false;
    patiently(Box::pin(watcher(api(client), config)), Crowd::Thousands)
        .map(move |event| {
            let seen = match event {
                Ok(Event::Init) => {
                    has_listed_one = false;
                    None
                }
                Ok(Event::InitApply(object)) => {
                    has_listed_one = true;
                    Some(Seen::Object(Box::new(object)))
                }
                Ok(Event::InitDone) => (!has_listed_one).then_some(Seen::Gone),
                Ok(Event::Apply(object)) => Some(Seen::Object(Box::new(object))),
                Ok(Event::Delete(_)) => Some(Seen::Gone),
                Err(error) => {
                    metrics.reconnected(crate::metrics::Target::Api);
                    warn!(error = %chain(&error), "the NodeImage cannot be watched; trying again");
                    Some(Seen::Trouble)
                }
            };
            stream::iter(seen)
        })
        .flatten()
}
