//! Which images each namespace may have on nodes, if the controller is told that a ConfigMap says so (`prewarm_api::allow_list`). A demand
//! for any other image is held and says why; what was granted before stays. Without that ConfigMap nothing may be wanted at all:
//! deleting it by mistake allows nothing.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use prewarm_api::allow_list::AllowList;
use prewarm_api::reference::ImageRef;

use super::interface::{About, Observe, Writes};
use super::kernel::Kernel;
use super::kind::Kind;
use crate::object::{ImageKey, ObjectKey, Uid};

/// What is known of that ConfigMap.
#[derive(Debug, Default)]
pub struct Allowed {
    list: Option<AllowList>,
}

impl Observe for ConfigMap {
    const ABOUT: About = About { is_needed: true, ..About::new("v1", "ConfigMap", Writes::Nothing) };

    fn metadata(&self) -> Option<&ObjectMeta> {
        Some(&self.metadata)
    }

    fn observe(self, kernel: &mut Kernel, _now: Timestamp) {
        let list = AllowList::read(self.data.iter().flatten());
        kernel.allow(&ObjectKey::of(&self.metadata), Some(list));
    }

    fn forget(kernel: &mut Kernel, key: &ObjectKey, _uid: Option<&str>) {
        kernel.allow(key, None);
    }
}

impl Kernel {
    /// Without such a list, everything that depends on it is known.
    pub(super) fn know_allow_list(&mut self) {
        if self.settings.allow_list.is_none() {
            self.known.insert(Kind::ConfigMap);
        }
    }

    fn allow(&mut self, key: &ObjectKey, list: Option<AllowList>) {
        if self.settings.allow_list.as_ref() != Some(key) || self.allowed.list == list {
            return;
        }
        self.allowed.list = list;
        let uids: Vec<Uid> = self.demands.iter().map(|(uid, _)| uid.clone()).collect();
        for uid in uids {
            self.look_up_allowed(&uid);
        }
    }

    /// Looks up whether what a demand wants may be wanted.
    pub(super) fn look_up_allowed(&mut self, uid: &Uid) {
        let Some(record) = self.demands.get(uid) else { return };
        let refusal =
            record.demand.image.as_ref().and_then(|image| self.refusal(&record.key.namespace, image));
        let Some(record) = self.demands.get_mut(uid).filter(|record| record.refusal != refusal) else {
            return;
        };
        record.refusal = refusal;
        let target = record.target.clone();
        self.agenda.mark(target);
    }

    /// Why an image may not be wanted in a namespace, in a sentence.
    fn refusal(&self, namespace: &str, image: &ImageKey) -> Option<String> {
        let map = self.settings.allow_list.as_ref()?;
        let Some(list) = &self.allowed.list else {
            return Some(format!(
                "no image is allowed: ConfigMap {map} with the list of allowed images is missing; make it"
            ));
        };
        let image = ImageRef::from_parts(&image.name, &image.tag).ok()?;
        let who = if namespace.is_empty() {
            "the whole cluster".to_owned()
        } else {
            format!("namespace {namespace}")
        };
        (!list.allows(namespace, &image)).then(|| {
            format!(
                "{image} is not on the list of images that {who} may have; ask whoever keeps ConfigMap {map}"
            )
        })
    }
}

#[cfg(test)]
mod tests;
