//! A tar archive with an OCI layout that has no blobs: it only says which manifest an import is about.

use serde_json::json;

use super::Target;

/// tar deals in blocks of this many bytes.
const BLOCK: usize = 512;

/// The archive.
pub fn archive(root: &Target) -> Vec<u8> {
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [{ "mediaType": root.media_type, "digest": root.digest, "size": root.size }],
    });
    let mut archive = Vec::new();
    add(&mut archive, "oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#);
    add(&mut archive, "index.json", index.to_string().as_bytes());
    ended(archive)
}

/// An archive with one file.
pub fn file(name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut archive = Vec::new();
    add(&mut archive, name, bytes);
    ended(archive)
}

/// The end of an archive is two empty blocks.
fn ended(mut archive: Vec<u8>) -> Vec<u8> {
    archive.resize(archive.len() + 2 * BLOCK, 0);
    archive
}

/// Adds a file. The fields of its header have fixed places, and numbers are in octal.
fn add(archive: &mut Vec<u8>, name: &str, bytes: &[u8]) {
    let mut header = [0_u8; BLOCK];
    let mut put = |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, name);
    put(100, "0000644\0");
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{:011o}\0", bytes.len()));
    put(136, "00000000000\0");
    // The sum is taken with spaces in its own place.
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\u{0}00");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    archive.extend(header);
    archive.extend(bytes);
    archive.resize(archive.len().next_multiple_of(BLOCK), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_whole_blocks_whose_headers_add_up() {
        let root = Target {
            media_type: "application/vnd.oci.image.manifest.v1+json".into(),
            digest: format!("sha256:{}", "a".repeat(64)),
            size: 7,
        };
        let archive = archive(&root);
        assert_eq!(archive.len(), 6 * BLOCK, "two files of a header and a block each, and the end");
        for header in [&archive[..BLOCK], &archive[2 * BLOCK..3 * BLOCK]] {
            let said = std::str::from_utf8(&header[148..154]).unwrap();
            let mut plain = header.to_vec();
            plain[148..156].fill(b' ');
            let sum: u32 = plain.iter().map(|byte| u32::from(*byte)).sum();
            assert_eq!(u32::from_str_radix(said, 8).unwrap(), sum);
        }
        assert!(archive[2 * BLOCK..].starts_with(b"index.json\0"));
        assert!(archive.windows(root.digest.len()).any(|window| window == root.digest.as_bytes()));
    }
}
