//! Which images a key of a docker config, or a pattern of a plugin, is for: `[scheme://]host[:port][/path]`.
//!
//! These are kubelet's rules, so that a Secret that works for pods works here: each label of the host may have `*`,
//! which never crosses a dot; ports are equal; the path is a prefix. Two things match here that do not match there, and
//! both stay within the intended registry: IPv6 hosts, and the other names of Docker Hub.

use prewarm_api::reference::ImageRef;

/// The registry of images whose name has no registry.
const HUB: &str = "docker.io";
/// Names under which docker and others store the credentials of Docker Hub.
const HUB_ALIASES: [&str; 3] = ["index.docker.io", "registry-1.docker.io", "registry.hub.docker.com"];
/// The longest key: a host has at most 253 characters and a repository 255.
const MAX_BYTES: usize = 1024;

/// How well a pattern fits. A name of the registry itself comes before an alias.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    Named,
    Alias,
}

/// A parsed key. Keys are ordered by their text; in reverse order the most specific key comes first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pattern {
    text: String,
    host: String,
    port: String,
    path: String,
}

/// Why a text is not a pattern. Nothing of the text is repeated, because it may be anything, even a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PatternError {
    #[error("it has more than {MAX_BYTES} bytes")]
    Long,
    #[error("it names no host")]
    NoHost,
    #[error("its host has characters that a host cannot have")]
    BadHost,
    #[error("its port is not a number")]
    BadPort,
    #[error("its path has characters that a repository cannot have")]
    BadPath,
}

impl Pattern {
    /// Parses a key as docker writes it.
    pub(crate) fn parse(key: &str) -> Result<Self, PatternError> {
        if key.len() > MAX_BYTES {
            return Err(PatternError::Long);
        }
        let (authority, path) = split(key);
        let (host, port) = split_port(authority);
        check_host(host)?;
        if !port.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(PatternError::BadPort);
        }
        if path.bytes().any(|byte| !byte.is_ascii_graphic() || byte == b'"') {
            return Err(PatternError::BadPath);
        }
        Ok(Self {
            text: format!("{authority}{path}"),
            host: host.to_owned(),
            port: port.to_owned(),
            path: path.to_owned(),
        })
    }

    /// The key without scheme and without anything that is not host, port or path.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether and how well the pattern fits this image.
    pub(crate) fn fit(&self, image: &ImageRef) -> Option<Fit> {
        let path = format!("/{}", image.repository());
        if !path.starts_with(&self.path) {
            return None;
        }
        self.fit_registry(image.registry())
    }

    /// Whether and how well the pattern fits this registry, whatever its path.
    pub(crate) fn fit_registry(&self, registry: &str) -> Option<Fit> {
        let (host, port) = split_port(registry);
        if self.port == port && host_matches(&self.host, host) {
            return Some(Fit::Named);
        }
        let is_alias = registry == HUB && self.port.is_empty() && HUB_ALIASES.contains(&&*self.host);
        is_alias.then_some(Fit::Alias)
    }
}

/// Host with port, and path. The two prefixes of registry APIs are not part of a path, and neither is a slash alone.
fn split(key: &str) -> (&str, &str) {
    let bare = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://")).unwrap_or(key);
    let bare = bare.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = bare.split_at(bare.find('/').unwrap_or(bare.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    let path = if path.starts_with("/v1/") || path.starts_with("/v2/") { &path[3..] } else { path };
    (host, if path == "/" { "" } else { path })
}

fn split_port(authority: &str) -> (&str, &str) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port),
        _ => (authority, ""),
    }
}

fn check_host(host: &str) -> Result<(), PatternError> {
    let fits = |allowed: fn(u8) -> bool, text: &str| !text.is_empty() && text.bytes().all(allowed);
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-_*".contains(&byte);
    let is_address = |byte: u8| byte.is_ascii_hexdigit() || b":.".contains(&byte);
    match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(address) if fits(is_address, address) => Ok(()),
        None if host.is_empty() => Err(PatternError::NoHost),
        None if fits(is_name, host) => Ok(()),
        _ => Err(PatternError::BadHost),
    }
}

/// Compares label by label, so that a star never stands for several labels.
fn host_matches(pattern: &str, host: &str) -> bool {
    let (mut patterns, mut labels) = (pattern.split('.'), host.split('.'));
    loop {
        match (patterns.next(), labels.next()) {
            (None, None) => return true,
            (Some(pattern), Some(label)) if label_matches(pattern, label) => {}
            _ => return false,
        }
    }
}

/// Whether `pattern`, in which `*` stands for any characters, covers the whole label.
fn label_matches(pattern: &str, label: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == label };
    let Some(mut left) = label.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let last = pieces.pop().unwrap_or_default();
    // The earliest position of each piece leaves the most for the rest, so no backtracking is needed.
    for piece in pieces {
        let Some(at) = left.find(piece) else { return false };
        left = &left[at + piece.len()..];
    }
    left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(key: &str, image: &str) -> Option<Fit> {
        Pattern::parse(key).unwrap().fit(&image.parse().unwrap())
    }

    #[test]
    fn keys_match_as_kubelet_matches_them() {
        for (key, image) in [
            ("ghcr.io", "ghcr.io/team/app"),
            ("https://ghcr.io", "ghcr.io/team/app:v1"),
            ("http://ghcr.io/", "ghcr.io/team/app"),
            ("ghcr.io/team", "ghcr.io/team/app"),
            ("ghcr.io/team/", "ghcr.io/team/app"),
            ("ghcr.io/te", "ghcr.io/team/app"),
            ("https://reg.example:5000/v1/", "reg.example:5000/app"),
            ("https://reg.example:5000/v2/", "reg.example:5000/app"),
            ("reg.example/v2/team", "reg.example/team/app"),
            ("*.example.com", "a.example.com/app"),
            ("a.*.com", "a.example.com/app"),
            ("a.example.*", "a.example.com/app"),
            ("pre*-suf.io", "pre-middle-suf.io/app"),
            ("*.*", "reg.example/app"),
            ("*.io", "docker.io/library/nginx"),
            ("docker.io/library/nginx", "nginx"),
            (
                "docker.io/library/nginx",
                "nginx@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            ),
            ("docker.io", "team/app"),
            ("localhost:5000", "localhost:5000/app"),
            ("[::1]:5000", "[::1]:5000/app"),
            ("[fd00::1]", "[fd00::1]/app"),
            ("https://robot@ghcr.io/team?a=b#c", "ghcr.io/team/app"),
        ] {
            assert_eq!(fit(key, image), Some(Fit::Named), "{key} for {image}");
        }
    }

    #[test]
    fn keys_for_other_registries_do_not_match() {
        for (key, image) in [
            ("ghcr.io", "quay.io/team/app"),
            ("ghcr.io", "xghcr.io/team/app"),
            ("ghcr.io", "ghcr.io.evil.example/team/app"),
            ("*.io", "a.ghcr.io/app"),
            ("*.example.com", "example.com/app"),
            ("*.example.com", "a.b.example.com/app"),
            ("*", "ghcr.io/app"),
            ("ghcr.io/team", "ghcr.io/other/app"),
            ("docker.io/library/nginx", "team/nginx"),
            ("reg.example:5000", "reg.example/app"),
            ("reg.example", "reg.example:5000/app"),
            ("reg.example:5000", "reg.example:5001/app"),
            ("ghcr.io/v1", "ghcr.io/team/app"),
            ("index.docker.io", "ghcr.io/team/app"),
            ("index.docker.io:443", "nginx"),
            ("index.docker.io/team", "nginx"),
            ("ab*ba.io", "aba.io/app"),
        ] {
            assert_eq!(fit(key, image), None, "{key} for {image}");
        }
    }

    #[test]
    fn the_other_names_of_docker_hub_are_aliases() {
        for key in ["https://index.docker.io/v1/", "index.docker.io", "https://registry-1.docker.io/v2/"] {
            assert_eq!(fit(key, "nginx"), Some(Fit::Alias), "{key}");
            assert_eq!(fit(key, "docker.io/team/app"), Some(Fit::Alias), "{key}");
        }
    }

    #[test]
    fn invalid_keys_are_refused_with_a_reason() {
        for (key, reason) in [
            ("", PatternError::NoHost),
            ("https:///team", PatternError::NoHost),
            ("ghcr io", PatternError::BadHost),
            ("reg[0-9].io", PatternError::BadHost),
            ("[::1", PatternError::BadHost),
            ("reg.example:http", PatternError::BadPort),
            ("reg.example/te am", PatternError::BadPath),
            (&"a".repeat(2000), PatternError::Long),
        ] {
            assert_eq!(Pattern::parse(key), Err(reason), "{key}");
        }
    }
}
