//! What a message means for the worklist, which decides; here it only observes what happened.

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use prewarm_plan::agent::assignment::{Adoption, Object, Observed};
use prewarm_plan::agent::conditions::Gate;
use prewarm_plan::agent::worklist::{Ending, Outcome};
use prewarm_plan::agent::{Moment, kruise};
use prewarm_plan::object::Uid;
use prewarm_runtime::{CallError, Runtime};
use serde_json::Value;
use tracing::{debug, info};

use super::{Loop, Message, Worker};
use crate::check;
use crate::look;
use crate::metrics::Target;
use crate::pull::Update;
use crate::room::RoomGuard;
use crate::watch::Seen;

impl Loop {
    pub(super) fn observe(&mut self, message: Message) {
        let now = self.now();
        match message {
            Message::Seen(Seen::Object(object)) => self.adopt(&object, now),
            Message::Seen(Seen::Gone) => {
                let adoption = self.assignment.forget(now);
                self.take_over(adoption);
            }
            Message::Seen(Seen::Trouble) | Message::Due => {}
            Message::Found(runtime, room) => self.use_runtime(runtime, room),
            Message::Updated(attempt, Update::Progress(bytes)) => {
                self.assignment.worklist.progressed(attempt, bytes);
            }
            Message::Updated(attempt, Update::Pulled) => self.assignment.worklist.pulled(attempt),
            Message::Ended(attempt, outcome) => self.end(attempt, outcome, now),
            Message::Looked(findings) => self.note_look(findings, now),
            Message::Written(uid, result) => {
                self.agent.metrics.wrote_status(result.is_ok());
                self.reporter.written(&uid, result, now.elapsed, rand::random());
            }
            Message::Removed => self.check_at = Some(now.elapsed),
            Message::Checked(answer) => self.note(answer, now),
            Message::Stop => {
                info!(running = self.assignment.worklist.running(), "stopping");
                self.stop_at = Some(now.elapsed + self.agent.config.drain);
            }
        }
    }

    fn adopt(&mut self, object: &DynamicObject, now: Moment) {
        let part = |name| object.data.get(name).unwrap_or(&Value::Null);
        let (spec, status) = (part("spec"), part("status"));
        let observed = Observed {
            uid: object.uid().map(Uid::from),
            is_ending: object.metadata.deletion_timestamp.is_some(),
            asked: kruise::read(spec),
            reported: kruise::reported(status),
            first_sync: kruise::reported_first_sync(status),
        };
        let adoption = self.assignment.observe(observed, now);
        if adoption.object == Object::Another {
            self.look_ahead = None;
            self.agent.events.set_uid(object.uid());
        }
        if adoption.object != Object::Gone {
            self.reporter.observe(object);
        }
        self.take_over(adoption);
    }

    fn take_over(&mut self, adoption: Adoption) {
        self.agent.health.synced();
        if adoption.object == Object::Gone {
            self.reporter.forget();
        }
        self.cancel(adoption.cancelled);
    }

    /// Stops attempts whose task was withdrawn. Nothing failed, so no failure is recorded (kruise W27).
    fn cancel(&mut self, attempts: Vec<u64>) {
        for attempt in attempts {
            if let Some(worker) = self.workers.remove(&attempt) {
                debug!(attempt, "cancelled: it is no longer wanted");
                drop(worker);
                self.agent.metrics.cancelled();
            }
        }
    }

    pub(super) fn cancel_all(&mut self) {
        let attempts = self.workers.keys().copied().collect();
        self.cancel(attempts);
    }

    fn use_runtime(&mut self, runtime: Runtime, room: Option<RoomGuard>) {
        self.agent.health.has_runtime();
        self.agent.metrics.has_runtime(true);
        let watcher = tokio::spawn(check::follow_removals(runtime.clone(), self.removed.clone()));
        self.watcher = Some(Worker(watcher.abort_handle()));
        self.runtime = Some((runtime, room));
        // It may keep its images on another disk.
        self.gate = Gate::default();
        self.check_at = Some(self.start.elapsed());
    }

    fn end(&mut self, attempt: u64, outcome: Outcome, now: Moment) {
        self.workers.remove(&attempt);
        match &outcome {
            Outcome::Interrupted => self.forget_runtime(),
            Outcome::Failed(failure) => self.agent.metrics.attempt_failed(failure.class),
            Outcome::Succeeded { .. } => {}
        }
        if let Some(ending) = self.assignment.worklist.ended(attempt, outcome, now, rand::random()) {
            self.record(&ending);
        }
    }

    fn note_look(&mut self, findings: look::Findings, now: Moment) {
        if findings.is_runtime_away {
            self.forget_runtime();
        }
        for ending in self.assignment.worklist.looked(findings.number, findings.found, now) {
            self.record(&ending);
        }
    }

    /// The runtime does not answer. That is nobody's failure; whoever wants it waits until it is found again.
    fn forget_runtime(&mut self) {
        if self.runtime.take().is_some() {
            self.agent.metrics.reconnected(Target::Runtime);
            self.agent.metrics.has_runtime(false);
            self.agent.health.forget_runtime();
            self.find_runtime();
        }
    }

    pub(super) fn record(&self, ending: &Ending) {
        self.agent.metrics.ended(ending);
        self.agent.events.record(ending);
    }

    fn note(&mut self, answer: Result<check::Findings, CallError>, now: Moment) {
        self.is_checking = false;
        let findings = match answer {
            Ok(findings) => findings,
            Err(error) if error.is_runtime_away() => return self.forget_runtime(),
            Err(error) => return debug!(%error, "the images could not be listed"),
        };
        let losses = findings.listing.map_or(0, |listing| self.assignment.worklist.checked(&listing, now));
        self.agent.metrics.lost_images(losses);
        for (key, fingerprint) in findings.credentials {
            self.assignment.worklist.credentials_are(&key, fingerprint);
        }
    }
}
