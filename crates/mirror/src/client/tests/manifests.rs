//! Manifests by tag and by digest.

use super::*;

const MANIFEST: &[u8] = br#"{"schemaVersion":2,"config":{},"layers":[]}"#;
const TYPE: &str = "application/vnd.oci.image.manifest.v1+json";

fn good(_: &Seen) -> Reply {
    Reply::new(200, MANIFEST).with("Content-Type", &format!("{TYPE}; charset=utf-8"))
}

async fn tag(mirrors: &Mirrors) -> Result<Found, FetchError> {
    mirrors.manifest("library/nginx", Wanted::Tag("v1")).await
}

#[tokio::test]
async fn a_tag_is_asked_for_as_containerd_asks() {
    let (node, mirror) = (Node::new(), Mirror::start(good).await);
    let mirrors = node
        .mirrors(&table(&mirror, "header = { Authorization = \"Basic s3cret\", X-Two = [\"a\", \"b\"] }"));
    let found = tag(&mirrors).await.unwrap();
    let expected = Found {
        digest: Digest::of(MANIFEST),
        media_type: Some(TYPE.into()),
        bytes: Bytes::from_static(MANIFEST),
        mirror: mirror.http(),
    };
    assert_eq!(found, expected);
    let seen = mirror.seen();
    assert_eq!(seen[0].target, "/v2/library/nginx/manifests/v1?ns=docker.io");
    let headers = &seen[0].headers;
    assert_eq!(headers["host"], format!("127.0.0.1:{}", mirror.port));
    assert_eq!(headers["authorization"], "Basic s3cret");
    assert!(headers["accept"].contains("image.index.v1+json") && headers["accept"].ends_with("*/*"));
    assert!(!headers.contains_key("range"));
}

#[tokio::test]
async fn a_mirror_that_does_not_have_it_is_left_for_the_next() {
    let node = Node::new();
    let (first, second) = (Mirror::start(|_| Reply::new(404, b"{}")).await, Mirror::start(good).await);
    assert_eq!(tag(&node.plain(&[&first, &second])).await.unwrap().mirror, second.http());
    assert_eq!(first.targets(), second.targets());
}

#[tokio::test]
async fn it_is_not_there_yet_if_every_mirror_says_so() {
    let node = Node::new();
    let mirror = Mirror::start(|_| Reply::new(404, b"{}")).await;
    let error = tag(&node.plain(&[&mirror])).await.unwrap_err();
    assert!(error.is_not_there_yet() && !error.has_no_mirror());
    let sentence =
        format!("no mirror serves docker.io/library/nginx:v1: {} does not have it (404)", mirror.http());
    assert_eq!(error.to_string(), sentence);
}

#[tokio::test]
async fn mirrors_that_fail_in_any_way_are_left_and_remembered() {
    let node = Node::new();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let closed = format!("http://{closed}");
    let failing = Mirror::start(|_| Reply::new(500, b"")).await;
    let silent = Mirror::start(|_| Reply::silence()).await;
    let absent = Mirror::start(|_| Reply::new(404, b"")).await;
    let closing = Mirror::start(|_| Reply::unannounced(200, b"")).await;
    let tables = [&failing, &silent, &absent, &closing].map(|mirror| table(mirror, ""));
    let mirrors = node.mirrors(&format!("[host.\"{closed}\"]\n{}", tables.concat()));
    let error = past_silence(&mirrors, &[&silent]).await.unwrap_err();
    let failures = failures(&error);
    assert!(matches!(failures[0], Failure::Unreached(_)), "{error}");
    let rest = [
        Failure::Refused(500),
        Failure::NoAnswer(PATIENCE.answer),
        Failure::NotThere,
        Failure::Odd("something that is no manifest"),
    ];
    assert_eq!(failures[1..], rest);
    assert_eq!(error.class(), FailureClass::TimedOut);
    assert!(error.to_string().contains(&closed), "{error}");
}

#[tokio::test]
async fn the_next_mirror_answers_after_a_silent_one() {
    let node = Node::new();
    let (silent, second) = (Mirror::start(|_| Reply::silence()).await, Mirror::start(good).await);
    let found = past_silence(&node.plain(&[&silent, &second]), &[&silent]).await.unwrap();
    assert_eq!(found.mirror, second.http());
}

#[tokio::test]
async fn only_mirrors_that_may_resolve_are_asked_for_tags() {
    let node = Node::new();
    let (puller, resolver) = (Mirror::start(good).await, Mirror::start(good).await);
    let tables = table(&puller, "capabilities = [\"pull\"]") + &table(&resolver, "");
    let mirrors = node.mirrors(&tables);
    assert_eq!(tag(&mirrors).await.unwrap().mirror, resolver.http());
    let digest = Digest::of(MANIFEST);
    let found = mirrors.manifest("library/nginx", Wanted::Digest(&digest)).await.unwrap();
    assert_eq!(found.mirror, puller.http());
    assert_eq!(puller.targets(), [format!("/v2/library/nginx/manifests/{digest}?ns=docker.io")]);

    let error = tag(&node.mirrors(&table(&puller, "capabilities = [\"pull\"]"))).await.unwrap_err();
    assert!(error.has_no_mirror() && error.to_string().contains("capability resolve"), "{error}");

    // One that is left out might have been the one.
    let directory = node.directory.path().join("docker.io");
    let text = table(&puller, "capabilities = [\"pull\"]") + "[host.\"http://localhost:5000\"]\n";
    fs::write(directory.join("hosts.toml"), text).unwrap();
    let settings = Settings { roots: vec![node.directory.path().to_owned()], shares_network: false };
    let mut hosts = Hosts::read(&settings, "docker.io");
    hosts.mirrors = mirrors.hosts().mirrors[..1].to_vec();
    let error = tag(&Mirrors::new(hosts, PATIENCE)).await.unwrap_err();
    assert!(error.to_string().contains("is on the node's loopback"), "{error}");
}

#[tokio::test]
async fn a_mirror_that_lies_about_a_digest_is_left_and_named() {
    let node = Node::new();
    let liar = Mirror::start(|_| Reply::new(200, br#"{"other":1}"#)).await;
    let honest = Mirror::start(good).await;
    let digest = Digest::of(MANIFEST);
    let ask = async |mirrors: &Mirrors| mirrors.manifest("a", Wanted::Digest(&digest)).await;
    assert_eq!(ask(&node.plain(&[&liar, &honest])).await.unwrap().mirror, honest.http());
    let error = ask(&node.plain(&[&liar])).await.unwrap_err();
    assert_eq!(error.class(), FailureClass::Corrupt);
    assert!(error.to_string().contains(&liar.http()), "{error}");
}

#[tokio::test]
async fn a_tag_whose_announced_digest_does_not_fit_is_corrupt() {
    let node = Node::new();
    let digest = Digest::of(b"else").to_string();
    let liar = Mirror::start(move |seen| good(seen).with("Docker-Content-Digest", &digest)).await;
    let error = tag(&node.plain(&[&liar])).await.unwrap_err();
    assert_eq!(failures(&error), [Failure::Corrupt]);
    let digest = Digest::of(MANIFEST).to_string();
    let honest = Mirror::start(move |seen| good(seen).with("Docker-Content-Digest", &digest)).await;
    assert_eq!(tag(&node.plain(&[&honest])).await.unwrap().digest, Digest::of(MANIFEST));
}

#[tokio::test]
async fn a_page_of_something_in_between_is_no_manifest() {
    let node = Node::new();
    let portal = Mirror::start(|_| Reply::new(200, b"<html>log in</html>")).await;
    let error = tag(&node.plain(&[&portal])).await.unwrap_err();
    assert_eq!(error.class(), FailureClass::Unreachable);
}

#[tokio::test]
async fn a_manifest_beyond_the_bound_is_not_read() {
    let node = Node::new();
    let long = usize::try_from(MAX_MANIFEST).unwrap() + 1;
    let announcing = Mirror::start(move |_| Reply::short(200, long, b"{").then_hang()).await;
    let flooding = Mirror::start(move |_| Reply::unannounced(200, &vec![b' '; long])).await;
    let error = tag(&node.plain(&[&announcing, &flooding])).await.unwrap_err();
    assert_eq!(
        failures(&error),
        [Failure::TooLong { most: MAX_MANIFEST }, Failure::TooLong { most: MAX_MANIFEST }]
    );
}

#[tokio::test]
async fn a_refusal_says_so_and_shows_nothing_of_the_headers() {
    let node = Node::new();
    for (status, class) in [
        (401, FailureClass::Unauthorized),
        (403, FailureClass::Unauthorized),
        (429, FailureClass::RateLimited),
        (503, FailureClass::Unreachable),
    ] {
        let mirror = Mirror::start(move |_| Reply::new(status, b"token s3cret")).await;
        let lines = "header = { Authorization = \"Basic s3cret\" }";
        let error = tag(&node.mirrors(&table(&mirror, lines))).await.unwrap_err();
        assert_eq!(error.class(), class, "{error}");
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
    }
}

#[tokio::test]
async fn a_manifest_that_stalls_is_left_when_its_time_is_over() {
    let node = Node::new();
    let mirror = Mirror::start(|_| Reply::short(200, 100, b"{").then_hang()).await;
    let mirrors = node.plain(&[&mirror]);
    let passing = async {
        mirror.asked().await;
        tokio::time::advance(PATIENCE.manifest + Duration::from_millis(1)).await;
    };
    let (answer, ()) = join!(tag(&mirrors), passing);
    assert_eq!(answer.unwrap_err().class(), FailureClass::TimedOut);
}
