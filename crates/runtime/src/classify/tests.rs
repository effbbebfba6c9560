//! Texts of the real programs, each with its class.

use super::*;

/// Texts of containerd 2.2.0, CRI-O 1.34.0, and their HTTP clients.
const TEXTS: &[(Code, &str, FailureClass)] = &[
    // No such image.
    (
        Code::Unknown,
        "unable to try pulling possible OCI artifact: build image source: reading manifest v9 in 10.77.0.1:5000/shop/web: manifest unknown",
        NotFound,
    ),
    (
        Code::NotFound,
        "failed to pull and unpack image \"10.77.0.1:5000/shop/web:v9\": failed to resolve reference \"10.77.0.1:5000/shop/web:v9\": 10.77.0.1:5000/shop/web:v9: not found",
        NotFound,
    ),
    (Code::NotFound, "rpc error", NotFound),
    (
        Code::Unknown,
        "reading manifest latest in docker.io/library/nosuch: name unknown: repository name not known to registry",
        NotFound,
    ),
    (
        Code::Unknown,
        "unexpected status from GET request to http://10.77.0.1:5000/v2/shop/web/blobs/sha256:00: 404 Not Found",
        NotFound,
    ),
    // No credentials, or the wrong ones.
    (
        Code::Unknown,
        "reading manifest v1 in 10.77.0.1:5000/shop/web: unauthorized: authentication required",
        Unauthorized,
    ),
    (
        Code::Unknown,
        "reading manifest v1 in 10.77.0.1:5000/shop/web: denied: requested access to the resource is denied",
        Unauthorized,
    ),
    (
        Code::Unknown,
        "failed to resolve image: unexpected status from HEAD request to http://10.77.0.1:5000/v2/shop/web/manifests/v1: 401 Unauthorized",
        Unauthorized,
    ),
    (
        Code::Unknown,
        "failed to resolve image: unexpected status from HEAD request to http://10.77.0.1:5000/v2/shop/web/manifests/v1: 403 Forbidden",
        Unauthorized,
    ),
    (
        Code::Unknown,
        "failed to resolve reference \"10.77.0.1:5000/shop/web:v1\": pull access denied, repository does not exist or may require authorization: authorization failed: no basic auth credentials",
        Unauthorized,
    ),
    (
        Code::Unknown,
        "pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed",
        Unauthorized,
    ),
    (
        Code::Unknown,
        "failed to authorize: failed to fetch anonymous token: unexpected status from GET request to https://auth.example/token: 403 Forbidden",
        Unauthorized,
    ),
    (
        Code::Unknown,
        "unable to retrieve auth token: invalid username/password: unauthorized: incorrect username or password",
        Unauthorized,
    ),
    (Code::PermissionDenied, "", Unauthorized),
    // Too many requests.
    (
        Code::Unknown,
        "reading manifest v1 in 10.77.0.1:5000/shop/web: toomanyrequests: slow down",
        RateLimited,
    ),
    (
        Code::Unknown,
        "failed to resolve image: unexpected status from HEAD request to http://10.77.0.1:5000/v2/shop/web/manifests/v1: 429 Too Many Requests",
        RateLimited,
    ),
    (
        Code::Unknown,
        "429 Too Many Requests - Server message: toomanyrequests: You have reached your unauthenticated pull rate limit. https://www.docker.com/increase-rate-limit",
        RateLimited,
    ),
    // The registry fails.
    (
        Code::Unknown,
        "reading manifest v1 in 10.77.0.1:5000/shop/web: received unexpected HTTP status: 500 Internal Server Error",
        Unreachable,
    ),
    (
        Code::Unknown,
        "parsing image configuration: fetching blob: received unexpected HTTP status: 500 Internal Server Error",
        Unreachable,
    ),
    (
        Code::Unknown,
        "failed to resolve image: unexpected status from HEAD request to http://10.77.0.1:5000/v2/shop/web/manifests/v1: 503 Service Unavailable",
        Unreachable,
    ),
    (
        Code::Unknown,
        "failed to copy: httpReadSeeker: failed open: unexpected status from GET request to http://10.77.0.1:5000/v2/shop/web/blobs/sha256:00: 500 Internal Server Error",
        Unreachable,
    ),
    (
        Code::Unknown,
        "failed to authorize: failed to fetch oauth token: unexpected status from GET request to https://auth.example/token: 504 Gateway Timeout",
        Unreachable,
    ),
    // The registry cannot be reached.
    (
        Code::Unknown,
        "RegistryUnavailable: pinging container registry 10.77.0.1:5999: Get \"http://10.77.0.1:5999/v2/\": dial tcp 10.77.0.1:5999: connect: connection refused",
        Unreachable,
    ),
    (
        Code::Unknown,
        "failed to do request: Head \"http://10.77.0.1:5999/v2/a/manifests/1\": dial tcp 10.77.0.1:5999: connect: connection refused",
        Unreachable,
    ),
    (
        Code::Unknown,
        "failed to do request: Head \"https://nosuch.example/v2/a/manifests/1\": dial tcp: lookup nosuch.example on 10.77.0.1:53: no such host",
        Unreachable,
    ),
    (Code::Unknown, "dial tcp: lookup reg.example on 127.0.0.11:53: server misbehaving", Unreachable),
    (Code::Unknown, "dial tcp: lookup reg.example: Temporary failure in name resolution", Unreachable),
    (Code::Unknown, "read tcp 10.0.0.1:4000->10.0.0.2:443: read: connection reset by peer", Unreachable),
    (Code::Unknown, "dial tcp 10.9.9.9:443: connect: no route to host", Unreachable),
    (Code::Unknown, "dial tcp 10.9.9.9:443: connect: network is unreachable", Unreachable),
    (Code::Unknown, "dial tcp 10.9.9.9:443: i/o timeout", Unreachable),
    (Code::Unknown, "net/http: TLS handshake timeout", Unreachable),
    (
        Code::Unknown,
        "failed to do request: Head \"http://10.77.0.1:5000/v2/a/manifests/1\": EOF",
        Unreachable,
    ),
    // TLS.
    (
        Code::Unknown,
        "failed to do request: Head \"https://reg.example/v2/a/manifests/1\": tls: failed to verify certificate: x509: certificate signed by unknown authority",
        Tls,
    ),
    (Code::Unknown, "Get \"https://reg.example/v2/\": http: server gave HTTP response to HTTPS client", Tls),
    (Code::Unknown, "remote error: tls: handshake failure", Tls),
    // Room on the node.
    (
        Code::Unknown,
        "failed to copy: failed to send write: write /var/lib/containerd/ingest/data: no space left on device",
        NoSpace,
    ),
    (
        Code::Unknown,
        "writing blob: storing blob to file \"/var/tmp/storage\": write /var/tmp/storage: no space left on device",
        NoSpace,
    ),
    (Code::Unknown, "write /var/lib/x: disk quota exceeded", NoSpace),
    // The content is wrong.
    (Code::Unknown, "failed to copy: failed to read expected number of bytes: unexpected EOF", Corrupt),
    (Code::Unknown, "writing blob: happened during read: unexpected EOF", Corrupt),
    (
        Code::FailedPrecondition,
        "failed commit on ref \"layer-sha256:00\": \"layer-sha256:00\" failed size validation: 10 != 20: failed precondition",
        Corrupt,
    ),
    (
        Code::FailedPrecondition,
        "failed commit on ref \"layer-sha256:00\": unexpected commit digest sha256:11, expected sha256:00: failed precondition",
        Corrupt,
    ),
    (
        Code::Unknown,
        "reading blob sha256:00: Digest did not match, expected sha256:00, got sha256:11",
        Corrupt,
    ),
    // The wrong platform.
    (
        Code::NotFound,
        "failed to pull and unpack image \"reg.example/a:1\": no match for platform in manifest: not found",
        NoPlatform,
    ),
    (
        Code::Unknown,
        "choosing image instance: no image found in image index for architecture \"amd64\", variant \"\", OS \"linux\"",
        NoPlatform,
    ),
    (
        Code::Unknown,
        "no image found in manifest list for architecture arm64, variant \"v8\", OS linux",
        NoPlatform,
    ),
    // The reference.
    (Code::Unknown, "cannot parse input: \"UPPER\"", InvalidReference),
    (
        Code::Unknown,
        "failed to parse image reference \"UPPER\": invalid reference format: repository name must be lowercase",
        InvalidReference,
    ),
    // Timeouts.
    (Code::DeadlineExceeded, "context deadline exceeded", TimedOut),
    (Code::DeadlineExceeded, "stream terminated by RST_STREAM with error code: CANCEL", TimedOut),
    (Code::Unknown, "context deadline exceeded", TimedOut),
    // Texts of the real programs with real faults.
    (
        Code::NotFound,
        "get image config descriptor: no match for platform in manifest sha256:0da77ed1: not found",
        NoPlatform,
    ),
    (
        Code::Unknown,
        "choosing an image from manifest list docker://faulty.example/shop/foreign:v1: no image found in image index for architecture \"amd64\", variant \"\", OS \"linux\"",
        NoPlatform,
    ),
    (
        Code::Unknown,
        "writing blob: storing blob to file \"/var/tmp/container_images_storage3261743886/1\": happened during read: (heuristic tuning data: total 2000 @1161.999 ms, last retry 1000 @51.053 ms, last progress @ 51.042 ms): unexpected EOF",
        Corrupt,
    ),
    (
        Code::Unknown,
        "writing blob: storing blob to file \"/var/tmp/container_images_storage205625/1\": happened during read: Digest did not match, expected sha256:346c, got sha256:8c36",
        Corrupt,
    ),
    (
        Code::Unknown,
        "dial tcp: lookup no-such-host.example on 127.0.0.1:53: read udp 127.0.0.1:49689->127.0.0.1:53: read: connection refused",
        Unreachable,
    ),
    (
        Code::Unknown,
        "failed to do request: Head \"https://10.77.0.1:35831/v2/shop/web/manifests/v1?ns=plain.example\": http: server gave HTTP response to HTTPS client",
        Tls,
    ),
    (
        Code::Unknown,
        "unable to try pulling possible OCI artifact: build image source: reading manifest v1 in 10.77.0.1:34713/shop/web: toomanyrequests: the bed answers 429 Too Many Requests",
        RateLimited,
    ),
    // Unknown texts.
    (Code::Cancelled, "context canceled", Unknown),
    (Code::Unknown, "SignatureValidationFailed: Source image rejected: policy", Unknown),
    (Code::Unavailable, "error reading from server: EOF", Unreachable),
    (Code::Unknown, "", Unknown),
];

#[test]
fn every_collected_text_has_its_class() {
    let wrong: Vec<String> = TEXTS
        .iter()
        .filter(|(code, text, class)| classify(*code, text) != *class)
        .map(|(code, text, class)| format!("{:?} instead of {class:?}: {text}", classify(*code, text)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_class_has_a_text_but_that_of_a_runtime_that_says_nothing_any_more() {
    for class in FailureClass::ALL.into_iter().filter(|class| *class != FailureClass::RuntimeCrash) {
        assert!(TEXTS.iter().any(|(.., collected)| *collected == class), "{class:?}");
    }
}

#[test]
fn the_names_of_images_do_not_count() {
    for name in
        ["docker.io/x509:/a:1", "reg.example/unauthorized:1", "reg.example/no-such-host/404:500", "tls:/429"]
    {
        let text = format!(
            "failed to resolve reference \"{name}\": dial tcp 10.0.0.1:443: connect: connection refused"
        );
        assert_eq!(classify(Code::Unknown, &text), Unreachable, "{name}");
        assert!(!is_overload(&text), "{name}");
    }
}

#[test]
fn only_an_overloaded_registry_slows_other_pulls_down() {
    let says = |part: &str| TEXTS.iter().find(|(_, text, _)| text.contains(part)).unwrap().1;
    for part in ["429 Too Many", "toomanyrequests", "HTTP status: 500", "503 Service", "504 Gateway"] {
        assert!(is_overload(says(part)), "{part}");
    }
    for part in
        ["connection refused", "no such host", "401 Unauthorized", "manifest unknown", "context canceled"]
    {
        assert!(!is_overload(says(part)), "{part}");
    }
}
