//! Kinds of jobs that may be runs of cron jobs: what is said of them is heard twice.

use prewarm_api::kruise::{BroadcastJob, ImageListPullJob, TemplateKind};

use super::cron::RunKey;
use super::hear::{is_newer, version};
use super::list::List;
use super::{Ledger, Target};
use crate::advanced_cron_job::child::Child;
use crate::object::{ObjectKey, Uid};

impl Ledger {
    /// An ImageListPullJob is like this. It may be a run of a cron job.
    pub fn hear_list(&mut self, object: ImageListPullJob) {
        let key = RunKey::new(TemplateKind::ImageListPullJob, ObjectKey::of(&object.metadata));
        self.crons.hear_run(&key, Child::of_list(&object));
        self.keep_list(object);
    }

    fn keep_list(&mut self, mut object: ImageListPullJob) {
        object.metadata.managed_fields = None;
        let Some(uid) = object.metadata.uid.as_deref().map(|uid| self.shared.text::<Uid>(uid)) else {
            return;
        };
        let key = ObjectKey::of(&object.metadata);
        if self.list_uids.get(&key).is_some_and(|other| *other != uid) {
            self.drop_list(&key, None);
        }
        match self.lists.get_mut(&uid) {
            Some(list) if is_newer(version(&list.object.metadata), version(&object.metadata)) => return,
            Some(list) => {
                if list.object.spec != object.spec {
                    list.refused.clear();
                }
                list.object = object;
            }
            None => {
                self.lists.insert(uid.clone(), List::new(object));
                self.list_uids.insert(key, uid.clone());
            }
        }
        self.soil(Target::List(uid));
    }

    /// An ImageListPullJob is gone.
    pub fn lose_list(&mut self, key: &ObjectKey, uid: Option<&str>) {
        self.crons.lose_run(&RunKey::new(TemplateKind::ImageListPullJob, key.clone()), uid);
        self.drop_list(key, uid);
    }

    /// A BroadcastJob is like this. It may be a run of a cron job.
    pub fn hear_broadcast(&mut self, object: BroadcastJob) {
        let key = RunKey::new(TemplateKind::BroadcastJob, ObjectKey::of(&object.metadata));
        self.crons.hear_run(&key, Child::of_broadcast(&object));
        self.broadcasts.hear_job(object);
    }

    /// A BroadcastJob is gone.
    pub fn lose_broadcast(&mut self, key: &ObjectKey, uid: Option<&str>) {
        self.crons.lose_run(&RunKey::new(TemplateKind::BroadcastJob, key.clone()), uid);
        self.broadcasts.lose_job(key, uid);
    }

    fn drop_list(&mut self, key: &ObjectKey, uid: Option<&str>) {
        if let Some(held) =
            self.list_uids.get(key).filter(|held| uid.is_none_or(|uid| *uid == ***held)).cloned()
        {
            self.list_uids.remove(key);
            self.lists.remove(&held);
            self.timers.set(Target::List(held), None);
        }
    }
}
