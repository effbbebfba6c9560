//! What the agent sees of its NodeImage, untyped, so that a part that cannot be read hides nothing else; and what a message means for
//! the worklist, which decides. Here it only observes what happened.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt as _, stream};
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt as _};
use prewarm_api::kruise::NodeImage;
use prewarm_api::names::NODE_RUNTIME_ANNOTATION;
use prewarm_plan::agent::assignment::{Adoption, Object, Observed};
use prewarm_plan::agent::conditions::{Gate, RuntimeSearch};
use prewarm_plan::agent::runtime::Absence;
use prewarm_plan::agent::worklist::{Ending, Failure, Outcome};
use prewarm_plan::agent::{Moment, kruise};
use prewarm_plan::object::Uid;
use prewarm_process::log::chain;
use prewarm_process::watch::{Crowd, patiently};
use prewarm_runtime::{CallError, Runtime};
use serde_json::Value;
use tracing::{debug, info, warn};

use super::{Loop, Message, Worker};
use crate::check;
use crate::config::RuntimeChoice;
use crate::connection::{Found, NoRuntime, answering};
use crate::look;
use crate::metrics::{Metrics, Target};
use crate::pull::{MirrorOnly, Update, absence};
use crate::room::RoomGuard;

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
            Message::Found(found, room) => self.found(found, room),
            Message::NotFound(NoRuntime::Unanswered(_)) => self.search = RuntimeSearch::Unanswered,
            Message::NotFound(NoRuntime::NotTheNodes(_)) => self.search = RuntimeSearch::NotTheNodes,
            Message::Guarded(room) => self.guard_disk(room),
            Message::Updated(attempt, Update::Progress(bytes)) => {
                self.assignment.worklist.progressed(attempt, bytes);
            }
            Message::Updated(attempt, Update::Pulled) => self.assignment.worklist.pulled(attempt),
            Message::Ended(attempt, outcome) => self.end(attempt, outcome, now),
            Message::Looked(findings) => self.note_look(findings, now),
            Message::Written(uid, result) => {
                self.agent.metrics.wrote_status(result.is_ok());
                let news = self.reporter.written(&uid, result, now.elapsed, rand::random());
                self.tell_unkept(news);
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
        self.compare_runtime(object);
        let foreign = self.reporter.foreign(object, &self.agent.config.name);
        let observed = Observed {
            uid: object.uid().map(Uid::from),
            is_ending: object.metadata.deletion_timestamp.is_some(),
            asked: kruise::read(spec),
            reported: kruise::reported(status),
            first_sync: kruise::reported_first_sync(status),
            is_foreign: foreign.is_some(),
        };
        let adoption = self.assignment.observe(observed, now);
        if adoption.object == Object::Another {
            self.look_ahead = None;
            self.agent.events.set_uid(object.uid());
        }
        if adoption.object == Object::Same {
            self.tell_rival(foreign.as_ref().and_then(|status| status.reporter()));
        }
        if adoption.object != Object::Gone {
            self.reporter.observe(object);
        }
        self.take_over(adoption);
    }

    /// Another agent reports for this node. It is named once.
    fn tell_rival(&mut self, rival: Option<&str>) {
        if rival.is_some() && rival != self.rival.as_deref() {
            warn!(reporter = rival, "another agent reports for this node; let only one DaemonSet run");
            self.rival = rival.map(str::to_owned);
        }
    }

    /// The server does not keep all that is reported. What is news is told once, and the probes have it as long as it is so.
    fn tell_unkept(&self, news: Option<String>) {
        self.agent.health.set_remark(self.reporter.unkept());
        if let Some(news) = news {
            warn!("{news}");
            self.agent.events.record_unkept(news);
        }
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

    /// The NodeImage says which runtime the node's kubelet uses. If that is another one than this agent's, the search begins anew;
    /// what runs goes on.
    fn compare_runtime(&mut self, object: &DynamicObject) {
        let reported =
            object.annotations().get(NODE_RUNTIME_ANNOTATION).filter(|text| !text.is_empty()).cloned();
        let is_news = *self.reported.borrow() != reported;
        if !is_news {
            return;
        }
        self.reported.send_replace(reported.clone());
        let Some((runtime, _)) = &self.runtime else { return };
        if self.may_use(runtime) {
            self.used = reported.map(|_| runtime.place().to_owned());
        } else {
            info!(reported, "the node's kubelet uses another container runtime");
            self.drop_runtime();
            self.find_runtime(Duration::ZERO);
        }
    }

    /// Whether a runtime is the one that the kubelet reports, as far as that is known and asked for.
    fn may_use(&self, runtime: &Runtime) -> bool {
        let is_searched = matches!(self.agent.config.runtime, RuntimeChoice::In(_));
        let reported = self.reported.borrow();
        !is_searched || reported.as_deref().is_none_or(|reported| answering(runtime).agrees(reported))
    }

    fn found(&mut self, found: Found, room: Option<RoomGuard>) {
        let Found { runtime, reported } = found;
        let is_current = *self.reported.borrow() == reported;
        if !is_current && !self.may_use(&runtime) {
            // What it was compared with was out of date already.
            return self.find_runtime(Duration::ZERO);
        }
        self.used = self.reported.borrow().as_ref().map(|_| runtime.place().to_owned());
        self.use_runtime(runtime, room);
    }

    fn use_runtime(&mut self, runtime: Runtime, room: Option<RoomGuard>) {
        self.agent.health.has_runtime();
        self.agent.metrics.has_runtime(true);
        let watcher = tokio::spawn(check::follow_removals(runtime.clone(), self.removed.clone()));
        self.watcher = Some(Worker(watcher.abort_handle()));
        if room.is_none() {
            self.find_disk(runtime.clone());
        }
        self.runtime = Some((runtime, room));
        // What was tried out with another runtime says nothing about this one.
        self.mirrors = Arc::new(MirrorOnly::new(self.agent.config.mirrors.clone()));
        // It may keep its images on another disk.
        self.gate = Gate::default();
        self.check_at = Some(self.start.elapsed());
    }

    /// The disk that could not be watched so far is.
    fn guard_disk(&mut self, room: RoomGuard) {
        if let Some((_, guard)) = &mut self.runtime {
            *guard = Some(room);
        }
    }

    fn end(&mut self, attempt: u64, outcome: Outcome, now: Moment) {
        self.workers.remove(&attempt);
        self.note_brought(self.assignment.worklist.attempted_image(attempt).cloned(), &outcome);
        match &outcome {
            Outcome::Interrupted(absence) => self.forget_runtime(*absence, now),
            Outcome::Failed(_) | Outcome::Unserved(_) | Outcome::Succeeded { .. } => self.patience.answered(),
            Outcome::NoRoom(_) => {}
        }
        let failure = match &outcome {
            Outcome::Failed(failure) | Outcome::Unserved(failure) => Some(failure.class),
            Outcome::NoRoom(_) | Outcome::Interrupted(_) | Outcome::Succeeded { .. } => None,
        };
        let ending = match outcome {
            Outcome::NoRoom(failure) => self.stop_for_room(attempt, failure, now),
            outcome => self.assignment.worklist.ended(attempt, outcome, now, rand::random()),
        };
        if let Some(class) = failure.or_else(|| ending.as_ref()?.failure()) {
            self.agent.metrics.attempt_failed(class);
        }
        if let Some(ending) = ending {
            self.record(&ending);
        }
    }

    /// Whoever fills the disk has failed; the others wait for room.
    fn stop_for_room(&mut self, attempt: u64, failure: Failure, now: Moment) -> Option<Ending> {
        let shortage = self.assignment.worklist.ran_short(attempt, failure, now, rand::random());
        for attempt in shortage.stopped {
            self.workers.remove(&attempt);
        }
        self.discard_waiting();
        shortage.ending
    }

    fn note_look(&mut self, findings: look::Findings, now: Moment) {
        if let Some(absence) = findings.absence {
            self.forget_runtime(absence, now);
        }
        for ending in self.assignment.worklist.looked(findings.number, findings.found, now) {
            self.record(&ending);
        }
    }

    /// The runtime does not answer. That is nobody's failure; whoever wants it waits until it is found again.
    fn forget_runtime(&mut self, absence: Absence, now: Moment) {
        if self.runtime.is_some() {
            self.agent.metrics.reconnected(Target::Runtime);
            self.drop_runtime();
            let pause = self.patience.pause(absence, now.elapsed);
            self.find_runtime(pause);
        }
    }

    fn drop_runtime(&mut self) {
        self.runtime = None;
        self.search = RuntimeSearch::Unanswered;
        self.agent.metrics.has_runtime(false);
        self.agent.health.forget_runtime();
        self.disk_search = None;
    }

    pub(super) fn record(&self, ending: &Ending) {
        self.agent.metrics.ended(ending);
        self.agent.events.record(ending);
    }

    fn note(&mut self, answer: Result<check::Findings, CallError>, now: Moment) {
        self.is_checking = false;
        let findings = match answer {
            Ok(findings) => findings,
            Err(error) => {
                if let Some(absence) = absence(&error) {
                    self.forget_runtime(absence, now);
                } else {
                    debug!(%error, "the images could not be listed");
                }
                return;
            }
        };
        let losses = findings.listing.map_or(0, |listing| self.assignment.worklist.checked(&listing, now));
        self.agent.metrics.lost_images(losses);
        for (key, fingerprint) in findings.credentials {
            self.assignment.worklist.credentials_are(&key, fingerprint);
        }
    }
}

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
                    metrics.reconnected(Target::Api);
                    warn!(error = %chain(&error), "the NodeImage cannot be watched; trying again");
                    Some(Seen::Trouble)
                }
            };
            stream::iter(seen)
        })
        .flatten()
}
