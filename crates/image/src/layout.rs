//! Images in a directory or in one archive, as tools that copy images read them (the OCI image layout).

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::{fs, io};

use serde_json::{Value, json};

use crate::artifact::{Artifact, Blob, Manifest};
use crate::layer::{File, archive};
use crate::{INDEX, MANIFEST, json_bytes};

/// An artifact, and the name under which tools find it in a layout. A referrer is found by its subject and needs no
/// name.
pub struct Entry<'a> {
    pub name: Option<&'a str>,
    pub artifact: &'a Artifact,
}

/// Writes a layout into a directory. Existing files stay.
pub fn write(directory: &Path, entries: &[Entry<'_>]) -> io::Result<()> {
    for file in files(entries) {
        let path = directory.join(&file.path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, file.content)?;
    }
    Ok(())
}

/// The same as one archive. The same artifacts give the same bytes.
pub fn to_archive(entries: &[Entry<'_>]) -> Vec<u8> {
    archive(&files(entries), Some(0))
}

/// Reads such an archive: its artifacts, in the order of its index. The digest of every blob is verified.
pub fn read_archive(bytes: &[u8]) -> io::Result<Vec<Artifact>> {
    let mut files = BTreeMap::new();
    for entry in tar::Archive::new(bytes).entries()? {
        let mut entry = entry?;
        let path = entry.path()?.display().to_string();
        let mut content = Vec::new();
        entry.read_to_end(&mut content)?;
        files.insert(path, content);
    }
    let index = files.get("index.json").ok_or_else(|| invalid("it has no index.json"))?;
    let index: Value = serde_json::from_slice(index)?;
    let roots = index["manifests"].as_array().into_iter().flatten();
    roots.map(|root| gather(&files, root)).collect()
}

/// Everything that a descriptor refers to, directly or not. The manifest that refers to the others comes last.
fn gather(files: &BTreeMap<String, Vec<u8>>, descriptor: &Value) -> io::Result<Artifact> {
    let (mut blobs, mut manifests) = (Vec::new(), Vec::new());
    let media_type = match descriptor["mediaType"].as_str() {
        Some(INDEX) => INDEX,
        Some(MANIFEST) => MANIFEST,
        other => return Err(invalid(&format!("{other:?} is neither an image nor an index"))),
    };
    let root = blob(files, descriptor)?;
    let content: Value = serde_json::from_slice(&root.bytes)?;
    for inner in content["manifests"].as_array().into_iter().flatten() {
        let artifact = gather(files, inner)?;
        blobs.extend(artifact.blobs);
        manifests.extend(artifact.manifests);
    }
    let parts = [&content["config"]].into_iter().filter(|config| config.is_object());
    for part in parts.chain(content["layers"].as_array().into_iter().flatten()) {
        blobs.push(blob(files, part)?);
    }
    manifests.push(Manifest { media_type, blob: root });
    Ok(Artifact::new(blobs, manifests))
}

fn blob(files: &BTreeMap<String, Vec<u8>>, descriptor: &Value) -> io::Result<Blob> {
    let digest = descriptor["digest"].as_str().unwrap_or_default();
    let content = files.get(&path(digest)).ok_or_else(|| invalid(&format!("{digest} is missing")))?;
    let blob = Blob::of(content.clone());
    if blob.digest == digest { Ok(blob) } else { Err(invalid(&format!("{digest} has another content"))) }
}

fn path(digest: &str) -> String {
    format!("blobs/{}", digest.replace(':', "/"))
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// All files sorted by path, each once.
fn files(entries: &[Entry<'_>]) -> Vec<File> {
    let mut files = BTreeMap::new();
    let mut add = |path: String, content: Vec<u8>| {
        files.insert(path.clone(), File { path, content, is_executable: false });
    };
    for Entry { artifact, .. } in entries {
        let manifests = artifact.manifests.iter().map(|manifest| &manifest.blob);
        for Blob { digest, bytes } in artifact.blobs.iter().chain(manifests) {
            add(path(digest), bytes.clone());
        }
    }
    let roots = entries.iter().map(|Entry { name, artifact }| {
        let mut root = artifact.root().blob.descriptor(artifact.root().media_type);
        if let Some(name) = name {
            // The specification names the first one, and containerd's import reads the second.
            let tag = name.rsplit(':').next().unwrap_or(name);
            root["annotations"] =
                json!({"io.containerd.image.name": name, "org.opencontainers.image.ref.name": tag});
        }
        root
    });
    let roots: Vec<_> = roots.collect();
    let index = json!({"manifests": roots, "mediaType": INDEX, "schemaVersion": 2});
    add("index.json".to_owned(), json_bytes(&index));
    add("oci-layout".to_owned(), json_bytes(&json!({"imageLayoutVersion": "1.0.0"})));
    files.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Image, Layer};

    #[test]
    fn a_layout_has_every_blob_under_its_digest_and_the_name_of_the_image() {
        let image = Image::new("web").layer(Layer::of(100)).build();
        let files = files(&[Entry { name: Some("registry.example/web:v1"), artifact: &image }]);
        let content = |path: &str| files.iter().find(|file| file.path == path).map(|file| &file.content);
        for blob in &image.blobs {
            assert_eq!(content(&format!("blobs/{}", blob.digest.replace(':', "/"))), Some(&blob.bytes));
        }
        let index: Value = serde_json::from_slice(content("index.json").unwrap()).unwrap();
        assert_eq!(index["manifests"][0]["digest"], image.digest());
        let names = &index["manifests"][0]["annotations"];
        assert_eq!(names["io.containerd.image.name"], "registry.example/web:v1");
        assert_eq!(names["org.opencontainers.image.ref.name"], "v1");
        assert!(content("oci-layout").is_some());
    }

    #[test]
    fn an_archive_is_read_as_it_was_written() {
        let image = |name: &str| Image::new(name).architecture("amd64").layer(Layer::of(100));
        let (index, single) = (crate::index(&[image("a"), image("b")]), image("c").build());
        let entries =
            [Entry { name: Some("web:v1"), artifact: &index }, Entry { name: None, artifact: &single }];
        let archive = to_archive(&entries);
        assert_eq!(read_archive(&archive).unwrap(), [index, single]);
        let broken = String::from_utf8_lossy(&archive).replace("oci-layout", "oci-lay0ut").into_bytes();
        assert!(read_archive(&broken).is_err(), "bytes that are no text are lost, and digests tell");
    }

    #[test]
    fn an_archive_of_the_same_image_has_the_same_bytes() {
        let image = Image::new("web").layer(Layer::of(100)).build();
        let archive = || to_archive(&[Entry { name: None, artifact: &image }]);
        assert_eq!(archive(), archive());
    }
}
