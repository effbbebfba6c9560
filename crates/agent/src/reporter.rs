//! Sends the node's status: the whole of it, one write at a time, as often as is worth it, and the latest in the end.

use std::sync::Arc;
use std::time::Duration;

use kube::api::{DynamicObject, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use prewarm_plan::agent::kruise::Status;
use prewarm_plan::agent::when::{Change, Coalescer};
use prewarm_plan::backoff;
use prewarm_process::log::chain;
use serde_json::json;
use tracing::{debug, warn};

/// How long one write may take before the latest state is tried instead.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// What is known of the stored status.
#[derive(Default)]
pub struct Reporter {
    /// Which object is reported to. Another one with the same name is another node's life.
    uid: Option<String>,
    /// What the server holds, as far as is known; nothing if that cannot be read.
    stored: Option<Arc<Status>>,
    /// What was written last, which the server holds soon or already.
    sent: Option<Arc<Status>>,
    /// The resource version of the newest state that is known.
    version: u64,
    coalescer: Coalescer,
    is_writing: bool,
    failures: u32,
    not_before: Duration,
}

/// One write to carry out.
pub struct Report {
    pub uid: String,
    pub status: Arc<Status>,
}

impl Reporter {
    /// Takes note of the object as the watch shows it. States older than our last write are ignored.
    pub fn observe(&mut self, object: &DynamicObject) {
        let version = version_of(object);
        let uid = object.uid();
        if uid != self.uid {
            *self = Self { uid, is_writing: self.is_writing, ..Self::default() };
        } else if version < self.version {
            return;
        }
        self.version = version;
        self.stored = self.status_of(object);
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
        match self.coalescer.due(change, status.report().tasks.len(), now).map(|at| at.max(self.not_before)) {
            None => Due::Never,
            Some(at) if at > now => Due::At(at),
            Some(_) => {
                self.is_writing = true;
                self.coalescer.sent(change, now);
                self.sent = Some(status.clone());
                Due::Now(Report { uid, status: status.clone() })
            }
        }
    }

    /// Takes note of how a write to the object with this UID ended. The watch may know another object by now, and
    /// about that one the answer says nothing.
    pub fn written(
        &mut self,
        uid: &str,
        result: Result<Box<DynamicObject>, Trouble>,
        now: Duration,
        jitter: f64,
    ) {
        self.is_writing = false;
        let is_known = self.uid.as_deref() == Some(uid);
        match result {
            Ok(object) if is_known => {
                self.failures = 0;
                self.observe(&object);
            }
            Ok(_) | Err(Trouble::OtherObject) if !is_known => {}
            // If the object is gone, the watch will say so. If it does not, the answer was wrong: while definitions are
            // changed, an API server may deny what it has, and a report that waited for the watch would wait for ever.
            Ok(_) | Err(Trouble::OtherObject | Trouble::Failed) => {
                self.failures = self.failures.saturating_add(1);
                self.not_before = now + backoff::pause(self.failures, jitter);
            }
        }
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
        Status::read(object.data.get("status")?, self.stored.iter().chain(&self.sent))
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
    /// Anything else: worth trying again.
    Failed,
}

/// Carries out one write: the whole status at once, on exactly the object that was meant.
pub async fn write(api: Api<DynamicObject>, node: String, report: Report) -> Result<DynamicObject, Trouble> {
    let patch = json!([
        { "op": "test", "path": "/metadata/uid", "value": report.uid },
        { "op": "add", "path": "/status", "value": *report.status },
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
            Err(Trouble::Failed)
        }
        Err(_) => {
            warn!(node, "the API server did not answer to the status in time; trying again");
            Err(Trouble::Failed)
        }
    }
}

fn has_no_causes(status: &kube::core::Status) -> bool {
    status.details.as_ref().is_none_or(|details| details.causes.is_empty())
}

/// Resource versions of one object grow; one that is no number is taken as it comes.
fn version_of(object: &DynamicObject) -> u64 {
    object.resource_version().and_then(|version| version.parse().ok()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use prewarm_plan::agent::report;
    use prewarm_plan::agent::state::{Phase, TaskState};
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
