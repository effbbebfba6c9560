//! What is observed of ImageListPullJobs becomes records.

use prewarm_api::kruise::ImageListPullJob;

use super::record::List;
use crate::cluster::{Kernel, Target};
use crate::object::store::{Admission, Store};
use crate::object::version::version;
use crate::object::{ObjectKey, Uid};

/// All ImageListPullJobs.
pub type Lists = Store<List>;

impl Kernel {
    /// An ImageListPullJob is like this.
    pub(in crate::cluster) fn observe_image_list(&mut self, mut object: ImageListPullJob) {
        object.metadata.managed_fields = None;
        let Some(uid) = object.metadata.uid.as_deref().map(|uid| self.shared.text::<Uid>(uid)) else {
            return;
        };
        let key = ObjectKey::of(&object.metadata);
        let admission = self.lists.admit(&key, &uid, version(&object.metadata));
        if let Admission::Replaces(_) = admission {
            self.forget_list(&key, None);
        }
        match (admission, self.lists.get_mut(&uid)) {
            (Admission::Stale, _) => return,
            (Admission::Known, Some(list)) => list.renew(object),
            _ => {
                self.lists.insert(uid.clone(), List::new(object));
            }
        }
        self.agenda.mark(Target::List(uid));
    }

    /// An ImageListPullJob is gone. With a UID, only if it is still that one.
    pub(in crate::cluster) fn forget_list(&mut self, key: &ObjectKey, uid: Option<&str>) {
        if let Some((held, _)) = self.lists.forget(key, uid) {
            self.agenda.drop_target(Target::List(held));
        }
    }
}
