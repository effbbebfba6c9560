//! Manifests about other images: a referrer names an image as its subject.

use serde_json::{Value, json};

use crate::artifact::{Artifact, Blob, Manifest};
use crate::{INDEX, MANIFEST, json_bytes};

/// The config of an artifact that is not an image: two well-known bytes.
const EMPTY: &str = "application/vnd.oci.empty.v1+json";

/// A document of this type about an image, under this file name.
pub fn document(subject: &Artifact, media_type: &'static str, name: &str, content: Vec<u8>) -> Artifact {
    let (config, document) = (Blob::of(b"{}".to_vec()), Blob::of(content));
    let mut layer = document.descriptor(media_type);
    layer["annotations"] = json!({"org.opencontainers.image.title": name});
    let manifest = json!({
        "artifactType": media_type,
        "config": config.descriptor(EMPTY),
        "layers": [layer],
        "mediaType": MANIFEST,
        "schemaVersion": 2,
        "subject": subject.root().blob.descriptor(subject.root().media_type),
    });
    Artifact::new(vec![config, document], vec![Manifest::of(MANIFEST, json_bytes(&manifest))])
}

/// The tag under which a registry without an API for referrers keeps their list.
pub fn tag(subject: &str) -> String {
    subject.replace(':', "-")
}

/// The list with one more referrer, which replaces an earlier version of itself. `earlier` is the existing list.
pub fn list(earlier: Option<&[u8]>, referrer: &Artifact) -> Manifest {
    let earlier: Value = earlier.and_then(|list| serde_json::from_slice(list).ok()).unwrap_or_default();
    let others = earlier["manifests"].as_array().into_iter().flatten();
    let others = others.filter(|other| other["digest"] != referrer.digest()).cloned();
    let entries: Vec<Value> = others.chain([entry(referrer)]).collect();
    Manifest::of(INDEX, json_bytes(&json!({"manifests": entries, "mediaType": INDEX, "schemaVersion": 2})))
}

fn entry(referrer: &Artifact) -> Value {
    let manifest: Value = serde_json::from_slice(&referrer.root().blob.bytes).unwrap_or_default();
    let mut entry = referrer.root().blob.descriptor(referrer.root().media_type);
    entry["artifactType"] = manifest["artifactType"].clone();
    entry
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Image;

    #[test]
    fn a_document_names_the_image_that_it_is_about() {
        let image = Image::new("web").build();
        let document = document(&image, "application/vnd.cyclonedx+json", "parts.json", b"{}\n".to_vec());
        let manifest: Value = serde_json::from_slice(&document.root().blob.bytes).unwrap();
        assert_eq!(manifest["subject"]["digest"], image.digest());
        assert_eq!(manifest["artifactType"], "application/vnd.cyclonedx+json");
        let list: Value = serde_json::from_slice(&list(None, &document).blob.bytes).unwrap();
        assert_eq!(list["manifests"][0]["digest"], document.digest());
        assert_eq!(list["manifests"][0]["artifactType"], "application/vnd.cyclonedx+json");
        assert_eq!(tag("sha256:12ab"), "sha256-12ab");
    }

    #[test]
    fn other_referrers_of_an_image_stay_in_the_list() {
        let image = Image::new("web").build();
        let about = |content: &str| document(&image, "text/plain", "about.txt", content.as_bytes().to_vec());
        let (theirs, ours) = (about("signed"), about("parts"));
        let first = list(None, &theirs).blob.bytes;
        let both = list(Some(&first), &ours).blob.bytes;
        assert_eq!(list(Some(&both), &ours).blob.bytes, both);
        let both: Value = serde_json::from_slice(&both).unwrap();
        let digests = [0, 1].map(|place| both["manifests"][place]["digest"].clone());
        assert_eq!(digests, [theirs.digest(), ours.digest()]);
    }
}
