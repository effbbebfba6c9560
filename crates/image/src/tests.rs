use std::collections::BTreeSet;
use std::io::Read as _;

use flate2::read::GzDecoder;

use super::*;

const KIB: usize = 1024;

fn digests(artifact: &Artifact) -> BTreeSet<&str> {
    artifact.blobs.iter().map(|blob| blob.digest.as_str()).collect()
}

#[test]
fn the_same_seed_gives_the_same_image() {
    let image = || Image::new("web").layers(3, Layer::of(100 * KIB).compressible(0.3)).build();
    assert_eq!(image(), image());
}

#[test]
fn uncompressed_bytes_stay_the_same_across_versions_of_this_kit() {
    let artifact = Image::new("web").architecture("amd64").layer(Layer::of(64 * KIB)).build();
    // The config lists only the digests of uncompressed layers, so it does not depend on the compressor.
    assert_eq!(
        artifact.blobs[0].digest,
        "sha256:674c033d00c76ff2f74f0b1231db8b9a0c02d363f4860fe140847864986cada6"
    );
}

#[test]
fn another_seed_shares_nothing() {
    let image = |seed| Image::new(seed).layers(2, Layer::of(10 * KIB)).build();
    assert!(digests(&image("web")).is_disjoint(&digests(&image("database"))));
}

#[test]
fn layers_of_one_image_differ_from_each_other() {
    let artifact = Image::new("web").layers(5, Layer::of(KIB)).build();
    assert_eq!(digests(&artifact).len(), 6, "five layers and a config");
}

#[test]
fn images_of_one_seed_share_their_first_layers() {
    let base = Image::new("web").layers(2, Layer::of(KIB));
    let longer = base.clone().layer(Layer::of(KIB)).build();
    assert_eq!(digests(&base.build()).intersection(&digests(&longer)).count(), 2);
}

#[test]
fn compressibility_is_the_part_that_vanishes() {
    for (fraction, expected) in [(0.0, 1.0), (0.5, 0.5), (0.9, 0.1)] {
        let artifact = Image::new("web").layer(Layer::of(1000 * KIB).compressible(fraction)).build();
        #[expect(clippy::cast_precision_loss, reason = "a megabyte is exact")]
        let actual = artifact.blobs[1].bytes.len() as f64 / (1000 * KIB) as f64;
        assert!((actual - expected).abs() < 0.03, "{fraction} gave {actual}");
    }
}

#[test]
fn a_layer_unpacks_to_one_file_of_its_size() {
    let artifact = Image::new("web").layer(Layer::of(10 * KIB + 7).compressible(0.2)).build();
    let mut archive = tar::Archive::new(GzDecoder::new(artifact.blobs[1].bytes.as_slice()));
    let mut entries = archive.entries().unwrap().map(Result::unwrap);
    let mut file = entries.next().unwrap();
    assert_eq!(file.path().unwrap().to_str(), Some("data/0.bin"));
    let mut content = Vec::new();
    file.read_to_end(&mut content).unwrap();
    assert_eq!(content.len(), 10 * KIB + 7);
    assert!(entries.next().is_none());
}

#[test]
fn a_program_has_a_layer_of_its_own_and_is_what_containers_run() {
    let image = Image::new("web").layer(Layer::of(KIB));
    let running = image.clone().program("run", b"#!".to_vec()).build();
    let config: Value = serde_json::from_slice(&running.blobs[0].bytes).unwrap();
    assert_eq!(config["config"]["Entrypoint"], json!(["/run"]));
    assert_eq!(running.blobs[1], image.build().blobs[1], "the other layers stay as they are");
    let mut archive = tar::Archive::new(GzDecoder::new(running.blobs[2].bytes.as_slice()));
    let file = archive.entries().unwrap().next().unwrap().unwrap();
    assert_eq!((file.path().unwrap().to_str(), file.header().mode().unwrap()), (Some("run"), 0o755));
}

#[test]
fn an_index_names_each_platform_and_is_tagged_itself() {
    let image = |architecture| Image::new(architecture).architecture(architecture).layer(Layer::of(KIB));
    let artifact = index(&[image("amd64"), image("arm64")]);
    let root: Value = serde_json::from_slice(&artifact.root().blob.bytes).unwrap();
    let platforms: Vec<_> =
        [0, 1].map(|entry| root["manifests"][entry]["platform"]["architecture"].clone()).into();
    assert_eq!(platforms, ["amd64", "arm64"]);
    assert_eq!(root["manifests"][1]["digest"], image("arm64").build().digest());
    assert_eq!(artifact.manifests.len(), 3);
}
