//! What follows from the outcome of a write to an AdvancedCronJob or to one of its runs.

use jiff::Timestamp;
use prewarm_api::names::event::RUN_REPLACED;

use super::record::Cron;
use crate::cluster::command::{Notice, Outcome, Settled, Target, Ticket};
use crate::cluster::{Kernel, Object};
use crate::object::Uid;

impl Kernel {
    /// An AdvancedCronJob's status was written, or not.
    pub(super) fn settle_cron(&mut self, uid: &Uid, settled: Settled) {
        let Settled { ticket, outcome, now, jitter } = settled;
        let Some(cron) = self.crons.all.get_mut(uid) else { return };
        outcome.note(&mut cron.attempts, now, jitter);
        let answer = match &outcome {
            Outcome::Written(Object::AdvancedCronJob(object)) => {
                cron.echo.settle(object.status.clone(), now, jitter)
            }
            _ => cron.echo.fail(),
        };
        let (about, complaint) = (cron.reference(), outcome.complaint(&mut cron.attempts, now));
        let (events, runs) = (std::mem::take(&mut cron.events), std::mem::take(&mut cron.runs));
        if matches!(outcome, Outcome::Written(_)) {
            self.events.extend(events);
            for (fate, count) in runs {
                *self.crons.counted.entry(fate).or_default() += count;
            }
        }
        self.complain(about.clone(), complaint, now);
        self.note_answer(ticket.kind, about, answer.as_ref());
        self.learn(&ticket, outcome, now);
        if self.crons.all.get(uid).is_some() {
            self.agenda.mark(Target::Cron(uid.clone()));
        }
    }

    /// A run was made or deleted, or not.
    pub(super) fn settle_run(&mut self, uid: &Uid, settled: Settled) {
        let Settled { ticket, outcome, now, jitter } = settled;
        let is_replaced = is_another(&ticket, &outcome);
        if let Some(cron) = self.crons.all.get_mut(uid) {
            self.agenda.mark(Target::Cron(uid.clone()));
            match &ticket.uid {
                None => cron.run_created(uid, &ticket, &outcome, now, jitter),
                Some(run) => {
                    let notice = cron.run_deleted(run, &ticket, &outcome, now, jitter);
                    self.events.extend(notice.map(|notice| cron.event(notice)));
                }
            }
            let (about, complaint) = (cron.reference(), outcome.complaint(&mut cron.run_attempts, now));
            self.complain(about, complaint, now);
        }
        if is_replaced {
            // Another object has its name.
            self.learn(&ticket, Outcome::Gone, now);
        }
        self.learn(&ticket, outcome, now);
    }
}

/// Whether the object that was to be deleted is gone, and another one has its name.
fn is_another(ticket: &Ticket, outcome: &Outcome<Object>) -> bool {
    let Outcome::Collided(object) = outcome else { return false };
    ticket.uid.as_ref().is_some_and(|uid| object.run().is_none_or(|run| run.uid != *uid))
}

impl Cron {
    fn run_created(
        &mut self,
        uid: &Uid,
        ticket: &Ticket,
        outcome: &Outcome<Object>,
        now: Timestamp,
        jitter: f64,
    ) {
        self.is_creating = false;
        let run = outcome.object().and_then(Object::run);
        let is_made = match outcome {
            Outcome::Written(_) => run.is_some(),
            _ => run.is_some_and(|run| run.owner == *uid),
        };
        if is_made {
            self.refusal = None;
            self.run_attempts.succeed(now);
        } else {
            self.refusal = refusal(ticket, outcome).or_else(|| self.refusal.take());
            outcome.pause(&mut self.run_attempts, now, jitter);
        }
    }

    fn run_deleted(
        &mut self,
        run: &Uid,
        ticket: &Ticket,
        outcome: &Outcome<Object>,
        now: Timestamp,
        jitter: f64,
    ) -> Option<Notice> {
        self.deleting.remove(run);
        let is_done = matches!(outcome, Outcome::Written(_) | Outcome::Gone) || is_another(ticket, outcome);
        if !is_done {
            outcome.pause(&mut self.run_attempts, now, jitter);
            return None;
        }
        self.run_attempts.succeed(now);
        let note = format!("deleted {}, which was still going on, for the next run", ticket.key.name);
        self.replaced.contains(run).then(|| Notice::normal(RUN_REPLACED, note))
    }
}

/// Why the API server takes no run, if it has said so.
fn refusal(ticket: &Ticket, outcome: &Outcome<Object>) -> Option<String> {
    let words = match outcome {
        Outcome::Refused(words) => words.clone(),
        Outcome::Collided(_) => "one of this name is there already, and not of this cron job".to_owned(),
        Outcome::Written(_) => "it was taken, but without its owner".to_owned(),
        // Nobody has said no: it was there, and is gone again, or nobody knows.
        Outcome::Gone | Outcome::Failed(_) => return None,
    };
    let kind = super::crons::RunKey::of(ticket.kind, &ticket.key).map_or("run", |run| run.kind.as_str());
    Some(format!("the API server does not take {kind} {}: {words}", ticket.key.name))
}
