//! Makes the objects of events, within the bounds that the API server sets.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::{Event, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Resource as _;
use prewarm_api::kruise::NodeImage;
use prewarm_api::names;
use prewarm_api::reference_object::ObjectReference as Owner;
use prewarm_plan::node::message::cut;

use super::ledger::{Line, Reason};

/// Where events on objects without a namespace are.
pub const DEFAULT_NAMESPACE: &str = "default";
/// Who tells.
const CONTROLLER: &str = "prewarm-agent";
/// What was done when it happened.
const ACTION: &str = "PullImage";
/// The server's bound on a note, in bytes.
const MOST_OF_NOTE: usize = 1024;
/// The server's bound on the name of an instance.
const MOST_OF_INSTANCE: usize = 128;
/// For so long a kind of failure is told once on a job, whichever node it is on.
const SECONDS_PER_HOUR: i64 = 3600;
/// How much of an object's name begins its events' names; with the rest it stays below the server's 253.
const MOST_OF_NAME: usize = 200;

/// The NodeImage of a node.
pub fn node_image(node: &str, uid: Option<String>) -> ObjectReference {
    ObjectReference {
        api_version: Some(NodeImage::api_version(&()).into_owned()),
        kind: Some(NodeImage::kind(&()).into_owned()),
        name: Some(node.to_owned()),
        uid,
        ..ObjectReference::default()
    }
}

/// A job, as an entry's owner references have it.
pub fn owner(owner: &Owner) -> ObjectReference {
    let Owner { api_version, kind, namespace, name, uid, resource_version, field_path } = owner.clone();
    ObjectReference { api_version, kind, namespace, name, uid, resource_version, field_path }
}

/// Makes events of one node.
pub struct Maker {
    instance: String,
    made: u64,
}

impl Maker {
    pub fn new(node: &str) -> Self {
        let end = node.floor_char_boundary(MOST_OF_INSTANCE);
        Self { instance: node[..end].to_owned(), made: 0 }
    }

    /// The event of a line. For one that repeats an earlier event, only its series matters.
    pub fn make(&mut self, line: &Line, now: Timestamp) -> Event {
        let series = line.repeats.as_ref().map(|_| EventSeries {
            count: i32::try_from(line.total).unwrap_or(i32::MAX),
            last_observed_time: MicroTime(now),
        });
        let (type_, reason) = match line.reason {
            Reason::Succeeded => ("Normal", names::event::PULL_IMAGE_SUCCEED),
            Reason::Failed(_) => ("Warning", names::event::PULL_IMAGE_FAILED),
        };
        let namespace = line.about.namespace.clone().filter(|namespace| !namespace.is_empty());
        Event {
            metadata: ObjectMeta {
                name: Some(line.repeats.clone().unwrap_or_else(|| self.name(line, now))),
                namespace: Some(namespace.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned())),
                ..ObjectMeta::default()
            },
            action: Some(ACTION.to_owned()),
            event_time: Some(MicroTime(now)),
            note: Some(note(line)),
            reason: Some(reason.to_owned()),
            regarding: Some(line.about.clone()),
            reporting_controller: Some(CONTROLLER.to_owned()),
            reporting_instance: Some(self.instance.clone()),
            series,
            type_: Some(type_.to_owned()),
            ..Event::default()
        }
    }

    /// On a job, the name is the same on all nodes for an hour, so that a thousand nodes that fail alike make one event.
    /// On the NodeImage it is one that no other event has.
    fn name(&mut self, line: &Line, now: Timestamp) -> String {
        let mut hasher = DefaultHasher::new();
        if is_shared(&line.about) {
            let hour = now.as_second() / SECONDS_PER_HOUR;
            (&line.about.namespace, &line.about.uid, class(line.reason), hour).hash(&mut hasher);
        } else {
            self.made += 1;
            (&self.instance, now.as_nanosecond(), self.made).hash(&mut hasher);
        }
        let name = line.about.name.as_deref().unwrap_or(CONTROLLER);
        let begin = name[..name.floor_char_boundary(MOST_OF_NAME)].trim_end_matches(['.', '-']);
        format!("{begin}.{:016x}", hasher.finish())
    }
}

/// Whether other nodes have things to tell about this object too.
pub fn is_shared(about: &ObjectReference) -> bool {
    about.kind.as_deref() != Some(&NodeImage::kind(&()))
}

fn class(reason: Reason) -> &'static str {
    match reason {
        Reason::Succeeded => "",
        Reason::Failed(class) => class.name(),
    }
}

fn note(line: &Line) -> String {
    match line.happenings.saturating_sub(1) {
        0 => cut(&line.note, MOST_OF_NOTE),
        1 => format!("{}, and 1 more image", cut(&line.note, MOST_OF_NOTE - 32)),
        more => format!("{}, and {more} more images", cut(&line.note, MOST_OF_NOTE - 32)),
    }
}
