//! What became of commands.

use jiff::Timestamp;
use prewarm_api::kruise::AdvancedCronJob;
use prewarm_api::names::event::RUN_REPLACED;

use super::{Crons, RunKey};
use crate::advanced_cron_job::child::Child;
use crate::ledger::command::{News, Outcome};
use crate::object::{ObjectKey, Uid};

impl Crons {
    /// An AdvancedCronJob's status was written, or not.
    pub fn cron_outcome(
        &mut self,
        key: &ObjectKey,
        uid: &Uid,
        outcome: Outcome<AdvancedCronJob>,
        now: Timestamp,
        jitter: f64,
    ) {
        let Some(cron) = self.entries.get_mut(uid) else { return };
        let (tellings, runs) = (std::mem::take(&mut cron.tellings), std::mem::take(&mut cron.runs));
        match outcome {
            Outcome::Written(object) => {
                cron.attempts.succeed();
                self.tellings.extend(tellings);
                for (fate, count) in runs {
                    *self.counted.entry(fate).or_default() += count;
                }
                self.hear_cron(object);
            }
            Outcome::Gone => self.lose_cron(key, Some(uid)),
            Outcome::Collided(object) => {
                cron.attempts.collide(now, jitter);
                self.hear_cron(*object);
            }
            Outcome::Refused(_) | Outcome::Failed => cron.attempts.fail(now, jitter),
        }
        if self.entries.contains_key(uid) {
            self.dirty.insert(uid.clone());
        }
    }

    /// A run was made, or not. What is there without a cron job to control it is `None`.
    pub fn run_created(
        &mut self,
        uid: &Uid,
        key: &RunKey,
        outcome: Outcome<Option<Child>>,
        now: Timestamp,
        jitter: f64,
    ) {
        let words = refusal(key, &outcome);
        let run = match outcome {
            Outcome::Written(run) => run,
            Outcome::Collided(run) => run.filter(|run| run.owner == *uid),
            _ => None,
        };
        if let Some(cron) = self.entries.get_mut(uid) {
            cron.is_creating = false;
            self.dirty.insert(uid.clone());
            if run.is_some() {
                cron.refusal = None;
                cron.run_attempts.succeed();
            } else {
                cron.refusal = words.or_else(|| cron.refusal.take());
                cron.run_attempts.fail(now, jitter);
            }
        }
        if run.is_some() {
            self.hear_run(key, run);
        }
    }

    /// A run was deleted, or not.
    pub fn run_deleted(
        &mut self,
        uid: &Uid,
        key: &RunKey,
        run: &Uid,
        outcome: Outcome<Option<Child>>,
        now: Timestamp,
        jitter: f64,
    ) {
        let is_another = |object: &Option<Child>| object.as_ref().is_none_or(|object| object.uid != *run);
        let is_done = match &outcome {
            Outcome::Written(_) | Outcome::Gone => true,
            Outcome::Collided(object) => is_another(object),
            Outcome::Refused(_) | Outcome::Failed => false,
        };
        if let Some(cron) = self.entries.get_mut(uid) {
            cron.deleting.remove(run);
            self.dirty.insert(uid.clone());
            if is_done {
                cron.run_attempts.succeed();
            } else {
                cron.run_attempts.fail(now, jitter);
            }
            if is_done && cron.replaced.contains(run) {
                let note = format!("deleted {}, which was still going on, for the next run", key.key.name);
                let news = News { is_warning: false, reason: RUN_REPLACED, note };
                self.tellings.push(cron.telling(news));
            }
        }
        match outcome {
            // It is on its way out.
            Outcome::Written(object) => self.hear_run(key, object),
            Outcome::Gone => self.lose_run(key, Some(run)),
            Outcome::Collided(object) => {
                if is_done {
                    // Another one has its name.
                    self.lose_run(key, Some(run));
                }
                self.hear_run(key, *object);
            }
            Outcome::Refused(_) | Outcome::Failed => {}
        }
    }
}

/// Why the API server takes no run, if it has said so.
fn refusal(key: &RunKey, outcome: &Outcome<Option<Child>>) -> Option<String> {
    let words = match outcome {
        Outcome::Refused(words) => words.clone(),
        Outcome::Collided(_) => "one of this name is there already, and not of this cron job".to_owned(),
        Outcome::Written(_) => "it was taken, but without its owner".to_owned(),
        // Nobody has said no: it was there, and is gone again, or nobody knows.
        Outcome::Gone | Outcome::Failed => return None,
    };
    Some(format!("the API server does not take {} {}: {words}", key.kind.as_str(), key.key.name))
}
