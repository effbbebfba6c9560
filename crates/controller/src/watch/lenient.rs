//! An object that may be unreadable. A list with one such object would otherwise be unreadable as a whole, and one
//! broken object would stop everything.

use std::borrow::Cow;

use kube::Resource;
use kube::api::ObjectMeta;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// An object, or why it cannot be read.
#[derive(Clone, Debug)]
pub struct Lenient<K> {
    metadata: ObjectMeta,
    read: Result<Box<K>, String>,
}

impl<K> Lenient<K> {
    /// The object, or why it cannot be read.
    pub fn into_read(self) -> Result<K, String> {
        self.read.map(|object| *object)
    }
}

#[derive(Deserialize)]
struct OnlyMetadata {
    #[serde(default)]
    metadata: ObjectMeta,
}

impl<'de, K: Resource + DeserializeOwned> Deserialize<'de> for Lenient<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        match serde_json::from_str::<K>(text.get()) {
            Ok(object) => Ok(Self { metadata: slim(object.meta()), read: Ok(Box::new(object)) }),
            Err(error) => {
                let OnlyMetadata { metadata } =
                    serde_json::from_str(text.get()).map_err(serde::de::Error::custom)?;
                Ok(Self { metadata: slim(&metadata), read: Err(error.to_string()) })
            }
        }
    }
}

/// What a watcher needs: the rest would only be held twice.
fn slim(metadata: &ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        name: metadata.name.clone(),
        namespace: metadata.namespace.clone(),
        uid: metadata.uid.clone(),
        resource_version: metadata.resource_version.clone(),
        annotations: metadata
            .annotations
            .clone()
            .filter(|annotations| annotations.contains_key(INITIAL_EVENTS_END)),
        ..ObjectMeta::default()
    }
}

/// Marks the end of a streamed list.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

impl<K: Resource<DynamicType = ()>> Resource for Lenient<K> {
    type DynamicType = ();
    type Scope = K::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        K::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        K::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        K::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        K::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use kube::ResourceExt as _;
    use kube::api::{ObjectList, WatchEvent};
    use prewarm_api::kruise::ImagePullJob;

    use super::*;

    const GOOD: &str = r#"{"metadata":{"name":"good","uid":"1"},"spec":{"image":"nginx"}}"#;
    const BAD: &str = r#"{"metadata":{"name":"bad","uid":"2"},"spec":{"image":{}}}"#;

    #[test]
    fn one_unreadable_object_does_not_hide_the_others_of_a_list() {
        let text = format!(r#"{{"kind":"List","apiVersion":"v1","metadata":{{}},"items":[{GOOD},{BAD}]}}"#);
        let list: ObjectList<Lenient<ImagePullJob>> = serde_json::from_str(&text).unwrap();
        let names: Vec<String> = list.iter().map(kube::ResourceExt::name_any).collect();
        let read: Vec<bool> = list.into_iter().map(|object| object.into_read().is_ok()).collect();
        assert_eq!((names, read), (vec!["good".to_owned(), "bad".to_owned()], vec![true, false]));
    }

    #[test]
    fn an_unreadable_object_of_a_watch_still_has_its_name() {
        let text = format!(r#"{{"type":"MODIFIED","object":{BAD}}}"#);
        let event: WatchEvent<Lenient<ImagePullJob>> = serde_json::from_str(&text).unwrap();
        let WatchEvent::Modified(object) = event else { panic!("another event") };
        assert_eq!((object.name_any(), object.uid()), ("bad".to_owned(), Some("2".to_owned())));
    }
}
