//! Image references: tables, Go's own verdicts, properties, and the body of the fuzz target.

use prewarm_api::reference::{ImageRef, PATTERN, ParseError};
use proptest::prelude::*;
use proptest::string::string_regex;
use regex::Regex;

#[path = "../../../fuzz/bodies/reference.rs"]
mod body;

const SHA256: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn parse(text: &str) -> ImageRef {
    ImageRef::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn a_reference_becomes_a_name_and_a_tag() {
    let by_digest = format!("ubuntu:20.04@{SHA256}");
    let table = [
        ("nginx", "nginx", "latest"),
        ("docker.io/library/ubuntu:20.04", "ubuntu", "20.04"),
        ("index.docker.io/library/ubuntu:20.04", "ubuntu", "20.04"),
        ("test/nginx:1.0", "test/nginx", "1.0"),
        ("reg:5000/a/b:v1", "reg:5000/a/b", "v1"),
        ("localhost/a", "localhost/a", "latest"),
        ("[::1]:5000/a:1", "[::1]:5000/a", "1"),
        (by_digest.as_str(), "ubuntu", SHA256),
    ];
    for (text, name, tag) in table {
        let reference = parse(text);
        assert_eq!((reference.name(), reference.tag()), (name, tag), "{text}");
        assert_eq!(ImageRef::from_parts(name, tag), Ok(reference), "{text}");
    }
}

#[test]
fn the_registry_is_docker_io_unless_the_reference_names_another() {
    let table = [
        ("nginx", "docker.io", "library/nginx"),
        ("test/nginx", "docker.io", "test/nginx"),
        ("reg:5000/a/b:v1", "reg:5000", "a/b"),
        ("localhost/a", "localhost", "a"),
        ("ghcr.io/a/b", "ghcr.io", "a/b"),
    ];
    for (text, registry, repository) in table {
        let reference = parse(text);
        assert_eq!((reference.registry(), reference.repository()), (registry, repository), "{text}");
    }
}

#[test]
fn the_runtime_is_asked_with_the_full_form() {
    assert_eq!(parse("nginx").full(), "docker.io/library/nginx:latest");
    assert_eq!(parse("reg:5000/a:1").full(), "reg:5000/a:1");
    assert_eq!(parse(&format!("nginx:1@{SHA256}")).full(), format!("docker.io/library/nginx@{SHA256}"));
}

#[test]
fn a_name_is_not_shortened_into_another_image() {
    let reference = parse("docker.io/ghcr.io/app:1");
    assert_eq!(reference.name(), "docker.io/ghcr.io/app");
    assert_ne!(reference, parse("ghcr.io/app:1"));
}

#[test]
fn a_name_with_a_tag_inside_is_not_a_name() {
    for (name, tag) in
        [("nginx:1", "2"), ("nginx:1", SHA256), ("reg", "5000/a"), ("nginx", "1@sha256:0"), ("", "1")]
    {
        assert!(ImageRef::from_parts(name, tag).is_err(), "{name} {tag}");
    }
}

#[test]
fn every_error_says_what_to_change() {
    let too_long = format!("reg.io/{}", "a".repeat(256));
    let table = [
        ("", "the name of the image is missing: write for example `nginx:1.27`"),
        (":1", "the name of the image is missing: write for example `nginx:1.27`"),
        ("nginx\n", r"`nginx\n` contains white space or a control character: remove it"),
        ("ngïnx", "'ï' cannot stand in an image reference: it is not an ASCII character"),
        ("https://reg.io/a", "an image reference has no URL scheme: write it without `https://`"),
        ("MyOrg/App:V1", "repository names are lower case: write `myorg/app`"),
        (
            "reg_1:5000/a",
            "`reg_1:5000` is no registry: write a host name or an IP address, and a port if it has one",
        ),
        ("reg.io/", "`reg.io/` names no repository: add the path of an image after the last `/`"),
        ("nginx@sha256:0", "a sha256 digest has 64 digits, but this one has 1"),
        ("nginx@md5:0", "digest algorithm `md5` is not supported: use sha256, sha384 or sha512"),
        (
            too_long.as_str(),
            "the repository has 256 characters (with `library/` if it is left out): at most 255 are allowed",
        ),
    ];
    for (text, message) in table {
        let error = ImageRef::parse(text).expect_err(text);
        assert_eq!(error.to_string(), message);
    }
    for (text, beginning) in [
        ("a//b", "`a//b` is no repository: "),
        ("nginx:.1", "`.1` is no tag: "),
        ("nginx@sha256", "`sha256` is no digest: "),
        (&"a".repeat(64), "64 hexadecimal digits are an image ID"),
    ] {
        let message = ImageRef::parse(text).expect_err(text).to_string();
        assert!(message.starts_with(beginning), "{message}");
    }
}

#[test]
fn a_reference_is_a_string_in_json() {
    let reference: ImageRef = serde_json::from_str(r#""docker.io/library/nginx:1""#).unwrap();
    assert_eq!(serde_json::to_string(&reference).unwrap(), r#""nginx:1""#);
    let error = serde_json::from_str::<ImageRef>(r#""Nginx""#).unwrap_err();
    assert!(error.to_string().contains("write `nginx`"), "{error}");
}

/// One line of Go's verdicts.
struct Golden {
    text: String,
    /// None if Go refuses the text.
    accepted: Option<Accepted>,
}

#[derive(Debug, PartialEq)]
struct Accepted {
    name: String,
    tag: String,
    full: String,
}

fn golden() -> Vec<Golden> {
    let lines = include_str!("reference_golden/golden.tsv").lines().filter(|line| !line.starts_with('#'));
    lines.map(golden_line).collect()
}

fn golden_line(line: &str) -> Golden {
    let columns: Vec<&str> = line.split('\t').collect();
    let [text, verdict, name, tag, full] = columns[..] else { panic!("not five columns: {line}") };
    let name = match verdict {
        // Go's short name means another image; ours stays long.
        "lossy" => format!("docker.io/{name}"),
        _ => name.to_owned(),
    };
    let accepted = Accepted { name, tag: tag.to_owned(), full: full.to_owned() };
    Golden {
        text: serde_json::from_str(text).expect("the golden file quotes as JSON"),
        accepted: (verdict != "no").then_some(accepted),
    }
}

#[test]
fn go_was_asked_about_every_line() {
    let lines = include_str!("reference_golden/lines.txt").lines();
    let asked = lines.filter(|line| !line.is_empty() && !line.starts_with("# ")).count();
    assert_eq!(golden().len(), asked, "`tests/reference_golden/main.go` says how to ask again");
}

#[test]
fn go_gives_the_same_verdicts_names_and_tags() {
    for line in golden() {
        let ours = ImageRef::parse(&line.text).ok().map(|reference| Accepted {
            name: reference.name().to_owned(),
            tag: reference.tag().to_owned(),
            full: reference.full(),
        });
        assert_eq!(ours, line.accepted, "{:?}", line.text);
    }
}

#[test]
fn the_pattern_differs_from_go_only_in_image_ids_and_lengths() {
    let pattern = Regex::new(PATTERN).unwrap();
    let (mut image_ids, mut too_long) = (0, 0);
    for line in golden() {
        match ImageRef::parse(&line.text) {
            Err(ParseError::ImageId) if pattern.is_match(&line.text) => image_ids += 1,
            Err(ParseError::TooLong { .. }) if pattern.is_match(&line.text) => too_long += 1,
            _ => assert_eq!(pattern.is_match(&line.text), line.accepted.is_some(), "{:?}", line.text),
        }
    }
    assert_eq!((image_ids, too_long), (3, 32));
}

#[test]
fn the_pattern_is_short_enough_for_a_schema() {
    assert!(PATTERN.len() <= 400, "{}", PATTERN.len());
}

#[test]
fn the_body_of_the_fuzz_target_holds_on_every_golden_line() {
    for line in golden() {
        body::check(&line.text);
        body::check(&format!("{}\nlatest", line.text));
        body::check(&format!("{}\n{SHA256}", line.text));
        body::check(&format!("nginx\n{}", line.text));
    }
}

/// Texts that are nearly references. They have capitals, brackets and underscores, because bugs hide there.
fn nearly_a_reference() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => "[a-z0-9]{1,4}",
        4 => "[./:@_-]",
        1 => "[A-Z]{1,2}",
        1 => "[\\[\\]\n é]",
        2 => prop::sample::select(vec![
            "docker.io/", "index.docker.io/", "library/", "localhost", "[::1]", ":5000/", "__", "--", "@sha256:",
            "://", "@", SHA256, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        ]).prop_map(str::to_owned),
        1 => "[a-z]{100,200}",
    ];
    prop::collection::vec(piece, 0..9).prop_map(|pieces| pieces.concat())
}

/// Texts that are references.
fn reference() -> impl Strategy<Value = String> {
    let host =
        r"([a-zA-Z0-9]{1,3}(--?[a-z0-9])?\.){1,2}[a-zA-Z]{2}|localhost|[A-Z]{1,2}|\[[0-9a-f]{0,2}::1\]";
    let path = r"[a-z0-9]{1,5}((\.|_|__|-{1,3}|/)[a-z0-9]{1,5}){0,4}";
    let tag = "[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}";
    let digest = "sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128}";
    string_regex(&format!("(({host})(:[0-9]{{1,5}})?/)?{path}(:{tag})?(@({digest}))?"))
        .expect("a generator for references")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_text_is_refused_or_survives_a_round_trip(text in any::<String>()) {
        body::check(&text);
    }

    #[test]
    fn a_near_miss_is_refused_or_survives_a_round_trip(text in nearly_a_reference()) {
        body::check(&text);
    }

    #[test]
    fn every_reference_of_the_grammar_is_accepted(text in reference()) {
        prop_assert!(ImageRef::parse(&text).is_ok());
        body::check(&text);
    }
}
