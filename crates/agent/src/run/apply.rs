//! Carries decisions out: begins attempts, reports, looks for the runtime and after what is finished. Each is a task of
//! its own that answers by message.

use std::sync::Arc;
use std::time::Duration;

use kube::Api;
use kube::api::DynamicObject;
use prewarm_plan::agent::Moment;
use prewarm_plan::agent::kruise::Status;
use prewarm_plan::agent::when::Change;
use prewarm_plan::agent::worklist::{Decision, LookAhead, Start};
use prewarm_runtime::Runtime;
use tracing::debug;

use super::observe::api;
use super::{Loop, Message, Worker};
use crate::check;
use crate::connection::Search;
use crate::look::look;
use crate::pull::{Tools, attempt};
use crate::reporter::{Due, write};
use crate::room::RoomGuard;

impl Loop {
    pub(super) fn apply(&mut self, decision: Decision) {
        for ending in decision.endings {
            self.record(&ending);
        }
        for start in decision.starts {
            self.begin(start);
        }
        if let Some(ahead) = decision.look {
            self.look(ahead);
        }
    }

    fn begin(&mut self, start: Start) {
        let Some((runtime, room)) = self.runtime.clone() else { return };
        self.agent.metrics.began(start.waited);
        self.note_begun(&start);
        let (credentials, mirrors) = (self.agent.credentials.clone(), self.mirrors.clone());
        let tools = Tools { runtime, credentials, room, mirrors };
        let sender = self.sender.clone();
        let number = start.attempt;
        debug!(attempt = number, image = %start.task.reference, "attempting");
        let worker = tokio::spawn(async move {
            // An update may be dropped while the loop is busy; a later one repeats it.
            let send = |update| drop(sender.try_send(Message::Updated(number, update)));
            let outcome = attempt(&start, &tools, send).await;
            drop(sender.send(Message::Ended(number, outcome)).await);
        });
        self.workers.insert(number, Worker(worker.abort_handle()));
    }

    fn look(&mut self, ahead: LookAhead) {
        let Some((runtime, _)) = self.runtime.clone() else { return };
        let sender = self.sender.clone();
        let worker = tokio::spawn(async move {
            let findings = look(ahead, runtime).await;
            drop(sender.send(Message::Looked(findings)).await);
        });
        self.look_ahead = Some(Worker(worker.abort_handle()));
    }

    /// The whole status as it is now.
    pub(super) fn status(&self) -> Arc<Status> {
        let room = self.guard().and_then(RoomGuard::read).map(|disk| disk.room);
        if let Some(room) = room {
            self.agent.metrics.room(room.free, room.capacity);
        }
        Arc::new(Status::of(self.assignment.report(room)).by(&self.agent.config.name))
    }

    /// Reports if it is time. A large status costs much to make, so none is made that could not leave yet.
    pub(super) fn report_if_due(&mut self, now: Moment) -> Option<Duration> {
        let change = if self.assignment.worklist.unfinished() == 0 { Change::Idle } else { Change::Step };
        let at = self.reporter.earliest(change, self.assignment.worklist.asked(), now.elapsed)?;
        if at > now.elapsed {
            return Some(at);
        }
        let status = self.status();
        self.report(&status, now)
    }

    pub(super) fn report(&mut self, status: &Arc<Status>, now: Moment) -> Option<Duration> {
        match self.reporter.due(status, now.elapsed) {
            Due::Never => None,
            Due::At(at) => Some(at),
            Due::Now(report) => {
                let (api, node, sender) = (self.api(), self.agent.config.node.clone(), self.sender.clone());
                tokio::spawn(async move {
                    let uid = report.uid.clone();
                    let result = write(api, node, report).await;
                    drop(sender.send(Message::Written(uid, result.map(Box::new))).await);
                });
                None
            }
        }
    }

    fn api(&self) -> Api<DynamicObject> {
        api(self.agent.client.clone())
    }

    /// Looks for the runtime in the background, after a pause.
    pub(super) fn find_runtime(&self, pause: Duration) {
        let (choice, min_free) = (self.agent.config.runtime.clone(), self.agent.config.min_free);
        let reported = self.reported.subscribe();
        let health = self.agent.health.clone();
        let mut search = Search::new(choice.clone(), reported, self.used.clone(), health);
        let sender = self.sender.clone();
        tokio::spawn(async move {
            tokio::time::sleep(pause).await;
            let found = loop {
                match search.next().await {
                    Ok(found) => break found,
                    Err(reason) => drop(sender.send(Message::NotFound(reason)).await),
                }
            };
            let room = RoomGuard::of(&found.runtime, &choice, min_free).await.ok();
            drop(sender.send(Message::Found(found, room)).await);
        });
    }

    /// Looks for the disk of a runtime that did not say where its images lie. Meanwhile pulls go on without a guard: an image
    /// that is there in time is worth more than a disk that is probably large enough.
    pub(super) fn find_disk(&mut self, runtime: Runtime) {
        let (choice, min_free) = (self.agent.config.runtime.clone(), self.agent.config.min_free);
        let sender = self.sender.clone();
        let worker = tokio::spawn(async move {
            let room = RoomGuard::wait_for(&runtime, &choice, min_free).await;
            drop(sender.send(Message::Guarded(room)).await);
        });
        self.disk_search = Some(Worker(worker.abort_handle()));
    }

    /// Begins a look at what is finished, when it is time.
    pub(super) fn check(&mut self, now: Moment) {
        if self.is_checking || self.check_at.is_none_or(|at| at > now.elapsed) {
            return;
        }
        self.check_at = Some(now.elapsed + check::INTERVAL);
        let Some((runtime, _)) = self.runtime.clone() else { return };
        let questions = check::Questions::of(&self.assignment.worklist, now);
        self.is_checking = true;
        let (credentials, sender) = (self.agent.credentials.clone(), self.sender.clone());
        tokio::spawn(async move {
            let answer = check::look(questions, runtime, credentials).await;
            drop(sender.send(Message::Checked(answer)).await);
        });
    }
}
