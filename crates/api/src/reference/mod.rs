//! Image references: what a user writes, and the two forms the rest of the program needs.
//!
//! The familiar name and the tag are the keys of a NodeImage, the full form is what the runtime is asked for:
//!
//! | written | name | tag | full form |
//! |---|---|---|---|
//! | `nginx` | `nginx` | `latest` | `docker.io/library/nginx:latest` |
//! | `reg:5000/a/b:v1` | `reg:5000/a/b` | `v1` | `reg:5000/a/b:v1` |
//! | `ubuntu:20.04@sha256:…` | `ubuntu` | `sha256:…` | `docker.io/library/ubuntu@sha256:…` |
//!
//! The grammar is that of Go's `distribution/reference` v0.6.0 with `go-digest` v1.0.0, because other programs
//! compute the same keys with it. It is written by hand: the published Rust crates know no IPv6 hosts, accept
//! names that their own output does not parse back to, and keep other digests than Go does.
//! `tests/reference_golden` compares every verdict with Go's own.

/// Any reference without tag and digest: `[registry/]path`.
macro_rules! name_pattern {
    () => {
        concat!(
            "(?:(?:",
            // A host name or IPv4 address, and a port.
            r"[A-Za-z0-9]+(?:(?:\.|-+)[A-Za-z0-9]+)*(?::[0-9]+)?|",
            // An IPv6 address. Without a colon, capital or port it would not be taken for a registry.
            r"\[[a-f0-9]*[A-F:][A-Fa-f0-9:]*\](?::[0-9]+)?|\[[a-f0-9]+\]:[0-9]+",
            ")/)?",
            // The path in the registry: words, divided by separators.
            "[a-z0-9]+(?:(?:[._/]|__|-+)[a-z0-9]+)*",
        )
    };
}

/// Matches every string that [`ImageRef::parse`] accepts, as a pattern for Go's, CEL's and Rust's engines.
///
/// It cannot count across alternatives, so it also matches two kinds of strings that are refused:
/// a bare name of 64 hexadecimal digits, and a repository of more than 255 characters.
pub const PATTERN: &str = concat!(
    "^",
    name_pattern!(),
    "(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?",
    "(?:@sha(?:256:[a-f0-9]{64}|384:[a-f0-9]{96}|512:[a-f0-9]{128}))?",
    "$"
);

/// Matches every name (a key of a NodeImage): a reference without tag and digest.
///
/// It also matches long forms such as `docker.io/library/nginx`, which parse to another, shorter name.
pub const NAME_PATTERN: &str = concat!("^", name_pattern!(), "$");

/// Matches the second half of a reference (a tag of a NodeImage): a tag, or a whole digest.
pub const TAG_PATTERN: &str = concat!(
    "^(?:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}",
    "|sha(?:256:[a-f0-9]{64}|384:[a-f0-9]{96}|512:[a-f0-9]{128}))$"
);
