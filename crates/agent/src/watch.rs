//! The agent's view of its NodeImage: the one object, untyped, so that a part that cannot be read hides nothing else.

use std::time::Duration;

use futures::{Stream, StreamExt as _, stream};
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use prewarm_api::kruise::NodeImage;
use prewarm_process::log::chain;
use prewarm_process::watch::patiently;
use tracing::warn;

use crate::metrics::Metrics;

/// How long a silent server keeps a watch; then it is opened anew. Below what load balancers commonly allow.
const WATCH_TIMEOUT: Duration = Duration::from_secs(290);

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
    let seconds = u32::try_from(WATCH_TIMEOUT.as_secs()).unwrap_or(u32::MAX);
    let config = watcher::Config::default().fields(&format!("metadata.name={node}")).timeout(seconds);
    let mut has_listed_one = false;
    patiently(Box::pin(watcher(api(client), config)))
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
