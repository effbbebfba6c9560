//! Events about how tasks ended, on the NodeImage and on the jobs that wanted them (kruise D24). ImagePrefetches and NodeImageSets
//! have events of the controller only. `prewarm-process` gathers and writes them, for every process alike.

use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Client, Resource as _};
use prewarm_api::kruise::NodeImage;
use prewarm_api::names;
use prewarm_api::reference_object::ObjectReference as Owner;
use prewarm_clock::Clock;
use prewarm_plan::agent::state::{OwnerResult, Refusal};
use prewarm_plan::agent::worklist::{Ended, Ending};
use prewarm_process::event::{self, Bounds, Event, Reason, Recorder, Source, Tally, Writer};

use crate::metrics::Metrics;

const SUCCEEDED: Reason = Reason::normal(names::event::PULL_IMAGE_SUCCEED);
const FAILED: Reason = Reason::warning(names::event::PULL_IMAGE_FAILED);
const UNKEPT: Reason = Reason::warning(names::event::FIELDS_NOT_KEPT);

/// Takes the events of one node. Clones share the queue.
#[derive(Clone)]
pub struct Events {
    node: Arc<str>,
    /// The NodeImage's UID, as far as it is known.
    uid: Arc<Mutex<Option<String>>>,
    queue: Recorder,
}

/// The two ends of the queue for one node's events. The writer's [`Writer::run`] has to be spawned.
pub fn events(client: Client, node: &str, clock: Arc<dyn Clock>, metrics: Metrics) -> (Events, Writer) {
    let source = Source {
        controller: "prewarm-agent",
        instance: node.to_owned(),
        action: "PullImage",
        noun: "image",
        is_shared: |about| about.kind.as_deref() != Some(&NodeImage::kind(&())),
        bounds: Bounds::ONE_OF_MANY,
    };
    let (queue, writer) = event::recorder(client, source, clock, Arc::new(metrics));
    (Events { node: node.into(), uid: Arc::default(), queue }, writer)
}

impl Events {
    /// Which NodeImage the node has: `kubectl describe` finds its events by this.
    pub fn set_uid(&self, uid: Option<String>) {
        *self.uid.lock().unwrap_or_else(PoisonError::into_inner) = uid;
    }

    /// Records that a task has ended: on the NodeImage always, on its jobs only if it failed.
    pub fn record(&self, ending: &Ending) {
        let image = &ending.task.reference;
        let (class, message) = match &ending.result {
            Ended::Pulled { results, .. } => {
                let note = format!("{image} pulled in {:.1} s", ending.took.as_secs_f64());
                self.send(self.node_image(), SUCCEEDED, note);
                return ending.task.owners.iter().for_each(|owner| self.refuse(owner, results.as_deref()));
            }
            Ended::Present => {
                return self.send(self.node_image(), SUCCEEDED, format!("{image} was on the node already"));
            }
            Ended::Failed { class, message } => (class, message),
        };
        let reason = FAILED.of_class(class.name());
        let message = message.clone().unwrap_or_else(|| format!("cannot pull {image}"));
        for owner in &ending.task.owners {
            self.send_owner(owner, reason, &message);
        }
        self.send(self.node_image(), reason, message);
    }

    /// Records that the server does not keep all that is reported.
    pub fn record_unkept(&self, note: String) {
        self.send(self.node_image(), UNKEPT, note);
    }

    /// Tells an owner why the result does not count for it, if it does not.
    fn refuse(&self, owner: &Owner, results: Option<&[OwnerResult]>) {
        let own = results.unwrap_or_default().iter().find(|result| owner.uid.as_ref() == Some(&result.uid));
        if let Some(Refusal { class, message }) = own.and_then(|own| own.refusal.as_ref()) {
            self.send_owner(owner, FAILED.of_class(class.name()), message);
        }
    }

    /// Tells a job what went wrong on this node. The policy of agents' events knows only the group of jobs; the owners of other
    /// groups, ImagePrefetches and NodeImageSets, have events of the controller.
    fn send_owner(&self, owner: &Owner, reason: Reason, message: &str) {
        let about = ObjectReference::from(owner.clone());
        let group =
            about.api_version.as_deref().and_then(|version| version.split_once('/')).map(|(group, _)| group);
        if group == Some(&*NodeImage::group(&())) {
            self.send(about, reason, format!("on node {}: {message}", self.node));
        }
    }

    fn send(&self, about: ObjectReference, reason: Reason, note: String) {
        self.queue.record(Event { about, reason, note });
    }

    fn node_image(&self) -> ObjectReference {
        ObjectReference {
            api_version: Some(NodeImage::api_version(&()).into_owned()),
            kind: Some(NodeImage::kind(&()).into_owned()),
            name: Some(self.node.to_string()),
            uid: self.uid.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            ..ObjectReference::default()
        }
    }
}

impl Tally for Metrics {
    fn wrote(&self, is_written: bool) {
        self.wrote_event(is_written);
    }

    fn dropped(&self) {
        self.dropped_event();
    }
}

#[cfg(test)]
mod tests;
