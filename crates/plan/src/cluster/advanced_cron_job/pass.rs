//! The pass over an AdvancedCronJob.

use jiff::Timestamp;
use serde_json::json;

use super::crons::{Crons, made_by};
use super::record::Cron;
use super::{Decision, Observed, decide, run};
use crate::cluster::command::{Command, Settled, Target, Ticket, Verb, Write};
use crate::cluster::guard::{guarded, replace_status};
use crate::cluster::interface::Pass;
use crate::cluster::kind::Subject;
use crate::cluster::{Kernel, Kind};
use crate::object::{ObjectKey, OwnerKey, Uid};
use crate::time::earliest;

impl Pass for Crons {
    type Id = Uid;

    fn pass(kernel: &mut Kernel, uid: &Uid, now: Timestamp, commands: &mut Vec<Command>) {
        kernel.cron_pass(uid, now, commands);
    }

    fn settle(kernel: &mut Kernel, uid: &Uid, settled: Settled) {
        if settled.ticket.kind == Kind::AdvancedCronJob {
            kernel.settle_cron(uid, settled);
        } else {
            kernel.settle_run(uid, settled);
        }
    }
}

impl Kernel {
    fn cron_pass(&mut self, uid: &Uid, now: Timestamp, commands: &mut Vec<Command>) {
        self.passes.count(Subject::Cron);
        let crons = &self.crons;
        let Some(cron) = crons.all.get(uid).filter(|cron| crons.knows_runs_of(cron)) else { return };
        let observed = Observed {
            cron: &cron.object,
            schedule: &cron.schedule,
            children: crons.runs_of(&OwnerKey::new(&cron.key.namespace, uid)),
            is_creating: cron.is_creating,
            refusal: cron.refusal.as_deref(),
            replaced: &cron.replaced,
            now: self.time_of_day(now),
        };
        let decision = decide(&observed);
        let due_at = decision.wake_at.map(|at| self.moment_of(at));
        let Some(cron) = self.crons.all.get_mut(uid) else { return };
        let mut wake_at = due_at;
        if cron.run_attempts.is_blocked(now) {
            wake_at = earliest(wake_at, cron.run_attempts.pause_ends());
        } else {
            cron.write_runs(uid, &decision, commands);
        }
        wake_at = earliest(wake_at, cron.write(uid, decision, now, commands));
        self.agenda.wake(Target::Cron(uid.clone()), wake_at);
    }
}

impl Cron {
    /// Makes and deletes runs, as far as it was decided.
    fn write_runs(&mut self, uid: &Uid, decision: &Decision, commands: &mut Vec<Command>) {
        let Some(kind) = self.kind() else { return };
        self.replaced.extend(decision.replace.iter().map(|(_, run)| run.clone()));
        for (name, run) in decision.replace.iter().chain(&decision.prune) {
            if self.deleting.insert(run.clone()) {
                let ticket = self.ticket(uid, made_by(kind), name.to_string(), Some(run.clone()));
                commands.push(Command::Write(Write { ticket, verb: Verb::Delete }));
            }
        }
        if let Some(at) = decision.create {
            self.is_creating = true;
            let ticket = self.ticket(uid, made_by(kind), run::name(&self.object, at), None);
            let verb = Verb::Create(Box::new(run::make(&self.object, kind, at)));
            commands.push(Command::Write(Write { ticket, verb }));
        }
    }

    fn ticket(&self, uid: &Uid, kind: Kind, name: String, object: Option<Uid>) -> Ticket {
        let key = ObjectKey { namespace: self.key.namespace.clone(), name };
        Ticket { asker: Target::Cron(uid.clone()), kind, key, uid: object }
    }

    /// Writes the status, and says when to look again.
    fn write(
        &mut self,
        uid: &Uid,
        decision: Decision,
        now: Timestamp,
        commands: &mut Vec<Command>,
    ) -> Option<Timestamp> {
        let again_at = self.echo.again_at().filter(|at| *at > now);
        let Some(status) = decision.status.or_else(|| self.echo.again(now)) else { return again_at };
        if self.attempts.is_blocked(now) {
            return self.attempts.pause_ends();
        }
        let verb = Verb::PatchStatus(guarded(&self.object.metadata, replace_status(json!(status))));
        if let Some(at) = self.attempts.repeats_at(verb.fingerprint(), now) {
            return Some(at);
        }
        self.runs = decision.runs;
        self.events = decision.notices.into_iter().map(|notice| self.event(notice)).collect();
        self.echo.begin(status);
        self.attempts.begin(verb.fingerprint());
        let ticket = self.ticket(uid, Kind::AdvancedCronJob, self.key.name.clone(), Some(uid.clone()));
        commands.push(Command::Write(Write { ticket, verb }));
        None
    }
}
