//! Images built without any engine: our own from files, and generated ones of n layers of a given size and
//! compressibility, for one platform or two.
//!
//! The same files or the same seed give the same bytes, so digests can be compared across builds, tests and machines,
//! and nothing has to be downloaded. An [`Artifact`] is what a registry stores; the feature `push` sends it there.

mod artifact;
mod layer;
pub mod layout;
#[cfg(feature = "push")]
pub mod push;
pub mod referrer;

pub use artifact::{Artifact, Blob, Manifest};
pub use layer::{Built, File, Layer, of_files};

use std::collections::BTreeMap;

use serde_json::{Value, json};

const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// An image to build. Without a call to [`architecture`](Self::architecture) it runs on this machine.
#[derive(Debug, Clone)]
pub struct Image {
    seed: String,
    architecture: String,
    layers: Vec<Layer>,
    program: Option<Program>,
}

/// What containers of an image run.
#[derive(Debug, Clone)]
struct Program {
    name: String,
    bytes: Vec<u8>,
}

impl Image {
    /// An image without layers. Two images share a layer exactly if seed, position and [`Layer`] are the same.
    pub fn new(seed: &str) -> Self {
        Self {
            seed: seed.to_owned(),
            architecture: native_architecture().to_owned(),
            layers: Vec::new(),
            program: None,
        }
    }

    /// Adds a last layer with this static program, which containers run. Without one, an image can only be pulled.
    #[must_use]
    pub fn program(mut self, name: &str, bytes: Vec<u8>) -> Self {
        self.program = Some(Program { name: name.to_owned(), bytes });
        self
    }

    #[must_use]
    pub fn layer(mut self, layer: Layer) -> Self {
        self.layers.push(layer);
        self
    }

    /// Adds several layers of the same size and compressibility.
    #[must_use]
    pub fn layers(mut self, count: usize, layer: Layer) -> Self {
        self.layers.extend(std::iter::repeat_n(layer, count));
        self
    }

    /// Sets the processor architecture in Go's terms: `amd64`, `arm64`.
    #[must_use]
    pub fn architecture(mut self, architecture: &str) -> Self {
        architecture.clone_into(&mut self.architecture);
        self
    }

    pub fn build(&self) -> Artifact {
        let data = self.layers.iter().enumerate().map(|(position, layer)| layer.build(&self.seed, position));
        let program = self.program.iter().map(|program| layer::executable(&program.name, &program.bytes));
        assemble(&self.architecture, None, &self.config(), data.chain(program).collect())
    }

    fn config(&self) -> Value {
        match &self.program {
            None => json!({"Labels": {"seed": self.seed}}),
            Some(program) => {
                json!({"Entrypoint": [format!("/{}", program.name)], "Labels": {"seed": self.seed}})
            }
        }
    }
}

/// Assembles an image from its layers, for this architecture. `config` says what its containers run, and how.
pub fn assemble(architecture: &str, created: Option<&str>, config: &Value, layers: Vec<Built>) -> Artifact {
    let diff_ids: Vec<&str> = layers.iter().map(|layer| layer.diff_id.as_str()).collect();
    let mut whole = json!({
        "architecture": architecture,
        "config": config,
        "os": "linux",
        "rootfs": {"diff_ids": diff_ids, "type": "layers"},
    });
    if let Some(created) = created {
        whole["created"] = json!(created);
    }
    let config = Blob::of(json_bytes(&whole));
    let manifest = Manifest::of(
        MANIFEST,
        json_bytes(&json!({
            "config": config.descriptor(CONFIG),
            "layers": layers.iter().map(|layer| layer.blob.descriptor(LAYER)).collect::<Vec<_>>(),
            "mediaType": MANIFEST,
            "schemaVersion": 2,
        })),
    );
    let mut blobs = vec![config];
    blobs.extend(layers.into_iter().map(|layer| layer.blob));
    Artifact::new(blobs, vec![manifest])
}

/// Builds one index of images for different architectures.
pub fn index(images: &[Image]) -> Artifact {
    index_of(images.iter().map(|image| (image.architecture.clone(), image.build())).collect())
}

/// The same from images that are built already.
pub fn index_of(images: Vec<(String, Artifact)>) -> Artifact {
    let (mut blobs, mut manifests, mut entries) = (Vec::new(), Vec::new(), Vec::new());
    for (architecture, artifact) in images {
        entries.push(json!({
            "digest": artifact.digest(),
            "mediaType": MANIFEST,
            "platform": {"architecture": architecture, "os": "linux"},
            "size": artifact.root().blob.bytes.len(),
        }));
        blobs.extend(artifact.blobs);
        manifests.extend(artifact.manifests);
    }
    let index = json!({"manifests": entries, "mediaType": INDEX, "schemaVersion": 2});
    manifests.push(Manifest::of(INDEX, json_bytes(&index)));
    Artifact::new(blobs, manifests)
}

/// This machine's processor architecture in Go's terms.
pub fn native_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// JSON with keys in alphabetical order: a feature of `serde_json` that any crate of the workspace may enable decides
/// between that order and the written one, and digests must not depend on it.
fn json_bytes(value: &Value) -> Vec<u8> {
    sorted(value).to_string().into_bytes()
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields: BTreeMap<&String, Value> =
                fields.iter().map(|(key, value)| (key, sorted(value))).collect();
            Value::Object(fields.into_iter().map(|(key, value)| (key.clone(), value)).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        plain => plain.clone(),
    }
}

#[cfg(test)]
mod tests;
