//! Addresses of hosts, as containerd reads them from the names of tables.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use http::Uri;

/// The path beneath which registries answer.
const API_ROOT: &str = "/v2";

/// Whether a host is asked over TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    Http,
    Https,
}

impl Scheme {
    pub(crate) fn usual_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// Where a host is, without anything secret: user, password and query of its name are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub scheme: Scheme,
    /// Lower case, without brackets and without a dot at the end.
    pub host: String,
    pub port: u16,
    /// What stands before `/NAME/manifests/…`; empty or without a slash at its end.
    pub root: String,
}

impl Address {
    /// Reads the name of a table. None if it names no host.
    pub(crate) fn parse(text: &str, override_path: bool) -> Option<Self> {
        let whole = if text.starts_with("http") { text.to_owned() } else { format!("https://{text}") };
        // Any other scheme would be read as a host of that name.
        if whole.matches("://").count() > 1 && !text.starts_with("http") {
            return None;
        }
        let uri: Uri = whole.split('#').next()?.parse().ok()?;
        let scheme = match uri.scheme_str()? {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => return None,
        };
        let host = plain_host(uri.host()?);
        let port = match uri.port() {
            Some(port) => Some(port.as_u16()),
            // A port that is no number is no port, and then this is no address.
            None if uri.authority()?.as_str().rsplit('@').next()?.trim_end_matches(':').ends_with(']') => {
                None
            }
            None if uri.authority()?.as_str().rsplit('@').next()?.trim_end_matches(':').contains(':') => {
                return None;
            }
            None => None,
        };
        let root = root(uri.path(), override_path);
        let usable = !host.is_empty() && port != Some(0);
        usable.then(|| Self { scheme, host, port: port.unwrap_or(scheme.usual_port()), root })
    }

    /// Whether it is on the machine that asks: a name or an address of loopback.
    pub fn is_loopback(&self) -> bool {
        let address = self.host.parse::<IpAddr>().map(|address| address.to_canonical());
        match address {
            Ok(address) => address.is_loopback() || address.is_unspecified(),
            Err(_) => self.host == "localhost" || self.host.ends_with(".localhost"),
        }
    }

    /// Host and port as they are written in a request; the usual port is left out.
    pub(crate) fn authority(&self) -> String {
        let bracketed = if self.host.parse::<Ipv6Addr>().is_ok() {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        if self.port == self.scheme.usual_port() { bracketed } else { format!("{bracketed}:{}", self.port) }
    }

    /// Whether both are the same host and port by the same scheme.
    pub(crate) fn is_same_origin(&self, other: &Self) -> bool {
        (self.scheme, &self.host, self.port) == (other.scheme, &other.host, other.port)
    }
}

/// Scheme, host and port, and the root if it is not the usual one.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        let root = if self.root == API_ROOT { "" } else { &self.root };
        write!(f, "{scheme}://{}{root}", self.authority())
    }
}

/// A host's name in the one form that is compared: lower case, no brackets, no dot at its end, addresses shortest.
pub(super) fn plain_host(text: &str) -> String {
    let bare = text.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.').to_ascii_lowercase();
    bare.parse::<IpAddr>().map_or(bare, |address| address.to_string())
}

/// Splits `host:port` of a reference. The colons of an IPv6 address stand in brackets.
pub(super) fn split_port(registry: &str) -> (&str, Option<u16>) {
    match registry.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => match port.parse() {
            Ok(port) => (host, Some(port)),
            Err(_) => (registry, None),
        },
        _ => (registry, None),
    }
}

/// The root of the API. A path in the name stands before `/v2`, unless the table says that it takes its place.
fn root(path: &str, override_path: bool) -> String {
    let cleaned = cleaned(path);
    if override_path || cleaned.ends_with(API_ROOT) { cleaned } else { format!("{cleaned}{API_ROOT}") }
}

/// A path without empty, `.` and `..` parts and without a slash at its end.
fn cleaned(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.iter().flat_map(|part| ["/", part]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, override_path: bool) -> String {
        Address::parse(text, override_path).map_or_else(
            || "none".to_owned(),
            |address| format!("{} {} {}", address, address.port, address.root),
        )
    }

    #[test]
    fn a_name_is_read_as_containerd_reads_it() {
        let table = [
            ("https://mirror.registry", "https://mirror.registry 443 /v2"),
            ("http://mirror.registry", "http://mirror.registry 80 /v2"),
            ("mirror.registry:5000", "https://mirror.registry:5000 5000 /v2"),
            ("localhost:5000", "https://localhost:5000 5000 /v2"),
            ("https://mirror.registry/us", "https://mirror.registry/us/v2 443 /us/v2"),
            ("https://mirror.registry/us/v2/", "https://mirror.registry/us/v2 443 /us/v2"),
            ("https://mirror.registry/", "https://mirror.registry 443 /v2"),
            ("https://mirror.registry//a/../b/./", "https://mirror.registry/b/v2 443 /b/v2"),
            ("https://[2001:db8::1]:5000", "https://[2001:db8::1]:5000 5000 /v2"),
            ("https://[2001:db8::1]", "https://[2001:db8::1] 443 /v2"),
            ("https://ann:secret@mirror.registry?token=secret", "https://mirror.registry 443 /v2"),
            ("httpd.example", "none"),
            ("https://", "none"),
            ("", "none"),
            ("https://mirror.registry:port", "none"),
            ("https://mirror.registry:99999", "none"),
            ("ftp://mirror.registry", "none"),
        ];
        for (text, read) in table {
            assert_eq!(shown(text, false), read, "{text}");
        }
    }

    #[test]
    fn a_path_that_is_the_root_stays_as_it_is() {
        assert_eq!(shown("https://m.example/v2/prefix", true), "https://m.example/v2/prefix 443 /v2/prefix");
        assert_eq!(shown("https://m.example", true), "https://m.example 443 ");
    }

    #[test]
    fn loopback_is_known_by_name_and_by_address() {
        for text in [
            "127.0.0.1:5000",
            "http://127.8.0.1",
            "localhost",
            "[::1]:5000",
            "a.localhost",
            "0.0.0.0",
            "[::ffff:127.0.0.1]",
        ] {
            assert!(Address::parse(text, false).unwrap().is_loopback(), "{text}");
        }
        for text in ["10.0.0.1", "localhost.example", "[2001:db8::1]"] {
            assert!(!Address::parse(text, false).unwrap().is_loopback(), "{text}");
        }
    }
}
