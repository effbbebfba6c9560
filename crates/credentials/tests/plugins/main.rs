//! Credential provider plugins as real processes.

#![expect(clippy::unwrap_used, reason = "shared steps of tests may panic")]

mod bench;
mod bounds;
mod caching;

use std::sync::Arc;

use bench::{Bench, RESPONSE};
use futures::future::{BoxFuture, FutureExt as _};
use prewarm_credentials::plugin::{DEFAULT_TIME_LIMIT, LoadError};
use prewarm_credentials::{
    Chain, Credential, CredentialRequest, CredentialSource, Found, Plugins, SecretText,
};

fn credential(username: &str, password: &str) -> Credential {
    Credential {
        username: username.into(),
        password: SecretText::new(password.into()),
        server_address: "reg.example".into(),
        ..Credential::default()
    }
}

#[tokio::test]
async fn a_plugin_is_asked_for_the_images_of_its_patterns_only() {
    let bench = Bench::new(&format!("echo run >>runs; echo '{RESPONSE}'"));
    let plugins = bench.plugins();
    assert_eq!(
        bench::ask(&plugins, "reg.example/team/app:v1").await.credentials,
        [credential("robot", "hunter2")]
    );
    assert_eq!(bench::ask(&plugins, "other.example/team/app:v1").await, Found::default());
    assert_eq!(bench.lines("runs"), 1);
}

#[tokio::test]
async fn a_plugin_gets_kubelets_request_its_arguments_and_its_environment() {
    let bench = Bench::new(&format!("cat >request; echo \"$GREETING\" >greeting; echo '{RESPONSE}'"));
    bench::ask(&bench.plugins(), "reg.example/team/app:v1").await;
    let request: serde_json::Value = serde_json::from_str(&bench.read("request")).unwrap();
    let expected = serde_json::json!({
        "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
        "kind": "CredentialProviderRequest",
        "image": "reg.example/team/app",
    });
    assert_eq!(request, expected);
    assert_eq!(bench.read("greeting"), "hello world\n");
}

#[tokio::test]
async fn an_answer_is_matched_against_the_image_like_a_secret() {
    let answer = RESPONSE.replace(
        r#""auth":{"#,
        r#""auth":{"other.example":{"username":"o","password":"o"},"*.example":{"username":"g","password":"g"},"#,
    );
    let bench = Bench::new(&format!("echo '{answer}'"));
    let found = bench::ask(&bench.plugins(), "reg.example/app").await;
    assert_eq!(found.credentials, [credential("robot", "hunter2"), credential("g", "g")]);
}

/// Stands for the Secrets of a task.
struct Secrets;

impl CredentialSource for Secrets {
    fn credentials<'a>(&'a self, _: &'a CredentialRequest) -> BoxFuture<'a, Found> {
        async { Found { credentials: vec![credential("secret", "secret")], ..Found::default() } }.boxed()
    }

    fn name(&self) -> &'static str {
        "secrets"
    }
}

#[tokio::test]
async fn a_failing_plugin_does_not_hide_secrets() {
    let bench = Bench::new("echo no metadata server >&2; exit 3");
    let chain = Chain::new(vec![Arc::new(Secrets), Arc::new(bench.plugins())]);
    let found = bench::ask(&chain, "reg.example/app").await;
    assert_eq!(found.credentials, [credential("secret", "secret")]);
    assert_eq!(
        found.problems,
        ["credential plugin plugin: it ended with exit status: 3: no metadata server"]
    );
}

#[tokio::test]
async fn a_plugins_complaint_is_short_and_without_credentials() {
    let bench = Bench::new(
        "echo \"$GREETING https://a:b@host Authorization: Basic cm9ib3Q6cGE=\" >&2; yes long | head -c 100000 >&2; exit 1",
    );
    let problem = bench::ask(&bench.plugins(), "reg.example/app").await.problems.remove(0);
    assert!(!problem.contains("hello") && !problem.contains("a:b") && !problem.contains("cm9i"), "{problem}");
    assert!(problem.len() < 400, "{problem}");
}

#[tokio::test]
async fn an_answer_that_cannot_be_used_is_reported_without_repeating_it() {
    for (answer, problem) in [
        ("hunter2".to_owned(), "its answer is not a CredentialProviderResponse in JSON, at line 1, column 1"),
        (RESPONSE.replace("Response", "Request"), "its answer is not a CredentialProviderResponse"),
        (
            RESPONSE.replace("/v1\"", "/v1beta1\""),
            "its answer has another apiVersion than the config gives for it",
        ),
        (RESPONSE.replace("\"1h\"", "\"hunter2\""), "its answer has a cacheDuration that is no duration"),
    ] {
        let bench = Bench::new(&format!("echo '{answer}'"));
        let found = bench::ask(&bench.plugins(), "reg.example/app").await;
        assert_eq!(found.problems, [format!("credential plugin plugin: {problem}")]);
        assert_eq!(found.credentials, []);
    }
    let bench = Bench::new(&format!("echo '{}'", RESPONSE.replace("Registry", "Hunter2")));
    let problem = bench::ask(&bench.plugins(), "reg.example/app").await.problems.remove(0);
    assert!(!problem.contains("Hunter2"), "{problem}");
}

#[test]
fn a_config_or_a_plugin_that_is_not_there_is_named() {
    let bench = Bench::new("true");
    let load =
        |config: &str| Plugins::load(&bench.path(config), &bench.path(""), DEFAULT_TIME_LIMIT).err().unwrap();
    assert!(matches!(load("absent.yaml"), LoadError::ReadConfig { .. }));

    let config = bench.read("config.yaml");
    std::fs::write(bench.path("other.yaml"), config.replace("name: plugin", "name: absent")).unwrap();
    let error = load("other.yaml");
    assert!(
        matches!(&error, LoadError::FindPlugin { program, .. } if *program == bench.path("absent")),
        "{error}"
    );

    std::fs::write(bench.path("plain"), "").unwrap();
    std::fs::write(bench.path("other.yaml"), config.replace("name: plugin", "name: plain")).unwrap();
    assert!(matches!(load("other.yaml"), LoadError::NotExecutable { .. }));

    std::fs::write(bench.path("other.yaml"), config.replace("name: plugin", "name: ../plugin")).unwrap();
    let error = load("other.yaml").to_string();
    assert!(error.contains("other.yaml: providers[0].name: must be the name of a file"), "{error}");
}
