use super::*;

const GOOD: &str = r#"
apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
- name: ecr-credential-provider
  matchImages: ["*.dkr.ecr.*.amazonaws.com", "public.ecr.aws/team"]
  defaultCacheDuration: "12h"
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  args: ["get-credentials", "--verbose=1"]
  env:
  - name: AWS_PROFILE
    value: nodes
  - name: EMPTY
"#;

fn complaints(text: &str) -> Vec<String> {
    parse(text).unwrap_err()
}

#[test]
fn a_config_is_read_from_yaml_and_json_in_all_versions() {
    let expected = Provider {
        name: "ecr-credential-provider".into(),
        match_images: ["*.dkr.ecr.*.amazonaws.com", "public.ecr.aws/team"]
            .map(|key| Pattern::parse(key).unwrap())
            .into(),
        default_cache_duration: Duration::from_hours(12),
        api_version: "credentialprovider.kubelet.k8s.io/v1".into(),
        args: vec!["get-credentials".into(), "--verbose=1".into()],
        env: vec![
            ("AWS_PROFILE".into(), SecretText::new("nodes".into())),
            ("EMPTY".into(), SecretText::default()),
        ],
    };
    assert_eq!(parse(GOOD), Ok(vec![expected.clone()]));
    for version in CONFIG_VERSIONS {
        let text = GOOD.replace("kubelet.config.k8s.io/v1", version);
        let as_json = serde_saphyr::from_str::<Value>(&text).unwrap().to_string();
        assert_eq!(parse(&as_json), Ok(vec![expected.clone()]), "{version}");
    }
}

#[test]
fn each_complaint_names_the_path_of_its_field() {
    for (from, to, complaint) in [
        ("kind: CredentialProviderConfig", "kind: Pod", "kind: must be CredentialProviderConfig"),
        ("  args:", "  arg:", "providers[0].arg: is not a known field"),
        ("name: ecr-credential-provider", "name: ''", "providers[0].name: is required"),
        ("name: ecr-credential-provider", "name: [a]", "providers[0].name: must be a text"),
        ("\"12h\"", "soon", "providers[0].defaultCacheDuration: must be a duration such as 12h, 30m or 0s"),
        ("\"12h\"", "null", "providers[0].defaultCacheDuration: is required"),
        (
            "public.ecr.aws/team",
            "public ecr",
            "providers[0].matchImages[1]: is not a registry: its host has characters that a host cannot have",
        ),
        ("name: AWS_PROFILE", "name: A=B", "providers[0].env[0].name: must not have an equals sign"),
        ("value: nodes", "value: {secret: hunter2}", "providers[0].env[0].value: must be a text"),
        ("\"--verbose=1\"", "1", "providers[0].args[1]: must be a text"),
    ] {
        let text = GOOD.replace(from, to);
        assert_ne!(text, GOOD, "{from}");
        assert_eq!(complaints(&text), [complaint]);
    }
    let versions = complaints(&GOOD.replace("v1\n  args", "v9\n  args"));
    assert!(
        versions[0].starts_with("providers[0].apiVersion: must be credentialprovider.kubelet.k8s.io/v1 or")
    );
}

#[test]
fn names_that_lead_out_of_the_plugin_folder_are_refused() {
    for name in ["../sh", "/bin/sh", "a/b", "'a\\b'", "'.'", "'..'", "a b"] {
        let found = complaints(&GOOD.replace("ecr-credential-provider", name));
        let expected =
            "providers[0].name: must be the name of a file in the plugin folder, without slashes and spaces";
        assert_eq!(found, [expected], "{name}");
    }
}

#[test]
fn a_name_may_be_used_only_once() {
    let provider = &GOOD[GOOD.find("- name: ecr").unwrap()..];
    assert_eq!(
        complaints(&format!("{GOOD}{provider}")),
        ["providers[1].name: is the name of an earlier plugin"]
    );
}

#[test]
fn plugins_that_need_a_pods_token_are_refused_with_advice() {
    let text = format!(
        "{GOOD}  tokenAttributes:\n    serviceAccountTokenAudience: reg\n    requireServiceAccount: true\n"
    );
    assert_eq!(complaints(&text), [format!("providers[0].tokenAttributes: {TOKENS_REFUSED}")]);
}

#[test]
fn a_config_that_is_empty_or_unreadable_is_refused() {
    assert!(complaints("[]")[0].starts_with("the config: must be an object"));
    let empty = "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders: []\n";
    assert_eq!(complaints(empty), ["providers: must name 1 to 32 plugins"]);
    assert_eq!(complaints("a: [hunter2\nb: }").len(), 1);
    assert!(!complaints("a: [hunter2\nb: }")[0].contains("hunter2"));
}
