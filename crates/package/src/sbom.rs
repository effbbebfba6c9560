//! The list of parts as a document that scanners read, in the format of `CycloneDX`.

use anyhow::Context as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::image::Origin;
use crate::parts::{Part, Parts};

pub const MEDIA_TYPE: &str = "application/vnd.cyclonedx+json";
/// Beside an image it has this name.
pub const FILE_NAME: &str = "prewarm.cdx.json";

/// The whole document.
pub fn render(parts: &Parts, origin: &Origin) -> anyhow::Result<Vec<u8>> {
    let program = parts.0.values().find(|part| part.name == "prewarm").context("the program is no part")?;
    let others = parts.0.values().filter(|part| part.key() != program.key());
    let document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": serial_number(parts, origin),
        "version": 1,
        "metadata": {"timestamp": origin.created()?, "component": component(program, "application")},
        "components": others.map(|part| component(part, "library")).collect::<Vec<_>>(),
        "dependencies": parts.0.values().map(dependency).collect::<Vec<_>>(),
    });
    let mut bytes = serde_json::to_vec_pretty(&document).context("writing JSON")?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn component(part: &Part, kind: &str) -> Value {
    let mut component = json!({
        "bom-ref": purl(part),
        "licenses": [{"expression": part.license}],
        "name": part.name,
        "purl": purl(part),
        "type": kind,
        "version": part.version,
    });
    if let Some(checksum) = &part.checksum {
        component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
    }
    component
}

fn dependency(part: &Part) -> Value {
    let needs: Vec<String> = part.needs.iter().map(|key| format!("pkg:cargo/{key}")).collect();
    json!({"dependsOn": needs, "ref": purl(part)})
}

fn purl(part: &Part) -> String {
    format!("pkg:cargo/{}", part.key())
}

/// A UUID that is another one for other parts or another commit, and the same for the same.
fn serial_number(parts: &Parts, origin: &Origin) -> String {
    let keys: Vec<&str> = parts.0.keys().map(String::as_str).collect();
    let hash = Sha256::digest(format!("{}\n{}", origin.revision, keys.join("\n")));
    let number = u128::from_be_bytes(hash[..16].try_into().expect("a hash is longer than a number"));
    let hex = format!("{number:032x}");
    // Version 8 is for those that are made in a way of one's own.
    format!("urn:uuid:{}-{}-8{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    fn parts() -> Parts {
        let part = |name: &str, needs: &[&str]| Part {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: "MIT".to_owned(),
            is_ours: name == "prewarm",
            checksum: (name != "prewarm").then(|| "ab12".to_owned()),
            needs: needs.iter().map(|need| (*need).to_owned()).collect::<BTreeSet<_>>(),
        };
        let parts = [part("prewarm", &["kube@1.0.0"]), part("kube", &[])];
        Parts(parts.map(|part| (part.key(), part)).into_iter().collect::<BTreeMap<_, _>>())
    }

    #[test]
    fn a_document_names_every_part_with_version_licence_and_checksum() {
        let origin = Origin { revision: "12ab".to_owned(), time: 0 };
        let document: Value = serde_json::from_slice(&render(&parts(), &origin).unwrap()).unwrap();
        assert_eq!(document["metadata"]["component"]["purl"], "pkg:cargo/prewarm@1.0.0");
        let kube = &document["components"][0];
        assert_eq!((&kube["name"], &kube["licenses"][0]["expression"]), (&json!("kube"), &json!("MIT")));
        assert_eq!(kube["hashes"][0]["content"], "ab12");
        assert_eq!(document["dependencies"][1]["dependsOn"], json!(["pkg:cargo/kube@1.0.0"]));
    }

    #[test]
    fn the_number_of_a_document_is_that_of_its_commit() {
        let number =
            |revision: &str| serial_number(&parts(), &Origin { revision: revision.to_owned(), time: 0 });
        assert_eq!(number("12ab"), number("12ab"));
        assert_ne!(number("12ab"), number("34cd"));
        assert_eq!(number("12ab").len(), "urn:uuid:".len() + 36);
    }
}
