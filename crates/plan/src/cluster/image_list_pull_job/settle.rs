//! What follows from the outcome of a write to an ImageListPullJob or to one of its children.

use jiff::Timestamp;
use prewarm_api::names::event::CHILD_REFUSED;

use super::child::has_template;
use crate::cluster::command::{Notice, Outcome, Settled, Target};
use crate::cluster::{Kernel, Object};
use crate::object::Uid;

/// Why there is no child although the API server took one.
const REWRITTEN: &str = "it was taken, but with another spec than was sent: the installed definitions are not those of this \
                         release, or a webhook rewrites it";

impl Kernel {
    /// An ImageListPullJob was written, or not.
    pub(super) fn settle_list(&mut self, uid: &Uid, settled: Settled) {
        let Settled { ticket, outcome, now, jitter } = settled;
        let Some(list) = self.lists.get_mut(uid) else { return };
        outcome.note(&mut list.attempts, now, jitter);
        let answer = match &outcome {
            Outcome::Written(Object::ImageListPullJob(object)) => {
                list.echo.settle(object.status.clone(), now, jitter)
            }
            _ => list.echo.fail(),
        };
        let (about, complaint) = (list.reference(), outcome.complaint(&mut list.attempts, now));
        self.complain(about.clone(), complaint, now);
        self.note_answer(ticket.kind, about, answer.as_ref());
        self.learn(&ticket, outcome, now);
        self.agenda.mark(Target::List(uid.clone()));
    }

    /// A child of a list was made or deleted, or not.
    pub(super) fn settle_child(&mut self, list: &Uid, settled: Settled) {
        let Settled { ticket, outcome, now, jitter } = settled;
        match &ticket.uid {
            None => self.child_created(list, &ticket.key.name, &outcome, now, jitter),
            Some(uid) => self.child_deleted(list, uid, &outcome, now, jitter),
        }
        self.learn(&ticket, outcome, now);
        self.agenda.mark(Target::List(list.clone()));
    }

    fn child_created(
        &mut self,
        list: &Uid,
        name: &str,
        outcome: &Outcome<Object>,
        now: Timestamp,
        jitter: f64,
    ) {
        let Some(list) = self.lists.get_mut(list) else { return };
        let image = list.creating.remove(name).unwrap_or_default();
        let complaint = outcome.complaint(&mut list.child_attempts, now);
        match outcome {
            Outcome::Written(Object::ImagePullJob(job)) if !has_template(&job.spec, &list.object.spec) => {
                list.refused.insert(image, REWRITTEN.to_owned());
                list.child_attempts.fail(now, jitter);
                list.batch = 1;
            }
            Outcome::Written(_) | Outcome::Collided(_) => {
                list.refused.remove(&image);
                list.child_attempts.succeed(now);
                list.created += usize::from(matches!(outcome, Outcome::Written(_)));
            }
            Outcome::Refused(reason) => {
                let is_known = list.refused.insert(image.clone(), reason.clone()).as_ref() == Some(reason);
                list.child_attempts.fail(now, jitter);
                list.batch = 1;
                if !is_known {
                    let notice =
                        Notice::warning(CHILD_REFUSED, format!("no ImagePullJob for {image}: {reason}"));
                    self.events.push(notice.about(list.reference()));
                }
            }
            Outcome::Gone | Outcome::Failed(_) => outcome.pause(&mut list.child_attempts, now, jitter),
        }
        let about = list.reference();
        self.complain(about, complaint, now);
    }

    fn child_deleted(
        &mut self,
        list: &Uid,
        child: &Uid,
        outcome: &Outcome<Object>,
        now: Timestamp,
        jitter: f64,
    ) {
        let Some(list) = self.lists.get_mut(list) else { return };
        list.deleting.remove(child);
        match outcome {
            Outcome::Written(_) | Outcome::Gone => {
                // A child that was not kept as it was made goes, too, and that makes the next one no better.
                if list.refused.is_empty() {
                    list.child_attempts.succeed(now);
                }
                list.deleted += 1;
            }
            Outcome::Collided(_) | Outcome::Refused(_) | Outcome::Failed(_) => {
                outcome.pause(&mut list.child_attempts, now, jitter);
            }
        }
    }
}
