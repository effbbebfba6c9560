//! What a candidate knows of the Lease: what it read, what it wrote, and since when that has not changed.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease as Object;
use kube::ResourceExt as _;
use kube::api::ObjectMeta;
use prewarm_plan::lease::Observed;

/// What is known. Empty before the first look.
#[derive(Debug, Default)]
pub struct View {
    seen: Option<Seen>,
    /// Whether this process wrote it last, as far as is known, so that it need not be read.
    is_own: bool,
    /// Whether a write of this process may have made it the holder, be it without an answer.
    may_hold: bool,
    /// The last trouble that was logged.
    complaint: Option<String>,
}

#[derive(Debug)]
struct Seen {
    object: Option<Object>,
    since: Duration,
}

impl View {
    /// What is known, if this process wrote it last.
    pub fn current(&self) -> Option<Observed> {
        self.seen.as_ref().filter(|_| self.is_own).map(Seen::observed)
    }

    /// The server has it like this, or has none. `now` is after the answer: what is in it may be as young as that.
    pub fn saw(&mut self, object: Option<Object>, now: Duration) -> Observed {
        let last = self.seen.take();
        let is_same =
            last.as_ref().is_some_and(|last| version(last.object.as_ref()) == version(object.as_ref()));
        let since = last.filter(|_| is_same).map_or(now, |last| last.since);
        self.seen.insert(Seen { object, since }).observed()
    }

    /// A write leaves: whatever becomes of it, what is known may be old. Returns what it has to write over.
    pub fn writes(&mut self) -> Option<ObjectMeta> {
        (self.is_own, self.may_hold) = (false, true);
        self.seen.as_ref()?.object.as_ref().map(|object| object.metadata.clone())
    }

    /// The write was taken, and the server has it like this.
    pub fn wrote(&mut self, object: Object, now: Duration) {
        self.saw(Some(object), now);
        self.is_own = true;
    }

    /// Whether the Lease may be this process's own.
    pub fn may_hold(&self) -> bool {
        self.may_hold
    }

    /// The Lease is certainly not this process's own.
    pub fn lost(&mut self) {
        (self.is_own, self.may_hold) = (false, false);
    }

    /// Remembers the trouble there is; whether it is another one than before.
    pub fn is_other_complaint(&mut self, complaint: Option<String>) -> bool {
        let is_other = self.complaint != complaint;
        self.complaint = complaint;
        is_other
    }
}

impl Seen {
    fn observed(&self) -> Observed {
        // A Lease without a spec says as much as one with an empty spec.
        let lease = self.object.as_ref().map(|object| object.spec.clone().unwrap_or_default());
        Observed { lease, since: self.since }
    }
}

/// What differs between any two states of the Lease.
fn version(object: Option<&Object>) -> Option<(Option<String>, Option<String>)> {
    object.map(|object| (object.uid(), object.resource_version()))
}
