//! Makes the objects of events, within the bounds that the API server sets.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::{Event, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use prewarm_api::text::cut;

use super::ledger::{Bounds, Line};

/// Where events on objects without a namespace are.
pub const DEFAULT_NAMESPACE: &str = "default";
/// The server's bound on a note, in bytes.
const MOST_OF_NOTE: usize = 1024;
/// The server's bound on the name of an instance.
const MOST_OF_INSTANCE: usize = 128;
/// For so long a kind of happening is told once on a shared object, whichever process it happened to.
const SECONDS_PER_HOUR: i64 = 3600;
/// How much of an object's name begins its events' names; with the rest it stays below the server's 253.
const MOST_OF_NAME: usize = 200;

/// Who tells, and of what.
#[derive(Clone, Debug)]
pub struct Teller {
    /// The program.
    pub controller: &'static str,
    /// Which of its processes; cut to what the server takes.
    pub instance: String,
    /// What was done when things happened.
    pub action: &'static str,
    /// What it happens to: several happenings become "and 2 more images" with `image`.
    pub noun: &'static str,
    /// Whether other processes have things to tell about this object too. Such an object hears once an hour of each
    /// reason, whoever comes first.
    pub is_shared: fn(&ObjectReference) -> bool,
    /// How much it may tell.
    pub bounds: Bounds,
}

/// Makes the events of one process.
pub struct Maker {
    teller: Teller,
    made: u64,
}

impl Maker {
    pub fn new(mut teller: Teller) -> Self {
        teller.instance.truncate(teller.instance.floor_char_boundary(MOST_OF_INSTANCE));
        Self { teller, made: 0 }
    }

    /// Whether other processes have things to tell about this object too.
    pub fn is_shared(&self, about: &ObjectReference) -> bool {
        (self.teller.is_shared)(about)
    }

    /// The event of a line. For one that repeats an earlier event, only its series matters.
    pub fn make(&mut self, line: &Line, now: Timestamp) -> Event {
        let series = line.repeats.as_ref().map(|_| EventSeries {
            count: i32::try_from(line.total).unwrap_or(i32::MAX),
            last_observed_time: MicroTime(now),
        });
        let namespace = line.about.namespace.clone().filter(|namespace| !namespace.is_empty());
        Event {
            metadata: ObjectMeta {
                name: Some(line.repeats.clone().unwrap_or_else(|| self.name(line, now))),
                namespace: Some(namespace.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned())),
                ..ObjectMeta::default()
            },
            action: Some(self.teller.action.to_owned()),
            event_time: Some(MicroTime(now)),
            note: Some(self.note(line)),
            reason: Some(line.reason.text.to_owned()),
            regarding: Some(line.about.clone()),
            reporting_controller: Some(self.teller.controller.to_owned()),
            reporting_instance: Some(self.teller.instance.clone()),
            series,
            type_: Some(line.reason.severity.as_str().to_owned()),
            ..Event::default()
        }
    }

    /// On a shared object, the name is the same in all processes for an hour, so that a thousand nodes that fail alike
    /// make one event. Otherwise it is one that no other event has.
    fn name(&mut self, line: &Line, now: Timestamp) -> String {
        let mut hasher = DefaultHasher::new();
        if self.is_shared(&line.about) {
            let hour = now.as_second() / SECONDS_PER_HOUR;
            (&line.about.namespace, &line.about.uid, line.reason, hour).hash(&mut hasher);
        } else {
            self.made += 1;
            (&self.teller.instance, now.as_nanosecond(), self.made).hash(&mut hasher);
        }
        let name = line.about.name.as_deref().unwrap_or(self.teller.controller);
        let begin = name[..name.floor_char_boundary(MOST_OF_NAME)].trim_end_matches(['.', '-']);
        format!("{begin}.{:016x}", hasher.finish())
    }

    fn note(&self, line: &Line) -> String {
        let noun = self.teller.noun;
        match line.happenings.saturating_sub(1) {
            0 => cut(&line.note, MOST_OF_NOTE),
            1 => format!("{}, and 1 more {noun}", cut(&line.note, MOST_OF_NOTE - 64)),
            more => format!("{}, and {more} more {noun}s", cut(&line.note, MOST_OF_NOTE - 64)),
        }
    }
}
