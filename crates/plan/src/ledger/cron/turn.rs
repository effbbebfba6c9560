//! The pass over an AdvancedCronJob.

use jiff::Timestamp;
use serde_json::json;

use super::entry::Cron;
use super::{Crons, RunKey};
use crate::advanced_cron_job::{Decision, Observed, decide, run};
use crate::ledger::command::{Command, Write};
use crate::ledger::turn::{guarded, replace_status};
use crate::object::{ObjectKey, Uid};
use crate::time::earliest;

impl Crons {
    /// Looks at every cron job that has changed or is due, and decides what to do.
    pub fn turn(&mut self, now: Timestamp, commands: &mut Vec<Command>) {
        while let Some(uid) = self.timers.take_due(now) {
            self.dirty.insert(uid);
        }
        while let Some(uid) = self.dirty.pop_first() {
            self.pass(&uid, now, commands);
        }
        commands.extend(self.tellings.drain(..).map(Command::Tell));
    }

    fn pass(&mut self, uid: &Uid, now: Timestamp, commands: &mut Vec<Command>) {
        self.passes += 1;
        let Some(cron) = self.entries.get(uid).filter(|cron| self.knows_runs_of(cron)) else { return };
        let observed = Observed {
            cron: &cron.object,
            schedule: &cron.schedule,
            children: self.runs_of(uid),
            is_creating: cron.is_creating,
            refusal: cron.refusal.as_deref(),
            replaced: &cron.replaced,
            now,
        };
        let decision = decide(&observed);
        let Some(cron) = self.entries.get_mut(uid) else { return };
        let mut wake_at = decision.wake_at;
        if cron.run_attempts.is_blocked(now) {
            wake_at = earliest(wake_at, cron.run_attempts.pause_ends());
        } else {
            cron.write_runs(uid, &decision, commands);
        }
        wake_at = earliest(wake_at, cron.write(uid, decision, now, commands));
        self.timers.set(uid.clone(), wake_at);
    }
}

impl Cron {
    /// Makes and deletes runs, as far as it was decided.
    fn write_runs(&mut self, uid: &Uid, decision: &Decision, commands: &mut Vec<Command>) {
        let Some(kind) = self.kind() else { return };
        self.replaced.extend(decision.replace.iter().map(|(_, run)| run.clone()));
        for (name, run) in decision.replace.iter().chain(&decision.prune) {
            if self.deleting.insert(run.clone()) {
                let key = ObjectKey { namespace: self.key.namespace.clone(), name: name.to_string() };
                let key = RunKey::new(kind, key);
                commands.push(Command::DeleteRun { cron: uid.clone(), key, uid: run.clone() });
            }
        }
        if let Some(at) = decision.create {
            self.is_creating = true;
            let name = run::name(&self.object, at);
            let key = RunKey::new(kind, ObjectKey { namespace: self.key.namespace.clone(), name });
            let run = Box::new(run::make(&self.object, kind, at));
            commands.push(Command::CreateRun { cron: uid.clone(), key, run });
        }
    }

    /// Writes the status, and says when to look again.
    fn write(
        &mut self,
        uid: &Uid,
        decision: Decision,
        now: Timestamp,
        commands: &mut Vec<Command>,
    ) -> Option<Timestamp> {
        let status = decision.status?;
        if self.attempts.is_blocked(now) {
            return self.attempts.pause_ends();
        }
        self.runs = decision.runs;
        self.tellings = decision.news.into_iter().map(|news| self.telling(news)).collect();
        let write = Write::Status(guarded(&self.object.metadata, replace_status(json!(status))));
        self.attempts.begin();
        commands.push(Command::Cron { uid: uid.clone(), key: self.key.clone(), write });
        None
    }
}
