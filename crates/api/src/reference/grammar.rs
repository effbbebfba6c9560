//! The grammar of image references: splits a reference, checks each part, and expands and shortens names.

use super::error::{ParseError, excerpt};

/// The registry of a reference that names none.
pub(super) const HUB: &str = "docker.io";

/// An older name of the same registry; references to both are equal.
const OLD_HUB: &str = "index.docker.io";

/// The path prefix of single-word images in the default registry.
const OFFICIAL: &str = "library/";

const MAX_REPOSITORY_CHARS: usize = 255;
const MAX_TAG_CHARS: usize = 128;
const IMAGE_ID_DIGITS: usize = 64;

/// Digest algorithms and the number of their hexadecimal digits.
const DIGESTS: [(&str, usize); 3] = [("sha256", 64), ("sha384", 96), ("sha512", 128)];

/// Checks the reference as a whole.
pub(super) fn check_text(text: &str) -> Result<(), ParseError> {
    if text.is_empty() {
        return Err(ParseError::Empty);
    }
    if let Some((scheme, _)) = text.split_once("://") {
        return Err(ParseError::Scheme(excerpt(scheme)));
    }
    if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(ParseError::WhiteSpace(excerpt(text)));
    }
    if let Some(found) = text.chars().find(|c| !c.is_ascii()) {
        return Err(ParseError::NotAscii(found));
    }
    if text.len() == IMAGE_ID_DIGITS && text.bytes().all(is_lower_hex) {
        return Err(ParseError::ImageId);
    }
    Ok(())
}

/// Splits off the digest.
pub(super) fn split_digest(text: &str) -> (&str, Option<&str>) {
    text.split_once('@').map_or((text, None), |(rest, digest)| (rest, Some(digest)))
}

/// Splits off the tag. A colon with a slash after it belongs to the port of the registry.
pub(super) fn split_tag(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        Some((rest, tag)) if !tag.contains('/') => (rest, Some(tag)),
        _ => (text, None),
    }
}

/// Checks a tag and returns it.
pub(super) fn check_tag(tag: &str) -> Result<&str, ParseError> {
    let is_tag = tag.len() <= MAX_TAG_CHARS
        && tag.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && tag.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'));
    if is_tag { Ok(tag) } else { Err(ParseError::Tag(excerpt(tag))) }
}

/// Checks a digest and returns it.
pub(super) fn check_digest(digest: &str) -> Result<&str, ParseError> {
    let no_digest = || ParseError::Digest(excerpt(digest));
    let (name, digits) = digest.split_once(':').ok_or_else(no_digest)?;
    let (algorithm, expected) = DIGESTS
        .into_iter()
        .find(|(algorithm, _)| *algorithm == name)
        .ok_or_else(|| ParseError::DigestAlgorithm(excerpt(name)))?;
    if !digits.bytes().all(is_lower_hex) {
        return Err(no_digest());
    }
    if digits.len() != expected {
        return Err(ParseError::DigestLength { algorithm, expected, length: digits.len() });
    }
    Ok(digest)
}

/// Expands a name by everything that a user may leave out: `nginx` is `docker.io/library/nginx`.
pub(super) fn full_name(name: &str) -> Result<String, ParseError> {
    expand(name).map_err(|error| {
        let lower = name.to_ascii_lowercase();
        if lower != name && expand(&lower).is_ok() { ParseError::UpperCase(excerpt(&lower)) } else { error }
    })
}

fn expand(name: &str) -> Result<String, ParseError> {
    if name.is_empty() {
        return Err(ParseError::Empty);
    }
    if name.ends_with('/') {
        return Err(ParseError::NoRepository(excerpt(name)));
    }
    match name.split_once('/') {
        None => expand_on_hub(name),
        Some((HUB | OLD_HUB, path)) => expand_on_hub(path),
        Some((first, _)) if !is_taken_for_registry(first) => expand_on_hub(name),
        // No host name has an underscore. Go accepts such a name as a path without a registry, and the runtime then
        // takes its first part for the host after all.
        Some((first, _)) if first.contains('_') && !first.contains(':') => {
            check_repository(name)?;
            Ok(name.to_owned())
        }
        Some((registry, path)) => {
            check_registry(registry)?;
            check_repository(path)?;
            Ok(name.to_owned())
        }
    }
}

fn expand_on_hub(path: &str) -> Result<String, ParseError> {
    let prefix = if path.contains('/') { "" } else { OFFICIAL };
    check_repository_with(prefix.len(), path)?;
    Ok(format!("{HUB}/{prefix}{path}"))
}

/// Shortens a full name to the familiar one, unless the short form would mean another image.
pub(super) fn familiar(full_name: &str) -> &str {
    let Some((HUB, path)) = full_name.split_once('/') else {
        return full_name;
    };
    match path.split_once('/') {
        Some(("library", official)) if !official.contains('/') => official,
        Some((first, _)) if is_taken_for_registry(first) => full_name,
        _ => path,
    }
}

/// Whether the part before the first slash is a registry, and not the beginning of a path.
fn is_taken_for_registry(first: &str) -> bool {
    first == "localhost" || first.contains(['.', ':']) || first.contains(|c: char| c.is_ascii_uppercase())
}

fn check_registry(registry: &str) -> Result<(), ParseError> {
    let (is_host, port) = match registry.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) => (is_ipv6(address), port),
        None => match registry.find(':') {
            Some(colon) => (registry[..colon].split('.').all(is_host_label), &registry[colon..]),
            None => (registry.split('.').all(is_host_label), ""),
        },
    };
    if is_host && is_port(port) { Ok(()) } else { Err(ParseError::Registry(excerpt(registry))) }
}

fn is_ipv6(address: &str) -> bool {
    !address.is_empty() && address.bytes().all(|b| b.is_ascii_hexdigit() || b == b':')
}

fn is_host_label(label: &str) -> bool {
    let is_inside = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    !label.is_empty() && label.bytes().all(is_inside) && !label.starts_with('-') && !label.ends_with('-')
}

/// Whether the text after a host is nothing, or a colon and a number.
fn is_port(text: &str) -> bool {
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    text.is_empty() || text.strip_prefix(':').is_some_and(is_number)
}

fn check_repository(path: &str) -> Result<(), ParseError> {
    check_repository_with(0, path)
}

/// Checks a path that has `left_out` more characters in full.
fn check_repository_with(left_out: usize, path: &str) -> Result<(), ParseError> {
    if !path.split('/').all(is_path_component) {
        return Err(ParseError::Repository(excerpt(path)));
    }
    let length = left_out + path.len();
    if length > MAX_REPOSITORY_CHARS {
        return Err(ParseError::TooLong { length, max: MAX_REPOSITORY_CHARS });
    }
    Ok(())
}

/// Whether the text consists of words of letters and digits, separated by `.`, `_`, `__` or any number of dashes.
fn is_path_component(component: &str) -> bool {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_divider = |text: &str| matches!(text, "" | "." | "_" | "__") || text.bytes().all(|b| b == b'-');
    component.starts_with(is_word) && component.ends_with(is_word) && component.split(is_word).all(is_divider)
}

fn is_lower_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}
