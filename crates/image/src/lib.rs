//! Generated images: n layers of a given size and compressibility, for one platform or two.
//!
//! The same seed gives the same bytes, so digests can be compared across tests and machines, and nothing has to be
//! downloaded. An [`Artifact`] is what a registry stores; how it gets there is for others.

mod artifact;
mod layer;

pub use artifact::{Artifact, Blob, Manifest};
pub use layer::Layer;

use serde_json::{Value, json};

const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// An image to be made. Without a call to [`architecture`](Self::architecture) it runs on this machine.
#[derive(Debug, Clone)]
pub struct Image {
    seed: String,
    architecture: String,
    layers: Vec<Layer>,
    program: Option<Program>,
}

/// What a container of an image runs.
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

    /// Adds a last layer with this static program, and lets containers run it. Without one an image can be pulled only.
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

    /// Several layers that are alike in size and compressibility.
    #[must_use]
    pub fn layers(mut self, count: usize, layer: Layer) -> Self {
        self.layers.extend(std::iter::repeat_n(layer, count));
        self
    }

    /// The processor that it is for, in Go's words: `amd64`, `arm64`.
    #[must_use]
    pub fn architecture(mut self, architecture: &str) -> Self {
        architecture.clone_into(&mut self.architecture);
        self
    }

    /// Makes the bytes.
    pub fn build(&self) -> Artifact {
        let data = self.layers.iter().enumerate().map(|(position, layer)| layer.build(&self.seed, position));
        let program = self.program.iter().map(|program| layer::executable(&program.name, &program.bytes));
        let layers: Vec<_> = data.chain(program).collect();
        let diff_ids: Vec<&str> = layers.iter().map(|layer| layer.diff_id.as_str()).collect();
        let config = Blob::of(json_bytes(&json!({
            "architecture": self.architecture,
            "config": self.config(),
            "os": "linux",
            "rootfs": {"diff_ids": diff_ids, "type": "layers"},
        })));
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

    fn config(&self) -> Value {
        match &self.program {
            None => json!({"Labels": {"seed": self.seed}}),
            Some(program) => {
                json!({"Entrypoint": [format!("/{}", program.name)], "Labels": {"seed": self.seed}})
            }
        }
    }
}

/// Makes one index of images for different architectures.
pub fn index(images: &[Image]) -> Artifact {
    let (mut blobs, mut manifests, mut entries) = (Vec::new(), Vec::new(), Vec::new());
    for image in images {
        let artifact = image.build();
        entries.push(json!({
            "digest": artifact.digest(),
            "mediaType": MANIFEST,
            "platform": {"architecture": image.architecture, "os": "linux"},
            "size": artifact.root().blob.bytes.len(),
        }));
        blobs.extend(artifact.blobs);
        manifests.extend(artifact.manifests);
    }
    let index = json!({"manifests": entries, "mediaType": INDEX, "schemaVersion": 2});
    manifests.push(Manifest::of(INDEX, json_bytes(&index)));
    Artifact::new(blobs, manifests)
}

/// This machine's processor in Go's words.
pub fn native_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Keys are written in alphabetical order above, because a feature of `serde_json` that any crate of the workspace may
/// switch on decides between that order and the written one, and digests must not depend on it.
fn json_bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

#[cfg(test)]
mod tests;
