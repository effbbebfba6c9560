//! Makes the objects that the API server stores for events, within the bounds that it sets.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::{self, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use prewarm_api::text::cut;

use super::correlator::{Batch, Bounds};

/// The namespace of events on objects that have none.
pub const DEFAULT_NAMESPACE: &str = "default";
/// The server's bound on a note, in bytes.
const MOST_OF_NOTE: usize = 1024;
/// The server's bound on the name of an instance.
const MOST_OF_INSTANCE: usize = 128;
/// On a shared object, each reason is written once in this time by all processes together.
const SECONDS_PER_HOUR: i64 = 3600;
/// How much of an object's name its events' names begin with; the whole stays below the server's 253 characters.
const MOST_OF_NAME: usize = 200;

/// Who reports events, and on what.
#[derive(Clone, Debug)]
pub struct Source {
    /// The name of the program.
    pub controller: &'static str,
    /// Which of its processes, cut to the length that the server accepts.
    pub instance: String,
    /// What the program was doing when the events happened.
    pub action: &'static str,
    /// What an event is about, for the text of a batch: with `image`, it ends in "and 2 more images".
    pub noun: &'static str,
    /// Whether other processes report events on this object too. Each reason is then written once an hour, by
    /// whichever process comes first.
    pub is_shared: fn(&ObjectReference) -> bool,
    pub bounds: Bounds,
}

/// Makes the events of one process.
pub struct Maker {
    source: Source,
    made: u64,
}

impl Maker {
    pub fn new(mut source: Source) -> Self {
        source.instance.truncate(source.instance.floor_char_boundary(MOST_OF_INSTANCE));
        Self { source, made: 0 }
    }

    /// Whether other processes report events on this object too.
    pub fn is_shared(&self, about: &ObjectReference) -> bool {
        (self.source.is_shared)(about)
    }

    /// The object for a batch. If the batch repeats an earlier event, only its series matters.
    pub fn make(&mut self, batch: &Batch, now: Timestamp) -> v1::Event {
        let series = batch.repeats.as_ref().map(|_| EventSeries {
            count: i32::try_from(batch.total).unwrap_or(i32::MAX),
            last_observed_time: MicroTime(now),
        });
        let namespace = batch.about.namespace.clone().filter(|namespace| !namespace.is_empty());
        v1::Event {
            metadata: ObjectMeta {
                name: Some(batch.repeats.clone().unwrap_or_else(|| self.name(batch, now))),
                namespace: Some(namespace.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned())),
                ..ObjectMeta::default()
            },
            action: Some(self.source.action.to_owned()),
            event_time: Some(MicroTime(now)),
            note: Some(self.note(batch)),
            reason: Some(batch.reason.text.to_owned()),
            regarding: Some(batch.about.clone()),
            reporting_controller: Some(self.source.controller.to_owned()),
            reporting_instance: Some(self.source.instance.clone()),
            series,
            type_: Some(batch.reason.severity.as_str().to_owned()),
            ..v1::Event::default()
        }
    }

    /// On a shared object, all processes choose the same name for an hour, so that a thousand nodes with the same failure
    /// make one event. Otherwise the name is unique.
    fn name(&mut self, batch: &Batch, now: Timestamp) -> String {
        let mut hasher = DefaultHasher::new();
        if self.is_shared(&batch.about) {
            let hour = now.as_second() / SECONDS_PER_HOUR;
            (&batch.about.namespace, &batch.about.uid, batch.reason, hour).hash(&mut hasher);
        } else {
            self.made += 1;
            (&self.source.instance, now.as_nanosecond(), self.made).hash(&mut hasher);
        }
        let name = batch.about.name.as_deref().unwrap_or(self.source.controller);
        let begin = name[..name.floor_char_boundary(MOST_OF_NAME)].trim_end_matches(['.', '-']);
        format!("{begin}.{:016x}", hasher.finish())
    }

    fn note(&self, batch: &Batch) -> String {
        let noun = self.source.noun;
        match batch.count.saturating_sub(1) {
            0 => cut(&batch.note, MOST_OF_NOTE),
            1 => format!("{}, and 1 more {noun}", cut(&batch.note, MOST_OF_NOTE - 64)),
            more => format!("{}, and {more} more {noun}s", cut(&batch.note, MOST_OF_NOTE - 64)),
        }
    }
}
