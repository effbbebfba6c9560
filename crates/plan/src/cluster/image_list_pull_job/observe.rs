//! What is observed of ImageListPullJobs becomes records.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use prewarm_api::kruise::{API_VERSION, IMAGE_LIST_PULL_JOB, ImageListPullJob, TemplateKind};

use super::record::List;
use crate::cluster::interface::{About, Observe, Writes, owned};
use crate::cluster::{Kernel, Target};
use crate::object::store::{Admission, Store};
use crate::object::version::{leaves_dependents, takes_dependents, version};
use crate::object::{ObjectKey, OwnerKey, Uid};

/// All ImageListPullJobs.
pub type Lists = Store<List>;

impl Observe for ImageListPullJob {
    const ABOUT: About = About {
        is_needed: true,
        can_be_left_out: true,
        ..About::new(API_VERSION, IMAGE_LIST_PULL_JOB, Writes::Both)
    };

    fn metadata(&self) -> Option<&ObjectMeta> {
        Some(&self.metadata)
    }

    fn observe(self, kernel: &mut Kernel, _now: Timestamp) {
        kernel.observe_image_list(self);
    }

    fn forget(kernel: &mut Kernel, key: &ObjectKey, uid: Option<&str>) {
        kernel.forget_list(key, uid);
    }

    fn held(kernel: &Kernel) -> Vec<(ObjectKey, Uid)> {
        owned(kernel.lists.held())
    }

    fn listed(kernel: &mut Kernel, _namespace: &str) {
        kernel.know_runs(TemplateKind::ImageListPullJob);
    }
}

impl Kernel {
    /// An ImageListPullJob is like this.
    fn observe_image_list(&mut self, mut object: ImageListPullJob) {
        object.metadata.managed_fields = None;
        let Some(uid) = object.metadata.uid.as_deref().map(|uid| self.shared.text::<Uid>(uid)) else {
            return;
        };
        let key = ObjectKey::of(&object.metadata);
        let admission = self.lists.admit(&key, &uid, version(&object.metadata));
        let is_leaving = takes_dependents(&object.metadata);
        if let Admission::Replaces(other) = &admission {
            self.forget_list(&key, Some(&other.clone()));
        }
        match (admission, self.lists.get_mut(&uid)) {
            (Admission::Stale, _) => return,
            (Admission::Known, Some(list)) => list.renew(object),
            _ => {
                self.lists.insert(uid.clone(), List::new(object));
            }
        }
        if is_leaving {
            self.abandon_list(&OwnerKey::new(&key.namespace, &uid));
        }
        self.agenda.mark(Target::List(uid));
    }

    /// A list is gone or about to go, and with it everything that it made.
    pub(in crate::cluster) fn abandon_list(&mut self, owner: &OwnerKey) {
        if let Some(list) = self.lists.get_mut(&owner.uid) {
            list.is_abandoned = true;
        }
        self.abandon_children(owner);
    }

    /// An ImageListPullJob is gone. With a UID, only if it is still that one.
    fn forget_list(&mut self, key: &ObjectKey, uid: Option<&str>) {
        let Some((held, list)) = self.lists.forget(key, uid) else { return };
        // One that is gone by its name alone may only be unreadable.
        if uid.is_some() && !leaves_dependents(&list.object.metadata) {
            self.abandon_children(&OwnerKey::new(&key.namespace, &held));
        }
        self.agenda.drop_target(Target::List(held));
    }
}
