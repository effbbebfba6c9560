//! Sends the node's status: the whole of it, one write at a time, as often as is worth it, and the latest in the end.
//!
//! What the server does not keep of it is not sent again and again (`object::echo`), and neither is what somebody else
//! undoes (`object::attempts`).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use prewarm_api::kruise::NodeImageStatus;
use prewarm_plan::agent::kruise::Status;
use prewarm_plan::agent::when::{Change, Coalescer};
use prewarm_plan::object::attempts::Attempts;
use prewarm_plan::object::echo::Echo;
use prewarm_plan::object::unknown::Unknown;
use prewarm_plan::time::after;
use prewarm_process::log::chain;
use serde::Deserialize as _;
use serde_json::{Value, json};
use tracing::{debug, warn};

mod answer;

/// How long one write may take before the latest state is tried instead.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// What is known of the stored status.
#[derive(Default)]
pub struct Reporter {
    /// Which object is reported to. Another one with the same name is another node's life.
    uid: Option<String>,
    /// What the server holds, as far as is known; nothing if that cannot be read.
    stored: Option<Arc<Status>>,
    /// What a newer version wrote into it, which stays there.
    unknown: Option<Unknown>,
    /// What was written last, which the server holds soon or already.
    sent: Option<Arc<Status>>,
    /// The resource version of the newest state that is known.
    version: u64,
    coalescer: Coalescer,
    /// What comes back of what is written.
    echo: Echo<NodeImageStatus>,
    /// How often the same was written. Trouble is counted apart, because its pauses are those of attempts to pull.
    attempts: Attempts,
    is_writing: bool,
    failures: u32,
    not_before: Duration,
    /// Fields that the server does not keep.
    unkept: BTreeSet<String>,
}

/// One write to carry out.
pub struct Report {
    pub uid: String,
    pub status: Value,
}

impl Reporter {
    /// Takes note of the object as the watch shows it. States older than our last write are ignored.
    pub fn observe(&mut self, object: &DynamicObject) {
        let version = version_of(object);
        let uid = object.uid();
        if uid != self.uid {
            let unkept = std::mem::take(&mut self.unkept);
            *self = Self { uid, is_writing: self.is_writing, unkept, ..Self::default() };
        } else if version < self.version {
            return;
        }
        self.version = version;
        self.stored = self.status_of(object);
        self.unknown = unknown_of(object);
    }

    /// The status that an object shows, if another program wrote it than the one of this name. What is older than our last
    /// write says nothing.
    pub fn foreign(&self, object: &DynamicObject, name: &str) -> Option<Arc<Status>> {
        let is_late = object.uid() == self.uid && version_of(object) < self.version;
        let is_foreign = |status: &Arc<Status>| !status.is_own() && status.reporter() != Some(name);
        self.status_of(object).filter(is_foreign).filter(|_| !is_late)
    }

    /// There is no object to report to.
    pub fn forget(&mut self) {
        self.uid = None;
    }

    /// When a status with this change could leave, if there is anybody to send it to.
    pub fn earliest(&mut self, change: Change, tags: usize, now: Duration) -> Option<Duration> {
        let is_free = self.uid.is_some() && !self.is_writing;
        let at = is_free.then(|| self.coalescer.due(change, tags, now)).flatten()?;
        Some(at.max(self.not_before))
    }

    /// Whether this status is worth a write now, or when it will be.
    pub fn due(&mut self, status: &Arc<Status>, now: Duration) -> Due {
        let Some(uid) = self.uid.clone() else { return Due::Never };
        if self.is_writing {
            return Due::Never;
        }
        let change = self.change(status);
        match self.due_at(change, status, now).map(|at| at.max(self.not_before)) {
            None => Due::Never,
            Some(at) if at > now => Due::At(at),
            Some(_) => {
                self.is_writing = true;
                self.coalescer.sent(change, now);
                self.sent = Some(status.clone());
                self.echo.begin(status.wire().clone());
                self.attempts.begin(status.fingerprint());
                let mut wire = json!(**status);
                if let Some(unknown) = &self.unknown {
                    unknown.restore(&mut wire);
                }
                Due::Now(Report { uid, status: wire })
            }
        }
    }

    fn due_at(&mut self, change: Change, status: &Status, now: Duration) -> Option<Duration> {
        if change == Change::Nothing {
            return self.echo.again_at().map(elapsed);
        }
        let repeats_at = self.attempts.repeats_at(status.fingerprint(), moment(now)).map(elapsed);
        let at = self.coalescer.due(change, status.report().tasks.len(), now)?;
        Some(repeats_at.map_or(at, |repeats_at| at.max(repeats_at)))
    }

    /// Whether the server holds this status.
    pub fn is_settled(&self, status: &Status) -> bool {
        !self.is_writing && (self.uid.is_none() || self.change(status) == Change::Nothing)
    }

    fn change(&self, status: &Status) -> Change {
        match &self.stored {
            Some(stored) => stored.change(status),
            None if status.report().is_idle() => Change::Idle,
            None => Change::Step,
        }
    }

    /// The stored status; one that makes no sense is replaced like one that is absent.
    fn status_of(&self, object: &DynamicObject) -> Option<Arc<Status>> {
        Status::read(object.data.get("status")?, &self.echo, self.stored.iter().chain(&self.sent))
    }
}

/// When a report leaves.
pub enum Due {
    /// There is nothing to say, or nobody to say it to.
    Never,
    /// Not yet.
    At(Duration),
    /// Now.
    Now(Report),
}

/// Why a write did not happen.
#[derive(Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The NodeImage is gone, or another one has its name.
    OtherObject,
    /// Nobody answered, or not in time.
    Unanswered,
    /// Anything else: worth trying again.
    Failed,
}

/// Carries out one write: the whole status at once, on exactly the object that was meant.
pub async fn write(api: Api<DynamicObject>, node: String, report: Report) -> Result<DynamicObject, Trouble> {
    let patch = json!([
        { "op": "test", "path": "/metadata/uid", "value": report.uid },
        { "op": "add", "path": "/status", "value": report.status },
    ]);
    let patch: json_patch::Patch = serde_json::from_value(patch).map_err(|_| Trouble::Failed)?;
    let params = PatchParams::default();
    let patch = Patch::Json::<()>(patch);
    let sent = api.patch_status(&node, &params, &patch);
    match tokio::time::timeout(WRITE_TIMEOUT, sent).await {
        Ok(Ok(object)) => {
            debug!(node, "reported");
            Ok(object)
        }
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => Err(Trouble::OtherObject),
        // A 422 without causes is a failed test; with causes, the server refuses the status itself.
        Ok(Err(kube::Error::Api(status))) if status.code == 422 && has_no_causes(&status) => {
            Err(Trouble::OtherObject)
        }
        Ok(Err(error)) => {
            warn!(node, error = %chain(&error), "the status could not be written; trying again");
            Err(if matches!(error, kube::Error::Api(_)) { Trouble::Failed } else { Trouble::Unanswered })
        }
        Err(_) => {
            warn!(node, "the API server did not answer to the status in time; trying again");
            Err(Trouble::Unanswered)
        }
    }
}

/// What the status of an object says that this version cannot read.
fn unknown_of(object: &DynamicObject) -> Option<Unknown> {
    let stored = object.data.get("status")?;
    let known = NodeImageStatus::deserialize(stored).ok()?;
    Unknown::of(stored, &json!(known))
}

fn has_no_causes(status: &kube::core::Status) -> bool {
    status.details.as_ref().is_none_or(|details| details.causes.is_empty())
}

/// The time since the agent began as a moment: what is shared with the controller counts in those.
fn moment(elapsed: Duration) -> Timestamp {
    after(Timestamp::UNIX_EPOCH, elapsed)
}

fn elapsed(moment: Timestamp) -> Duration {
    Duration::try_from(moment.duration_since(Timestamp::UNIX_EPOCH)).unwrap_or_default()
}

/// Resource versions of one object grow; one that is no number is taken as it comes.
fn version_of(object: &DynamicObject) -> u64 {
    object.resource_version().and_then(|version| version.parse().ok()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use prewarm_plan::agent::report;
    use prewarm_plan::agent::state::{Phase, TaskState};
    use prewarm_plan::backoff;
    use prewarm_plan::object::ImageKey;

    use super::*;

    fn object() -> DynamicObject {
        let object = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage",
            "metadata": { "name": "node-1", "uid": "first", "resourceVersion": "1" },
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn an_unreachable_server_is_tried_again_within_seconds_however_long_it_was_away() {
        let mut reporter = Reporter::default();
        reporter.observe(&object());
        let status = Arc::new(Status::of(report::Report::new(vec![], None, None)));
        let mut now = Duration::from_secs(1);
        let mut pauses = Vec::new();
        for _ in 0..6 {
            assert!(matches!(reporter.due(&status, now), Due::Now(_)));
            reporter.written("first", Err(Trouble::Unanswered), now, 0.0);
            let Due::At(at) = reporter.due(&status, now) else { panic!("the report is given up") };
            pauses.push(at.saturating_sub(now).as_secs());
            now = at;
        }
        assert_eq!(pauses, [1, 2, 4, 5, 5, 5]);
    }

    #[test]
    fn a_denied_object_is_tried_again_until_the_watch_says_that_it_is_gone() {
        let mut reporter = Reporter::default();
        reporter.observe(&object());
        let key = ImageKey { name: "web".to_owned(), tag: "v1".to_owned() };
        let task = TaskState::new(key, 1, Phase::Succeeded);
        let status = Arc::new(Status::of(report::Report::new(vec![task], None, None)));
        let now = Duration::from_secs(1);
        assert!(matches!(reporter.due(&status, now), Due::Now(_)));
        reporter.written("first", Err(Trouble::OtherObject), now, 0.0);
        let Due::At(at) = reporter.due(&status, now) else { panic!("the report is given up") };
        assert_eq!(at, now + backoff::FIRST_PAUSE);
        reporter.forget();
        assert!(matches!(reporter.due(&status, at), Due::Never));
    }
}
