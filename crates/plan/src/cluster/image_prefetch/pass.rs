//! The pass over an ImagePrefetch: who is selected, who begins, what is granted, what is shown.

use jiff::Timestamp;
use prewarm_api::names::IMAGE_PREFETCH_FINALIZER;

use super::record::Prefetches;
use crate::cluster::command::{Command, Settled, Verb, Write};
use crate::cluster::guard::{guarded, remove_finalizer_named};
use crate::cluster::interface::Pass;
use crate::cluster::kind::Subject;
use crate::cluster::{Kernel, Kind, Target};
use crate::object::Uid;
use crate::time::earliest;

impl Pass for Prefetches {
    type Id = Uid;

    fn pass(kernel: &mut Kernel, uid: &Uid, now: Timestamp, commands: &mut Vec<Command>) {
        kernel.prefetch_pass(uid, now, commands);
    }

    fn settle(kernel: &mut Kernel, uid: &Uid, settled: Settled) {
        if settled.ticket.kind == Kind::NodeImageSet {
            kernel.settle_new_set(uid, settled);
        } else {
            kernel.settle_prefetch(uid, settled);
        }
    }
}

impl Kernel {
    fn prefetch_pass(&mut self, uid: &Uid, now: Timestamp, commands: &mut Vec<Command>) {
        let Some(prefetch) = self.prefetches.all.get(uid) else { return };
        self.passes.count(Subject::Prefetch);
        if prefetch.is_terminating() {
            return self.close_prefetch(uid, now, commands);
        }
        // NodeImageSets say which roles nodes have.
        if !self.known.contains(&Kind::NodeImageSet) {
            return;
        }
        let hold = self.prefetch_hold(uid);
        let mut wake_at = self.choose_nodes(uid, now);
        wake_at = earliest(wake_at, self.begin_nodes(uid, hold.is_some(), now));
        wake_at = earliest(wake_at, self.want_images(uid, hold.is_some(), now));
        wake_at = earliest(wake_at, self.make_sets(uid, now, commands));
        wake_at = earliest(wake_at, self.report_prefetch(uid, hold, now, commands));
        self.agenda.wake(Target::Prefetch(uid.clone()), wake_at);
    }

    /// What keeps it from beginning, in a sentence.
    pub(super) fn prefetch_hold(&self, uid: &Uid) -> Option<String> {
        let prefetch = self.prefetches.all.get(uid)?;
        let mut records = prefetch.parts.iter().filter_map(|part| self.demands.get(&part.uid));
        records.find_map(|record| record.refusal.clone().or_else(|| record.secrets_wait.clone()))
    }

    /// Finalizers of the program that made the object before are taken off: nothing of ours waits for it.
    fn close_prefetch(&mut self, uid: &Uid, now: Timestamp, commands: &mut Vec<Command>) {
        let Some(prefetch) = self.prefetches.all.get_mut(uid) else { return };
        let mut wake_at = None;
        if prefetch.attempts.is_blocked(now) {
            wake_at = prefetch.attempts.pause_ends();
        } else if let Some(change) =
            remove_finalizer_named(&prefetch.object.metadata, IMAGE_PREFETCH_FINALIZER)
        {
            let verb = Verb::Patch(guarded(&prefetch.object.metadata, change), 0);
            prefetch.attempts.begin(verb.fingerprint());
            commands.push(Command::Write(Write { ticket: prefetch.ticket(uid), verb }));
        }
        self.agenda.wake(Target::Prefetch(uid.clone()), wake_at);
    }
}
