//! The part of a Secret that a node needs: of its docker config the entries for certain registries, as they stand there,
//! and nothing else. Entries are not decoded: whoever uses them says what is wrong with one.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::value::RawValue;
use zeroize::{Zeroize as _, Zeroizing};

use crate::docker_config::{DecodeError, Layout, MAX_CONFIG_BYTES, MAX_CONFIG_ENTRIES};
use crate::pattern::Pattern;

/// Entries by key, each as the text that it is in the Secret. Nothing is copied out of it.
type Entries<'a> = BTreeMap<String, &'a RawValue>;

/// Takes the entries for these registries out of a Secret, given as its type and its data by key. They are in the layout
/// of the Secret's type and belong under its key; the same entries always give the same bytes.
pub fn excerpt<'a>(
    secret_type: &str,
    data: impl FnOnce(&'static str) -> Option<&'a [u8]>,
    registries: &BTreeSet<String>,
) -> Result<(Layout, Zeroizing<Vec<u8>>), DecodeError> {
    let layout = Layout::of_secret_type(secret_type).ok_or(DecodeError::SecretType)?;
    let bytes = data(layout.data_key()).ok_or(DecodeError::NoKey(layout.data_key()))?;
    if bytes.len() > MAX_CONFIG_BYTES {
        return Err(DecodeError::Bytes);
    }
    let entries = parse(layout, bytes)
        .map_err(|error| DecodeError::Json { line: error.line(), column: error.column() })?;
    if entries.len() > MAX_CONFIG_ENTRIES {
        return Err(DecodeError::Entries);
    }
    let is_for =
        |pattern: &Pattern| registries.iter().any(|registry| pattern.fit_registry(registry).is_some());
    let kept =
        entries.into_iter().filter(|(key, _)| Pattern::parse(key).is_ok_and(|pattern| is_for(&pattern)));
    Ok((layout, write(layout, &kept.collect(), bytes.len())))
}

/// Overwrites bytes that held something secret.
pub fn wipe(bytes: &mut Vec<u8>) {
    bytes.zeroize();
}

fn parse(layout: Layout, bytes: &[u8]) -> serde_json::Result<Entries<'_>> {
    #[derive(Deserialize)]
    struct Document<'a> {
        #[serde(borrow, default)]
        auths: Option<Entries<'a>>,
    }
    match layout {
        Layout::Json => {
            serde_json::from_slice::<Document>(bytes).map(|found| found.auths.unwrap_or_default())
        }
        Layout::Legacy => {
            let mut entries: Entries = serde_json::from_slice(bytes)?;
            // People put the newer form under the older type (kruise T4).
            if let Some(auths) = entries.get("auths").copied().and_then(nested) {
                entries.remove("auths");
                entries.extend(auths);
            }
            Ok(entries)
        }
    }
}

/// The entries within `auths`, unless it is an entry itself.
fn nested(auths: &RawValue) -> Option<Entries<'_>> {
    let entries: Entries = serde_json::from_str(auths.get()).ok()?;
    entries.values().all(|entry| entry.get().starts_with('{')).then_some(entries)
}

/// The entries as JSON. What is written is shorter than the Secret's own text plus the frame, so the buffer never grows
/// and leaves no copy behind.
fn write(layout: Layout, entries: &Entries, most: usize) -> Zeroizing<Vec<u8>> {
    let (open, close): (&[u8], &[u8]) = match layout {
        Layout::Json => (br#"{"auths":{"#, b"}}"),
        Layout::Legacy => (b"{", b"}"),
    };
    let mut text = Zeroizing::new(Vec::with_capacity(most + open.len() + close.len()));
    text.extend_from_slice(open);
    for (number, (key, entry)) in entries.iter().enumerate() {
        if number > 0 {
            text.push(b',');
        }
        serde_json::to_writer(&mut *text, key).expect("a text can be written to memory");
        text.push(b':');
        text.extend_from_slice(entry.get().as_bytes());
    }
    text.extend_from_slice(close);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = "kubernetes.io/dockerconfigjson";
    const LEGACY: &str = "kubernetes.io/dockercfg";

    fn of(secret_type: &str, text: &str, registries: &[&str]) -> Result<String, DecodeError> {
        let registries = registries.iter().map(|&registry| registry.to_owned()).collect();
        let (_, bytes) = excerpt(secret_type, |_| Some(text.as_bytes()), &registries)?;
        assert!(bytes.capacity() >= bytes.len());
        Ok(String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[test]
    fn only_the_entries_for_these_registries_are_taken() {
        let text = r#"{"credsStore":"osxkeychain","auths":{
            "quay.io":{"auth":"cXVheTpodW50ZXIy"}, "reg.example/team":{"auth":"dGVhbTpodW50ZXIy"},
            "*.example":{"username":"a"}, "https://index.docker.io/v1/":{"auth":"aHVi"}, "no host":{"auth":"eA=="}}}"#;
        let reg = of(JSON, text, &["reg.example"]).unwrap();
        assert_eq!(
            reg,
            r#"{"auths":{"*.example":{"username":"a"},"reg.example/team":{"auth":"dGVhbTpodW50ZXIy"}}}"#
        );
        let hub = of(JSON, text, &["docker.io"]).unwrap();
        assert_eq!(hub, r#"{"auths":{"https://index.docker.io/v1/":{"auth":"aHVi"}}}"#);
        assert_eq!(of(JSON, text, &["ghcr.io"]).unwrap(), r#"{"auths":{}}"#);
        assert_eq!(of(JSON, text, &[]).unwrap(), r#"{"auths":{}}"#);
    }

    #[test]
    fn the_older_type_has_its_entries_at_the_top_whatever_form_they_had() {
        let entry = r#"{"username":"a","password":"b"}"#;
        let flat = format!(r#"{{"reg.example":{entry}}}"#);
        let other = format!(r#"{{"auths":{{"reg.example":{entry}}},"quay.io":{entry}}}"#);
        for text in [&flat, &other] {
            assert_eq!(of(LEGACY, text, &["reg.example"]).unwrap(), flat);
        }
        let host = format!(r#"{{"auths":{entry}}}"#);
        assert_eq!(of(LEGACY, &host, &["auths"]).unwrap(), host, "a host may be called auths");
    }

    #[test]
    fn the_same_entries_in_another_order_are_the_same_bytes() {
        let one = r#"{"auths":{"reg.example":{"auth":"a"},"reg.example/team":{"auth":"b"}}}"#;
        let two = r#"{ "auths": { "reg.example/team":{"auth":"b"}, "reg.example":{"auth":"a"} } }"#;
        assert_eq!(of(JSON, one, &["reg.example"]), of(JSON, two, &["reg.example"]));
    }

    #[test]
    fn what_is_no_docker_config_is_refused_without_its_content() {
        let refused = |secret_type, text| of(secret_type, text, &["reg.example"]).unwrap_err().to_string();
        for (secret_type, text) in
            [("Opaque", "{}"), ("kubernetes.io/tls", "{}"), ("", "{}"), (JSON, "hunter2")]
        {
            let sentence = refused(secret_type, text);
            assert!(!sentence.contains("hunter2") && sentence.starts_with("its "), "{sentence}");
        }
        let nothing = excerpt(JSON, |_| None, &BTreeSet::new()).unwrap_err();
        assert_eq!(nothing.to_string(), "it has no key .dockerconfigjson");
        let large = " ".repeat(MAX_CONFIG_BYTES + 1);
        assert_eq!(of(JSON, &large, &[]), Err(DecodeError::Bytes));
    }

    #[test]
    fn an_excerpt_reads_like_the_whole_for_its_registries() {
        use crate::Keyring;
        let text = r#"{"auths":{"reg.example":{"auth":"Zm9vOmJhcg=="},"reg.example/team":{"auth":"YTpi"},"quay.io":{}}}"#;
        let image = "reg.example/team/app".parse().unwrap();
        let matching = |text: &str| {
            let mut keyring = Keyring::default();
            keyring.add_secret("s", JSON, |_| Some(text.as_bytes()));
            keyring.matching(&image)
        };
        assert_eq!(matching(&of(JSON, text, &["reg.example"]).unwrap()), matching(text));
    }
}
