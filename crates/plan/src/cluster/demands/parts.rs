//! An object that wants several images has a demand for each. Their UIDs are that of the object, `/`, and digits of the image, so that
//! the same image has the same one whatever else is wanted.

use std::collections::BTreeMap;

use prewarm_api::kruise::ImagePullPolicy;
use prewarm_api::reference::ImageRef;
use prewarm_api::reference_object::ObjectReference;

use crate::hash::sha1_digits;
use crate::object::{ImageKey, Uid};

/// How many bytes of a hash tell images apart.
const HASH_BYTES: usize = 8;

/// One of the images that an object wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// As it is written.
    pub text: String,
    /// Which image; `None` if what is written cannot be read.
    pub image: Option<ImageKey>,
    /// The UID of its demand.
    pub uid: Uid,
}

/// The images that an object wants, in its order. One that is written twice has one demand.
pub fn parts(object: &str, images: &[String]) -> Vec<Part> {
    let part = |text: &String| {
        let image = ImageRef::parse(text)
            .ok()
            .map(|reference| ImageKey { name: reference.name().to_owned(), tag: reference.tag().to_owned() });
        let name = image.as_ref().map_or_else(|| text.clone(), |key| format!("{}:{}", key.name, key.tag));
        Part { text: text.clone(), image, uid: format!("{object}/{}", sha1_digits(&name, HASH_BYTES)).into() }
    };
    images.iter().map(part).collect()
}

/// The demands among them, each once.
pub fn demands(parts: &[Part]) -> BTreeMap<&Uid, &Part> {
    parts.iter().map(|part| (&part.uid, part)).collect()
}

/// The UID of the object that makes a demand.
pub fn object(demand: &str) -> &str {
    demand.split_once('/').map_or(demand, |(object, _)| object)
}

/// On whose behalf a part is wanted, as entries of NodeImages name it.
pub fn owner(object: &ObjectReference, part: &Part) -> ObjectReference {
    ObjectReference { uid: Some(part.uid.to_string()), ..object.clone() }
}

/// What an image is pulled with if nothing is said: a node that has it keeps it.
pub const PULL_POLICY: ImagePullPolicy = ImagePullPolicy::IfNotPresent;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_image_has_the_same_demand_however_it_is_written() {
        let texts = ["nginx", "docker.io/library/nginx:latest", "nginx:1.27", "!"].map(str::to_owned);
        let parts = parts("uid", &texts);
        assert_eq!(parts[0].uid, parts[1].uid);
        assert_eq!(demands(&parts).len(), 3);
        assert_eq!((parts[3].image.clone(), object(&parts[3].uid)), (None, "uid"));
        assert_eq!(object("a-job"), "a-job");
    }
}
