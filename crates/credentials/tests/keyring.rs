//! Which credentials of which Secrets match an image, and in which order.

#![expect(clippy::unwrap_used, reason = "shared steps of tests may panic")]

use std::collections::BTreeMap;

use prewarm_api::reference::ImageRef;
use prewarm_credentials::keyring::MAX_CANDIDATES;
use prewarm_credentials::{Credential, Keyring, SecretText};
use proptest::prelude::*;

type Data = BTreeMap<String, Vec<u8>>;

const JSON: &str = "kubernetes.io/dockerconfigjson";
const LEGACY: &str = "kubernetes.io/dockercfg";

/// A Secret in which each key has the user `user` and the given password.
fn secret(entries: &[(&str, &str)]) -> Data {
    let auths: BTreeMap<_, _> = entries
        .iter()
        .map(|(key, password)| (key, serde_json::json!({"username": "user", "password": password})))
        .collect();
    let text = serde_json::json!({ "auths": auths }).to_string();
    Data::from([(".dockerconfigjson".to_owned(), text.into_bytes())])
}

fn keyring(secrets: &[Data]) -> Keyring {
    let (keyring, problems) = Keyring::from_secrets(secrets.iter().map(|data| ("pull", JSON, data)));
    assert_eq!(problems, Vec::<String>::new());
    keyring
}

fn passwords(keyring: &Keyring, image: &str) -> Vec<String> {
    let image: ImageRef = image.parse().unwrap();
    keyring.matching(&image).into_iter().map(|found| found.password.reveal().to_owned()).collect()
}

/// ofen C28
#[test]
fn a_credential_matches_by_host_by_path_and_by_digest_and_other_paths_get_none() {
    let by_host = keyring(&[secret(&[("reg.example", "a")])]);
    assert_eq!(passwords(&by_host, "reg.example/team/app:v1"), ["a"]);
    assert_eq!(passwords(&by_host, "other.example/team/app:v1"), [""; 0]);

    let by_path = keyring(&[secret(&[("reg.example/team", "a")])]);
    let digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!(passwords(&by_path, &format!("reg.example/team/app@{digest}")), ["a"]);
    assert_eq!(passwords(&by_path, "reg.example/other/app:v1"), [""; 0]);

    let hub = keyring(&[secret(&[("docker.io/library/nginx", "a")])]);
    assert_eq!(passwords(&hub, "nginx"), ["a"]);
    assert_eq!(passwords(&hub, "redis"), [""; 0]);
}

#[test]
fn the_most_specific_key_comes_first_and_globs_come_last() {
    let keys = [
        ("*.example", "glob"),
        ("reg.example", "host"),
        ("reg.example/a/b", "deep"),
        ("reg.example/a", "path"),
    ];
    let keyring = keyring(&[secret(&keys)]);
    assert_eq!(passwords(&keyring, "reg.example/a/b/app"), ["deep", "path", "host", "glob"]);
    assert_eq!(passwords(&keyring, "reg.example/a/app"), ["path", "host", "glob"]);
    assert_eq!(passwords(&keyring, "reg.example/web"), ["host", "glob"]);
    assert_eq!(passwords(&keyring, "reg2.example/app"), ["glob"]);
}

#[test]
fn the_same_key_in_several_secrets_keeps_their_order_and_repeats_are_left_out() {
    let secrets =
        [("reg.example", "b"), ("https://reg.example/v2/", "a"), ("reg.example", "b"), ("reg.example", "c")]
            .map(|entry| secret(&[entry]));
    assert_eq!(passwords(&keyring(&secrets), "reg.example/app"), ["b", "a", "c"]);
}

#[test]
fn aliases_of_docker_hub_come_after_its_name() {
    let keys =
        [("https://index.docker.io/v1/", "index"), ("docker.io", "hub"), ("registry-1.docker.io", "mirror")];
    let keyring = keyring(&[secret(&keys)]);
    assert_eq!(passwords(&keyring, "nginx"), ["hub", "mirror", "index"]);
    assert_eq!(passwords(&keyring, "index.docker.io/team/app"), ["hub", "mirror", "index"]);
}

#[test]
fn a_credential_names_the_registry_of_the_image_whatever_its_key_looks_like() {
    for (key, image, address) in [
        ("https://reg.example:5000/v2/", "reg.example:5000/app", "reg.example:5000"),
        ("*.example", "reg.example/app", "reg.example"),
        ("https://index.docker.io/v1/", "nginx", "docker.io"),
    ] {
        let found = keyring(&[secret(&[(key, "a")])]).matching(&image.parse().unwrap());
        let expected = Credential {
            username: "user".into(),
            password: SecretText::new("a".into()),
            server_address: address.into(),
            ..Credential::default()
        };
        assert_eq!(found, [expected], "{key}");
    }
}

#[test]
fn both_types_of_secrets_are_read_and_a_bad_one_does_not_hide_a_good_one() {
    let legacy = Data::from([(".dockercfg".into(), br#"{"reg.example":{"auth":"Zm9vOmJhcg=="}}"#.to_vec())]);
    let broken = Data::from([(".dockerconfigjson".into(), b"{\"auths\": hunter2".to_vec())]);
    let (keyring, problems) = Keyring::from_secrets([
        ("opaque", "Opaque", &legacy),
        ("empty", JSON, &legacy),
        ("broken", JSON, &broken),
        ("good", LEGACY, &legacy),
    ]);
    assert_eq!(passwords(&keyring, "reg.example/app"), ["bar"]);
    assert_eq!(
        problems,
        [
            "secret opaque cannot be used whole: its type is not kubernetes.io/dockerconfigjson or \
             kubernetes.io/dockercfg; create it with `kubectl create secret docker-registry`",
            "secret empty cannot be used whole: it has no key .dockerconfigjson",
            "secret broken cannot be used whole: its docker config is not valid JSON at line 1, column 11",
        ]
    );
}

/// A Secret of one of the two types, with this text under its key.
fn written(secret_type: &'static str, text: &str) -> (&'static str, &'static str, Data) {
    let key = if secret_type == JSON { ".dockerconfigjson" } else { ".dockercfg" };
    ("pull", secret_type, Data::from([(key.to_owned(), text.as_bytes().to_vec())]))
}

fn read(secrets: &[(&'static str, &'static str, Data)]) -> (Keyring, Vec<String>) {
    Keyring::from_secrets(secrets.iter().map(|(name, secret_type, data)| (*name, *secret_type, data)))
}

/// ofen C64
#[test]
fn without_secrets_nothing_is_found_and_nothing_is_wrong() {
    let (keyring, problems) = read(&[]);
    assert_eq!(passwords(&keyring, "reg.example/app"), [""; 0]);
    assert_eq!(problems, Vec::<String>::new());
}

/// ofen C65–C67, C76, C79, C82, C87
#[test]
fn two_registries_in_a_secret_of_either_type_are_read_and_added_to_those_that_are_there() {
    // a:one, b:two, c:three, d:four
    let json = r#"{"auths":{"reg1.example":{"auth":"YTpvbmU="},"reg2.example":{"auth":"Yjp0d28="}}}"#;
    let legacy = r#"{"reg3.example":{"auth":"Yzp0aHJlZQ=="},"reg4.example":{"auth":"ZDpmb3Vy"}}"#;
    let (json, legacy) = (written(JSON, json), written(LEGACY, legacy));
    let expected = ["one", "two", "three", "four"];
    for (secrets, places) in
        [(vec![json.clone()], 0..2), (vec![legacy.clone()], 2..4), (vec![json, legacy], 0..4)]
    {
        let (keyring, problems) = read(&secrets);
        assert_eq!(problems, Vec::<String>::new());
        for (place, password) in expected.into_iter().enumerate() {
            let found = passwords(&keyring, &format!("reg{}.example/app", place + 1));
            assert_eq!(found, if places.contains(&place) { vec![password] } else { vec![] });
        }
    }
}

/// ofen C68–C74, C77, C78, C80, C81, C85, C86, W21: it is no error of the whole pull, and nothing of it is repeated.
#[test]
fn what_is_wrong_with_a_secret_of_either_type_is_said_and_hides_no_other_one() {
    let entry = |secret_type, auth: &str| {
        let entries = format!(r#"{{"bad.example":{{"auth":"{auth}"}}}}"#);
        let text = if secret_type == JSON { format!(r#"{{"auths":{entries}}}"#) } else { entries };
        written(secret_type, &text)
    };
    let neither = ("pull", JSON, Data::from([("config".to_owned(), b"hunter2".to_vec())]));
    let table = [
        (neither, "it has no key .dockerconfigjson"),
        (written(JSON, "hunter2"), "is not valid JSON at line 1, column 1"),
        (written(LEGACY, "hunter2"), "is not valid JSON at line 1, column 1"),
        (entry(JSON, "hunter2hunter2!"), "bad.example has an `auth` that is not base64"),
        (entry(LEGACY, "hunter2hunter2!"), "bad.example has an `auth` that is not base64"),
        (entry(JSON, "aHVudGVyMg=="), "bad.example has an `auth` that is not user:password"),
        (entry(LEGACY, "aHVudGVyMg=="), "bad.example has an `auth` that is not user:password"),
    ];
    let good = written(LEGACY, r#"{"reg.example":{"auth":"Zm9vOmJhcg=="}}"#);
    for (bad, sentence) in table {
        let (keyring, problems) = read(&[bad, good.clone()]);
        assert_eq!(passwords(&keyring, "reg.example/app"), ["bar"], "{sentence}");
        assert!(problems.len() == 1 && problems[0].contains(sentence), "{sentence}: {problems:?}");
        assert!(!problems[0].contains("hunter2") && !problems[0].contains("aHVudGVyMg"), "{problems:?}");
    }
}

/// ofen C75: its type says which.
#[test]
fn of_a_secret_with_both_keys_the_one_of_its_type_counts() {
    let (_, _, mut both) = written(JSON, r#"{"auths":{"reg.example":{"auth":"YTpvbmU="}}}"#);
    both.extend(written(LEGACY, r#"{"reg.example":{"auth":"Yjp0d28="}}"#).2);
    for (secret_type, password) in [(JSON, "one"), (LEGACY, "two")] {
        let (keyring, problems) = read(&[("pull", secret_type, both.clone())]);
        assert_eq!(passwords(&keyring, "reg.example/app"), [password]);
        assert_eq!(problems, Vec::<String>::new());
    }
}

#[test]
fn an_image_is_offered_a_bounded_number_of_credentials() {
    let secrets: Vec<Data> =
        (0..=MAX_CANDIDATES).map(|number| secret(&[("reg.example", &format!("p{number}"))])).collect();
    let found = passwords(&keyring(&secrets), "reg.example/app");
    assert_eq!(found.len(), MAX_CANDIDATES);
    assert_eq!(found.first().map(String::as_str), Some("p0"));
}

/// Keys and images from few words, so that they often match.
fn host() -> impl Strategy<Value = String> {
    let label = prop_oneof!["a", "b", "\\*", "a\\*"];
    (prop::collection::vec(label, 1..4), prop::option::of(1u16..3))
        .prop_map(|(labels, port)| labels.join(".") + &port.map_or(String::new(), |port| format!(":{port}")))
}

fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(prop_oneof![Just("x"), Just("y")], 0..3)
        .prop_map(|words| words.iter().flat_map(|word| ["/", word]).collect())
}

/// Kubelet's rule in its simplest form, as a second opinion.
fn is_for(key: &str, image: &ImageRef) -> bool {
    let split = |text: &str| {
        let (host, path) = text.split_once('/').unwrap_or((text, ""));
        let (name, port) = host.split_once(':').unwrap_or((host, ""));
        (name.split('.').map(str::to_owned).collect::<Vec<_>>(), port.to_owned(), path.to_owned())
    };
    let (labels, port, path) = split(key);
    let (image_labels, image_port, image_path) =
        split(&format!("{}/{}", image.registry(), image.repository()));
    let fits = |pattern: &str, label: &str| match pattern.strip_suffix('*') {
        Some(prefix) => label.starts_with(prefix),
        None => pattern == label,
    };
    labels.len() == image_labels.len()
        && port == image_port
        && image_path.starts_with(&path)
        && labels.iter().zip(&image_labels).all(|(pattern, label)| fits(pattern, label))
}

proptest! {
    #[test]
    fn exactly_the_keys_for_an_image_match_in_reverse_order(
        keys in prop::collection::btree_set((host(), path()).prop_map(|(host, path)| host + &path), 0..12),
        registry in "(a|b|ab)\\.(a|b)(\\.(a|b))?(:[12])?",
        repository in "[xy](/[xy]){0,2}",
    ) {
        let image: ImageRef = format!("{registry}/{repository}").parse().unwrap();
        let entries: Vec<(&str, &str)> = keys.iter().map(|key| (key.as_str(), key.as_str())).collect();
        let expected: Vec<&String> = keys.iter().rev().filter(|key| is_for(key, &image)).collect();
        let found = keyring(&[secret(&entries)]).matching(&image);
        prop_assert_eq!(found.iter().map(|found| found.password.reveal()).collect::<Vec<_>>(), expected);
        prop_assert!(found.iter().all(|found| found.server_address == registry));
    }

    #[test]
    fn any_bytes_may_be_in_a_secret(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let data = Data::from([(".dockercfg".to_owned(), bytes)]);
        Keyring::from_secrets([("pull", LEGACY, &data)]);
    }
}
