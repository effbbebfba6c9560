//! Classifies failures by the texts of runtimes and registries.
//!
//! gRPC codes hardly help: nearly everything arrives as `Unknown`, with a chain of texts from the runtime, its HTTP
//! client and the registry. The table below holds phrases of all three. Its order matters, because a chain often has
//! several of them and the more specific one comes first.

use prewarm_api::kruise::FailureClass;
use tonic::Code;

use FailureClass::{
    Corrupt, InvalidReference, NoPlatform, NoSpace, NotFound, RateLimited, TimedOut, Tls, Unauthorized,
    Unknown, Unreachable,
};

/// Classes and the phrases that identify them, in lower case.
const TABLE: &[(FailureClass, &[&str])] = &[
    (NoSpace, &["no space left on device", "disk quota exceeded", "not enough space", "no space left"]),
    (
        NoPlatform,
        &[
            "no match for platform",
            "no matching manifest",
            "no image found in manifest list",
            "no image found in image index",
            "does not match the specified platform",
        ],
    ),
    (
        RateLimited,
        &["429 too many requests", "toomanyrequests", "too many requests", "rate limit", "rate-limit"],
    ),
    (
        InvalidReference,
        &[
            "invalid reference format",
            "cannot parse input",
            "parse image reference",
            "could not parse reference",
            "parse reference",
            "repository name must be",
            "invalid checksum digest",
            "unsupported digest algorithm",
        ],
    ),
    (
        Tls,
        &[
            "x509: ",
            "tls: ",
            "gave http response to https client",
            "certificate is not trusted",
            "certificate has expired",
            "unknown authority",
            "malformed http response",
            "http request to an https server",
        ],
    ),
    (
        Corrupt,
        &[
            "unexpected eof",
            "failed size validation",
            "failed digest validation",
            "digest mismatch",
            "unexpected commit digest",
            "unexpected commit size",
            "does not match expected",
            "did not match expected",
            "does not match configuration",
            "digest did not match",
            "layer does not match",
            "wrong diff id",
            "mismatched digest",
            "gzip: invalid",
            "invalid tar header",
            "flate: corrupt",
            "zstd: invalid",
            "magic number mismatch",
            "could not decode manifest",
            "cannot unmarshal",
            "invalid character",
            "doesn't match the expected",
            "exceeds its expected size",
        ],
    ),
    (
        Unauthorized,
        &[
            "401 unauthorized",
            "403 forbidden",
            "unauthorized",
            "authorization failed",
            "authentication required",
            "access denied",
            "denied: ",
            "resource is denied",
            "no basic auth credentials",
            "insufficient_scope",
            "invalid username",
            "failed to authorize",
            "failed to fetch anonymous token",
            "failed to fetch oauth token",
            "forbidden",
        ],
    ),
    (
        Unreachable,
        &[
            "registryunavailable",
            "connection refused",
            "connection reset",
            "connection timed out",
            "connection lost",
            "no such host",
            "no route to host",
            "network is unreachable",
            "host is down",
            "i/o timeout",
            "handshake timeout",
            "timeout awaiting response headers",
            "client.timeout exceeded",
            "server misbehaving",
            "temporary failure in name resolution",
            "name resolution",
            "broken pipe",
            "use of closed network connection",
            "server closed idle connection",
            "goaway",
            "proxyconnect",
        ],
    ),
    (
        NotFound,
        &[
            "404 not found",
            "manifest unknown",
            "manifest_unknown",
            "name unknown",
            "name_unknown",
            "blob unknown",
            "not found",
            "does not exist",
            "notfound",
        ],
    ),
    (TimedOut, &["deadline exceeded", "timed out", "time out"]),
];

/// The class of a failure, by the code and the text of the runtime.
///
/// Words with a slash are ignored: they are image names, addresses and paths, and an image may have any name.
pub fn classify(code: Code, text: &str) -> FailureClass {
    let spoken = spoken(text);
    if let Some(class) = by_phrase(&spoken) {
        return class;
    }
    match code {
        Code::NotFound => NotFound,
        Code::DeadlineExceeded => TimedOut,
        Code::PermissionDenied | Code::Unauthenticated => Unauthorized,
        _ => Unknown,
    }
}

/// Whether the text says that a registry is overloaded (429) or fails by itself (5xx). A registry that cannot be
/// reached does not count.
pub fn is_overload(text: &str) -> bool {
    let spoken = spoken(text);
    by_phrase(&spoken) == Some(RateLimited) || is_server_error(&spoken)
}

fn by_phrase(spoken: &str) -> Option<FailureClass> {
    let row = TABLE.iter().find(|(_, phrases)| phrases.iter().any(|phrase| spoken.contains(phrase)));
    match row {
        // A registry that fails while it checks credentials or names has failed, not refused.
        Some((Unauthorized | NotFound | TimedOut, _)) | None if is_server_error(spoken) => Some(Unreachable),
        Some((class, _)) => Some(*class),
        None if spoken.trim_end_matches(['"', '\'']).ends_with(": eof") => Some(Unreachable),
        None => None,
    }
}

/// Whether the text has a status from 500 to 599.
fn is_server_error(spoken: &str) -> bool {
    let Some(start) = spoken.find("status") else { return false };
    let mut words = spoken[start..].split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| {
        word.len() == 3 && word.starts_with('5') && word.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// The text in lower case, without words that have a slash. The punctuation of a sentence stays.
fn spoken(text: &str) -> String {
    let mut spoken = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        let is_name = word.contains('/') && !KEPT.iter().any(|kept| word.eq_ignore_ascii_case(kept));
        // A name at the start of a clause ends in a colon, which still separates the clauses.
        let word = if is_name {
            word.rfind(':').filter(|at| at + 1 == word.len()).map_or("", |_| ":")
        } else {
            word
        };
        if !spoken.is_empty() && !word.is_empty() {
            spoken.push(' ');
        }
        spoken.extend(word.chars().map(|c| c.to_ascii_lowercase()));
    }
    spoken
}

/// Words of the table that have a slash.
const KEPT: &[&str] = &["i/o"];

#[cfg(test)]
mod tests;
